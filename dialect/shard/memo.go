package shard

import (
	"slices"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// Memo is what propagation knows about the ops of a function, kept for the next version of
// it: an edit changes few of them. It is not safe for concurrent use.
type Memo struct {
	ops, next map[*ir.Op]*known
}

// known is the factors of an op whose operands and results have the given types.
type known struct {
	*op.Factors
	pieces []op.Pieces
	early  bool // all of them are parallel
	types  []types.Type
}

// Propagate is like the function of this name.
func (k *Memo) Propagate(m *ir.Module, f *ir.Func) (*Values, *Problem) {
	k.next = make(map[*ir.Op]*known, len(k.ops))
	v, problem := propagate(m, f, k)
	k.ops, k.next = k.next, nil
	if v != nil {
		v.memo = nil
	}
	return v, problem
}

// of are the factors of o.
func (k *Memo) of(o *ir.Op) *known {
	if k == nil {
		return factors(o)
	}
	f := k.ops[o]
	if f == nil || !f.fits(o) {
		f = factors(o)
		f.types = slices.Concat(ir.Types(o.Operands), ir.Types(o.Results))
	}
	k.next[o] = f
	return f
}

func factors(o *ir.Op) *known {
	f := &known{Factors: op.DivisionOf(o)}
	if f.Factors != nil {
		f.pieces, f.early = f.Pieces(), !slices.ContainsFunc(f.Kinds, func(k op.FactorKind) bool { return k == op.Reduced || k == op.Exchanged })
	}
	return f
}

// fits reports whether o still has the types that f is for.
func (f *known) fits(o *ir.Op) bool {
	if len(f.types) != len(o.Operands)+len(o.Results) {
		return false
	}
	for i, v := range o.Operands {
		if v.Type != f.types[i] {
			return false
		}
	}
	for i, v := range o.Results {
		if v.Type != f.types[len(o.Operands)+i] {
			return false
		}
	}
	return true
}
