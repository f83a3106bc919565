package attention

import (
	"slices"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// Gradient is the result Old of a contraction of an attention's gradient, and what takes its place.
type Gradient struct {
	Old, New *ir.Value
}

// Softmax is what must hold for the values of a gradient to be those of an attention: DS, the cotangent of the product of queries
// and keys, Scores, is that of P, which is computed from them, for DP, the cotangent of P. The indices of each value are given by the dimensions of DS.
type Softmax struct {
	Scores, P, DP, DS   *ir.Value
	AtScores, AtP, AtDP []int // -1 for a dimension of size 1
	Key                 int   // the dimension of DS that is the keys
	Scale               float64
	Elem                types.Elem // values between have at least its precision
}

// FindTraining finds the attention whose second contraction is o together with its gradient, as a training step has them: the
// probabilities are used by both. What is between the contractions of the gradient may be written in any way, which proof judges.
func FindTraining(o *ir.Op, proof func(*Softmax) bool) *Attention {
	a, _ := find(o, proof)
	return a
}

// ordered is a value that has the elements of another one in an order of its own.
type ordered struct {
	v *ir.Value
	x axes
}

// mostUses bounds the values and uses that are looked at for the gradient of one tensor.
const mostUses = 64

// alike gives the values with v's elements, v having the axes x: what it is a transpose or a conversion of, and such of these.
func (f *finder) alike(v *ir.Value, x axes) []ordered {
	out := []ordered{{v, x}}
	for range maxSteps {
		w := out[0]
		if w.v.Op == nil || !orders(w.v.Op) {
			break
		}
		from, y, ok := f.back(w.v.Op, w.x)
		if !ok {
			break
		}
		out = slices.Insert(out, 0, ordered{from, y})
	}
	for i := 0; i < len(out) && len(out) < mostUses; i++ {
		for _, u := range out[i].v.Uses {
			o := u.Op
			if !orders(o) || slices.ContainsFunc(out, func(a ordered) bool { return a.v == o.Results[0] }) {
				continue
			}
			if y, ok := ahead(o, out[i].x); ok {
				out = append(out, ordered{o.Results[0], y})
			}
		}
	}
	return out
}

// orders reports whether o transposes or converts a tensor of floating point.
func orders(o *ir.Op) bool {
	return (o.Name == "dm.transpose" || o.Name == "dm.convert") && op.Valid(o) && plain(o.Results[0]) && o.In(0).Elem.IsFloat() && o.Out(0).Elem.IsFloat()
}

// ahead is the axes of the result of o, which orders, from those of its operand.
func ahead(o *ir.Op, x axes) (axes, bool) {
	if o.Name == "dm.convert" {
		return x, true
	}
	dims, ok := op.Dims(o, "dims", len(x))
	if !ok || len(dims) != len(x) {
		return nil, false
	}
	y := make(axes, len(x))
	for i, d := range dims {
		y[i] = x[d]
	}
	return y, true
}

// factor is a contraction in which a value takes part that has known axes.
type factor struct {
	o               *ir.Op
	other           *ir.Value
	otherX, resultX axes
}

// factors are the contractions of v, with the axes x, but for those of the forward pass. Their other indices are the lists of rest, each
// known by its size.
func (f *finder) factors(v *ir.Value, x axes, rest axes) (out []factor) {
	for _, a := range f.alike(v, x) {
		for _, u := range a.v.Uses {
			if len(out) == mostUses {
				return out
			}
			if o := u.Op; o != f.product && o != f.second && o.Parent == f.root.Parent {
				if c, ok := f.factor(o, u.Index, a.x, rest); ok {
					out = append(out, c)
				}
			}
		}
	}
	return out
}

func (f *finder) factor(o *ir.Op, side int, x, rest axes) (c factor, ok bool) {
	p, ok := f.contraction(o, nil)
	if !ok {
		return c, false
	}
	of := map[*atom][]*atom{}
	for d, list := range p.operands[side] {
		if len(list) == 1 {
			of[list[0]] = x[d]
		}
	}
	for _, list := range p.operands[1-side] {
		if len(list) != 1 || of[list[0]] != nil || !f.units && list[0].unit() {
			continue
		}
		for _, r := range rest {
			if !f.size(r).Equal(list[0].size) {
				continue
			}
			if of[list[0]] != nil {
				return c, false // two have this size
			}
			of[list[0]] = r
		}
		if of[list[0]] == nil {
			return c, false
		}
	}
	place := func(y axes) axes {
		z := make(axes, len(y))
		for i, list := range y {
			if len(list) == 1 {
				z[i] = of[list[0]]
			}
		}
		return z
	}
	return factor{o, o.Operands[1-side], place(p.operands[1-side]), place(p.result)}, true
}

// without are the dimensions of x with indices that y lacks.
func (f *finder) without(x, y axes) (out axes) {
	have := f.flat(y)
	for _, list := range f.all(x) {
		if len(list) > 0 && !slices.ContainsFunc(list, func(a *atom) bool { return slices.Contains(have, a) }) {
			out = append(out, list)
		}
	}
	return out
}

// covers reports whether x and y have the same indices, in any order.
func (f *finder) covers(x, y axes) bool {
	a, b := f.flat(x), f.flat(y)
	return len(a) == len(b) && !slices.ContainsFunc(a, func(i *atom) bool { return !slices.Contains(b, i) })
}

// training looks for the gradient of the attention that b has built, whose product is that of q and k.
func (f *finder) training(b *builder, q *ir.Value, qx axes, k *ir.Value, kx axes) bool {
	f.phase = needed
	if f.dropout != nil || len(b.layout.keys) != 1 {
		return f.no("there is dropout before the gradient")
	}
	v, vx := f.second.Operands[1-f.side], f.v
	p, px := f.second.Operands[f.side], f.p
	rows, depth := f.without(qx, kx), f.without(vx, px)
	var dp factor
	found := false
	for _, c := range f.factors(v, vx, rows) {
		if f.covers(c.resultX, px) && f.covers(c.otherX, f.y) {
			dp, found = c, true
			break
		}
	}
	if !found {
		return f.no("the cotangent of the probabilities is not there")
	}
	dy := f.alike(dp.other, dp.otherX)
	proven := func(c factor) bool {
		return f.covers(c.otherX, px) && f.proof(&Softmax{
			Scores: f.product.Results[0], P: p, DP: dp.o.Results[0], DS: c.other,
			AtScores: f.numbered(f.scored, c.otherX), AtP: f.numbered(px, c.otherX), AtDP: f.numbered(dp.resultX, c.otherX),
			Key: slices.IndexFunc(c.otherX, func(list []*atom) bool { return slices.Contains(f.leaves(list), b.layout.keys[0]) }), Elem: f.elem,
		})
	}
	var dq, dk, dv *factor
	for _, c := range f.factors(k, kx, rows) {
		if dq == nil && f.covers(c.resultX, qx) && proven(c) {
			dq = &c
		}
	}
	for _, c := range f.factors(q, qx, f.without(kx, qx)) {
		if dk == nil && f.covers(c.resultX, kx) && proven(c) {
			dk = &c
		}
	}
	for _, c := range f.factors(p, px, depth) {
		if dv == nil && f.covers(c.resultX, vx) && slices.ContainsFunc(dy, func(a ordered) bool { return a.v == c.other && f.same(a.x, c.otherX) }) {
			dv = &c
		}
	}
	if dq == nil || dk == nil || dv == nil {
		return f.no("what follows the scores is not the gradient of the attention")
	}
	return f.differentiated(b, dp, [3]*factor{dq, dk, dv})
}

// numbered are the dimensions of y that the dimensions of x are, -1 for one of size 1.
func (f *finder) numbered(x, y axes) []int {
	out := make([]int, len(x))
	for i, list := range f.all(x) {
		out[i] = -1
		if n, known := f.size(list).Int(); !known || n != 1 {
			out[i] = slices.IndexFunc(f.all(y), func(other []*atom) bool { return slices.Equal(list, other) })
		}
	}
	return out
}

// differentiated adds the gradient to what b has built.
func (f *finder) differentiated(b *builder, dp factor, of [3]*factor) bool {
	split := len(b.Block.Ops)
	main := b.main
	rows := main.Out(0).With(main.In(0).Shape[:main.In(0).Rank()-1]...)
	rows.Elem = types.F32
	if f.elem == types.F64 {
		rows.Elem = types.F64
	}
	main.Results = append(main.Results, &ir.Value{Type: rows, Op: main, Index: 1})
	dy := b.arrange(b.Convert(dp.other, f.elem), dp.otherX, b.queries(b.value))
	if dy == nil {
		return f.no("the cotangent of the result is in another order")
	}
	operands := slices.Concat(main.Operands[:3], []*ir.Value{main.Results[0], main.Results[1], dy}, main.Operands[3:])
	g := b.Make("attention_grad", operands, main.Attrs)
	if g == nil {
		return f.no("dm.attention_grad does not take such operands")
	}
	a := &Attention{Root: f.root, Result: b.result, Main: main, First: f.product, Split: split}
	var more []*ir.Op
	for i, c := range of {
		want := [][]*atom{b.depth, b.depth, b.value}[i]
		from := b.shared(want)
		v := g.Results[i]
		if i == 0 {
			from = b.queries(want)
			if b.has != nil {
				v = b.Value("select", []*ir.Value{b.has, v, b.nought()}, nil)
			}
		}
		old := c.o.Results[0]
		if v = b.arrange(v, from, c.resultX); v == nil || !shaped(v, old) {
			return f.no("the result would have another type")
		}
		v = b.Convert(v, old.Tensor().Elem)
		a.Gradients = append(a.Gradients, Gradient{old, v})
		more = append(more, c.o)
	}
	if b.Err() != nil {
		return f.no("the gradient cannot be built")
	}
	a.New = b.Block.Ops
	a.Gone = f.gone(a.New, more)
	for _, o := range append(more, f.product, dp.o) {
		if !slices.Contains(a.Gone, o) {
			return f.no("the scores or the probabilities are used elsewhere")
		}
	}
	f.found = a
	return true
}
