package op

import (
	"slices"

	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// stepParam is the optional operand of the ops that draw random numbers: with it
// every step draws others.
var stepParam = Param{Name: "step", Elems: integers, Optional: true, Doc: "a scalar such as the number of the training step, or a key: another one draws other numbers"}

// stepDoc says what the seed is where there is a step.
const stepDoc = "With a step the numbers are those of the seed `SplitMix64(key(seed, 3) + γ · (step + 1))`, with the step as 64 bits, `γ = 0x9e3779b97f4a7c15` and `key(seed, n) = SplitMix64(seed + γ · (n + 1))`; " +
	"they are the same on all devices and do not depend on what is fused."

// StepOf is the operand with which o's seed is mixed, nil where it has none.
func StepOf(o *ir.Op) *ir.Value { return operandNamed(o, stepParam.Name) }

// stepProblem checks that the step is a scalar.
func stepProblem(o *ir.Op) *Problem {
	n := OperandNumber(o, stepParam.Name)
	if n < 0 || in(o, n).Rank() == 0 {
		return nil
	}
	return problem("DM117", n, "step has shape %s where a scalar is expected", shapeText(in(o, n).Shape)).
		help("give a tensor of one integer, such as tensor<i64>, that counts the steps")
}

// drawnProblem checks a dropout with the rate in attribute attr.
func drawnProblem(attr string) func(o *ir.Op) *Problem {
	return func(o *ir.Op) *Problem {
		if r := Float(o, attr); !(r >= 0 && r < 1) {
			return attrProblem("DM115", attr, "%s = %g is not a probability below 1", attr, r).
				help("write 0.1 to make one element in ten 0")
		}
		if p := stepProblem(o); p != nil {
			return p
		}
		return numberingProblem(o)
	}
}

// withDrawn is the operands and then those by which o draws random numbers: its step and the number of
// its first element in the whole, if it has them.
func withDrawn(o *ir.Op, operands ...*ir.Value) []*ir.Value {
	for _, v := range []*ir.Value{StepOf(o), NumberingOf(o).First} {
		if v != nil {
			operands = append(operands, v)
		}
	}
	return operands
}

// dropoutAs is dropout of v, o's x or its probabilities, with the rate, the seed and the step of o, and of the same part of the
// whole.
func (w *Builder) dropoutAs(o *ir.Op, rate string, v *ir.Value) *ir.Value {
	attrs := []types.Named{{Name: "rate", Value: types.Float{V: Float(o, rate)}}, {Name: "seed", Value: types.Int{V: Int(o, "seed")}}}
	operands := []*ir.Value{v}
	if step := StepOf(o); step != nil {
		operands = append(operands, step)
	}
	if n := NumberingOf(o); n.First != nil {
		first, whole := n.First, n.Whole
		if o.Name != "dm.dropout" { // rows of scores are numbered
			keys, ok := in(o, 1).Shape[in(o, 1).Rank()-2].Int()
			w.failed = w.failed || !ok
			first, whole = w.scale(w.Convert(first, types.I64), float64(keys)), append(slices.Clone(whole), keys)
		}
		operands, attrs = append(operands, first), append(attrs, types.Named{Name: wholeAttr, Value: intList(whole)})
	}
	return w.Value("dropout", operands, attrs)
}
