package interp

import (
	"math"
	"slices"
	"sort"

	"dmir/compile/tensor"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

func segmentExecutors() map[string]executor {
	return map[string]executor{
		"dm.segment_reduce":        runSegmentReduce,
		"dm.segment_ids":           runSegmentIDs,
		"dm.searchsorted":          runSearchSorted,
		"dm.segment_product":       runSegmentProduct,
		"dm.segment_dense_product": runSegmentDenseProduct,
		"dm.segment_sample":        runSegmentSample,
	}
}

// positions are t's, clamped to [0, n].
func (c *call) positions(t *tensor.Tensor, n int) ([]int, *Error) {
	if t.Rank() != 1+int(op.Int(c.op, "batch_dims")) || t.Shape[t.Rank()-1] == 0 {
		return nil, c.errorf("DM704", "positions must be a vector with an element, not %s", t.Type())
	}
	at := make([]int, t.Len())
	for i, v := range t.Int {
		at[i] = int(min(max(v, 0), int64(n)))
	}
	return at, nil
}

func runSegmentReduce(c *call) ([]*tensor.Tensor, error) {
	x, kind := c.in[0], op.Str(c.op, "kind")
	d, err := c.dim(x.Rank())
	if err != nil {
		return nil, err
	}
	at, err := c.positions(c.in[1], x.Shape[d])
	if err != nil {
		return nil, err
	}
	ends := c.in[1].Shape[c.in[1].Rank()-1]
	shape := slices.Clone(x.Shape)
	shape[d] = ends - 1
	outer, n, inner := product(x.Shape[:d]), x.Shape[d], product(x.Shape[d+1:])
	each := &segments{at, ends, max(1, outer*ends/max(1, len(at)))}
	to := tensor.New(c.outElem(0), shape...)
	switch x.Kind() {
	case tensor.KindF32:
		f := newReducer[float32, float64](kind, x.Elem)
		reduceSegments(c.pool, x.F32, each, outer, n, inner, f, to.SetFloat)
	case tensor.KindF64:
		f := newReducer[float64, float64](kind, x.Elem)
		reduceSegments(c.pool, x.F64, each, outer, n, inner, f, to.SetFloat)
	case tensor.KindInt:
		data, flip := signedOrder(x, kind)
		elem := x.Elem
		if flip != 0 {
			elem = types.I64
		}
		f := newReducer[int64, int64](kind, elem)
		reduceSegments(c.pool, data, each, outer, n, inner, f, func(i int, v int64) { to.SetInt(i, v^flip) })
	default:
		return nil, c.errorf("DM703", "%s is not defined on %s", c.op.Name, x.Elem)
	}
	return one(to), nil
}

// segments are the positions of batches, ends of each.
type segments struct {
	at   []int
	ends int
	each int // how many outer elements a batch has
}

// of are the positions for an outer element.
func (s *segments) of(outer int) []int { return s.at[outer/s.each*s.ends:][:s.ends] }

// reduceSegments reduces the segments at of the middle one of the dimensions [outer, n, inner] of x.
func reduceSegments[T number, A float64 | int64](p *pool, x []T, of *segments, outer, n, inner int, f reducer[T, A], set func(i int, v A)) {
	m := of.ends - 1
	p.parallel(outer*m, max(1, elements*m/(1+(n+m)*inner)), func(lo, hi int) {
		acc := make([]A, inner)
		for i := lo; i < hi && !p.stopped(); i++ {
			for j := range acc {
				acc[j] = f.init
			}
			o := i / m
			at := of.of(o)
			from, end := at[i%m], at[i%m+1]
			switch {
			case from >= end:
			case inner == 1:
				acc[0] = f.row(acc[0], x[o*n+from:o*n+end])
			default:
				for k := from; k < end; k++ {
					f.cols(acc, x[(o*n+k)*inner:][:inner])
				}
			}
			for j, v := range acc {
				set(i*inner+j, v)
			}
		}
	})
}

func runSegmentIDs(c *call) ([]*tensor.Tensor, error) {
	shape, err := c.outShape(0)
	if err != nil {
		return nil, err
	}
	if _, err := c.positions(c.in[0], math.MaxInt32); err != nil {
		return nil, err
	}
	to := tensor.New(c.outElem(0), shape...)
	n := shape[len(shape)-1]
	all := c.in[0].Shape[c.in[0].Rank()-1]
	for k := range to.Len() {
		ends := c.in[0].Int[k/n*all:][1:all]
		to.SetInt(k, int64(sort.Search(len(ends), func(i int) bool { return ends[i] > int64(k%n) })))
	}
	return one(to), nil
}

func runSearchSorted(c *call) ([]*tensor.Tensor, error) {
	v, x := c.in[0], c.in[1]
	if v.Rank() != 1 || v.Elem != x.Elem {
		return nil, c.errorf("DM704", "%s is no vector of elements as those of %s", v.Type(), x.Type())
	}
	to := tensor.New(c.outElem(0), x.Shape...)
	right := op.Str(c.op, "side") == "right"
	switch {
	case x.F32 != nil:
		search(c.pool, to, v.F32, x.F32, right, before[float32])
	case x.F64 != nil:
		search(c.pool, to, v.F64, x.F64, right, before[float64])
	case x.Elem == types.UI64:
		search(c.pool, to, v.Int, x.Int, right, func(a, b int64) int { return before(a^(-1<<63), b^(-1<<63)) })
	default:
		search(c.pool, to, v.Int, x.Int, right, before[int64])
	}
	return one(to), nil
}

// search is, for each element of x, how many of v come before it or, with right, not behind it.
func search[T number](p *pool, to *tensor.Tensor, v, x []T, right bool, cmp func(a, b T) int) {
	p.parallel(len(x), max(1, elements/16), func(lo, hi int) {
		for i := lo; i < hi && !p.stopped(); i++ {
			to.SetInt(i, int64(sort.Search(len(v), func(j int) bool {
				order := cmp(v[j], x[i])
				return order > 0 || order == 0 && !right
			})))
		}
	})
}
