package onnx

import (
	"math"
	"slices"

	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// Quantized numbers: a scale and a zero point for a tensor, for each place along an
// axis, or for each block of them.

func init() {
	register(map[string]conversion{
		"ConvInteger": convertConvInteger, "DequantizeLinear": convertDequantize, "DynamicQuantizeLinear": convertDynamicQuantize,
		"MatMulInteger": convertMatMulInteger, "QLinearConv": convertQLinearConv, "QLinearMatMul": convertQLinearMatMul,
		"QuantizeLinear": convertQuantize,
	})
}

// spread is a scale or a zero point, broadcast with x.
func (n *node) spread(v, x *ir.Value) *ir.Value {
	have, shape := n.shape(v), n.shape(x)
	if product(have) == 1 && n.int("block_size", 0) == 0 {
		return n.single(v)
	}
	d := axis(n.int("axis", 1), len(shape))
	if block := n.int("block_size", 0); block != 0 {
		if len(have) != len(shape) || block < 0 || have[d]*block < shape[d] {
			fail("blocks of %d along axis %d of %v, their scales have the shape %v", block, d, shape, have)
		}
		split, wide, out := slices.Insert(slices.Clone(have), d+1, 1), slices.Insert(slices.Clone(have), d+1, block), slices.Clone(have)
		out[d] *= block
		return n.part(n.reshape(n.broadcast(n.reshape(v, split...), wide...), out...), d, 0, shape[d])
	}
	if len(have) != 1 || have[0] != shape[d] {
		fail("scales of shape %v along axis %d of %v", have, d, shape)
	}
	to := slices.Repeat([]int{1}, len(shape))
	to[d] = have[0]
	return n.reshape(v, to...)
}

// bounds are the least and the greatest number of an integer type.
func bounds(e types.Elem) (low, high float64) {
	bits := float64(e.Bits())
	if e.IsUnsigned() {
		return 0, math.Exp2(bits) - 1
	}
	return -math.Exp2(bits - 1), math.Exp2(bits-1) - 1
}

// saturated is x, whole numbers, cut to the range of e.
func (n *node) saturated(x *ir.Value, e types.Elem) *ir.Value {
	low, high := bounds(e)
	return n.convertTo(n.make("clamp", []*ir.Value{n.scalar(x.Elem(), low), x, n.scalar(x.Elem(), high)}, nil), e)
}

func convertQuantize(n *node) []*ir.Value {
	x, scale, zero := n.in(0), n.in(1), n.opt(2)
	if p := n.int("precision", 0); p > 1 && elemOf("", int64(p)) != scale.Elem() {
		unsupported("a division in %s of scales of %s", elemOf("", int64(p)), scale.Elem())
	}
	e := types.UI8
	if zero != nil {
		e = zero.Elem()
	} else if k := n.int("output_dtype", 0); k != 0 {
		e = elemOf("", int64(k))
	}
	v := n.wide(n.convertTo(x, scale.Elem()))
	v = n.binary("div", v, n.convertTo(n.spread(scale, x), v.Elem()))
	if e.IsFloat() {
		return one(n.cast(v, e))
	}
	v = n.unary("round", v)
	if zero != nil {
		v = n.binary("add", v, n.convertTo(n.spread(zero, x), v.Elem()))
	}
	return one(n.saturated(v, e))
}

func convertDequantize(n *node) []*ir.Value {
	x, scale := n.in(0), n.in(1)
	e := scale.Elem()
	if k := n.int("output_dtype", 0); k != 0 {
		e = elemOf("", int64(k))
	}
	v := n.convertTo(x, types.F32)
	if zero := n.opt(2); zero != nil {
		v = n.binary("sub", v, n.convertTo(n.spread(zero, x), types.F32))
	}
	return one(n.convertTo(n.binary("mul", v, n.convertTo(n.spread(scale, x), types.F32)), e))
}

// convertDynamicQuantize takes the range from the numbers, with 0 in it.
func convertDynamicQuantize(n *node) []*ir.Value {
	x := n.in(0)
	all := axesFrom(n.rank(x))
	high := n.with("max", n.reduce("max", x, all, false), 0)
	low := n.with("min", n.reduce("min", x, all, false), 0)
	scale := n.with("div", n.binary("sub", high, low), 255)
	zero := n.saturated(n.unary("round", n.unary("neg", n.binary("div", low, scale))), types.UI8)
	v := n.unary("round", n.binary("div", x, scale))
	return []*ir.Value{n.saturated(n.binary("add", v, n.convertTo(zero, v.Elem())), types.UI8), scale, zero}
}

// less is x as i32 less a zero point, one for all or, where it is a list, for each
// place of dimension d.
func (n *node) less(x, zero *ir.Value, d int) *ir.Value {
	x = n.convertTo(x, types.I32)
	if zero == nil {
		return x
	}
	zero = n.convertTo(zero, types.I32)
	if s := n.shape(zero); product(s) == 1 {
		zero = n.single(zero)
	} else if len(s) == 1 {
		shape := slices.Repeat([]int{1}, n.rank(x)-d)
		shape[0] = s[0]
		zero = n.reshape(zero, shape...)
	}
	return n.binary("sub", x, zero)
}

func convertMatMulInteger(n *node) []*ir.Value {
	a, b := n.in(0), n.in(1)
	return one(n.matmul(n.less(a, n.opt(2), max(0, n.rank(a)-2)), n.less(b, n.opt(3), max(0, n.rank(b)-1))))
}

func convertConvInteger(n *node) []*ir.Value {
	return one(n.convolution(n.less(n.in(0), n.opt(2), 1), n.less(n.in(1), n.opt(3), 0)))
}

// requantized is an accumulator, times the scales of its operands, in the scale and
// about the zero point of the result. The scales of w are along dimension d.
func (n *node) requantized(acc, xs, ws, ys, zero *ir.Value, d int) *ir.Value {
	list := func(v *ir.Value) *ir.Value {
		v = n.convertTo(v, types.F32)
		if product(n.shape(v)) == 1 {
			return n.single(v)
		}
		shape := slices.Repeat([]int{1}, n.rank(acc)-d)
		shape[0] = product(n.shape(v))
		return n.reshape(v, shape...)
	}
	factor := n.binary("div", n.binary("mul", list(xs), list(ws)), list(ys))
	v := n.unary("round", n.binary("mul", n.convertTo(acc, types.F32), factor))
	return n.saturated(n.binary("add", v, list(zero)), zero.Elem())
}

func convertQLinearMatMul(n *node) []*ir.Value {
	a, b := n.in(0), n.in(3)
	acc := n.matmul(n.less(a, n.in(2), max(0, n.rank(a)-2)), n.less(b, n.in(5), max(0, n.rank(b)-1)))
	return one(n.requantized(acc, n.in(1), n.in(4), n.in(6), n.in(7), max(0, n.rank(acc)-1)))
}

func convertQLinearConv(n *node) []*ir.Value {
	acc := n.biased(n.convolution(n.less(n.in(0), n.in(2), 1), n.less(n.in(3), n.in(5), 0)), n.opt(8))
	return one(n.requantized(acc, n.in(1), n.in(4), n.in(6), n.in(7), 1))
}
