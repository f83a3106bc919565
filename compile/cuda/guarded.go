package cuda

import (
	"slices"

	"dmir/compile/kernel"
)

// guarded is a load and the conditions under which it is in bounds.
type guarded struct {
	x     *kernel.Expr
	conds []kernel.Condition
}

// loads are those that outs evaluate, each under the same conditions wherever it is read.
func loads(outs []kernel.Out) (all []guarded) {
	r := &reads{conds: map[*kernel.Expr][]kernel.Condition{}, unknown: map[*kernel.Expr]bool{}}
	for _, o := range outs {
		for _, x := range o.Exprs() {
			r.visit(x, nil, len(o.If) > 0)
		}
	}
	for _, x := range r.order {
		if x.Op == kernel.Load && !r.unknown[x] && !x.Elem.Packed() {
			all = append(all, guarded{x, r.conds[x]})
		}
	}
	return all
}

// reads are the conditions under which expressions are computed: none where they are
// computed without any as well, and unknown where they are computed under several.
type reads struct {
	conds   map[*kernel.Expr][]kernel.Condition
	unknown map[*kernel.Expr]bool
	order   []*kernel.Expr
}

// visit records that x is computed under conds, or under others that are unknown.
func (r *reads) visit(x *kernel.Expr, conds []kernel.Condition, unknown bool) {
	before, seen := r.conds[x]
	always := len(conds) == 0 && !unknown
	switch {
	case !seen:
		r.order = append(r.order, x)
		r.conds[x], r.unknown[x] = conds, unknown
	case always && (len(before) > 0 || r.unknown[x]):
		r.conds[x], r.unknown[x] = nil, false
	case always || r.unknown[x] || len(before) == 0 || !unknown && slices.EqualFunc(before, conds, equal):
		return
	default:
		r.unknown[x], unknown = true, true
	}
	data := func(a *kernel.Atom) {
		if a.Kind == kernel.Datum {
			r.visit(a.E, conds, unknown)
		}
	}
	x.At.Atoms(data)
	for _, c := range x.If {
		c.X.Atoms(data)
	}
	switch x.Op {
	case kernel.Reduce: // in loops of its own
	case kernel.Guard:
		r.visit(x.Args[0], slices.Concat(conds, x.If), unknown)
		not, ok := opposite(x.If, conds)
		r.visit(x.Args[1], slices.Concat(conds, not), unknown || !ok)
	default:
		for _, a := range x.Args {
			r.visit(a, conds, unknown)
		}
	}
}

func equal(a, b kernel.Condition) bool { return a.Lo == b.Lo && a.Hi == b.Hi && a.X.Equal(b.X) }

// opposite is the condition that holds where those of known do and one of conds does
// not; ok is false where there is no single one.
func opposite(conds, known []kernel.Condition) (not []kernel.Condition, ok bool) {
	if len(conds) != 1 {
		return nil, false
	}
	c := conds[0]
	lo, hi := c.X.Bounds()
	for _, k := range known {
		if k.X.Equal(c.X) {
			lo, hi = max(lo, k.Lo), min(hi, k.Hi-1)
		}
	}
	switch {
	case lo >= c.Lo:
		return []kernel.Condition{{X: c.X, Lo: c.Hi, Hi: hi + 1}}, true
	case hi < c.Hi:
		return []kernel.Condition{{X: c.X, Lo: lo, Hi: c.Lo}}, true
	}
	return nil, false
}
