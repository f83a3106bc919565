package attention

import (
	"math"
	"slices"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// builder makes the ops of an attention that was found.
type builder struct {
	*finder
	*layout
	state
	*op.Builder
	main   *ir.Op
	result *ir.Value
	has    *ir.Value // the queries that see a key, where a mask is a finite number
	zero   *ir.Value // the number 0, where it was needed
}

// mostScale is the greatest scale beside which a finite number masks: scores of greater
// ones may be below it.
const mostScale = 1e4

// build gives false, with a reason, where the registry does not know such an
// attention.
func (b *builder) build(q, k, v operand) bool {
	scale := b.scale * q.scale * k.scale
	if math.IsInf(scale, 0) || math.IsNaN(scale) || scale == 0 {
		return b.no("the scale is %g", scale)
	}
	if b.causal != nil && b.causal.finite() && math.Abs(scale) > mostScale {
		return b.no("the causal mask is a finite number beside the scale %g", scale)
	}
	mask, has, ok := b.mask()
	if !ok {
		return false
	}
	b.has = has
	queries := b.arrange(q.v, q.x, b.queries(b.depth))
	if has != nil && queries != nil {
		queries = b.Value("select", []*ir.Value{has, queries, b.nought()}, nil)
	}
	operands := []*ir.Value{queries, b.arrange(k.v, k.x, b.shared(b.depth)), b.arrange(v.v, v.x, b.shared(b.value))}
	if mask != nil {
		operands = append(operands, mask)
	}
	var attrs []types.Named
	if n, known := b.size(b.depth).Int(); !known || scale != 1/math.Sqrt(float64(n)) {
		attrs = append(attrs, types.Named{Name: "scale", Value: types.Float{V: scale}})
	}
	if b.causal != nil {
		attrs = append(attrs, types.Named{Name: "causal", Value: types.Bool(true)})
	}
	if first := b.product.Attr(op.PrecisionAttr); first != nil && op.TF32(b.product) == op.TF32(b.second) {
		attrs = append(attrs, types.Named{Name: op.PrecisionAttr, Value: first}) // else in f32
	}
	if b.dropout != nil {
		for _, a := range []struct{ to, from string }{{"dropout", "rate"}, {"seed", "seed"}} {
			attrs = append(attrs, types.Named{Name: a.to, Value: op.Attr(b.dropout, a.from)})
		}
	}
	if b.dropout != nil {
		if step := op.StepOf(b.dropout); step != nil {
			operands = append(operands, step)
		}
	}
	if slices.Contains(operands, nil) {
		return b.no("dm.attention does not take such operands")
	}
	y := b.Value("attention", operands, attrs)
	if b.Err() != nil {
		return b.no("dm.attention does not take such operands")
	}
	b.main = y.Op
	if y = b.arrange(y, b.queries(b.value), b.y); y == nil || b.Err() != nil || y.Tensor().Elem != b.elem || !shaped(y, b.root.Results[0]) {
		return b.no("the result would have another type")
	}
	b.result = y
	return true
}

func (b *builder) nought() *ir.Value {
	if b.zero == nil {
		b.zero = b.Splat(&types.Tensor{Elem: b.elem}, 0)
	}
	return b.zero
}

func (b *builder) sizes(x axes) []dim.Dim {
	shape := make([]dim.Dim, len(x))
	for i, list := range x {
		shape[i] = b.size(list)
	}
	return shape
}

// arrange gives v, with the axes x, the axes want, which have the same atoms.
func (b *builder) arrange(v *ir.Value, x, want axes) *ir.Value {
	if v == nil || b.same(x, want) {
		return v
	}
	from, to := b.flat(x), b.flat(want)
	if len(from) != len(to) {
		return nil
	}
	if slices.Equal(from, to) {
		return b.Reshape(v, b.sizes(want)...)
	}
	perm := make([]int, len(to))
	for i, a := range to {
		if perm[i] = slices.Index(from, a); perm[i] < 0 {
			return nil
		}
	}
	v = b.Transpose(b.Reshape(v, b.sizes(each(from))...), perm...)
	return b.Reshape(v, b.sizes(want)...)
}

// mask is the sum of all masks in the attention's order, nil where there is none. A mask that puts a finite
// number in the place of scores makes queries that see no key take the mean of all values, where minus infinity
// would give NaN; so these are not masked at all, and has, which is then the queries that see a key, tells which
// are to be zero, so that all their scores are the same.
func (b *builder) mask() (mask, has *ir.Value, ok bool) {
	finite := 0.0  // the number in the place of scores; 0 for none
	added := false // behind
	for _, m := range b.masks {
		if !m.chooses() || math.IsInf(m.put, -1) {
			added = added || !m.chooses()
			continue
		}
		if added || finite != 0 && finite != m.put || !b.beside(m.put, b.masks...) {
			return nil, nil, b.no("the mask is the number %g beside another mask", m.put)
		}
		finite = m.put
	}
	switch {
	case b.causal != nil && b.causal.finite() && !b.beside(b.causal.put, b.masks...):
		return nil, nil, b.no("the causal mask is a finite number beside another mask")
	case b.causal != nil && (finite != 0 || b.causal.finite() && slices.ContainsFunc(b.masks, masked.chooses)):
		return nil, nil, b.no("the mask is a finite number beside the causal mask")
	}
	// seen is 0 where a query sees a key, else minus infinity; unseen is the mask of queries that see none.
	var seen, unseen *ir.Value
	var none *ir.Value
	for _, m := range slices.Backward(b.masks) {
		elem := b.elem
		if m.chooses() {
			elem = types.I1
		}
		narrow := b.narrowest(&m, elem)
		if narrow == nil {
			return nil, nil, b.no("the mask cannot be read behind the scores as %s", elem)
		}
		v := b.broadcasts(narrow)
		if v == nil {
			return nil, nil, b.no("the mask is not over whole dimensions of the scores")
		}
		if m.chooses() {
			if none == nil {
				b.nought()
				none = b.Splat(&types.Tensor{Elem: b.elem}, math.Inf(-1))
			}
			alike := seen == mask
			if mask = b.choice(m, v, mask, none); alike {
				seen = mask
			} else if finite != 0 {
				seen = b.choice(m, v, seen, none)
			}
			if finite != 0 && m.put != finite {
				unseen = b.choice(m, v, unseen, none)
			} else if unseen != nil {
				unseen = b.choice(m, v, unseen, b.nought())
			}
			continue
		}
		if m.behind != 1 {
			v = b.Value("mul", []*ir.Value{v, b.Splat(&types.Tensor{Elem: b.elem}, m.behind)}, nil)
		}
		if mask != nil {
			v = b.Value("add", []*ir.Value{mask, v}, nil)
		}
		mask = v
	}
	if finite == 0 {
		return mask, nil, true
	}
	last := seen.Tensor().Rank() - 1
	if last < 0 {
		return nil, nil, b.no("the mask is the same for all scores")
	}
	most := b.Value("reduce", []*ir.Value{seen}, []types.Named{{Name: "kind", Value: types.Keyword("max")}, {Name: "dims", Value: op.IntList(last)}, {Name: "keep_dims", Value: types.Bool(true)}})
	has = b.Value("compare", []*ir.Value{most, b.nought()}, []types.Named{{Name: "direction", Value: types.Keyword("ge")}})
	if unseen == nil {
		unseen = b.nought()
	}
	return b.Value("select", []*ir.Value{has, mask, unseen}, nil), has, true
}

// choice is shown, or 0, where the predicate v of m chooses scores, else hidden.
func (b *builder) choice(m masked, v, shown, hidden *ir.Value) *ir.Value {
	if shown == nil {
		shown = b.nought()
	}
	if !m.want {
		shown, hidden = hidden, shown
	}
	return b.Value("select", []*ir.Value{v, shown, hidden}, nil)
}

// broadcasts gives a mask a shape that broadcasts with the scores; nil where it
// covers a part of one of their dimensions.
func (b *builder) broadcasts(m *masked) *ir.Value {
	have := b.flat(m.x)
	want := b.matrix()
	n := 0
	for i, list := range want {
		in := 0
		for _, a := range b.leaves(list) {
			if slices.Contains(have, a) {
				in++
			}
		}
		if in == 0 {
			want[i] = nil
		} else if in < len(b.leaves(list)) {
			return nil
		}
		n += in
	}
	if n != len(have) {
		return nil
	}
	short := want
	for len(short) > 1 && len(b.leaves(short[0])) == 0 {
		short = short[1:]
	}
	if len(m.x) < len(short) {
		return b.arrange(m.v, m.x, short)
	}
	// What has the right order already may keep its leading dimensions of size 1.
	if t := m.v.Tensor(); len(m.x) <= len(want) && slices.EqualFunc(t.Shape, b.sizes(want[len(want)-len(m.x):]), dimEqual) && slices.Equal(have, b.flat(want)) {
		return m.v
	}
	return b.arrange(m.v, m.x, short)
}
