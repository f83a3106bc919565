package pattern

import (
	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// Converted is the convert that the convert o is of; exact reports whether
// converting its operand at once gives the same. inner is nil where there is none.
func Converted(o *ir.Op) (inner *ir.Op, exact bool) {
	if o.Name != "dm.convert" {
		return nil, false
	}
	inner = From(o.Operands[0], "dm.convert")
	if inner == nil {
		return nil, false
	}
	first, between, last := inner.Operands[0].Elem(), o.Operands[0].Elem(), o.Results[0].Elem()
	if first.IsInt() && between.IsFloat() && last.IsInt() && last != types.I1 && !lossless(first, last) {
		return inner, false // too large a number is cut in another way coming from a float
	}
	return inner, lossless(first, between)
}

// float is the precision and the range of a floating-point type: significant
// bits, the least exponent of a subnormal and the exponent of the largest value.
type float struct{ bits, least, most int }

var floats = map[types.Elem]float{
	types.F64: {53, -1074, 1023}, types.F32: {24, -149, 127}, types.F16: {11, -24, 15}, types.BF16: {8, -133, 127},
	types.F8E4M3FN: {4, -9, 8}, types.F8E5M2: {3, -16, 15},
}

// Significant is the number of significant bits of an element type: of the
// significand with its implicit bit for floats, of the magnitude for integers.
func Significant(e types.Elem) int {
	switch {
	case e.IsFloat():
		return floats[e].bits
	case e == types.I1:
		return 1
	case e.IsUnsigned():
		return int(e.Bits())
	}
	return int(e.Bits()) - 1
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
		return Significant(a) <= y.bits && Significant(a) <= y.most
	case a.IsInt() && b.IsInt() && b != types.I1:
		if a.IsUnsigned() == b.IsUnsigned() || a.IsUnsigned() {
			return Significant(a) <= Significant(b)
		}
	}
	return false
}
