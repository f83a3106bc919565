package onnx

import (
	"math"
	"slices"

	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// Element-wise ops.

func init() {
	for name, to := range map[string]string{
		"Exp": "exp", "Log": "log", "Sqrt": "sqrt", "Tanh": "tanh", "Erf": "erf", "Sinh": "sinh", "Cosh": "cosh", "Asinh": "asinh", "Acosh": "acosh", "Atanh": "atanh", "Sigmoid": "logistic",
		"Floor": "floor", "Ceil": "ceil", "Round": "round", "Cos": "cos", "Sin": "sin", "Not": "not", "BitwiseNot": "not",
	} {
		conversions[name] = func(n *node) []*ir.Value { return one(n.unary(to, n.in(0))) }
	}
	for name, to := range map[string]string{"Abs": "abs", "Neg": "neg", "Sign": "sign", "Relu": "relu"} {
		conversions[name] = func(n *node) []*ir.Value { return one(n.signed(to, n.in(0))) }
	}
	for name, to := range map[string]string{
		"Add": "add", "Sub": "sub", "Mul": "mul", "Div": "div", "And": "and", "Or": "or", "Xor": "xor",
		"BitwiseAnd": "and", "BitwiseOr": "or", "BitwiseXor": "xor",
	} {
		conversions[name] = func(n *node) []*ir.Value {
			x, y := n.pair()
			return one(n.binary(to, x, y))
		}
	}
	for name, to := range map[string]string{"Equal": "eq", "Greater": "gt", "GreaterOrEqual": "ge", "Less": "lt", "LessOrEqual": "le"} {
		conversions[name] = func(n *node) []*ir.Value {
			x, y := n.pair()
			return one(n.compare(to, x, y))
		}
	}
	for name, to := range map[string]string{"Max": "max", "Min": "min", "Sum": "add", "Mean": "add"} {
		conversions[name] = func(n *node) []*ir.Value {
			v := n.in(0)
			for i := 1; i < len(n.ins); i++ {
				v = n.binary(to, v, n.in(i))
			}
			if n.p.op == "Mean" {
				v = n.with("div", v, float64(len(n.ins)))
			}
			return one(v)
		}
	}
	for name, f := range functions {
		conversions[name] = func(n *node) []*ir.Value {
			x := n.in(0)
			return one(n.convertTo(f(n, n.wide(x)), x.Elem()))
		}
	}
	register(map[string]conversion{
		"BitShift": convertBitShift, "Cast": convertCast, "CastLike": convertCastLike, "Clip": convertClip, "Identity": convertIdentity,
		"IsInf": convertIsInf, "IsNaN": convertIsNaN, "Mod": convertMod, "PRelu": convertPRelu, "Pow": convertPow, "SwiGLU": convertSwiGLU,
		"Where": func(n *node) []*ir.Value { return one(n.choose(n.in(0), n.in(1), n.in(2))) },
	})
}

// pair are the two operands. Before version 7 the second one was broadcast from an
// axis on.
func (n *node) pair() (x, y *ir.Value) {
	x, y = n.in(0), n.in(1)
	if n.opset >= 7 || n.int("broadcast", 0) == 0 || n.attr("axis") == nil {
		return x, y
	}
	shape := n.shape(y)
	last := n.rank(x) - axis(n.int("axis", 0), n.rank(x)) - len(shape)
	return x, n.reshape(y, append(shape, slices.Repeat([]int{1}, max(0, last))...)...)
}

// signed is an op that unsigned integers have no need of.
func (n *node) signed(name string, x *ir.Value) *ir.Value {
	if !x.Elem().IsUnsigned() {
		return n.unary(name, x)
	}
	switch name {
	case "neg":
		return n.binary("sub", n.scalar(x.Elem(), 0), x)
	case "sign":
		return n.with("min", x, 1)
	}
	return x
}

// wide is x in an element type in which formulas of several steps are computed.
func (n *node) wide(x *ir.Value) *ir.Value {
	if e := x.Elem(); e == types.F16 || e == types.BF16 {
		return n.convertTo(x, types.F32)
	}
	return x
}

// functions are those with a formula. x is of f32 or f64.
var functions = map[string]func(n *node, x *ir.Value) *ir.Value{
	"Acos":       func(n *node, x *ir.Value) *ir.Value { return n.binary("atan2", n.sine(x), x) },
	"Asin":       func(n *node, x *ir.Value) *ir.Value { return n.binary("atan2", x, n.sine(x)) },
	"Atan":       func(n *node, x *ir.Value) *ir.Value { return n.with("atan2", x, 1) },
	"Tan":        func(n *node, x *ir.Value) *ir.Value { return n.binary("div", n.unary("sin", x), n.unary("cos", x)) },
	"Reciprocal": func(n *node, x *ir.Value) *ir.Value { return n.binary("div", n.scalar(x.Elem(), 1), x) },
	"Celu": func(n *node, x *ir.Value) *ir.Value {
		a := n.float("alpha", 1)
		low := n.with("mul", n.unary("expm1", n.with("div", x, a)), a)
		return n.binary("add", n.unary("relu", x), n.with("min", low, 0))
	},
	"Elu": func(n *node, x *ir.Value) *ir.Value { return n.elu(x, n.float("alpha", 1), 1) },
	"Selu": func(n *node, x *ir.Value) *ir.Value {
		if n.opset < 6 {
			return n.elu(x, n.float("alpha", 1.6732), n.float("gamma", 1.0507))
		}
		return n.elu(x, n.float("alpha", 1.67326319217681884765625), n.float("gamma", 1.05070102214813232421875))
	},
	"Gelu": func(n *node, x *ir.Value) *ir.Value {
		return n.make("gelu", []*ir.Value{x}, named("approximate", n.str("approximate", "none")))
	},
	"HardSigmoid": func(n *node, x *ir.Value) *ir.Value {
		return n.hardSigmoid(x, n.float("alpha", 0.2), n.float("beta", 0.5))
	},
	"HardSwish": func(n *node, x *ir.Value) *ir.Value { return n.binary("mul", x, n.hardSigmoid(x, 1.0/6, 0.5)) },
	"LeakyRelu": func(n *node, x *ir.Value) *ir.Value {
		return n.choose(n.compare("lt", x, n.scalar(x.Elem(), 0)), n.with("mul", x, n.float("alpha", 0.01)), x)
	},
	"Mish":     func(n *node, x *ir.Value) *ir.Value { return n.binary("mul", x, n.unary("tanh", n.softplus(x))) },
	"Softplus": func(n *node, x *ir.Value) *ir.Value { return n.softplus(x) },
	"Softsign": func(n *node, x *ir.Value) *ir.Value { return n.binary("div", x, n.with("add", n.unary("abs", x), 1)) },
	"Swish":    func(n *node, x *ir.Value) *ir.Value { return n.swish(x, n.float("alpha", 1)) },
	"Shrink": func(n *node, x *ir.Value) *ir.Value {
		lambda, bias := n.float("lambd", 0.5), n.float("bias", 0)
		e := x.Elem()
		high := n.choose(n.compare("gt", x, n.scalar(e, lambda)), n.with("sub", x, bias), n.scalar(e, 0))
		return n.choose(n.compare("lt", x, n.scalar(e, -lambda)), n.with("add", x, bias), high)
	},
	"ThresholdedRelu": func(n *node, x *ir.Value) *ir.Value {
		return n.choose(n.compare("gt", x, n.scalar(x.Elem(), n.float("alpha", 1))), x, n.scalar(x.Elem(), 0))
	},
}

// sine is √((1-x) (1+x)), the sine of the angle whose cosine is x.
func (n *node) sine(x *ir.Value) *ir.Value {
	one := n.scalar(x.Elem(), 1)
	return n.unary("sqrt", n.binary("mul", n.binary("sub", one, x), n.binary("add", one, x)))
}

func (n *node) elu(x *ir.Value, alpha, gamma float64) *ir.Value {
	low := n.with("mul", n.unary("expm1", x), alpha)
	v := n.choose(n.compare("gt", x, n.scalar(x.Elem(), 0)), x, low)
	if gamma == 1 {
		return v
	}
	return n.with("mul", v, gamma)
}

func (n *node) hardSigmoid(x *ir.Value, alpha, beta float64) *ir.Value {
	v := n.with("add", n.with("mul", x, alpha), beta)
	return n.make("clamp", []*ir.Value{n.scalar(x.Elem(), 0), v, n.scalar(x.Elem(), 1)}, nil)
}

// softplus is ln(1 + e^x), without a large power.
func (n *node) softplus(x *ir.Value) *ir.Value {
	return n.binary("add", n.unary("relu", x), n.unary("log1p", n.unary("exp", n.unary("neg", n.unary("abs", x)))))
}

func (n *node) swish(x *ir.Value, alpha float64) *ir.Value {
	if alpha == 1 {
		return n.unary("silu", x)
	}
	return n.binary("mul", x, n.unary("logistic", n.with("mul", x, alpha)))
}

func convertIdentity(n *node) []*ir.Value { return one(n.in(0)) }

// convertBitShift shifts; what is negative is filled with ones from the left, and a shift by
// all bits or more, or by a negative number, leaves the filling.
func convertBitShift(n *node) []*ir.Value {
	x, y := n.in(0), n.in(1)
	switch direction := n.str("direction", ""); {
	case direction == "LEFT":
		return one(n.binary("shift_left", x, y))
	case direction == "RIGHT" && x.Elem().IsUnsigned():
		return one(n.binary("shift_right_logical", x, y))
	case direction == "RIGHT":
		return one(n.binary("shift_right_arithmetic", x, y))
	default:
		fail("the direction is %q", direction)
	}
	return nil
}

func convertCast(n *node) []*ir.Value {
	a := n.attr("to")
	if a == nil {
		fail("no type")
	}
	if len(a.s) > 0 {
		unsupported("a type as text")
	}
	return one(n.cast(n.in(0), elemOf("", a.i)))
}

func convertCastLike(n *node) []*ir.Value { return one(n.cast(n.in(0), n.in(1).Elem())) }

// cast converts x. To the 8-bit floats numbers beyond the greatest saturate, unless
// the node says otherwise. Of an integer the lowest bits stay.
func (n *node) cast(x *ir.Value, e types.Elem) *ir.Value {
	if e.Packed() && x.Elem().IsInt() && !x.Elem().Packed() && x.Elem() != types.I1 {
		x = n.binary("and", x, n.scalar(x.Elem(), 15))
		if !e.IsUnsigned() {
			x = n.with("sub", n.binary("xor", n.convertTo(x, types.I32), n.scalar(types.I32, 8)), 8)
		}
		return n.convertTo(x, e)
	}
	if greatest := map[types.Elem]float64{types.F8E4M3FN: 448, types.F8E5M2: 57344}[e]; greatest > 0 && n.int("saturate", 1) != 0 && x.Elem() != e {
		w := x
		if x.Elem().Bits() == 8 || !x.Elem().IsFloat() {
			w = n.convertTo(x, types.F32)
		}
		x = n.make("clamp", []*ir.Value{n.scalar(w.Elem(), -greatest), w, n.scalar(w.Elem(), greatest)}, nil)
	}
	return n.convertTo(x, e)
}

func convertClip(n *node) []*ir.Value {
	x := n.in(0)
	low, high := n.opt(1), n.opt(2)
	if n.opset < 11 {
		if n.attr("min") != nil {
			low = n.scalar(x.Elem(), n.float("min", 0))
		}
		if n.attr("max") != nil {
			high = n.scalar(x.Elem(), n.float("max", 0))
		}
	}
	if low != nil {
		x = n.binary("max", x, n.single(low))
	}
	if high != nil {
		x = n.binary("min", x, n.single(high))
	}
	return one(x)
}

// single is v, of one element, as a scalar.
func (n *node) single(v *ir.Value) *ir.Value { return n.reshape(v) }

func convertIsNaN(n *node) []*ir.Value { return one(n.compare("ne", n.in(0), n.in(0))) }

func convertIsInf(n *node) []*ir.Value {
	x := n.in(0)
	if !x.Elem().IsFloat() {
		unsupported("elements of type %s", x.Elem())
	}
	above := n.compare("eq", x, n.scalar(x.Elem(), math.Inf(1)))
	below := n.compare("eq", x, n.scalar(x.Elem(), math.Inf(-1)))
	switch up, down := n.int("detect_positive", 1) != 0, n.int("detect_negative", 1) != 0; {
	case up && down:
		return one(n.binary("or", above, below))
	case up:
		return one(above)
	case down:
		return one(below)
	}
	return one(n.splat(types.I1, 0, n.shape(x)...))
}

// convertMod is a remainder with the sign of the divisor, or of the dividend with fmod.
func convertMod(n *node) []*ir.Value {
	x, y := n.in(0), n.in(1)
	r := n.binary("rem", x, y)
	if n.int("fmod", 0) != 0 || x.Elem().IsUnsigned() {
		return one(r)
	}
	zero := n.scalar(x.Elem(), 0)
	differ := n.compare("ne", n.compare("lt", r, zero), n.compare("lt", y, zero))
	return one(n.choose(n.binary("and", differ, n.compare("ne", r, zero)), n.binary("add", r, y), r))
}

func convertPRelu(n *node) []*ir.Value {
	x, slope := n.in(0), n.in(1)
	if n.opset < 7 && n.rank(slope) == 1 && n.rank(x) > 2 { // one slope for each channel
		slope = n.channels(slope, n.rank(x))
	}
	return one(n.choose(n.compare("lt", x, n.scalar(x.Elem(), 0)), n.binary("mul", x, slope), x))
}

// channels is a list of a number for each channel, to broadcast with [N, C, …].
func (n *node) channels(v *ir.Value, rank int) *ir.Value {
	shape := slices.Repeat([]int{1}, max(rank-1, 1))
	shape[0] = product(n.shape(v))
	return n.reshape(v, shape...)
}

// convertPow computes in the wider of floating-point types, the result has the base's.
func convertPow(n *node) []*ir.Value {
	x, y := n.pair()
	e := x.Elem()
	in := e
	switch to := y.Elem(); {
	case !e.IsFloat() && to.IsFloat(), e.IsFloat() == to.IsFloat() && to.Bits() > e.Bits():
		in = to
	}
	if in.Bits() < 32 && in.IsFloat() {
		in = types.F32
	}
	return one(n.convertTo(n.binary("pow", n.convertTo(x, in), n.convertTo(y, in)), e))
}

// convertSwiGLU multiplies the second operand by the swish of the first.
func convertSwiGLU(n *node) []*ir.Value {
	gate, x := n.in(0), n.in(1)
	return one(n.convertTo(n.binary("mul", n.swish(n.wide(gate), n.float("alpha", 1)), n.wide(x)), x.Elem()))
}
