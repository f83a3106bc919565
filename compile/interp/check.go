package interp

import (
	"fmt"
	"math"

	"dmir/compile/tensor"
	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// CheckFailed is the code of the error with which a check.expect_* op ends a
// run: the program's result is not the expected one.
const CheckFailed = "DM709"

// almost is the tolerance of check.expect_almost_eq, relative for values above
// 1 and absolute below, as in StableHLO's check dialect.
const almost = 1e-3

// checkExecutors are the ops of StableHLO's check dialect, with which a program
// states what it expects of its own results.
func checkExecutors() map[string]executor {
	return map[string]executor{
		"check.expect_eq":              func(c *call) ([]*tensor.Tensor, error) { return nil, c.expect(0) },
		"check.expect_eq_const":        func(c *call) ([]*tensor.Tensor, error) { return nil, c.expect(0) },
		"check.expect_almost_eq":       func(c *call) ([]*tensor.Tensor, error) { return nil, c.expect(almost) },
		"check.expect_almost_eq_const": func(c *call) ([]*tensor.Tensor, error) { return nil, c.expect(almost) },
	}
}

// Expect executes a check.expect_* op of m on its operands, which were computed
// elsewhere. An error is a *Error.
func Expect(m *ir.Module, o *ir.Op, in []*tensor.Tensor) error {
	run, ok := executors[o.Name]
	if !ok {
		return errorAt(o, "DM703", "", "%s cannot be run by the reference executor", o.Name)
	}
	_, err := run(&call{machine: &machine{module: m}, op: o, in: in})
	return err
}

// expect compares the first operand with the second, or with the constant that
// the op writes in its place.
func (c *call) expect(tolerance float64) error {
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
	if got.Elem != want.Elem || fmt.Sprint(got.Shape) != fmt.Sprint(want.Shape) {
		return c.errorf(CheckFailed, "the value is a %s, expected a %s", got.Type(), want.Type())
	}
	for i := range got.Len() {
		if same(got, want, i, tolerance) {
			continue
		}
		return c.errorf(CheckFailed, "element %v is %s, expected %s", index(i, got.Shape), element(got, i), element(want, i))
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
	t, err := tensor.Unpack(v.All(), v.Elem, shape)
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

func element(t *tensor.Tensor, i int) string {
	if t.Elem.IsFloat() {
		return fmt.Sprintf("%g", t.Float(i))
	}
	return fmt.Sprint(t.Integer(i))
}

// index is the position of element i of a row-major shape.
func index(i int, shape []int) []int {
	at := make([]int, len(shape))
	for d := len(shape) - 1; d >= 0; d-- {
		at[d], i = i%shape[d], i/shape[d]
	}
	return at
}
