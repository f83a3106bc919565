package onnx

import (
	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// Quantized ops of ONNX Runtime: their operands as numbers, and the result quantized again.

func init() {
	for name, kind := range map[string]string{"QLinearAdd": "add", "QLinearMul": "mul"} {
		conversions[microsoft+name] = func(n *node) []*ir.Value {
			return one(n.quantized(n.binary(kind, n.numbersAt(0), n.numbersAt(3)), 6))
		}
	}
	register(map[string]conversion{
		microsoft + "DynamicQuantizeMatMul":    convertDynamicQuantizeMatMul,
		microsoft + "MatMulIntegerToFloat":     convertMatMulIntegerToFloat,
		microsoft + "QGemm":                    convertQGemm,
		microsoft + "QLinearAveragePool":       convertQLinearAveragePool,
		microsoft + "QLinearConcat":            convertQLinearConcat,
		microsoft + "QLinearGlobalAveragePool": convertQLinearGlobalAveragePool,
		microsoft + "QLinearLeakyRelu": func(n *node) []*ir.Value {
			return one(n.quantized(n.activated(n.numbersAt(0), "LeakyRelu", []float64{n.float("alpha", 0.01)}), 3))
		},
		microsoft + "QLinearSigmoid": func(n *node) []*ir.Value { return one(n.quantized(n.unary("logistic", n.numbersAt(0)), 3)) },
	})
}

// numbersAt are the numbers of the quantized input i, whose scale and zero point follow.
func (n *node) numbersAt(i int) *ir.Value {
	x := n.convertTo(n.in(i), types.F32)
	if zero := n.opt(i + 2); zero != nil {
		x = n.binary("sub", x, n.convertTo(n.single(zero), types.F32))
	}
	return n.binary("mul", x, n.single(n.in(i+1)))
}

// quantized is x with the scale that is input i, and the zero point behind it.
func (n *node) quantized(x *ir.Value, i int) *ir.Value {
	x = n.unary("round", n.binary("div", x, n.single(n.in(i))))
	e := n.in(0).Elem()
	if zero := n.opt(i + 1); zero != nil {
		e = zero.Elem()
		x = n.binary("add", x, n.convertTo(n.single(zero), types.F32))
	}
	return n.saturated(x, e)
}

func convertQLinearConcat(n *node) []*ir.Value {
	var parts []*ir.Value
	for i := 2; i+2 < len(n.ins); i += 3 {
		parts = append(parts, n.numbersAt(i))
	}
	if len(parts) == 0 {
		fail("no inputs")
	}
	x := n.concatenate(axis(n.int("axis", 0), n.rank(parts[0])), parts...)
	x = n.unary("round", n.binary("div", x, n.single(n.in(0))))
	zero := n.in(1)
	return one(n.saturated(n.binary("add", x, n.convertTo(n.single(zero), types.F32)), zero.Elem()))
}

func convertQLinearGlobalAveragePool(n *node) []*ir.Value {
	at := n.space()
	if n.int("channels_last", 0) != 0 {
		for i := range at {
			at[i]--
		}
	}
	return one(n.quantized(n.mean(n.numbersAt(0), at, true), 3))
}

func convertQLinearAveragePool(n *node) []*ir.Value {
	if n.int("channels_last", 0) != 0 {
		unsupported("channels in the last dimension")
	}
	return one(n.quantized(n.averaged(n.numbersAt(0)), 3))
}

// convertQGemm is quantized where the scale of its result is given, otherwise in f32.
func convertQGemm(n *node) []*ir.Value {
	a, b := n.less(n.in(0), n.opt(2), 0), n.less(n.in(3), n.opt(5), 1-min(1, n.int("transB", 0)))
	acc := n.make("matmul", []*ir.Value{a, b}, named("transpose_a", n.int("transA", 0) != 0, "transpose_b", n.int("transB", 0) != 0))
	if c := n.opt(6); c != nil {
		acc = n.binary("add", acc, c)
	}
	scale := n.binary("mul", n.with("mul", n.single(n.in(1)), n.float("alpha", 1)), n.reshape(n.in(4), n.shape(n.in(4))...))
	y := n.binary("mul", n.convertTo(acc, types.F32), scale)
	if n.opt(7) == nil {
		return one(y)
	}
	return one(n.quantized(y, 7))
}

// convertMatMulIntegerToFloat is MatMulInteger times the scales of its operands.
func convertMatMulIntegerToFloat(n *node) []*ir.Value {
	a, b := n.in(0), n.in(1)
	y := n.matmul(n.less(a, n.opt(4), max(0, n.rank(a)-2)), n.less(b, n.opt(5), max(0, n.rank(b)-1)))
	v := n.binary("mul", n.convertTo(y, types.F32), n.binary("mul", n.single(n.in(2)), n.in(3)))
	if bias := n.opt(6); bias != nil {
		v = n.binary("add", v, bias)
	}
	return one(v)
}

// convertDynamicQuantizeMatMul quantizes its first operand by its own range.
func convertDynamicQuantizeMatMul(n *node) []*ir.Value {
	q := convertDynamicQuantize(n)
	b := n.in(1)
	y := n.matmul(n.less(q[0], q[2], 0), n.less(b, n.opt(3), max(0, n.rank(b)-1)))
	v := n.binary("mul", n.convertTo(y, types.F32), n.binary("mul", q[1], n.in(2)))
	if bias := n.opt(4); bias != nil {
		v = n.binary("add", v, bias)
	}
	return one(v)
}
