package autodiff

import (
	"slices"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// asScan puts at b a dm.scan that computes what o, a dm.while with a known or a
// bounded trip count, does, and gives its results; nil where the count is neither.
// Of a bounded loop each iteration is a branch on the condition.
func asScan(b *ir.Builder, o *ir.Op) []*ir.Value {
	n, known := op.TripCount(o)
	if !known {
		if op.Attr(o, "max_trips") == nil {
			return nil
		}
		n = op.Int(o, "max_trips")
	}
	if n == 0 {
		return o.Operands
	}
	ts := ir.Types(o.Results)
	s := b.Op(op.Scan, slices.Clone(o.Operands), scanAttrs(len(o.Operands), dim.Const(n), false, ""), ts...)
	body := s.AddRegion(o.Body(1).Args...)
	at := &ir.Builder{Block: body, At: o}
	next := func(at *ir.Builder) { at.Op(op.Yield, ir.CloneBlock(at, o.Body(1), body.Args), nil) }
	if known {
		next(at)
		return s.Results
	}
	more := ir.CloneBlock(at, o.Body(0), body.Args)
	branch := at.Op(op.If, more, nil, ts...)
	next(&ir.Builder{Block: branch.AddRegion(), At: o})
	(&ir.Builder{Block: branch.AddRegion(), At: o}).Op(op.Yield, slices.Clone(body.Args), nil)
	at.Op(op.Yield, slices.Clone(branch.Results), nil)
	return s.Results
}

// scanAttrs are the attributes of a scan of n iterations.
func scanAttrs(carries int, n dim.Dim, reverse bool, save string) []types.Named {
	attrs := []types.Named{{Name: "carries", Value: types.Int{V: int64(carries)}}}
	if n, ok := n.Int(); ok {
		attrs = append(attrs, types.Named{Name: "length", Value: types.Int{V: n}})
	}
	if reverse {
		attrs = append(attrs, types.Named{Name: "reverse", Value: types.Bool(true)})
	}
	if save != "" {
		attrs = append(attrs, types.Named{Name: "save", Value: types.Keyword(save)})
	}
	return attrs
}

// scanned goes back through o, a dm.scan: a second one, in the other direction,
// computes each iteration again and goes back through it. It carries the cotangents
// of the carried values and the sums of those of values from outside, and stacks
// those of slices. What an iteration is computed from, o stacks: the carried values
// that it began with and, where o saves contractions, their results.
func (r *reverse) scanned(b *ir.Builder, o *ir.Op, dy []*ir.Value) error {
	n, ok := op.Trips(o)
	if !ok {
		return fail(r.m, o, "DM811", "dm.scan has no derivative here: its number of iterations is unknown")
	}
	carries := op.Carries(o)
	captured := slices.DeleteFunc(ir.CapturedValues(o.Regions...), func(v *ir.Value) bool { return !r.active[v] })
	body, outs, active, err := r.opened(o, captured)
	if err != nil {
		return err
	}
	back := &ir.Op{}
	inner := r.inside()
	block := back.AddRegion()
	var begin, yields []*ir.Value // of back: what it carries first, and then
	carry := func(v, first *ir.Value) *ir.Value {
		begin = append(begin, first)
		return block.AddArg(CotangentName(v), first.Type)
	}
	var cots, sums []*ir.Value // by carried value, by captured one
	for i, a := range body.Args[:carries] {
		var c *ir.Value
		if active[a] {
			first := dy[i]
			if first == nil {
				first = op.Zeros(b, plain(a.Type))
			}
			c = carry(a, first)
		}
		cots = append(cots, c)
	}
	for _, v := range captured {
		sums = append(sums, carry(v, op.Zeros(b, sumType(v))))
	}
	var stacks []stack
	slice := func(name string, t types.Type, of func() *ir.Value) *ir.Value {
		a := block.AddArg(name, t)
		stacks = append(stacks, stack{a, of})
		return a
	}
	// The values of the iteration, as back has them.
	values := map[*ir.Value]*ir.Value{}
	for i, a := range body.Args {
		if i < carries {
			values[a] = slice(a.Name, plain(a.Type), func() *ir.Value { return op.StackResult(o, a) })
		} else {
			values[a] = slice(a.Name, a.Type, func() *ir.Value { return o.Operands[i] })
		}
		inner.active[values[a]] = active[a]
	}
	for _, v := range captured {
		inner.active[v] = true
	}
	at := &ir.Builder{Block: block, At: o}
	ir.CloneOps(at, body.Ops, values)
	op.RemoveChecks(block) // o makes them
	at.Index = len(block.Ops)
	here := func(v *ir.Value) *ir.Value {
		if c := values[v]; c != nil {
			return c
		}
		return v
	}
	ends := make([]*ir.Value, len(outs))
	for i, v := range outs {
		ends[i] = here(v)
	}
	if ends, err = inner.forward(block, ends); err != nil {
		return err
	}
	for i, v := range ends {
		switch {
		case !inner.active[v]:
		case i < carries && cots[i] != nil:
			inner.add(v, cots[i])
		case i >= carries && dy[i] != nil:
			inner.add(v, slice(CotangentName(v), plain(v.Type), func() *ir.Value { return dy[i] }))
		}
	}
	if err := inner.backward(block, len(block.Ops)); err != nil {
		return err
	}
	at.Index = len(block.Ops)
	gradient := func(v *ir.Value) *ir.Value {
		if c := inner.sum(at, v); c != nil {
			return c
		}
		return op.Zeros(at, plain(v.Type))
	}
	for i, c := range cots {
		if c != nil {
			yields = append(yields, gradient(values[body.Args[i]]))
		}
	}
	for i, v := range captured {
		total := sums[i]
		if c := inner.sum(at, v); c != nil {
			total = op.Add(at, total, op.Convert(at, c, total.Elem()))
		}
		yields = append(yields, total)
	}
	var sliced []int // operands of o
	for i := carries; i < len(o.Operands); i++ {
		if r.active[o.Operands[i]] {
			sliced = append(sliced, i)
			yields = append(yields, unrounded(gradient(values[body.Args[i]])))
		}
	}
	at.Op(op.Yield, yields, nil)
	op.RemoveDead(block)
	if op.Str(o, "save") == "contractions" {
		moreResults(body.Ops, values)
		for _, v := range expensive(body.Ops, values) {
			c := values[v]
			ir.ReplaceUses(c, slice(c.Name, plain(v.Type), func() *ir.Value { return op.StackResult(o, v) }))
		}
		op.RemoveDead(block)
	}

	// o computes the body as it was opened, and stacks what back takes.
	for _, p := range slices.Backward(slices.Clone(o.Body(0).Ops)) {
		ir.EraseAll(p)
	}
	o.Regions = []*ir.Region{body.Region}
	(&ir.Builder{Block: body, Index: len(body.Ops), At: o}).Op(op.Yield, outs, nil)
	operands := begin
	block.Args = block.Args[:len(begin)]
	_, counted := n.Int()
	for _, s := range stacks {
		if len(s.arg.Uses) > 0 || !counted && len(block.Args) == len(begin) {
			operands = append(operands, s.of())
			s.arg.Index = len(block.Args)
			block.Args = append(block.Args, s.arg)
		}
	}
	var ts []types.Type
	for i, v := range yields {
		if i < len(begin) {
			ts = append(ts, begin[i].Type)
		} else {
			ts = append(ts, op.StackOf(n, plain(v.Type).(*types.Tensor)))
		}
	}
	made := b.Op(op.Scan, operands, scanAttrs(len(begin), n, !op.Bool(o, "reverse"), op.Str(o, "save")), ts...)
	made.Regions = back.Regions
	made.Regions[0].Op = made

	results := made.Results
	for i, c := range cots {
		if c == nil {
			continue
		}
		if r.active[o.Operands[i]] {
			r.add(o.Operands[i], results[0])
		}
		results = results[1:]
	}
	for _, v := range captured {
		r.add(v, op.Convert(b, results[0], v.Elem()))
		results = results[1:]
	}
	for k, i := range sliced {
		r.add(o.Operands[i], op.Convert(b, results[k], o.Operands[i].Elem()))
	}
	return nil
}

// unrounded is the sum that v is rounded from, as the gradient of a scale in half precision; else v. Sums are rounded behind the loop,
// so that micro-batches and devices that each have a part of one add up what is not rounded.
func unrounded(v *ir.Value) *ir.Value {
	if o := v.Op; o != nil && o.Name == op.Prefix+"convert" && len(v.Uses) == 0 {
		if x := o.Operands[0]; x.Op != nil && x.Op.Name == op.Prefix+"reduce" && x.Elem().IsFloat() && x.Elem().Bytes() > v.Elem().Bytes() {
			return x
		}
	}
	return v
}

// stack is a stack that a scan may slice: the argument of its body, and the operand,
// made where the argument is used.
type stack struct {
	arg *ir.Value
	of  func() *ir.Value
}

// expensive are the values, made by ops, that a scan's derivative keeps: results of
// contractions that are worth it or, where only one element-wise op needs them, of that op, and so on.
// values are the copies that the derivative computes with.
func expensive(ops []*ir.Op, values map[*ir.Value]*ir.Value) (out []*ir.Value) {
	kept := map[*ir.Value]bool{} // copies
	for _, p := range ops {
		d := op.Of(p)
		switch {
		case d == nil || len(p.Regions) > 0:
		case d.Class == op.ClassContraction && worthKeeping(p):
			for _, v := range p.Results {
				kept[values[v]] = len(values[v].Uses) > 0
			}
		case d.Is(op.Pointwise) && len(p.Results) == 1:
			c := values[p.Results[0]]
			if c.Op.Parent == nil {
				continue
			}
			var from dim.Dim
			alone := true
			for i, v := range c.Op.Operands {
				if kept[v] && !slices.Contains(c.Op.Operands[:i], v) {
					from = from.Add(v.Tensor().Bytes())
					alone = alone && !slices.ContainsFunc(v.Uses, func(u ir.Use) bool { return u.Op != c.Op })
				}
			}
			if !alone || from.IsZero() || !from.AtLeast(c.Tensor().Bytes()) {
				continue
			}
			for _, v := range c.Op.Operands {
				delete(kept, v)
			}
			kept[c] = true
		}
	}
	for _, p := range ops {
		for _, v := range p.Results {
			if kept[values[v]] {
				out = append(out, v)
			}
		}
	}
	return out
}

// moreResults gives those ops that are kept the optional results that their copies were given for the derivative, as the logarithms
// of an attention.
func moreResults(ops []*ir.Op, values map[*ir.Value]*ir.Value) {
	for _, p := range ops {
		if d := op.Of(p); d == nil || d.Class != op.ClassContraction || len(p.Regions) > 0 || len(p.Results) == 0 || !worthKeeping(p) {
			continue
		}
		c := values[p.Results[0]].Op
		for _, more := range c.Results[min(len(p.Results), len(c.Results)):] {
			v := &ir.Value{Name: more.Name, Type: more.Type, Span: more.Span}
			op.AddResult(p, v)
			values[v] = more
		}
	}
}

// balance is the FLOP per byte moved below which every machine waits for its memory.
const balance = 8

// worthKeeping reports whether the results of p, a contraction, take less to write
// and to read than to compute again. An outer product does not: it computes a few
// FLOP per element from operands that are smaller than its result.
func worthKeeping(p *ir.Op) bool {
	var read, kept dim.Dim
	for i, v := range p.Operands {
		if !slices.Contains(p.Operands[:i], v) {
			read = read.Add(v.Tensor().Bytes())
		}
	}
	for _, v := range p.Results {
		kept = kept.Add(v.Tensor().Bytes().Scale(2))
	}
	d := op.Of(p)
	return read.AtLeast(kept) || d.FLOP == nil || d.FLOP(p).AtLeast(kept.Scale(balance))
}

// sumType is the type in which the gradient of v is summed over iterations.
func sumType(v *ir.Value) types.Type {
	t := plain(v.Type).(*types.Tensor)
	if t.Elem.Bytes() < 4 {
		t.Elem = types.F32
	}
	return t
}

// opened is a copy of the body of o, a dm.scan, without its terminator, in which
// calls, kernels and composites are opened; what it yields; and which of its
// arguments the gradient goes through: slices of active stacks, and carried values
// that begin as active ones or become so.
func (r *reverse) opened(o *ir.Op, captured []*ir.Value) (body *ir.Block, outs []*ir.Value, active map[*ir.Value]bool, err error) {
	through := make([]bool, len(o.Operands))
	for i, v := range o.Operands {
		through[i] = r.active[v]
	}
	for {
		inner := r.inside()
		body = (&ir.Op{Name: o.Name}).AddRegion(o.Body(0).Args...)
		body.Region.Op = o
		for i, a := range body.Args {
			inner.active[a] = through[i]
		}
		for _, v := range captured {
			inner.active[v] = true
		}
		outs, err = inner.forward(body, ir.CloneBlock(&ir.Builder{Block: body}, o.Body(0), body.Args))
		if err != nil {
			return nil, nil, nil, err
		}
		changed := false
		for i := range op.Carries(o) {
			if inner.active[outs[i]] && !through[i] {
				through[i], changed = true, true
			}
		}
		if !changed {
			return body, outs, inner.active, nil
		}
		for _, p := range slices.Backward(slices.Clone(body.Ops)) {
			ir.EraseAll(p)
		}
	}
}
