package op

import (
	"slices"
	"strings"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/types"
)

var einsumDerivative = &Derivative{
	Doc:  "The cotangent of an operand is the einsum of dy and the other operands to its letters. Letters that stand nowhere else are repeated; where a letter repeats within the operand, everything beside the diagonal is 0.",
	rule: einsumRule,
}

var matmulDerivative = &Derivative{
	Doc:  "`dx = dy wᵀ`, `dw = xᵀ dy`; of an operand that the batch repeats one contraction over the batch as well.",
	rule: matmulRule,
}

var convolutionDerivative = &Derivative{
	Doc: "`dx` is the convolution of dy, dilated by the window's strides, with the reversed filters; " +
		"`dw` is that of x and dy, dilated by the strides, with batch and channels exchanged. Zeros between elements are dilations of the convolutions: they are neither stored nor counted.",
	rule: convolutionRule,
}

// alike brings the cotangent of a contraction's result and its operands to one
// element type, the operands': products are taken in it as they were forward.
// Operands of 8 bits, too coarse for a cotangent of a wider type, take that.
func (g *backward) alike(dy *ir.Value, others ...*ir.Value) (*ir.Value, []*ir.Value) {
	e := in(g.o, 0).Elem
	if e.Bytes() == 1 {
		e = asTensor(dy.Type).Elem
	}
	vs := make([]*ir.Value, len(others))
	for i, v := range others {
		if vs[i] = v; e.Bytes() > 1 {
			vs[i] = g.Convert(v, e)
		}
	}
	if e.Bytes() == 1 {
		return dy, vs
	}
	return g.Convert(dy, e), vs
}

// precision is that of the products of the gradient: the op's own. Products of one operand alone have none.
func (g *backward) precision() []types.Named { return inherited(g.o) }

func einsumRule(g *backward) {
	dy, xs := g.alike(g.dy[0], g.o.Operands...)
	g.contract(dy, xs, g.want)
}

// contract gives the cotangents that are wanted of xs, the operands of an einsum or a matmul.
func (g *backward) contract(dy *ir.Value, xs []*ir.Value, want []bool) {
	e, sizes, p := equationOf(g.o)
	if p != nil {
		g.failed = true
		return
	}
	e, kept := e.Plain(operandShapes(g.o), sizes)
	for i, dims := range kept {
		shape := make([]dim.Dim, len(dims))
		for k, d := range dims {
			shape[k] = in(g.o, i).Shape[d]
		}
		xs[i] = g.Reshape(xs[i], shape...)
	}
	for i, letters := range e.Inputs {
		if !want[i] {
			continue
		}
		inputs, operands := []string{e.Output}, []*ir.Value{dy}
		for j, other := range e.Inputs {
			if j != i {
				inputs, operands = append(inputs, other), append(operands, xs[j])
			}
		}
		have := strings.Join(inputs, "")
		found := "" // the operand's letters once, as far as they stand elsewhere
		for k := range len(letters) {
			if c := letters[k]; strings.IndexByte(have, c) >= 0 && strings.IndexByte(found, c) < 0 {
				found += string(c)
			}
		}
		v := dy
		if len(inputs) > 1 || found != e.Output {
			equation := types.Named{Name: "equation", Value: types.Str(strings.Join(inputs, ",") + "->" + found)}
			v = g.Value("einsum", operands, append(g.precision(), equation))
		}
		g.give(i, g.Reshape(g.spread(v, found, letters, sizes), in(g.o, i).Shape...))
	}
}

// spread brings a value with the dimensions found to those of letters: missing
// ones are repeated, and beside the diagonal of repeated ones all is 0.
func (g *backward) spread(v *ir.Value, found, letters string, sizes map[byte]dim.Dim) *ir.Value {
	if found == letters || g.failed {
		return v
	}
	first := make([]int, len(found))
	for k := range len(found) {
		first[k] = strings.IndexByte(letters, found[k])
	}
	shape := make([]dim.Dim, len(letters))
	for k := range shape {
		shape[k] = sizes[letters[k]]
	}
	t := asTensor(v.Type)
	v = g.Value("broadcast", []*ir.Value{v}, named("dims", IntList(first...)), tensor(t, t.Elem, shape...))
	places := tensor(t, types.I64, shape...)
	for k := range len(letters) {
		if at := strings.IndexByte(letters, letters[k]); at < k {
			v = g.when(g.compare("eq", g.count(places, at), g.count(places, k)), v)
		}
	}
	return v
}

func matmulRule(g *backward) {
	dy, xs := g.alike(g.dy[0], g.o.Operands...)
	a, b := xs[0], xs[1]
	ta, tb := Bool(g.o, "transpose_a"), Bool(g.o, "transpose_b")
	product := func(x, y *ir.Value, tx, ty bool) *ir.Value {
		attrs := g.precision()
		if tx {
			attrs = append(attrs, types.Named{Name: "transpose_a", Value: types.Bool(true)})
		}
		if ty {
			attrs = append(attrs, types.Named{Name: "transpose_b", Value: types.Bool(true)})
		}
		return g.Value("matmul", []*ir.Value{x, y}, attrs)
	}
	repeated := []bool{g.want[0] && broadcasts(g.o, 0), g.want[1] && broadcasts(g.o, 1)}
	if g.want[0] && !repeated[0] {
		if ta { // x is [k, m]: w dyᵀ
			g.give(0, product(b, dy, tb, true))
		} else {
			g.give(0, product(dy, b, false, !tb))
		}
	}
	if g.want[1] && !repeated[1] {
		if tb { // w is [n, k]: dyᵀ x
			g.give(1, product(dy, a, true, ta))
		} else {
			g.give(1, product(a, dy, !ta, false))
		}
	}
	if repeated[0] || repeated[1] { // a product for each part of the batch, and their sum, would move far more
		g.contract(dy, xs, repeated)
	}
}

// broadcasts reports whether the batch of o, a matmul, repeats operand i.
func broadcasts(o *ir.Op, i int) bool {
	batch := out(o, 0).Shape
	batch = batch[:len(batch)-2]
	have := in(o, i).Shape
	extra := len(batch) - (len(have) - 2)
	for d, size := range batch {
		if !isOne(size) && (d < extra || isOne(have[d-extra])) {
			return true
		}
	}
	return false
}

func convolutionRule(g *backward) {
	win, p := convolutionWindow(g.o)
	if p != nil {
		g.failed = true
		return
	}
	x, y := in(g.o, 0), out(g.o, 0)
	n := len(win.Size)
	inside, outside := make([]int64, n), make([]int64, n)
	for i := range n {
		var ok, ok2 bool
		inside[i], ok = x.Shape[2+i].Int()
		inside[i] = max((inside[i]-1)*win.spread(i)+1, 0)
		outside[i], ok2 = y.Shape[2+i].Int()
		if !ok || !ok2 {
			g.failed = true
			return
		}
	}
	dy, xs := g.alike(g.dy[0], g.o.Operands...)
	if g.want[0] {
		g.give(0, g.inputGradient(win, dy, xs[1], inside, outside))
	}
	if g.want[1] {
		g.give(1, g.filterGradient(win, dy, xs[0], inside, outside))
	}
}

// inputGradient convolves dy with the filters turned round.
func (g *backward) inputGradient(win *window, dy, w *ir.Value, inside, outside []int64) *ir.Value {
	groups := dim.Const(Int(g.o, "feature_group_count"))
	wt := asTensor(w.Type)
	perOut, ok := wt.Shape[0].Div(groups)
	if !ok {
		g.failed = true
		return dy
	}
	rank := wt.Rank()
	taps := wt.Shape[2:]
	space := identity(rank)[2:]
	// [G, O/G, C/G, window] -> [G, C/G, O/G, window] -> [C, O/G, window]
	w = g.Reshape(w, append([]dim.Dim{groups, perOut, wt.Shape[1]}, taps...)...)
	order := identity(rank + 1)
	order[1], order[2] = 2, 1
	w = g.Transpose(w, order...)
	w = g.Reshape(w, append([]dim.Dim{wt.Shape[1].Mul(groups), perOut}, taps...)...)
	w = g.Value("reverse", []*ir.Value{w}, named("dims", IntList(space...)))

	padding := make([][2]int64, len(inside))
	for i := range inside {
		reach := (win.Size[i] - 1) * win.Dilation[i]
		spread := (outside[i]-1)*win.Stride[i] + 1
		low := reach - win.Padding[i][0]
		padding[i] = [2]int64{low, inside[i] + reach - spread - low}
	}
	// Of the zeros between elements of x no gradient is asked.
	moves := window{Stride: win.Spread, Spread: win.Stride, Dilation: win.Dilation, Padding: padding}
	return g.convolve(dy, w, &moves, Int(g.o, "feature_group_count"))
}

// filterGradient convolves x with dy, both with batch and channels exchanged: x becomes [C, N, …], dy, the
// filter, [O, N, …]. Of groups the samples are no channels, which the groups would stand around, so that no part of
// the batch could be divided: see groupedFilterGradient.
func (g *backward) filterGradient(win *window, dy, x *ir.Value, inside, outside []int64) *ir.Value {
	groups := Int(g.o, "feature_group_count")
	padding := make([][2]int64, len(inside))
	for i := range inside {
		low := win.Padding[i][0]
		reach := (win.Size[i]-1)*win.Dilation[i] + (outside[i]-1)*win.Stride[i] + 1
		padding[i] = [2]int64{low, reach - inside[i] - low}
	}
	moves := &window{Stride: win.Dilation, Spread: win.Spread, Dilation: win.Stride, Padding: padding}
	if groups > 1 {
		return g.groupedFilterGradient(moves, dy, x, groups)
	}
	swap := identity(asTensor(x.Type).Rank())
	swap[0], swap[1] = 1, 0
	x, dy = g.Transpose(x, swap...), g.Transpose(dy, swap...)
	return g.Transpose(g.convolve(x, dy, moves, 1), swap...)
}

// groupedFilterGradient has the samples as a dimension that the window covers: x becomes [C/G, G, N, …], dy
// [O, 1, N, …]. Where that is a dimension too many, each sample has groups of its own, whose gradients are summed. Samples
// whose number is a symbol can be neither, and are channels: [C/G, G·N, …].
func (g *backward) groupedFilterGradient(moves *window, dy, x *ir.Value, groups int64) *ir.Value {
	xt, yt := asTensor(x.Type), asTensor(dy.Type)
	rank, samples, features := xt.Rank(), xt.Shape[0], yt.Shape[1]
	per, ok := xt.Shape[1].Div(dim.Const(groups))
	if !ok {
		g.failed = true
		return dy
	}
	x = g.Reshape(x, append([]dim.Dim{samples, dim.Const(groups), per}, xt.Shape[2:]...)...)
	byGroup, bySample, swap := identity(rank+1), identity(rank+1), identity(rank)
	byGroup[0], byGroup[2] = 2, 0
	bySample[0], bySample[1], bySample[2] = 2, 0, 1
	swap[0], swap[1] = 1, 0
	var y *ir.Value // [C/G, O, window]
	switch n, known := samples.Int(); {
	case !known:
		x = g.Reshape(g.Transpose(x, byGroup...), append([]dim.Dim{per, samples.Scale(groups)}, xt.Shape[2:]...)...)
		y = g.convolve(x, g.Transpose(dy, swap...), moves, groups)
	case rank-2 < maxSpatial:
		dy = g.Reshape(g.Transpose(dy, swap...), append([]dim.Dim{features, dim.Const(1), samples}, yt.Shape[2:]...)...)
		over := &window{
			Stride: append([]int64{1}, moves.Stride...), Dilation: append([]int64{1}, moves.Dilation...),
			Padding: append([][2]int64{{}}, moves.Padding...),
		}
		if moves.Spread != nil {
			over.Spread = append([]int64{1}, moves.Spread...)
		}
		y = g.convolve(g.Transpose(x, byGroup...), dy, over, groups)
		y = g.Reshape(y, append([]dim.Dim{per, features}, asTensor(y.Type).Shape[3:]...)...)
	default:
		x = g.Reshape(g.Transpose(x, bySample...), append([]dim.Dim{per, samples.Scale(groups)}, xt.Shape[2:]...)...)
		dy = g.Reshape(dy, append([]dim.Dim{samples.Mul(features), dim.Const(1)}, yt.Shape[2:]...)...)
		y = g.convolve(x, dy, moves, n*groups)
		y = g.sum(g.Reshape(y, append([]dim.Dim{per, samples, features}, asTensor(y.Type).Shape[2:]...)...), 1)
	}
	return g.Transpose(y, swap...)
}

// convolve is a convolution whose padding may be negative: what it then takes away is cut off first. Of
// elements with zeros between them, an edge that is not cut between two elements leaves zeros before the first or
// behind the last one, which are padding.
func (g *backward) convolve(x, w *ir.Value, win *window, groups int64) *ir.Value {
	rank := asTensor(x.Type).Rank()
	between := make([]int, rank)
	spread := make([]int64, len(win.Padding))
	var dims, start, limit, steps []int
	pads := make(types.Array, len(win.Padding))
	for i, p := range win.Padding {
		spread[i] = win.spread(i)
		if p[0] < 0 || p[1] < 0 {
			size, ok := asTensor(x.Type).Shape[2+i].Int()
			g.failed = g.failed || !ok
			cut := func(side int) int64 { return (max(0, -p[side]) + spread[i] - 1) / spread[i] }
			if spread[i] > 1 && cut(0)+cut(1) >= size { // of which only zeros remain
				between[2+i], size, spread[i] = int(spread[i]-1), (size-1)*spread[i]+1, 1
			}
			low, high := cut(0), cut(1)
			dims, steps = append(dims, 2+i), append(steps, 1)
			start, limit = append(start, int(low)), append(limit, int(size-high))
			p = [2]int64{p[0] + low*spread[i], p[1] + high*spread[i]}
		}
		pads[i] = types.Array{types.Int{V: p[0]}, types.Int{V: p[1]}}
	}
	x = g.pad(x, make([]int, rank), make([]int, rank), between)
	attrs := append(g.precision(), types.Named{Name: "padding", Value: pads})
	for _, l := range []struct {
		name string
		of   []int64
	}{{"window_strides", win.Stride}, {"lhs_dilation", spread}, {"rhs_dilation", win.Dilation}} {
		if slices.ContainsFunc(l.of, func(n int64) bool { return n != 1 }) {
			attrs = append(attrs, types.Named{Name: l.name, Value: int64sAttr(l.of)})
		}
	}
	if groups > 1 {
		attrs = append(attrs, types.Named{Name: "feature_group_count", Value: types.Int{V: groups}})
	}
	return g.Value("convolution", []*ir.Value{g.part(x, dims, start, limit, steps), w}, attrs)
}

func int64sAttr(ns []int64) types.Attr {
	a := make(types.Array, len(ns))
	for i, n := range ns {
		a[i] = types.Int{V: n}
	}
	return a
}
