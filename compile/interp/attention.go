package interp

import (
	"math"
	"slices"

	"dmir/compile/tensor"
	"dmir/dialect/op"
	"dmir/dialect/random"
)

func attentionExecutors() map[string]executor {
	return map[string]executor{"dm.attention": runAttention, "dm.attention_grad": runAttentionGrad, "dm.segment_attention": runSegmentAttention}
}

// attention is the geometry and the attributes of one dm.attention.
type attention struct {
	heads, group  int // heads over the whole batch; heads that share a key head
	queries, keys int
	depth, value  int

	scale   float64
	causal  bool
	rate    float64
	seed    uint64
	rows    []uint64 // of dropout: the number of each head's first row of scores
	maskAt  []int    // offset of each head's mask; nil for none
	maskRow int      // stride from one query to the next
	maskCol int      // stride from one key to the next
}

// attention reads the geometry.
func (c *call) attention() (*attention, *Error) {
	q, k, v := c.in[0], c.in[1], c.in[2]
	n := q.Rank()
	if n < 2 || k.Rank() != n || v.Rank() != n {
		return nil, c.errorf("DM704", "attention of %s, %s and %s", q.Type(), k.Type(), v.Type())
	}
	a := &attention{
		heads: product(q.Shape[:n-2]), group: 1,
		queries: q.Shape[n-2], keys: k.Shape[n-2], depth: q.Shape[n-1], value: v.Shape[n-1],
		scale:  1 / math.Sqrt(float64(q.Shape[n-1])),
		causal: op.Bool(c.op, "causal"),
		rate:   op.Float(c.op, "dropout"), seed: c.seed(),
	}
	keyHeads := product(k.Shape[:n-2])
	if keyHeads > 0 {
		a.group = a.heads / keyHeads
	}
	if a.group*keyHeads != a.heads || k.Shape[n-1] != a.depth || v.Shape[n-2] != a.keys || !slices.Equal(k.Shape[:n-2], v.Shape[:n-2]) {
		return nil, c.errorf("DM704", "attention of %s, %s and %s", q.Type(), k.Type(), v.Type())
	}
	if op.Attr(c.op, "scale") != nil {
		a.scale = op.Float(c.op, "scale")
	}
	if a.rate > 0 {
		first, steps := c.numbering(q.Shape[:n-1])
		a.rows = make([]uint64, 0, a.heads)
		for _, at := range offsets(q.Shape[:n-2], steps[:n-2]) {
			a.rows = append(a.rows, first+uint64(at))
		}
	}
	if mask := op.OperandNumber(c.op, "mask"); mask >= 0 {
		m := c.in[mask]
		scores := slices.Concat(q.Shape[:n-1], []int{a.keys})
		if s, ok := broadcastShape(scores, m.Shape); !ok || !slices.Equal(s, scores) {
			return nil, c.errorf("DM704", "mask %s does not broadcast to %v", m.Type(), scores)
		}
		strides := broadcastStrides(m.Shape, scores)
		a.maskAt = offsets(scores[:n-2], strides[:n-2])
		a.maskRow, a.maskCol = strides[n-2], strides[n-1]
	}
	return a, nil
}

func runAttention(c *call) ([]*tensor.Tensor, error) {
	a, err := c.attention()
	if err != nil {
		return nil, err
	}
	q, k, v := c.in[0], c.in[1], c.in[2]
	var mask tensor.Tensor
	if i := op.OperandNumber(c.op, "mask"); i >= 0 {
		mask = *c.in[i]
	}
	rows := q.Shape[:q.Rank()-1]
	out := one(tensor.New(q.Elem, slices.Concat(rows, []int{a.value})...))
	lse := func(int, float64) {}
	if len(c.op.Results) > 1 {
		sums := tensor.New(c.outElem(1), slices.Clone(rows)...)
		out, lse = append(out, sums), sums.SetFloat
	}
	if q.F64 != nil {
		attend(c.pool, a, out[0].F64, q.F64, k.F64, v.F64, mask.F64, lse, nil)
	} else {
		attend(c.pool, a, out[0].F32, q.F32, k.F32, v.F32, mask.F32, lse, func(x []float32) { tensor.RoundSlice(q.Elem, x) })
	}
	return out, nil
}

// attend computes an attention for blocks of queries of one head: only one
// block's scores are in memory at a time. lse is called with the logarithm of
// the sum of every query's exponentials.
func attend[T float](p *pool, a *attention, to, q, k, v, mask []T, lse func(row int, v float64), round func([]T)) {
	const block = 128
	blocks := (a.queries + block - 1) / block
	zero := []int{0}
	keyRows, depth := offsets([]int{a.keys}, []int{a.depth}), offsets([]int{a.depth}, []int{1})
	valueRows, values := offsets([]int{a.keys}, []int{a.value}), offsets([]int{a.value}, []int{1})
	keys := offsets([]int{a.keys}, []int{1})
	p.each(a.heads*blocks, func(i int) {
		head, q0 := i/blocks, i%blocks*block
		q1 := min(q0+block, a.queries)
		rows := q1 - q0
		scores := make([]T, rows*a.keys)
		row := offsets([]int{rows}, []int{a.keys})
		kv := head / a.group
		first := gemm[T]{
			a: q[(head*a.queries+q0)*a.depth:], b: k[kv*a.keys*a.depth:], c: scores,
			aB: zero, bB: zero, cB: zero,
			aM: offsets([]int{rows}, []int{a.depth}), aK: depth, bK: depth, bN: keyRows, cM: row, cN: keys,
		}
		w := first.buffers()
		first.serial(p, w)
		w.release()
		for r := range rows {
			if p.stopped() {
				return
			}
			s := scores[r*a.keys:][:a.keys]
			score(a, head, q0+r, s, mask)
			lse(head*a.queries+q0+r, softmaxRow(s, s))
			dropRow(a, head, q0+r, s)
		}
		second := gemm[T]{
			a: scores, b: v[kv*a.keys*a.value:], c: to[(head*a.queries+q0)*a.value:],
			aB: zero, bB: zero, cB: zero,
			aM: row, aK: keys, bK: valueRows, bN: values, cM: offsets([]int{rows}, []int{a.value}), cN: values,
			round: round,
		}
		w = second.buffers()
		second.serial(p, w)
		w.release()
	})
}

// score turns one query's products with the keys into scores.
func score[T float](a *attention, head, query int, s, mask []T) {
	for j := range s {
		s[j] = T(float64(s[j]) * a.scale)
	}
	if a.maskAt != nil {
		at := a.maskAt[head] + query*a.maskRow
		for j := range s {
			s[j] += mask[at+j*a.maskCol]
		}
	}
	if a.causal {
		for j := max(0, query+a.keys-a.queries+1); j < len(s); j++ {
			s[j] = T(math.Inf(-1))
		}
	}
}

// dropRow applies dropout to one query's row.
func dropRow[T float](a *attention, head, query int, s []T) {
	if a.rate <= 0 {
		return
	}
	keep := [2]float64{0, 1 / (1 - a.rate)}
	base := (a.rows[head] + uint64(query)) * uint64(a.keys)
	stream, threshold := tensor.NewStream(a.seed, random.Dropout), tensor.Threshold(a.rate)
	kept := make([]uint8, len(s))
	stream.Keep(kept, base, threshold)
	for j := range s {
		s[j] = T(float64(s[j]) * keep[kept[j]])
	}
}
