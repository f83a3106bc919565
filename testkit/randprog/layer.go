package randprog

import (
	"fmt"
	"slices"
)

// layer writes the ops of a network layer: a matrix product with element-wise ops
// before and after it, and reductions of its rows and columns.
func (w *writer) layer() bool {
	elem := w.pick("f32", "f16", "bf16")
	if isFloat(w.elem) && w.chance(2) {
		elem = w.elem
	}
	sizes := []int{5, 8, 16, 24, 33, 40, 64, 65, 128}
	m, k, n := sizes[w.r.IntN(9)], sizes[w.r.IntN(9)], sizes[w.r.IntN(9)]
	if w.chance(6) { // sizes for bulk copies and large tiles
		elem, m, k, n = w.pick("f16", "bf16"), 128, 64, 64*(1+w.r.IntN(2))
	}
	if m*n > 2*most || m*k*n > 1<<20 {
		return false
	}
	x, clauses, other := w.argument(elem, []int{m, k}), "", []int{k, n}
	if w.chance(3) {
		clauses, other = "transpose_b = true", []int{n, k}
	}
	y := w.argument(elem, other)
	if w.chance(3) {
		x = w.curve(w.pick("tanh", "sin", "logistic"), x)
	}
	z, ok := w.product(elem, []int{m, n}, k, x, y)
	if !ok {
		return false
	}
	z = w.one("matmul", clauses, z, x, y)
	f := 1 / float64(k)
	z = w.one("mul", "", w.fresh(elem, z.shape, z.lo*f, z.hi*f, false, z), z, w.constant(elem, f))
	if w.chance(2) {
		z = w.combine("add", z, w.features(elem, []int{n}), z.shape)
	}
	if w.chance(2) {
		z = w.curve(w.pick("tanh", "gelu", "silu", "erf"), z)
	}
	switch w.r.IntN(5) {
	case 0:
		w.reduction(z, "add", []int{0}, false)
	case 1:
		w.reduction(z, w.kindOf(z), []int{1}, w.chance(2))
	case 2:
		d := w.r.IntN(2)
		w.one("softmax", fmt.Sprintf("dim = %d", d), w.fresh(elem, z.shape, 0, 1, false, z), z)
	case 3:
		r := w.back(w.reduction(z, "add", []int{1}, true), z.shape, []int{1})
		w.combine("sub", z, r, z.shape)
	}
	return true
}

// tall reduces the long first dimension of a value, which several thread blocks
// share, once or several times.
func (w *writer) tall() bool {
	elem := w.elem
	if !isFloat(elem) {
		elem = "f32"
	}
	shape := []int{[]int{129, 257, 512, 700, 1025}[w.r.IntN(5)], 1 + w.r.IntN(8)}
	if w.chance(3) {
		shape = slices.Insert(shape, 1, 2)
	}
	if count(shape) > most {
		return false
	}
	x := w.argument(elem, shape)
	if w.chance(2) {
		x = w.curve(w.pick("tanh", "sin", "erf"), x)
	}
	r := w.reduction(x, w.kindOf(x), []int{0}, false)
	if w.chance(2) {
		w.reduction(x, w.kindOf(x), []int{0}, w.chance(2))
	}
	if w.chance(2) {
		y := w.combine(w.pick("sub", "add"), x, r, shape)
		if y.top() < 100 {
			y = w.combine("mul", y, y, y.shape)
		}
		w.reduction(y, "add", []int{0}, false)
	}
	return true
}
