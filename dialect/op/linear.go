package op

import (
	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// The sets of operands in which ops are linear; see Factors.Linear.

// linearIn is of ops that are linear in each of the sets.
func linearIn(sets ...[]int) func(*ir.Op) [][]int {
	return func(*ir.Op) [][]int {
		out := make([][]int, len(sets))
		for i, set := range sets {
			out[i] = append([]int(nil), set...)
		}
		return out
	}
}

// linearInEach is of products of all operands.
func linearInEach(o *ir.Op) [][]int {
	sets := make([][]int, len(o.Operands))
	for i := range sets {
		sets[i] = []int{i}
	}
	return sets
}

// linearInAll is of ops that are linear in all operands together.
func linearInAll(o *ir.Op) [][]int { return [][]int{identity(len(o.Operands))} }

// linearFloat is of ops that are linear in the first operand where that is no integer.
func linearFloat(o *ir.Op) [][]int {
	if !in(o, 0).Elem.IsFloat() {
		return nil
	}
	return [][]int{{0}}
}

// linearKind is of reductions, which are linear where they add.
func linearKind(o *ir.Op) [][]int {
	if Str(o, "kind") != "add" {
		return nil
	}
	return [][]int{{0}}
}

// linearConvert: parts that are summed before they are rounded stay exact.
func linearConvert(o *ir.Op) [][]int {
	from, to := in(o, 0).Elem, out(o, 0).Elem
	if from != to && !(from.IsFloat() && to.IsFloat() && from.Bytes() < to.Bytes()) {
		return nil
	}
	return [][]int{{0}}
}

// linearPad: the padding is added once for each part, unless it is 0 or has parts itself.
func linearPad(o *ir.Op) [][]int {
	sets := [][]int{{0, 1}}
	c := o.Operands[1].Op
	if c == nil || c.Name != Constant {
		return sets
	}
	if d, ok := Attr(c, "value").(*types.Dense); ok && d.File() == nil && d.Len() > 0 && d.Float(0) == 0 {
		sets = append(sets, []int{0})
	}
	return sets
}

// linearScatter: x and the updates are added, or written where x is not.
func linearScatter(o *ir.Op) [][]int {
	switch Str(o, "kind") {
	case "set", "add":
		return [][]int{{0, 2}}
	case "mul":
		return [][]int{{0}}
	}
	return nil
}

// linearAttention: the probabilities do not depend on v, but neither does lse.
func linearAttention(o *ir.Op) [][]int {
	if len(o.Results) > 1 {
		return nil
	}
	return [][]int{{2}}
}
