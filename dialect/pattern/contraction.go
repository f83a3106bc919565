package pattern

import (
	"dmir/dialect/ir"
	"dmir/dialect/op"
)

// Equation is the parsed equation of an einsum, nil for other ops, where it is broken
// and where dimensions broadcast.
func Equation(o *ir.Op) *op.Equation {
	if o.Name != "dm.einsum" {
		return nil
	}
	e, kept := op.PlainEquation(o)
	for i := range kept {
		if len(kept[i]) != o.In(i).Rank() {
			return nil
		}
	}
	return e
}

// TransposedOperand is the transpose that operand i of the einsum o comes from,
// and the equation with which o reads the transpose's operand instead; t is nil
// where there is none.
func TransposedOperand(o *ir.Op, i int) (t *ir.Op, equation string) {
	e, t := Equation(o), From(o.Operands[i], "dm.transpose")
	if e == nil || t == nil || !op.Valid(t) {
		return nil, ""
	}
	letters := make([]byte, len(e.Inputs[i]))
	for at, d := range dimsOf(t) {
		letters[d] = e.Inputs[i][at]
	}
	e.Inputs[i] = string(letters)
	return t, e.String()
}

// TransposedResult is the einsum that the transpose t is of, and the equation
// with which it writes t's result itself; einsum is nil where there is
// none.
func TransposedResult(t *ir.Op) (einsum *ir.Op, equation string) {
	if t.Name != "dm.transpose" || !op.Valid(t) {
		return nil, ""
	}
	einsum = From(t.Operands[0], "dm.einsum")
	if einsum == nil {
		return nil, ""
	}
	e := Equation(einsum)
	if e == nil {
		return nil, ""
	}
	letters := make([]byte, 0, len(e.Output))
	for _, d := range dimsOf(t) {
		letters = append(letters, e.Output[d])
	}
	e.Output = string(letters)
	return einsum, e.String()
}
