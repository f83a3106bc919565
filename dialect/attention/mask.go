package attention

import (
	"math"
	"slices"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// adds takes operand 1-i of o as what is added to the scores, operand i: a causal
// mask, another mask or a bias, or a causal mask and a bias.
func (f *finder) adds(o *ir.Op, i int, x axes, s state) bool {
	m := o.Operands[1-i]
	y, ok := aligned(m.Tensor(), o.Out(0).Shape, x)
	if !ok || !plain(m) {
		return false
	}
	var c *causal
	rest := &masked{v: m, x: y}
	if f.indexed {
		if c = f.causalNumbers(m, y, s.behind); c != nil {
			rest = nil
		} else if s.behind == 1 && s.causal == nil {
			if seen, bias := f.biased(m, y); seen != nil {
				c, rest = seen, bias
			}
		}
	}
	if !f.causes(&s, c) {
		return false
	}
	if rest != nil {
		if s.behind <= 0 {
			return f.no("the mask is scaled by %g", s.behind)
		}
		rest.behind = s.behind
		s.masks = append(slices.Clip(s.masks), *rest)
	}
	return f.scores(o.Operands[i], x, s)
}

// causes makes c, unless nil, the causal mask of s.
func (f *finder) causes(s *state, c *causal) bool {
	if c == nil {
		return true
	}
	f.metCausal = true
	if s.causal != nil {
		return f.no("the scores have two causal masks")
	}
	s.causal = c
	return true
}

// biased splits v, the sum of a causal mask and a bias or a choice between a bias
// and a number that masks; nil where v is neither, or where a kernel cannot mask by
// the indices alone beside that bias.
func (f *finder) biased(v *ir.Value, x axes) (*causal, *masked) {
	for !f.tired() {
		v = origin(v)
		o := v.Op
		if o == nil || !op.Valid(o) {
			return nil, nil
		}
		first, last := 0, 0
		switch o.Name {
		case "dm.add":
			last = 1
		case "dm.select":
			first, last = 1, 2
		default:
			var ok bool
			if v, x, ok = f.view(v, x); !ok {
				return nil, nil
			}
			continue
		}
		for i := first; i <= last; i++ {
			other := o.Operands[first+last-i]
			y, ok := aligned(o.Operands[i].Tensor(), o.Out(0).Shape, x)
			z, ok2 := aligned(other.Tensor(), o.Out(0).Shape, x)
			if !ok || !ok2 {
				return nil, nil
			}
			bias := &masked{v: o.Operands[i], x: y, behind: 1}
			var c *causal
			if o.Name == "dm.add" {
				c = f.causalNumbers(other, z, 1)
			} else if n, ok := numberOf(other); ok && masks(n) {
				if at, ok := aligned(o.In(0), o.Out(0).Shape, x); ok {
					var more []masked
					if c, more = f.conditions(o.Operands[0], at, i == 1); len(more) > 0 {
						c = nil
					}
				}
				if c != nil {
					c.put = n
				}
			}
			if c != nil && (!c.finite() || f.beside(c.put, *bias)) && f.narrowest(bias, f.elem) != nil {
				return c, bias
			}
		}
		return nil, nil
	}
	return nil, nil
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
		put := n * s.behind
		others := []masked{{v: o.Operands[0], x: y, want: i == 1}}
		if f.indexed {
			seen, more := f.conditions(o.Operands[0], y, i == 1)
			if seen != nil && (math.IsInf(n, -1) || len(more) == 0) {
				if seen.put = put; !f.causes(&s, seen) {
					return false
				}
				others = more
			} else if f.metCausal = f.metCausal || seen != nil; seen == nil && len(more) <= 1 {
				others = more
			}
		}
		s.masks = slices.Clip(s.masks)
		for _, m := range others {
			m.put = put
			s.masks = append(s.masks, m)
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
	if n, ok := numberOf(v); ok && (n != 0) == want { // it always holds
		return nil, nil
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
	case "dm.slice", "dm.dynamic_slice":
		if w, y, ok := f.longer(o, x); ok {
			if c, more := f.conditions(w, y, want); len(more) == 0 {
				return c, nil
			}
		}
	case op.Constant:
		if c := f.causalLiteral(o, x, func(n float64) (bool, bool) { return (n != 0) == want, true }); c != nil {
			return c, nil
		}
	case "dm.compare":
		if c := f.causalCompare(o, x, want); c != nil {
			return c, nil
		}
		if c := f.compared(o, x, want); c != nil {
			return c, nil
		}
	case "dm.and", "dm.or":
		if (o.Name == "dm.and") != want {
			return nil, rest
		}
		if c, others, ok := f.both(o, x, []int{0, 1}, []bool{want, want}); ok {
			return c, others
		}
	case "dm.select":
		for i := 1; i <= 2; i++ { // the other value, where that is chosen
			if n, ok := numberOf(o.Operands[i]); ok && (n != 0) != want {
				if c, others, ok := f.both(o, x, []int{0, 3 - i}, []bool{i == 2, want}); ok {
					return c, others
				}
			}
		}
	}
	return nil, rest
}

// both are the conditions of two operands of o that must be as wants tells, at most
// one of them causal.
func (f *finder) both(o *ir.Op, x axes, operands []int, wants []bool) (c *causal, others []masked, ok bool) {
	for i, n := range operands {
		y, ok := aligned(o.In(n), o.Out(0).Shape, x)
		if !ok {
			return nil, nil, false
		}
		d, more := f.conditions(o.Operands[n], y, wants[i])
		if d != nil && c != nil {
			return nil, nil, false
		}
		if d != nil {
			c = d
		}
		others = append(others, more...)
	}
	return c, others, true
}

// narrowest is the smallest value that the mask m comes from, of element type
// elem; nil where none has it.
func (f *finder) narrowest(m *masked, elem types.Elem) *masked {
	var best *masked
	v, x := m.v, m.x
	for range maxSteps {
		if v.Tensor().Elem == elem && f.visible(v) && plain(v) {
			best = &masked{v: v, x: x, behind: m.behind, want: m.want, put: m.put}
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
