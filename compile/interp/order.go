package interp

import (
	"slices"

	"dmir/compile/tensor"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

func orderExecutors() map[string]executor {
	return map[string]executor{
		"dm.argmax": runArgmax,
		"dm.sort":   runSort,
		"dm.top_k":  runTopK,
	}
}

// before compares for an ascending order with NaN above everything: the result
// is negative, zero or positive as a precedes, equals or follows b.
func before[T number](a, b T) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	case a == b:
		return 0
	case a == a:
		return -1
	case b == b:
		return 1
	}
	return 0
}

// ranker compares positions of row r of x, whose rows have n elements.
func ranker(x *tensor.Tensor, n int) func(r int) func(i, j int) int {
	switch {
	case x.F32 != nil:
		return rankOn(x.F32, n, before[float32])
	case x.F64 != nil:
		return rankOn(x.F64, n, before[float64])
	case x.Elem == types.UI64:
		return rankOn(x.Int, n, func(a, b int64) int { return before(a^(-1<<63), b^(-1<<63)) })
	case x.Int != nil:
		return rankOn(x.Int, n, before[int64])
	}
	return rankOn(x.Bool, n, before[uint8])
}

func rankOn[T number](x []T, n int, cmp func(a, b T) int) func(r int) func(i, j int) int {
	return func(r int) func(i, j int) int {
		row := x[r*n:][:n]
		return func(i, j int) int { return cmp(row[i], row[j]) }
	}
}

func isNaN(x *tensor.Tensor, i int) bool { return x.Elem.IsFloat() && x.Float(i) != x.Float(i) }

func runArgmax(c *call) ([]*tensor.Tensor, error) {
	x := c.in[0]
	d, err := c.dim(x.Rank())
	if err != nil {
		return nil, err
	}
	shape := slices.Delete(slices.Clone(x.Shape), d, d+1)
	if op.Bool(c.op, "keep_dims") {
		shape = slices.Clone(x.Shape)
		shape[d] = 1
	}
	n := x.Shape[d]
	to := tensor.New(c.outElem(0), shape...)
	if n == 0 && to.Len() > 0 {
		return nil, c.errorf("DM707", "there is no largest element along the empty dimension %d of %s", d, x.Type())
	}
	perm, _ := lastly(x.Rank(), d)
	x = permuted(c.pool, x, perm)
	rank := ranker(x, n)
	c.eachRow(x.Len(), n, func(r int) {
		cmp, best := rank(r), 0
		for i := 1; i < n; i++ {
			if cmp(i, best) > 0 {
				best = i
			}
		}
		to.SetInt(r, int64(best))
	})
	return one(to), nil
}

// ordered returns, along attribute dim, the first k elements in the order of
// cmp and their positions.
func (c *call) ordered(k func(n int) int, cmp func(x *tensor.Tensor, n int) func(r int) func(i, j int) int) ([]*tensor.Tensor, error) {
	x := c.in[0]
	d, err := c.dim(x.Rank())
	if err != nil {
		return nil, err
	}
	n := x.Shape[d]
	most := k(n)
	if most < 0 || most > n {
		return nil, c.errorf("DM704", "k = %d exceeds the %d elements of a row", most, n)
	}
	perm, inverse := lastly(x.Rank(), d)
	x = permuted(c.pool, x, perm)
	shape := slices.Clone(x.Shape)
	shape[len(shape)-1] = most
	values := tensor.New(x.Elem, shape...)
	indexElem := types.I64
	if len(c.op.Results) > 1 {
		indexElem = c.outElem(1)
	}
	positions := tensor.New(indexElem, shape...)
	rank := cmp(x, n)
	sorted := func(r int) []int { return sortedRow(n, rank(r)) }
	each := func(f func(r int)) { c.eachRow(x.Len(), n, f) }
	if n > sortRun { // few long rows: threads share each of them
		sorted = func(r int) []int { return c.sortedLong(n, rank(r)) }
		each = func(f func(r int)) {
			for r := range x.Len() / n {
				f(r)
			}
		}
	}
	each(func(r int) {
		order := sorted(r)
		if c.stopped() {
			return
		}
		for i, from := range order[:most] {
			at := r*most + i
			positions.SetInt(at, int64(from))
			switch {
			case x.F32 != nil:
				values.F32[at] = x.F32[r*n+from]
			case x.F64 != nil:
				values.F64[at] = x.F64[r*n+from]
			case x.Int != nil:
				values.Int[at] = x.Int[r*n+from]
			default:
				values.Bool[at] = x.Bool[r*n+from]
			}
		}
	})
	return []*tensor.Tensor{permuted(c.pool, values, inverse), permuted(c.pool, positions, inverse)}, nil
}

// sortRun is the number of elements that one goroutine sorts at once, in a few
// milliseconds.
const sortRun = 1 << 15

func sortedRow(n int, cmp func(i, j int) int) []int {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, cmp)
	return order
}

// sortedLong sorts runs in parallel and merges them pairwise.
func (c *call) sortedLong(n int, cmp func(i, j int) int) []int {
	order, spare := make([]int, n), make([]int, n)
	c.parallel(n, sortRun, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			order[i] = i
		}
		slices.SortStableFunc(order[lo:hi], cmp)
	})
	for width := sortRun; width < n && !c.stopped(); width *= 2 {
		c.each((n+2*width-1)/(2*width), func(pair int) {
			lo := pair * 2 * width
			mid, hi := min(lo+width, n), min(lo+2*width, n)
			c.mergeRuns(spare[lo:hi], order[lo:mid], order[mid:hi], cmp)
		})
		order, spare = spare, order
	}
	return order
}

// mergeRuns takes from a where the two are equal, which keeps the sort stable.
func (c *call) mergeRuns(to, a, b []int, cmp func(i, j int) int) {
	for i := range to {
		if i%sortRun == 0 && c.stopped() {
			return
		}
		if len(b) == 0 || len(a) > 0 && cmp(a[0], b[0]) <= 0 {
			to[i], a = a[0], a[1:]
		} else {
			to[i], b = b[0], b[1:]
		}
	}
}

// falling reverses an ascending order; equal elements keep their order.
func falling(rank func(r int) func(i, j int) int) func(r int) func(i, j int) int {
	return func(r int) func(i, j int) int {
		cmp := rank(r)
		return func(i, j int) int { return cmp(j, i) }
	}
}

// runSort puts NaN last in both orders.
func runSort(c *call) ([]*tensor.Tensor, error) {
	return c.ordered(func(n int) int { return n }, func(x *tensor.Tensor, n int) func(r int) func(i, j int) int {
		rank := ranker(x, n)
		if !op.Bool(c.op, "descending") {
			return rank
		}
		down := falling(rank)
		if !x.Elem.IsFloat() {
			return down
		}
		return func(r int) func(i, j int) int {
			cmp := down(r)
			return func(i, j int) int {
				a, b := isNaN(x, r*n+i), isNaN(x, r*n+j)
				switch {
				case a && b:
					return 0
				case a:
					return 1
				case b:
					return -1
				}
				return cmp(i, j)
			}
		}
	})
}

// runTopK takes NaN for the largest value, as argmax does.
func runTopK(c *call) ([]*tensor.Tensor, error) {
	k := int(op.Int(c.op, "k"))
	return c.ordered(func(int) int { return k }, func(x *tensor.Tensor, n int) func(r int) func(i, j int) int {
		if op.Bool(c.op, "largest") {
			return falling(ranker(x, n))
		}
		return ranker(x, n)
	})
}
