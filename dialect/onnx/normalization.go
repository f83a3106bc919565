package onnx

import (
	"slices"

	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// Normalizations.

func init() {
	register(map[string]conversion{
		"BatchNormalization": convertBatchNorm, "GroupNormalization": convertGroupNorm, "InstanceNormalization": convertInstanceNorm,
		"LRN": convertLRN, "LayerNormalization": convertLayerNorm, "LpNormalization": convertLpNorm,
		"MeanVarianceNormalization": convertMeanVariance, "RMSNormalization": convertRMSNorm,
		"SimplifiedLayerNormalization": convertRMSNorm, // of ONNX Runtime, in ONNX's own domain
	})
}

const epsilon = 1e-5

// normalized are the dimensions from the node's axis on, and their sizes.
func (n *node) normalized(x *ir.Value) (at, shape []int) {
	rank := n.rank(x)
	d := axis(n.int("axis", -1), rank)
	return axesFrom(rank)[d:], n.shape(x)[d:]
}

// scaleOf is input i of a normalization, broadcast to the normalized sizes.
func (n *node) scaleOf(i int, shape []int) *ir.Value {
	v := n.opt(i)
	if v == nil {
		return nil
	}
	have := n.shape(v)
	for len(have) > len(shape) && have[0] == 1 {
		have = have[1:]
	}
	return n.broadcast(n.reshape(v, have...), shape...)
}

func convertLayerNorm(n *node) []*ir.Value {
	x := n.in(0)
	at, shape := n.normalized(x)
	eps := n.float("epsilon", epsilon)
	in := []*ir.Value{x, n.scaleOf(1, shape)}
	if in[1] == nil {
		fail("input 1 is missing")
	}
	if b := n.scaleOf(2, shape); b != nil {
		in = append(in, b)
	}
	out := one(n.make("layer_norm", in, named("dims", at, "epsilon", eps)))
	if n.has(1) || n.has(2) {
		w := n.convertTo(x, elemOf("", int64(n.int("stash_type", 1))))
		variance := n.make("variance", []*ir.Value{w}, named("dims", at, "keep_dims", true, "correction", 0))
		out = append(out, n.mean(w, at, true), n.unary("rsqrt", n.with("add", variance, eps)))
	}
	return out
}

func convertRMSNorm(n *node) []*ir.Value {
	x := n.in(0)
	at, shape := n.normalized(x)
	in := []*ir.Value{x}
	if s := n.scaleOf(1, shape); s != nil {
		in = append(in, s)
	}
	return one(n.make("rms_norm", in, named("dims", at, "epsilon", n.float("epsilon", epsilon))))
}

// convertBatchNorm normalizes by given statistics or, in training, by those of the
// batch, with which the running ones are updated.
func convertBatchNorm(n *node) []*ir.Value {
	x, scale, bias, mean, variance := n.in(0), n.in(1), n.in(2), n.in(3), n.in(4)
	attrs := named("epsilon", n.float("epsilon", epsilon))
	if n.opset < 9 && n.int("spatial", 1) == 0 {
		unsupported("statistics of each place of an image")
	}
	training := n.int("training_mode", 0) != 0
	if n.opset < 14 {
		training = n.has(1) || n.opset < 7 && n.int("is_test", 0) == 0
	}
	update := n.running[mean] != nil && n.running[variance] != nil
	training = training || update
	if !training {
		in := []*ir.Value{x, scale, bias, mean, variance}
		for i := range in[1:] {
			in[i+1] = n.convertTo(in[i+1], n.parameter(x, scale))
		}
		return one(n.make("batch_norm", in, attrs))
	}
	e := n.parameter(x, scale)
	c := scale.Tensor().Shape
	stat := &types.Tensor{Elem: e, Shape: c}
	out := n.makeAll("batch_norm", []*ir.Value{x, n.convertTo(scale, e), n.convertTo(bias, e)}, attrs, x.Type, stat, stat)
	if update { // the variance as PyTorch keeps it, of a sample
		count := float64(product(n.shape(x))) / float64(n.shape(x)[1])
		n.updated(3, out[1], 1)
		n.updated(4, out[2], count/max(count-1, 1))
		return out[:1]
	}
	keep := n.float("momentum", 0.9)
	running := func(old, now *ir.Value) *ir.Value {
		return n.binary("add", n.with("mul", old, keep), n.with("mul", n.convertTo(now, old.Elem()), 1-keep))
	}
	return []*ir.Value{out[0], running(mean, out[1]), running(variance, out[2]), out[1], out[2]}
}

// parameter is the element type that the parameters of a normalization of x have.
func (n *node) parameter(x, scale *ir.Value) types.Elem {
	if e := scale.Elem(); e == x.Elem() || e == types.F32 {
		return e
	}
	return x.Elem()
}

func convertInstanceNorm(n *node) []*ir.Value {
	x := n.in(0)
	if n.rank(x) < 3 {
		fail("%d dimensions", n.rank(x))
	}
	return one(n.make("group_norm", []*ir.Value{x, n.in(1), n.in(2)}, named("groups", n.shape(x)[1], "epsilon", n.float("epsilon", epsilon))))
}

// convertGroupNorm scales channels or, before version 21, groups of them.
func convertGroupNorm(n *node) []*ir.Value {
	x, groups := n.in(0), n.int("num_groups", 0)
	shape := n.shape(x)
	if len(shape) < 2 || groups < 1 || shape[1]%groups != 0 {
		fail("%d groups of the channels of %v", groups, shape)
	}
	in := []*ir.Value{x, n.in(1), n.in(2)}
	for i, v := range in[1:] {
		if s := n.shape(v); n.opset < 21 && len(s) == 1 && s[0] == groups && groups != shape[1] {
			each := shape[1] / groups
			in[i+1] = n.reshape(n.broadcast(n.reshape(v, groups, 1), groups, each), shape[1])
		}
	}
	return one(n.make("group_norm", in, named("groups", groups, "epsilon", n.float("epsilon", epsilon))))
}

// convertLRN divides by a power of the sum of squares of neighbouring channels.
func convertLRN(n *node) []*ir.Value {
	x, size := n.in(0), n.int("size", 0)
	shape := n.shape(x)
	if len(shape) < 2 || size < 1 || size > 1<<31 {
		fail("%d channels of %v", size, shape)
	}
	ones := slices.Repeat([]int{1}, len(shape))
	dims, low, high := slices.Clone(ones), make([]int, len(shape)), make([]int, len(shape))
	dims[1], low[1], high[1] = size, (size-1)/2, size/2
	w := n.wide(x)
	sum := n.make("reduce_window", []*ir.Value{n.binary("mul", w, w)}, named("kind", "add", "window_dimensions", dims, "padding", pairs(low, high)))
	base := n.with("add", n.with("mul", sum, n.float("alpha", 1e-4)/float64(size)), n.float("bias", 1))
	return one(n.convertTo(n.binary("div", w, n.with("pow", base, n.float("beta", 0.75))), x.Elem()))
}

func convertMeanVariance(n *node) []*ir.Value {
	x := n.in(0)
	at := n.ints("axes")
	if at == nil {
		at = []int{0, 2, 3}
	}
	at = axes(at, n.rank(x))
	w := n.wide(x)
	deviation := n.unary("sqrt", n.make("variance", []*ir.Value{w}, named("dims", at, "keep_dims", true, "correction", 0)))
	v := n.binary("div", n.binary("sub", w, n.mean(w, at, true)), n.with("add", deviation, 1e-9))
	return one(n.convertTo(v, x.Elem()))
}

// convertLpNorm divides by a norm; what has the norm 0 stays.
func convertLpNorm(n *node) []*ir.Value {
	x, p := n.in(0), float64(n.int("p", 2))
	d := axis(n.int("axis", -1), n.rank(x))
	norm := n.root(n.reduce("add", n.powers(x, p), []int{d}, true), p)
	zero := n.compare("eq", norm, n.scalar(x.Elem(), 0))
	return one(n.binary("div", x, n.choose(zero, n.scalar(x.Elem(), 1), norm)))
}
