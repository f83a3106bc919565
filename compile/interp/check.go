package interp

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"dmir/compile/tensor"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
	"dmir/syntax/source"
)

// CheckFailed is the code of the error with which a check.expect_* op ends a
// run: the program's result is not the expected one.
const CheckFailed = "DM709"

// checkExecutors are the ops of StableHLO's check dialect, with which a program
// states what it expects of its own results.
func checkExecutors() map[string]executor {
	expect := func(c *call) ([]*tensor.Tensor, error) { return nil, c.expect() }
	return map[string]executor{
		"check.expect_eq": expect, "check.expect_eq_const": expect,
		"check.expect_almost_eq": expect, "check.expect_almost_eq_const": expect,
		"check.expect_close": expect, "check.expect_close_const": expect,
	}
}

// Place is a loop or a function that a check was reached in.
type Place struct {
	Func      string // called; empty: a loop
	Line      int    // of the call or the loop, 0 where it is unknown
	Iteration int64
}

func (p Place) String() string {
	what := fmt.Sprintf("in iteration %d of the loop", p.Iteration)
	at := " in"
	if p.Func != "" {
		what, at = "in @"+p.Func, ", called in"
	}
	if p.Line == 0 {
		return what
	}
	return fmt.Sprintf("%s%s line %d", what, at, p.Line)
}

// Reached puts the calls through which a check was inlined among the loops and calls
// that are around it, the innermost first.
func Reached(src *source.File, o *ir.Op, around []Place) []Place {
	var out []Place
	calls := op.Callers(o)
	for n := 0; ; n++ {
		for len(calls) > 0 && calls[0].Loops <= n {
			out = append(out, Place{Func: calls[0].Name, Line: lineAt(src, calls[0].At)})
			calls = calls[1:]
		}
		if n == len(around) {
			return out
		}
		out = append(out, around[n])
	}
}

func lineAt(src *source.File, at int) int {
	if src == nil || at <= 0 || at > src.Len() {
		return 0
	}
	line, _ := src.Human(at)
	return line
}

// LineOf is the line of o in the text of m, 0 where it has none.
func LineOf(m *ir.Module, o *ir.Op) int {
	if o.Span.Len() == 0 {
		return 0
	}
	return lineAt(m.Src, o.Span.Start)
}

// Mismatch is what an element that differs, at its index in the values compared,
// and the places that the check was reached in are reported as; room is of op.RoomAttr.
func Mismatch(member, room string, at []int, got, want string, places []Place) string {
	if sum, ok := strings.CutPrefix(room, op.RoomForProducts); ok {
		return within(fmt.Sprintf("%s is a sum of %s products of stored elements, but %s = %s", sum, got, op.ProductsAttr, want), places)
	}
	if room != "" {
		return within(fmt.Sprintf("%s would store %s elements, but its nnz leaves room for %s", room, got, want), places)
	}
	of := ""
	if member != "" {
		of = " of member " + strings.TrimPrefix(member, ".")
	}
	return within(fmt.Sprintf("element %v%s is %s, expected %s", at, of, got, want), places)
}

// MismatchedTypes is what values of two types are reported as.
func MismatchedTypes(got, want string, places []Place) string {
	return within(fmt.Sprintf("the value is a %s, expected a %s", got, want), places)
}

func within(msg string, places []Place) string {
	for _, p := range places {
		msg += ", " + p.String()
	}
	return msg
}

// Differs is the first element in which a and b, of one type, differ by more than
// the tolerance and by more than so many units in the last place, -1 for none.
func Differs(a, b *tensor.Tensor, tolerance float64, ulps int64) int {
	for i := range a.Len() {
		if !same(a, b, i, tolerance) && !nearby(a, b, i, ulps) {
			return i
		}
	}
	return -1
}

// expect compares the first operand with the second, or with the constant that
// the op writes in its place.
func (c *call) expect() error {
	if len(c.in) == 0 {
		return c.errorf("DM703", "%s has nothing to compare", c.op.Name)
	}
	got := c.in[0]
	var want *tensor.Tensor
	if len(c.in) > 1 {
		want = c.in[1]
	} else {
		value, err := c.expected()
		if err != nil {
			return err
		}
		if want, err = constantLike(value); err != nil {
			return c.errorf("DM703", "%s: %v", c.op.Name, err)
		}
	}
	var around []Place
	for _, p := range slices.Backward(c.around) {
		around = append(around, *p)
	}
	places := Reached(c.module.Src, c.op, around)
	if got.Elem != want.Elem || fmt.Sprint(got.Shape) != fmt.Sprint(want.Shape) {
		return c.errorf(CheckFailed, "%s", MismatchedTypes(got.Type(), want.Type(), places))
	}
	if i := Differs(got, want, op.Tolerance(c.op), op.ULPs(c.op)); i >= 0 {
		return c.errorf(CheckFailed, "%s", Mismatch(c.op.Str(op.MemberAttr), c.op.Str(op.RoomAttr), Index(i, got.Shape), Element(got, i), Element(want, i), places))
	}
	return nil
}

// expected is the constant of an expect_*_const.
func (c *call) expected() (*types.Dense, error) {
	if v, ok := c.op.Attr("value").(*types.Dense); ok {
		return v, nil
	}
	return nil, c.errorf("DM703", "%s has no dense<…> value to compare with", c.op.Name)
}

func constantLike(v *types.Dense) (*tensor.Tensor, error) {
	shape, bad := shapeOf(v.Type, nil)
	if bad != nil {
		return nil, fmt.Errorf("the expected value has the symbolic size %s", bad)
	}
	if _, ok := tensor.Count(shape); !ok {
		return nil, fmt.Errorf("%s is too large", v.Type)
	}
	t, err := tensor.Of(v)
	if err != nil {
		return nil, fmt.Errorf("%d values for %s", v.Len(), v.Type)
	}
	return t, nil
}

// same compares element i; with no tolerance to the bit, but that two NaNs and
// the two zeros are equal.
func same(a, b *tensor.Tensor, i int, tolerance float64) bool {
	if !a.Elem.IsFloat() {
		return a.Integer(i) == b.Integer(i)
	}
	x, y := a.Float(i), b.Float(i)
	if x == y || math.IsNaN(x) && math.IsNaN(y) {
		return true
	}
	return math.Abs(x-y) <= tolerance*math.Max(1, math.Abs(y))
}

// nearby reports whether floating-point elements i are at most so many units in the last
// place apart: numbers of their type lie between them. An infinity is near itself only.
func nearby(a, b *tensor.Tensor, i int, ulps int64) bool {
	if ulps <= 0 || !a.Elem.IsFloat() {
		return false
	}
	x, y := a.Float(i), b.Float(i)
	if math.IsNaN(x) || math.IsNaN(y) || math.IsInf(x, 0) || math.IsInf(y, 0) {
		return false
	}
	d := rankOf(x, a.Elem) - rankOf(y, a.Elem)
	return -ulps <= d && d <= ulps
}

// rankOf is the number of x among the numbers of its type; that of both zeros is 0.
func rankOf(x float64, e types.Elem) int64 {
	n := int64(types.ToBits(math.Abs(x), e))
	if x < 0 {
		return -n
	}
	return n
}

// Element is element i of t as messages show it.
func Element(t *tensor.Tensor, i int) string {
	if t.Elem.IsFloat() {
		return fmt.Sprintf("%g", t.Float(i))
	}
	if t.Elem == types.UI64 {
		return fmt.Sprint(uint64(t.Integer(i)))
	}
	return fmt.Sprint(t.Integer(i))
}

// Index is the position of element i of a row-major shape.
func Index(i int, shape []int) []int {
	at := make([]int, len(shape))
	for d := len(shape) - 1; d >= 0; d-- {
		at[d], i = i%shape[d], i/shape[d]
	}
	return at
}
