package randprog

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

func list(ns []int) string {
	var s []string
	for _, n := range ns {
		s = append(s, fmt.Sprint(n))
	}
	return "[" + strings.Join(s, ", ") + "]"
}

// along is a random dimension of a shape, rarely one of size 1.
func (w *writer) along(shape []int) int {
	d := w.r.IntN(len(shape))
	for range 4 {
		if shape[d] > 1 {
			break
		}
		d = w.r.IntN(len(shape))
	}
	return d
}

// dims is a random choice of a shape's dimensions, at least one, mostly one.
func (w *writer) dims(shape []int) []int {
	rank := len(shape)
	ds := []int{w.along(shape)}
	switch w.r.IntN(8) {
	case 0:
		ds = nil
		for d := range rank {
			ds = append(ds, d)
		}
	case 1, 2:
		if d := w.r.IntN(rank); d != ds[0] {
			ds = append(ds, d)
			slices.Sort(ds)
		}
	}
	return ds
}

// reduced is shape without dims, or with 1 in their place.
func reduced(shape, dims []int, keep bool) (out []int, n int) {
	n = 1
	for i, d := range shape {
		switch {
		case !slices.Contains(dims, i):
			out = append(out, d)
			continue
		case keep:
			out = append(out, 1)
		}
		n *= d
	}
	return out, n
}

// reduction writes a reduction of x and may scale a sum down again.
func (w *writer) reduction(x value, kind string, dims []int, keep bool) value {
	shape, n := reduced(x.shape, dims, keep)
	lo, hi, exact := x.lo, x.hi, x.exact
	switch kind {
	case "add":
		if !isInt(x.elem) {
			exact = false
		}
		if float64(n)*x.top() > limit(x.elem) {
			x = w.small(x, max(0.01, limit(x.elem)/float64(n)))
		}
		lo, hi = x.lo*float64(n), x.hi*float64(n)
	case "mul":
		exact = exact && isInt(x.elem)
		if n > 6 {
			return w.reduction(x, "add", dims, keep)
		}
		x = w.small(x, 2)
		if w.grad { // where a factor is 0 there is no derivative
			x = w.positive(x)
		}
		hi = math.Pow(max(1, x.top()), float64(n))
		lo = -hi
		if x.lo >= 0 {
			lo = 0
		}
	}
	var clauses []string
	if len(dims) < len(x.shape) || w.chance(2) {
		clauses = append(clauses, "dims = "+list(dims))
	}
	if keep {
		clauses = append(clauses, "keep_dims = true")
	}
	r := w.fresh(x.elem, shape, lo, hi, exact, x)
	r.depth++
	r = w.one("reduce "+kind, strings.Join(clauses, ", "), r, x)
	if kind == "add" && isFloat(x.elem) && n > 1 && w.chance(2) {
		f := 1 / float64(n)
		r = w.one("mul", "", w.fresh(r.elem, r.shape, r.lo*f, r.hi*f, false, r), r, w.constant(r.elem, f))
	}
	return r
}

func (w *writer) kindOf(x value) string {
	switch {
	case w.grad && !w.decides(x):
		return "add"
	case w.chance(8):
		return "mul"
	}
	return w.pick("add", "add", "add", "max", "min")
}

func (w *writer) reduce() bool {
	x, ok := w.find(ranked(1, func(v value) bool {
		return numbers(v) && (v.float() || !w.grad)
	}))
	if ok {
		w.reduction(x, w.kindOf(x), w.dims(x.shape), w.chance(4))
	}
	return ok
}

// statistic reduces x and combines x, or a function of it, with the result, up to
// four times: means, variances, softmaxes written out and similar
// programs, over the same or other dimensions.
func (w *writer) statistic() bool {
	x, ok := w.find(ranked(1, func(v value) bool { return floats(v) && v.depth < 4 || isInt(v.elem) && v.top() < 100 && !w.grad }))
	if !ok {
		return false
	}
	dims := w.dims(x.shape)
	for range 1 + w.r.IntN(3) {
		if w.chance(4) {
			dims = w.dims(x.shape)
		}
		r := w.back(w.reduction(x, w.kindOf(x), dims, w.chance(3)), x.shape, dims)
		if w.chance(4) && isFloat(r.elem) {
			r = w.curve(w.pick("tanh", "sin", "exp", "sqrt", "rsqrt", "logistic"), r)
		}
		shape, ok := joined(x.shape, r.shape)
		if !ok {
			return true
		}
		name := w.pick("sub", "sub", "sub", "add", "mul", "mul", "div", "max")
		if (!isFloat(x.elem) || w.grad) && (name == "div" || name == "max") {
			name = "sub"
		}
		y := w.combine(name, x, r, shape)
		if w.chance(2) && isFloat(y.elem) {
			y = w.curve(w.pick("exp", "tanh", "sin", "silu", "erf", "tanh"), y)
		} else if w.chance(3) && y.top() < 100 {
			y = w.combine("mul", y, y, y.shape)
		}
		x = y
		if w.chance(4) {
			return true
		}
	}
	if w.chance(2) {
		w.reduction(x, w.kindOf(x), dims, false)
	}
	return true
}

// back restores the dimensions of a reduction: by a reshape, by an explicit
// broadcast, or not at all if it broadcasts.
func (w *writer) back(r value, shape, dims []int) value {
	if len(r.shape) == len(shape) {
		return r
	}
	ones := slices.Clone(shape)
	var kept []int
	for i := range shape {
		if slices.Contains(dims, i) {
			ones[i] = 1
		} else {
			kept = append(kept, i)
		}
	}
	if fits, ok := joined(r.shape, shape); ok && slices.Equal(fits, shape) && w.chance(3) {
		return r
	}
	if w.chance(3) {
		return w.one("broadcast", "dims = "+list(kept), w.fresh(r.elem, shape, r.lo, r.hi, r.exact, r), r)
	}
	return w.one("reshape", "", w.fresh(r.elem, ones, r.lo, r.hi, r.exact, r), r)
}

func (w *writer) customReduce() bool {
	x, ok := w.find(ranked(1, func(v value) bool { return v.elem == "i1" || floats(v) && w.decides(v) }))
	if !ok {
		return false
	}
	dims := w.dims(x.shape)
	shape, _ := reduced(x.shape, dims, false)
	y := w.fresh(x.elem, shape, 0, x.top(), x.exact, x)
	y.depth++
	zero := w.constant(x.elem, 0)
	region := fmt.Sprintf(` {
%[1]s^bb0(%%p%[3]d: %[2]s, %%q%[3]d: %[2]s):
%[1]s  %%s%[3]d = dm.abs %%p%[3]d : %[2]s
%[1]s  %%t%[3]d = dm.abs %%q%[3]d : %[2]s
%[1]s  %%u%[3]d = dm.max %%s%[3]d, %%t%[3]d : %[2]s
%[1]s  dm.yield %%u%[3]d : %[2]s
%[1]s}`, w.indent, x.elem, w.names)
	if x.elem == "i1" {
		region = fmt.Sprintf(` {
%[1]s^bb0(%%p%[2]d: i1, %%q%[2]d: i1):
%[1]s  %%s%[2]d = dm.%[3]s %%p%[2]d, %%q%[2]d : i1
%[1]s  dm.yield %%s%[2]d : i1
%[1]s}`, w.indent, w.names, w.pick("or", "xor"))
	}
	w.line("reduce", "dims = "+list(dims), region, []value{y}, []value{x, zero})
	w.vals = append(w.vals, y)
	return true
}

func (w *writer) softmax() bool {
	x, ok := w.find(ranked(1, func(v value) bool { return floats(v) && v.top() < 1e3 }))
	if !ok {
		return false
	}
	d := w.along(x.shape)
	clauses := fmt.Sprintf("dim = %d", d)
	if d == len(x.shape)-1 && w.chance(3) {
		clauses = ""
	}
	y := w.fresh(x.elem, x.shape, 0, 1, false, x)
	name := w.pick("softmax", "softmax", "log_softmax")
	if name == "log_softmax" {
		y.lo, y.hi = -2*x.top()-math.Log(float64(x.shape[d])), 0
	}
	y.depth++
	w.one(name, clauses, y, x)
	return true
}

// features is a tensor of that shape to scale or shift by: an existing value or an
// argument.
func (w *writer) features(elem string, shape []int) value {
	if v, ok := w.find(func(v value) bool { return v.elem == elem && slices.Equal(v.shape, shape) && v.top() <= 20 }); ok {
		return v
	}
	return w.argument(elem, shape)
}

func (w *writer) norm() bool {
	x, ok := w.find(ranked(1, func(v value) bool { return floats(v) && v.top() < 1e3 }))
	if !ok {
		return false
	}
	from := len(x.shape) - 1
	if w.chance(3) && from > 0 {
		from--
	}
	dims, n := []int{}, 1
	for d := from; d < len(x.shape); d++ {
		dims = append(dims, d)
		n *= x.shape[d]
	}
	clauses := "epsilon = " + w.pick("0.1", "0.01", "0.001")
	if len(dims) > 1 {
		clauses += ", dims = " + list(dims)
	} else if w.chance(3) && len(x.shape) > 1 {
		d := w.along(x.shape)
		dims, n = []int{d}, x.shape[d]
		clauses += ", dims = " + list(dims)
	}
	ins := []value{x}
	feature := []int{}
	for _, d := range dims {
		feature = append(feature, x.shape[d])
	}
	name := w.pick("layer_norm", "rms_norm")
	top := math.Sqrt(float64(n)) + 1
	if w.chance(2) && count(feature) < 2000 {
		ins = append(ins, w.features(x.elem, feature))
		top *= 20
		if name == "layer_norm" && w.chance(2) {
			ins = append(ins, w.features(x.elem, feature))
			top += 20
		}
	}
	y := w.fresh(x.elem, x.shape, -top, top, false, ins...)
	y.depth++
	w.one(name, clauses, y, ins...)
	return true
}

func (w *writer) batchNorm() bool {
	x, ok := w.find(ranked(2, func(v value) bool { return floats(v) && v.top() < 1e3 }))
	if !ok {
		return false
	}
	d := w.along(x.shape)
	c := []int{x.shape[d]}
	clauses := fmt.Sprintf("epsilon = 0.1, dim = %d", d)
	ins := []value{x, w.features(x.elem, c), w.features(x.elem, c)}
	top := 20*math.Sqrt(float64(count(x.shape))) + 20
	outs := []value{w.fresh(x.elem, x.shape, -top, top, false, x)}
	outs[0].depth++
	switch w.r.IntN(3) {
	case 0:
		ins = append(ins, w.features(x.elem, c), w.positive(w.features(x.elem, c)))
		if coarse(x.elem) {
			return false
		}
		outs[0].lo, outs[0].hi = -40*x.top()-300, 40*x.top()+300
	case 1:
		outs = append(outs, w.fresh(x.elem, c, x.lo, x.hi, false, x))
		outs = append(outs, w.fresh(x.elem, c, 0, x.top()*x.top(), false, x))
	}
	w.emit("batch_norm", clauses, outs, ins)
	return true
}

func (w *writer) groupNorm() bool {
	x, ok := w.find(ranked(2, func(v value) bool { return floats(v) && v.top() < 1e3 }))
	if !ok {
		return false
	}
	groups := 1
	for _, g := range []int{2, 3, 4} {
		if x.shape[1]%g == 0 && w.chance(2) {
			groups = g
		}
	}
	ins := []value{x}
	top := math.Sqrt(float64(count(x.shape))) + 1
	if w.chance(2) {
		ins = append(ins, w.features(x.elem, x.shape[1:2]), w.features(x.elem, x.shape[1:2]))
		top = 20*top + 20
	}
	y := w.fresh(x.elem, x.shape, -top, top, false, ins...)
	y.depth++
	w.one("group_norm", fmt.Sprintf("groups = %d, epsilon = 0.1", groups), y, ins...)
	return true
}

func (w *writer) crossEntropy() bool {
	x, ok := w.find(ranked(1, func(v value) bool { return floats(v) && v.top() < 1e3 }))
	if !ok {
		return false
	}
	d := w.along(x.shape)
	rest, _ := reduced(x.shape, []int{d}, false)
	labels := w.indices(rest)
	reduction := w.pick("mean", "sum", "none")
	shape := rest
	if reduction != "none" {
		shape = nil
	}
	top := (2*x.top() + 10) * float64(count(rest))
	if top > limit(x.elem) {
		return false
	}
	clauses := fmt.Sprintf("dim = %d, reduction = %s", d, reduction)
	if reduction != "mean" && w.chance(2) { // a mean of nothing is NaN
		clauses += fmt.Sprintf(", ignore_index = %d", w.r.IntN(6))
	}
	if w.chance(3) {
		clauses += ", label_smoothing = " + w.pick("0.1", "0.5", "1.0")
	}
	y := w.fresh(x.elem, shape, -1, top, false, x)
	y.depth++
	w.one("cross_entropy", clauses, y, x, labels)
	return true
}

func (w *writer) argmax() bool {
	x, ok := w.find(ranked(1, func(v value) bool { return takes("argmax", 0, v.elem) && w.decides(v) }))
	if !ok {
		return false
	}
	d, keep := w.along(x.shape), w.chance(4)
	shape, n := reduced(x.shape, []int{d}, keep)
	w.one("argmax", fmt.Sprintf("dim = %d, keep_dims = %v", d, keep), w.fresh(w.pick("i64", "i32"), shape, 0, float64(n-1), true), x)
	return true
}

func (w *writer) cumsum() bool {
	x, ok := w.find(ranked(1, func(v value) bool { return numbers(v) && (v.float() || !w.grad) }))
	if !ok {
		return false
	}
	d := w.along(x.shape)
	n := float64(x.shape[d])
	if x.top()*n > limit(x.elem) {
		return false
	}
	clauses := fmt.Sprintf("dim = %d", d)
	if w.chance(4) {
		clauses += ", exclusive = true"
	}
	if w.chance(4) {
		clauses += ", reverse = true"
	}
	w.one("cumsum", clauses, w.fresh(x.elem, x.shape, min(0, x.lo*n), max(0, x.hi*n), x.exact && isInt(x.elem), x), x)
	return true
}

func (w *writer) cumprod() bool {
	x, ok := w.find(ranked(1, func(v value) bool { return floats(v) && v.top() <= 2 || isInt(v.elem) && v.top() <= 2 && !w.grad }))
	if !ok {
		return false
	}
	d := w.along(x.shape)
	top := math.Pow(max(1, x.top()), float64(x.shape[d]))
	if top > 1e3 || coarse(x.elem) && x.shape[d] > 16 {
		return false
	}
	clauses := fmt.Sprintf("dim = %d", d)
	if w.chance(4) {
		clauses += ", exclusive = true"
	}
	if w.chance(4) {
		clauses += ", reverse = true"
	}
	w.one("cumprod", clauses, w.fresh(x.elem, x.shape, -top, top, x.exact && isInt(x.elem), x), x)
	return true
}

func (w *writer) cummax() bool {
	x, ok := w.find(ranked(1, func(v value) bool { return numbers(v) && (v.exact || !w.grad) }))
	if !ok {
		return false
	}
	w.one("cummax", fmt.Sprintf("dim = %d", w.along(x.shape)), w.fresh(x.elem, x.shape, x.lo, x.hi, x.exact, x), x)
	return true
}

// figure writes a mean, a variance or the logarithm of a sum of exponentials.
func (w *writer) figure() bool {
	x, ok := w.find(ranked(1, func(v value) bool { return floats(v) && v.top() < 50 && v.depth < 4 }))
	if !ok {
		return false
	}
	dims, keep := w.dims(x.shape), w.chance(3)
	shape, n := reduced(x.shape, dims, keep)
	lo, hi := x.lo, x.hi
	name, clauses := w.pick("mean", "mean", "variance", "logsumexp"), "dims = "+list(dims)
	switch {
	case name == "variance" && n > 1:
		lo, hi = 0, 2*(x.hi-x.lo)*(x.hi-x.lo)
		if w.chance(2) {
			clauses += ", correction = 0"
		}
	case name == "logsumexp":
		hi += math.Log(float64(n))
	default:
		name = "mean"
	}
	if keep {
		clauses += ", keep_dims = true"
	}
	y := w.fresh(x.elem, shape, lo, hi, false, x)
	y.depth = x.depth + 1
	w.one(name, clauses, y, x)
	return true
}

// windows is a window in each dimension, and the sizes of the result.
func (w *writer) windows(shape []int, overlap bool) (clauses string, out []int, n int) {
	size, stride, dilation := make([]int, len(shape)), make([]int, len(shape)), make([]int, len(shape))
	var padding []string
	n = 1
	dilated := w.chance(4) && overlap
	for i, d := range shape {
		size[i], stride[i], dilation[i] = 1, 1, 1
		low, high := 0, 0
		if d > 1 && w.chance(2) {
			size[i] = 1 + w.r.IntN(min(3, d))
			stride[i] = 1 + w.r.IntN(2)
			if !overlap {
				stride[i] = size[i]
			}
			if dilated && 2*size[i] <= d {
				dilation[i] = 2
			}
			if size[i] > 1 && overlap && w.chance(2) {
				low, high = w.r.IntN(2), w.r.IntN(2)
			}
		}
		n *= size[i]
		out = append(out, (d+low+high-(size[i]-1)*dilation[i]-1)/stride[i]+1)
		padding = append(padding, fmt.Sprintf("[%d, %d]", low, high))
	}
	clauses = fmt.Sprintf("window_dimensions = %s, window_strides = %s, padding = [%s]", list(size), list(stride), strings.Join(padding, ", "))
	if dilated {
		clauses += ", window_dilations = " + list(dilation)
	}
	return clauses, out, n
}

func (w *writer) window() bool {
	x, ok := w.find(ranked(1, func(v value) bool { return numbers(v) && v.top() < 100 && (v.float() || !w.grad) }))
	if !ok {
		return false
	}
	kind := w.pick("add", "max", "min", "add")
	if w.grad && !w.decides(x) {
		kind = "add"
	}
	clauses, shape, n := w.windows(x.shape, true)
	y := w.fresh(x.elem, shape, x.lo, x.hi, x.exact, x)
	if kind == "add" {
		y.lo, y.hi, y.exact = min(0, x.lo*float64(n)), max(0, x.hi*float64(n)), x.exact && isInt(x.elem)
		if y.top() > limit(x.elem) {
			return false
		}
	}
	w.one("reduce_window "+kind, clauses, y, x)
	return true
}

func (w *writer) selectAndScatter() bool {
	x, ok := w.find(ranked(2, func(v value) bool { return floats(v) && w.decides(v) }))
	if !ok {
		return false
	}
	clauses, shape, n := w.windows(x.shape, w.chance(2))
	src := w.one("slice", fmt.Sprintf("start_indices = %s, limit_indices = %s", list(make([]int, len(shape))), list(least(shape, x.shape))), w.fresh(x.elem, least(shape, x.shape), x.lo, x.hi, x.exact, x), x)
	if !slices.Equal(src.shape, shape) {
		return true
	}
	top := x.top() * float64(n)
	w.one("select_and_scatter "+w.pick("max", "min"), clauses, w.fresh(x.elem, x.shape, -top, top, false, x), x, src)
	return true
}

func least(a, b []int) []int {
	out := slices.Clone(a)
	for i := range out {
		out[i] = min(a[i], b[i])
	}
	return out
}

func (w *writer) ordered() bool {
	x, ok := w.find(ranked(1, func(v value) bool { return numbers(v) && (v.float() || !w.grad) && w.decides(v) }))
	if !ok {
		return false
	}
	d := w.along(x.shape)
	shape := slices.Clone(x.shape)
	name, clauses := "sort", fmt.Sprintf("dim = %d, descending = %s", d, w.pick("true", "false"))
	if w.chance(2) {
		shape[d] = 1 + w.r.IntN(min(8, shape[d]))
		name, clauses = "top_k", fmt.Sprintf("k = %d, dim = %d, largest = %s", shape[d], d, w.pick("true", "false"))
	}
	outs := []value{w.fresh(x.elem, shape, x.lo, x.hi, x.exact, x), w.fresh(w.pick("i64", "i32"), shape, 0, float64(x.shape[d]-1), true)}
	w.emit(name, clauses, outs, []value{x})
	return true
}
