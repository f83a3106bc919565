package interp

import (
	"math"
	"slices"
	"sync"

	"dmir/compile/tensor"
	"dmir/dialect/op"
)

func runAttentionGrad(c *call) ([]*tensor.Tensor, error) {
	a, err := c.attention()
	if err != nil {
		return nil, err
	}
	q, k, v, y, lse, dy := c.in[0], c.in[1], c.in[2], c.in[3], c.in[4], c.in[5]
	rows := q.Shape[:q.Rank()-1]
	if want := slices.Concat(rows, []int{a.value}); !slices.Equal(y.Shape, want) || !slices.Equal(dy.Shape, want) || !slices.Equal(lse.Shape, rows) {
		return nil, c.errorf("DM704", "the gradient of an attention of %v with y %s, lse %s and dy %s", want, y.Type(), lse.Type(), dy.Type())
	}
	var mask tensor.Tensor
	at := op.OperandNumber(c.op, "mask")
	if at >= 0 {
		mask = *c.in[at]
	}
	outs := make([]*tensor.Tensor, len(c.op.Results))
	for i := range outs {
		from := min(i, 3)
		if from == 3 {
			from = at
		}
		outs[i] = tensor.New(c.in[from].Elem, slices.Clone(c.in[from].Shape)...)
	}
	var dmask []float64
	if len(outs) > 3 {
		dmask = make([]float64, mask.Len())
	}
	if q.F64 != nil {
		attendBack(c.pool, a, &backData[float64]{
			q: q.F64, k: k.F64, v: v.F64, y: y.F64, lse: lse.F64, dy: dy.F64, mask: mask.F64,
			dq: outs[0].F64, dk: outs[1].F64, dv: outs[2].F64, dmask: dmask,
		})
	} else {
		attendBack(c.pool, a, &backData[float32]{
			q: q.F32, k: k.F32, v: v.F32, y: y.F32, lse: lse.F32, dy: dy.F32, mask: mask.F32,
			dq: outs[0].F32, dk: outs[1].F32, dv: outs[2].F32, dmask: dmask,
		})
		for _, x := range outs[:3] {
			c.parallel(x.Len(), elements, func(lo, hi int) { tensor.RoundSlice(x.Elem, x.F32[lo:hi]) })
		}
	}
	for i, v := range dmask {
		outs[3].SetFloat(i, v)
	}
	return outs, nil
}

type backData[T float] struct {
	q, k, v, y, lse, dy, mask []T
	dq, dk, dv                []T
	dmask                     []float64 // nil: not computed
	mu                        sync.Mutex
}

// matrix is a dense row-major matrix; turned reads it as its transpose.
type matrix[T float] struct {
	data       []T
	rows, cols int
	turned     bool
}

// times sets c to a·b.
func times[T float](p *pool, c []T, a, b matrix[T]) {
	sides := func(m matrix[T]) (row, col []int) {
		row, col = offsets([]int{m.rows}, []int{m.cols}), offsets([]int{m.cols}, []int{1})
		if m.turned {
			row, col = col, row
		}
		return row, col
	}
	zero := []int{0}
	g := gemm[T]{a: a.data, b: b.data, c: c, aB: zero, bB: zero, cB: zero}
	g.aM, g.aK = sides(a)
	g.bK, g.bN = sides(b)
	g.cM, g.cN = offsets([]int{len(g.aM)}, []int{len(g.bN)}), offsets([]int{len(g.bN)}, []int{1})
	w := g.buffers()
	g.serial(p, w)
	w.release()
}

// attendBack iterates over the heads that share a key head, and over blocks of
// their queries, serially, so that dk and dv need no locks; each thread has
// only one block's scores in memory.
func attendBack[T float](p *pool, a *attention, d *backData[T]) {
	const block = 128
	p.each(a.heads/max(a.group, 1), func(kv int) {
		k, v := d.k[kv*a.keys*a.depth:][:a.keys*a.depth], d.v[kv*a.keys*a.value:][:a.keys*a.value]
		dk, dv := d.dk[kv*a.keys*a.depth:][:len(k)], d.dv[kv*a.keys*a.value:][:len(v)]
		partK, partV := make([]T, len(k)), make([]T, len(v))
		n := min(block, a.queries) * a.keys
		probs, drops, slopes := make([]T, n), make([]T, n), make([]T, n)
		for head := kv * a.group; head < (kv+1)*a.group; head++ {
			for q0 := 0; q0 < a.queries && !p.stopped(); q0 += block {
				rows := min(block, a.queries-q0)
				at := head*a.queries + q0
				q, dy := d.q[at*a.depth:][:rows*a.depth], d.dy[at*a.value:][:rows*a.value]
				qm, dym := matrix[T]{q, rows, a.depth, false}, matrix[T]{dy, rows, a.value, false}
				scores := matrix[T]{probs[:rows*a.keys], rows, a.keys, false}
				times(p, scores.data, qm, matrix[T]{k, a.keys, a.depth, true})
				times(p, slopes[:rows*a.keys], dym, matrix[T]{v, a.keys, a.value, true})
				for r := range rows {
					d.row(a, head, q0+r, probs[r*a.keys:][:a.keys], drops[r*a.keys:][:a.keys], slopes[r*a.keys:][:a.keys])
				}
				times(p, partV, matrix[T]{drops[:rows*a.keys], rows, a.keys, true}, dym)
				ds := matrix[T]{slopes[:rows*a.keys], rows, a.keys, false}
				times(p, d.dq[at*a.depth:][:rows*a.depth], ds, matrix[T]{k, a.keys, a.depth, false})
				ds.turned = true
				times(p, partK, ds, qm)
				for i, x := range partK {
					dk[i] += x
				}
				for i, x := range partV {
					dv[i] += x
				}
			}
		}
	})
}

// row computes, from one query's products with the keys (probs) and of dy with
// the values (slopes), the dropped probabilities (drops) and the slopes of the
// scores before scaling.
func (d *backData[T]) row(a *attention, head, query int, probs, drops, slopes []T) {
	score(a, head, query, probs, d.mask)
	at := head*a.queries + query
	var delta float64
	for j := range a.value {
		delta += float64(d.dy[at*a.value+j]) * float64(d.y[at*a.value+j])
	}
	lse := float64(d.lse[at])
	for j, s := range probs {
		probs[j] = T(math.Exp(float64(s) - lse))
	}
	copy(drops, probs)
	dropRow(a, head, query, drops)
	dropRow(a, head, query, slopes)
	for j := range slopes {
		slopes[j] = T(float64(probs[j]) * (float64(slopes[j]) - delta))
	}
	if d.dmask != nil {
		m := a.maskAt[head] + query*a.maskRow
		d.mu.Lock()
		for j, s := range slopes {
			d.dmask[m+j*a.maskCol] += float64(s)
		}
		d.mu.Unlock()
	}
	for j, s := range slopes {
		slopes[j] = T(float64(s) * a.scale)
	}
}
