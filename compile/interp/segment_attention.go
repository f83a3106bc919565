package interp

import (
	"math"

	"dmir/compile/tensor"
	"dmir/dialect/op"
)

// segmentAttention is the geometry of one dm.segment_attention.
type segmentAttention struct {
	heads, group        int // heads that share a key head
	queries, keys       int
	depth, value        int
	r, c                int // queries of a segment, keys of a coordinate
	entries             int
	at, coordinates     []int
	scale, slope        float64
	adds                bool
	bias                *tensor.Tensor // nil: none
	biasHead, biasEntry int            // steps
	weights             *tensor.Tensor // of the elements of a sum; nil: none
	weightsHead         int            // steps, and queries that have the same
	weightsQueries      int
	leak                float64
}

func (c *call) segmentAttention() (*segmentAttention, *Error) {
	q, k, v, e := c.in[0], c.in[1], c.in[2], c.in[4]
	r, b := op.SegmentBlock(c.op)
	if q.Rank() != 3 || k.Rank() != 3 || v.Rank() != 3 || e.Rank() != 1 || r == 0 {
		return nil, c.errorf("DM704", "segment_attention of %s, %s and %s with the coordinates %s", q.Type(), k.Type(), v.Type(), e.Type())
	}
	at, err := c.positions(c.in[3], e.Len())
	if err != nil {
		return nil, err
	}
	a := &segmentAttention{
		heads: q.Shape[0], group: 1, queries: q.Shape[1], keys: k.Shape[1], depth: q.Shape[2], value: v.Shape[2],
		r: int(r), c: int(b), entries: e.Len(), at: at, coordinates: make([]int, e.Len()), scale: op.Float(c.op, "scale"), slope: op.Float(c.op, "slope"), adds: op.AddsScores(c.op),
	}
	if k.Shape[0] > 0 {
		a.group = a.heads / k.Shape[0]
	}
	if a.group*k.Shape[0] != a.heads || k.Shape[2] != a.depth || v.Shape[0] != k.Shape[0] || v.Shape[1] != a.keys || a.queries != (len(at)-1)*a.r || a.keys%a.c != 0 {
		return nil, c.errorf("DM704", "segment_attention of %s, %s and %s with %d segments", q.Type(), k.Type(), v.Type(), len(at)-1)
	}
	for i, j := range e.Int {
		a.coordinates[i] = max(min(int(j), a.keys/a.c-1), 0)
		if e.Elem.IsUnsigned() && j < 0 { // beyond all
			a.coordinates[i] = a.keys/a.c - 1
		}
	}
	if i := op.OperandNumber(c.op, "bias"); i >= 0 {
		a.bias, a.biasEntry = c.in[i], a.r*a.c
		if a.bias.Rank() != 4 || a.bias.Len() != a.bias.Shape[0]*a.entries*a.biasEntry || a.bias.Shape[0] != 1 && a.bias.Shape[0] != a.heads {
			return nil, c.errorf("DM704", "the bias %s of segment_attention", a.bias.Type())
		}
		if a.bias.Shape[0] > 1 {
			a.biasHead = a.entries * a.biasEntry
		}
	}
	if i := op.OperandNumber(c.op, "weights"); i >= 0 {
		w := c.in[i]
		if w.Rank() != 3 || w.Shape[0] != 1 && w.Shape[0] != a.heads || w.Shape[2] != a.depth || w.Shape[1] > 0 && a.queries%w.Shape[1] != 0 || w.Shape[1] == 0 && a.queries > 0 {
			return nil, c.errorf("DM704", "the weights %s of segment_attention", w.Type())
		}
		a.weights, a.leak, a.weightsQueries = w, op.Float(c.op, "leak"), a.queries/max(w.Shape[1], 1)
		if w.Shape[0] > 1 {
			a.weightsHead = w.Shape[1] * a.depth
		}
	}
	return a, nil
}

func runSegmentAttention(c *call) ([]*tensor.Tensor, error) {
	a, err := c.segmentAttention()
	if err != nil {
		return nil, err
	}
	q, k, v := c.in[0], c.in[1], c.in[2]
	out := one(tensor.New(q.Elem, a.heads, a.queries, a.value))
	lse := func(int, float64) {}
	if len(c.op.Results) > 1 {
		sums := tensor.New(c.outElem(1), a.heads, a.queries)
		out, lse = append(out, sums), sums.SetFloat
	}
	set := func(i int, x float64) { out[0].SetFloat(i, x) }
	if q.F64 != nil {
		attendSegments(c.pool, a, q.F64, k.F64, v.F64, set, lse)
	} else {
		attendSegments(c.pool, a, q.F32, k.F32, v.F32, set, lse)
	}
	return out, nil
}

// attendSegments computes a query after the other: its scores, their softmax, and the sum of values.
func attendSegments[T float](p *pool, a *segmentAttention, q, k, v []T, set, lse func(i int, x float64)) {
	p.parallel(a.heads*a.queries, 16, func(lo, hi int) {
		sums := make([]float64, a.value)
		var scores []float64
		for i := lo; i < hi && !p.stopped(); i++ {
			head, query := i/a.queries, i%a.queries
			kv, segment := head/a.group*a.keys, query/a.r
			from, end := a.at[segment], max(a.at[segment], a.at[segment+1])
			scores = scores[:0]
			most := math.Inf(-1)
			for e := from; e < end; e++ {
				for j := range a.c {
					row, s := (kv+a.coordinates[e]*a.c+j)*a.depth, 0.0
					for d := range a.depth {
						switch x, y := float64(q[i*a.depth+d]), float64(k[row+d]); {
						case a.weights != nil:
							u := x + y
							if u < 0 {
								u *= a.leak
							}
							s += u * a.weights.Float(head*a.weightsHead+query/a.weightsQueries*a.depth+d)
						case a.adds:
							s = x + y
						default:
							s += x * y
						}
					}
					s *= a.scale
					if a.bias != nil {
						s += a.bias.Float(head*a.biasHead + e*a.biasEntry + query%a.r*a.c + j)
					}
					if s < 0 {
						s *= a.slope
					}
					scores = append(scores, s)
					most = math.Max(most, s)
				}
			}
			sum := 0.0
			for n, s := range scores {
				scores[n] = math.Exp(s - most)
				sum += scores[n]
			}
			clear(sums)
			for n, s := range scores {
				row := (kv + a.coordinates[from+n/a.c]*a.c + n%a.c) * a.value
				for d := range sums {
					sums[d] += s / sum * float64(v[row+d])
				}
			}
			for d, x := range sums {
				set(i*a.value+d, x)
			}
			lse(i, math.Log(sum)+most)
		}
	})
}
