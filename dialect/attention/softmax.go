package attention

import (
	"math"
	"slices"

	"dmir/dialect/ir"
	"dmir/dialect/op"
)

// probabilities goes back from the first operand of the second contraction, with
// the axes x, to the scores: it notes a dropout, takes a softmax or what one
// expands to, and goes on from there.
func (f *finder) probabilities(v *ir.Value, x axes) bool {
	for range maxSteps {
		v = origin(v)
		o := v.Op
		if !f.wide(v) || o == nil || !op.Valid(o) {
			return false
		}
		switch o.Name {
		case "dm.transpose", "dm.reshape", "dm.convert":
			var ok bool
			if v, x, ok = f.back(o, x); !ok {
				return false
			}
			continue
		case "dm.dropout":
			if f.dropout != nil || v.Index != 0 {
				return f.no("two dropouts are between the probabilities and the values")
			}
			if op.NumberingOf(o).First != nil {
				return f.no("the dropout is of a part of a whole")
			}
			if step := op.StepOf(o); step != nil && !f.visible(step) {
				return f.no("the step of the dropout cannot be read behind the probabilities")
			}
			f.dropout, f.drawn = o, x
			v = o.Operands[0]
			continue
		case "dm.exp":
			if f.divided == nil {
				return false
			}
			y, ok := aligned(f.divided.In(1), f.divided.Out(0).Shape, f.y)
			return ok && f.reduction("add", f.divided.Operands[1], y, v, x) && f.exponentials(v, x)
		}
		if f.divided != nil {
			return false
		}
		if p := unguarded(o); p != nil {
			f.guarded, v = true, p
			continue
		}
		switch o.Name {
		case "dm.softmax":
			d, ok := op.Dim(o, "dim", len(x))
			if !ok {
				return false
			}
			f.met = true
			if !f.overKeys(x, []int{d}) {
				return f.no("the softmax is not over the keys")
			}
			return f.normalized(o.Operands[0], x)
		case "dm.div":
			e := origin(o.Operands[0])
			return f.reduced("add", o.Operands[1], e, x) && f.exponentials(e, x)
		case "dm.mul":
			for i := range 2 {
				e := origin(o.Operands[i])
				if f.inverse(o.Operands[1-i], e, x) {
					return f.exponentials(e, x)
				}
			}
		}
		return false
	}
	return false
}

// unguarded is what o, a select, is where that is a number, if it is 0 where it is NaN;
// nil for any other op. PyTorch writes probabilities so, for queries that see no key.
func unguarded(o *ir.Op) *ir.Value {
	if o.Name != "dm.select" {
		return nil
	}
	c := o.Operands[0].Op
	if c == nil || c.Name != "dm.compare" || !op.Valid(c) || c.Operands[0] != c.Operands[1] {
		return nil
	}
	nan, is := o.Operands[1], o.Operands[2]
	switch op.Str(c, "direction") {
	case "ne":
	case "eq":
		nan, is = is, nan
	default:
		return nil
	}
	if n, ok := numberOf(nan); !ok || n != 0 || c.Operands[0] != is || !shaped(is, o.Results[0]) {
		return nil
	}
	return is
}

// sees reports whether every query sees a key, so that finite scores have no
// probability that is NaN.
func (f *finder) sees(s state) bool {
	return !slices.ContainsFunc(s.masks, func(m masked) bool {
		_, finite := f.bounds(m.v, map[*ir.Value]op.Interval{})
		return m.chooses() || !finite
	})
}

// normalized goes on from what the softmax is of.
func (f *finder) normalized(v *ir.Value, x axes) bool {
	if f.rows == nil {
		f.rows = x
	}
	return f.scores(v, x, state{scale: 1, behind: 1})
}

// overKeys reports whether dims are all of the keys' dimensions of a value with
// the axes x, and no other.
func (f *finder) overKeys(x axes, dims []int) bool {
	found := map[*atom]bool{}
	for _, d := range dims {
		for _, a := range f.leaves(x[d]) {
			if !f.isKey(a) {
				return false
			}
			found[a] = true
		}
	}
	for _, a := range f.flat(x) {
		if f.isKey(a) && !found[a] {
			return false
		}
	}
	return len(found) > 0
}

func (f *finder) isKey(a *atom) bool {
	for _, k := range f.leaves(f.keys) {
		if k == a {
			return true
		}
	}
	return false
}

// exponentials are e to scores, less their greatest or as they are.
func (f *finder) exponentials(e *ir.Value, x axes) bool {
	if e.Op == nil || e.Op.Name != "dm.exp" || !op.Valid(e.Op) || !f.wide(e) {
		return false
	}
	f.met = true
	s := origin(e.Op.Operands[0])
	if s.Op != nil && s.Op.Name == "dm.sub" && op.Valid(s.Op) && shaped(s.Op.Operands[0], s) {
		if f.reduced("max", s.Op.Operands[1], s.Op.Operands[0], x) {
			return f.normalized(s.Op.Operands[0], x)
		}
	}
	return f.normalized(e.Op.Operands[0], x)
}

// inverse reports whether v is 1 / the sum of e over the keys.
func (f *finder) inverse(v, e *ir.Value, x axes) bool {
	t := v.Tensor()
	if t == nil || e.Tensor() == nil {
		return false
	}
	y, ok := aligned(t, e.Tensor().Shape, x)
	for range maxSteps {
		if !ok || origin(v).Op == nil || !op.Valid(origin(v).Op) {
			return false
		}
		v = origin(v)
		if v.Op.Name == "dm.div" {
			one, known := numberOf(v.Op.Operands[0])
			return known && one == 1 && f.reduction("add", v.Op.Operands[1], y, e, x)
		}
		v, y, ok = f.view(v, y)
	}
	return false
}

// reduced reports whether v, an operand beside e, is e reduced over the keys.
func (f *finder) reduced(kind string, v, e *ir.Value, x axes) bool {
	t, shape := v.Tensor(), e.Tensor()
	if t == nil || shape == nil {
		return false
	}
	y, ok := aligned(t, shape.Shape, x)
	return ok && f.reduction(kind, v, y, e, x)
}

// reduction reports whether v, with the axes y, is e, with the axes x, reduced over
// the keys.
func (f *finder) reduction(kind string, v *ir.Value, y axes, e *ir.Value, x axes) bool {
	e = f.unconverted(e)
	ok := true
	for range maxSteps {
		if !ok || origin(v).Op == nil || !op.Valid(origin(v).Op) {
			return false
		}
		v = origin(v)
		o := v.Op
		switch {
		case o.Name == "dm.max" && kind == "max" && shaped(o.Operands[0], v) && least(o.Operands[1]):
			v = o.Operands[0]
			continue
		case o.Name == "dm.max" && kind == "max" && shaped(o.Operands[1], v) && least(o.Operands[0]):
			v = o.Operands[1]
			continue
		case o.Name == "dm.reduce":
			dims, known := op.Dims(o, "dims", len(x))
			if !known || op.Str(o, "kind") != kind || len(o.Operands) != 1 || op.Str(o, "accumulate") == "f16" ||
				f.unconverted(o.Operands[0]) != e || !shaped(o.Operands[0], e) || !f.overKeys(x, dims) {
				return false
			}
			gone := make([]bool, len(x))
			for _, d := range dims {
				gone[d] = true
			}
			var left axes
			for d := range x {
				switch {
				case !gone[d]:
					left = append(left, x[d])
				case op.Bool(o, "keep_dims"):
					left = append(left, nil)
				}
			}
			return f.same(y, left)
		}
		v, y, ok = f.view(v, y)
	}
	return false
}

// view goes back through an op that orders, repeats or widens.
func (f *finder) view(v *ir.Value, x axes) (*ir.Value, axes, bool) {
	switch o := v.Op; o.Name {
	case "dm.transpose", "dm.reshape", "dm.broadcast":
		return f.back(o, x)
	case "dm.convert":
		if f.widens(o) {
			return f.back(o, x)
		}
	}
	return nil, nil, false
}

// widens reports whether o, a convert, leaves numbers as they are, or rounds them
// no more than an attention does.
func (f *finder) widens(o *ir.Op) bool {
	in, out := o.In(0).Elem, o.Out(0).Elem
	return in.IsFloat() && out.IsFloat() && (exact(in, out) || exact(f.elem, out))
}

// unconverted is what v was before it was widened.
func (f *finder) unconverted(v *ir.Value) *ir.Value {
	v = origin(v)
	for range maxSteps {
		if v.Op == nil || v.Op.Name != "dm.convert" || !op.Valid(v.Op) || !f.widens(v.Op) {
			break
		}
		v = origin(v.Op.Operands[0])
	}
	return v
}

// least reports whether v is minus infinity, with which a maximum is as it was.
func least(v *ir.Value) bool {
	n, ok := numberOf(v)
	return ok && math.IsInf(n, -1)
}
