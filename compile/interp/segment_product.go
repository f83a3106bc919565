package interp

import (
	"maps"
	"math"
	"slices"

	"dmir/compile/tensor"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// segmentProduct is two matrices in rows whose products are joined.
type segmentProduct struct {
	*call
	a, b    []int // where rows begin
	columns int64
	number  func(a, b float64) float64 // of two elements, and of their products
	sum     func(a, b float64) float64
	integer func(a, b int64) int64
	whole   func(a, b int64) int64
}

func (c *call) segmentProduct() (*segmentProduct, *Error) {
	width, _ := op.Size(c.op, op.ColumnsAttr)
	columns, known := width.Eval(c.frame.bind).Int()
	if !known {
		return nil, c.errorf("DM701", "%s = %s is not known", op.ColumnsAttr, width)
	}
	p := &segmentProduct{call: c, columns: columns}
	var err *Error
	if p.a, err = c.positions(c.in[0], c.in[1].Len()); err != nil {
		return nil, err
	}
	if p.b, err = c.positions(c.in[3], c.in[4].Len()); err != nil {
		return nil, err
	}
	if c.in[2].Len() != c.in[1].Len() || c.in[5].Len() != c.in[4].Len() || columns < 1 && c.in[4].Len() > 0 {
		return nil, c.errorf("DM704", "%s of %s elements at %s, and %s at %s", c.op.Name, c.in[2].Type(), c.in[1].Type(), c.in[5].Type(), c.in[4].Type())
	}
	p.number, p.integer = joinedBy(op.Str(c.op, op.CombineAttr), c.in[2].Elem)
	p.sum, p.whole = joinedBy(op.Str(c.op, op.ReductionAttr), c.in[2].Elem)
	return p, nil
}

// joinedBy is the function of two numbers, or integers, of elem that a kind of reduction joins them by.
func joinedBy(kind string, elem types.Elem) (func(a, b float64) float64, func(a, b int64) int64) {
	whole := newReducer[int64, int64](kind, elem).merge
	if elem == types.UI64 && (kind == "min" || kind == "max") { // in the order of signed numbers
		signed := whole
		whole = func(a, b int64) int64 { return signed(a^math.MinInt64, b^math.MinInt64) ^ math.MinInt64 }
	}
	return newReducer[float64, float64](kind, elem).merge, whole
}

// row joins the products of row i by their columns.
func (p *segmentProduct) row(i int) (sums map[int]float64, whole map[int]int64) {
	sums, whole = map[int]float64{}, map[int]int64{}
	values, others := p.in[2], p.in[5]
	for x := p.a[i]; x < p.a[i+1]; x++ {
		k := p.in[1].Int[x]
		if k < 0 || k >= int64(len(p.b)-1) {
			continue
		}
		for z := p.b[k]; z < p.b[k+1]; z++ {
			j := int(min(max(p.in[4].Int[z], 0), p.columns-1))
			if values.Kind() == tensor.KindInt {
				v := p.integer(values.Int[x], others.Int[z])
				if old, ok := whole[j]; ok {
					v = p.whole(old, v)
				}
				whole[j] = v
				continue
			}
			v := p.number(values.Float(x), others.Float(z))
			if old, ok := sums[j]; ok {
				v = p.sum(old, v)
			}
			sums[j] = v
		}
	}
	return sums, whole
}

// runSegmentProduct multiplies two matrices row by row. What a row stores is found first, in the order of columns; then each of its
// elements is summed, in the order of the products.
func runSegmentProduct(c *call) ([]*tensor.Tensor, error) {
	shape, err := c.outShape(1)
	if err != nil {
		return nil, err
	}
	s, err := c.segmentProduct()
	if err != nil {
		return nil, err
	}
	room := shape[0]
	p, at, y := tensor.New(c.outElem(0), len(s.a)), tensor.New(c.outElem(1), room), tensor.New(c.in[2].Elem, room)
	n := 0
	for i := range len(s.a) - 1 {
		sums, whole := s.row(i)
		for _, j := range slices.Sorted(maps.Keys(sums)) {
			if n < room {
				at.SetInt(n, int64(j))
				y.SetFloat(n, sums[j])
			}
			n++
		}
		for _, j := range slices.Sorted(maps.Keys(whole)) {
			if n < room {
				at.SetInt(n, int64(j))
				y.SetInt(n, whole[j])
			}
			n++
		}
		p.SetInt(i+1, int64(n))
	}
	return []*tensor.Tensor{p, at, y}, nil
}

// runSegmentDenseProduct is runSegmentProduct with each row stored in full.
func runSegmentDenseProduct(c *call) ([]*tensor.Tensor, error) {
	shape, err := c.outShape(0)
	if err != nil {
		return nil, err
	}
	s, err := c.segmentProduct()
	if err != nil {
		return nil, err
	}
	kind, elem := op.Str(c.op, op.ReductionAttr), c.in[2].Elem
	y := tensor.New(elem, shape...)
	none, noneWhole := newReducer[float64, float64](kind, elem).init, newReducer[int64, int64](kind, elem).init
	if elem == types.UI64 && kind == "min" {
		noneWhole = -1
	}
	for i := range y.Len() {
		if y.Kind() == tensor.KindInt {
			y.SetInt(i, noneWhole)
		} else {
			y.SetFloat(i, none)
		}
	}
	for i := range shape[0] {
		sums, whole := s.row(i)
		for j, v := range sums {
			y.SetFloat(i*shape[1]+j, v)
		}
		for j, v := range whole {
			y.SetInt(i*shape[1]+j, v)
		}
	}
	return one(y), nil
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
