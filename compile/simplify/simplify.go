// Package simplify rewrites a function into one that computes the same with
// less: dead code, common subexpressions, constants, algebra, movement that
// cancels, transposes expressed in contractions, contractions that share an operand.
// Each rewrite is a small function in one table (Rules); they are applied until
// none does anything.
//
// What stays the same. Arithmetic keeps the semantics of IEEE 754 as the
// dialect defines it: a rewrite of element-wise ops gives the same value for
// every operand, NaN, the infinities and the sign of zero included (the payload
// and sign of a NaN are not values). So x - x stays, because it is NaN for an
// infinite x, and so does x + 0, because it turns -0 into +0; x + (-0) and
// x · 1 go. An op, or a function, with the attribute dm.relaxed waives this for
// the sign of zero and for operands that are not finite. One rewrite alone
// changes a zero's sign without being asked: where tensors are padded with zeros
// only to be added up side by side, the zeros are no terms of a sum, and -0
// stays what it is (pads-to-concatenate). Contractions and sums
// may be summed in another order, as every back end does anyway; partial sums
// keep the type in which they are accumulated.
package simplify

import (
	"context"
	"slices"

	"dmir/compile/pass"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/pattern"
	"dmir/dialect/types"
)

// RelaxedAttr waives the exactness of zeros' signs and of operands that are not
// finite, on an op or for a whole function.
const RelaxedAttr = op.RelaxedAttr

// Pass is the pass of all rules.
func Pass() pass.Pass {
	return pass.Pass{
		Name: "simplify", Summary: "dead code, common subexpressions, constants, algebra, transposes into contractions, contractions that share an operand merged",
		Run: func(u *pass.Unit) error { return Run(u, Rules()) },
	}
}

// Rule is one kind of rewrite.
type Rule struct {
	Name string
	Doc  string   // what becomes what, and why it is the same
	Ops  []string // without "dm.", of the ops it looks at; nil: all
	// apply rewrites o, or what depends on it, and reports whether it did. New ops
	// stand before o; o may be gone afterwards.
	apply func(r *rewriter, o *ir.Op) bool
	// block, in place of apply, works on the function's body as a whole.
	block func(r *rewriter, b *ir.Block) bool
}

// rewriter is what rules work with.
type rewriter struct {
	*pass.Unit
	relaxed bool           // the whole function is
	places  map[*ir.Op]int // where ops stand in the block last asked about; nil after a change
	placed  *ir.Block
	ended   error // the context's
}

// place is where o stands in its block. Asking many times between two changes
// costs one walk.
func (r *rewriter) place(o *ir.Op) int {
	if r.places == nil || r.placed != o.Parent {
		r.places, r.placed = make(map[*ir.Op]int, len(o.Parent.Ops)), o.Parent
		for i, p := range o.Parent.Ops {
			r.places[p] = i
		}
	}
	return r.places[o]
}

// maxRounds bounds the rounds over a function: each makes it smaller or
// cheaper, so that reaching the bound is a rule that undoes another.
const maxRounds = 256

// Run applies rules until none does anything. Dead code is removed whatever
// the rules are.
func Run(u *pass.Unit, rules []Rule) error {
	r := &rewriter{Unit: u, relaxed: u.Func.Op.Attr(RelaxedAttr) != nil}
	byOp := map[string][]Rule{}
	for _, d := range op.All() {
		for _, rule := range rules {
			if rule.apply != nil && (rule.Ops == nil || contains(rule.Ops, d.Name)) {
				byOp[d.FullName()] = append(byOp[d.FullName()], rule)
			}
		}
	}
	for range maxRounds {
		if err := context.Cause(u.Context()); err != nil {
			return err
		}
		changed := op.RemoveDead(u.Func.Body)
		r.places = nil
		changed = r.block(u.Func.Body, byOp) || changed
		if r.ended != nil {
			return r.ended
		}
		for _, rule := range rules {
			if rule.block != nil {
				changed = rule.block(r, u.Func.Body) || changed
				r.places = nil
			}
		}
		if !changed {
			return nil
		}
	}
	return pass.Errorf(u.Func.Op, "DM820", "the rewrites of simplify do not terminate in @%s", u.Func.Name)
}

// block applies the rules to every op of b and of the regions in it. What they
// build is visited in the next round.
func (r *rewriter) block(b *ir.Block, byOp map[string][]Rule) bool {
	changed := false
	for i, o := range slices.Clone(b.Ops) {
		if i%64 == 0 && r.ended == nil {
			r.ended = context.Cause(r.Context())
		}
		if r.ended != nil {
			break
		}
		for _, region := range o.Regions {
			for _, inner := range region.Blocks {
				changed = r.block(inner, byOp) || changed
			}
		}
		for _, rule := range byOp[o.Name] {
			if o.Parent != b || !plain(o) { // gone, or in another place
				break
			}
			if rule.apply(r, o) {
				changed, r.places = true, nil
			}
		}
	}
	return changed
}

// plain reports whether all of o's tensors are row-major in the device's memory.
// What a person placed elsewhere or otherwise stays as it is, and so does what
// an op in another dialect's own form reads, which names its operands itself.
func plain(o *ir.Op) bool {
	for _, v := range o.Results {
		for _, u := range v.Uses {
			if u.Op.Verbatim {
				return false
			}
		}
	}
	for _, vs := range [][]*ir.Value{o.Operands, o.Results} {
		for _, v := range vs {
			if t := v.Tensor(); t != nil && (!t.At.Default() || t.Enc != "") {
				return false
			}
		}
	}
	return true
}

// lax reports whether o need not keep the sign of zero and non-finite operands.
func (r *rewriter) lax(o *ir.Op) bool { return r.relaxed || o.Attr(RelaxedAttr) != nil }

// use makes v stand for o's one result, if it has the same type.
func use(o *ir.Op, v *ir.Value) bool {
	if len(o.Results) != 1 || !types.Equal(o.Results[0].Type, v.Type) {
		return false
	}
	pass.Replace(o, v)
	return true
}

// gone makes o's operand stand for o where o gives it back unchanged.
func gone(o *ir.Op) bool {
	x := pattern.Unchanged(o)
	return x != nil && use(o, x)
}

// built makes v stand for o's one result where it could be built with the same
// type; otherwise what was built goes.
func built(b *op.Builder, o *ir.Op, v *ir.Value) bool {
	if b.Err() == nil && use(o, v) {
		return true
	}
	b.Undo()
	return false
}

// from is the op that v is the result of, if it is the one called dm.name and
// plain; else nil.
func from(v *ir.Value, name string) *ir.Op {
	if v.Op == nil || v.Op.Name != op.Prefix+name || !plain(v.Op) {
		return nil
	}
	return v.Op
}

// single reports whether o is all that uses v.
func single(v *ir.Value) bool { return len(v.Uses) == 1 }

// near reports whether o stands in the same block as v's definition, so that
// what the definition reads can be read at o too at the same price.
func near(o *ir.Op, v *ir.Value) bool { return v.Op != nil && v.Op.Parent == o.Parent }

func contains(list []string, s string) bool {
	for _, e := range list {
		if e == s {
			return true
		}
	}
	return false
}
