package scalar

import (
	"math"

	"dmir/compile/llvm/code"
	"dmir/dialect/types"

	"github.com/llir/llvm/ir"
	"github.com/llir/llvm/ir/enum"
	lltypes "github.com/llir/llvm/ir/types"
	"github.com/llir/llvm/ir/value"
)

// Combine is the combination of two partial results of a reduction of that kind. With
// reassociate a sum or a product of floats may be computed in any order, which lets
// loops over it become vector code; for max and min see Accumulator.
func (l *Lib) Combine(f *code.Func, kind string, elem types.Elem, a, b value.Value, reassociate bool) value.Value {
	v := l.binary(f, kind, elem, a, b)
	if reassociate {
		switch i := v.(type) {
		case *ir.InstFAdd:
			i.FastMathFlags = append(i.FastMathFlags, enum.FastMathFlagReassoc)
		case *ir.InstFMul:
			i.FastMathFlags = append(i.FastMathFlags, enum.FastMathFlagReassoc)
		}
	}
	return v
}

// Accumulator is the form in which a loop holds what a reduction has combined so far.
// LLVM makes no vector code of max and min with NaN, but of those of integers: floats are
// held as integers of the same order, in which NaN is beyond all and -0 below 0.
type Accumulator struct {
	l           *Lib
	kind        string
	elem        types.Elem
	reassociate bool
	ordered     bool
}

// Accumulator is for a reduction of that kind.
func (l *Lib) Accumulator(kind string, elem types.Elem, reassociate bool) Accumulator {
	return Accumulator{l, kind, elem, reassociate, elem.IsFloat() && (kind == "max" || kind == "min")}
}

// Begin is what holds v, such as the identity or an earlier result.
func (c Accumulator) Begin(f *code.Func, v value.Value) value.Value {
	if !c.ordered {
		return v
	}
	b := builder{Func: f}
	n := b.bits(v)
	nan := greatestOf(n.Type()) // beyond all numbers
	if c.kind == "min" {
		nan = like(n, -1)
	}
	return b.inOrder(b.choose(b.isNaN(v), nan, n))
}

// Add combines acc with v.
func (c Accumulator) Add(f *code.Func, acc, v value.Value) value.Value {
	return c.Merge(f, acc, c.Begin(f, v))
}

// Merge combines two accumulators.
func (c Accumulator) Merge(f *code.Func, x, y value.Value) value.Value {
	if !c.ordered {
		return c.l.Combine(f, c.kind, c.elem, x, y, c.reassociate)
	}
	of := types.I32
	if c.elem == types.F64 {
		of = types.I64
	}
	return c.l.binary(f, c.kind, of, x, y)
}

// Value is the result.
func (c Accumulator) Value(f *code.Func, acc value.Value) value.Value {
	if !c.ordered {
		return acc
	}
	b := builder{Func: f}
	return b.float(b.inOrder(acc))
}

// inOrder takes the bits of a float to an integer of the same order, and back: of
// negative numbers it flips all but the sign.
func (b builder) inOrder(n value.Value) value.Value {
	sign := b.NewAShr(n, like(n, float64(bitsOf(n.Type())-1)))
	return b.NewXor(n, b.NewAnd(sign, greatestOf(n.Type())))
}

func bitsOf(t lltypes.Type) uint64 { return t.(*lltypes.IntType).BitSize }

// greatestOf is the greatest signed number of an integer type.
func greatestOf(t lltypes.Type) value.Value { return whole(t, math.MaxInt64>>(64-bitsOf(t))) }
