package attention

import (
	"math"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// numberOf is the number that every element of v equals, if v is computed from
// constants alone.
func numberOf(v *ir.Value) (float64, bool) { return number(v, 8) }

// number visits at most depth ops.
func number(v *ir.Value, depth int) (n float64, ok bool) {
	v = origin(v)
	o, t := v.Op, v.Tensor()
	if o == nil || t == nil || depth == 0 || !op.Valid(o) {
		return 0, false
	}
	args := make([]float64, min(2, len(o.Operands)))
	switch o.Name {
	case op.Constant:
		return Literal(o)
	case "dm.slice":
		return listed(o)
	case "dm.convert", "dm.broadcast", "dm.reshape", "dm.transpose", "dm.sqrt", "dm.rsqrt", "dm.neg", "dm.mul", "dm.div":
		for i := range args {
			if args[i], ok = number(o.Operands[i], depth-1); !ok {
				return 0, false
			}
		}
		n = args[0]
	default:
		return 0, false
	}
	switch o.Name {
	case "dm.sqrt":
		n = math.Sqrt(n)
	case "dm.rsqrt":
		n = 1 / math.Sqrt(n)
	case "dm.neg":
		n = -n
	case "dm.mul":
		n *= args[1]
	case "dm.div":
		n /= args[1]
	}
	return held(n, t.Elem)
}

// held is n in elements of type e; not ok where these do not hold it.
func held(n float64, e types.Elem) (float64, bool) {
	if e.IsFloat() {
		return types.Round(n, e), true
	}
	bits := min(31, int(e.Bits()))
	if e == types.I1 {
		bits = 1
	}
	if e.IsUnsigned() || e == types.I1 {
		return n, n == math.Trunc(n) && 0 <= n && n < math.Ldexp(1, bits)
	}
	return n, n == math.Trunc(n) && math.Abs(n) < math.Ldexp(1, bits-1)
}

// listed is the number that o, a slice, takes from a constant of one dimension, as a
// program reads a size from a shape.
func listed(o *ir.Op) (float64, bool) {
	c := origin(o.Operands[0]).Op
	if c == nil || c.Name != op.Constant || o.In(0).Rank() != 1 || op.Attr(o, "dims") != nil {
		return 0, false
	}
	d, ok := op.Attr(c, "value").(*types.Dense)
	start := op.Ints(o, "start_indices")
	if n, known := o.Out(0).Shape[0].Int(); !ok || !known || n != 1 || len(start) != 1 || d.File() != nil {
		return 0, false
	}
	if d.Splat {
		return Literal(c)
	}
	return d.Float(int(start[0])), true
}

// Literal is the one value of a dm.constant.
func Literal(o *ir.Op) (float64, bool) {
	d, ok := op.Attr(o, "value").(*types.Dense)
	if !ok || d.Len() != 1 {
		return 0, false
	}
	return d.Float(0), true
}

// masks reports whether scores of the size n take no part in a softmax: e to n is
// 0 beside any score that a program means. Frameworks write -10000 (in half
// precision), -1e9, the least finite number, or minus infinity.
func masks(n float64) bool { return n <= -9984 } // -10000 in bf16

// exact reports whether every value of a is one of b.
func exact(a, b types.Elem) bool {
	switch {
	case a == b, b == types.F64:
		return true
	case b == types.F32:
		return a == types.F16 || a == types.BF16
	}
	return false
}

// computes reports whether an attention may have elements of that type.
func computes(e types.Elem) bool {
	return e == types.F16 || e == types.BF16 || e == types.F32 || e == types.F64
}
