package interp

import (
	"math"

	"dmir/compile/tensor"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// runCumsum sums rows in float64 or, with accumulate = f16, rounds every step.
func runCumsum(c *call) ([]*tensor.Tensor, error) {
	add := func(s, v float64) float64 { return s + v }
	if op.Str(c.op, "accumulate") == "f16" {
		add = func(s, v float64) float64 { return float64(tensor.Round64(types.F16, s+v)) }
	}
	return runRunning(c, 0, 0, add, func(s, v int64) int64 { return s + v })
}

func runCumprod(c *call) ([]*tensor.Tensor, error) {
	return runRunning(c, 1, 1, func(s, v float64) float64 { return s * v }, func(s, v int64) int64 { return s * v })
}

func runCummax(c *call) ([]*tensor.Tensor, error) {
	var flip int64 // makes the order of unsigned integers that of signed ones
	if c.in[0].Elem == types.UI64 {
		flip = math.MinInt64
	}
	most := func(s, v int64) int64 { return max(s^flip, v^flip) ^ flip }
	return runRunning(c, math.Inf(-1), math.MinInt64^flip, func(s, v float64) float64 { return max(s, v) }, most)
}

// runRunning joins the elements of rows in order, floating-point ones in float64.
func runRunning(c *call, first float64, start int64, join func(s, v float64) float64, joinInts func(s, v int64) int64) ([]*tensor.Tensor, error) {
	how := runningOrder{op.Bool(c.op, "exclusive"), op.Bool(c.op, "reverse")}
	return c.rowwise(func(to, x *tensor.Tensor, n int) func(r int) {
		switch x.Kind() {
		case tensor.KindF32:
			return func(r int) {
				row := to.F32[r*n:][:n]
				cumulate(how, row, x.F32[r*n:][:n], first, join)
				tensor.RoundSlice(to.Elem, row)
			}
		case tensor.KindF64:
			return func(r int) { cumulate(how, to.F64[r*n:][:n], x.F64[r*n:][:n], first, join) }
		default:
			return func(r int) {
				row := to.Int[r*n:][:n]
				cumulate(how, row, x.Int[r*n:][:n], start, joinInts)
				narrow(to.Elem, row)
			}
		}
	})
}

type runningOrder struct{ exclusive, reverse bool }

func cumulate[T number, A float64 | int64](how runningOrder, to, x []T, s A, join func(s, v A) A) {
	for i := range x {
		if how.reverse {
			i = len(x) - 1 - i
		}
		before := s
		s = join(s, A(x[i]))
		if how.exclusive {
			to[i] = T(before)
		} else {
			to[i] = T(s)
		}
	}
}

func runMean(c *call) ([]*tensor.Tensor, error) {
	return c.statistic(func(x []float64) float64 { return sumRow[float64, float64](0, x) / float64(len(x)) })
}

func runVariance(c *call) ([]*tensor.Tensor, error) {
	correction := float64(op.Int(c.op, "correction"))
	return c.statistic(func(x []float64) float64 {
		mean := sumRow[float64, float64](0, x) / float64(len(x))
		var sum float64
		for _, v := range x {
			sum += (v - mean) * (v - mean)
		}
		return sum / max(float64(len(x))-correction, 0)
	})
}

func runLogSumExp(c *call) ([]*tensor.Tensor, error) {
	return c.statistic(func(x []float64) float64 {
		m := maxOf(x)
		if math.IsInf(m, 0) {
			m = 0
		}
		var sum float64
		for _, v := range x {
			sum += math.Exp(v - m)
		}
		return m + math.Log(sum)
	})
}

// statistic is a value of the elements along attribute dims, computed in float64.
func (c *call) statistic(of func(x []float64) float64) ([]*tensor.Tensor, error) {
	x := c.in[0]
	dims, err := c.dims("dims", x.Rank())
	if err != nil {
		return nil, err
	}
	n, shape := 1, []int{}
	gone := make([]bool, x.Rank())
	for _, d := range dims {
		gone[d] = true
		n *= x.Shape[d]
	}
	for d, size := range x.Shape {
		switch {
		case !gone[d]:
			shape = append(shape, size)
		case op.Bool(c.op, "keep_dims"):
			shape = append(shape, 1)
		}
	}
	perm, _ := lastly(x.Rank(), dims...)
	x = permuted(c.pool, x, perm)
	to := tensor.New(x.Elem, shape...)
	c.parallel(to.Len(), max(1, elements/max(1, n)), func(lo, hi int) {
		row := make([]float64, n)
		for r := lo; r < hi && !c.stopped(); r++ {
			for i := range row {
				row[i] = x.Float(r*n + i)
			}
			to.SetFloat(r, of(row))
		}
	})
	return one(to), nil
}
