package stablehlo

import (
	"slices"
	"strings"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
	"dmir/dialect/verify"
)

// open inserts the op dm.name, whose regions are still to come; see closed.
func (n *node) open(name string, in []*ir.Value, attrs []types.Named, out ...types.Type) *ir.Op {
	if !strings.Contains(name, ".") {
		name = op.Prefix + name
	}
	return n.b.Op(name, in, attrs, out...)
}

// closed gives o the results that follow, if it has none yet, and checks it.
func (n *node) closed(o *ir.Op) *ir.Op {
	if def := op.Of(o); def != nil && len(o.Results) == 0 {
		for _, r := range def.Results {
			if !r.Optional && !r.Variadic {
				o.Results = append(o.Results, &ir.Value{Type: types.Unknown, Op: o, Index: len(o.Results), Span: o.Head})
			}
		}
		ts, _ := verify.Infer(o)
		for i, t := range ts {
			if i == len(o.Results) {
				o.Results = append(o.Results, &ir.Value{Op: o, Index: i, Span: o.Head})
			}
			o.Results[i].Type = t
		}
	}
	if o.Name != op.Reshard { // what an operand's type states of it is not true of the result
		for _, r := range o.Results {
			r.Type = plain(r.Type)
		}
	}
	if p := verify.Op(o); p != nil {
		n.fail("DM142", "%s: %s", n.name, p.Msg)
	}
	n.must(!slices.ContainsFunc(o.Results, func(v *ir.Value) bool { return v.Type == types.Type(types.Unknown) }), "DM142", "%s: the types %s do not fit together", n.name, types.List(ir.Types(o.Operands)))
	for _, r := range o.Results {
		r.Name = "%" + strings.TrimPrefix(o.Name, op.Prefix)
		if len(o.Results) > 1 {
			r.Name = ""
		}
	}
	return o
}

// make inserts dm.name. Types of results are given where the op's text decides them.
func (n *node) make(name string, in []*ir.Value, attrs []types.Named, out ...types.Type) *ir.Op {
	return n.closed(n.open(name, in, attrs, out...))
}

// op is the first result of make.
func (n *node) op(name string, in []*ir.Value, attrs ...types.Named) *ir.Value {
	o := n.make(name, in, attrs)
	n.must(len(o.Results) > 0, "DM142", "%s: the types %s do not fit together", n.name, types.List(ir.Types(in)))
	return o.Results[0]
}

func (n *node) unary(name string, x *ir.Value) *ir.Value { return n.op(name, []*ir.Value{x}) }

func (n *node) binary(name string, x, y *ir.Value) *ir.Value { return n.op(name, []*ir.Value{x, y}) }

func (n *node) compare(direction string, x, y *ir.Value) *ir.Value {
	return n.op("compare", []*ir.Value{x, y}, named("direction", types.Keyword(direction)))
}

func (n *node) choose(p, x, y *ir.Value) *ir.Value { return n.op("select", []*ir.Value{p, x, y}) }

func named(name string, v types.Attr) types.Named { return types.Named{Name: name, Value: v} }

func intsAttr(name string, list []int) types.Named { return named(name, op.IntList(list...)) }

func intAttr(name string, v int) types.Named { return named(name, types.Int{V: int64(v)}) }

// tensorOf is the type of a tensor in numbers.
func tensorOf(e types.Elem, shape ...int) *types.Tensor {
	t := &types.Tensor{Elem: e, Shape: make([]dim.Dim, len(shape)), At: types.Placement{Space: types.HBM}}
	for i, d := range shape {
		t.Shape[i] = dim.Const(int64(d))
	}
	return t
}

// shape is v's in numbers; a bare element type is a tensor of rank 0.
func (n *node) shape(v *ir.Value) []int {
	if _, ok := v.Type.(types.Scalar); ok {
		return []int{}
	}
	return n.sizes(v.Type)
}

func (n *node) sizes(t types.Type) []int {
	x, ok := t.(*types.Tensor)
	n.must(ok, "DM142", "%s works on tensors, not on %s", n.name, t)
	out := make([]int, len(x.Shape))
	for i, d := range x.Shape {
		size, ok := d.Int()
		if !ok {
			n.unsupported("sizes that are not known before the program runs are not supported: %s", t)
		}
		out[i] = int(size)
	}
	return out
}

// result is the type written for result i, which must be a tensor.
func (n *node) result(i int) *types.Tensor {
	n.must(i < len(n.out), "DM142", "%s has %d results; expected more", n.name, len(n.out))
	t, ok := n.out[i].(*types.Tensor)
	n.must(ok, "DM142", "result %d of %s is no tensor", i, n.name)
	return t
}

// takes fails unless the op has count operands.
func (n *node) takes(count int) {
	n.must(len(n.in) == count, "DM142", "%s takes %d operands, but has %d", n.name, count, len(n.in))
}

func (n *node) reshape(x *ir.Value, shape ...int) *ir.Value {
	for x.Op != nil && x.Op.Name == "dm.reshape" && !slices.Equal(n.shape(x), shape) {
		x = x.Op.Operands[0]
	}
	if slices.Equal(n.shape(x), shape) {
		return x
	}
	return n.make("reshape", []*ir.Value{x}, nil, tensorOf(x.Elem(), shape...)).Results[0]
}

func (n *node) transpose(x *ir.Value, dims []int) *ir.Value {
	if slices.IsSorted(dims) {
		return x
	}
	return n.op("transpose", []*ir.Value{x}, intsAttr("dims", dims))
}

// convert gives x, a tensor or a number, another element type.
func (n *node) convert(x *ir.Value, e types.Elem) *ir.Value {
	if x.Elem() == e {
		return x
	}
	return n.make("convert", []*ir.Value{x}, nil, inElem(x, e)).Results[0]
}

// inElem is the type of x, a tensor or a number, with another element type.
func inElem(x *ir.Value, e types.Elem) types.Type {
	t, ok := x.Type.(*types.Tensor)
	if !ok {
		return types.Scalar{Elem: e}
	}
	u := t.With(t.Shape...)
	u.Elem = e
	return u
}

// broadcast repeats x along new dimensions: dimension i is dims[i] of the result.
func (n *node) broadcast(x *ir.Value, dims, shape []int) *ir.Value {
	from := n.shape(x)
	if !slices.IsSorted(dims) {
		order := sortedBy(dims)
		x = n.transpose(x, order)
		dims, from = pick(dims, order), pick(from, order)
	}
	if product(from) == product(shape) {
		return n.reshape(x, shape...)
	}
	var attrs []types.Named
	for i, d := range dims {
		if d != len(shape)-len(dims)+i {
			attrs = []types.Named{intsAttr("dims", dims)}
			break
		}
	}
	return n.make("broadcast", []*ir.Value{x}, attrs, tensorOf(x.Elem(), shape...)).Results[0]
}

// trailing is broadcast with the dimensions aligned at the last.
func (n *node) trailing(x *ir.Value, shape []int) *ir.Value {
	return n.broadcast(x, counting(len(n.shape(x)), len(shape)), shape)
}

// counting is the last n numbers below end.
func counting(n, end int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = end - n + i
	}
	return out
}

// fill is the number v as a constant of the element type: of rank 0, or bare where
// numbers are computed one by one.
func (n *node) fill(e types.Elem, v float64) *ir.Value {
	return n.number(types.SplatOf(tensorOf(e), v))
}

// whole is an integer as a constant of rank 0.
func (n *node) whole(e types.Elem, v int) *ir.Value {
	return n.number(types.IntOf(tensorOf(e), int64(v)))
}

// number is a constant of rank 0, the same one for all that needs it in a block.
func (n *node) number(d *types.Dense) *ir.Value {
	at := place{n.b.Block, d.String()}
	if v := n.numbers[at]; v != nil {
		return v
	}
	v := n.constant(d)
	v.Name = "%cst"
	if d.Elem.IsInt() {
		v.Name = "%c" + strings.TrimPrefix(d.Text(), "-")
	}
	n.numbers[at] = v
	return v
}

// place is a constant in a block.
type place struct {
	block *ir.Block
	text  string
}

func (n *node) constant(d *types.Dense) *ir.Value {
	if !n.bare || d.Type.Rank() > 0 {
		return n.make("constant", nil, []types.Named{named("value", d)}, d.Type).Results[0]
	}
	var v types.Attr = types.Int{V: d.Int(0), Elem: d.Elem}
	switch {
	case d.Elem.IsFloat():
		v = types.Float{V: d.Float(0), Elem: d.Elem}
	case d.Elem == types.I1:
		v = types.Bool(d.Int(0) != 0)
	}
	return n.make("constant", nil, []types.Named{named("value", v)}, types.Scalar{Elem: d.Elem}).Results[0]
}

// iota counts along dimension d of a tensor.
func (n *node) iota(e types.Elem, d int, shape ...int) *ir.Value {
	var attrs []types.Named
	if d != 0 {
		attrs = []types.Named{intAttr("dim", d)}
	}
	return n.make("iota", nil, attrs, tensorOf(e, shape...)).Results[0]
}

// slice takes a part of dimension d.
func (n *node) slice(x *ir.Value, d, from, to int) *ir.Value {
	shape := n.shape(x)
	if from == 0 && to == shape[d] {
		return x
	}
	low, high := make([]int, len(shape)), slices.Clone(shape)
	low[d], high[d] = from, to
	return n.op("slice", []*ir.Value{x}, intsAttr("start_indices", low), intsAttr("limit_indices", high))
}

func (n *node) gather(x, indices *ir.Value, d, batch int) *ir.Value {
	var attrs []types.Named
	if d != 0 {
		attrs = append(attrs, intAttr("dim", d))
	}
	if batch != 0 {
		attrs = append(attrs, intAttr("batch_dims", batch))
	}
	return n.op("gather", []*ir.Value{x, indices}, attrs...)
}

func product(shape []int) int {
	p := 1
	for _, d := range shape {
		if p *= d; p > 1<<50 || p < 0 {
			return 1 << 50
		}
	}
	return p
}

// pick is the elements of list at the places.
func pick(list, places []int) []int {
	out := make([]int, len(places))
	for i, p := range places {
		out[i] = list[p]
	}
	return out
}

// sortedBy is the order of places in which the elements of list rise.
func sortedBy(list []int) []int {
	order := counting(len(list), len(list))
	slices.SortFunc(order, func(a, b int) int { return list[a] - list[b] })
	return order
}

// others are the dimensions below rank that list lacks.
func others(rank int, lists ...[]int) []int {
	var out []int
	for d := range rank {
		if !slices.ContainsFunc(lists, func(l []int) bool { return slices.Contains(l, d) }) {
			out = append(out, d)
		}
	}
	return out
}
