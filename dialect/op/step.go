package op

import (
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
func StepOf(o *ir.Op) *ir.Value {
	if n := OperandNumber(o, stepParam.Name); n >= 0 {
		return o.Operands[n]
	}
	return nil
}

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
		return stepProblem(o)
	}
}

// withStep is the operands and then o's step, if it has one.
func withStep(o *ir.Op, operands ...*ir.Value) []*ir.Value {
	if s := StepOf(o); s != nil {
		return append(operands, s)
	}
	return operands
}

// dropoutAs is dropout of v with the rate, the seed and the step of o.
func (w *Builder) dropoutAs(o *ir.Op, rate string, v *ir.Value) *ir.Value {
	return w.Value("dropout", withStep(o, v), []types.Named{{Name: "rate", Value: types.Float{V: Float(o, rate)}}, {Name: "seed", Value: types.Int{V: Int(o, "seed")}}})
}
