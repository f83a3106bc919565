package randprog

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"dmir/dialect/op"
	"dmir/dialect/types"
)

// unaries are the unary ops with a range in the registry.
var unaries = func() (names []string) {
	for _, d := range op.All() {
		if d.Scalar != nil && d.Scalar.Range != nil {
			names = append(names, d.Name)
		}
	}
	return append(names, "not")
}()

// takes reports whether operand i of an op may have the element type.
func takes(name string, i int, elem string) bool {
	d := op.Lookup(op.Prefix + name)
	p := d.Operands[min(i, len(d.Operands)-1)]
	e, ok := types.ElemByName(elem)
	return ok && (p.Elems == nil || slices.Contains(p.Elems, e))
}

// decides reports whether v may be compared, or be the operand of a function with a
// discontinuity in it or in its derivative.
func (w *writer) decides(v value) bool {
	return v.exact || !coarse(v.elem) && w.elem != "f16" && w.elem != "bf16" && w.chance(20)
}

func (w *writer) unary() bool {
	name := unaries[w.r.IntN(len(unaries))]
	if name == "not" {
		v, ok := w.find(func(v value) bool { return takes(name, 0, v.elem) && v.elem[0] != 'u' })
		if ok && !w.grad {
			lo, hi := -v.hi-1, -v.lo-1
			if v.elem == "i1" {
				lo, hi = 0, 1
			}
			w.one(name, "", w.fresh(v.elem, v.shape, lo, hi, true, v), v)
		}
		return ok
	}
	f := op.Lookup(op.Prefix + name).Scalar
	v, ok := w.find(func(v value) bool {
		return numbers(v) && takes(name, 0, v.elem) && (!f.Jumps && (!f.Kinks || !w.grad) || w.decides(v)) && !(w.grad && (!v.float() || f.Jumps))
	})
	if !ok {
		return false
	}
	w.curve(name, v)
	return true
}

// curve is a unary op on v, scaled to where the op is numerically stable.
func (w *writer) curve(name string, v value) value {
	d := op.Lookup(op.Prefix + name)
	f := d.Scalar
	switch {
	case f.Tame == (op.Interval{}):
	case math.IsInf(f.Tame.Hi, 1):
		if v = w.positive(v); f.Tame.Lo > 0 {
			v = w.one("add", "", w.fresh(v.elem, v.shape, v.lo+f.Tame.Lo, v.hi+f.Tame.Lo, false, v), v, w.constant(v.elem, f.Tame.Lo))
		}
	default:
		v = w.small(v, f.Tame.Hi)
	}
	y := f.Range(op.Interval{Lo: v.lo, Hi: v.hi})
	clauses := ""
	if form := d.Attr(f.Form); form != nil && w.chance(2) {
		clauses = f.Form + " = " + form.Enum[len(form.Enum)-1]
	}
	return w.one(name, clauses, w.fresh(v.elem, v.shape, y.Lo, y.Hi, v.exact && f.Exact, v), v)
}

// small is v, or a function of it that lies within r of 0.
func (w *writer) small(v value, r float64) value {
	if v.top() <= r {
		return v
	}
	if isInt(v.elem) {
		c := w.constant(v.elem, max(1, math.Floor(r)))
		lo := 0.0
		if v.lo < 0 {
			lo = -r
		}
		return w.one("rem", "", w.fresh(v.elem, v.shape, lo, r, v.exact, v), v, c)
	}
	if w.chance(2) && v.top() < 100*r {
		s := math.Ldexp(1, -int(math.Ceil(math.Log2(v.top()/r))))
		c := w.constant(v.elem, s)
		return w.one("mul", "", w.fresh(v.elem, v.shape, v.lo*s, v.hi*s, v.exact, v), v, c)
	}
	t := w.one("tanh", "", w.fresh(v.elem, v.shape, -1, 1, false, v), v)
	if r >= 1 {
		return t
	}
	return w.one("mul", "", w.fresh(v.elem, v.shape, -r, r, false, v), t, w.constant(v.elem, r))
}

// positive is v, or a function of it that stays well above 0.
func (w *writer) positive(v value) value {
	if v.lo >= 0.2 {
		return v
	}
	if isInt(v.elem) {
		if v.lo < 0 {
			v = w.one("relu", "", w.fresh(v.elem, v.shape, 0, max(0, v.hi), v.exact, v), v)
		}
		return w.one("add", "", w.fresh(v.elem, v.shape, v.lo+1, v.hi+1, v.exact, v), v, w.constant(v.elem, 1))
	}
	half := w.constant(v.elem, 0.5)
	switch k := w.r.IntN(4); {
	case k == 0 && v.top() <= 3:
		return w.one("exp", "", w.fresh(v.elem, v.shape, math.Exp(v.lo), math.Exp(v.hi), false, v), v)
	case k == 1 && v.top() <= 100:
		v = w.one("mul", "", w.fresh(v.elem, v.shape, 0, v.top()*v.top(), false, v), v, v)
	case k == 2 && v.lo >= 0:
	case k == 3 && (v.exact || !w.grad):
		v = w.one("abs", "", w.fresh(v.elem, v.shape, 0, v.top(), v.exact, v), v)
	default:
		v = w.small(v, 30)
		v = w.one("logistic", "", w.fresh(v.elem, v.shape, 0, 1, false, v), v)
	}
	return w.one("add", "", w.fresh(v.elem, v.shape, v.lo+0.5, v.hi+0.5, false, v), v, half)
}

// joined is the shape that two broadcast to.
func joined(a, b []int) ([]int, bool) {
	if len(a) < len(b) {
		a, b = b, a
	}
	out := slices.Clone(a)
	for i := range b {
		j := len(a) - len(b) + i
		switch {
		case a[j] == b[i] || b[i] == 1:
		case a[j] == 1:
			out[j] = b[i]
		default:
			return nil, false
		}
	}
	return out, count(out) <= most
}

// pair finds two operands of an element-wise op.
func (w *writer) pair(want func(value) bool) (x, y value, shape []int, ok bool) {
	if x, ok = w.find(want); !ok {
		return
	}
	if w.chance(12) && x.top() <= limit(x.elem) {
		y = w.constant(x.elem, []float64{1, 2, 3, 0.5, 0.25}[w.r.IntN(3+2*b2i(x.float()))])
	} else if y, ok = w.find(func(y value) bool {
		_, fits := joined(x.shape, y.shape)
		return y.elem == x.elem && fits && want(y) && (y.name != x.name || w.chance(3))
	}); !ok {
		y, ok = x, true
	}
	if w.chance(2) {
		x, y = y, x
	}
	shape, _ = joined(x.shape, y.shape)
	return
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

var binaries = []string{"add", "add", "add", "sub", "sub", "sub", "mul", "mul", "mul", "div", "div", "max", "min", "max", "min", "pow", "rem", "atan2", "and", "or", "xor"}

func (w *writer) binary() bool {
	name := w.pick(binaries...)
	bends := name == "max" || name == "min"
	x, y, shape, ok := w.pair(func(v value) bool {
		switch {
		case !takes(name, 0, v.elem) || v.top() > limit(v.elem):
			return false
		case w.grad:
			return v.float() && name != "rem" && (!bends || w.decides(v))
		case name == "rem":
			return v.exact
		}
		return true
	})
	if ok {
		w.combine(name, x, y, shape)
	}
	return ok
}

// combine writes an element-wise op of two operands.
func (w *writer) combine(name string, x, y value, shape []int) value {
	lo, hi, exact := 0.0, 0.0, x.exact && y.exact && !x.float()
	switch name {
	case "add":
		lo, hi = x.lo+y.lo, x.hi+y.hi
	case "sub":
		if x.elem[0] == 'u' && x.lo < y.hi {
			name, lo, hi = "add", x.lo+y.lo, x.hi+y.hi
			break
		}
		lo, hi = x.lo-y.hi, x.hi-y.lo
	case "mul":
		if x.top()*y.top() > limit(x.elem) {
			x, y = w.small(x, 10), w.small(y, 10)
		}
		lo, hi = corners(x, y, func(a, b float64) float64 { return a * b })
	case "div", "rem":
		y = w.positive(y)
		lo, hi = corners(x, y, func(a, b float64) float64 { return a / b })
		if name == "rem" {
			lo, hi, exact = min(0, x.lo), max(0, x.hi), x.exact && y.exact
		} else if isInt(x.elem) {
			lo, hi = math.Floor(lo), math.Ceil(hi)
		}
	case "max":
		lo, hi, exact = max(x.lo, y.lo), max(x.hi, y.hi), x.exact && y.exact
	case "min":
		lo, hi, exact = min(x.lo, y.lo), min(x.hi, y.hi), x.exact && y.exact
	case "pow":
		if isInt(x.elem) {
			x, y = w.small(x, 3), w.small(y, 3)
			if y.lo < 0 {
				y = w.one("relu", "", w.fresh(y.elem, y.shape, 0, max(0, y.hi), y.exact, y), y)
			}
			lo, hi = -27, 27
			break
		}
		x, y = w.positive(w.small(x, 4)), w.small(y, 2)
		lo, hi = corners(x, y, math.Pow)
	case "atan2":
		y = w.positive(y)
		lo, hi = -math.Pi, math.Pi
	default: // bitwise
		top := 1.0
		for x.elem != "i1" && top <= max(x.top(), y.top()) {
			top *= 2
		}
		lo, hi = -top, top
		if x.lo >= 0 && y.lo >= 0 {
			lo = 0
		}
	}
	return w.one(name, "", w.fresh(x.elem, shape, lo, hi, exact, x, y), x, y)
}

func corners(x, y value, f func(a, b float64) float64) (lo, hi float64) {
	a, b, c, d := f(x.lo, y.lo), f(x.lo, y.hi), f(x.hi, y.lo), f(x.hi, y.hi)
	lo, hi = min(a, b, c, d), max(a, b, c, d)
	if x.lo < 0 && x.hi > 0 {
		lo, hi = min(lo, 0), max(hi, 0)
	}
	return
}

func (w *writer) compare() bool {
	x, y, shape, ok := w.pair(func(v value) bool { return takes("compare", 0, v.elem) && w.decides(v) })
	if ok {
		w.one("compare "+w.pick("eq", "ne", "lt", "le", "gt", "ge"), "", w.fresh("i1", shape, 0, 1, true, x, y), x, y)
	}
	return ok
}

// predicate is an i1 that broadcasts to the shape.
func (w *writer) predicate(shape []int) (value, bool) {
	fits := func(v value) bool {
		s, ok := joined(v.shape, shape)
		return ok && slices.Equal(s, shape)
	}
	if v, ok := w.find(func(v value) bool { return v.elem == "i1" && fits(v) }); ok {
		return v, true
	}
	x, ok := w.find(func(v value) bool { return takes("compare", 0, v.elem) && v.exact && fits(v) })
	if !ok {
		return x, false
	}
	c := w.constant(x.elem, 0)
	if isInt(x.elem) {
		c = w.constant(x.elem, 4)
	}
	return w.one("compare "+w.pick("lt", "le", "gt", "ge"), "", w.fresh("i1", x.shape, 0, 1, true, x), x, c), true
}

func (w *writer) choose() bool {
	x, y, shape, ok := w.pair(func(v value) bool { return v.top() <= limit(v.elem) && (v.float() || !w.grad) })
	if !ok {
		return false
	}
	p, ok := w.predicate(shape)
	if ok {
		w.one("select", "", w.fresh(x.elem, shape, min(x.lo, y.lo), max(x.hi, y.hi), x.exact && y.exact, x, y), p, x, y)
	}
	return ok
}

func (w *writer) clamp() bool {
	x, ok := w.find(func(v value) bool { return numbers(v) && (!w.grad || v.float() && w.decides(v)) })
	if !ok {
		return false
	}
	a, b := -1.0, 2.0
	if isInt(x.elem) {
		a, b = 1, 6
	}
	w.one("clamp", "", w.fresh(x.elem, x.shape, a, b, x.exact, x), w.constant(x.elem, a), x, w.constant(x.elem, b))
	return true
}

func (w *writer) convert() bool {
	x, ok := w.find(func(v value) bool { return v.top() <= 100 && (v.float() || !w.grad) })
	if !ok {
		return false
	}
	to := w.pick("f32", "f16", "bf16", "f64", "f32")
	if !w.grad && w.chance(3) {
		to = w.pick("i64", "i32", "i16", "i8", "ui8", "ui16", "ui32", "ui64", "i1", "f8E4M3FN", "f8E4M3FN", "f8E5M2", "f8E5M2", "i4", "i4", "ui4")
	}
	if to == x.elem || !x.exact && !isFloat(to) && !isF8(to) || to[0] == 'u' && x.lo < 0 || !x.exact && isF8(to) || isI4(to) && x.top() > limit(to) {
		return false
	}
	lo, hi := x.lo, x.hi
	if to == "i1" {
		lo, hi = 0, 1
	}
	v := w.one("convert", "", w.fresh(to, x.shape, lo, hi, x.exact, x), x)
	if (isF8(to) || isI4(to)) && w.chance(2) {
		w.one("convert", "", w.fresh("f32", x.shape, lo, hi, x.exact, x), v)
	}
	return true
}

func (w *writer) dropout() bool {
	x, ok := w.find(ranked(1, func(v value) bool { return floats(v) && v.top() < 1e4 }))
	if !ok {
		return false
	}
	y := w.fresh(x.elem, x.shape, 2*min(0, x.lo), 2*max(0, x.hi), false, x)
	outs := []value{y, w.fresh("i1", x.shape, 0, 1, true)}
	ins := append([]value{x}, w.step()...)
	clauses, first := w.ofWhole(x.shape)
	w.emit("dropout", fmt.Sprintf("rate = %s, seed = %d", w.pick("0.5", "0.25", "0.1"), w.r.IntN(4))+clauses, outs, append(ins, first...))
	return true
}

// ofWhole makes what dropout numbers, of a shape, a part of a whole, in one of four programs: the clause and the operand.
func (w *writer) ofWhole(shape []int) (clause string, first []value) {
	if !w.chance(4) {
		return "", nil
	}
	var whole []string
	number := 0
	for _, n := range shape {
		all := max(1, n) + w.r.IntN(3)
		whole = append(whole, strconv.Itoa(all))
		number = number*all + w.r.IntN(all-n+1)
	}
	return ", whole = [" + strings.Join(whole, ", ") + "]", []value{w.constant(w.pick("i64", "i32"), float64(number))}
}

// step is the step of an op that draws random numbers, in one of three programs.
func (w *writer) step() []value {
	if !w.chance(3) {
		return nil
	}
	if v, ok := w.find(func(v value) bool { return len(v.shape) == 0 && isInt(v.elem) && v.exact }); ok {
		return []value{v}
	}
	return []value{w.constant(w.pick("i64", "i32", "ui8"), float64(w.r.IntN(100)))}
}

// mapped writes a scalar function of one or two operands.
func (w *writer) mapped() bool {
	x, y, shape, ok := w.pair(func(v value) bool { return floats(v) && v.top() < 1e3 })
	if !ok {
		return false
	}
	e := x.elem
	z := w.fresh(e, shape, min(-1, x.lo)+min(0, y.lo), max(1, x.hi)+max(0, y.hi), false, x, y)
	region := fmt.Sprintf(` {
%[1]s^bb0(%%p%[3]d: %[2]s, %%q%[3]d: %[2]s):
%[1]s  %%s%[3]d = dm.%[4]s %%p%[3]d : %[2]s
%[1]s  %%t%[3]d = dm.add %%s%[3]d, %%q%[3]d : %[2]s
%[1]s  dm.yield %%t%[3]d : %[2]s
%[1]s}`, w.indent, e, w.names, w.pick("tanh", "sin", "neg", "erf"))
	if x.top() > 20 {
		return false
	}
	w.line("map", "", region, []value{z}, []value{x, y})
	w.vals = append(w.vals, z)
	return true
}

func (w *writer) optimizer() bool {
	x, ok := w.find(func(v value) bool { return floats(v) && v.top() <= 100 })
	if !ok {
		return false
	}
	same := func() value {
		v, ok := w.find(func(v value) bool { return v.elem == x.elem && slices.Equal(v.shape, x.shape) && v.top() <= 100 })
		if !ok {
			return x
		}
		return v
	}
	like := func(lo, hi float64) value { return w.fresh(x.elem, x.shape, lo, hi, false, x) }
	switch g, m := same(), same(); w.r.IntN(3) {
	case 0:
		w.emit("sgd", "lr = 0.1", []value{like(-120, 120)}, []value{x, g})
	case 1:
		w.emit("momentum", "lr = 0.1, nesterov = "+w.pick("true", "false"), []value{like(-220, 220), like(-220, 220)}, []value{x, g, m})
	default:
		v := w.positive(same())
		outs := []value{like(-300, 300), like(-100, 100), like(0, 1e4)}
		w.emit("adam", "lr = 0.01, weight_decay = "+w.pick("0.0", "0.1"), outs, []value{x, g, m, v, w.constant("i64", 3)})
	}
	return true
}
