package graph

import (
	"slices"
	"strings"

	"dmir/analysis/attribution"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/syntax/source"
)

// rules are the ops of a forward pass by their places in the text, which the ops that compute their derivatives have too.
type rules map[source.Span]*ir.Op

// passes are the forward and the backward pass of what a gradient runs, nil for the ops of another function. The backward pass
// begins with the first op that differentiation has made; what it computes again of the forward pass belongs to it.
func passes(ops []*ir.Op) []*section {
	first := slices.IndexFunc(ops, func(o *ir.Op) bool { return o.Loc != nil && attribution.Backwards(o.Loc) })
	if first <= 0 {
		return nil
	}
	return []*section{{kind: Phase, name: forward, ops: ops[:first]}, {kind: Phase, name: backward, ops: ops[first:], rules: rulesOf(ops[:first])}}
}

// rulesOf are those of ops. Of several that were made of one op of the text, as a product and the sum over devices behind it, it is the
// first that computes something.
func rulesOf(ops []*ir.Op) rules {
	of := rules{}
	for _, o := range ops {
		if known := of[o.Head]; o.Head.Len() > 0 && (known == nil || moves(known) && !moves(o)) {
			of[o.Head] = o
		}
	}
	return of
}

func moves(o *ir.Op) bool {
	d := op.Of(o)
	return d == nil || d.Class == op.ClassMovement
}

// divide is the parts of s, of a backward pass: where no module and no layer divides them further, ops that compute
// the derivative of one op are one part.
func (r rules) divide(s *section) []*section {
	if s.parts == nil {
		return r.runs(s.ops)
	}
	var parts []*section
	for _, p := range s.parts {
		inner := r.divide(p)
		switch {
		case p.kind != "":
			p.parts = inner
			parts = append(parts, p)
		case inner != nil:
			parts = append(parts, inner...)
		default:
			parts = append(parts, p)
		}
	}
	return parts
}

// runs divides ops into those that stand one after another and compute the derivative of one op; nil where there are no such.
func (r rules) runs(ops []*ir.Op) []*section {
	var out []*section
	from, found := 0, false
	for i := 0; i < len(ops); {
		end := i + 1
		for end < len(ops) && ops[end].Head == ops[i].Head {
			end++
		}
		of := r[ops[i].Head]
		if of == nil || end == i+1 {
			i = end
			continue
		}
		if from < i {
			out = append(out, &section{ops: ops[from:i]})
		}
		rule := &section{kind: Rule, name: "∂ " + strings.TrimPrefix(of.Name, op.Prefix), ops: ops[i:end]}
		if len(of.Results) > 0 {
			rule.value = of.Results[0]
		}
		out = append(out, rule)
		i, from, found = end, end, true
	}
	if !found {
		return nil
	}
	if from < len(ops) {
		out = append(out, &section{ops: ops[from:]})
	}
	return out
}
