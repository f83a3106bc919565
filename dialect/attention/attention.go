// Package attention finds what programs write out in many ops although the dialect
// has one op for it. What is found computes the same function; how sums are
// ordered, and how often half precision is rounded on the way, may differ, always
// towards what the one op defines.
//
// An attention is two contractions with a softmax between them. It is found in
// whatever order of dimensions it is written, with heads merged or apart, since
// every value on the way is described by the indices of its dimensions (axes).
// What dm.attention cannot express is no match, nor is anything whose matrix of
// scores or of probabilities has other uses.
package attention

import (
	"fmt"
	"slices"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
	"dmir/dialect/verify"
)

// Attention is an attention that is written out.
type Attention struct {
	// Root is the op whose one result the last of New gives.
	Root *ir.Op
	// New are the ops that replace the match, in their order. They are in no block and
	// not among the users of their operands, which are values of the program, seen
	// by Root, or results of each other.
	New []*ir.Op
	// Result takes the place of Root's result.
	Result *ir.Value
	// Main is the dm.attention among New.
	Main *ir.Op
	// First is the contraction that gives the scores.
	First *ir.Op
	// Gradients are the contractions that give the cotangents of queries, keys and values, and the results of New that take their place,
	// behind Split ops of New, which may stand at Root; the others stand at the first of Gradients. None without a gradient.
	Gradients []Gradient
	Split     int
	// Gone are Root and the ops that nothing needs behind New, in their order from
	// the back.
	Gone []*ir.Op
}

// Put makes the ops of New stand before Root, and their last result for that of Root.
func (a *Attention) Put() error {
	at := *a.Root
	at.Loc = op.FusedLoc(a.Root.Loc, a.Gone)
	b := op.NewBuilder(&ir.Builder{Block: a.Root.Parent, Index: a.Root.Position(), At: &at}, verify.Op)
	now := map[*ir.Value]*ir.Value{}
	var last *ir.Value
	for _, o := range a.New {
		operands := make([]*ir.Value, len(o.Operands))
		for i, v := range o.Operands {
			if operands[i] = now[v]; operands[i] == nil {
				operands[i] = v
			}
		}
		last = b.Value(o.Name, operands, o.Attrs, o.Results[0].Type)
		now[o.Results[0]] = last
	}
	if b.Err() != nil {
		b.Undo()
		return b.Err()
	}
	last.Name = a.Root.Results[0].Name
	ir.ReplaceUses(a.Root.Results[0], last)
	return nil
}

// MostDepth is the greatest depth of an attention that is found: no kernel keeps
// longer rows of queries, keys and values on chip.
const MostDepth = 256

// maxSteps bounds how far ops are followed, maxWork how many are visited where
// two ways part.
const (
	maxSteps = 64
	maxWork  = 1000
)

// tired counts such an op.
func (f *finder) tired() bool {
	f.work++
	return f.work > maxWork
}

// FindAttention finds the attention whose second contraction, the one with the
// values, is o. If something that looks like one does not match, reason is why; it is empty for everything else.
func FindAttention(o *ir.Op) (a *Attention, reason string) { return find(o, nil) }

// find is FindAttention, and FindTraining where proof is not nil.
func find(o *ir.Op, proof func(*Softmax) bool) (a *Attention, reason string) {
	if o.Name != "dm.einsum" && o.Name != "dm.matmul" || len(o.Operands) != 2 || len(o.Results) != 1 || o.Bad || !op.Valid(o) {
		return nil, ""
	}
	if !computes(o.Out(0).Elem) {
		return nil, ""
	}
	most := phase(-1)
	causal := false
	for _, try := range []struct{ indexed, units, repeated bool }{
		{true, true, true},
		{true, true, false},
		{true, false, true},
		{true, false, false},
		{false, true, true},
		{false, true, false},
		{false, false, true},
		{false, false, false},
	} {
		if !try.indexed && !causal {
			break
		}
		for i := range 2 {
			if !normalizes(o.Operands[i]) {
				continue
			}
			for _, divided := range roots(o) {
				for _, root := range narrowed(divided) {
					f := &finder{indexed: try.indexed, units: try.units, repeated: try.repeated, second: o, side: i, root: root, elem: root.Out(0).Elem, proof: proof}
					if divided != o {
						f.divided = divided
					}
					if f.find() {
						return f.found, ""
					}
					if f.met && f.failed > most {
						most, reason = f.failed, f.reason
					}
					if f.failed == needed {
						return nil, reason
					}
					causal = causal || f.metCausal
				}
			}
		}
	}
	return nil, reason
}

// phase is how far an attempt went.
type phase int

const (
	following phase = iota // back to the product of queries and keys
	arranged               // all three tensors are there
	indexed                // what their indices are is known
	needed                 // but the scores stay: no other attempt changes that
)

// finder is one attempt.
type finder struct {
	units    bool // dimensions of size 1 count as indices
	repeated bool // keys and values are followed through their repetition for several heads
	indexed  bool // a causal mask is one by the indices alone, no tensor

	root, second *ir.Op
	divided      *ir.Op // the op that divides second's result by the sums of exponentials, where probabilities are none yet
	side         int    // the operand of second that is the probabilities
	elem         types.Elem

	keys    []*atom // of the second contraction's sum
	p, v, y axes
	dropout *ir.Op
	drawn   axes   // of the value that dropout is of
	guarded bool   // probabilities that are NaN are 0
	rows    axes   // of the softmax
	product *ir.Op // the first contraction
	scored  axes   // of its result

	proof func(*Softmax) bool // of a gradient, where one is looked for

	work      int   // ops visited where two paths diverge
	metCausal bool  // a causal mask has been met
	met       bool  // a softmax has been met
	phase     phase // how far it went
	failed    phase // the one that reason is from
	reason    string
	found     *Attention
}

// no notes why there is no attention; what stands in the way of the attempt that
// went furthest counts.
func (f *finder) no(format string, args ...any) bool {
	if f.reason == "" || f.phase > f.failed {
		f.failed, f.reason = f.phase, fmt.Sprintf(format, args...)
	}
	return false
}

// wide reports whether v, on the way, has as many bits as the attention.
func (f *finder) wide(v *ir.Value) bool {
	if !plain(v) {
		return f.no("a value in between has an explicit placement")
	}
	if e := v.Tensor().Elem; !exact(f.elem, e) {
		return f.no("values in between are rounded to %s", e)
	}
	return true
}

// shaped reports whether v and w have the same shape.
func shaped(v, w *ir.Value) bool {
	t, u := v.Tensor(), w.Tensor()
	return t != nil && u != nil && slices.EqualFunc(t.Shape, u.Shape, dimEqual)
}

// visible reports whether v can be read at the root.
func (f *finder) visible(v *ir.Value) bool {
	at := v.Block
	if v.Op != nil {
		at = v.Op.Parent
	}
	for b := f.root.Parent; b != nil; b = b.Region.Op.Parent {
		if b == at {
			return true
		}
		if b.Region == nil || b.Region.Op == nil {
			break
		}
	}
	return false
}

func (f *finder) find() bool {
	c, ok := f.contraction(f.second, nil)
	if !ok {
		return false
	}
	p := c.operands[f.side]
	f.p, f.v, f.y = p, c.operands[1-f.side], c.result
	for _, a := range f.flat(f.v) {
		inP, inY := slices.Contains(f.flat(p), a), slices.Contains(f.flat(f.y), a)
		if inP && !inY {
			f.keys = append(f.keys, a)
		}
	}
	return f.probabilities(f.second.Operands[f.side], p)
}

// attention puts together what was found.
func (f *finder) attention(q *ir.Value, qx axes, k *ir.Value, kx axes, s state) bool {
	qs, ks := f.operands(q, qx, true, false), f.operands(k, kx, true, f.repeated)
	vs := f.operands(f.second.Operands[1-f.side], f.v, false, f.repeated)
	if len(qs) == 0 || len(ks) == 0 || len(vs) == 0 {
		return f.no("queries, keys and values are not all %s", f.elem)
	}
	f.phase = arranged
	l, ok := f.layout(qs[len(qs)-1].x, ks[len(ks)-1].x, vs[len(vs)-1].x, s.causal)
	if !ok {
		return false
	}
	f.phase = indexed
	if f.guarded && !f.sees(s) {
		return f.no("queries that see no key are 0")
	}
	if f.dropout != nil && !slices.Equal(f.flat(f.drawn), f.flat(l.matrix())) {
		return f.no("dropout draws its numbers in another order")
	}
	for _, list := range [][]*atom{l.depth, l.value} {
		if n, known := f.size(list).Int(); known && (n > MostDepth || n == 0) {
			return f.no("a depth of %d is more than a kernel of attention holds", n)
		}
	}
	at := &ir.Builder{Block: &ir.Block{Region: f.root.Parent.Region}, At: f.root, Loose: true}
	b := &builder{finder: f, layout: l, state: s, Builder: op.NewBuilder(at, verify.Op)}
	if !b.build(f.choose(qs, l.queries(l.depth)), f.choose(ks, l.shared(l.depth)), f.choose(vs, l.shared(l.value))) {
		return false
	}
	if f.proof != nil {
		return f.training(b, q, qx, k, kx)
	}
	gone := f.gone(b.Block.Ops, nil)
	if !slices.Contains(gone, holder(f.product, f.root.Parent)) {
		f.phase = needed
		return f.no("the scores or the probabilities are used elsewhere")
	}
	f.found = &Attention{Root: f.root, New: b.Block.Ops, Result: b.result, Main: b.main, First: f.product, Gone: gone}
	return true
}

// holder is the op of block b that is o or holds it.
func holder(o *ir.Op, b *ir.Block) *ir.Op {
	for o.Parent != b {
		if o.Parent == nil || o.Parent.Region == nil || o.Parent.Region.Op == nil {
			return nil
		}
		o = o.Parent.Region.Op
	}
	return o
}

// gone are the root, the ops of more, and those that are only there for them, in the order from the back; what the new ops read stays.
func (f *finder) gone(fresh []*ir.Op, more []*ir.Op) []*ir.Op {
	kept := map[*ir.Value]bool{}
	for _, o := range fresh {
		for _, v := range o.Operands {
			kept[v] = true
		}
	}
	block := f.root.Parent
	dead := map[*ir.Op]bool{f.root: true}
	for _, o := range more {
		dead[o] = true
	}
	within := func(o *ir.Op) bool {
		for {
			if dead[o] {
				return true
			}
			if o.Parent == nil || o.Parent.Region == nil || o.Parent.Region.Op == nil {
				return false
			}
			o = o.Parent.Region.Op
		}
	}
	var out []*ir.Op
	for i := len(block.Ops) - 1; i >= 0; i-- {
		o := block.Ops[i]
		unused := len(o.Results) > 0 && len(o.Results[0].Uses) > 0 && op.Of(o).Is(op.Pure)
		for _, v := range o.Results {
			unused = unused && !kept[v] && !slices.ContainsFunc(v.Uses, func(u ir.Use) bool { return !within(u.Op) })
		}
		if unused || dead[o] {
			dead[o] = true
			out = append(out, o)
		}
	}
	return out
}
