package interp

import (
	"dmir/compile/tensor"
	"dmir/dialect/op"
)

// runRoll copies, for every combination of parts before and behind the cuts, one
// part.
func runRoll(c *call) ([]*tensor.Tensor, error) {
	x := c.in[0]
	dims, err := c.dims("dims", x.Rank())
	if err != nil {
		return nil, err
	}
	shifts := op.Ints(c.op, "shifts")
	if len(shifts) != len(dims) {
		return nil, c.errorf("DM704", "%d shifts for %d dimensions of %s", len(shifts), len(dims), x.Type())
	}
	shift := make([]int, x.Rank())
	for i, d := range dims {
		if n := int64(x.Shape[d]); n > 0 {
			shift[d] = int((shifts[i]%n + n) % n)
		}
	}
	to := tensor.New(x.Elem, x.Shape...)
	source := tensor.Strides(x.Shape)
	size, from, at := make([]int, x.Rank()), 0, 0
	var copyParts func(d int)
	copyParts = func(d int) {
		if d == x.Rank() {
			move(c.pool, view{to, at, source}, view{x, from, source}, size)
			return
		}
		n, s, step := x.Shape[d], shift[d], source[d]
		outerFrom, outerAt := from, at
		size[d], from, at = n-s, outerFrom, outerAt+s*step
		copyParts(d + 1)
		if s > 0 {
			size[d], from, at = s, outerFrom+(n-s)*step, outerAt
			copyParts(d + 1)
		}
		from, at = outerFrom, outerAt
	}
	copyParts(0)
	return one(to), nil
}

func runOneHot(c *call) ([]*tensor.Tensor, error) {
	x, classes := c.in[0], int(op.Int(c.op, "classes"))
	d, err := c.dim(x.Rank() + 1)
	if err != nil {
		return nil, err
	}
	shape := append(append(append([]int{}, x.Shape[:d]...), classes), x.Shape[d:]...)
	to, inner := tensor.New(c.outElem(0), shape...), product(x.Shape[d:])
	for i := range x.Len() {
		if at := x.Int[i]; at >= 0 && at < int64(classes) {
			k := (i/inner*classes+int(at))*inner + i%inner
			if to.Elem.IsFloat() {
				to.SetFloat(k, 1)
			} else {
				to.SetInt(k, 1)
			}
		}
	}
	return one(to), nil
}
