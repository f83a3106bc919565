package op

import (
	"slices"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/types"
)

var transposeDerivative = &Derivative{
	Doc: "`dx` is dy with the dimensions back in their old order.",
	rule: func(g *backward) {
		dims, _ := Dims(g.o, "dims", in(g.o, 0).Rank())
		g.give(0, g.Transpose(g.dy[0], Inverse(dims)...))
	},
}

var reshapeDerivative = &Derivative{
	Doc:  "`dx` is dy in x's shape.",
	rule: func(g *backward) { g.give(0, g.Reshape(g.dy[0], in(g.o, 0).Shape...)) },
}

var broadcastDerivative = &Derivative{
	Doc:  "`dx` is dy summed over what was repeated.",
	rule: broadcastRule,
}

var sliceDerivative = &Derivative{
	Doc:  "`dx` is dy with zeros around it and, where the slice has steps, between its elements.",
	rule: sliceRule,
}

var dynamicSliceDerivative = &Derivative{
	Doc: "`dx` is zeros with dy written at the same position.",
	rule: func(g *backward) {
		g.give(0, g.Value("dynamic_update_slice", append([]*ir.Value{g.zeros(in(g.o, 0)), g.dy[0]}, g.o.Operands[1:]...), nil))
	},
}

var dynamicUpdateSliceDerivative = &Derivative{
	Doc:  "`dx` is dy with zeros in place of the update, `dupdate` the part of dy at its position.",
	rule: dynamicUpdateSliceRule,
}

var concatenateDerivative = &Derivative{
	Doc:  "Each operand's cotangent is its part of dy.",
	rule: concatenateRule,
}

var padDerivative = &Derivative{
	Doc:  "`dx` is what dy has at x's positions; `dvalue` the sum of everything else.",
	rule: padRule,
}

var reverseDerivative = &Derivative{
	Doc:  "`dx` is dy reversed.",
	rule: func(g *backward) { g.give(0, g.Value("reverse", g.dy[:1], g.o.Attrs)) },
}

var gatherDerivative = &Derivative{
	Doc: "`dx` is zeros with dy added at the indices, each moved to the nearest position inside. None for the indices.",
	rule: func(g *backward) {
		d, _ := Dim(g.o, "dim", in(g.o, 0).Rank())
		g.scatterInto(d, int(Int(g.o, "batch_dims")))
	},
}

var embeddingDerivative = &Derivative{
	Doc:  "`dtable` is zeros with the rows of dy added at the ids, each moved to the nearest row of the table. None for the ids.",
	rule: func(g *backward) { g.scatterInto(0, 0) },
}

var scatterDerivative = &Derivative{
	Doc: "`add`: `dx = dy`, `dupdates` is dy gathered at the indices, 0 for what was dropped. `set`: what was overwritten, be it x or an earlier update, has the cotangent 0. " +
		"`mul`: the product's rule, not defined where a factor is 0. `max`, `min`: equal values share it.",
	rule: scatterRule,
}

var copyDerivative = &Derivative{
	Doc: "`dx` is dy brought back to where x is.",
	rule: func(g *backward) {
		if in(g.o, 0).At.In() == out(g.o, 0).At.In() {
			g.give(0, g.dy[0])
			return
		}
		g.give(0, g.Value("copy", g.dy[:1], nil, in(g.o, 0)))
	},
}

// Inverse is the permutation that undoes one.
func Inverse(dims []int) []int {
	r := make([]int, len(dims))
	for i, d := range dims {
		r[d] = i
	}
	return r
}

func broadcastRule(g *backward) {
	x, y := in(g.o, 0), out(g.o, 0)
	to, p := BroadcastDims(g.o)
	if p != nil {
		g.failed = true
		return
	}
	kept := make([]bool, y.Rank())
	for i, d := range to {
		kept[d] = !isOne(x.Shape[i]) || isOne(y.Shape[d])
	}
	var over []int
	for d := range kept {
		if !kept[d] {
			over = append(over, d)
		}
	}
	v := g.sum(g.dy[0], over...)
	// What is left stands in the result's order; x may have another.
	rest, places := []int{}, []int{}
	for i, d := range to {
		if kept[d] {
			rest, places = append(rest, i), append(places, d)
		}
	}
	order := make([]int, len(rest))
	for i, d := range places {
		for _, e := range places {
			if e < d {
				order[i]++
			}
		}
	}
	g.give(0, g.Reshape(g.Transpose(v, order...), x.Shape...))
}

func sliceRule(g *backward) {
	x := in(g.o, 0)
	s, p := sliceOf(g.o)
	if p != nil {
		g.failed = true
		return
	}
	low, high, interior := make([]int, x.Rank()), make([]int, x.Rank()), make([]int, x.Rank())
	for d := range x.Shape {
		if s.Whole[d] {
			continue
		}
		size, ok := x.Shape[d].Int()
		taken, ok2 := out(g.o, 0).Shape[d].Int()
		if !ok || !ok2 {
			g.failed = true
			return
		}
		if taken == 0 {
			g.give(0, g.zeros(x))
			return
		}
		low[d], interior[d] = int(s.Start[d]), int(s.Stride[d]-1)
		high[d] = int(size - s.Start[d] - (taken-1)*s.Stride[d] - 1)
	}
	g.give(0, g.pad(g.dy[0], low, high, interior))
}

func (w *Builder) pad(x *ir.Value, low, high, interior []int) *ir.Value {
	any := func(n []int) bool { return slices.ContainsFunc(n, func(v int) bool { return v != 0 }) }
	if !any(low) && !any(high) && !any(interior) {
		return x
	}
	attrs := []types.Named{{Name: "low", Value: IntList(low...)}, {Name: "high", Value: IntList(high...)}}
	if any(interior) {
		attrs = append(attrs, types.Named{Name: "interior", Value: IntList(interior...)})
	}
	return w.Value("pad", []*ir.Value{x, w.number(x, 0)}, attrs)
}

// part is elements start to limit of dims, in steps.
func (w *Builder) part(x *ir.Value, dims, start, limit, steps []int) *ir.Value {
	if len(dims) == 0 {
		return x
	}
	return w.Value("slice", []*ir.Value{x}, []types.Named{{Name: "start_indices", Value: IntList(start...)}, {Name: "limit_indices", Value: IntList(limit...)}, {Name: "strides", Value: IntList(steps...)}, {Name: "dims", Value: IntList(dims...)}})
}

func dynamicUpdateSliceRule(g *backward) {
	u := in(g.o, 1)
	starts := g.o.Operands[2:]
	if g.want[0] {
		g.give(0, g.Value("dynamic_update_slice", append([]*ir.Value{g.dy[0], g.zeros(u)}, starts...), nil))
	}
	if !g.want[1] {
		return
	}
	sizes := make([]int, u.Rank())
	for d := range sizes {
		n, ok := u.Shape[d].Int()
		if !ok {
			if n = -1; !sameDim(u.Shape[d], in(g.o, 0).Shape[d]) {
				g.failed = true
				return
			}
		}
		sizes[d] = int(n)
	}
	g.give(1, g.Value("dynamic_slice", append([]*ir.Value{g.dy[0]}, starts...), named("slice_sizes", IntList(sizes...))))
}

func concatenateRule(g *backward) {
	d, _ := Dim(g.o, "dim", in(g.o, 0).Rank())
	at := int64(0)
	for i := range g.o.Operands {
		n, ok := in(g.o, i).Shape[d].Int()
		if !ok {
			g.failed = len(g.o.Operands) > 1
			g.give(i, g.dy[0])
			return
		}
		if g.want[i] {
			g.give(i, g.part(g.dy[0], []int{d}, []int{int(at)}, []int{int(at + n)}, []int{1}))
		}
		at += n
	}
}

func padRule(g *backward) {
	x := in(g.o, 0)
	var lists [3][]int64
	for i, name := range []string{"low", "high", "interior"} {
		lists[i], _ = listOf(g.o, name, x.Rank(), 0, 0)
	}
	var dims, start, limit, steps []int
	empty := false
	for d := range x.Shape {
		low, between := lists[0][d], lists[2][d]
		if low == 0 && lists[1][d] == 0 && between == 0 {
			continue
		}
		n, ok := x.Shape[d].Int()
		if g.failed = g.failed || !ok; g.failed {
			return
		}
		empty = empty || n == 0
		dims, start = append(dims, d), append(start, int(low))
		limit, steps = append(limit, int(low+max(0, (n-1)*(between+1)+1))), append(steps, int(between+1))
	}
	if empty {
		g.give(1, g.sum(g.dy[0], identity(x.Rank())...))
		return
	}
	dx := g.part(g.dy[0], dims, start, limit, steps)
	g.give(0, dx)
	if g.want[1] {
		all := identity(x.Rank())
		g.give(1, g.sub(g.sum(g.dy[0], all...), g.sum(dx, all...)))
	}
}

// scatterInto gives operand 0 zeros with dy added at operand 1, the indices.
func (g *backward) scatterInto(d, batch int) {
	x := in(g.o, 0)
	g.give(0, g.scatter("add", g.zeros(x), g.nearest(g.x(1), x.Shape[d]), g.dy[0], d, batch))
}

func (w *Builder) scatter(kind string, x, idx, updates *ir.Value, d, batch int) *ir.Value {
	return w.Value("scatter", []*ir.Value{x, idx, updates}, []types.Named{{Name: "kind", Value: types.Keyword(kind)}, {Name: "dim", Value: intAttr(d)}, {Name: "batch_dims", Value: intAttr(batch)}})
}

func (w *Builder) gather(x, idx *ir.Value, d, batch int) *ir.Value {
	return w.Value("gather", []*ir.Value{x, idx}, []types.Named{{Name: "dim", Value: intAttr(d)}, {Name: "batch_dims", Value: intAttr(batch)}})
}

func scatterRule(g *backward) {
	xt, it := in(g.o, 0), in(g.o, 1)
	d, _ := Dim(g.o, "dim", xt.Rank())
	batch := int(Int(g.o, "batch_dims"))
	x, idx, u, dy := g.x(0), g.x(1), g.x(2), g.dy[0]
	take := func(v *ir.Value) *ir.Value { return g.gather(v, idx, d, batch) }
	// kept holds for updates that count, in the shape that broadcasts with them.
	kept := func(pred *ir.Value) *ir.Value {
		shape := append([]dim.Dim{}, it.Shape[:batch]...)
		for range d - batch {
			shape = append(shape, dim.Const(1))
		}
		shape = append(shape, it.Shape[batch:]...)
		for range xt.Rank() - d - 1 {
			shape = append(shape, dim.Const(1))
		}
		return g.Reshape(pred, shape...)
	}
	inside := func() *ir.Value {
		low, high := g.compare("ge", idx, g.number(idx, 0)), g.compare("le", idx, g.lastIndex(idx, xt.Shape[d]))
		return kept(g.Binary("and", low, high))
	}
	y := g.y(0)
	switch Str(g.o, "kind") {
	case "add":
		g.give(0, dy)
		if g.want[2] {
			g.give(2, g.when(inside(), take(dy)))
		}
	case "mul":
		product := g.mul(g.wide(dy), g.wide(y))
		if g.want[0] {
			g.give(0, g.div(product, g.wide(x)))
		}
		if g.want[2] {
			g.give(2, g.when(inside(), g.div(take(product), g.wide(u))))
		}
	case "max", "min":
		// Everyone who has the extreme value shares its cotangent.
		wx := g.Convert(g.compare("eq", x, y), xt.Elem)
		wu := g.Convert(g.compare("eq", u, take(y)), xt.Elem)
		share := g.div(dy, g.scatter("add", wx, idx, wu, d, batch))
		g.give(0, g.mul(share, wx))
		if g.want[2] {
			g.give(2, g.when(inside(), g.mul(take(share), wu)))
		}
	default:
		if g.want[0] {
			g.give(0, g.scatter("set", dy, idx, g.zeros(in(g.o, 2)), d, batch))
		}
		if g.want[2] {
			g.give(2, g.when(kept(g.winners(idx, xt, d, batch)), take(dy)))
		}
	}
}

// winners tells of every index whether its update is the one that stays: every
// position is marked with the number of its last update and read back.
func (g *backward) winners(idx *ir.Value, xt *types.Tensor, d, batch int) *ir.Value {
	it := asTensor(idx.Type)
	ids := g.count(tensor(it, types.I64, it.Elements()), 0)
	ids = g.Reshape(ids, it.Shape...)
	marks := g.filled(tensor(it, types.I64, append(append([]dim.Dim{}, it.Shape[:batch]...), xt.Shape[d])...), -1)
	marks = g.scatter("set", marks, idx, ids, batch, batch)
	return g.compare("eq", g.gather(marks, idx, batch, batch), ids)
}
