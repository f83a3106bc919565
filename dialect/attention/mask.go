package attention

import (
	"math"
	"slices"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// adds takes operand 1-i of o as a mask that is added to the scores, operand i.
func (f *finder) adds(o *ir.Op, i int, x axes, s state) bool {
	m := o.Operands[1-i]
	y, ok := aligned(m.Tensor(), o.Out(0).Shape, x)
	if !ok || !plain(m) {
		return false
	}
	if c := f.causalNumbers(m, y, s.behind); c != nil {
		if s.causal != nil {
			return f.no("the scores have two causal masks")
		}
		s.causal = c
		return f.scores(o.Operands[i], x, s)
	}
	switch {
	case s.behind != 1:
		return f.no("the mask is scaled as well")
	case s.added != nil || s.chosen != nil:
		return f.no("the scores have two masks")
	}
	s.added = &masked{v: m, x: y}
	return f.scores(o.Operands[i], x, s)
}

// selects takes o, a choice between scores and a number.
func (f *finder) selects(o *ir.Op, x axes, s state) bool {
	shape := o.Out(0).Shape
	for i := 1; i <= 2; i++ {
		n, ok := numberOf(o.Operands[3-i])
		if !ok {
			continue
		}
		v := o.Operands[i]
		if !shaped(v, o.Results[0]) {
			return false
		}
		if s.behind <= 0 || !masks(n*s.behind) {
			return f.no("a score is replaced by %g, which is not a mask", n)
		}
		y, ok := aligned(o.In(0), shape, x)
		if !ok {
			return false
		}
		want := i == 1
		none := math.IsInf(n, -1)
		seen, others := f.conditions(o.Operands[0], y, want)
		if seen != nil && (none || len(others) == 0) {
			if s.causal != nil {
				return f.no("the scores have two causal masks")
			}
			s.causal = seen
			s.causal.finite = !none
		} else if len(others) != 1 || seen != nil {
			others = []masked{{v: o.Operands[0], x: y, want: want}}
		}
		if len(others) > 1 {
			return f.no("the scores have two masks")
		}
		if len(others) == 1 {
			if s.added != nil || s.chosen != nil {
				return f.no("the scores have two masks")
			}
			others[0].put = n
			s.chosen = &others[0]
		}
		return f.scores(v, x, s)
	}
	return f.no("the scores are selected from a value that is not a constant number")
}

// conditions splits a predicate, seen where it is want, into a causal mask and
// others, all of which must hold.
func (f *finder) conditions(v *ir.Value, x axes, want bool) (c *causal, others []masked) {
	v = origin(v)
	rest := []masked{{v: v, x: x, want: want}}
	o := v.Op
	if o == nil || !op.Valid(o) || f.tired() {
		return nil, rest
	}
	switch o.Name {
	case "dm.not":
		return f.conditions(o.Operands[0], x, !want)
	case "dm.transpose", "dm.reshape", "dm.broadcast", "dm.convert":
		if o.In(0).Elem != types.I1 {
			return nil, rest
		}
		if w, y, ok := f.back(o, x); ok {
			return f.conditions(w, y, want)
		}
	case op.Constant:
		if c := f.causalLiteral(o, x, func(n float64) (bool, bool) { return (n != 0) == want, true }); c != nil {
			return c, nil
		}
	case "dm.compare":
		if c := f.causalCompare(o, x, want); c != nil {
			return c, nil
		}
	case "dm.and", "dm.or":
		if (o.Name == "dm.and") != want {
			return nil, rest
		}
		for i := range 2 {
			y, ok := aligned(o.In(i), o.Out(0).Shape, x)
			if !ok {
				return nil, rest
			}
			d, more := f.conditions(o.Operands[i], y, want)
			if d != nil && c != nil {
				return nil, rest
			}
			if d != nil {
				c = d
			}
			others = append(others, more...)
		}
		return c, others
	}
	return nil, rest
}

// narrowest is the smallest value that the mask m comes from, of element type
// elem; nil where none has it.
func (f *finder) narrowest(m *masked, elem types.Elem) *masked {
	var best *masked
	v, x := m.v, m.x
	for range maxSteps {
		if v.Tensor().Elem == elem && f.visible(v) && plain(v) {
			best = &masked{v: v, x: x, want: m.want, put: m.put}
		}
		o := origin(v).Op
		if o == nil || !op.Valid(o) || !slices.Contains([]string{"dm.transpose", "dm.reshape", "dm.broadcast", "dm.convert"}, o.Name) ||
			o.Name == "dm.convert" && !exact(o.In(0).Elem, o.Out(0).Elem) {
			break
		}
		w, y, ok := f.back(o, x)
		if !ok {
			break
		}
		v, x = w, y
	}
	return best
}
