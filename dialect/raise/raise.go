// Package raise finds composite ops that a program writes out in primitive ones:
// softmax, normalizations, gelu, attention and others, as the exporters of frameworks
// print them. A composite is a guess, made from a few ops near its last one, which the
// registry's own expansion then proves: expansion and program must have the same term,
// a normal form in which spellings do not differ. So a guess may be wrong, and what an
// op means is written in the registry alone.
//
// The replacement computes the same but for rounding: terms are equal as formulas of
// real numbers with the same infinities, and half precision is rounded once, as the
// composites define it, instead of after each op. Nothing is computed twice: where an
// op of the group is used elsewhere too, the group stays. Work is bounded for each op.
// One infinity differs: a cross entropy written as the logarithm of the sum of
// exponentials less the logit is infinite for a row with a logit of +∞, which becomes NaN.
package raise

import (
	"math"
	"slices"
	"strings"

	"dmir/dialect/attention"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
	"dmir/dialect/verify"
)

// Module raises what it finds in the functions of m and returns how often, by the
// names of the composites. Private functions that a few ops remain of, as a printer's
// helpers, are inlined, so that what calls them is found too.
//
// A program that compares its own results with expected numbers (check.expect_…)
// stays: the numbers may have been taken from these very ops, to the last bit.
func Module(m *ir.Module) map[string]int {
	found := map[string]int{}
	checked := false
	ir.Walk(m.Ops, func(o *ir.Op) bool {
		checked = checked || strings.HasPrefix(o.Name, "check.")
		return !checked
	})
	if checked {
		return found
	}
	in := func(f *ir.Func) {
		if Indices(f.Body) {
			op.RemoveDead(f.Body)
		}
		block(f.Body, found)
	}
	for _, f := range m.Funcs {
		if f.Body != nil {
			in(f)
		}
	}
	for f := range inlineHelpers(m) {
		in(f)
	}
	for _, f := range m.Funcs {
		if f.Body != nil {
			scans(f.Body, found)
		}
	}
	for _, f := range m.Funcs {
		if f.Body != nil {
			ropes(f.Body, found)
			attentions(f.Body, found)
			causals(f.Body, found)
			if len(found) > 0 {
				op.RemoveDead(f.Body) // numbers, and masks of an attention
			}
		}
	}
	return found
}

// block raises from the back, so that an op is part of the largest composite.
func block(b *ir.Block, found map[string]int) {
	for i := len(b.Ops) - 1; i >= 0; i-- {
		o := b.Ops[i]
		for _, r := range o.Regions {
			if o.Name == op.Kernel {
				break // a kernel is written op by op
			}
			for _, inner := range r.Blocks {
				block(inner, found)
			}
		}
		before := len(b.Ops)
		if name := root(o, found); name != "" {
			found[name]++
			i += len(b.Ops) - before // where the composite stands
		}
	}
}

// root replaces the group of ops that ends in o by a composite, whose name it
// returns; "" where there is none.
func root(o *ir.Op, found map[string]int) string {
	if len(o.Results) != 1 || len(o.Results[0].Uses) == 0 || !strings.HasPrefix(o.Name, op.Prefix) || !roots[o.Name] || !plain(o.Results[0]) || !op.Valid(o) || !o.Results[0].Elem().IsFloat() {
		return ""
	}
	if g := renamed(o); g != nil {
		g.replace(o, []*ir.Op{o}, found)
		return g.name
	}
	for _, g := range guesses(o) {
		if dead := g.holds(o); dead != nil {
			g.replace(o, dead, found)
			return g.name
		}
	}
	return ""
}

// renamed is the op that o is another name of.
func renamed(o *ir.Op) *guess {
	result := o.Results[0].Type
	switch o.Name {
	case "dm.max":
		for i, x := range o.Operands {
			if n, is := numberOf(o.Operands[1-i]); is && n == 0 && types.Equal(x.Type, result) {
				return &guess{name: "relu", operands: []*ir.Value{x}}
			}
		}
	case "dm.gather": // rows of a table
		table := o.In(0)
		if d, ok := op.Dim(o, "dim", table.Rank()); ok && d == 0 && table.Rank() == 2 && op.Int(o, "batch_dims") == 0 && o.In(1).Rank() > 0 {
			g := &guess{name: "embedding", operands: o.Operands}
			b := op.NewBuilder(&ir.Builder{Block: &ir.Block{}, At: o, Loose: true}, verify.Op)
			if c := g.build(b); c != nil && types.Equal(c.Results[0].Type, result) {
				return g
			}
		}
	}
	return nil
}

// maxComputed is how many ops a composite may be written in.
const maxComputed = 80

// holds reports, for a guess that is right, the ops that are no longer needed, o
// first; nil otherwise.
func (g *guess) holds(o *ir.Op) []*ir.Op {
	result := o.Results[0]
	from := leavesOf(slices.Concat(g.operands, g.also))
	if slices.Contains(from, base(result)) || !closed(o, from, maxComputed) { // most guesses, before anything is built
		return nil
	}
	b := op.NewBuilder(&ir.Builder{Block: &ir.Block{}, At: o, Loose: true}, verify.Op)
	c := g.build(b)
	if c == nil || !types.Equal(g.end(b, c.Results[0]).Type, result.Type) || b.Err() != nil {
		return nil
	}
	expand := op.Of(c).Expand
	if expand == nil {
		return nil
	}
	vs := expand(&ir.Builder{Block: b.Block, Index: len(b.Block.Ops), At: o, Loose: true}, c)
	if len(vs) == 0 {
		return nil
	}
	b.Index = len(b.Block.Ops)
	vs[0] = g.end(b, vs[0])
	if !closed(o, from, 2*len(b.Block.Ops)+8) {
		return nil
	}
	r := newReader(result.Elem(), from)
	at := whole(result.Tensor())
	r.finite = g.finite
	is := r.term(result, at)
	if r.narrow && g.wide {
		return nil
	}
	ops := r.seen
	r.seen, r.visits, r.narrow = map[*ir.Op]bool{}, 0, false
	if want := r.term(vs[0], at); is == nil || want == nil || !alike(is, want, slack(result.Elem())) {
		return nil
	}
	for v := g.operands[0]; v != base(v); v = v.Op.Operands[0] {
		delete(ops, v.Op) // the composite reads it
	}
	return unneeded(o, ops)
}

// slack is how far numbers of that type may be apart that were the same before they,
// and numbers that they are computed from, were rounded.
func slack(e types.Elem) float64 {
	switch e {
	case types.BF16:
		return 1.0 / 64
	case types.F16:
		return 1.0 / 512
	}
	return 1.0 / (1 << 21)
}

// unneeded are the ops that nothing needs without o; nil where one of those that
// compute is used elsewhere.
func unneeded(o *ir.Op, ops map[*ir.Op]bool) []*ir.Op {
	dead := map[*ir.Op]bool{o: true}
	out := []*ir.Op{o}
	for changed := true; changed; {
		changed = false
		for p := range ops {
			if dead[p] || p.Parent == nil || p.Parent != o.Parent {
				continue
			}
			needed := false
			for _, u := range p.Results[0].Uses {
				needed = needed || !dead[u.Op]
			}
			if !needed {
				dead[p], changed = true, true
				out = append(out, p)
			}
		}
	}
	for p := range ops {
		if p.Parent != nil && p.Parent.Region != nil && !dead[p] && op.Of(p).Class != op.ClassMovement && p.Name != "dm.convert" {
			return nil
		}
	}
	return out
}

// replace makes the composite stand for o.
func (g *guess) replace(o *ir.Op, dead []*ir.Op, found map[string]int) {
	b := op.NewBuilder(&ir.Builder{Block: o.Parent, Index: o.Position(), At: o}, nil)
	g.implied = nil
	first := b.Index
	v := g.end(b, g.build(b).Results[0])
	v.Name = o.Results[0].Name
	ir.ReplaceUses(o.Results[0], v)
	for _, n := range o.Parent.Ops[first:b.Index] {
		n.Loc = op.FusedLoc(o.Loc, dead)
	}
	for _, p := range dead {
		forget(p, found)
		ir.Erase(p)
	}
}

// withoutScale are the attributes of o without a scale that is the default, rounded in
// the program.
func withoutScale(o *ir.Op) []types.Named {
	scale, is := o.Attr("scale").(types.Float)
	if o.Name != "dm.attention" || !is || o.Out(0).Elem == types.F64 {
		return o.Attrs
	}
	q := o.In(0)
	n, known := q.Shape[q.Rank()-1].Int()
	usual := 1 / math.Sqrt(float64(n))
	if !known || types.Round(usual, q.Elem) != scale.V && !(math.Abs(scale.V-usual) <= slack(types.F32)*usual) {
		return o.Attrs
	}
	return slices.DeleteFunc(slices.Clone(o.Attrs), func(a types.Named) bool { return a.Name == "scale" })
}

// forget takes o, which became a part of another composite, out of what was found.
func forget(o *ir.Op, found map[string]int) {
	name := strings.TrimPrefix(o.Name, op.Prefix)
	if found[name]--; found[name] <= 0 {
		delete(found, name)
	}
}

// causals states the masks of attentions in b that hide later keys and nothing else.
func causals(b *ir.Block, found map[string]int) {
	var masked []*ir.Op
	ir.Walk(b.Ops, func(o *ir.Op) bool {
		if o.Name == "dm.attention" && op.OperandNumber(o, "mask") >= 0 {
			masked = append(masked, o)
		}
		return o.Name != op.Kernel
	})
	for _, o := range masked {
		operands, attrs, ok := attention.Causal(o)
		if !ok {
			continue
		}
		at := &ir.Builder{Block: o.Parent, Index: o.Position(), At: o}
		now := at.Op(o.Name, operands, attrs, ir.Types(o.Results)...)
		for i, v := range o.Results {
			now.Results[i].Name = v.Name
			ir.ReplaceUses(v, now.Results[i])
		}
		ir.Erase(o)
		found["causal mask"]++
	}
}

// attentions replaces the attentions of b whose masks, if any, are added or causal. Those
// with other masks the compiler finds.
func attentions(b *ir.Block, found map[string]int) {
	var seconds []*ir.Op
	ir.Walk(b.Ops, func(o *ir.Op) bool {
		if o.Name == "dm.einsum" || o.Name == "dm.matmul" {
			seconds = append(seconds, o)
		}
		return o.Name != op.Kernel
	})
	for _, o := range seconds {
		if o.Parent == nil {
			continue
		}
		a, _ := attention.FindAttention(o)
		if a == nil || slices.ContainsFunc(a.New, func(n *ir.Op) bool { return n.Name == "dm.select" }) {
			continue // a mask that is chosen hides scores that are NaN, one that is added does not
		}
		for _, n := range a.New {
			n.Attrs = withoutScale(n)
		}
		if a.Put() != nil {
			continue
		}
		for _, p := range a.Gone {
			forget(p, found)
			ir.EraseAll(p)
		}
		found["attention"]++
	}
}
