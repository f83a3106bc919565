package attention

import (
	"slices"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// level is a value each of whose elements is a function of an element of one other: of
// a predicate, as a mask of numbers that a program computes from it, or of a constant.
type level struct {
	of *ir.Value
	x  axes
	at func(float64) float64
}

// level reads v, with the axes x.
func (f *finder) level(v *ir.Value, x axes) (l level, ok bool) {
	v = origin(v)
	o, t := v.Op, v.Tensor()
	if o == nil || t == nil || !op.Valid(o) || f.tired() {
		return l, false
	}
	if t.Elem == types.I1 || o.Name == op.Constant {
		return level{v, x, func(n float64) float64 { return n }}, true
	}
	switch o.Name {
	case "dm.transpose", "dm.reshape", "dm.broadcast", "dm.slice", "dm.dynamic_slice":
		if w, y, ok := f.longer(o, x); ok {
			return f.level(w, y)
		}
	case "dm.convert":
		if l, ok = f.level(o.Operands[0], x); ok {
			return l.then(t.Elem, func(n float64) float64 { return n })
		}
	case "dm.select":
		a, known := numberOf(o.Operands[1])
		b, also := numberOf(o.Operands[2])
		if y, ok := aligned(o.In(0), o.Out(0).Shape, x); ok && known && also {
			return level{o.Operands[0], y, func(n float64) float64 {
				if n != 0 {
					return a
				}
				return b
			}}, true
		}
	case "dm.add", "dm.sub", "dm.mul":
		for i := range 2 {
			n, known := numberOf(o.Operands[1-i])
			y, ok := aligned(o.In(i), o.Out(0).Shape, x)
			if !known || !ok {
				continue
			}
			if l, ok = f.level(o.Operands[i], y); !ok {
				return l, false
			}
			return l.then(t.Elem, func(m float64) float64 {
				if i == 1 {
					return arithmetic[o.Name](n, m)
				}
				return arithmetic[o.Name](m, n)
			})
		}
	}
	return l, false
}

// then is a function of l with elements of type e; not ok where these may not hold it.
func (l level) then(e types.Elem, of func(float64) float64) (level, bool) {
	at := l.at
	l.at = func(n float64) float64 { return of(at(n)) }
	if e.IsFloat() {
		l.at = func(n float64) float64 { return types.Round(of(at(n)), e) }
		return l, true
	}
	if l.of.Tensor().Elem != types.I1 {
		return l, false
	}
	for _, n := range []float64{0, 1} {
		if _, ok := held(l.at(n), e); !ok {
			return l, false
		}
	}
	return l, true
}

// rule is the causal mask that l is; what reports whether a number of l is seen, and
// whether it is either.
func (f *finder) rule(l level, what func(float64) (seen, ok bool)) *causal {
	if l.of.Tensor().Elem != types.I1 {
		return f.causalLiteral(l.of.Op, l.x, func(n float64) (bool, bool) { return what(l.at(n)) })
	}
	yes, ok := what(l.at(1))
	no, also := what(l.at(0))
	if !ok || !also || yes == no {
		return nil
	}
	c, others := f.conditions(l.of, l.x, yes)
	if len(others) > 0 {
		return nil
	}
	return c
}

// compared is the causal mask that o is, a comparison with a number, seen where it is
// want; nil where it is none.
func (f *finder) compared(o *ir.Op, x axes, want bool) *causal {
	for i := range 2 {
		n, known := numberOf(o.Operands[1-i])
		y, ok := aligned(o.In(i), o.Out(0).Shape, x)
		if !known || !ok {
			continue
		}
		l, ok := f.level(o.Operands[i], y)
		if !ok {
			return nil
		}
		direction := op.Str(o, "direction")
		return f.rule(l, func(m float64) (bool, bool) {
			if i == 1 {
				return compares(direction, n, m) == want, true
			}
			return compares(direction, m, n) == want, true
		})
	}
	return nil
}

func compares(direction string, a, b float64) bool {
	switch direction {
	case "lt":
		return a < b
	case "le":
		return a <= b
	case "gt":
		return a > b
	case "ge":
		return a >= b
	case "ne":
		return a != b
	}
	return a == b
}

// longer goes back through an op that orders or repeats elements, or takes the first ones.
// What it is of may have more elements than its axes say: its indices are the same, but
// it is no mask of the scores.
func (f *finder) longer(o *ir.Op, x axes) (*ir.Value, axes, bool) {
	switch o.Name {
	case "dm.transpose", "dm.reshape", "dm.broadcast":
		return f.back(o, x)
	case "dm.slice":
		if op.Attr(o, "dims") != nil || slices.ContainsFunc(op.Ints(o, "start_indices"), func(n int64) bool { return n != 0 }) ||
			slices.ContainsFunc(op.Ints(o, "strides"), func(n int64) bool { return n != 1 }) {
			return nil, nil, false
		}
	case "dm.dynamic_slice":
		for _, v := range o.Operands[1:] {
			if n, ok := numberOf(v); !ok || n != 0 {
				return nil, nil, false
			}
		}
	default:
		return nil, nil, false
	}
	to := slices.Clone(x)
	for i, n := range o.In(0).Shape {
		if n.Equal(o.Out(0).Shape[i]) {
			continue
		}
		at := f.longest(x[i])
		if len(at) != 1 {
			return nil, nil, false
		}
		to[i] = []*atom{{size: n, of: at[0].index()}}
	}
	return o.Operands[0], to, true
}
