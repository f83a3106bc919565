package interp

import (
	"slices"

	"dmir/compile/tensor"
	"dmir/dialect/op"
)

// runStructuredEinsum multiplies with the first tensor made dense. Of two elements at one place the second one counts.
func runStructuredEinsum(c *call) ([]*tensor.Tensor, error) {
	e := op.StructuredEquation(c.op)
	acc := c.accumulator()
	w, words := c.widened(c.in[0], acc), c.in[2]
	if e == nil || w.Rank() == 0 || w.Rank() != len(e.Inputs[0]) || c.in[1].Rank() != len(e.Inputs[1]) || words.Len()*16 != w.Len() {
		return nil, c.errorf("DM704", "structured_einsum of %s and %s with metadata %s", c.in[0].Type(), c.in[1].Type(), words.Type())
	}
	shape := slices.Clone(w.Shape)
	shape[len(shape)-1] *= 2
	dense := tensor.New(w.Elem, shape...)
	for i := range w.Len() {
		place := words.Integer(i/16) >> (2 * (i % 16)) & 3
		dense.SetFloat(i/2*4+int(place), w.Float(i))
	}
	x := label(c.widened(c.in[1], acc), []rune(e.Inputs[1]))
	a := label(dense, []rune(e.Inputs[0]))
	if last := len(shape) - 1; x.shape[slices.Index(x.letters, a.letters[last])] != shape[last] {
		return nil, c.errorf("DM704", "structured_einsum of %s and %s", c.in[0].Type(), c.in[1].Type())
	}
	return one(c.contract(a, x, []rune(e.Output), c.outElem(0), acc)), nil
}
