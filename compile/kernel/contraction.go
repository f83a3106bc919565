package kernel

import (
	"fmt"
	"strings"

	"dmir/dialect/ir"
	"dmir/dialect/op"
)

// Contraction is a product of two tensors with every dimension named: the
// letters of an einsum, or those that a matmul amounts to.
type Contraction struct {
	Op    *ir.Op
	In    [2]string // the letters of each operand's dimensions; a repeated one walks the diagonal
	Out   string    // of the result's
	Sum   string    // those that are summed over
	Sizes map[byte]int64
	// Half tells that every product and partial sum is rounded to f16.
	Half bool
}

// ContractionOf is the contraction that o, an einsum of two operands or a
// matmul, computes. A batch dimension that broadcasts keeps its letter: where
// the operand's dimension is 1, its index is 0. Errors tell why o is none.
func ContractionOf(o *ir.Op) (*Contraction, error) {
	if len(o.Operands) != 2 || len(o.Results) != 1 {
		return nil, fmt.Errorf("%s of %d operands is no product of two tensors", o.Name, len(o.Operands))
	}
	c := &Contraction{Op: o, Sizes: map[byte]int64{}, Half: op.Str(o, "accumulate") == "f16"}
	switch o.Name {
	case "dm.einsum":
		e, err := op.ParseEquation(op.Str(o, "equation"), 2)
		if err != nil {
			return nil, err
		}
		c.In, c.Out = [2]string{e.Inputs[0], e.Inputs[1]}, e.Output
	case "dm.matmul":
		c.matmul()
	default:
		return nil, fmt.Errorf("%s is no contraction", o.Name)
	}
	for i, letters := range c.In {
		shape, ok := ShapeOf(o.Operands[i])
		if !ok || len(shape) != len(letters) {
			return nil, fmt.Errorf("the shape of operand %d is not known in numbers", i)
		}
		for d, n := range shape {
			c.Sizes[letters[d]] = max(c.Sizes[letters[d]], n)
			if strings.IndexByte(c.Out+c.Sum, letters[d]) < 0 {
				c.Sum += string(letters[d])
			}
		}
	}
	return c, nil
}

// matmul names the dimensions of a matmul as an einsum would.
func (c *Contraction) matmul() {
	const row, col, sum = 'M', 'N', 'K'
	rank := len(shapeOf(c.Op.Results[0]))
	name := func(i int, r, k byte, transposed bool) string {
		own := len(shapeOf(c.Op.Operands[i]))
		var s []byte
		for d := range own - 2 {
			s = append(s, byte('a'+rank-own+d))
		}
		if transposed {
			r, k = k, r
		}
		return string(append(s, r, k))
	}
	c.In = [2]string{
		name(0, row, sum, op.Bool(c.Op, "transpose_a")),
		name(1, sum, col, op.Bool(c.Op, "transpose_b")),
	}
	for d := range rank - 2 {
		c.Out += string(rune('a' + d))
	}
	c.Out += string(rune(row)) + string(rune(col))
}

// at is the place in operand i for an index of each letter.
func (c *Contraction) at(i int, of map[byte]Index) []Index {
	shape := shapeOf(c.Op.Operands[i])
	idx := make([]Index, len(shape))
	for d, n := range shape {
		if n > 1 {
			idx[d] = of[c.In[i][d]]
		}
	}
	return idx
}

// out is the place in the result.
func (c *Contraction) out(of map[byte]Index) []Index {
	idx := make([]Index, len(c.Out))
	for d := range idx {
		idx[d] = of[c.Out[d]]
	}
	return idx
}
