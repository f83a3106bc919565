// Package checks is the pass by which programs that state what they expect of their
// values do so on devices.
package checks

import (
	"math"
	"slices"

	"dmir/compile/interp"
	"dmir/compile/pass"
	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
	"dmir/gpu/artifact"
)

// Pass replaces every check by results of the function, which stand behind its own,
// for the host to compare: Unit.Checks describes them. Of a check outside of loops and
// branches these are the values that it compares. One inside becomes ops that find the
// first element that differs, and loops carry that element of the first iteration
// that has one. A check that is not reached then differs nowhere.
func Pass() pass.Pass {
	return pass.Pass{Name: "checks", Summary: "values that checks compare are returned; in loops and branches the first elements that differ", Run: run}
}

type checks struct {
	u     *pass.Unit
	loops int
}

// record is a check whose values are defined in one block: what it compares or, where
// that is kept, the two elements that differ and a list with their index and the counts
// of iterations of the loops left so far.
type record struct {
	check  artifact.Check
	op     *ir.Op
	around []interp.Place // the loops left so far
	loops  []artifact.Place
	values []*ir.Value
	none   int64 // the index where nothing differs
}

func run(u *pass.Unit) error {
	found := false
	var open []*ir.Op // ops that hold checks and take none: their own come before or behind them
	ir.Walk(u.Func.Body.Ops, func(o *ir.Op) bool {
		if op.IsCheck(o) {
			found = true
		} else if o.Name == op.Kernel || o.Name == op.While {
			open = append(open, o)
		}
		return true
	})
	ret := u.Func.Body.Terminator()
	if !found || ret == nil || ret.Name != op.Return {
		return nil
	}
	for _, o := range slices.Backward(open) { // those in others first
		if o.Name == op.Kernel {
			outOfKernel(o)
		} else if err := outOfCondition(o); err != nil {
			return err
		}
	}
	x := &checks{u: u}
	records, err := x.block(u.Func.Body, true)
	if err != nil {
		return err
	}
	returned := slices.Clone(ret.Operands)
	at := map[*ir.Value]int{}
	for i, v := range slices.Backward(returned) {
		at[v] = i
	}
	own := len(returned)
	for _, r := range records {
		var places []int
		for _, v := range r.values {
			n, known := at[v]
			if !known {
				n = len(returned)
				at[v] = n
				returned = append(returned, v)
			}
			places = append(places, n)
		}
		u.Checks = append(u.Checks, r.described(u, places))
	}
	u.Returned = own
	ret.SetOperands(returned...)
	u.Func.Retype()
	return nil
}

// described is the check of r, whose values are the results given.
func (r *record) described(u *pass.Unit, results []int) artifact.Check {
	c := r.check
	c.Got, c.Want = results[0], results[1]
	loop := 0
	for _, p := range interp.Reached(u.Module.Src, r.op, r.around) {
		place := artifact.Place{Func: p.Func, Line: p.Line}
		if p.Func == "" {
			place = r.loops[loop]
			loop++
		}
		c.Around = append(c.Around, place)
	}
	return c
}

// block erases the checks in b and gives their records. top: b is the function's.
func (x *checks) block(b *ir.Block, top bool) ([]*record, error) {
	var out []*record
	for _, o := range slices.Clone(b.Ops) {
		rs, err := x.op(o, top)
		if err != nil {
			return nil, err
		}
		out = append(out, rs...)
	}
	return out, nil
}

func (x *checks) op(o *ir.Op, top bool) ([]*record, error) {
	if op.IsCheck(o) {
		r, err := x.check(o, top)
		return []*record{r}, err
	}
	var inside [][]*record
	n := 0
	for i := range o.Regions {
		b := o.Body(i)
		if b == nil {
			inside = append(inside, nil)
			continue
		}
		rs, err := x.block(b, false)
		if err != nil {
			return nil, err
		}
		inside = append(inside, rs)
		n += len(rs)
	}
	switch {
	case n == 0:
		return nil, nil
	case o.Name == op.If:
		return branch(o, inside)
	case op.LoopBody(o) != nil:
		return x.loop(o, inside[len(inside)-1])
	}
	for _, rs := range inside {
		if len(rs) > 0 {
			o = rs[0].op
		}
	}
	return nil, pass.Errorf(o, "DM804", "%s stands in a region of scalars, where devices compare nothing", o.Name)
}

// check erases o, a check, and gives its record.
func (x *checks) check(o *ir.Op, top bool) (*record, error) {
	r := &record{op: o, check: artifact.Check{Line: interp.LineOf(x.u.Module, o), Tolerance: op.Tolerance(o), ULPs: op.ULPs(o), Member: o.Str(op.MemberAttr), Room: o.Str(op.RoomAttr)}}
	b := pass.Before(o)
	values := slices.Clone(o.Operands)
	if len(values) == 1 {
		if d, ok := o.Attr("value").(*types.Dense); ok {
			values = append(values, b.Value("constant", nil, []types.Named{{Name: "value", Value: d}}, d.Type))
		}
	}
	if len(values) != 2 || values[0].Tensor() == nil || values[1].Tensor() == nil {
		return nil, pass.Errorf(o, "DM804", "%s does not compare two tensors", o.Name)
	}
	got, want := values[0], values[1]
	switch {
	case got.Tensor().Elem != want.Tensor().Elem || !slices.EqualFunc(got.Tensor().Shape, want.Tensor().Shape, dim.Dim.Equal):
		r.check.Types = []string{got.Type.String(), want.Type.String()}
		r.check.Kept, r.none = true, 1
		r.values = []*ir.Value{b.Splat(list(2), 0), b.Splat(list(1), 0)}
	case top:
		r.values = values
	default:
		r.check.Kept = true
		r.differs(b, got, want)
	}
	if b.Err() != nil {
		return nil, pass.Errorf(o, "DM820", "%v", b.Err())
	}
	ir.Erase(o)
	return r, nil
}

var index = &types.Tensor{Elem: types.I64, At: types.Placement{Space: types.HBM}}

// list is n integers.
func list(n int64) *types.Tensor { return index.With(dim.Const(n)) }

func direction(d string) []types.Named {
	return []types.Named{{Name: "direction", Value: types.Keyword(d)}}
}

// differs finds the first element in which got and want differ, as interp.Differs does.
func (r *record) differs(b *op.Builder, got, want *ir.Value) {
	t := got.Tensor()
	n, _ := t.Elements().Int()
	r.none = n
	for _, d := range t.Shape {
		size, _ := d.Int()
		r.check.Shape = append(r.check.Shape, size)
	}
	if n == 0 {
		r.values = []*ir.Value{b.Splat(list(2), 0), b.Splat(list(1), 0)}
		return
	}
	got, want = b.Reshape(got, dim.Const(n)), b.Reshape(want, dim.Const(n))
	x, y := got, want
	compare := func(d string, x, y *ir.Value) *ir.Value {
		return b.Value("compare", []*ir.Value{x, y}, direction(d))
	}
	switch wide := t.Elem; {
	case t.Elem.IsFloat() && t.Elem.Bytes() < 4:
		wide = types.F32
		fallthrough
	case !t.Elem.IsFloat() && t.Elem != types.UI64:
		if !wide.IsFloat() {
			wide = types.I64
		}
		x, y = b.Convert(x, wide), b.Convert(y, wide)
	}
	equal := compare("eq", x, y)
	if t.Elem.IsFloat() {
		equal = b.Binary("or", equal, b.Binary("and", compare("ne", x, x), compare("ne", y, y)))
		if r.check.Tolerance > 0 {
			one := x.Tensor().With()
			scale := b.Binary("max", b.Unary("abs", y), b.Splat(one, 1))
			equal = b.Binary("or", equal, compare("le", b.Unary("abs", b.Binary("sub", x, y)), b.Binary("mul", scale, b.Splat(one, r.check.Tolerance))))
		}
		if r.check.ULPs > 0 {
			equal = b.Binary("or", equal, near(b, got, want, r.check.ULPs))
		}
	}
	which := b.Value("select", []*ir.Value{equal, b.Splat(index, float64(n)), b.Value("iota", nil, nil, list(n))}, nil)
	first := b.Value("reduce", []*ir.Value{which}, []types.Named{{Name: "kind", Value: types.Keyword("min")}})
	element := func(v *ir.Value) *ir.Value {
		return b.Value("dynamic_slice", []*ir.Value{v, first}, []types.Named{{Name: "slice_sizes", Value: op.IntList(1)}})
	}
	r.values = []*ir.Value{join(b, element(got), element(want)), b.Reshape(first, dim.Const(1))}
}

// near is where finite x and y, of one floating-point type, are at most so many units in
// the last place apart: their bits without the sign, negated for negative numbers, count
// the numbers of the type.
func near(b *op.Builder, x, y *ir.Value, ulps int64) *ir.Value {
	compare := func(d string, x, y *ir.Value) *ir.Value {
		return b.Value("compare", []*ir.Value{x, y}, direction(d))
	}
	number := func(like *ir.Value, n int64) *ir.Value {
		t := like.Tensor().With()
		return b.Value("constant", nil, []types.Named{{Name: "value", Value: types.IntOf(t, n)}}, t)
	}
	place := func(v *ir.Value) *ir.Value {
		t := v.Tensor()
		to := t.With(t.Shape...)
		to.Elem = map[int64]types.Elem{8: types.I64, 4: types.I32, 2: types.I16, 1: types.I8}[t.Elem.Bytes()]
		n := b.Convert(b.Value("bitcast", []*ir.Value{v}, nil, to), types.I64)
		least := number(n, math.MinInt64>>(64-t.Elem.Bits()))
		return b.Value("select", []*ir.Value{compare("lt", n, number(n, 0)), b.Binary("sub", least, n), n}, nil)
	}
	finite := func(v *ir.Value) *ir.Value {
		wide := b.Convert(v, types.F64)
		return compare("lt", b.Unary("abs", wide), b.Splat(wide.Tensor().With(), math.Inf(1)))
	}
	d := b.Binary("sub", place(x), place(y))
	close := b.Binary("and", compare("le", d, number(d, ulps)), compare("ge", d, number(d, -ulps)))
	return b.Binary("and", close, b.Binary("and", finite(x), finite(y)))
}

// join is x and y, of one dimension each, one behind the other.
func join(b *op.Builder, x, y *ir.Value) *ir.Value {
	return b.Value("concatenate", []*ir.Value{x, y}, []types.Named{{Name: "dim", Value: types.Int{}}})
}

// nothing are values of r where the check is not reached.
func (r *record) nothing(b *op.Builder) []*ir.Value {
	at := r.values[1].Tensor()
	return []*ir.Value{b.Splat(r.values[0].Tensor(), 0), b.Splat(at, float64(r.none))}
}

// branch makes what the regions of o, a dm.if, keep results of it.
func branch(o *ir.Op, inside [][]*record) ([]*record, error) {
	for len(o.Regions) < 2 || o.Body(1) == nil {
		if len(o.Regions) == 2 {
			o.Regions = o.Regions[:1]
		}
		(&ir.Builder{Block: o.AddRegion(), At: o}).Op(op.Yield, nil, nil)
	}
	all := slices.Concat(inside...)
	for n := range o.Regions {
		t := o.Body(n).Terminator()
		b := pass.Before(t)
		yields := slices.Clone(t.Operands)
		for _, r := range all {
			if n < len(inside) && slices.Contains(inside[n], r) {
				yields = append(yields, r.values...)
			} else {
				yields = append(yields, r.nothing(b)...)
			}
		}
		if b.Err() != nil {
			return nil, pass.Errorf(o, "DM820", "%v", b.Err())
		}
		t.SetOperands(yields...)
	}
	for _, r := range all {
		for i, v := range r.values {
			r.values[i] = result(o, len(o.Results), v.Type)
		}
	}
	return all, nil
}

// result inserts a result of type t as number n of o.
func result(o *ir.Op, n int, t types.Type) *ir.Value {
	v := &ir.Value{Type: t, Op: o, Span: o.Head}
	o.Results = slices.Insert(o.Results, n, v)
	for i := n; i < len(o.Results); i++ {
		o.Results[i].Index = i
	}
	return v
}

// argument inserts an argument of type t as number n of b.
func argument(b *ir.Block, n int, t types.Type) *ir.Value {
	v := &ir.Value{Type: t, Block: b}
	b.Args = slices.Insert(b.Args, n, v)
	for i := n; i < len(b.Args); i++ {
		b.Args[i].Index = i
	}
	return v
}

// loop makes what the body of o, a loop, keeps of its first failure values that o
// carries, with a count of iterations.
func (x *checks) loop(o *ir.Op, records []*record) ([]*record, error) {
	x.loops++
	place := artifact.Place{Line: interp.LineOf(x.u.Module, o), Loop: x.loops, Step: 1}
	if trips, ok := op.Trips(o); ok && op.Bool(o, "reverse") {
		n, _ := trips.Int()
		place.First, place.Step = n-1, -1
	}
	at := op.Carries(o)
	before := pass.Before(o)
	body := op.LoopBody(o)
	t := body.Terminator()
	b := pass.Before(t)

	begin := []*ir.Value{before.Splat(list(1), 0)} // what is carried more
	count := argument(body, at, list(1))
	next := []*ir.Value{b.Binary("add", count, b.Splat(list(1), 1))}
	for _, r := range records {
		r.values[1] = join(b, r.values[1], count)
		first := r.nothing(before)
		had := []*ir.Value{argument(body, at+len(begin), first[0].Type), argument(body, at+len(begin)+1, first[1].Type)}
		was := b.Value("slice", had[1:], []types.Named{{Name: "limit_indices", Value: op.IntList(1)}, {Name: "start_indices", Value: op.IntList(0)}})
		none := b.Value("compare", []*ir.Value{was, b.Splat(list(1), float64(r.none))}, direction("eq"))
		for i, v := range r.values {
			next = append(next, b.Value("select", []*ir.Value{none, v, had[i]}, nil))
		}
		begin = append(begin, first...)
	}
	if before.Err() != nil || b.Err() != nil {
		return nil, pass.Errorf(o, "DM820", "checks cannot be carried by %s", o.Name)
	}
	results := make([]*ir.Value, len(begin))
	for i, v := range begin {
		results[i] = result(o, at+i, v.Type)
		if o.Name == op.While {
			argument(o.Body(0), at+i, v.Type)
		}
	}
	o.SetOperands(slices.Insert(slices.Clone(o.Operands), at, begin...)...)
	t.SetOperands(slices.Insert(slices.Clone(t.Operands), at, next...)...)
	if o.Name == op.Scan {
		o.SetAttr("carries", types.Int{V: int64(at + len(begin))})
	}
	results = results[1:]
	for _, r := range records {
		r.values, results = results[:2:2], results[2:]
		r.loops = append(r.loops, place)
		r.around = append(r.around, interp.Place{Line: place.Line})
	}
	return records, nil
}

// outOfKernel moves the checks of o, a dm.kernel, behind it, which gives what they
// compare as further results.
func outOfKernel(o *ir.Op) {
	t := o.Body(0).Terminator()
	if t == nil {
		return
	}
	yields := slices.Clone(t.Operands)
	b := &ir.Builder{Block: o.Parent, Index: o.Position() + 1, At: o}
	for _, c := range slices.Clone(o.Body(0).Ops) {
		if !op.IsCheck(c) {
			continue
		}
		var operands []*ir.Value
		for _, v := range c.Operands {
			if v.Op != nil && v.Op.Parent == c.Parent {
				n := slices.Index(yields, v)
				if n < 0 {
					n = len(yields)
					yields = append(yields, v)
					result(o, n, v.Type)
				}
				v = o.Results[n]
			}
			operands = append(operands, v)
		}
		moved := b.Op(c.Name, operands, c.Attrs)
		moved.Span, moved.Head, moved.Origin, moved.Loc = c.Span, c.Head, c.Origin, c.Loc
		ir.Erase(c)
	}
	t.SetOperands(yields...)
}

// outOfCondition makes the checks in the condition of o, a dm.while, at the beginning
// of its body and, for the last evaluation, which begins no iteration, behind it.
func outOfCondition(o *ir.Op) error {
	cond, body := o.Body(0), o.Body(1)
	var first *ir.Op
	ir.Walk(cond.Ops, func(p *ir.Op) bool {
		if first == nil && op.IsCheck(p) {
			first = p
		}
		return first == nil
	})
	switch {
	case first == nil:
		return nil
	case op.Attr(o, "max_trips") != nil:
		e := pass.Errorf(first, "DM804", "%s stands in the condition of a loop with max_trips", first.Name)
		e.Help = "put it into the body of the loop"
		return e
	}
	ir.CloneBlock(&ir.Builder{Block: body}, cond, body.Args)
	ir.CloneBlock(&ir.Builder{Block: o.Parent, Index: o.Position() + 1}, cond, o.Results)
	op.RemoveChecks(cond)
	return nil
}
