package simplify

import (
	"dmir/dialect/ir"
	"dmir/dialect/types"
)

func convertRules() []Rule {
	return []Rule{{
		Name: "convert-chain", Doc: "A convert to the type that a value has is the value; after a convert that loses nothing, the value is converted at once.",
		Ops: []string{"convert"}, apply: convertChain,
	}}
}

func convertChain(_ *rewriter, o *ir.Op) bool {
	x := o.Operands[0]
	if elemOf(x) == elemOf(o.Results[0]) {
		return use(o, x)
	}
	inner := from(x, "convert")
	if inner == nil || !lossless(elemOf(inner.Operands[0]), elemOf(x)) {
		return false
	}
	first, last := elemOf(inner.Operands[0]), elemOf(o.Results[0])
	if first.IsInt() && elemOf(x).IsFloat() && last.IsInt() && last != types.I1 && !lossless(first, last) {
		return false // too large a number is cut in another way coming from a float
	}
	if origin := inner.Operands[0]; !use(o, origin) {
		o.SetOperand(0, origin)
	}
	return true
}

// float is the precision and the range of a floating-point type: significant
// bits, the least exponent of a subnormal and the exponent of the largest value.
type float struct{ bits, least, most int }

var floats = map[types.Elem]float{
	types.F64: {53, -1074, 1023}, types.F32: {24, -149, 127}, types.F16: {11, -24, 15}, types.BF16: {8, -133, 127},
	types.F8E4M3FN: {4, -9, 8}, types.F8E5M2: {3, -16, 15},
}

// lossless reports whether every value of a is one of b: converting to b and
// then further gives what converting at once does. Infinities that b lacks
// (f8E4M3FN) count as lost.
func lossless(a, b types.Elem) bool {
	switch {
	case a == b:
		return true
	case a.IsFloat() && b.IsFloat():
		x, y := floats[a], floats[b]
		return x.bits <= y.bits && x.least >= y.least && x.most <= y.most && b != types.F8E4M3FN
	case a.IsInt() && b.IsFloat():
		y := floats[b]
		return magnitude(a) <= y.bits && magnitude(a) <= y.most
	case a.IsInt() && b.IsInt() && b != types.I1:
		if a.IsUnsigned() == b.IsUnsigned() || a.IsUnsigned() {
			return magnitude(a) <= magnitude(b)
		}
	}
	return false
}

// magnitude is the number of bits of an integer type's largest value.
func magnitude(e types.Elem) int {
	switch {
	case e == types.I1:
		return 1
	case e.IsUnsigned():
		return int(8 * e.Bytes())
	}
	return int(8*e.Bytes()) - 1
}
