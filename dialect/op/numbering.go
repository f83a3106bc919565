package op

import (
	"slices"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// wholeAttr is the attribute of an op with dropout on a part of a whole: the sizes of the whole.
const wholeAttr = "whole"

// firstParam is the operand that such an op has with it.
func firstParam(doc string) Param {
	return Param{Name: "first", Elems: integers, Optional: true, With: wholeAttr, Doc: doc}
}

func wholeParam(doc string) AttrDef {
	return AttrDef{Name: wholeAttr, Kind: KindInts, Optional: true, Doc: doc}
}

// Numbering is where the numbers that an op with dropout draws stand in its random sequence: in row-major order of the
// elements of a dm.dropout's x, and of the rows of an attention's scores, each of as many numbers as there are keys.
type Numbering struct {
	Shape []dim.Dim // of the elements or rows
	First *ir.Value // the number of the first one in the whole that o has a part of; nil: o has the whole
	Whole []int64   // the sizes of that whole; nil: o has the whole
}

// NumberingOf is the numbering of o, a dm.dropout or an attention; other ops have a whole.
func NumberingOf(o *ir.Op) Numbering {
	n := Numbering{Shape: in(o, 0).Shape, Whole: Ints(o, wholeAttr)}
	if i := OperandNumber(o, "first"); i >= 0 {
		n.First = o.Operands[i]
	}
	if o.Name != "dm.dropout" && len(n.Shape) > 0 {
		n.Shape = n.Shape[:len(n.Shape)-1]
	}
	return n
}

// Steps is by how much the numbers of neighbours along each dimension differ; false where sizes are no
// numbers.
func (n Numbering) Steps() ([]int64, bool) {
	whole := n.Whole
	if whole == nil {
		for _, d := range n.Shape {
			size, ok := d.Int()
			if !ok {
				return nil, false
			}
			whole = append(whole, size)
		}
	}
	steps, step := make([]int64, len(whole)), int64(1)
	for d := len(whole) - 1; d >= 0; d-- {
		steps[d], step = step, step*whole[d]
	}
	return steps, true
}

// Draws reports whether o has dropout, whose numbers depend on the places of elements in the whole.
func Draws(o *ir.Op) bool {
	switch o.Name {
	case "dm.dropout":
		return true
	case "dm.attention", "dm.attention_grad":
		return Float(o, "dropout") > 0
	}
	return false
}

// SetPart makes o, an op with dropout, one on a part of a whole of the sizes, whose first element or row has the number
// first there.
func SetPart(o *ir.Op, first *ir.Value, whole []int64) {
	if i := OperandNumber(o, "first"); i >= 0 {
		o.SetOperand(i, first)
	} else {
		o.SetOperands(append(slices.Clone(o.Operands), first)...)
	}
	o.SetAttr(wholeAttr, intList(whole))
}

func intList(list []int64) types.Array {
	out := make(types.Array, len(list))
	for i, n := range list {
		out[i] = types.Int{V: n}
	}
	return out
}

// numberingProblem checks that the part is one of the whole.
func numberingProblem(o *ir.Op) *Problem {
	n, i := NumberingOf(o), OperandNumber(o, "first")
	switch given := o.Attr(wholeAttr) != nil; {
	case !given && i < 0:
		return nil
	case !given:
		return problem("DM124", i, "the number of the first element in a whole is given, but not the sizes of the whole").
			help("give the sizes by %s = […], or leave the operand out", wholeAttr)
	case i < 0:
		return attrProblem("DM115", wholeAttr, "the sizes of a whole are given, but not the number of the first element in it").
			help("give the number as the last operand, or leave %s out", wholeAttr)
	}
	if in(o, i).Rank() != 0 {
		return problem("DM117", i, "first has shape %s where a scalar is expected", shapeText(in(o, i).Shape)).help("give a tensor of one integer, such as tensor<i64>")
	}
	if len(n.Whole) != len(n.Shape) {
		return attrProblem("DM114", wholeAttr, "%s has %d sizes, but %s has %d dimensions", wholeAttr, len(n.Whole), shapeText(n.Shape), len(n.Shape))
	}
	for d, size := range n.Whole {
		if own, ok := n.Shape[d].Int(); size < 1 || ok && own > size {
			return attrProblem("DM115", wholeAttr, "%s is no part of a whole of the sizes %v", shapeText(n.Shape), n.Whole)
		}
	}
	return nil
}
