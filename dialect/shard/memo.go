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
	ops, next       map[*ir.Op]*known
	values, renewed map[*ir.Value]*value
}

// known is the factors of an op whose operands and results have the given types.
type known struct {
	*op.Factors
	pieces []op.Pieces
	early  bool // all of them are parallel
	types  []types.Type
	rule   *rule    // of them; nil until it is made
	values []*value // of operands and results, which rule is among
}

// Propagate is like the function of this name. What it gave before is of no use any more.
func (k *Memo) Propagate(m *ir.Module, f *ir.Func) (*Values, *Problem) {
	k.next, k.renewed = make(map[*ir.Op]*known, len(k.ops)), make(map[*ir.Value]*value, len(k.values))
	v, problem := propagate(m, f, k)
	k.ops, k.next = k.next, nil
	k.values, k.renewed = k.renewed, nil
	if v != nil {
		v.memo = nil
	}
	return v, problem
}

// value is what is known of x, a tensor of type t, without a layout.
func (k *Memo) value(x *ir.Value, t *types.Tensor) *value {
	v := &value{}
	if k != nil {
		if old := k.values[x]; old != nil && old.of == t {
			v = old
		}
		k.renewed[x] = v
	}
	if v.of == nil {
		*v = value{self: x, of: t, layout: Whole(t.Rank()), shape: t.Shape, closed: make([]bool, t.Rank())}
		if n, ok := t.Bytes().Int(); ok {
			v.bytes = n
		}
		return v
	}
	clear(v.layout.Dims)
	clear(v.closed)
	v.layout.Partial, v.layout.Reduce = nil, types.Add
	v.stated, v.from, v.by = false, nil, nil
	v.rules = v.rules[:0]
	return v
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

// keep remembers the rule of o among values.
func (f *known) keep(of map[*ir.Value]*value, o *ir.Op, r *rule) {
	if f.types == nil {
		return // there is no memo
	}
	f.rule, f.values = r, f.values[:0]
	for _, v := range o.Operands {
		f.values = append(f.values, of[v])
	}
	for _, v := range o.Results {
		f.values = append(f.values, of[v])
	}
}

// among reports whether f's rule is among what is known of o's operands and results.
func (f *known) among(of map[*ir.Value]*value, o *ir.Op) bool {
	for i, v := range o.Operands {
		if of[v] != f.values[i] {
			return false
		}
	}
	for i, v := range o.Results {
		if of[v] != f.values[len(o.Operands)+i] {
			return false
		}
	}
	return true
}
