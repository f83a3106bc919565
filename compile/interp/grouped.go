package interp

import (
	"dmir/compile/tensor"
	"dmir/dialect/op"
)

// runGroupedMatmul multiplies group by group. Rows in no group, and the products of empty groups, stay 0.
func runGroupedMatmul(c *call) ([]*tensor.Tensor, error) {
	acc := c.accumulator()
	x, w := c.widened(c.in[0], acc), c.widened(c.in[1], acc)
	if x.Rank() != 2 || w.Rank() != 2 && w.Rank() != 3 {
		return nil, c.errorf("DM704", "grouped_matmul of %s and %s", x.Type(), w.Type())
	}
	block := int(op.GroupBlock(c.op))
	if block < 1 || x.Shape[0]%block != 0 {
		return nil, c.errorf("DM704", "grouped_matmul of %s in blocks of %d rows", x.Type(), block)
	}
	at, err := c.positions(c.in[2], x.Shape[0]/block)
	if err != nil {
		return nil, err
	}
	for i := range at {
		at[i] *= block
	}
	groups, rows, depth, cols := len(at)-1, x.Shape[0], x.Shape[1], w.Shape[w.Rank()-1]
	line := func(n, stride int) []int { return offsets([]int{n}, []int{stride}) }
	if w.Rank() == 2 {
		if w.Shape[0] != rows {
			return nil, c.errorf("DM704", "operands of grouped_matmul have %d and %d rows", rows, w.Shape[0])
		}
		to := tensor.New(c.outElem(0), groups, depth, cols)
		for e := range groups {
			n := max(at[e+1]-at[e], 0)
			c.multiply(to, x, w, layout{
				aB: []int{at[e] * depth}, aM: line(depth, 1), aK: line(n, depth),
				bB: []int{at[e] * cols}, bK: line(n, cols), bN: line(cols, 1),
				cB: []int{e * depth * cols}, cM: line(depth, cols), cN: line(cols, 1),
			}, acc)
		}
		return one(to), nil
	}
	kStride, nStride := cols, 1
	if op.Bool(c.op, "transpose_b") {
		cols = w.Shape[1]
		kStride, nStride = 1, depth
	}
	if w.Shape[0] != groups || w.Shape[1]*w.Shape[2] != depth*cols {
		return nil, c.errorf("DM704", "grouped_matmul of %s and %s in %d groups", x.Type(), w.Type(), groups)
	}
	to := tensor.New(c.outElem(0), rows, cols)
	for e := range groups {
		n := max(at[e+1]-at[e], 0)
		c.multiply(to, x, w, layout{
			aB: []int{at[e] * depth}, aM: line(n, depth), aK: line(depth, 1),
			bB: []int{e * depth * cols}, bK: line(depth, kStride), bN: line(cols, nStride),
			cB: []int{at[e] * cols}, cM: line(n, cols), cN: line(cols, 1),
		}, acc)
	}
	return one(to), nil
}
