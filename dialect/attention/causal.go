package attention

import (
	"math"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// causal is the rule that a query sees no later keys.
type causal struct {
	key, query *atom
	shift      int64   // query i sees the keys up to i + shift
	put        float64 // what stands in place of the others, or is added to them: at most this
}

// finite reports whether the others are not minus infinity.
func (c *causal) finite() bool { return !math.IsInf(c.put, -1) }

// causalNumbers reads a mask that is added: 0 for keys that are seen, and a
// number that masks for later ones, also when it is multiplied with behind.
func (f *finder) causalNumbers(v *ir.Value, x axes, behind float64) *causal {
	if behind <= 0 {
		return nil
	}
	l, ok := f.level(v, x)
	if !ok {
		return nil
	}
	put := math.Inf(-1)
	c := f.rule(l, func(n float64) (bool, bool) {
		if n != 0 {
			put = max(put, n*behind)
		}
		return n == 0, n == 0 || masks(n*behind)
	})
	if c != nil {
		c.put = put
	}
	return c
}

// causalCompare reads a comparison of the indices of keys and queries.
func (f *finder) causalCompare(o *ir.Op, x axes, want bool) *causal {
	l := f.index(o.Operands[0], o, x)
	r := f.index(o.Operands[1], o, x)
	if l == nil || r == nil {
		return nil
	}
	d := l.plus(r, -1)
	direction := op.Str(o, "direction")
	if !want {
		direction = map[string]string{"lt": "ge", "le": "gt", "gt": "le", "ge": "lt"}[direction]
	}
	if direction == "gt" || direction == "ge" { // turned round
		d = (&linear{}).plus(d, -1)
		direction = map[string]string{"gt": "lt", "ge": "le"}[direction]
	}
	// key - query + n is below 0, or at most 0.
	c := &causal{shift: -d.n}
	switch direction {
	case "lt":
		c.shift--
	case "le":
	default:
		return nil
	}
	for a, n := range d.of {
		switch {
		case n == 0:
		case n == 1 && c.key == nil && f.isKey(a):
			c.key = a
		case n == -1 && c.query == nil && !f.isKey(a):
			c.query = a
		default:
			return nil
		}
	}
	if c.key == nil || c.query == nil {
		return nil
	}
	return c
}

// linear is a sum of indices and a number.
type linear struct {
	of map[*atom]int64
	n  int64
}

func (l *linear) plus(r *linear, sign int64) *linear {
	sum := &linear{of: map[*atom]int64{}, n: l.n + sign*r.n}
	for a, n := range l.of {
		sum.of[a] += n
	}
	for a, n := range r.of {
		sum.of[a] += sign * n
	}
	return sum
}

// index reads v, an operand of o, whose result has the axes x, as a sum of
// indices; nil where it is none.
func (f *finder) index(v *ir.Value, o *ir.Op, x axes) *linear {
	t := v.Tensor()
	if t == nil {
		return nil
	}
	y, ok := aligned(t, o.Out(0).Shape, x)
	if !ok {
		return nil
	}
	l := f.sum(v, y)
	if l == nil || !f.holds(v.Tensor().Elem, l) {
		return nil
	}
	return l
}

// sum is index for a value with the axes x; whether its type holds what it gives
// is not known yet.
func (f *finder) sum(v *ir.Value, x axes) *linear {
	for !f.tired() {
		if n, ok := numberOf(v); ok {
			if n != math.Trunc(n) || math.Abs(n) > 1<<20 {
				return nil
			}
			return &linear{n: int64(n)}
		}
		v = origin(v)
		o := v.Op
		if o == nil || !op.Valid(o) {
			return nil
		}
		switch o.Name {
		case "dm.iota":
			d, ok := op.Dim(o, "dim", len(x))
			if !ok || !op.Counts(o) {
				return nil
			}
			at := f.longest(x[d])
			if len(at) != 1 {
				return nil
			}
			return &linear{of: map[*atom]int64{at[0].index(): 1}}
		case "dm.add", "dm.sub":
			l, r := f.index(o.Operands[0], o, x), f.index(o.Operands[1], o, x)
			if l == nil || r == nil {
				return nil
			}
			if o.Name == "dm.add" {
				return l.plus(r, 1)
			}
			return l.plus(r, -1)
		case "dm.convert":
			return f.index(o.Operands[0], o, x)
		}
		var ok bool
		if v, x, ok = f.longer(o, x); !ok {
			return nil
		}
	}
	return nil
}

// holds reports whether every value of l is one of e, so that nothing wraps and
// nothing is rounded. Narrower types do not count as far as dimensions go.
func (f *finder) holds(e types.Elem, l *linear) bool {
	least, most, known := l.n, l.n, true
	for a, n := range l.of {
		if n < -1 || n > 1 {
			return false
		}
		size, ok := a.size.Int()
		known = known && ok
		least, most = least+min(0, n)*size, most+max(0, n)*size
		if e.IsUnsigned() && n < 0 {
			return false
		}
	}
	switch {
	case e == types.F64:
		return true
	case e == types.F32:
		return known && -1<<24 <= least && most <= 1<<24
	case e.IsInt() && e.Bytes() >= 8:
		return !e.IsUnsigned() || least >= 0
	case e.IsUnsigned() && e.Bytes() == 4:
		return least >= 0 && most <= math.MaxUint32
	}
	return e.IsInt() && e.Bytes() == 4 && math.MinInt32 <= least && most <= math.MaxInt32
}

// causalLiteral reads a constant whose elements all are seen or masked; what reports
// which, and whether a number is either.
func (f *finder) causalLiteral(o *ir.Op, x axes, what func(float64) (seen, ok bool)) *causal {
	d, ok := op.Attr(o, "value").(*types.Dense)
	if !ok || d.Splat {
		return nil
	}
	d, err := d.Inline()
	if err != nil {
		return nil
	}
	c := &causal{}
	var queries, keys, row, col int64 // sizes and strides
	stride := int64(1)
	var also []repeated
	for i := len(x) - 1; i >= 0; i-- {
		n, _ := o.Out(0).Shape[i].Int()
		at := f.longest(x[i])
		if n != 1 && len(at) != 1 {
			return nil
		}
		if n != 1 {
			a := at[0].index()
			taken, known := a.size.Int()
			switch {
			case !known || taken > n:
				return nil
			case f.isKey(a) && c.key == nil:
				c.key, keys, col = a, taken, stride
			case f.isKey(a):
				return nil
			case c.query == nil: // the innermost: what lies outside it repeats the rule
				c.query, queries, row = a, taken, stride
			default:
				also = append(also, repeated{taken, stride})
			}
		}
		stride *= n
	}
	if c.key == nil || c.query == nil || int(stride) != d.Len() {
		return nil
	}
	c.shift = keys - queries
	holds := func(from int64) bool {
		for i := range queries {
			for j := range keys {
				if seen, ok := what(d.Float(int(from + i*row + j*col))); !ok || seen != (j <= i+c.shift) {
					return false
				}
			}
		}
		return true
	}
	var all func(dims []repeated, from int64) bool
	all = func(dims []repeated, from int64) bool {
		if len(dims) == 0 {
			return holds(from)
		}
		for i := range dims[0].size {
			if !all(dims[1:], from+i*dims[0].stride) {
				return false
			}
		}
		return true
	}
	if !all(also, 0) {
		return nil
	}
	return c
}

// repeated is a dimension of a mask that is neither of queries nor of keys: batches, and heads.
type repeated struct{ size, stride int64 }
