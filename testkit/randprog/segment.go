package randprog

import (
	"fmt"
	"math"
	"slices"
)

// positions writes a constant of the positions of m segments of n elements, which full leaves none
// of empty. Others may be empty, begin behind the first element or before it, end before the
// last or beyond it.
func (w *writer) positions(m, n int, full bool) value {
	at := make([]int, m+1)
	for i := range at {
		switch {
		case full:
			at[i] = i * n / m
		case w.chance(4) && i > 0:
			at[i] = at[i-1]
		default:
			at[i] = w.r.IntN(n + 1)
		}
	}
	if !full {
		slices.Sort(at)
		switch w.r.IntN(8) {
		case 0:
			at[m] = n + w.r.IntN(5)
		case 1:
			at[0] = -w.r.IntN(5)
		case 2, 3, 4:
			at[0], at[m] = 0, n
		}
	}
	v := w.fresh(w.pick("i32", "i64"), []int{m + 1}, float64(slices.Min(at)), float64(slices.Max(at)), true)
	fmt.Fprintf(&w.out, "%s%s = dm.constant dense<%s> : %s\n", w.indent, v.name, list(at), v.typ())
	w.vals = append(w.vals, v)
	return v
}

// segments writes a reduction of segments, of what other statements computed or of elements that a
// gather picks.
func (w *writer) segments() bool {
	x, ok := w.find(ranked(1, func(v value) bool { return numbers(v) && (v.float() || !w.grad) && v.depth < 4 }))
	if !ok {
		return false
	}
	d, kind := w.r.IntN(len(x.shape)), w.kindOf(x)
	if w.chance(3) {
		shape := slices.Clone(x.shape)
		shape[d] = 8 + w.r.IntN(90)
		if count(shape) <= most {
			x = w.one("gather", fmt.Sprintf("dim = %d", d), w.moved(x, shape), x, w.indices([]int{shape[d]}))
		}
	}
	n := x.shape[d]
	lo, hi, exact := x.lo, x.hi, x.exact
	switch kind {
	case "add":
		if float64(n)*x.top() > limit(x.elem) {
			return false
		}
		lo, hi, exact = min(0, x.lo*float64(n)), max(0, x.hi*float64(n)), exact && isInt(x.elem)
	case "mul":
		if n > 6 || x.top() > 2 || w.grad {
			return false
		}
		hi = float64(int(1) << n)
		lo, exact = -hi, exact && isInt(x.elem)
	}
	m := min(w.size(), 70)
	full := kind == "max" || kind == "min" // the neutral element of an empty one is out of all bounds
	if full {
		m = min(m, n)
	}
	shape := slices.Clone(x.shape)
	shape[d] = m
	if count(shape) > most {
		return false
	}
	r := w.fresh(x.elem, shape, lo, hi, exact, x)
	r.depth++
	w.one("segment_reduce "+kind, fmt.Sprintf("dim = %d", d), r, x, w.positions(m, n, full))
	return true
}

// segmentIDs writes the numbers of segments and, mostly, a gather by them.
func (w *writer) segmentIDs() bool {
	m, n := min(w.size(), 70), min(w.size(), 400)
	ids := w.one("segment_ids", "", w.fresh(w.pick("i32", "i32", "i64"), []int{n}, 0, float64(m), true), w.positions(m, n, false))
	if x, ok := w.find(ranked(1, w.anything)); ok && !w.chance(4) {
		d := w.r.IntN(len(x.shape))
		if shape := picked(x, d, 0, ids.shape); count(shape) <= most {
			w.one("gather", fmt.Sprintf("dim = %d", d), w.moved(x, shape), x, ids)
		}
	}
	return true
}

// searchSorted writes a search for elements that are exact in a vector that is sorted before.
func (w *writer) searchSorted() bool {
	x, ok := w.find(func(v value) bool { return numbers(v) && v.exact })
	if !ok {
		return false
	}
	v, ok := w.find(func(v value) bool { return v.elem == x.elem && len(v.shape) == 1 && v.exact })
	if !ok {
		v = w.argument(x.elem, []int{w.size()})
	}
	sorted := w.one("sort", "", w.moved(v, v.shape), v)
	w.one("searchsorted", "side = "+w.pick("left", "right"), w.fresh(w.pick("i32", "i32", "i64"), x.shape, 0, float64(v.shape[0]), true), sorted, x)
	return true
}

// segmentAttention writes an attention to the keys that segments list, sometimes in blocks and with a bias.
func (w *writer) segmentAttention() bool {
	elem := w.pick("f32", "f32", "f16", "bf16", "f64")
	if isFloat(w.elem) && w.chance(2) {
		elem = w.elem
	}
	heads, group := 1+w.r.IntN(2), 1+w.r.IntN(3)
	m, entries, rows, columns := 1+w.r.IntN(20), 1+w.r.IntN(60), 1, 1
	if w.chance(2) {
		rows, columns = 1+w.r.IntN(4), 1+w.r.IntN(4)
	}
	keys, depth, width := columns*(1+w.r.IntN(12)), []int{4, 8, 7, 32}[w.r.IntN(4)], []int{4, 8, 5, 48}[w.r.IntN(4)]
	q := w.features(elem, []int{heads * group, m * rows, depth})
	k, v := w.features(elem, []int{heads, keys, depth}), w.features(elem, []int{heads, keys, width})
	ins := []value{q, k, v, w.positions(m, entries, false), w.indices([]int{entries})}
	if w.chance(3) {
		of := 1
		if w.chance(2) {
			of = heads * group
		}
		ins = append(ins, w.features(elem, []int{of, entries, rows, columns}))
	}
	scores := ""
	if w.chance(4) {
		of, each := 1, 1
		if w.chance(2) {
			of = heads * group
		}
		if w.chance(2) {
			each = m * rows
		}
		ins, scores = append(ins, w.features(elem, []int{of, each, depth})), ", scores = sum, leak = "+w.pick("0.25", "0.0", "-0.5")
	}
	y := w.fresh(elem, []int{heads * group, m * rows, width}, -2*v.top(), 2*v.top(), false, ins...)
	y.depth++
	// With large scores one key has all the weight, and rounding decides which.
	w.one("segment_attention", fmt.Sprintf("block = [%d, %d], scale = %s", rows, columns, number(elem, 0.25/float64(depth)))+scores, y, ins...)
	return true
}

// structuredEinsum writes a product with a tensor that has two of each four elements.
func (w *writer) structuredEinsum() bool {
	x, ok := w.find(func(v value) bool {
		return len(v.shape) == 2 && v.shape[1]%32 == 0 && w.factor(v) && !isF8(v.elem) && isFloat(v.elem)
	})
	if !ok {
		x = w.argument(w.pick("f16", "bf16", "f32"), []int{w.size(), 32 * (1 + w.r.IntN(2))})
	}
	n, k, rows := x.shape[0], x.shape[1], w.size()
	if n*rows*k > points {
		return false
	}
	y := w.argument(x.elem, []int{rows, k / 2})
	x, y = w.within(x, math.Sqrt(limit(x.elem)/float64(k))), w.within(y, math.Sqrt(limit(x.elem)/float64(k)))
	z, ok := w.product(x.elem, []int{n, rows}, k, y, x)
	if !ok {
		return false
	}
	words := make([]int, rows*k/32)
	for i := range words {
		for g := range 8 {
			words[i] |= []int{4, 8, 12, 9, 13, 14}[w.r.IntN(6)] << (4 * g)
		}
	}
	m := w.fresh("ui32", []int{len(words)}, 0, 1<<32, true)
	fmt.Fprintf(&w.out, "%s%s = dm.constant dense<%s> : %s\n", w.indent, m.name, list(words), m.typ())
	at := w.fresh("ui32", []int{rows, k / 32}, 0, 1<<32, true)
	fmt.Fprintf(&w.out, "%s%s = dm.reshape %s : (%s) -> %s\n", w.indent, at.name, m.name, m.typ(), at.typ())
	w.one(`structured_einsum "mk,nk->nm"`, "", z, y, x, at)
	return true
}

// groupedMatmul writes a product of groups of rows with a matrix each, or the product of each group.
func (w *writer) groupedMatmul() bool {
	x, ok := w.find(func(v value) bool { return len(v.shape) == 2 && w.factor(v) && !isF8(v.elem) })
	if !ok {
		return false
	}
	rows, k := x.shape[0], x.shape[1]
	groups, n := 1+w.r.IntN(6), w.size()
	matrices, sum := []int{groups, k, n}, k
	shape, clause := []int{rows, n}, ""
	switch w.r.IntN(3) {
	case 0:
		matrices, clause = []int{groups, n, k}, "transpose_b = true"
	case 1:
		matrices, shape, sum = []int{rows, n}, []int{groups, k, n}, rows
	}
	if count(matrices) > most || count(shape) > most || count(shape)*sum > points {
		return false
	}
	y := w.argument(x.elem, matrices)
	x, y = w.within(x, math.Sqrt(limit(x.elem)/float64(sum))), w.within(y, math.Sqrt(limit(x.elem)/float64(sum)))
	z, ok := w.product(x.elem, shape, sum, x, y)
	if ok {
		w.one("grouped_matmul", clause, z, x, y, w.positions(groups, rows, false))
	}
	return ok
}
