package graph

import (
	"dmir/analysis/cost"
	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

type builder struct {
	*Graph
	*body                       // that is being added
	kernel []int                // by node: the outermost kernel around it, or None
	off    []bool               // by node: in the arm of its branch that does not count
	made   map[edgeKey]int      // edges, by number
	inside map[capture][]ir.Use // of a value from outside, in an outermost kernel
	bodies map[int]*body        // by node: of calls
	left   int                  // how many ops calls may still be opened to
}

// body is a function on its way into the graph: that of the graph itself, or what a call runs. Calls of one function each have one.
type body struct {
	fn    *ir.Func
	flow  *cost.Flow
	entry map[*ir.Op]*cost.Entry
	node  map[*ir.Op]int
	owner map[*ir.Region]int // the group that a region belongs to
	call  int                // the node whose inside it is; None of the function of the graph
}

func newBody(fn *ir.Func, entry map[*ir.Op]*cost.Entry, flow *cost.Flow, call int) *body {
	return &body{fn: fn, flow: flow, entry: entry, node: map[*ir.Op]int{}, owner: map[*ir.Region]int{}, call: call}
}

// edgeKey names an edge: a value enters a node once, and leaves a group once
// from where it is made.
type edgeKey struct {
	value *ir.Value
	to    int
	out   bool
}

type capture struct {
	kernel int
	value  *ir.Value
}

// frame is where an op stands.
type frame struct {
	parent int
	region string
	kernel int
	idle   bool
	taken  map[*cost.Entry]bool // of a branch: the entries that count; nil elsewhere
}

func (b *builder) add(n Node) int {
	b.Nodes = append(b.Nodes, n)
	b.kernel = append(b.kernel, None)
	b.off = append(b.off, false)
	return len(b.Nodes) - 1
}

// function adds the nodes of the body that is being added.
func (b *builder) function(f frame) {
	if all := sectionsOf(b.fn, b.entry, b.call != None); all != nil {
		b.owner[b.fn.Op.Regions[0]] = f.parent
		b.sections(all, f.parent, f.idle)
		return
	}
	for _, r := range b.fn.Op.Regions {
		b.region(r, f)
	}
}

// region adds the nodes of r.
func (b *builder) region(r *ir.Region, f frame) {
	b.owner[r] = f.parent
	for _, blk := range r.Blocks {
		b.ops(blk.Ops, f)
	}
}

func (b *builder) ops(ops []*ir.Op, f frame) {
	for _, o := range ops {
		e := b.entry[o]
		if e == nil {
			continue // a terminator or a definition
		}
		off := f.taken != nil && !f.taken[e]
		n := Node{Kind: kind(o, e), Parent: f.parent, Entry: e, Region: f.region, Idle: f.idle || off}
		id := b.add(n)
		b.node[o], b.kernel[id], b.off[id] = id, f.kernel, off
		b.regions(o, id, f)
	}
}

// sections adds the nodes of sections and of what is in them.
func (b *builder) sections(all []*section, parent int, idle bool) {
	for _, s := range all {
		in := parent
		if s.kind != "" {
			in = b.add(Node{Kind: s.kind, Parent: parent, Name: s.name, Value: s.value, Idle: idle})
			b.kernel[in] = None
		}
		if s.parts != nil {
			b.sections(s.parts, in, idle)
		} else {
			b.ops(s.ops, frame{parent: in, kernel: None, idle: idle})
		}
	}
}

// open adds what a call runs, unless it is too much, or runs in a kernel.
func (b *builder) open(id int, f frame) {
	e := b.Nodes[id].Entry
	runs := e.Runs(b.left)
	if runs > b.left {
		b.left = 0 // nor is a later call opened: they are not counted again and again
	}
	if runs == 0 || runs > b.left || f.kernel != None {
		return
	}
	fn, entry, flow := e.Called()
	if fn.Op == nil || len(fn.Op.Regions) != 1 || len(fn.Op.Regions[0].Blocks) != 1 {
		return
	}
	b.left -= len(fn.Body.Ops)
	outer := b.body
	b.body = newBody(fn, entry, flow, id)
	b.bodies[id] = b.body
	b.function(f)
	b.body = outer
}

func (b *builder) regions(o *ir.Op, id int, outer frame) {
	n := b.Nodes[id]
	f := frame{parent: id, idle: n.Idle, kernel: outer.kernel}
	switch n.Kind {
	case Op:
		return
	case Call:
		b.open(id, f)
		return
	case Kernel:
		if f.kernel == None {
			f.kernel = id
		}
	case Branch:
		f.taken = make(map[*cost.Entry]bool, len(n.Entry.Inner))
		for _, e := range n.Entry.Inner {
			f.taken[e] = true
		}
	}
	d := op.Of(o)
	for i, r := range o.Regions {
		f.region = ""
		if d != nil && n.Kind != Kernel && i < len(d.Regions) {
			f.region = d.Regions[i].Name
		}
		b.region(r, f)
	}
}

func kind(o *ir.Op, e *cost.Entry) Kind {
	switch {
	case o.Name == op.Call || o.Name == op.Grad:
		return Call
	case op.Of(o) == nil || !op.Valid(o):
		return Opaque
	case o.Name == op.Kernel:
		return Kernel
	case op.LoopBody(o) != nil:
		return Loop
	case o.Name == op.If:
		return Branch
	}
	return Op
}

// connect adds the edges of the ops in r, a region of group.
func (b *builder) connect(r *ir.Region, group int) {
	for _, blk := range r.Blocks {
		for _, o := range blk.Ops {
			id, counts := b.node[o]
			switch {
			case counts:
				b.operands(o, id)
			case group != None:
				b.yields(o, group)
			case o.Name == op.Return:
				b.returns(o)
			}
		}
	}
}

// operands adds the edges to o, and those to what is in it.
func (b *builder) operands(o *ir.Op, id int) {
	n := b.Nodes[id]
	var reads []dim.Dim
	if n.Kind == Op && b.kernel[id] == None {
		reads = b.flow.Reads(o)
	}
	for i, v := range o.Operands {
		at := b.use(v, n.Parent, id, b.kernel[id], ir.Use{Op: o, Index: i})
		if at >= 0 && reads != nil {
			b.Edges[at].Moved = b.Edges[at].Moved.Add(reads[i])
		}
	}
	if inner := b.bodies[id]; inner != nil {
		outer := b.body
		b.body = inner
		b.connect(inner.fn.Op.Regions[0], id)
		b.body = outer
	}
	for _, r := range o.Regions {
		if _, group := b.owner[r]; group {
			b.connect(r, id)
			continue
		}
		for _, blk := range r.Blocks { // the inside of an op that is one node
			ir.Walk(blk.Ops, func(p *ir.Op) bool {
				for i, v := range p.Operands {
					if !within(v, o) {
						b.use(v, n.Parent, id, b.kernel[id], ir.Use{Op: p, Index: i})
					}
				}
				return true
			})
		}
	}
}

// within reports whether v is defined inside o.
func within(v *ir.Value, o *ir.Op) bool {
	blk := v.Block
	if v.Op != nil {
		blk = v.Op.Parent
	}
	for blk != nil && blk.Region.Op != nil {
		if blk.Region.Op == o {
			return true
		}
		blk = blk.Region.Op.Parent
	}
	return false
}

// use adds the edge by which v reaches node to, which stands in group, and
// those into the groups around it that do not define v. The first is returned,
// -1 where nothing is known to define v. kernel is the outermost one around u.
func (b *builder) use(v *ir.Value, group, to, kernel int, u ir.Use) int {
	from, home, ok := b.producer(v)
	if !ok {
		return -1
	}
	from, home = b.leave(v, from, home, group)
	first := -1
	for {
		here := from
		if home != group {
			here = group
		}
		if here == None {
			return first // defined in a region that is not around the use
		}
		e := Edge{From: here, To: to, Value: v}
		if here == b.call && here != None && v.Block == b.fn.Body {
			e.Outer = member(b.Nodes[here].Entry.Op.Operands, v.Index, len(b.fn.Args))
		}
		at := b.edge(e, edgeKey{v, to, false})
		if first < 0 {
			first = at
		}
		if home == group {
			return first
		}
		if group == kernel {
			k := capture{kernel, v}
			b.inside[k] = append(b.inside[k], u)
		}
		to, group = group, b.Nodes[group].Parent
	}
}

// leave adds the edges by which v, which node from in group home gives, leaves the sections that do not hold group; it
// returns the outermost of them and where that stands.
func (b *builder) leave(v *ir.Value, from, home, group int) (node, in int) {
	for home != None && b.Nodes[home].Kind.Section() && !b.holds(home, group) {
		b.edge(Edge{From: from, To: home, Value: v}, edgeKey{v, home, true})
		from, home = home, b.Nodes[home].Parent
	}
	return from, home
}

// member is the one of vs, operands or results of a call, that holds number i of the n arguments or results of what the call runs:
// these are as many, or, in what a gradient runs, the members of tuples instead. It is nil where there is none.
func member(vs []*ir.Value, i, n int) *ir.Value {
	if len(vs) == n {
		return vs[i]
	}
	for _, v := range vs {
		k := 1
		if types.IsTuple(v.Type) {
			k = len(types.Members(v.Type))
		}
		if i < k {
			return v
		}
		i -= k
	}
	return nil
}

// holds reports whether node, or None, is group or stands in it.
func (b *builder) holds(group, node int) bool {
	for node != None && node != group {
		node = b.Nodes[node].Parent
	}
	return node == group
}

// producer is the node that gives v, and the group in which it does so: for the
// argument of a group's block it is the group itself.
func (b *builder) producer(v *ir.Value) (from, home int, ok bool) {
	if v.Op != nil {
		from, ok = b.node[v.Op]
		if !ok {
			return 0, 0, false
		}
		return from, b.Nodes[from].Parent, true
	}
	if v.Block == nil || v.Block.Region == nil {
		return 0, 0, false
	}
	if b.call == None && v.Block == b.fn.Body {
		return v.Index, None, true // arguments are the first nodes
	}
	group, ok := b.owner[v.Block.Region]
	return group, group, ok && group != None
}

func (b *builder) edge(e Edge, k edgeKey) int {
	if at, seen := b.made[k]; seen {
		return at
	}
	e.Size = b.flow.Size(e.Value)
	b.Edges = append(b.Edges, e)
	b.made[k] = len(b.Edges) - 1
	return len(b.Edges) - 1
}

// yields adds the edges out of group that o, which ends one of its blocks, makes.
func (b *builder) yields(o *ir.Op, group int) {
	n := b.Nodes[group]
	carried := 0
	if n.Kind == Loop && o.Parent == op.LoopBody(n.Entry.Op) {
		carried = op.Carries(n.Entry.Op)
	}
	for i, v := range o.Operands {
		from, home, ok := b.producer(v)
		if ok {
			from, home = b.leave(v, from, home, group)
		}
		switch {
		case !ok || from == group: // passed on unchanged
		case home == group:
			e := Edge{From: from, To: group, Value: v, Back: i < carried}
			if n.Kind == Call {
				e.Outer = member(n.Entry.Op.Results, i, len(o.Operands))
			}
			b.edge(e, edgeKey{v, group, true})
		default:
			kernel := b.kernel[group]
			if n.Kind == Kernel && kernel == None {
				kernel = group
				k := capture{kernel, v}
				b.inside[k] = append(b.inside[k], ir.Use{Op: o, Index: i})
			}
			b.use(v, n.Parent, group, kernel, ir.Use{Op: o, Index: i})
		}
	}
}

// returns adds a node for each result of the function.
func (b *builder) returns(o *ir.Op) {
	for i, v := range o.Operands {
		id := b.add(Node{Kind: Result, Parent: None, Value: v})
		b.use(v, None, id, None, ir.Use{Op: o, Index: i})
	}
}
