// Package graph makes the movement graph of a function: its ops with what they
// cost, and the values between them with the bytes that they move.
//
// The graph is nested as the text is, calls and gradients hold what they run, and within a function ops are grouped by the phases of a
// training step (sections.go), by the modules of a traced program (scopes.go), by equal layers, and in a backward pass by the op whose
// derivative they compute (derivative.go). An edge joins two nodes of the same group,
// or a group and a node right inside it: a value that enters a group is one edge
// to the group and, inside, edges from the group to the nodes that use it; one
// that leaves is an edge from the node to the group and edges from the group to
// its users. Every group can so be laid out for itself and drawn closed.
//
// What holds: every entry of the function's cost is a node; the moved bytes of
// the nodes outside any other node with costs add up to the function's; the bytes on the edges
// into an op or a kernel add up to what it reads. Building takes time in
// proportion to the ops and the group edges that values cross.
package graph

import (
	"dmir/analysis/cost"
	"dmir/analysis/program"
	"dmir/dialect/dim"
	"dmir/dialect/ir"
)

// Kind is what a node is.
type Kind string

// The kinds.
const (
	Argument Kind = "argument" // of the function
	Result   Kind = "result"   // of the function
	Op       Kind = "op"
	Call     Kind = "call"   // of another function, or a gradient: a group of what it runs, whose sum its costs are; see mostOpened
	Kernel   Kind = "kernel" // a group; its nodes compute and move nothing
	Loop     Kind = "loop"   // a group; its costs are those of its nodes, trips times
	Branch   Kind = "branch" // a group; its costs are those of the nodes that are not idle
	Opaque   Kind = "opaque" // not known to dmir; a group where it has regions

	// Groups that the text does not have; their costs are the sums of their nodes'.
	Phase Kind = "phase" // of a training step: forward, backward or update
	Stack Kind = "stack" // layers that are equal, one after another
	Layer Kind = "layer" // one of a stack
	Scope Kind = "scope" // a module, or a named scope, of the program that this one was traced from
	Rule  Kind = "rule"  // of a backward pass: what the derivative of one op computes
)

// mostOpened is how many ops inside calls a graph has at most: a call beyond is a node without an inside.
const mostOpened = 1 << 13

// Section reports whether k is a group that the text does not have.
func (k Kind) Section() bool {
	return k == Phase || k == Stack || k == Layer || k == Scope || k == Rule
}

// None is the parent of a node that is in no group.
const None = -1

// Node is an op, or an argument or a result of the function.
type Node struct {
	Kind   Kind
	Parent int         // the group it is in, by number
	Entry  *cost.Entry // nil for arguments, results and sections
	Name   string      // of a section
	Value  *ir.Value   // the argument, what is returned, or of a rule the value that it differentiates
	Region string      // of a loop or a branch: "condition", "body", "then", "else"
	Idle   bool        // in an arm that does not count, at any depth
	Rank   int         // among the nodes of its group: edges between them, Back ones apart, go up
}

// Edge is a value on its way from one node to another.
type Edge struct {
	From, To int // nodes, by number
	Value    *ir.Value
	Outer    *ir.Value // over the border of a call: what Value is called outside, an operand or a result of the call; nil elsewhere
	Size     dim.Dim   // bytes of the value
	Moved    dim.Dim   // what To reads of it from memory; for a loop over all its rounds, for a call or a section the sum over its nodes; 0 on the way out of a group
	Back     bool      // into the next round of a loop
}

// Graph is the movement graph of one function. It holds on to the program.
type Graph struct {
	Func  *cost.Func
	Nodes []Node // arguments, ops in the order of the text within each section, results; a group before what is in it
	Edges []Edge // by the number of the node that they lead to, outwards ones last in their group
}

// Build is the movement graph of f, a function of p.
func Build(p *program.Program, f *cost.Func) *Graph {
	b := &builder{
		Graph:  &Graph{Func: f},
		body:   newBody(f.Func, f.ByOp(), cost.NewFlow(f.Func, f.Module(), p.Bind), None),
		made:   map[edgeKey]int{},
		inside: map[capture][]ir.Use{},
		bodies: map[int]*body{},
		left:   mostOpened,
	}
	for _, v := range f.Func.Args {
		b.add(Node{Kind: Argument, Parent: None, Value: v})
	}
	if f.Func.Op != nil {
		b.function(frame{parent: None, kernel: None})
		for _, r := range f.Func.Op.Regions {
			b.connect(r, None)
		}
	}
	b.pass()
	b.rank()
	return b.Graph
}

// Outside reports whether node i is in sections only, so that its costs count as
// those of the function.
func (g *Graph) Outside(i int) bool { return g.Around(i) == None }

// Once reports whether node i runs once when the function does, and is no part of a kernel: all around it are
// sections and calls.
func (g *Graph) Once(i int) bool {
	group := g.Around(i)
	for group != None && g.Nodes[group].Kind == Call {
		group = g.Around(group)
	}
	return group == None
}

// Around is the innermost group with costs of its own around node i, None where there are only sections.
func (g *Graph) Around(i int) int {
	p := g.Nodes[i].Parent
	for p != None && g.Nodes[p].Kind.Section() {
		p = g.Nodes[p].Parent
	}
	return p
}

// IsGroup reports whether there are nodes in node i.
func (g *Graph) IsGroup(i int) bool { return i+1 < len(g.Nodes) && g.Nodes[i+1].Parent == i }

// Module is the module of p that holds fn, nil where none does.
func Module(p *program.Program, fn *ir.Func) *ir.Module {
	for _, m := range p.Modules {
		if m.Func(fn.Name) == fn {
			return m
		}
	}
	return nil
}
