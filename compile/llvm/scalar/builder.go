package scalar

import (
	"fmt"

	"dmir/compile/llvm/code"

	"github.com/llir/llvm/ir"
	"github.com/llir/llvm/ir/enum"
	lltypes "github.com/llir/llvm/ir/types"
	"github.com/llir/llvm/ir/value"
)

// builder adds instructions to a function.
type builder struct {
	*code.Func
	// exact: products and sums are each rounded, never fused.
	exact bool
}

// inlined is the internal function of that name, which becomes a part of its callers.
func (b builder) inlined(name string, t lltypes.Type, arity int, body func(b builder, args []value.Value) value.Value) *ir.Func {
	return b.M.Once(name, func() *ir.Func {
		var params []*ir.Param
		var args []value.Value
		for i := range arity {
			p := ir.NewParam(fmt.Sprintf("x%d", i), t)
			params, args = append(params, p), append(args, p)
		}
		fn := b.M.NewFunc(name, t, params...)
		fn.Linkage = enum.LinkageInternal
		fn.FuncAttrs = []ir.FuncAttribute{enum.FuncAttrAlwaysInline, enum.FuncAttrNoUnwind, enum.FuncAttrReadNone, enum.FuncAttrWillReturn}
		inner := builder{Func: b.M.NewFuncBody(fn)}
		inner.NewRet(body(inner, args))
		return fn
	})
}

// intrinsic calls LLVM's function of that name for the type of its operands.
func (b builder) intrinsic(name string, args ...value.Value) value.Value {
	t := args[0].Type()
	suffix := t.String()
	switch {
	case t.Equal(lltypes.Float):
		suffix = "f32"
	case t.Equal(lltypes.Double):
		suffix = "f64"
	}
	params := make([]lltypes.Type, len(args))
	for i, a := range args {
		params[i] = a.Type()
	}
	return b.Call(b.M.Declare("llvm."+name+"."+suffix, t, params...), args...)
}

// library calls the C library's function of that name for float or double.
func (b builder) library(name string, args ...value.Value) value.Value {
	t := args[0].Type()
	if t.Equal(lltypes.Float) {
		name += "f"
	}
	params := make([]lltypes.Type, len(args))
	for i := range args {
		params[i] = t
	}
	fn := b.M.Declare(name, t, params...)
	if fn.FuncAttrs == nil { // errno is not read
		fn.FuncAttrs = []ir.FuncAttribute{enum.FuncAttrNoUnwind, enum.FuncAttrReadNone, enum.FuncAttrWillReturn}
	}
	return b.Call(fn, args...)
}

// flags are those of a sum or a product.
func (b builder) flags() []enum.FastMathFlag {
	if b.exact {
		return nil
	}
	return []enum.FastMathFlag{enum.FastMathFlagContract}
}

func (b builder) fadd(x, y value.Value) value.Value {
	v := b.NewFAdd(x, y)
	v.FastMathFlags = b.flags()
	return v
}

func (b builder) fsub(x, y value.Value) value.Value {
	v := b.NewFSub(x, y)
	v.FastMathFlags = b.flags()
	return v
}

func (b builder) fmul(x, y value.Value) value.Value {
	v := b.NewFMul(x, y)
	v.FastMathFlags = b.flags()
	return v
}

// fma is x·y + z, rounded once where the machine can.
func (b builder) fma(x, y, z value.Value) value.Value { return b.intrinsic("fmuladd", x, y, z) }

// polynomial is c[0] + c[1]·x + c[2]·x² + ….
func (b builder) polynomial(x value.Value, c ...float64) value.Value {
	t := x.Type()
	var p value.Value = number(t, c[len(c)-1])
	for i := len(c) - 2; i >= 0; i-- {
		p = b.fma(p, x, number(t, c[i]))
	}
	return p
}

// bits is x, a float or a double, as an integer.
func (b builder) bits(x value.Value) value.Value {
	if x.Type().Equal(lltypes.Double) {
		return b.NewBitCast(x, lltypes.I64)
	}
	return b.NewBitCast(x, lltypes.I32)
}

// float is the number with the bits n, an i32 or an i64.
func (b builder) float(n value.Value) value.Value {
	if n.Type().Equal(lltypes.I64) {
		return b.NewBitCast(n, lltypes.Double)
	}
	return b.NewBitCast(n, lltypes.Float)
}

// like is v as a constant of the type of x.
func like(x value.Value, v float64) value.Value {
	if lltypes.IsFloat(x.Type()) {
		return number(x.Type(), v)
	}
	return whole(x.Type(), int64(v))
}

func (b builder) choose(c, x, y value.Value) value.Value { return b.NewSelect(c, x, y) }

// isNaN reports whether x is not a number.
func (b builder) isNaN(x value.Value) value.Value { return b.NewFCmp(enum.FPredUNO, x, x) }

// withSign is the magnitude m, which has no sign, with the sign of x.
func (b builder) withSign(m, x value.Value) value.Value { return b.intrinsic("copysign", m, x) }
