package graph

import (
	"fmt"
	"slices"
	"strings"

	"dmir/analysis/attribution"
	"dmir/dialect/ir"
	"dmir/dialect/loc"
)

// leastStack is how many equal modules, one after another, are drawn as a stack.
const leastStack = 4

// placed is an op and where it was traced.
type placed struct {
	op *ir.Op
	scope
}

// scope is where an op was traced: the names of the modules around it, and whether differentiation has made it.
type scope struct {
	path     []string
	backward bool
}

// scopes divides ops by the modules and named scopes that they were traced from; what no module divides further, into stacks of
// equal layers. It is nil where there are neither.
//
// A module is divided where ops of others stand between its own: each of its sections is a run of the text, so that edges
// between sections do not form a circle.
func scopes(ops []*ir.Op) []*section {
	all := make([]placed, len(ops))
	known := map[loc.Loc]scope{}
	for i, o := range ops {
		at, seen := known[o.Loc]
		if !seen {
			at = scope{attribution.ModuleOf(o.Loc), attribution.Backwards(o.Loc)}
			known[o.Loc] = at
		}
		if o.Loc == nil && i > 0 {
			at = all[i-1].scope // what a pass has added belongs to what stands before it
		}
		all[i] = placed{o, at}
	}
	return byModule(all, 0)
}

// byModule divides ops of one module, whose path has depth names, by the modules in it.
func byModule(ops []placed, depth int) []*section {
	var out []*section
	from, found := 0, false // what is in no section yet
	for i := 0; i < len(ops); {
		end := i + 1
		for end < len(ops) && same(ops[i].path, ops[end].path, depth) {
			end++
		}
		if len(ops[i].path) <= depth || end == i+1 {
			i = end
			continue
		}
		if from < i {
			out = append(out, between(ops[from:i]))
		}
		out = append(out, moduleOf(ops[i:end], depth))
		i, from, found = end, end, true
	}
	if !found {
		return layers(opsOf(ops))
	}
	if from < len(ops) {
		out = append(out, between(ops[from:]))
	}
	return stacked(out)
}

// moduleOf is the section of a run of ops of one module, the innermost that holds them all.
func moduleOf(ops []placed, depth int) *section {
	for deeper := true; deeper; {
		depth++
		deeper = len(ops[0].path) > depth && !slices.ContainsFunc(ops, func(p placed) bool { return !same(ops[0].path, p.path, depth) })
	}
	name := strings.Join(ops[0].path[:depth], ".")
	if !slices.ContainsFunc(ops, func(p placed) bool { return !p.backward }) {
		name += ", backward"
	}
	return &section{kind: Scope, name: name, ops: opsOf(ops), parts: byModule(ops, depth)}
}

// same reports whether two paths have one name at a depth; those above are equal.
func same(a, b []string, depth int) bool {
	return (len(a) > depth) == (len(b) > depth) && (len(a) <= depth || a[depth] == b[depth])
}

func between(ops []placed) *section { return &section{ops: opsOf(ops)} }

func opsOf(all []placed) []*ir.Op {
	ops := make([]*ir.Op, len(all))
	for i, p := range all {
		ops[i] = p.op
	}
	return ops
}

// stacked joins modules that follow each other and have equal ops.
func stacked(all []*section) []*section {
	shape := make([]string, len(all))
	for i, s := range all {
		if s.kind != Scope {
			continue
		}
		var b strings.Builder
		for _, o := range s.ops {
			fmt.Fprintf(&b, "%x ", shapeOf(o))
		}
		shape[i] = b.String()
	}
	var out []*section
	for i := 0; i < len(all); {
		end := i + 1
		for end < len(all) && shape[i] != "" && shape[end] == shape[i] {
			end++
		}
		if end-i < leastStack {
			out = append(out, all[i])
			i++
			continue
		}
		stack := &section{kind: Stack, name: fmt.Sprintf("%d equal layers", end-i), parts: all[i:end]}
		for _, s := range stack.parts {
			stack.ops = append(stack.ops, s.ops...)
		}
		out = append(out, stack)
		i = end
	}
	return out
}
