package scalar

import (
	"math"

	"dmir/dialect/types"

	"github.com/llir/llvm/ir/constant"
	"github.com/llir/llvm/ir/enum"
	lltypes "github.com/llir/llvm/ir/types"
	"github.com/llir/llvm/ir/value"
)

// convert is v of the type from as an element of to, in its register type: rounded
// once to floats, wrapped to integers from integers; from floats truncated towards
// zero, saturated, and 0 for NaN. As i1 it is whether v is not 0.
func (b builder) convert(v value.Value, from, to types.Elem) value.Value {
	switch {
	case from == to && !small(to):
		return v
	case to.IsFloat() && from.IsFloat():
		return b.rounded(v, to)
	case to.IsFloat():
		return b.fromWhole(v, from, to)
	case to == types.I1 && from.IsFloat():
		return b.NewFCmp(enum.FPredUNE, v, like(v, 0))
	case to == types.I1 && from == types.I1:
		return v
	case to == types.I1:
		return b.NewICmp(enum.IPredNE, v, like(v, 0))
	case from.IsFloat():
		return b.truncated(v, to)
	}
	return b.wrapped(b.extended(v, from, Register(to)), to)
}

// rounded is v, a float or a double, rounded to elem, in its register type.
func (b builder) rounded(v value.Value, elem types.Elem) value.Value {
	double := v.Type().Equal(lltypes.Double)
	switch {
	case elem == types.F64 && !double:
		return b.NewFPExt(v, lltypes.Double)
	case elem == types.F64 || elem == types.F32 && !double:
		return v
	case elem == types.F32:
		return b.NewFPTrunc(v, lltypes.Float)
	case double:
		v = b.toOdd(v)
	}
	return b.widen(b.narrow(v, elem), elem)
}

// toOdd is the double v as a float, rounded to odd: rounding it once more to a narrower
// type gives what rounding v to it gives.
func (b builder) toOdd(v value.Value) value.Value {
	f := b.NewFPTrunc(v, lltypes.Float)
	back := b.NewFPExt(f, lltypes.Double)
	n := b.bits(f)
	above := b.NewFCmp(enum.FPredOGT, b.intrinsic("fabs", back), b.intrinsic("fabs", v))
	odd := b.NewOr(b.NewSub(n, b.NewZExt(above, lltypes.I32)), i32(1))
	return b.choose(b.NewFCmp(enum.FPredONE, back, v), b.float(odd), f)
}

// fromWhole is the integer v as a float. What has 64 bits becomes a double first, as
// in the reference executor.
func (b builder) fromWhole(v value.Value, from, to types.Elem) value.Value {
	t := Register(to)
	if from.Bytes() == 8 || from.Bytes() == 4 && small(to) {
		t = lltypes.Double
	}
	var f value.Value
	if from.IsUnsigned() {
		f = b.NewUIToFP(v, t)
	} else {
		f = b.NewSIToFP(v, t)
	}
	return b.rounded(f, to)
}

// truncated is the float v as an integer other than i1. The machine's instruction sees
// only what it can convert.
func (b builder) truncated(v value.Value, to types.Elem) value.Value {
	bits := int(to.Bits())
	lo, hi, last := 0.0, math.Ldexp(1, bits), int64(-1)
	if !to.IsUnsigned() {
		lo, hi, last = -math.Ldexp(1, bits-1), math.Ldexp(1, bits-1), math.MaxInt64>>(64-bits)
	}
	t := Register(to)
	inside := b.NewAnd(b.NewFCmp(enum.FPredOGT, v, like(v, lo)), b.NewFCmp(enum.FPredOLT, v, like(v, hi)))
	safe := b.choose(inside, v, like(v, 0)) // NaN becomes 0
	var n value.Value
	switch {
	case bits < 32:
		n = b.NewTrunc(b.NewFPToSI(safe, lltypes.I32), t)
	case to.IsUnsigned():
		n = b.NewFPToUI(safe, t)
	default:
		n = b.NewFPToSI(safe, t)
	}
	first := like(n, 0)
	if !to.IsUnsigned() {
		first = whole(t, -last-1)
	}
	n = b.choose(b.NewFCmp(enum.FPredOLE, v, like(v, lo)), first, n)
	if bits == 4 && to.IsUnsigned() {
		last = 15
	}
	return b.choose(b.NewFCmp(enum.FPredOGE, v, like(v, hi)), whole(t, last), n)
}

// extended is the low bits of the integer v of the type from, or v extended by its sign.
func (b builder) extended(v value.Value, from types.Elem, t lltypes.Type) value.Value {
	if from.IsUnsigned() || bitsOf(v.Type()) >= bitsOf(t) {
		return b.resized(v, t)
	}
	return b.NewSExt(v, t)
}

// resized is the low bits of the integer v, or v with zeros before it.
func (b builder) resized(v value.Value, t lltypes.Type) value.Value {
	from, to := bitsOf(v.Type()), bitsOf(t)
	if c, ok := v.(*constant.Int); ok && from == to {
		return c
	}
	switch {
	case from > to:
		return b.NewTrunc(v, t)
	case from < to:
		return b.NewZExt(v, t)
	}
	return v
}

// wrapped is v, an i8 of which the low half is an i4 or ui4, extended from it; of the
// other types it is v.
func (b builder) wrapped(v value.Value, elem types.Elem) value.Value {
	switch elem {
	case types.I4:
		return b.NewAShr(b.NewShl(v, like(v, 4)), like(v, 4))
	case types.UI4:
		return b.NewAnd(v, like(v, 15))
	}
	return v
}
