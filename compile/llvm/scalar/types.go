package scalar

import (
	"math"

	"dmir/dialect/types"

	"github.com/llir/llvm/ir/constant"
	lltypes "github.com/llir/llvm/ir/types"
)

// Register is the type in which an element is computed. Integers of both signs are
// of one type; an i4 or ui4 is an i8 that is sign- or zero-extended.
func Register(elem types.Elem) lltypes.Type {
	switch {
	case elem == types.F64:
		return lltypes.Double
	case elem.IsFloat():
		return lltypes.Float
	case elem == types.I1:
		return lltypes.I1
	}
	return lltypes.NewInt(uint64(elem.Bytes() * 8))
}

// Storage is the type of an element in memory; of i4 and ui4 it is a byte, which has
// two.
func Storage(elem types.Elem) lltypes.Type {
	switch elem {
	case types.F64:
		return lltypes.Double
	case types.F32:
		return lltypes.Float
	case types.F16:
		return lltypes.Half
	}
	return lltypes.NewInt(uint64(elem.Bytes() * 8))
}

// small reports whether elem is a float of fewer than 32 bits.
func small(elem types.Elem) bool { return elem.IsFloat() && elem.Bytes() < 4 }

// number is v as a constant of the type t, float or double, rounded.
func number(t lltypes.Type, v float64) constant.Constant {
	if t.Equal(lltypes.Float) {
		v = float64(float32(v))
	}
	return constant.NewFloat(t.(*lltypes.FloatType), v)
}

// whole is the constant of the integer type t that has the low bits of v.
func whole(t lltypes.Type, v int64) constant.Constant {
	n := t.(*lltypes.IntType)
	if n.BitSize == 1 {
		return constant.NewBool(v&1 != 0)
	}
	shift := 64 - n.BitSize
	return constant.NewInt(n, v<<shift>>shift)
}

func f32(v float64) constant.Constant { return number(lltypes.Float, v) }
func f64(v float64) constant.Constant { return number(lltypes.Double, v) }
func i32(v int64) constant.Constant   { return whole(lltypes.I32, v) }
func i64(v int64) constant.Constant   { return whole(lltypes.I64, v) }

// word is the 64 bits of v.
func word(v uint64) constant.Constant { return i64(int64(v)) }

var inf = math.Inf(1)
