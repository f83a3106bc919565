package stablehlo

import (
	"math"

	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// unaries are the functions of one number, by StableHLO's names.
var unaries = map[string]string{
	"exponential": "exp", "log": "log", "log_plus_one": "log1p", "exponential_minus_one": "expm1",
	"sqrt": "sqrt", "rsqrt": "rsqrt", "cbrt": "cbrt", "tanh": "tanh", "logistic": "logistic",
	"floor": "floor", "ceil": "ceil", "round_nearest_even": "round", "round_nearest_afz": "round_half_away",
	"cosine": "cos", "sine": "sin", "tan": "tan", "not": "not",
	"popcnt": "popcnt", "count_leading_zeros": "count_leading_zeros",
	"erf": "erf", "chlo.erf": "erf", "chlo.erf_inv": "erfinv", "chlo.tan": "tan",
	"erfc": "erfc", "sinh": "sinh", "cosh": "cosh", "asinh": "asinh", "acosh": "acosh", "atanh": "atanh",
	"chlo.erfc": "erfc", "chlo.sinh": "sinh", "chlo.cosh": "cosh", "chlo.asinh": "asinh", "chlo.acosh": "acosh", "chlo.atanh": "atanh",
}

// binaries are the functions of two numbers.
var binaries = map[string]string{
	"add": "add", "subtract": "sub", "multiply": "mul", "divide": "div", "maximum": "max", "minimum": "min",
	"power": "pow", "remainder": "rem", "atan2": "atan2", "and": "and", "or": "or", "xor": "xor",
	"shift_left": "shift_left", "shift_right_logical": "shift_right_logical", "shift_right_arithmetic": "shift_right_arithmetic",
}

// onBools are the functions of i1 that stand for arithmetic on it.
var onBools = map[string]string{"add": "or", "max": "or", "mul": "and", "min": "and"}

func elementwise() map[string]conversion {
	m := map[string]conversion{
		"negate": negate, "abs": abs, "sign": sign, "is_finite": isFinite,
		"compare": compare, "select": selection, "clamp": clamp, "convert": convertElems,
		"chlo.broadcast_compare": compare, "chlo.broadcast_select": selection,
	}
	for name, to := range unaries {
		m[name] = func(n *node) []*ir.Value {
			n.takes(1)
			return n.computed(n.in, func(in []*ir.Value) *ir.Value { return n.unary(to, in[0]) })
		}
	}
	m["cosh"], m["chlo.cosh"] = cosh(m["cosh"]), cosh(m["chlo.cosh"])
	for name, to := range binaries {
		f := func(n *node) []*ir.Value {
			n.takes(2)
			n.sameElems(n.in)
			return n.computed(n.in, func(in []*ir.Value) *ir.Value { return n.arithmetic(to, in[0], in[1]) })
		}
		m[name], m["chlo.broadcast_"+name] = unbroadcast(f), implicit(f)
	}
	m["chlo.broadcast_select"], m["chlo.broadcast_compare"] = implicit(selection), implicit(compare)
	return m
}

// unbroadcast requires operands of one shape.
func unbroadcast(f conversion) conversion {
	return func(n *node) []*ir.Value {
		n.sameShapes(n.in)
		return f(n)
	}
}

// implicit permits operands that broadcast as in NumPy.
func implicit(f conversion) conversion {
	return func(n *node) []*ir.Value {
		if dims, ok := n.integers("broadcast_dimensions"); ok && len(n.in) == 2 {
			small, at := n.in[1], 1
			if len(n.shape(n.in[0])) < len(n.shape(small)) {
				small, at = n.in[0], 0
			}
			rank := len(n.shape(n.in[1-at]))
			n.must(len(dims) == len(n.shape(small)), "DM141", "broadcast_dimensions of %s has %d entries for %d dimensions", n.name, len(dims), len(n.shape(small)))
			shape := ones(rank)
			for i, d := range n.dims("broadcast_dimensions", rank) {
				shape[d] = n.shape(small)[i]
			}
			n.in[at] = n.broadcast(small, dims, shape)
		}
		return f(n)
	}
}

func ones(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = 1
	}
	return out
}

// sameElems fails for operands of different element types.
func (n *node) sameElems(vs []*ir.Value) {
	for _, v := range vs[1:] {
		n.must(v.Elem() == vs[0].Elem(), "DM142", "the operands of %s have the element types %s and %s", n.name, vs[0].Elem(), v.Elem())
	}
}

// sameShapes fails for operands of different shapes, which StableHLO does not
// broadcast.
func (n *node) sameShapes(vs []*ir.Value) {
	if n.batch != nil || n.bare || len(vs) == 0 {
		return
	}
	for _, v := range vs[1:] {
		a, b := n.shape(vs[0]), n.shape(v)
		ok := len(a) == len(b)
		for i := 0; ok && i < len(a); i++ {
			ok = a[i] == b[i]
		}
		n.must(ok, "DM142", "the operands of %s have the types %s and %s", n.name, vs[0].Type, v.Type)
	}
}

// widened is the element type in which numbers of e are computed.
func widened(e types.Elem) types.Elem {
	switch e {
	case types.I4:
		return types.I8
	case types.UI4:
		return types.UI8
	case types.F8E4M3FN, types.F8E5M2:
		return types.F32
	}
	return e
}

// computed is f of the operands in an element type that has arithmetic, converted back.
func (n *node) computed(in []*ir.Value, f func(in []*ir.Value) *ir.Value) []*ir.Value {
	wide := make([]*ir.Value, len(in))
	for i, v := range in {
		wide[i] = n.convert(v, widened(v.Elem()))
	}
	y := f(wide)
	if e := in[len(in)-1].Elem(); widened(e) != e && y.Elem() == widened(e) {
		y = n.convert(y, e)
	}
	return []*ir.Value{y}
}

// arithmetic is a function of two numbers, which may be i1.
func (n *node) arithmetic(name string, x, y *ir.Value) *ir.Value {
	if other, ok := onBools[name]; ok && x.Elem() == types.I1 {
		name = other
	}
	return n.binary(name, x, y)
}

func signed(e types.Elem) bool { return !e.IsUnsigned() }

func negate(n *node) []*ir.Value {
	n.takes(1)
	return n.computed(n.in, func(in []*ir.Value) *ir.Value {
		if e := in[0].Elem(); !signed(e) {
			return n.binary("sub", n.whole(e, 0), in[0])
		}
		return n.unary("neg", in[0])
	})
}

func abs(n *node) []*ir.Value {
	n.takes(1)
	if !signed(n.in[0].Elem()) {
		return n.in
	}
	return n.computed(n.in, func(in []*ir.Value) *ir.Value { return n.unary("abs", in[0]) })
}

func sign(n *node) []*ir.Value {
	n.takes(1)
	return n.computed(n.in, func(in []*ir.Value) *ir.Value {
		if e := in[0].Elem(); !signed(e) {
			return n.binary("min", in[0], n.whole(e, 1))
		}
		return n.unary("sign", in[0])
	})
}

// isFinite is |x| < ∞, which is false for NaN.
func isFinite(n *node) []*ir.Value {
	n.takes(1)
	return n.computed(n.in, func(in []*ir.Value) *ir.Value {
		n.must(in[0].Elem().IsFloat(), "DM142", "%s takes floating-point numbers, not %s", n.name, in[0].Elem())
		return n.compare("lt", n.unary("abs", in[0]), n.fill(in[0].Elem(), math.Inf(1)))
	})
}

var directions = map[string]string{"EQ": "eq", "NE": "ne", "LT": "lt", "LE": "le", "GT": "gt", "GE": "ge"}

func compare(n *node) []*ir.Value {
	n.takes(2)
	n.sameElems(n.in)
	if n.name == "stablehlo.compare" {
		n.sameShapes(n.in)
	}
	word, kind := n.keyword("comparison_direction"), n.keyword("compare_type")
	if word == "" && len(n.words) > 0 {
		word = n.words[0]
	}
	if kind == "" && len(n.words) > 1 {
		kind = n.words[1]
	}
	direction, ok := directions[word]
	n.must(ok, "DM141", "%s needs a comparison_direction: one of EQ, NE, LT, LE, GT, GE", n.name)
	return n.computed(n.in, func(in []*ir.Value) *ir.Value {
		if kind == "TOTALORDER" && in[0].Elem().IsFloat() && !n.loose {
			return n.compare(direction, n.totalOrder(in[0]), n.totalOrder(in[1]))
		}
		return n.compare(direction, in[0], in[1])
	})
}

// totalOrder are integers that compare as IEEE 754's totalOrder does the numbers x:
// the bits, with all but the sign inverted for negative numbers.
func (n *node) totalOrder(x *ir.Value) *ir.Value {
	bits := n.bitcast(x, intOfSize(x.Elem().Bytes(), true))
	e := bits.Elem()
	most := int64(1)<<(8*e.Bytes()-1) - 1
	mask := n.binary("shift_right_arithmetic", bits, n.whole(e, int(8*e.Bytes()-1)))
	return n.binary("xor", bits, n.binary("and", mask, n.constant(types.IntOf(tensorOf(e), most))))
}

// intOfSize is the integer type of so many bytes.
func intOfSize(bytes int64, signed bool) types.Elem {
	switch bytes {
	case 1:
		return either(signed, types.I8, types.UI8)
	case 2:
		return either(signed, types.I16, types.UI16)
	case 4:
		return either(signed, types.I32, types.UI32)
	}
	return either(signed, types.I64, types.UI64)
}

func either[T any](c bool, x, y T) T {
	if c {
		return x
	}
	return y
}

func (n *node) bitcast(x *ir.Value, e types.Elem) *ir.Value {
	if x.Elem() == e {
		return x
	}
	return n.make("bitcast", []*ir.Value{x}, nil, inElem(x, e)).Results[0]
}

func selection(n *node) []*ir.Value {
	n.takes(3)
	n.sameElems(n.in[1:])
	if n.name == "stablehlo.select" {
		n.sameShapes(n.in[1:])
		if n.batch == nil && !n.bare && len(n.shape(n.in[0])) > 0 {
			n.sameShapes(n.in)
		}
	}
	return []*ir.Value{n.choose(n.in[0], n.in[1], n.in[2])}
}

func clamp(n *node) []*ir.Value {
	n.takes(3)
	n.sameElems(n.in)
	return n.computed(n.in, func(in []*ir.Value) *ir.Value {
		if in[1].Elem() == types.I1 {
			return n.binary("and", n.binary("or", in[1], in[0]), in[2])
		}
		return n.op("clamp", in)
	})
}

// convertElems keeps the shape and takes the element type of the result.
func convertElems(n *node) []*ir.Value {
	n.takes(1)
	if n.batch == nil && !n.bare {
		n.must(n.result(0).Rank() == len(n.shape(n.in[0])), "DM143", "%s keeps the shape, but a %s becomes a %s", n.name, n.in[0].Type, n.result(0))
	}
	return []*ir.Value{n.convert(n.in[0], n.result(0).Elem)}
}

// cosh is its definition where the program compares it to the last place: chlo states it as sums of two
// exponentials of the operand and log ½, whose rounding is the larger one.
func cosh(otherwise conversion) conversion {
	return func(n *node) []*ir.Value {
		if !n.exact || len(n.in) != 1 {
			return otherwise(n)
		}
		return n.computed(n.in, func(in []*ir.Value) *ir.Value {
			e := in[0].Elem()
			x, half := n.convert(in[0], wideFloat(e)), n.fill(wideFloat(e), math.Log(0.5))
			return n.convert(n.binary("add", n.unary("exp", n.binary("add", x, half)), n.unary("exp", n.binary("sub", half, x))), e)
		})
	}
}

func constant(n *node) []*ir.Value {
	n.takes(0)
	t := n.result(0)
	d := n.dense("value", t)
	if (n.batch != nil || n.bare) && t.Rank() > 0 {
		n.unsupported("a constant with dimensions inside the region of a reduction is not supported")
	}
	return []*ir.Value{n.constant(d)}
}
