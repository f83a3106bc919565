package linalg

import (
	"math"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// element computes an element of o's result from one of each operand; e is the
// element type of the operands in the dialect, x is of the type wide(e).
type element func(b builder, o *ir.Op, e types.Elem, x values) *ir.Value

// elements are the functions of the element-wise ops, by name.
var elements map[string]element

func init() {
	elements = map[string]element{
		"abs": func(b builder, _ *ir.Op, e types.Elem, x values) *ir.Value {
			if e.IsFloat() {
				return b.make("math.absf", x[0].Type, x)
			}
			zero := b.number(x[0].Elem(), 0)
			return b.choose(b.is("lt", x[0], zero, false), b.two("arith.subi", zero, x[0]), x[0])
		},
		"neg": func(b builder, _ *ir.Op, e types.Elem, x values) *ir.Value {
			if e.IsFloat() {
				return b.make("arith.negf", x[0].Type, x)
			}
			return b.two("arith.subi", b.number(x[0].Elem(), 0), x[0])
		},
		"relu": func(b builder, _ *ir.Op, e types.Elem, x values) *ir.Value {
			return b.combine("max", e, x[0], b.number(x[0].Elem(), 0))
		},
		"sign": func(b builder, _ *ir.Op, _ types.Elem, x values) *ir.Value {
			t := x[0].Elem()
			zero := b.number(t, 0)
			below := b.choose(b.is("lt", x[0], zero, false), b.number(t, -1), x[0]) // ±0 and NaN stay
			return b.choose(b.is("gt", x[0], zero, false), b.number(t, 1), below)
		},
		"not": func(b builder, _ *ir.Op, _ types.Elem, x values) *ir.Value {
			return b.two("arith.xori", x[0], b.whole(x[0].Elem(), -1))
		},
		"rsqrt": func(b builder, _ *ir.Op, _ types.Elem, x values) *ir.Value {
			return b.two("arith.divf", b.number(x[0].Elem(), 1), b.make("math.sqrt", x[0].Type, x))
		},
		"erfinv": func(b builder, _ *ir.Op, _ types.Elem, x values) *ir.Value { return b.erfinv(x[0]) },
		"compare": func(b builder, o *ir.Op, e types.Elem, x values) *ir.Value {
			return b.is(op.Str(o, "direction"), x[0], x[1], e.IsUnsigned())
		},
		"select": func(b builder, _ *ir.Op, _ types.Elem, x values) *ir.Value { return b.choose(x[0], x[1], x[2]) },
		"clamp": func(b builder, _ *ir.Op, e types.Elem, x values) *ir.Value {
			return b.combine("min", e, b.combine("max", e, x[1], x[0]), x[2])
		},
		"bitcast": func(b builder, o *ir.Op, e types.Elem, x values) *ir.Value {
			to := signless(o.Results[0].Elem())
			bits := b.make("arith.bitcast", types.Scalar{Elem: to}, values{b.cast(x[0], wide(e), signless(e))})
			return b.cast(bits, to, wide(to))
		},
		"convert": func(b builder, o *ir.Op, e types.Elem, x values) *ir.Value {
			return b.cast(x[0], e, o.Results[0].Elem())
		},
	}
	for name, upstream := range map[string]string{"shift_left": "arith.shli", "shift_right_logical": "arith.shrui", "shift_right_arithmetic": "arith.shrsi"} {
		elements[name] = func(b builder, _ *ir.Op, _ types.Elem, x values) *ir.Value {
			t := x[0].Elem()
			bits := b.whole(t, t.Bits()-1)
			inside := b.is("le", x[1], bits, true)
			v := b.two(upstream, x[0], b.choose(inside, x[1], bits)) // MLIR leaves larger shifts open
			if upstream == "arith.shrsi" {
				return v
			}
			return b.choose(inside, v, b.whole(t, 0))
		}
	}
	for name, upstream := range map[string]string{
		"exp": "exp", "log": "log", "log1p": "log1p", "expm1": "expm1", "sqrt": "sqrt", "cbrt": "cbrt", "tanh": "tanh",
		"erf": "erf", "floor": "floor", "ceil": "ceil", "round": "roundeven", "round_half_away": "round", "cos": "cos", "sin": "sin",
		"tan": "tan", "erfc": "erfc", "sinh": "sinh", "cosh": "cosh", "asinh": "asinh", "acosh": "acosh", "atanh": "atanh", "popcnt": "ctpop", "count_leading_zeros": "ctlz",
	} {
		elements[name] = func(b builder, _ *ir.Op, _ types.Elem, x values) *ir.Value {
			return b.make("math."+upstream, x[0].Type, x)
		}
	}
	for _, name := range []string{"add", "sub", "mul", "div", "max", "min", "pow", "rem", "atan2", "and", "or", "xor"} {
		elements[name] = func(b builder, _ *ir.Op, e types.Elem, x values) *ir.Value { return b.combine(name, e, x[0], x[1]) }
	}
}

// combine is the binary op of that name on two scalars of type wide(e).
func (b builder) combine(name string, e types.Elem, x, y *ir.Value) *ir.Value {
	switch {
	case e.IsFloat():
		return b.two(map[string]string{
			"add": "arith.addf", "sub": "arith.subf", "mul": "arith.mulf", "div": "arith.divf", "rem": "arith.remf",
			"max": "arith.maximumf", "min": "arith.minimumf", "pow": "math.powf", "atan2": "math.atan2",
		}[name], x, y)
	case e == types.I1:
		if s := (map[string]string{"add": "or", "mul": "and", "max": "or", "min": "and"})[name]; s != "" {
			name = s
		}
	}
	sign := "s"
	if e.IsUnsigned() {
		sign = "u"
	}
	switch name {
	case "max", "min":
		return b.two("arith."+name+sign+"i", x, y)
	case "div", "rem":
		return b.quotient("arith."+name+sign+"i", name == "div", e, x, y)
	case "pow":
		return b.power(e, x, y)
	}
	return b.two("arith."+name+"i", x, y)
}

// quotient divides integers, where MLIR leaves it open too: by 0 a quotient has all
// bits set and a remainder is x; the least number by -1 wraps.
func (b builder) quotient(name string, div bool, e types.Elem, x, y *ir.Value) *ir.Value {
	t := x.Elem()
	zero, ones := b.is("eq", y, b.number(t, 0), false), b.whole(t, -1)
	unsafe := zero
	if !e.IsUnsigned() {
		least := b.is("eq", x, b.whole(t, -1<<(t.Bits()-1)), false)
		unsafe = b.two("arith.ori", zero, b.two("arith.andi", least, b.is("eq", y, ones, false)))
	}
	q := b.two(name, x, b.choose(unsafe, b.whole(t, 1), y))
	if div {
		return b.choose(zero, ones, q)
	}
	return b.choose(zero, x, q)
}

// power multiplies squares of x, one for each bit of y, and wraps; a negative power of
// anything but 1 and -1 is 0.
func (b builder) power(e types.Elem, x, y *ir.Value) *ir.Value {
	t := x.Elem()
	one := b.whole(t, 1)
	r := b.nest([]int64{t.Bits()}, values{one, x, y}, func(in builder, _, c values) values {
		odd := in.is("eq", in.two("arith.andi", c[2], one), one, false)
		return values{in.choose(odd, in.two("arith.muli", c[0], c[1]), c[0]), in.two("arith.muli", c[1], c[1]), in.two("arith.shrui", c[2], one)}
	})[0]
	if e.IsUnsigned() {
		return r
	}
	unit := b.two("arith.ori", b.is("eq", x, one, false), b.is("eq", x, b.whole(t, -1), false))
	return b.choose(b.two("arith.ori", unit, b.is("ge", y, b.whole(t, 0), false)), r, b.whole(t, 0))
}

// cut is x, a float, as an integer.
func (b builder) cut(x *ir.Value, to types.Elem) *ir.Value {
	if x.Elem() != types.F64 { // which holds the ends of most types
		x = b.make("arith.extf", types.Scalar{Elem: types.F64}, values{x})
	}
	t, bits := signless(to), int(to.Bits())
	lo, hi, first, last, name := -math.Ldexp(1, bits-1), math.Ldexp(1, bits-1), int64(-1)<<(bits-1), int64(1)<<(bits-1)-1, "arith.fptosi"
	if to.IsUnsigned() {
		lo, hi, first, last, name = 0, math.Ldexp(1, bits), 0, -1, "arith.fptoui"
	}
	x = b.make("math.trunc", x.Type, values{x})
	low, high := b.is("le", x, b.number(types.F64, lo), false), b.is("ge", x, b.number(types.F64, hi), false)
	nan := b.is("unordered", x, x, false)
	out := b.two("arith.ori", nan, b.two("arith.ori", low, high))
	y := b.make(name, types.Scalar{Elem: t}, values{b.choose(out, b.number(types.F64, 0), x)})
	y = b.choose(low, b.whole(t, first), y)
	y = b.choose(high, b.whole(t, last), y)
	return b.choose(nan, b.whole(t, 0), y)
}

// erfinv begins with the approximation of Giles (Approximating the erfinv function,
// GPU Computing Gems, 2011), good to single precision, and takes two steps of Newton's
// method in double precision: near ±1 by the complement of the error function, which
// does not lose digits there.
func (b builder) erfinv(x *ir.Value) *ir.Value {
	e := x.Elem()
	x = b.cast(x, e, types.F64)
	c := func(v float64) *ir.Value { return b.number(types.F64, v) }
	add := func(x, y *ir.Value) *ir.Value { return b.two("arith.addf", x, y) }
	sub := func(x, y *ir.Value) *ir.Value { return b.two("arith.subf", x, y) }
	mul := func(x, y *ir.Value) *ir.Value { return b.two("arith.mulf", x, y) }
	of := func(name string, x *ir.Value) *ir.Value { return b.make("math."+name, x.Type, values{x}) }
	poly := func(x *ir.Value, coefficients ...float64) *ir.Value {
		y := c(coefficients[0])
		for _, v := range coefficients[1:] {
			y = add(mul(y, x), c(v))
		}
		return y
	}
	mag := of("absf", x)
	rest := sub(c(1), mag)
	w := of("absf", of("log", mul(rest, add(c(1), mag))))
	mid := poly(sub(w, c(2.5)), 2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087, -0.00125372503, -0.00417768164, 0.246640727, 1.50140941)
	end := poly(sub(of("sqrt", w), c(3)), -0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773, -0.0076224613, 0.00943887047, 1.00167406, 2.83297682)
	y := mul(mag, b.choose(b.is("lt", w, c(5), false), mid, end))
	near := b.is("lt", mag, c(0.5), false)
	for range 2 {
		slope := mul(c(math.Sqrt(math.Pi)/2), of("exp", mul(y, y)))
		miss := b.choose(near, sub(mag, of("erf", y)), sub(of("erfc", y), rest))
		y = add(y, mul(miss, slope))
	}
	y = b.choose(b.is("eq", mag, c(1), false), c(math.Inf(1)), y)
	y = b.choose(b.is("gt", mag, c(1), false), c(math.NaN()), y)
	return b.cast(b.make("math.copysign", y.Type, values{y, x}), types.F64, e)
}
