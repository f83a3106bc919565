package onnx

import (
	"math"
	"slices"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
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
		microsoft + "FusedMatMul":            convertFusedMatMul,
		microsoft + "Gelu":                   func(n *node) []*ir.Value { return one(n.unary("gelu", n.in(0))) },
		microsoft + "QuickGelu":              func(n *node) []*ir.Value { return one(n.swish(n.in(0), n.float("alpha", 1.702))) },
		microsoft + "ReluGrad":               convertReluGrad,
		microsoft + "SkipLayerNormalization": convertSkipLayerNorm,
		microsoft + "SkipSimplifiedLayerNormalization": func(n *node) []*ir.Value {
			x := n.binary("add", n.in(0), n.in(1))
			if b := n.opt(3); b != nil {
				x = n.binary("add", x, b)
			}
			return []*ir.Value{n.make("rms_norm", []*ir.Value{x, n.in(2)}, named("epsilon", n.float("epsilon", 1e-5))), nil, nil, x}
		},
		microsoft + "FusedConv": convertFusedConv, microsoft + "FusedGemm": convertFusedGemm, microsoft + "MatMulNBits": convertMatMulNBits,
		microsoft + "EmbedLayerNormalization":     convertEmbedLayerNorm,
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

// activated is x after the activation that a fused op has, with its parameters.
func (n *node) activated(x *ir.Value, name string, params []float64) *ir.Value {
	param := func(i int, otherwise float64) float64 {
		if i < len(params) {
			return params[i]
		}
		return otherwise
	}
	switch name {
	case "":
		return x
	case "Relu":
		return n.unary("relu", x)
	case "Tanh":
		return n.unary("tanh", x)
	case "Sigmoid":
		return n.unary("logistic", x)
	case "LeakyRelu":
		return n.choose(n.compare("lt", x, n.scalar(x.Elem(), 0)), n.with("mul", x, param(0, 0.01)), x)
	case "Clip":
		return n.with("min", n.with("max", x, param(0, -math.MaxFloat32)), param(1, math.MaxFloat32))
	case "HardSigmoid":
		return n.hardSigmoid(x, param(0, 0.2), param(1, 0.5))
	}
	unsupported("the activation %s", name)
	return nil
}

// convertFusedConv is a convolution whose result, and another tensor, are added, with an
// activation.
func convertFusedConv(n *node) []*ir.Value {
	y := convertConv(n)[0]
	if z := n.opt(3); z != nil {
		y = n.binary("add", y, z)
	}
	var params []float64
	if a := n.attr("activation_params"); a != nil {
		for _, f := range a.floats {
			params = append(params, float64(f))
		}
	}
	return one(n.activated(y, n.str("activation", ""), params))
}

func convertFusedGemm(n *node) []*ir.Value {
	params := []float64{n.float("activation_alpha", 0.01), n.float("activation_beta", 0.5)}
	n.float("activation_gamma", 0)
	return one(n.activated(convertGemm(n)[0], n.str("activation", ""), params))
}

// nibbles are numbers of so many bits that bytes hold, the lowest first, as bytes.
func (n *node) nibbles(x *ir.Value, bits int) *ir.Value {
	if bits == 8 {
		return x
	}
	s := n.shape(x)
	if d, ok := x.Op.Attr("value").(*types.Dense); ok && bits == 4 && x.Op.Name == op.Constant && x.Elem() == types.UI8 && !d.Splat {
		if d, err := d.Inline(); err == nil { // they stay as they are
			s[len(s)-1] *= 2
			return n.literal(types.DenseOf(tensorOf(types.UI4, s), d.Bytes()))
		}
	}
	last := len(s)
	var parts []*ir.Value
	for at := 0; at < 8; at += bits {
		v := n.binary("and", n.with("shift_right_logical", x, float64(at)), n.scalar(x.Elem(), float64(int(1)<<bits-1)))
		parts = append(parts, n.reshape(v, append(slices.Clone(s), 1)...))
	}
	v := n.concatenate(last, parts...)
	s[last-1] *= 8 / bits
	return n.reshape(v, s...)
}

// convertMatMulNBits multiplies by weights in blocks of a few bits, each with a scale and a
// zero point.
func convertMatMulNBits(n *node) []*ir.Value {
	a, b, scales := n.in(0), n.in(1), n.in(2)
	rows, columns := n.int("N", 0), n.int("K", 0)
	bits, size := n.int("bits", 4), n.int("block_size", 0)
	if bits != 2 && bits != 4 && bits != 8 || size < 1 || columns < 1 || rows < 1 {
		fail("%d bits in blocks of %d for %d by %d", bits, size, columns, rows)
	}
	blocks := (columns + size - 1) / size
	if product(n.shape(b)) != rows*blocks*size*bits/8 || product(n.shape(scales)) != rows*blocks {
		fail("weights of shape %v and scales of %v for %d blocks of %d rows", n.shape(b), n.shape(scales), blocks, rows)
	}
	e := n.wide(scales).Elem()
	w := n.nibbles(n.reshape(b, rows, blocks, size*bits/8), bits)
	w = n.convertTo(w, e)
	if zero := n.opt(3); zero != nil {
		if zero.Elem() == types.UI8 {
			zero = n.nibbles(n.reshape(zero, rows, product(n.shape(zero))/rows), bits)
			zero = n.part(zero, 1, 0, blocks)
		}
		w = n.binary("sub", w, n.reshape(n.convertTo(zero, e), rows, blocks, 1))
	} else {
		w = n.with("sub", w, float64(int(1)<<(bits-1)))
	}
	w = n.binary("mul", w, n.reshape(n.convertTo(scales, e), rows, blocks, 1))
	w = n.convertTo(n.part(n.reshape(w, rows, blocks*size), 1, 0, columns), a.Elem())
	y := n.make("matmul", []*ir.Value{a, w}, named("transpose_b", true))
	if bias := n.opt(5); bias != nil {
		y = n.binary("add", y, bias)
	}
	return one(y)
}

// convertEmbedLayerNorm adds the rows of words, positions and segments, and normalizes.
func convertEmbedLayerNorm(n *node) []*ir.Value {
	ids := n.in(0)
	s := n.shape(ids)
	if len(s) != 2 {
		fail("words of %d dimensions", len(s))
	}
	x := n.gather(n.in(2), n.index(ids), 0)
	positions := n.opt(8)
	if positions == nil {
		positions = n.iota(types.I64, 0, s[1])
	}
	x = n.binary("add", x, n.gather(n.in(3), n.index(positions), 0))
	if segments := n.opt(1); segments != nil {
		x = n.binary("add", x, n.gather(n.in(4), n.index(segments), 0))
	} else {
		n.opt(4)
	}
	y := n.make("layer_norm", []*ir.Value{x, n.in(5), n.in(6)}, named("epsilon", n.float("epsilon", 1e-12)))
	out := []*ir.Value{y, nil, x}
	if mask := n.opt(7); mask != nil {
		out[1] = n.reduce("add", n.convertTo(mask, types.I32), []int{1}, false)
	} else {
		out[1] = n.splat(types.I32, 0, s[0])
	}
	return out
}
