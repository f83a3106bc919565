package op

import (
	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/types"
)

var softmaxDerivative = &Derivative{
	Doc: "`dx = y · (dy - Σ dy · y)` along `dim`.",
	rule: func(g *backward) {
		d, _ := Dim(g.o, "dim", in(g.o, 0).Rank())
		y, dy := g.wide(g.y(0)), g.wide(g.dy[0])
		g.give(0, g.mul(y, g.sub(dy, g.reduce("add", g.mul(dy, y), d))))
	},
}

var logSoftmaxDerivative = &Derivative{
	Doc: "`dx = dy - e^y · Σ dy` along `dim`.",
	rule: func(g *backward) {
		d, _ := Dim(g.o, "dim", in(g.o, 0).Rank())
		y, dy := g.wide(g.y(0)), g.wide(g.dy[0])
		g.give(0, g.sub(dy, g.mul(g.Unary("exp", y), g.reduce("add", dy, d))))
	},
}

var layerNormDerivative = &Derivative{
	Doc: "With `h = (x - mean) / √(variance + epsilon)`, recomputed, and `g = dy · scale`: `dx = (g - mean g - h · mean(g · h)) / √(variance + epsilon)`, " +
		"`dscale = Σ dy · h` and `dbias = Σ dy` over the other dimensions.",
	rule: func(g *backward) { g.featureNorm(false) },
}

var rmsNormDerivative = &Derivative{
	Doc: "With `h = x / √(mean x² + epsilon)`, recomputed, and `g = dy · scale`: `dx = (g - h · mean(g · h)) / √(mean x² + epsilon)`, " +
		"`dscale = Σ dy · h` over the other dimensions.",
	rule: func(g *backward) { g.featureNorm(true) },
}

var batchNormDerivative = &Derivative{
	Doc: "As `dm.layer_norm`, over all dimensions but that of the channels; the cotangents of batch_mean and batch_variance flow into x as well. " +
		"With given statistics `dx = dy · scale / √(variance + epsilon)`, and these have cotangents of their own.",
	rule: batchNormRule,
}

var groupNormDerivative = &Derivative{
	Doc:  "As `dm.layer_norm`, over each group; `dscale` and `dbias` are summed over all dimensions but the channels.",
	rule: groupNormRule,
}

var crossEntropyDerivative = &Derivative{
	Doc:  "`dlogits = (softmax(logits) - target) · dloss` and 0 in rows that do not count, for `mean` divided by the number of those that do; `target` is `(1 - label_smoothing) · onehot(labels) + label_smoothing / classes`. None for the labels.",
	rule: crossEntropyRule,
}

// standardized is what the gradient of a normalization over dims needs of x,
// which is in at least f32.
type standardized struct {
	h, inverse *ir.Value // the normalized x, and 1 / deviation with size 1 at dims
	centred    *ir.Value // x - mean; x where no mean is subtracted
	dims       []int
	n          float64
	rms        bool
}

func (w *Builder) statistics(x *ir.Value, dims []int, n, epsilon float64, rms bool) standardized {
	s := standardized{centred: x, dims: dims, n: n, rms: rms}
	if !rms {
		s.centred = w.sub(x, w.mean(x, dims, n))
	}
	s.inverse = w.Unary("rsqrt", w.plus(w.mean(w.mul(s.centred, s.centred), dims, n), epsilon))
	s.h = w.mul(s.centred, s.inverse)
	return s
}

func (w *Builder) mean(x *ir.Value, dims []int, n float64) *ir.Value {
	return w.scale(w.reduce("add", x, dims...), 1/n)
}

// back is dx from the cotangent of the normalized x.
func (w *Builder) back(s standardized, dh *ir.Value) *ir.Value {
	dx := w.sub(dh, w.mul(s.h, w.mean(w.mul(dh, s.h), s.dims, s.n)))
	if !s.rms {
		dx = w.sub(dx, w.mean(dh, s.dims, s.n))
	}
	return w.mul(dx, s.inverse)
}

// size is the number of elements of t along dims, 1 where there are none.
func (w *Builder) size(t *types.Tensor, dims []int) float64 { return max(w.elements(t, dims), 1) }

// parameter is the cotangent of a parameter that along spread over dims
// of a tensor: v summed over all other dimensions, in the parameter's order.
func (g *backward) parameter(i int, v *ir.Value, dims []int) {
	if i >= len(g.want) || !g.want[i] || g.failed {
		return
	}
	rank := asTensor(v.Type).Rank()
	kept := make([]bool, rank)
	for _, d := range dims {
		kept[d] = true
	}
	var over []int
	for d := range rank {
		if !kept[d] {
			over = append(over, d)
		}
	}
	v = g.sum(v, over...)
	order, sorted := make([]int, len(dims)), true
	for k, d := range dims {
		for _, e := range dims {
			if e < d {
				order[k]++
			}
		}
		sorted = sorted && order[k] == k
	}
	if !sorted {
		v = g.Value("transpose", []*ir.Value{v}, []types.Named{{Name: "dims", Value: IntList(order...)}})
	}
	g.give(i, v)
}

func (g *backward) featureNorm(rms bool) {
	x := in(g.o, 0)
	dims, _ := Dims(g.o, "dims", x.Rank())
	n := g.size(x, dims)
	g.normalized(g.wide(g.x(0)), g.wide(g.dy[0]), dims, dims, n, rms, nil)
}

// normalized gives the cotangents of a normalization over dims with scale and
// bias, operands 1 and 2, along the dimensions named by along. more, where not
// nil, is added to x's before it is given.
func (g *backward) normalized(x, dy *ir.Value, dims, along []int, n float64, rms bool, more func(s standardized, dx *ir.Value) *ir.Value) {
	if g.failed {
		return
	}
	s := g.statistics(x, dims, n, Float(g.o, "epsilon"), rms)
	dh := dy
	if len(g.o.Operands) > 1 {
		if g.want[1] {
			g.parameter(1, g.mul(dy, s.h), along)
		}
		dh = g.mul(dy, g.along(g.x(1), asTensor(dy.Type), along))
	}
	g.parameter(2, dy, along)
	if !g.want[0] {
		return
	}
	dx := g.back(s, dh)
	if more != nil {
		dx = more(s, dx)
	}
	g.give(0, dx)
}

func batchNormRule(g *backward) {
	xt := in(g.o, 0)
	d, _ := Dim(g.o, "dim", xt.Rank())
	along := []int{d}
	over := append(identity(xt.Rank())[:d:d], identity(xt.Rank())[d+1:]...)
	x := g.wide(g.x(0))
	t := asTensor(x.Type)
	dy := g.dy[0]
	if dy == nil {
		dy = g.zeros(t)
	}
	dy = g.wide(dy)
	if len(g.o.Operands) == 5 {
		mean, inverse := g.along(g.x(3), t, along), g.Unary("rsqrt", g.plus(g.along(g.x(4), t, along), Float(g.o, "epsilon")))
		centred := g.sub(x, mean)
		h := g.mul(centred, inverse)
		dh := g.mul(dy, g.along(g.x(1), t, along))
		dx := g.mul(dh, inverse)
		g.give(0, dx)
		if g.want[1] {
			g.parameter(1, g.mul(dy, h), along)
		}
		g.parameter(2, dy, along)
		if g.want[3] {
			g.parameter(3, g.neg(dx), along)
		}
		if g.want[4] { // dh/dvariance = -h/2 · inverse²
			g.parameter(4, g.scale(g.mul(g.mul(dh, h), g.mul(inverse, inverse)), -0.5), along)
		}
		return
	}
	n := g.size(xt, over)
	g.normalized(x, dy, over, along, n, false, func(s standardized, dx *ir.Value) *ir.Value {
		for i, k := range []float64{1 / n, 2 / n} {
			if i+1 >= len(g.dy) || g.dy[i+1] == nil {
				continue
			}
			more := g.scale(g.along(g.dy[i+1], t, along), k)
			if i == 1 {
				more = g.mul(more, s.centred)
			}
			dx = g.add(dx, more)
		}
		return dx
	})
}

func groupNormRule(g *backward) {
	xt := in(g.o, 0)
	groups := dim.Const(Int(g.o, "groups"))
	per, ok := xt.Shape[1].Div(groups)
	if g.failed = g.failed || !ok; g.failed {
		return
	}
	split := append([]dim.Dim{xt.Shape[0], groups, per}, xt.Shape[2:]...)
	x := g.Reshape(g.wide(g.x(0)), split...)
	dims := identity(len(split))[2:]
	n := g.size(&types.Tensor{Shape: split}, dims)
	if g.failed {
		return
	}
	dy := g.wide(g.dy[0])
	s := g.statistics(x, dims, n, Float(g.o, "epsilon"), false)
	dh := dy
	if len(g.o.Operands) > 1 {
		if g.want[1] {
			g.parameter(1, g.mul(dy, g.Reshape(s.h, xt.Shape...)), []int{1})
		}
		dh = g.mul(dy, g.along(g.x(1), asTensor(dy.Type), []int{1}))
	}
	g.parameter(2, dy, []int{1})
	if g.want[0] {
		g.give(0, g.Reshape(g.back(s, g.Reshape(dh, split...)), xt.Shape...))
	}
}

func crossEntropyRule(g *backward) {
	xt, labels := in(g.o, 0), in(g.o, 1)
	d, _ := Dim(g.o, "dim", xt.Rank())
	x, dy := g.wide(g.x(0)), g.wide(g.dy[0])
	rowwise := func(v *ir.Value) *ir.Value { return g.Reshape(v, replaced(xt.Shape, d, dim.Const(1))...) }
	counts := g.counts(g.o)
	switch Str(g.o, "reduction") {
	case "none":
		dy = rowwise(dy)
	case "mean":
		rows, known := labels.Elements().Int()
		switch {
		case counts != nil:
			dy = g.div(dy, g.sumAll(g.Convert(counts, asTensor(dy.Type).Elem)))
		case known:
			dy = g.scale(dy, 1/float64(max(rows, 1)))
		default:
			ones := g.filled(tensor(labels, asTensor(dy.Type).Elem, labels.Shape...), 1)
			dy = g.div(dy, g.sum(ones, identity(labels.Rank())...))
		}
	}
	p := g.Value("softmax", []*ir.Value{x}, named("dim", intAttr(d)))
	at := rowwise(g.nearest(g.x(1), xt.Shape[d]))
	class := g.count(tensor(xt, labels.Elem, xt.Shape...), d)
	right := g.compare("eq", class, at)
	even := 0.0 // the target of the other classes
	if s := Float(g.o, "label_smoothing"); s > 0 {
		even = s / g.size(xt, []int{d})
	}
	dx := g.mul(g.sub(p, g.choose(right, g.number(p, 1-Float(g.o, "label_smoothing")+even), g.number(p, even))), dy)
	if counts != nil {
		dx = g.when(rowwise(counts), dx)
	}
	g.give(0, dx)
}

// count is the numbers of the positions along d of a tensor of type t.
func (w *Builder) count(t *types.Tensor, d int) *ir.Value {
	if w.failed {
		return &ir.Value{Type: t}
	}
	shape := make([]dim.Dim, t.Rank())
	for i := range shape {
		shape[i] = dim.Const(1)
	}
	shape[d] = t.Shape[d]
	return w.Op("dm.iota", nil, named("dim", intAttr(d)), tensor(t, t.Elem, shape...)).Results[0]
}

// nearest moves indices into a dimension of size n, as gather reads them.
func (w *Builder) nearest(idx *ir.Value, n dim.Dim) *ir.Value {
	last := w.lastIndex(idx, n)
	return w.Value("clamp", []*ir.Value{w.number(idx, 0), idx, last}, nil)
}

// lastIndex is n - 1 as a scalar of idx's element type.
func (w *Builder) lastIndex(idx *ir.Value, n dim.Dim) *ir.Value {
	if v, ok := n.Int(); ok {
		return w.number(idx, float64(v-1))
	}
	t := asTensor(idx.Type)
	i := w.count(tensor(t, t.Elem, n), 0)
	return w.Value("reduce", []*ir.Value{i}, named("kind", types.Keyword("max")))
}
