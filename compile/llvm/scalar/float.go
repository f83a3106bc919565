package scalar

import (
	"dmir/dialect/types"

	"github.com/llir/llvm/ir/constant"
	"github.com/llir/llvm/ir/enum"
	"github.com/llir/llvm/ir/value"
)

func init() {
	register(map[string]scalar{
		"add": {
			func(b builder, a []value.Value) value.Value { return b.fadd(a[0], a[1]) },
			bitwise(func(b builder, a []value.Value) value.Value { return b.NewAdd(a[0], a[1]) }), or,
		},
		"sub": {
			func(b builder, a []value.Value) value.Value { return b.fsub(a[0], a[1]) },
			bitwise(func(b builder, a []value.Value) value.Value { return b.NewSub(a[0], a[1]) }), nil,
		},
		"mul": {
			func(b builder, a []value.Value) value.Value { return b.fmul(a[0], a[1]) },
			bitwise(func(b builder, a []value.Value) value.Value { return b.NewMul(a[0], a[1]) }), and,
		},
		"div": {func(b builder, a []value.Value) value.Value { return b.NewFDiv(a[0], a[1]) }, quotient, nil},
		"rem": {library("fmod"), remainder, nil},
		"max": {func(b builder, a []value.Value) value.Value { return b.extreme(enum.FPredOGT, a[0], a[1]) }, greatest, or},
		"min": {func(b builder, a []value.Value) value.Value { return b.extreme(enum.FPredOLT, a[0], a[1]) }, least, and},
		"and": {nil, bitwise(and), and},
		"or":  {nil, bitwise(or), or},
		"xor": {nil, bitwise(xor), xor},
		"not": {
			nil,
			bitwise(func(b builder, a []value.Value) value.Value { return b.NewXor(a[0], like(a[0], -1)) }),
			func(b builder, a []value.Value) value.Value { return b.NewXor(a[0], constant.True) },
		},
		"neg": {
			func(b builder, a []value.Value) value.Value { return b.NewFNeg(a[0]) },
			bitwise(func(b builder, a []value.Value) value.Value { return b.NewSub(like(a[0], 0), a[0]) }), nil,
		},
		"abs":  {func(b builder, a []value.Value) value.Value { return b.intrinsic("fabs", a[0]) }, magnitude, nil},
		"sign": {signum, signOf, nil},
		"relu": {
			// NaN stays, and -0 becomes 0.
			func(b builder, a []value.Value) value.Value {
				return b.choose(b.NewFCmp(enum.FPredOLE, a[0], like(a[0], 0)), like(a[0], 0), a[0])
			},
			func(b builder, elem types.Elem, a []value.Value) value.Value {
				return greatest(b, elem, []value.Value{a[0], like(a[0], 0)})
			}, nil,
		},
		"sqrt": {intrinsic("sqrt"), nil, nil},
		"rsqrt": {func(b builder, a []value.Value) value.Value {
			return b.NewFDiv(like(a[0], 1), b.intrinsic("sqrt", a[0]))
		}, nil, nil},
		"floor":           {intrinsic("floor"), nil, nil},
		"ceil":            {intrinsic("ceil"), nil, nil},
		"round":           {intrinsic("rint"), nil, nil}, // the mode is to nearest, ties to even
		"round_half_away": {intrinsic("round"), nil, nil},
		"atan2":           {library("atan2"), nil, nil},

		"popcnt": {nil, bitwise(func(b builder, a []value.Value) value.Value { return b.intrinsic("ctpop", a[0]) }), nil},
		"count_leading_zeros": {
			nil,
			bitwise(func(b builder, a []value.Value) value.Value { return b.intrinsic("ctlz", a[0], constant.False) }), nil,
		},
		"shift_left":             {nil, shift(func(b builder, x, y value.Value) value.Value { return b.NewShl(x, y) }, false), nil},
		"shift_right_logical":    {nil, shift(func(b builder, x, y value.Value) value.Value { return b.NewLShr(x, y) }, false), nil},
		"shift_right_arithmetic": {nil, shift(func(b builder, x, y value.Value) value.Value { return b.NewAShr(x, y) }, true), nil},
	})
}

// intrinsic is LLVM's function of that name, and library the C library's.
func intrinsic(name string) function {
	return func(b builder, a []value.Value) value.Value { return b.intrinsic(name, a...) }
}

func library(name string) function {
	return func(b builder, a []value.Value) value.Value { return b.library(name, a...) }
}

// extreme is max or min: NaN if an operand is NaN; of two zeros max is +0 if there is
// one, min -0.
func (b builder) extreme(beats enum.FPred, x, y value.Value) value.Value {
	if c, ok := y.(*constant.Float); ok && !c.NaN && c.X.Sign() != 0 {
		// With a number other than 0 it is x if x beats it or is NaN.
		either := map[enum.FPred]enum.FPred{enum.FPredOGT: enum.FPredUGT, enum.FPredOLT: enum.FPredULT}[beats]
		return b.choose(b.NewFCmp(either, x, y), x, y)
	}
	v := b.choose(b.NewFCmp(beats, x, y), x, y) // y if one is NaN
	v = b.choose(b.isNaN(x), x, v)
	var both value.Value
	if beats == enum.FPredOGT {
		both = b.NewAnd(b.bits(x), b.bits(y))
	} else {
		both = b.NewOr(b.bits(x), b.bits(y))
	}
	return b.choose(b.NewFCmp(enum.FPredOEQ, x, y), b.float(both), v)
}

// signum is -1, 0 or 1; zeros and NaN stay as they are.
func signum(b builder, a []value.Value) value.Value {
	x := a[0]
	zero := like(x, 0)
	v := b.choose(b.NewFCmp(enum.FPredOLT, x, zero), like(x, -1), x)
	return b.choose(b.NewFCmp(enum.FPredOGT, x, zero), like(x, 1), v)
}
