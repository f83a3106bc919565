package scalar_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"dmir/compile/tensor"
	"dmir/dialect/op"
	"dmir/dialect/types"
	"dmir/testkit/need"
)

// TestScalars compares every op with a scalar function, on every element type that its
// entry allows, a third of these in turn, with the reference executor.
func TestScalars(t *testing.T) {
	need.Long(t)
	var all []single
	for k, s := range registered() {
		if need.Turn(t, k, 3) {
			all = append(all, s)
		}
	}
	fs := compiled(t, all)
	for k, s := range all {
		n, args := operands(s)
		want, got := reference(t, s, n, args...), run(t, fs[k], s, n, args...)
		wrong := 0
		for i := range n {
			if near(s, got, want, i) || unreliable(s, args, i) {
				continue
			}
			if wrong++; wrong <= 3 {
				t.Errorf("%s: element %d is %s, want %s; operands%s", s.name, i, show(got, i), show(want, i), showAll(args, i))
			}
		}
		if wrong > 3 {
			t.Errorf("%s: %d of %d are wrong", s.name, wrong, n)
		}
	}
	t.Logf("%d operations", len(all))
}

// registered are the operations that the registry has a scalar function for.
func registered() (all []single) {
	for _, d := range op.All() {
		if d.Scalar == nil {
			continue
		}
		forms := []string{""}
		lead := false
		for _, a := range d.Attrs {
			if a.Name == d.Scalar.Form {
				forms, lead = a.Enum, a.Lead
			}
		}
		last := d.Operands[len(d.Operands)-1]
		for _, e := range last.Elems {
			in := make([]types.Elem, len(d.Operands))
			for i, p := range d.Operands {
				if in[i] = e; !slices.Contains(p.Elems, e) || len(p.Elems) == 1 {
					in[i] = p.Elems[0]
				}
			}
			outs := d.Results[0].Elems
			if !d.Is(op.Cast) && d.Name != "bitcast" && slices.Contains(outs, e) && len(outs) > 1 {
				outs = []types.Elem{e}
			}
			for _, out := range outs {
				if d.Name == "bitcast" && out.Bytes() != e.Bytes() {
					continue
				}
				for _, form := range forms {
					s := operation(d.Name, form, out, in...)
					if lead {
						s.text = " " + form
					} else if form != "" {
						s.tail = fmt.Sprintf(", %s = %s", d.Scalar.Form, form)
					}
					all = append(all, s)
				}
			}
		}
	}
	return all
}

// inexact are the ops whose results differ between correct executors, and how many
// values of float theirs may be away from the reference's.
var inexact = map[string]uint64{
	"exp": 1, "expm1": 2, "log": 1, "log1p": 2, "tanh": 2, "erf": 1, "logistic": 3, "silu": 3, "gelu": 3, "rsqrt": 2,
	"sin": 1, "cos": 1, "tan": 1, "cbrt": 1, "erfinv": 4, "pow": 1, "atan2": 2,
	"erfc": 3, "sinh": 2, "cosh": 2, "asinh": 2, "acosh": 2, "atanh": 2,
}

// near reports whether elements i of a result and of the reference's agree.
func near(s single, got, want *tensor.Tensor, i int) bool {
	most := inexact[s.x.Op]
	d := distance(got, want, i)
	switch {
	case got.Float(i) == 0 && want.Float(i) == 0: // of one sign
		return d == 0
	case d <= most:
		return true
	case most == 0:
		return false
	case s.x.Op == "gelu": // 1 + erf, or tanh, cancel: the reference is exact to the last bit of 1
		size := map[types.Elem]float64{types.F64: 0x1p-50, types.F32: 0x1p-24, types.F16: 0x1p-24, types.BF16: 0x1p-24}[got.Elem]
		return math.Abs(got.Float(i)-want.Float(i)) <= size*max(1, math.Abs(want.Float(i)))
	case got.Elem == types.F64: // the C library's functions beside Go's, of which some are inexact far out
		return d <= 1<<33
	}
	return false
}

// unreliable reports whether the reference is wrong: Go's functions of double are for
// some operands that are subnormal, and atan2 where the quotient is.
func unreliable(s single, args []*tensor.Tensor, i int) bool {
	if inexact[s.x.Op] == 0 || args[0].Elem != types.F64 {
		return false
	}
	for _, a := range args {
		if v := math.Abs(a.Float(i)); v != 0 && v < 0x1p-1022 {
			return true
		}
	}
	return s.x.Op == "atan2" && math.Abs(args[0].Float(i)/args[1].Float(i)) < 0x1p-1022
}

// distance is how many values of their type lie between elements i of two tensors; one
// NaN is as good as another.
func distance(x, y *tensor.Tensor, i int) uint64 {
	if !x.Elem.IsFloat() {
		if x.Integer(i) == y.Integer(i) {
			return 0
		}
		return math.MaxUint64
	}
	a, b := x.Float(i), y.Float(i)
	switch {
	case a != a && b != b:
		return 0
	case a != a || b != b:
		return math.MaxUint64
	}
	m, n := order(x.Elem, a), order(x.Elem, b)
	return uint64(max(m, n) - min(m, n))
}

// order is the bits of v as a number that orders values as they are ordered.
func order(elem types.Elem, v float64) int64 {
	bits, sign := types.ToBits(v, elem), uint64(1)<<(elem.Bits()-1)
	if bits&sign != 0 {
		return -1 - int64(bits&^sign)
	}
	return int64(bits)
}

func show(x *tensor.Tensor, i int) string {
	if x.Elem.IsFloat() {
		return fmt.Sprintf("%g (%#x)", x.Float(i), types.ToBits(x.Float(i), x.Elem))
	}
	return fmt.Sprint(x.Integer(i))
}

func showAll(xs []*tensor.Tensor, i int) (s string) {
	for _, x := range xs {
		s += " " + show(x, i)
	}
	return s
}
