package interp

import (
	"slices"

	"dmir/compile/tensor"
	"dmir/dialect/op"
)

// runSegmentProduct multiplies two matrices row by row. What a row stores is found first, in the order of columns; then each of its
// elements is summed, in the order of the products.
func runSegmentProduct(c *call) ([]*tensor.Tensor, error) {
	shape, err := c.outShape(1)
	if err != nil {
		return nil, err
	}
	width, _ := op.Size(c.op, op.ColumnsAttr)
	columns, known := width.Eval(c.frame.bind).Int()
	if !known {
		return nil, c.errorf("DM701", "%s = %s is not known", op.ColumnsAttr, width)
	}
	room := shape[0]
	a, err := c.positions(c.in[0], c.in[1].Len())
	if err != nil {
		return nil, err
	}
	b, err := c.positions(c.in[3], c.in[4].Len())
	if err != nil {
		return nil, err
	}
	values := c.in[2]
	if values.Len() != c.in[1].Len() || c.in[5].Len() != c.in[4].Len() || columns < 1 && c.in[4].Len() > 0 {
		return nil, c.errorf("DM704", "segment_product of %s elements at %s, and %s at %s", values.Type(), c.in[1].Type(), c.in[5].Type(), c.in[4].Type())
	}
	p, at, y := tensor.New(c.outElem(0), len(a)), tensor.New(c.outElem(1), room), tensor.New(values.Elem, room)
	integer := values.Kind() == tensor.KindInt
	n := 0
	for i := range len(a) - 1 {
		sums, whole := map[int]float64{}, map[int]int64{}
		for x := a[i]; x < a[i+1]; x++ {
			k := c.in[1].Int[x]
			if k < 0 || k >= int64(len(b)-1) {
				continue
			}
			for z := b[k]; z < b[k+1]; z++ {
				j := int(min(max(c.in[4].Int[z], 0), columns-1))
				if integer {
					whole[j] += values.Int[x] * c.in[5].Int[z]
				} else {
					sums[j] += values.Float(x) * c.in[5].Float(z)
				}
			}
		}
		var stored []int
		for j := range sums {
			stored = append(stored, j)
		}
		for j := range whole {
			stored = append(stored, j)
		}
		slices.Sort(stored)
		for _, j := range stored {
			if n < room {
				at.SetInt(n, int64(j))
				if integer {
					y.SetInt(n, whole[j])
				} else {
					y.SetFloat(n, sums[j])
				}
			}
			n++
		}
		p.SetInt(i+1, int64(n))
	}
	return []*tensor.Tensor{p, at, y}, nil
}

// runSegmentSample adds up the products of three matrices where all have elements, in the order of those of the first one.
func runSegmentSample(c *call) ([]*tensor.Tensor, error) {
	shape, err := c.outShape(0)
	if err != nil {
		return nil, err
	}
	width, _ := op.Size(c.op, op.ColumnsAttr)
	columns, known := width.Eval(c.frame.bind).Int()
	if !known {
		return nil, c.errorf("DM701", "%s = %s is not known", op.ColumnsAttr, width)
	}
	var rows [3][]int
	for i := range rows {
		if rows[i], err = c.positions(c.in[2*i], c.in[2*i+1].Len()); err != nil {
			return nil, err
		}
	}
	first, second := op.SampledValues(c.op)
	of, x, y := op.SampledMatrix(c.op), c.in[6], c.in[7]
	if x.Len() != c.in[2*first+1].Len() || y.Len() != c.in[2*second+1].Len() || len(rows[0]) != len(rows[2]) {
		return nil, c.errorf("DM704", "segment_sample of %s and %s, which are not of its matrices", x.Type(), y.Type())
	}
	column := func(matrix, i int) int { return int(min(max(c.in[2*matrix+1].Int[i], 0), columns-1)) }
	z := tensor.New(x.Elem, shape...)
	integer := x.Kind() == tensor.KindInt
	sums, whole := make([]float64, shape[0]), make([]int64, shape[0])
	for i := range len(rows[0]) - 1 {
		own := map[int]int{} // of a column of c its element
		for m := rows[2][i]; m < rows[2][i+1]; m++ {
			own[column(2, m)] = m
		}
		for e := rows[0][i]; e < rows[0][i+1]; e++ {
			k := c.in[1].Int[e]
			if k < 0 || k >= int64(len(rows[1])-1) {
				continue
			}
			for at := rows[1][k]; at < rows[1][k+1]; at++ {
				m, ok := own[column(1, at)]
				if !ok {
					continue
				}
				numbers := [3]int{e, at, m}
				if integer {
					whole[numbers[of]] += x.Int[numbers[first]] * y.Int[numbers[second]]
				} else {
					sums[numbers[of]] += x.Float(numbers[first]) * y.Float(numbers[second])
				}
			}
		}
	}
	for i := range shape[0] {
		if integer {
			z.SetInt(i, whole[i])
		} else {
			z.SetFloat(i, sums[i])
		}
	}
	return []*tensor.Tensor{z}, nil
}
