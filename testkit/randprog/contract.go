package randprog

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// factor reports whether v is small enough as an operand of a contraction.
func (w *writer) factor(v value) bool {
	return (v.float() || isInt(v.elem) && !w.grad && v.exact || isF8(v.elem) && !w.grad) && v.top() <= limit(v.elem)
}

func (w *writer) product(elem string, shape []int, n int, ins ...value) (value, bool) {
	top := float64(n)
	exact := isInt(elem)
	for _, x := range ins {
		top *= x.top()
		exact = exact && x.exact
	}
	return w.fresh(elem, shape, -top, top, exact, ins...), top <= limit(elem)
}

// einsum contracts two values, sometimes one or three.
func (w *writer) einsum() bool {
	x, ok := w.find(ranked(1, w.factor))
	if !ok {
		return false
	}
	size := map[byte]int{} // of the letters
	name := func(d int) byte {
		l := byte('a' + len(size))
		size[l] = d
		return l
	}
	var xs []byte
	for _, d := range x.shape {
		xs = append(xs, name(d))
	}
	ins, parts := []value{x}, []string{string(xs)}
	for range []int{0, 1, 1, 1, 1, 1, 2}[w.r.IntN(7)] {
		y, ok := w.find(ranked(1, func(v value) bool { return v.elem == x.elem && w.factor(v) }))
		if !ok {
			y = x
		}
		var ys []byte
		for _, d := range y.shape {
			l := byte(0)
			for _, k := range w.r.Perm(len(size)) {
				if c := byte('a' + k); size[c] == d && !slices.Contains(ys, c) && !w.chance(5) {
					l = c
					break
				}
			}
			if l == 0 {
				l = name(d)
			}
			ys = append(ys, l)
		}
		ins, parts = append(ins, y), append(parts, string(ys))
	}
	var out []byte
	var shape []int
	all, n := 1, 1
	for _, k := range w.r.Perm(len(size)) {
		l := byte('a' + k)
		all *= size[l]
		used := strings.Count(strings.Join(parts, ""), string(l))
		if used > 1 && w.chance(4) || used == 1 && !w.chance(5) {
			out, shape = append(out, l), append(shape, size[l])
		} else {
			n *= size[l]
		}
	}
	if w.chance(3) {
		slices.Sort(out)
		shape = shape[:0]
		for _, l := range out {
			shape = append(shape, size[l])
		}
	}
	letters := strings.Join(parts, ",") + "->" + string(out)
	if all > points || count(shape) > most || len(shape) > 5 {
		return false
	}
	for i := range ins {
		if len(ins) > 1 || n > 1 {
			ins[i] = w.within(ins[i], math.Pow(limit(x.elem)/float64(n), 1/float64(len(ins))))
		}
	}
	elem := x.elem
	if isF8(elem) || coarse(elem) && w.chance(4) {
		elem = "f32"
	}
	y, ok := w.product(elem, shape, n, ins...)
	if ok {
		w.one(fmt.Sprintf("einsum %q", letters), "", y, ins...)
	}
	return ok
}

// within is small for types that have other ops.
func (w *writer) within(v value, r float64) value {
	if isF8(v.elem) {
		return v
	}
	return w.small(v, max(r, 0.01))
}

func (w *writer) matmul() bool {
	x, ok := w.find(ranked(2, w.factor))
	if !ok {
		return false
	}
	r := len(x.shape)
	ta, tb := w.chance(3), w.chance(3)
	m, k := x.shape[r-2], x.shape[r-1]
	if ta {
		m, k = k, m
	}
	inner := func(v value) int {
		if tb {
			return v.shape[len(v.shape)-1]
		}
		return v.shape[len(v.shape)-2]
	}
	y, ok := w.find(ranked(2, func(v value) bool {
		_, fits := joined(v.shape[:len(v.shape)-2], x.shape[:r-2])
		return v.elem == x.elem && w.factor(v) && inner(v) == k && fits
	}))
	if !ok {
		s := []int{k, w.size()}
		if tb {
			slices.Reverse(s)
		}
		if count(s) > most/2 {
			return false
		}
		y = w.argument(x.elem, s)
	}
	n := y.shape[len(y.shape)-1]
	if tb {
		n = y.shape[len(y.shape)-2]
	}
	batch, _ := joined(y.shape[:len(y.shape)-2], x.shape[:r-2])
	shape := append(slices.Clone(batch), m, n)
	if count(shape) > most || count(shape)*k > points {
		return false
	}
	x, y = w.within(x, math.Sqrt(limit(x.elem)/float64(k))), w.within(y, math.Sqrt(limit(x.elem)/float64(k)))
	elem := x.elem
	if isF8(elem) || coarse(elem) && w.chance(4) {
		elem = "f32"
	}
	z, ok := w.product(elem, shape, k, x, y)
	var clauses []string
	if ta {
		clauses = append(clauses, "transpose_a = true")
	}
	if tb {
		clauses = append(clauses, "transpose_b = true")
	}
	if ok {
		if w.chance(4) { // the same as an einsum
			left, right := "...ij", "...jk"
			if ta {
				left = "...ji"
			}
			if tb {
				right = "...kj"
			}
			w.one(fmt.Sprintf("einsum %q", left+","+right+"->...ik"), "", z, x, y)
			return true
		}
		w.one("matmul", strings.Join(clauses, ", "), z, x, y)
	}
	return ok
}

func (w *writer) convolution() bool {
	x, ok := w.find(func(v value) bool {
		return len(v.shape) == 4 && v.float() && v.top() <= 100 && count(v.shape) < 2000 && v.shape[1] < 40
	})
	if !ok {
		if !w.chance(3) {
			return false
		}
		x = w.argument(w.pick("f32", "f16", "f64"), []int{1 + w.r.IntN(2), 1 + w.r.IntN(4), 2 + w.r.IntN(7), 2 + w.r.IntN(7)})
	}
	groups := 1
	if x.shape[1]%2 == 0 && w.chance(4) {
		groups = 2
	}
	kh, kw := 1+w.r.IntN(min(3, x.shape[2])), 1+w.r.IntN(min(3, x.shape[3]))
	outs := groups * (1 + w.r.IntN(4))
	k := w.features(x.elem, []int{outs, x.shape[1] / groups, kh, kw})
	stride, pad := 1+w.r.IntN(2), w.r.IntN(2)
	spread := 1
	if w.chance(3) {
		spread = 2 + w.r.IntN(2)
	}
	size := func(n, k int) int { return ((n-1)*spread+1+2*pad-k)/stride + 1 }
	shape := []int{x.shape[0], outs, size(x.shape[2], kh), size(x.shape[3], kw)}
	n := x.shape[1] / groups * kh * kw
	if count(shape) > most || count(shape)*n > points {
		return false
	}
	y, ok := w.product(x.elem, shape, n, x, k)
	if ok {
		clauses := fmt.Sprintf("window_strides = [%[1]d, %[1]d], padding = [[%[2]d, %[2]d], [%[2]d, %[2]d]]", stride, pad)
		if spread > 1 {
			clauses += fmt.Sprintf(", lhs_dilation = [%[1]d, %[1]d]", spread)
		}
		if groups > 1 {
			clauses += fmt.Sprintf(", feature_group_count = %d", groups)
		}
		w.one("convolution", clauses, y, x, k)
	}
	return ok
}

// attention writes an attention, sometimes to the keys of segments, or with its second result and its gradient.
func (w *writer) attention() bool {
	if w.chance(5) {
		return w.segmentAttention()
	}
	elem := w.pick("f32", "f32", "f16", "bf16", "f64")
	if isFloat(w.elem) && w.chance(2) {
		elem = w.elem
	}
	q, ok := w.find(func(v value) bool {
		return len(v.shape) == 4 && v.elem == elem && v.top() <= 10 && count(v.shape) < 1500 && v.shape[3] <= 64
	})
	stacked := w.chance(3)
	if !ok || stacked {
		q = w.argument(elem, []int{1 + w.r.IntN(2), []int{1, 2, 4}[w.r.IntN(3)], []int{1, 3, 8, 17, 33}[w.r.IntN(5)], []int{4, 8, 16, 7}[w.r.IntN(4)]})
	}
	heads := q.shape[1]
	if heads%2 == 0 && w.chance(2) {
		heads /= 2
	}
	causal := w.chance(3)
	keys := q.shape[2]
	if w.chance(2) {
		keys += w.r.IntN(20)
	}
	depth := q.shape[3]
	if w.chance(4) {
		depth = 4 + 4*w.r.IntN(3)
	}
	var k, v value
	if stacked {
		keys, depth = q.shape[2], q.shape[3]
		q, k, v = w.stacked(elem, q.shape)
	} else {
		k = w.features(elem, []int{q.shape[0], heads, keys, q.shape[3]})
		v = w.features(elem, []int{q.shape[0], heads, keys, depth})
	}
	ins := []value{q, k, v}
	mask := w.chance(4)
	if mask {
		ins = append(ins, w.features(elem, []int{q.shape[2], keys}))
	}
	// With large scores one key has all the weight, and rounding decides which.
	clauses := []string{"scale = " + number(elem, 0.25/float64(q.shape[3]))}
	if causal {
		clauses = append(clauses, "causal = true")
	}
	if w.chance(6) {
		ins = append(ins, w.step()...)
		part, first := w.ofWhole(q.shape[:3])
		clauses = append(clauses, "dropout = 0.25, seed = 3"+part)
		ins = append(ins, first...)
	}
	y := w.fresh(elem, []int{q.shape[0], q.shape[1], q.shape[2], depth}, -2*v.top(), 2*v.top(), false, ins...)
	y.depth++
	if w.grad || !w.chance(3) {
		w.emit("attention", strings.Join(clauses, ", "), []value{y}, ins)
		return true
	}
	lse := "f32"
	if elem == "f64" {
		lse = "f64"
	}
	l := w.fresh(lse, y.shape[:3], -200, 200, false, ins...)
	w.emit("attention", strings.Join(clauses, ", "), []value{y, l}, ins)
	dy := w.features(elem, y.shape)
	g := func(like value) value { return w.fresh(elem, like.shape, -limit(elem), limit(elem), false, ins...) }
	outs := []value{g(q), g(k), g(v)}
	grad := []value{q, k, v, y, l, dy}
	if mask {
		grad = append(grad, ins[3])
		if w.chance(2) {
			outs = append(outs, g(ins[3]))
		}
		ins = append(ins[:3], ins[4:]...)
	}
	grad = append(grad, ins[3:]...) // the step
	w.emit("attention_grad", strings.Join(clauses, ", "), outs, grad)
	return true
}

// stacked writes queries, keys and values of the shape [batch, heads, rows, depth]
// as parts of one value, in an order of dimensions that projections of all three
// give.
func (w *writer) stacked(elem string, shape []int) (q, k, v value) {
	batch, heads, rows, depth := shape[0], shape[1], shape[2], shape[3]
	var x value
	var part func(i int) value
	slice := func(x value, d, i, n int) value {
		to := slices.Clone(x.shape)
		to[d] = n
		return w.one("slice", fmt.Sprintf("start_indices = [%d], limit_indices = [%d], dims = [%d]", i*n, i*n+n, d), w.moved(x, to), x)
	}
	reshape := func(x value, to ...int) value { return w.one("reshape", "", w.moved(x, to), x) }
	transpose := func(x value, dims ...int) value {
		to := make([]int, len(dims))
		for i, d := range dims {
			to[i] = x.shape[d]
		}
		return w.one("transpose", "dims = "+list(dims), w.moved(x, to), x)
	}
	switch w.r.IntN(3) {
	case 0: // the transpose before the slices
		x = transpose(w.features(elem, []int{batch, rows, 3, heads, depth}), 2, 0, 3, 1, 4)
		part = func(i int) value { return reshape(slice(x, 0, i, 1), shape...) }
	case 1: // behind them
		x = w.features(elem, []int{batch, rows, 3 * heads * depth})
		part = func(i int) value {
			return transpose(reshape(slice(x, 2, i, heads*depth), batch, rows, heads, depth), 0, 2, 1, 3)
		}
	default: // the parts of each head together
		x = transpose(w.features(elem, []int{batch, rows, heads, 3 * depth}), 0, 2, 1, 3)
		part = func(i int) value { return slice(x, 3, i, depth) }
	}
	return part(0), part(1), part(2)
}
