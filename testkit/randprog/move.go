package randprog

import (
	"fmt"
	"slices"
	"strings"
)

// anything reports whether v may be moved.
func (w *writer) anything(v value) bool { return v.float() || !w.grad }

// moved is a value of another shape with x's elements.
func (w *writer) moved(x value, shape []int) value {
	return w.fresh(x.elem, shape, x.lo, x.hi, x.exact, x)
}

func (w *writer) transpose() bool {
	x, ok := w.find(ranked(2, w.anything))
	if !ok {
		return false
	}
	perm, shape := w.r.Perm(len(x.shape)), make([]int, len(x.shape))
	for i, p := range perm {
		shape[i] = x.shape[p]
	}
	w.one("transpose", "dims = "+list(perm), w.moved(x, shape), x)
	return true
}

// reshape joins neighbouring dimensions, splits one, or adds and drops those of
// size 1.
func (w *writer) reshape() bool {
	x, ok := w.find(w.anything)
	if !ok {
		return false
	}
	shape := slices.Clone(x.shape)
	for range 1 + w.r.IntN(2) {
		switch k := w.r.IntN(4); {
		case k == 0 && len(shape) > 1:
			i := w.r.IntN(len(shape) - 1)
			shape[i] *= shape[i+1]
			shape = slices.Delete(shape, i+1, i+2)
		case k == 1 && len(shape) > 0 && len(shape) < 4:
			i := w.r.IntN(len(shape))
			for _, f := range []int{2, 3, 4, 5, 11} {
				if shape[i]%f == 0 && shape[i] > f && w.chance(2) {
					shape[i] /= f
					shape = slices.Insert(shape, i, f)
					break
				}
			}
		case k == 2 && len(shape) < 4:
			shape = slices.Insert(shape, w.r.IntN(len(shape)+1), 1)
		case k == 3:
			if i := slices.Index(shape, 1); i >= 0 {
				shape = slices.Delete(shape, i, i+1)
			}
		}
	}
	if slices.Equal(shape, x.shape) {
		return false
	}
	w.one("reshape", "", w.moved(x, shape), x)
	return true
}

func (w *writer) broadcast() bool {
	x, ok := w.find(func(v value) bool { return w.anything(v) && len(v.shape) < 4 && count(v.shape) < 500 })
	if !ok {
		return false
	}
	var shape, dims []int
	for i, d := range x.shape {
		for len(shape)+len(x.shape)-i < 4 && w.chance(3) {
			shape = append(shape, w.size())
		}
		if d == 1 && w.chance(2) {
			d = w.size()
		}
		dims, shape = append(dims, len(shape)), append(shape, d)
	}
	if len(shape) == 0 || len(shape) < 4 && w.chance(3) {
		shape = append(shape, w.size())
	}
	if count(shape) > most {
		return false
	}
	y := w.moved(x, shape)
	w.one("broadcast", "dims = "+list(dims), y, x)
	return true
}

func (w *writer) slice() bool {
	x, ok := w.find(ranked(1, w.anything))
	if !ok {
		return false
	}
	start, end, stride, shape := make([]int, len(x.shape)), slices.Clone(x.shape), make([]int, len(x.shape)), slices.Clone(x.shape)
	strided := false
	for i, d := range x.shape {
		stride[i] = 1
		if d > 1 && w.chance(2) {
			start[i] = w.r.IntN(d)
			end[i] = start[i] + 1 + w.r.IntN(d-start[i])
			if w.chance(3) {
				stride[i] = 1 + w.r.IntN(3)
				strided = strided || stride[i] > 1
			}
		}
		shape[i] = (end[i] - start[i] + stride[i] - 1) / stride[i]
	}
	clauses := fmt.Sprintf("start_indices = %s, limit_indices = %s", list(start), list(end))
	if strided {
		clauses += ", strides = " + list(stride)
	}
	w.one("slice", clauses, w.moved(x, shape), x)
	return true
}

// starts are scalars of one integer type, one for each dimension.
func (w *writer) starts(shape []int) []value {
	elem := w.pick("i64", "i32")
	var out []value
	for _, d := range shape {
		v, ok := w.find(func(v value) bool { return v.elem == elem && len(v.shape) == 0 })
		if !ok || w.chance(2) {
			if w.chance(2) {
				v = w.argument(elem, nil)
			} else {
				v = w.constant(elem, float64(w.r.IntN(d+1)))
			}
		}
		out = append(out, v)
	}
	return out
}

func (w *writer) part(shape []int) []int {
	out := slices.Clone(shape)
	for i, d := range out {
		if w.chance(2) {
			out[i] = 1 + w.r.IntN(d)
		}
	}
	return out
}

func (w *writer) dynamicSlice() bool {
	x, ok := w.find(ranked(1, w.anything))
	if !ok {
		return false
	}
	shape := w.part(x.shape)
	w.one("dynamic_slice", "slice_sizes = "+list(shape), w.moved(x, shape), append([]value{x}, w.starts(x.shape)...)...)
	return true
}

func (w *writer) update() bool {
	x, ok := w.find(ranked(1, w.anything))
	if !ok {
		return false
	}
	u, ok := w.find(func(u value) bool {
		if u.elem != x.elem || len(u.shape) != len(x.shape) {
			return false
		}
		for i, d := range u.shape {
			if d > x.shape[i] {
				return false
			}
		}
		return true
	})
	if ok && slices.Equal(u.shape, x.shape) && w.chance(2) { // all of it is replaced
		x = w.one("empty", "", w.fresh(x.elem, x.shape, u.lo, u.hi, u.exact))
		w.vals = w.vals[:len(w.vals)-1]
	}
	if ok {
		y := w.fresh(x.elem, x.shape, min(x.lo, u.lo), max(x.hi, u.hi), x.exact && u.exact, x, u)
		w.one("dynamic_update_slice", "", y, append([]value{x, u}, w.starts(x.shape)...)...)
	}
	return ok
}

func (w *writer) concatenate() bool {
	x, ok := w.find(ranked(1, w.anything))
	if !ok {
		return false
	}
	d := w.r.IntN(len(x.shape))
	ins := []value{x}
	y := w.moved(x, x.shape)
	for range 1 + w.r.IntN(2) {
		z, ok := w.find(func(z value) bool {
			if z.elem != x.elem || len(z.shape) != len(x.shape) {
				return false
			}
			for i := range z.shape {
				if i != d && z.shape[i] != x.shape[i] {
					return false
				}
			}
			return true
		})
		if !ok {
			z = x
		}
		ins = append(ins, z)
		y.shape[d] += z.shape[d]
		y.lo, y.hi, y.exact, y.depth = min(y.lo, z.lo), max(y.hi, z.hi), y.exact && z.exact, max(y.depth, z.depth)
	}
	if w.chance(2) {
		slices.Reverse(ins)
	}
	if count(y.shape) > most {
		return false
	}
	w.one("concatenate", fmt.Sprintf("dim = %d", d), y, ins...)
	return true
}

func (w *writer) pad() bool {
	x, ok := w.find(ranked(1, w.anything))
	if !ok {
		return false
	}
	low, high, interior := make([]int, len(x.shape)), make([]int, len(x.shape)), make([]int, len(x.shape))
	shape := slices.Clone(x.shape)
	for i := range shape {
		if w.chance(2) {
			low[i], high[i] = w.r.IntN(4), w.r.IntN(4)
		}
		if w.chance(6) {
			interior[i] = 1
		}
		shape[i] += low[i] + high[i] + (shape[i]-1)*interior[i]
	}
	if count(shape) > most {
		return false
	}
	fill := float64(w.r.IntN(2))
	clauses := fmt.Sprintf("low = %s, high = %s", list(low), list(high))
	if slices.Max(interior) > 0 {
		clauses += ", interior = " + list(interior)
	}
	y := w.moved(x, shape)
	y.lo, y.hi = min(y.lo, fill), max(y.hi, fill)
	w.one("pad", clauses, y, x, w.constant(x.elem, fill))
	return true
}

func (w *writer) reverse() bool {
	x, ok := w.find(ranked(1, w.anything))
	if ok {
		w.one("reverse", "dims = "+list(w.dims(x.shape)), w.moved(x, x.shape), x)
	}
	return ok
}

// indices are indices of a shape: an existing value, an argument, or a constant. Some
// are out of bounds, which ops clamp.
func (w *writer) indices(shape []int) value {
	if w.chance(2) {
		if v, ok := w.find(func(v value) bool {
			return (v.elem == "i64" || v.elem == "i32") && v.exact && slices.Equal(v.shape, shape)
		}); ok {
			return v
		}
	}
	elem := w.pick("i64", "i32", "i64", "ui32")
	if len(shape) == 1 && shape[0] <= 8 && w.chance(2) {
		ids := make([]int, shape[0])
		for i := range ids {
			ids[i] = w.r.IntN(7)
		}
		v := w.fresh(elem, shape, 0, 6, true)
		fmt.Fprintf(&w.out, "%s%s = dm.constant dense<%s> : %s\n", w.indent, v.name, list(ids), v.typ())
		w.vals = append(w.vals, v)
		return v
	}
	if count(shape) > 100 && w.chance(2) {
		low, high := 0, 1+w.r.IntN(600)
		if elem != "ui32" {
			low = -w.r.IntN(30)
		}
		return w.one("rng uniform", fmt.Sprintf("seed = %d, low = %d, high = %d", w.r.IntN(100), low, high), w.fresh(elem, shape, float64(low), float64(high), true))
	}
	if len(shape) > 0 && w.chance(4) {
		return w.one(fmt.Sprintf("iota dim = %d", w.r.IntN(len(shape))), "", w.fresh(elem, shape, 0, float64(slices.Max(shape)), true))
	}
	return w.argument(elem, shape)
}

// batched is a dimension to pick from, and the shape of indices for it that
// share the first batch dimensions.
func (w *writer) batched(x value) (d, batch int, ids []int) {
	d = w.r.IntN(len(x.shape))
	if d > 0 && w.chance(3) {
		batch = 1 + w.r.IntN(d)
	}
	ids = slices.Clone(x.shape[:batch])
	for range w.r.IntN(3 - min(1, batch)) {
		ids = append(ids, w.size())
	}
	return d, batch, ids
}

// many is a shape of indices that are more than a scatter compares with every row.
func (w *writer) many() []int {
	n := 350 + w.r.IntN(300)
	if w.chance(3) {
		return []int{3, n / 3}
	}
	return []int{n}
}

func picked(x value, d, batch int, ids []int) []int {
	out := slices.Clone(x.shape[:d])
	out = append(out, ids[batch:]...)
	return append(out, x.shape[d+1:]...)
}

func (w *writer) gather() bool {
	x, ok := w.find(ranked(1, w.anything))
	if !ok {
		return false
	}
	d, batch, ids := w.batched(x)
	if w.chance(2) {
		if v, ok := w.find(func(v value) bool { return (v.elem == "i64" || v.elem == "i32") && v.exact }); ok {
			d, batch, ids = w.r.IntN(len(x.shape)), 0, v.shape
			if shape := picked(x, d, 0, ids); count(shape) <= most && len(shape) <= 5 {
				w.one("gather", fmt.Sprintf("dim = %d", d), w.moved(x, shape), x, v)
				return true
			}
			return false
		}
	}
	shape := picked(x, d, batch, ids)
	if count(shape) > most || count(ids) > 2000 {
		return false
	}
	clauses := fmt.Sprintf("dim = %d", d)
	if batch > 0 {
		clauses += fmt.Sprintf(", batch_dims = %d", batch)
	}
	w.one("gather", clauses, w.moved(x, shape), x, w.indices(ids))
	return true
}

func (w *writer) scatter() bool {
	x, ok := w.find(ranked(1, func(v value) bool { return (numbers(v) || isI4(v.elem)) && v.top() < 1000 && w.anything(v) }))
	if !ok {
		return false
	}
	d, batch, ids := w.batched(x)
	largest := 500
	if w.chance(3) {
		ids, largest = append(ids[:batch], w.many()...), most
	}
	shape := picked(x, d, batch, ids)
	u, ok := w.find(func(u value) bool { return u.elem == x.elem && slices.Equal(u.shape, shape) && u.top() < 100 })
	if !ok {
		if count(shape) > largest {
			return false
		}
		u = w.argument(x.elem, shape)
	}
	kind := w.pick("set", "add", "add", "max", "min")
	switch {
	case w.grad:
		kind = "add"
	case isI4(x.elem):
		kind = "set"
	}
	y := w.fresh(x.elem, x.shape, min(x.lo, u.lo), max(x.hi, u.hi), x.exact && u.exact, x, u)
	if kind == "add" {
		n := float64(count(ids))
		y.lo, y.hi, y.exact = x.lo+min(0, n*u.lo), x.hi+max(0, n*u.hi), isInt(x.elem) && y.exact
		if y.top() > limit(x.elem) {
			return false
		}
	}
	clauses := fmt.Sprintf("dim = %d", d)
	if batch > 0 {
		clauses += fmt.Sprintf(", batch_dims = %d", batch)
	}
	w.one("scatter "+kind, clauses, y, x, w.indices(ids), u)
	return true
}

func (w *writer) embedding() bool {
	x, ok := w.find(func(v value) bool { return len(v.shape) == 2 && w.anything(v) })
	if !ok {
		return false
	}
	ids := w.shape(w.r.IntN(3))
	if w.chance(3) {
		ids = w.many()
	}
	shape := append(slices.Clone(ids), x.shape[1])
	if count(shape) > most {
		return false
	}
	w.one("embedding", "", w.moved(x, shape), x, w.indices(ids))
	return true
}

// copied is x in another order of memory and back.
func (w *writer) copied() bool {
	x, ok := w.find(ranked(2, w.anything))
	if !ok {
		return false
	}
	y := w.moved(x, x.shape)
	placed := strings.TrimSuffix(y.typ(), ">") + fmt.Sprintf(", #dm.at<hbm, order = %s>>", list(w.r.Perm(len(x.shape))))
	fmt.Fprintf(&w.out, "%[1]s%[2]s = dm.copy %[3]s : (%[4]s) -> %[5]s\n%[1]s%[2]sb = dm.copy %[2]s : (%[5]s) -> %[4]s\n", w.indent, y.name, x.name, x.typ(), placed)
	w.used[x.name] = true
	w.written += 2
	y.name += "b"
	w.vals = append(w.vals, y)
	return true
}

func (w *writer) roll() bool {
	x, ok := w.find(ranked(1, w.anything))
	if !ok {
		return false
	}
	dims := w.dims(x.shape)
	shifts := make([]int, len(dims))
	for i := range shifts {
		shifts[i] = w.r.IntN(9) - 4
	}
	w.one("roll", fmt.Sprintf("shifts = %s, dims = %s", list(shifts), list(dims)), w.moved(x, x.shape), x)
	return true
}

func (w *writer) oneHot() bool {
	idx := w.indices([]int{1 + w.r.IntN(9)})
	d, classes := w.r.IntN(2), 1+w.r.IntN(8)
	shape := slices.Insert(slices.Clone(idx.shape), d, classes)
	w.one("one_hot", fmt.Sprintf("classes = %d, dim = %d", classes, d), w.fresh(w.pick("f32", "f16", "f64", "i32", "i1", w.elem), shape, 0, 1, true), idx)
	return true
}

func (w *writer) stopped() bool {
	x, ok := w.find(w.anything)
	if ok {
		w.one("stop_gradient", "", w.moved(x, x.shape), x)
	}
	return ok
}

// source writes a value that does not depend on arguments.
func (w *writer) source() bool {
	x, ok := w.find(func(v value) bool { return w.anything(v) && takes("add", 0, v.elem) })
	if !ok {
		return false
	}
	switch k := w.r.IntN(3); {
	case k == 0 && len(x.shape) > 0:
		d := w.r.IntN(len(x.shape))
		if float64(x.shape[d]) > limit(x.elem) || coarse(x.elem) && x.shape[d] > 256 {
			return false
		}
		if n := float64(x.shape[d]); isFloat(x.elem) && w.chance(3) {
			w.one(fmt.Sprintf("iota dim = %d, start = -0.5, step = %g", d, 1/(n+1)), "", w.fresh(x.elem, x.shape, -0.5, 0.5, false))
			return true
		} else if n*3 < limit(x.elem) && w.chance(3) {
			w.one(fmt.Sprintf("iota dim = %d, start = 2.0, step = 3.0", d), "", w.fresh(x.elem, x.shape, 2, 3*n, true))
			return true
		}
		w.one(fmt.Sprintf("iota dim = %d", d), "", w.fresh(x.elem, x.shape, 0, float64(x.shape[d]), true))
	case k == 1 && isFloat(x.elem):
		if w.chance(2) {
			w.one("rng normal", fmt.Sprintf("seed = %d, stddev = 0.5", w.r.IntN(5)), w.fresh(x.elem, x.shape, -4, 4, false), w.step()...)
		} else {
			w.one("rng uniform", fmt.Sprintf("seed = %d, low = -1.0", w.r.IntN(5)), w.fresh(x.elem, x.shape, -1, 1, false), w.step()...)
		}
	default:
		if len(x.shape) != 1 || x.shape[0] > 9 {
			w.vals = append(w.vals, w.constant(x.elem, float64(1+w.r.IntN(3))))
			return true
		}
		var all []string
		for i := range x.shape[0] {
			all = append(all, number(x.elem, float64(i%4)))
		}
		v := w.fresh(x.elem, x.shape, 0, 3, true)
		fmt.Fprintf(&w.out, "%s%s = dm.constant dense<[%s]> : %s\n", w.indent, v.name, strings.Join(all, ", "), v.typ())
		w.vals = append(w.vals, v)
	}
	return true
}

// rope turns pairs by numbers that need be no cosines.
func (w *writer) rope() bool {
	x, ok := w.find(ranked(1, func(v value) bool { return floats(v) && v.shape[len(v.shape)-1]%2 == 0 }))
	if !ok {
		return false
	}
	angles := slices.Clone(x.shape[w.r.IntN(len(x.shape)):])
	angles[len(angles)-1] /= 2
	if d := w.r.IntN(len(angles)); w.chance(3) {
		angles[d] = 1
	}
	cos, sin := w.features(x.elem, angles), w.features(x.elem, angles)
	top := x.top() * (cos.top() + sin.top())
	if top > limit(x.elem) {
		return false
	}
	w.one("rope", "pairs = "+w.pick("halves", "interleaved"), w.fresh(x.elem, x.shape, -top, top, false, x, cos, sin), x, cos, sin)
	return true
}
