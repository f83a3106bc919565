package randprog

import (
	"fmt"
	"slices"
)

// parts puts results of matrix products, of rows and of element-wise ops together to
// one tensor: side by side, one below the other, or with numbers around one.
func (w *writer) parts() bool {
	elem := w.pick("f32", "f16", "bf16")
	sizes := []int{1, 4, 5, 8, 16, 24, 33}
	size := func() int { return sizes[w.r.IntN(len(sizes))] }
	d, m, k := w.r.IntN(2), size(), size()
	shared := w.argument(elem, []int{m, k})
	var ins []value
	whole := []int{m, m}
	whole[d] = 0
	for range 2 + w.r.IntN(3) {
		shape := []int{m, m}
		shape[d] = size()
		z, ok := w.producedPart(shared, elem, shape, d)
		if !ok || whole[d]+shape[d] > 64 || count(shape) > most/2 {
			break
		}
		whole[d] += shape[d]
		ins = append(ins, z)
	}
	if len(ins) == 0 || count(whole) > most {
		return false
	}
	if len(ins) == 1 {
		x := ins[0]
		low, high := []int{w.r.IntN(4), w.r.IntN(4)}, []int{w.r.IntN(4), w.r.IntN(4)}
		shape := []int{x.shape[0] + low[0] + high[0], x.shape[1] + low[1] + high[1]}
		v := w.constant(elem, 2)
		y := w.fresh(elem, shape, min(x.lo, 2), max(x.hi, 2), false, x)
		w.one("pad", fmt.Sprintf("low = %s, high = %s", list(low), list(high)), y, x, v)
		return true
	}
	w.r.Shuffle(len(ins), func(i, j int) { ins[i], ins[j] = ins[j], ins[i] })
	y := w.moved(ins[0], whole)
	for _, z := range ins[1:] {
		y.lo, y.hi, y.exact, y.depth = min(y.lo, z.lo), max(y.hi, z.hi), y.exact && z.exact, max(y.depth, z.depth)
	}
	y = w.one("concatenate", fmt.Sprintf("dim = %d", d), y, ins...)
	if w.chance(3) {
		w.curve(w.pick("tanh", "gelu", "erf"), y)
	}
	return true
}

// producedPart is a part of that shape: a product with x, with element-wise ops or a
// normalization behind it, or a value that no product is in.
func (w *writer) producedPart(x value, elem string, shape []int, d int) (value, bool) {
	if w.chance(4) {
		z := w.argument(elem, shape)
		if w.chance(2) {
			z = w.curve(w.pick("tanh", "sin", "erf"), z)
		}
		return z, true
	}
	k := x.shape[1]
	ins, clauses := []value{x, w.argument(elem, []int{k, shape[1]})}, ""
	if d == 0 { // x has the rows of the result's columns
		ins, clauses = []value{w.argument(elem, []int{shape[0], k}), x}, "transpose_b = true"
	}
	z, ok := w.product(elem, shape, k, ins...)
	if !ok {
		return z, false
	}
	z = w.one("matmul", clauses, z, ins...)
	f := 1 / float64(k)
	z = w.one("mul", "", w.fresh(elem, z.shape, z.lo*f, z.hi*f, false, z), z, w.constant(elem, f))
	if w.chance(2) {
		z = w.combine("add", z, w.features(elem, slices.Clone(shape[1:])), z.shape)
	}
	switch w.r.IntN(4) {
	case 0:
		z = w.curve(w.pick("tanh", "gelu", "silu", "erf"), z)
	case 1:
		z = w.one("softmax", "dim = 1", w.fresh(elem, z.shape, 0, 1, false, z), z)
	}
	return z, true
}
