package kernel

import (
	"fmt"
	"strings"

	"dmir/dialect/ir"
	"dmir/dialect/op"
)

// Contraction is a product of two tensors whose dimensions are labelled: with
// the letters of an einsum, or those of the equivalent einsum of a matmul or a
// convolution.
type Contraction struct {
	Op    *ir.Op
	In    [2]string // the letters of each operand's dimensions; a repeated one takes the diagonal; empty for a convolution
	Out   string    // of the result's; a convolution's channels have two, group and channel of it
	Sum   string    // those that are summed over
	Sizes map[byte]int64
	// Groups is the letter of groups of a grouped product, 0 of others, and Within that of which each has a part.
	Groups, Within byte
	// packed: the loop over the sum, of a structured product, counts the elements that its first operand stores.
	packed bool
	// Half reports whether every product and partial sum is rounded to f16.
	Half bool
	// phases divide a convolution's outputs, and with them the taps of the window; nil: they are whole.
	phases *op.Phases
}

// ContractionOf returns the contraction that o, an einsum of two operands, a
// matmul, a grouped one or a convolution, computes. A batch dimension that broadcasts keeps
// its letter; where the operand's dimension is 1, its index is 0. The error is
// the reason why o is no contraction.
func ContractionOf(o *ir.Op) (*Contraction, error) {
	grouped := op.TakesSegments(o) // the family is asked below
	if len(o.Operands) != 2 && !grouped && !op.IsStructured(o) || len(o.Results) != 1 {
		return nil, fmt.Errorf("%s of %d operands is not a product of two tensors", o.Name, len(o.Operands))
	}
	c := &Contraction{Op: o, Sizes: map[byte]int64{}, Half: op.Str(o, "accumulate") == "f16"}
	d := op.Of(o)
	switch {
	case d == nil || d.Family != op.Contraction:
		return nil, fmt.Errorf("%s is not a contraction", o.Name)
	case d.Is(op.Windowed):
		return c, c.convolution()
	case op.IsStructured(o):
		e := op.StructuredEquation(o)
		if e == nil {
			return nil, fmt.Errorf("%s without an equation", o.Name)
		}
		c.In, c.Out = [2]string{e.Inputs[0], e.Inputs[1]}, e.Output
	case d.Attr("equation") != nil:
		e, err := op.EquationOf(o)
		if err != nil {
			return nil, err
		}
		c.In, c.Out = [2]string{e.Inputs[0], e.Inputs[1]}, e.Output
	case grouped:
		c.grouped()
	default:
		c.matmul()
	}
	for i, letters := range c.In {
		shape, ok := ShapeOf(o.Operands[i])
		if !ok || len(shape) != len(letters) {
			return nil, fmt.Errorf("the shape of operand %d is not known in numbers", i)
		}
		for d, n := range shape { // a structured operand stores half of the sum
			c.Sizes[letters[d]] = max(c.Sizes[letters[d]], n)
			if strings.IndexByte(c.Out+c.Sum, letters[d]) < 0 && letters[d] != c.Groups {
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

// grouped names the dimensions of a grouped product: with a matrix for each group, a group has a part of the
// result's rows; else a part of those that are summed over.
func (c *Contraction) grouped() {
	c.Groups = 'Z'
	switch {
	case !op.GroupedRows(c.Op):
		c.In, c.Out, c.Within = [2]string{"KM", "KN"}, "ZMN", 'K'
		c.Sizes['Z'] = shapeOf(c.Op.Results[0])[0]
	case op.Bool(c.Op, "transpose_b"):
		c.In, c.Out, c.Within = [2]string{"MK", "ZNK"}, "MN", 'M'
	default:
		c.In, c.Out, c.Within = [2]string{"MK", "ZKN"}, "MN", 'M'
	}
}

// letters are those of the loops, each once.
func (c *Contraction) letters() []byte {
	all := []byte(c.Out + c.Sum)
	if c.Groups != 0 && strings.IndexByte(c.Out, c.Groups) < 0 {
		all = append(all, c.Groups)
	}
	return all
}

// The letters of a convolution: images, groups of channels, channels of a group
// that it makes and that it reads, and the spatial dimensions with their windows.
const (
	convImage, convGroup, convOut, convIn = 'n', 'g', 'o', 'c'
	convSpace, convWindow                 = "xyz", "pqr"

	convPhase, convTap = '#', '*' // of a convolution that is divided
)

// convolution labels the loops of a convolution: the image is indexed by output
// position and tap of the window, which makes it a product like any other.
func (c *Contraction) convolution() error {
	xs, okX := ShapeOf(c.Op.Operands[0])
	ws, okW := ShapeOf(c.Op.Operands[1])
	ys, okY := ShapeOf(c.Op.Results[0])
	groups := op.Int(c.Op, "feature_group_count")
	if !okX || !okW || !okY || len(ws) < 3 || len(ws) > 5 || len(xs) != len(ws) || len(ys) != len(ws) || groups < 1 {
		return fmt.Errorf("the shape of the convolution is not known in numbers")
	}
	c.Out, c.Sum = string([]byte{convImage, convGroup, convOut}), string([]byte{convIn})
	c.Sizes[convImage], c.Sizes[convGroup], c.Sizes[convOut], c.Sizes[convIn] = xs[0], groups, ws[0]/groups, ws[1]
	for d := range ws[2:] {
		c.Out += convSpace[d : d+1]
		c.Sum += convWindow[d : d+1]
		c.Sizes[convSpace[d]], c.Sizes[convWindow[d]] = ys[2+d], ws[2+d]
	}
	return nil
}

// operand is the element of operand i for an index of each letter.
func (c *Contraction) operand(e *evaluator, i int, of map[byte]Index) *Expr {
	v := c.Op.Operands[i]
	shape := shapeOf(v)
	idx := make([]Index, len(shape))
	if !op.Of(c.Op).Is(op.Windowed) {
		for d, n := range shape {
			if n > 1 {
				idx[d] = of[c.In[i][d]]
			}
		}
		if c.structured(i) && !c.packed { // its zeros as well
			return e.at(e.composite(c.Op.Results[0], c.Op).Op.Operands[0], idx)
		}
		return e.at(v, idx)
	}
	if c.phases != nil {
		return c.ofPhase(e, i, of)
	}
	if i == 1 {
		idx[0], idx[1] = of[convGroup].Times(c.Sizes[convOut]).Add(of[convOut]), of[convIn]
		for d := range shape[2:] {
			idx[2+d] = of[convWindow[d]]
		}
		return e.at(v, idx)
	}
	idx[0], idx[1] = of[convImage], of[convGroup].Times(c.Sizes[convIn]).Add(of[convIn])
	var inside []Condition
	for d, n := range shape[2:] {
		stride, dilation, low := steps(c.Op, d, "window_strides", "rhs_dilation")
		x := of[convSpace[d]].Times(stride).Add(of[convWindow[d]].Times(dilation)).Plus(-low)
		at, conds := e.elementAt(x, n, spread(c.Op, d))
		inside, idx[2+d] = append(inside, conds...), at
	}
	x := e.at(v, idx)
	return e.guard(inside, x, e.number(x.Elem, 0))
}

// structured reports whether operand i has two of each four elements along the sum.
func (c *Contraction) structured(i int) bool { return i == 0 && op.IsStructured(c.Op) }

// indexes reports whether a dimension of operand i is indexed by a letter, also where the
// operand is a number that its elements do not depend on: the shape of the product is the
// same then.
func (c *Contraction) indexes(i int, letter byte) bool {
	if !op.Of(c.Op).Is(op.Windowed) {
		return strings.IndexByte(c.In[i], letter) >= 0
	}
	switch letter {
	case convGroup, convIn, convTap:
		return true
	case convImage:
		return i == 0
	case convOut:
		return i == 1
	}
	return strings.IndexByte(convWindow, letter) >= 0 || i == 0 // the image is indexed by its own dimensions, and both by the window's
}

// Sharing is the number of elements of the result that use an element of operand i at one place of the sum: the product of the
// sizes of the result's letters that do not index it.
func (c *Contraction) Sharing(i int) int64 {
	n := int64(1)
	for _, letter := range []byte(c.Out) {
		if !c.indexes(i, letter) {
			n *= c.Sizes[letter]
		}
	}
	return n
}

// outDim is the position of a letter in the result: its dimension, and the
// stride of its values there.
type outDim struct {
	letter byte
	dim    int
	times  int64
}

func (c *Contraction) outDims() []outDim {
	var dims []outDim
	for i, letter := range []byte(c.Out) {
		if letter != convPhase || c.phases == nil {
			dims = append(dims, outDim{letter, i, 1})
		}
	}
	if op.Of(c.Op).Is(op.Windowed) {
		dims[1].times = c.Sizes[convOut]
		for i := range dims[2:] {
			dims[2+i].dim--
		}
	}
	if c.phases != nil {
		for d, n := range c.phases.Period {
			dims[3+d].times = n
		}
	}
	return dims
}

// out is the position in the result.
func (c *Contraction) out(e *evaluator, of map[byte]Index) []Index {
	idx := make([]Index, len(shapeOf(c.Op.Results[0])))
	for _, d := range c.outDims() {
		idx[d.dim] = idx[d.dim].Add(of[d.letter].Times(d.times))
	}
	if c.phases != nil {
		for d := range c.phases.Period {
			idx[2+d], _ = c.place(e, d, of)
		}
	}
	return idx
}
