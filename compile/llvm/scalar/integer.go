package scalar

import (
	"dmir/dialect/types"

	"github.com/llir/llvm/ir"
	"github.com/llir/llvm/ir/enum"
	lltypes "github.com/llir/llvm/ir/types"
	"github.com/llir/llvm/ir/value"
)

// function is a scalar function where the type of the operands does not matter, and
// wholeFunction one of integers of both signs.
type (
	function      = func(b builder, a []value.Value) value.Value
	wholeFunction = func(b builder, elem types.Elem, a []value.Value) value.Value
)

func or(b builder, a []value.Value) value.Value  { return b.NewOr(a[0], a[1]) }
func and(b builder, a []value.Value) value.Value { return b.NewAnd(a[0], a[1]) }
func xor(b builder, a []value.Value) value.Value { return b.NewXor(a[0], a[1]) }

// bitwise is f for integers, whose signs do not matter to it.
func bitwise(f function) wholeFunction {
	return func(b builder, _ types.Elem, a []value.Value) value.Value { return f(b, a) }
}

// extreme is the one of two integers that compares so with the other.
func extreme(signed, other enum.IPred) wholeFunction {
	return func(b builder, elem types.Elem, a []value.Value) value.Value {
		p := signed
		if elem.IsUnsigned() {
			p = other
		}
		return b.choose(b.NewICmp(p, a[0], a[1]), a[0], a[1])
	}
}

var (
	greatest = extreme(enum.IPredSGT, enum.IPredUGT)
	least    = extreme(enum.IPredSLT, enum.IPredULT)
)

// quotient is x / y towards zero: with all bits set where y is 0, and the least number
// over -1 is itself. The machine's instruction traps there, and gets a 1.
func quotient(b builder, elem types.Elem, a []value.Value) value.Value {
	x, y := a[0], a[1]
	none := b.NewICmp(enum.IPredEQ, y, like(y, 0))
	if elem.IsUnsigned() {
		return b.choose(none, like(x, -1), b.NewUDiv(x, b.choose(none, like(y, 1), y)))
	}
	minus := b.NewICmp(enum.IPredEQ, y, like(y, -1))
	q := b.NewSDiv(x, b.choose(b.NewOr(none, minus), like(y, 1), y))
	return b.choose(none, like(x, -1), b.choose(minus, b.NewSub(like(x, 0), x), q))
}

// remainder is x where y is 0.
func remainder(b builder, elem types.Elem, a []value.Value) value.Value {
	x, y := a[0], a[1]
	none := b.NewICmp(enum.IPredEQ, y, like(y, 0))
	if elem.IsUnsigned() {
		return b.choose(none, x, b.NewURem(x, b.choose(none, like(y, 1), y)))
	}
	minus := b.NewICmp(enum.IPredEQ, y, like(y, -1))
	r := b.NewSRem(x, b.choose(b.NewOr(none, minus), like(y, 1), y)) // by 1: 0, as by -1
	return b.choose(none, x, r)
}

// shift moves the bits of x by y. Where y is negative or at least their number, it moves
// them all out: the result is 0, or, if copies of the sign enter, these.
func shift(move func(b builder, x, y value.Value) value.Value, copies bool) wholeFunction {
	return func(b builder, elem types.Elem, a []value.Value) value.Value {
		x, y := a[0], a[1]
		in := b.NewICmp(enum.IPredULT, y, like(y, float64(elem.Bits())))
		if copies {
			return move(b, x, b.choose(in, y, like(y, float64(elem.Bits()-1))))
		}
		return b.choose(in, move(b, x, b.choose(in, y, like(y, 0))), like(x, 0))
	}
}

// magnitude of the least number is itself.
func magnitude(b builder, elem types.Elem, a []value.Value) value.Value {
	if elem.IsUnsigned() {
		return a[0]
	}
	x := a[0]
	return b.choose(b.NewICmp(enum.IPredSLT, x, like(x, 0)), b.NewSub(like(x, 0), x), x)
}

// signOf is -1, 0 or 1.
func signOf(b builder, elem types.Elem, a []value.Value) value.Value {
	x := a[0]
	above := b.NewZExt(b.NewICmp(enum.IPredNE, x, like(x, 0)), x.Type())
	if elem.IsUnsigned() {
		return above
	}
	return b.NewOr(above, b.NewAShr(x, like(x, float64(elem.Bits()-1))))
}

// power is x to the y, wrapping, in 64 bits, whose low ones are those of every narrower
// type; a negative power of anything but 1 and -1 is 0.
func power(b builder, elem types.Elem, a []value.Value) value.Value {
	x, y := b.extended(a[0], elem, lltypes.I64), b.extended(a[1], elem, lltypes.I64)
	fn := b.M.Once("dm_pow_i64", func() *ir.Func { return powerFunction(b) })
	r := b.Call(fn, x, y)
	if !elem.IsUnsigned() {
		odd := b.NewICmp(enum.IPredNE, b.NewAnd(y, i64(1)), i64(0))
		ones := b.choose(b.NewICmp(enum.IPredEQ, x, i64(1)), i64(1), i64(0))
		minus := b.NewICmp(enum.IPredEQ, x, i64(-1))
		r = b.choose(b.NewICmp(enum.IPredSLT, y, i64(0)), b.choose(minus, b.choose(odd, i64(-1), i64(1)), ones), r)
	}
	return b.resized(r, a[0].Type())
}

// powerFunction squares and multiplies by the bits of the exponent.
func powerFunction(b builder) *ir.Func {
	x, y := ir.NewParam("x", lltypes.I64), ir.NewParam("y", lltypes.I64)
	fn := b.M.NewFunc("dm_pow_i64", lltypes.I64, x, y)
	fn.Linkage = enum.LinkageInternal
	f := b.M.NewFuncBody(fn)
	last := f.While([]value.Value{i64(1), x, y},
		func(acc []value.Value) value.Value { return f.NewICmp(enum.IPredNE, acc[2], i64(0)) },
		func(acc []value.Value) []value.Value {
			odd := f.NewTrunc(acc[2], lltypes.I1)
			r := f.NewSelect(odd, f.NewMul(acc[0], acc[1]), acc[0])
			return []value.Value{r, f.NewMul(acc[1], acc[1]), f.NewLShr(acc[2], i64(1))}
		})
	f.NewRet(last[0])
	return fn
}

// compare is whether the comparison of that direction holds.
func (b builder) compare(direction string, elem types.Elem, x, y value.Value) value.Value {
	p := comparisons[direction]
	switch {
	case elem.IsFloat():
		return b.NewFCmp(p.float, x, y)
	case elem.IsUnsigned():
		return b.NewICmp(p.unsigned, x, y)
	}
	return b.NewICmp(p.signed, x, y)
}

// comparisons by direction; with NaN all are false but ne.
var comparisons = map[string]struct {
	float            enum.FPred
	signed, unsigned enum.IPred
}{
	"eq": {enum.FPredOEQ, enum.IPredEQ, enum.IPredEQ},
	"ne": {enum.FPredUNE, enum.IPredNE, enum.IPredNE},
	"lt": {enum.FPredOLT, enum.IPredSLT, enum.IPredULT},
	"le": {enum.FPredOLE, enum.IPredSLE, enum.IPredULE},
	"gt": {enum.FPredOGT, enum.IPredSGT, enum.IPredUGT},
	"ge": {enum.FPredOGE, enum.IPredSGE, enum.IPredUGE},
}
