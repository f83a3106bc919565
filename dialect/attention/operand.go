package attention

import (
	"slices"

	"dmir/dialect/ir"
	"dmir/dialect/op"
)

// operand is a value that could be the queries, keys or values.
type operand struct {
	v     *ir.Value
	x     axes
	scale float64
}

// operands are v and what it comes from, as far as that has the same elements but
// for a factor.
func (f *finder) operands(v *ir.Value, x axes, scaled, repeated bool) []operand {
	var out []operand
	scale := 1.0
	for range maxSteps {
		if f.proof != nil && len(out) > 0 {
			break // its gradient is that of this value
		}
		if v.Tensor().Elem == f.elem && plain(v) && f.visible(v) {
			out = append(out, operand{v, x, scale})
		}
		w := origin(v)
		o := w.Op
		if o == nil || !op.Valid(o) || !plain(w) {
			break
		}
		ok := false
		switch o.Name {
		case "dm.convert":
			if exact(o.In(0).Elem, o.Out(0).Elem) {
				v, x, ok = f.back(o, x)
			}
		case "dm.transpose", "dm.reshape":
			v, x, ok = f.back(o, x)
		case "dm.broadcast":
			if repeated && f.proof == nil {
				if v, x, ok = f.back(o, x); ok {
					out = nil
				}
			}
		case "dm.mul", "dm.div":
			for i := range 2 {
				n, known := numberOf(o.Operands[1-i])
				if !scaled || f.proof != nil || !known || n == 0 || len(w.Uses) != 1 || o.Name == "dm.div" && i == 1 || !shaped(o.Operands[i], w) {
					continue
				}
				if o.Name == "dm.div" {
					n = 1 / n
				}
				v, ok = o.Operands[i], true
				scale *= n
				break
			}
		}
		if !ok {
			break
		}
	}
	return out
}

// choose is the one of the operands that takes the least to be in the order of
// want: nothing, a reshape, a transpose, or both; of equals the one that is
// computed first, so that scales and converts behind it go.
func (f *finder) choose(all []operand, want axes) operand {
	best, rank := all[0], -1
	for _, c := range all {
		r := 0
		switch {
		case f.same(c.x, want):
			r = 3
		case slices.Equal(f.flat(c.x), f.flat(want)):
			r = 2
		case f.same(c.x, each(f.flat(c.x))) && f.same(want, each(f.flat(want))):
			r = 1
		}
		if r >= rank {
			best, rank = c, r
		}
	}
	return best
}
