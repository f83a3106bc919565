package onnx

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
	"dmir/dialect/verify"
)

// generalizer makes the first of several programs one for all sizes.
type generalizer struct {
	at       []map[string]int64 // the sizes of each program
	known    []size
	values   []map[*ir.Value]*ir.Value // of the other programs: the first one's
	formulas map[[samples]int64]dim.Dim
	divisors map[string]int64 // the largest in formulas that are guessed, for each symbol
}

// size is a formula and its number in every program.
type size struct {
	d  dim.Dim
	at []int64
}

// maxKnown is how many formulas are kept to explain others with.
const maxKnown = 48

func (g *generalizer) learn(d dim.Dim, at []int64) {
	if len(g.known) < maxKnown && !slices.ContainsFunc(g.known, func(s size) bool { return slices.Equal(s.at, at) }) {
		g.known = append(g.known, size{d, at})
	}
}

// block makes the first block general.
func (g *generalizer) block(bs []*ir.Block) {
	same(bs, func(b *ir.Block) [2]int { return [2]int{len(b.Args), len(b.Ops)} })
	for i := range bs[0].Args {
		g.types(mapped(bs, func(b *ir.Block) *ir.Value { return b.Args[i] }), nil)
	}
	ops := mapped(bs, func(b *ir.Block) []*ir.Op { return slices.Clone(b.Ops) })
	for i := range ops[0] {
		g.op(mapped(ops, func(list []*ir.Op) *ir.Op { return list[i] }))
	}
}

// op makes the first op general.
func (g *generalizer) op(os []*ir.Op) {
	o := os[0]
	same(os, func(o *ir.Op) [4]int { return [4]int{len(o.Operands), len(o.Results), len(o.Regions), len(o.Attrs)} })
	same(os, func(o *ir.Op) string { return o.Name })
	for i, v := range o.Operands {
		for k, p := range os {
			if k > 0 && g.values[k][p.Operands[i]] != v {
				differ(o)
			}
		}
	}
	for i, a := range o.Attrs {
		as := mapped(os, func(o *ir.Op) types.Named { return o.Attrs[i] })
		switch {
		case slices.ContainsFunc(as, func(b types.Named) bool { return b.Name != a.Name }):
			differ(o)
		case !slices.ContainsFunc(as, func(b types.Named) bool { return !types.EqualAttr(a.Value, b.Value) }):
		case o.Name == op.Constant, o.Name == "dm.slice", o.Name == "dm.pad", o.Name == "dm.iota" && a.Name == "start": // as a whole, below
		default:
			differ(o)
		}
	}
	for i, r := range o.Regions {
		for j := range r.Blocks {
			g.block(mapped(os, func(o *ir.Op) *ir.Block { return o.Regions[i].Blocks[j] }))
		}
	}
	whole := mapped(os, func(o *ir.Op) []*ir.Value { return o.Results })
	switch o.Name {
	case op.Constant:
		g.constant(os)
	case "dm.slice":
		g.slice(os)
	case "dm.pad":
		g.pad(os)
	case "dm.iota":
		g.iota(os)
	}
	inferred, ok := verify.Infer(o)
	for i := range whole[0] {
		var t types.Type
		if ok && i < len(inferred) {
			t = inferred[i]
		}
		g.types(mapped(whole, func(vs []*ir.Value) *ir.Value { return vs[i] }), t)
	}
}

// types gives the first value a type for all sizes: the inferred one where that has the
// numbers of all programs.
func (g *generalizer) types(vs []*ir.Value, inferred types.Type) {
	for k, v := range vs {
		g.values[k][v] = vs[0]
	}
	ts := mapped(vs, func(v *ir.Value) *types.Tensor { return v.Tensor() })
	if slices.Contains(ts, nil) {
		for _, v := range vs {
			if v.Tensor() != nil || !types.Equal(v.Type, vs[0].Type) {
				differ(vs[0].Op)
			}
		}
		return
	}
	same(ts, func(t *types.Tensor) [2]int { return [2]int{t.Rank(), int(t.Elem)} })
	r := *ts[0]
	r.Shape = slices.Clone(r.Shape)
	for i := range r.Shape {
		at := mapped(ts, func(t *types.Tensor) int64 { n, _ := t.Shape[i].Int(); return n })
		if !varies(at) {
			continue
		}
		if t, ok := inferred.(*types.Tensor); ok && t.Rank() == len(r.Shape) && slices.Equal(g.numbers(t.Shape[i]), at) {
			r.Shape[i] = t.Shape[i]
		} else {
			r.Shape[i] = g.explained(at)
		}
		g.learn(r.Shape[i], at)
	}
	vs[0].Type = &r
}

// numbers are those of a formula in all programs.
func (g *generalizer) numbers(d dim.Dim) []int64 {
	out := make([]int64, samples)
	for i := range out {
		n, ok := d.Eval(g.at[i]).Int()
		if !ok {
			return nil
		}
		out[i] = n
	}
	return out
}

// explained is explain, once for each size.
func (g *generalizer) explained(at []int64) dim.Dim {
	key := [samples]int64(at)
	d, ok := g.formulas[key]
	if !ok {
		d = g.explain(at)
		g.formulas[key] = d
	}
	return d
}

// explain is the formula for a size: a known one times a number, a part of one, the sum of
// two with factors, or the product of two or three of them times a number; plus a number.
func (g *generalizer) explain(at []int64) dim.Dim {
	try := func(s size) (dim.Dim, bool) {
		if s.at[1] == s.at[0] {
			return dim.Dim{}, false
		}
		factor := (at[1] - at[0]) / (s.at[1] - s.at[0])
		rest := at[0] - factor*s.at[0]
		for i, n := range s.at {
			if factor == 0 || factor*n+rest != at[i] {
				return dim.Dim{}, false
			}
		}
		return s.d.Scale(factor).Add(dim.Const(rest)), true
	}
	product := func(a, b size) size {
		p := size{a.d.Mul(b.d), make([]int64, samples)}
		for i := range p.at {
			p.at[i] = a.at[i] * b.at[i]
		}
		return p
	}
	for _, a := range g.known {
		if d, ok := try(a); ok {
			return d
		}
	}
	if d, ok := g.part(at); ok {
		return d
	}
	for i, a := range g.known {
		for _, b := range g.known[i+1:] {
			if d, ok := both(a, b, at); ok {
				return d
			}
		}
	}
	for _, a := range g.known { // what rounding to a multiple adds or leaves
		for n := int64(2); n <= maxStride; n++ {
			for _, up := range []int64{0, n - 1} {
				q := size{dim.Quotient(a.d.Add(dim.Const(up)), n), mapped(a.at, func(v int64) int64 { return (v + up) / n })}
				if d, ok := both(a, q, at); ok {
					g.guess(a.d, n)
					return d
				}
			}
		}
	}
	for i, a := range g.known {
		for _, b := range g.known[i:] {
			if d, ok := try(product(a, b)); ok {
				return d
			}
		}
	}
	for i, a := range g.known {
		for j, b := range g.known[i:] {
			for _, c := range g.known[i+j:] {
				if d, ok := try(product(product(a, b), c)); ok {
					return d
				}
			}
		}
	}
	unsupported("the sizes %s follow no known formula", strings.Trim(fmt.Sprint(at), "[]"))
	panic("unreachable")
}

// both is the formula for at as a sum of a and b with factors, and a number.
func both(a, b size, at []int64) (d dim.Dim, ok bool) {
	for i := 1; i < samples; i++ {
		for j := 1; j < i; j++ {
			a1, a2, b1, b2 := a.at[i]-a.at[0], a.at[j]-a.at[0], b.at[i]-b.at[0], b.at[j]-b.at[0]
			c1, c2 := at[i]-at[0], at[j]-at[0]
			det := a1*b2 - a2*b1
			if det == 0 {
				continue
			}
			if (c1*b2-c2*b1)%det != 0 || (a1*c2-a2*c1)%det != 0 {
				return dim.Dim{}, false
			}
			x, y := (c1*b2-c2*b1)/det, (a1*c2-a2*c1)/det
			rest := at[0] - x*a.at[0] - y*b.at[0]
			for k := range at {
				if x*a.at[k]+y*b.at[k]+rest != at[k] {
					return dim.Dim{}, false
				}
			}
			return a.d.Scale(x).Add(b.d.Scale(y)).Add(dim.Const(rest)), true
		}
	}
	return dim.Dim{}, false
}

// maxStride bounds the parts that sizes are explained by, maxPadding what is added before.
const (
	maxStride  = 64
	maxPadding = 16
)

// part is the formula for a part of a known size, rounded down or up, or with padding, such
// as what windows with strides leave. Small parts come first: a size that strides halve
// twice is half of a half.
func (g *generalizer) part(at []int64) (d dim.Dim, ok bool) {
	for n := int64(2); n <= maxStride; n++ {
		pads := []int64{0, n - 1}
		for k := int64(1); k <= maxPadding; k++ {
			pads = append(pads, -k, k)
		}
		for _, a := range g.known {
			for _, pad := range pads {
				fits := true
				for i := range at {
					fits = fits && a.at[i]+pad >= 0 && (a.at[i]+pad)/n == at[i]
				}
				if fits {
					g.guess(a.d, n)
					return dim.Quotient(a.d.Add(dim.Const(pad)), n), true
				}
			}
		}
	}
	return dim.Dim{}, false
}

// guess notes that a formula divides d, which more numbers must confirm.
func (g *generalizer) guess(d dim.Dim, by int64) {
	for _, s := range d.Symbols() {
		g.divisors[s] = max(g.divisors[s], by)
	}
}

// constant makes the first constant general: elements that are all the same are repeated
// to the size, and integers that sizes decide about are computed from them.
func (g *generalizer) constant(os []*ir.Op) {
	o := os[0]
	ds := mapped(os, func(o *ir.Op) *types.Dense { d, _ := o.Attr("value").(*types.Dense); return d })
	if ds[0] == nil || !slices.ContainsFunc(ds, func(d *types.Dense) bool { return d == nil || !types.EqualAttr(d, ds[0]) }) {
		return
	}
	if slices.Contains(ds, nil) {
		differ(o)
	}
	b := &ir.Builder{Block: o.Parent, Index: o.Position(), At: o}
	splat := func(d *types.Dense) bool {
		return d.Splat && d.Elem == ds[0].Elem && bytes.Equal(d.Bytes(), ds[0].Bytes())
	}
	if !slices.ContainsFunc(ds, func(d *types.Dense) bool { return !splat(d) }) {
		scalar := &types.Tensor{Elem: ds[0].Elem}
		c := b.Op(op.Constant, nil, named("value", types.Attr(ds[0].Of(scalar))), scalar).Results[0]
		become(o, "broadcast", nil, c)
		return
	}
	count := ds[0].Len()
	if slices.ContainsFunc(ds, func(d *types.Dense) bool { return !types.Equal(d.Type, ds[0].Type) }) || !ds[0].Elem.IsInt() || ds[0].Elem.Packed() || count < 1 || count > maxNumbers {
		differ(o)
	}
	lists := mapped(ds, integers)
	var parts []*ir.Value
	for i := range count {
		parts = append(parts, g.number(b, mapped(lists, func(l []int) int64 { return int64(l[i]) }), 1))
	}
	v := parts[0]
	if len(parts) > 1 {
		v = b.Op("dm.concatenate", parts, named("dim", 0), tensorOf(types.I64, []int{count})).Results[0]
	}
	if ds[0].Elem != types.I64 {
		v = b.Op("dm.convert", one(v), nil, tensorOf(ds[0].Elem, []int{count})).Results[0]
	}
	become(o, "reshape", nil, v)
}

// maxNumbers is how many integers of a constant may be computed from sizes.
const maxNumbers = 16

// become makes o another op with the same results.
func become(o *ir.Op, name string, attrs []types.Named, operands ...*ir.Value) {
	o.Name, o.Attrs = op.Prefix+name, attrs
	o.SetOperands(operands...)
}

// number is a list of one number, or without a rank a number, that is another one in each
// program: as many ones, summed.
func (g *generalizer) number(b *ir.Builder, at []int64, rank int) *ir.Value {
	shape := slices.Repeat([]int{1}, rank)
	t := tensorOf(types.I64, shape)
	if !varies(at) {
		return b.Op(op.Constant, nil, named("value", types.Attr(types.SplatOf(t, float64(at[0])))), t).Results[0]
	}
	d := g.explained(at)
	negative := slices.Max(at) <= 0
	if negative {
		d = d.Scale(-1)
	}
	one := tensorOf(types.I64, nil)
	c := b.Op(op.Constant, nil, named("value", types.Attr(types.SplatOf(one, 1))), one).Results[0]
	list := &types.Tensor{Elem: types.I64, Shape: append([]dim.Dim{d}, sizes(shape)...)}
	c = b.Op("dm.broadcast", []*ir.Value{c}, nil, list).Results[0]
	c = b.Op("dm.reduce", []*ir.Value{c}, named("kind", "add", "dims", []int{0}), t).Results[0]
	if negative {
		c = b.Op("dm.neg", []*ir.Value{c}, nil, t).Results[0]
	}
	return c
}

// iota makes the first iota general that starts at a size.
func (g *generalizer) iota(os []*ir.Op) {
	o := os[0]
	starts := mapped(os, func(o *ir.Op) int64 { return int64(op.Float(o, "start")) })
	if !varies(starts) {
		return
	}
	t := *o.Results[0].Tensor()
	ends := mapped(os, func(o *ir.Op) int64 { n, _ := o.Results[0].Tensor().Elements().Int(); return n })
	if !t.Elem.IsInt() || t.Rank() != 1 {
		differ(o)
	}
	if varies(ends) {
		t.Shape = []dim.Dim{g.explained(ends)}
	}
	b := &ir.Builder{Block: o.Parent, Index: o.Position(), At: o}
	attrs := slices.DeleteFunc(slices.Clone(o.Attrs), func(a types.Named) bool { return a.Name == "start" })
	from := g.number(b, starts, 0)
	if t.Elem != types.I64 {
		from = b.Op("dm.convert", one(from), nil, tensorOf(t.Elem, nil)).Results[0]
	}
	become(o, "add", nil, b.Op(o.Name, nil, attrs, &t).Results[0], from)
}

// pad makes the first pad general: what differs is joined before and after.
func (g *generalizer) pad(os []*ir.Op) {
	o := os[0]
	rank := o.In(0).Rank()
	amounts := func(name string, d int) []int64 {
		return mapped(os, func(o *ir.Op) int64 { return o.Ints(name)[d] })
	}
	low, high := make([]int, rank), make([]int, rank)
	var open []int
	for d := range rank {
		l, h := amounts("low", d), amounts("high", d)
		if varies(l) || varies(h) {
			open = append(open, d)
			continue
		}
		low[d], high[d] = int(l[0]), int(h[0])
	}
	if len(open) == 0 {
		return
	}
	same(os, func(o *ir.Op) string { return fmt.Sprint(o.Ints("interior")) })
	if slices.ContainsFunc(o.Ints("interior"), func(n int64) bool { return n != 0 }) {
		differ(o)
	}
	b := &ir.Builder{Block: o.Parent, Index: o.Position(), At: o}
	x, value := o.Operands[0], o.Operands[1]
	if slices.Max(low) > 0 || slices.Max(high) > 0 {
		t := *x.Tensor()
		t.Shape = slices.Clone(t.Shape)
		for d := range t.Shape {
			t.Shape[d] = t.Shape[d].Add(dim.Const(int64(low[d] + high[d])))
		}
		x = b.Op("dm.pad", []*ir.Value{x, value}, named("low", low, "high", high), &t).Results[0]
	}
	for i, d := range open {
		whole := *x.Tensor()
		whole.Shape = slices.Clone(whole.Shape)
		var parts []*ir.Value
		for _, name := range []string{"low", "high"} {
			at := amounts(name, d)
			if !varies(at) && at[0] == 0 {
				parts = append(parts, nil)
				continue
			}
			t := *x.Tensor()
			t.Shape = slices.Clone(t.Shape)
			t.Shape[d] = dim.Const(at[0])
			if varies(at) {
				t.Shape[d] = g.explained(at)
			}
			whole.Shape[d] = whole.Shape[d].Add(t.Shape[d])
			parts = append(parts, b.Op("dm.broadcast", one(value), nil, &t).Results[0])
		}
		parts = slices.DeleteFunc([]*ir.Value{parts[0], x, parts[1]}, func(v *ir.Value) bool { return v == nil })
		if i == len(open)-1 {
			become(o, "concatenate", named("dim", d), parts...)
			return
		}
		x = b.Op("dm.concatenate", parts, named("dim", d), &whole).Results[0]
	}
}

// interval is what a slice takes in one dimension.
type interval struct{ start, limit, stride, size int64 }

// count is the number of elements that are taken.
func (b interval) count() int64 { return (b.limit - b.start + b.stride - 1) / b.stride }

// boundsOf are those of the slices in each of their dimensions. The operand of the first
// has symbols.
func (g *generalizer) boundsOf(os []*ir.Op) [][]interval {
	out := make([][]interval, os[0].In(0).Rank())
	for d, s := range os[0].In(0).Shape {
		out[d] = make([]interval, samples)
		numbers := g.numbers(s)
		if numbers == nil {
			differ(os[0])
		}
		for k, n := range numbers {
			out[d][k] = interval{0, n, 1, n}
		}
	}
	for k, o := range os {
		start, limit, strides, dims := o.Ints("start_indices"), o.Ints("limit_indices"), o.Ints("strides"), o.Ints("dims")
		for i := range start {
			d := i
			if len(dims) > 0 {
				d = int(dims[i])
			}
			b := &out[d][k]
			b.start, b.limit = start[i], limit[i]
			if len(strides) > 0 {
				b.stride = strides[i]
			}
		}
	}
	return out
}

// slice makes the first slice general: dimensions that are taken whole are not named, and
// those of which an open number of elements is taken, or from an open place, are gathered.
func (g *generalizer) slice(os []*ir.Op) {
	o := os[0]
	differs := func(name string) bool {
		return slices.ContainsFunc(os, func(p *ir.Op) bool { return !slices.Equal(p.Ints(name), o.Ints(name)) })
	}
	if !differs("limit_indices") && !differs("start_indices") && !differs("strides") && !differs("dims") {
		return
	}
	var start, limit, strides, dims, gathered []int
	all := g.boundsOf(os)
	for d, bs := range all {
		b := bs[0]
		switch {
		case !slices.ContainsFunc(bs, func(b interval) bool { return b.start != 0 || b.limit != b.size || b.stride != 1 }):
		case !slices.ContainsFunc(bs, func(c interval) bool { return c.start != b.start || c.limit != b.limit || c.stride != b.stride }):
			start, limit, strides, dims = append(start, int(b.start)), append(limit, int(b.limit)), append(strides, int(b.stride)), append(dims, d)
		case slices.ContainsFunc(bs, func(c interval) bool { return c.stride != b.stride }):
			differ(o)
		default:
			gathered = append(gathered, d)
		}
	}
	at := &ir.Builder{Block: o.Parent, Index: o.Position(), At: o}
	for i, d := range gathered {
		steps := g.steps(at, all[d])
		attrs := named("dim", d)
		if i == len(gathered)-1 && len(dims) == 0 { // the slice becomes the gather
			become(o, "gather", attrs, o.Operands[0], steps)
			return
		}
		part := *o.In(0)
		part.Shape = slices.Clone(part.Shape)
		part.Shape[d] = steps.Tensor().Shape[0]
		x := at.Op("dm.gather", []*ir.Value{o.Operands[0], steps}, attrs, &part).Results[0]
		o.SetOperand(0, x)
	}
	for name, list := range map[string][]int{"start_indices": start, "limit_indices": limit, "strides": strides, "dims": dims} {
		o.SetAttr(name, op.IntList(list...))
	}
}

// steps are the positions of the elements that intervals of one stride take. Their number
// is what the stride leaves of the formulas for start and limit.
func (g *generalizer) steps(b *ir.Builder, bs []interval) *ir.Value {
	formula := func(at []int64) dim.Dim {
		if !varies(at) {
			return dim.Const(at[0])
		}
		return g.explained(at)
	}
	starts, stride := mapped(bs, func(b interval) int64 { return b.start }), bs[0].stride
	counts := mapped(bs, interval.count)
	count := formula(mapped(bs, func(b interval) int64 { return b.limit })).Sub(formula(starts))
	count = dim.Quotient(count.Add(dim.Const(stride-1)), stride)
	if !slices.Equal(g.numbers(count), counts) {
		count = formula(counts)
	}
	t := &types.Tensor{Elem: types.I64, Shape: []dim.Dim{count}}
	attrs := named("dim", 0, "start", 0.0, "step", float64(stride))
	if !varies(starts) {
		attrs = named("dim", 0, "start", float64(starts[0]), "step", float64(stride))
	}
	v := b.Op("dm.iota", nil, attrs, t).Results[0]
	if varies(starts) {
		v = b.Op("dm.add", []*ir.Value{v, g.number(b, starts, 0)}, nil, t).Results[0]
	}
	return v
}

// same ends the import where the programs differ in f.
func same[T any, V comparable](of []T, f func(T) V) {
	for _, x := range of[1:] {
		if f(x) != f(of[0]) {
			fail("the program depends on it")
		}
	}
}

// differ ends the import: the programs differ at o in what is no size.
func differ(o *ir.Op) {
	if o == nil {
		fail("the program depends on it")
	}
	what := o.Name
	for v := o.Results; len(v) > 0; { // the first name on the way to a result
		if v[0].Name != "" {
			what += " for " + v[0].Name
			break
		}
		if len(v[0].Uses) == 0 {
			break
		}
		v = v[0].Uses[0].Op.Results
	}
	fail("%s depends on it", what)
}

// mapped is f of each.
func mapped[T, V any](of []T, f func(T) V) []V {
	out := make([]V, len(of))
	for i, x := range of {
		out[i] = f(x)
	}
	return out
}

func varies(at []int64) bool {
	return slices.ContainsFunc(at, func(n int64) bool { return n != at[0] })
}
