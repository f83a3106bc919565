package onnx

import (
	"math"

	"dmir/dialect/ir"
)

// Ops of ONNX Runtime, those of its training graphs among them.

const microsoft = "com.microsoft."

func init() {
	register(map[string]conversion{
		microsoft + "BiasGelu": func(n *node) []*ir.Value { return one(n.unary("gelu", n.binary("add", n.in(0), n.in(1)))) },
		microsoft + "FastGelu": func(n *node) []*ir.Value {
			x := n.in(0)
			if b := n.opt(1); b != nil {
				x = n.binary("add", x, b)
			}
			return one(n.make("gelu", []*ir.Value{x}, named("approximate", "tanh")))
		},
		microsoft + "FusedMatMul":                 convertFusedMatMul,
		microsoft + "Gelu":                        func(n *node) []*ir.Value { return one(n.unary("gelu", n.in(0))) },
		microsoft + "QuickGelu":                   func(n *node) []*ir.Value { return one(n.swish(n.in(0), n.float("alpha", 1.702))) },
		microsoft + "ReluGrad":                    convertReluGrad,
		microsoft + "SkipLayerNormalization":      convertSkipLayerNorm,
		microsoft + "SoftmaxCrossEntropyLossGrad": convertCrossEntropyGrad,
		microsoft + "SoftmaxGrad_13":              convertSoftmaxGrad,
	})
}

func convertFusedMatMul(n *node) []*ir.Value {
	if n.int("transBatchA", 0) != 0 || n.int("transBatchB", 0) != 0 {
		unsupported("a product with transposed batches")
	}
	attrs := named("transpose_a", n.int("transA", 0) != 0, "transpose_b", n.int("transB", 0) != 0)
	v := n.make("matmul", []*ir.Value{n.in(0), n.in(1)}, attrs)
	if a := n.float("alpha", 1); a != 1 {
		v = n.with("mul", v, a)
	}
	return one(v)
}

// convertReluGrad passes the gradient where the result was positive.
func convertReluGrad(n *node) []*ir.Value {
	zero := n.scalar(n.in(0).Elem(), 0)
	return one(n.choose(n.compare("gt", n.in(1), zero), n.in(0), zero))
}

// convertSoftmaxGrad is y · (dy - Σ dy · y).
func convertSoftmaxGrad(n *node) []*ir.Value {
	dy, y := n.in(0), n.in(1)
	d := axis(n.int("axis", -1), n.rank(y))
	sum := n.reduce("add", n.binary("mul", dy, y), []int{d}, true)
	return one(n.binary("mul", y, n.binary("sub", dy, sum)))
}

// convertSkipLayerNorm normalizes a sum, which is its last output.
func convertSkipLayerNorm(n *node) []*ir.Value {
	x := n.binary("add", n.in(0), n.in(1))
	if b := n.opt(4); b != nil {
		x = n.binary("add", x, b)
	}
	in := []*ir.Value{x, n.in(2)}
	if b := n.opt(3); b != nil {
		in = append(in, b)
	}
	return []*ir.Value{n.make("layer_norm", in, named("epsilon", n.float("epsilon", 1e-5))), nil, nil, x}
}

// convertCrossEntropyGrad is (softmax - target) · dloss, of the logarithms of the
// probabilities; without a dloss, as Deeploy writes it, that is 1.
func convertCrossEntropyGrad(n *node) []*ir.Value {
	var dloss *ir.Value
	at := 0
	if len(n.ins) > 2 {
		dloss, at = n.opt(0), 1
	}
	p, labels := n.in(at), n.index(n.in(at+1))
	shape, s := n.shape(p), n.shape(labels)
	if len(shape) < 2 || len(s) != len(shape)-1 {
		fail("labels of shape %v for %v", s, shape)
	}
	if n.opt(at+2) != nil || n.attr("ignore_index") != nil {
		unsupported("weights of classes, or labels to ignore")
	}
	e := p.Elem()
	target := n.make("one_hot", []*ir.Value{labels}, named("classes", shape[1], "dim", 1), tensorOf(e, shape))
	v := n.binary("sub", n.unary("exp", p), target)
	switch n.reductionName() {
	case "mean":
		v = n.with("div", v, math.Max(1, float64(product(s))))
	case "none":
		if dloss != nil {
			spread := append([]int{s[0], 1}, s[1:]...)
			return one(n.binary("mul", v, n.reshape(dloss, spread...)))
		}
	}
	if dloss != nil {
		v = n.binary("mul", v, n.single(dloss))
	}
	return one(v)
}
