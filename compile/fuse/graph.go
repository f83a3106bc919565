package fuse

import (
	"context"
	"math"
	"slices"

	"dmir/analysis/cost"
	"dmir/analysis/machine"
	"dmir/base/work"
	"dmir/compile/kernel"
	"dmir/compile/pass"
	"dmir/compile/target"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// graph is the data-flow graph of a body. Constants and views that
// keep the order of elements are no nodes: they run as no kernel. Views are replaced by their
// operands; constants that are data are values, as arguments are.
type graph struct {
	ctx         context.Context
	progress    func(done float64)
	body        pass.Body
	rules       Rules
	m           *machine.Machine
	flow        *cost.Flow
	nodes       []*node
	values      []*value
	number      map[*ir.Value]int
	position    map[*ir.Op]int // index in the body
	nodeOf      map[*ir.Op]int // the last node of an op
	memo        map[string]*candidate
	key         []byte // of the kernel that is looked for
	legal       *legalities
	repeats     *repeats // nil: no equal layers
	most        int      // operands of a part or a piece of it: maxOperands
	cut         bool     // a part was split because of its length
	needed      bitset   // the nodes on which results and effects depend
	overwriting []int    // the nodes with an update
	polls       int
	counts      *work.Counts // nodes of the kernels that are priced, and of those that the rules are asked about
}

// canceled is the panic value of checkContext; Run returns the cause of the
// context's cancellation in its place.
var canceled = new(int)

// checkContext panics with canceled once the context is done. The inner loops
// of the search call it, some of which take seconds between two plans.
func (g *graph) checkContext() {
	if g.polls++; g.polls%64 == 0 && g.ctx.Err() != nil {
		panic(canceled)
	}
}

// node is an op, or one result of a dropout, whose mask needs no operand.
type node struct {
	op        *ir.Op
	results   []int     // values
	ins       []int     // distinct values that it reads, without numbers
	read      []int64   // bytes of each, or whole
	tensor    float64   // ns of a contraction, with the best tile: no kernel computes it in less
	vector    float64   // ns of other ops
	again     []float64 // of a contraction: how often each element of ins is computed where it is not read
	gather    []float64 // of a contraction: ns by which it is slower where it reads single elements of ins
	threads   float64   // of a contraction: ns by which it is slower where threads bring an operand to the tensor cores
	effort    float64   // ns on the vector units, by the instructions of each element
	cheap     bool      // may be recomputed in several kernels
	plain     bool      // is in conflict with no other node that is plain
	unfusible bool      // remains as it is: a kernel of the text, control flow
	effects   bool      // keeps its order relative to other ops with effects
	update    *update   // of an op that writes a part of its first operand in place; nil of others
	entry     *cost.Entry
	part      *part
	before    bitset // nodes that it depends on, and itself
	asked     bitset // later nodes with which it was asked whether they are in conflict; nil: none
	apart     bitset // those that are
}

// allBytes is the read of an op that reads all of its operand.
const allBytes = -1

// value is a tensor that a kernel may store.
type value struct {
	v        *ir.Value
	size     int64
	elements float64
	def      int // the node that computes it, -1 for an argument or a constant
	uses     []int
	out      bool // whether the function returns it
}

// bitset is a set of nodes of the graph, none of them behind its last word.
type bitset []uint64

func (b bitset) has(i int) bool { return i/64 < len(b) && b[i/64]>>(i%64)&1 == 1 }
func (b bitset) add(i int)      { b[i/64] |= 1 << (i % 64) }
func (b bitset) union(c bitset) {
	for i, w := range c {
		b[i] |= w
	}
}

// source is the value that v is a view of, an input of the body at the farthest.
func (g *graph) source(v *ir.Value) *ir.Value {
	for g.body.Defines(v) && isView(v.Op) {
		v = v.Op.Operands[0]
	}
	return v
}

// isView reports whether o keeps its operand's elements in place.
func isView(o *ir.Op) bool { return op.IsView(o) }

func (g *graph) isConstant(v *ir.Value) bool { return g.body.Defines(v) && v.Op.Name == op.Constant }

// isNumber reports whether v is a constant that kernels have in their code.
func (g *graph) isNumber(v *ir.Value) bool { return g.isConstant(v) && !op.IsData(v.Op) }

// build returns the graph of u's body, whose sizes are numbers.
func build(u *pass.Unit, rules Rules, legal *legalities) (*graph, error) {
	body := u.Body()
	g := &graph{ctx: u.Context(), counts: work.From(u.Context()), progress: u.Report, body: body, rules: rules, most: maxOperands, m: u.Model(), number: map[*ir.Value]int{}, position: map[*ir.Op]int{}, nodeOf: map[*ir.Op]int{}, memo: map[string]*candidate{}, legal: legal}
	entries := cost.Block(body.Block, body.Func, u.Module, u.Options.Bind)
	flow := cost.NewFlow(body.Func, u.Module, u.Options.Bind)
	g.flow = flow
	var inPlace op.InPlace
	last := -1 // the last op with effects; such ops keep their order
	for i, o := range body.Ops {
		g.checkContext()
		g.position[o] = i
		if o == body.Terminator() || o.Name == op.Constant || isView(o) {
			continue
		}
		e := entries[o]
		if e == nil || !e.Known {
			return nil, foreignOp(o)
		}
		parts := [][]*ir.Value{o.Results}
		if drawn(o, len(o.Results)-1) {
			parts = [][]*ir.Value{o.Results[:1], o.Results[1:]}
		}
		for i, results := range parts {
			n := &node{op: o, cheap: rules.Cheap(o)}
			if i == 0 {
				if err := g.operands(n, flow); err != nil {
					return nil, err
				}
			}
			n.update = g.updates(n, &inPlace)
			if err := g.work(n, e); err != nil {
				return nil, err
			}
			id := len(g.nodes)
			if n.update != nil {
				g.overwriting = append(g.overwriting, id)
			}
			g.nodes = append(g.nodes, n)
			g.nodeOf[o] = id
			for _, v := range results {
				if v.Tensor() == nil {
					n.unfusible = true
				}
				size, ok := flow.Size(v).Int()
				if !ok {
					return nil, pass.Errorf(o, "DM801", "the size of %s depends on an unbound symbol", v.Name)
				}
				n.results = append(n.results, g.value(v, size, id))
			}
			n.before = make(bitset, id/64+1)
			n.before.add(id)
			for _, v := range n.ins {
				if d := g.values[v].def; d >= 0 {
					n.before.union(g.nodes[d].before)
				}
			}
			if !op.Of(o).Is(op.Pure) {
				n.unfusible, n.cheap, n.effects = true, false, true
				if last >= 0 {
					n.before.union(g.nodes[last].before)
				}
				last = id
			}
			if structural(o) {
				n.unfusible, n.cheap = true, false
			}
			n.entry = e
			n.plain = !n.unfusible && rules.Plain(o)
		}
	}
	if t := body.Terminator(); t != nil {
		for _, v := range t.Operands {
			if i, ok := g.number[g.source(v)]; ok {
				g.values[i].out = true
			}
		}
	}
	g.needed = make(bitset, (len(body.Ops)*2+63)/64)
	for _, n := range g.nodes {
		if n.unfusible || slices.ContainsFunc(n.results, func(v int) bool { return g.values[v].out }) {
			g.needed.union(n.before)
		}
	}
	g.repeats = g.repeated()
	return g, nil
}

// structural reports whether no kernel computes o: a kernel itself, or control
// flow.
func structural(o *ir.Op) bool {
	d := op.Of(o)
	return d == nil || d.Kernel == op.Structure
}

// drawn reports whether result i of o, one of several, depends on no operand: a
// dropout's mask, where there is no step, and it is one of a whole.
func drawn(o *ir.Op, i int) bool {
	d := op.Of(o)
	return i > 0 && op.StepOf(o) == nil && op.OperandNumber(o, "first") < 0 && d != nil && i < len(d.Results) && d.Results[i].Drawn
}

func (g *graph) value(v *ir.Value, size int64, def int) int {
	i, ok := g.number[v]
	if !ok {
		i = len(g.values)
		g.number[v] = i
		g.values = append(g.values, &value{v: v, size: size, elements: elementsOf(v), def: def})
	}
	return i
}

// operands sets the values that n reads, including those that its regions
// capture.
func (g *graph) operands(n *node, flow *cost.Flow) error {
	partial := flow.Reads(n.op)
	traffic := op.Of(n.op) != nil && op.Of(n.op).Traffic != nil && op.Valid(n.op)
	library := op.Of(n.op) != nil && op.Of(n.op).Kernel == op.Library
	add := func(v *ir.Value, bytes int64) error {
		v = g.source(v)
		if g.isNumber(v) && !library {
			return nil
		}
		size, ok := flow.Size(v).Int()
		if !ok {
			return pass.Errorf(n.op, "DM801", "the size of %s depends on an unbound symbol", v.Name)
		}
		if bytes >= size {
			bytes = allBytes
		}
		i := g.value(v, size, -1)
		for j, w := range n.ins {
			if w == i {
				if n.read[j] == allBytes || bytes == allBytes {
					n.read[j] = allBytes
				} else {
					n.read[j] += bytes
				}
				return nil
			}
		}
		n.ins, n.read = append(n.ins, i), append(n.read, bytes)
		g.values[i].uses = append(g.values[i].uses, len(g.nodes))
		return nil
	}
	for i, v := range n.op.Operands {
		bytes := int64(allBytes)
		if traffic {
			b, ok := partial[i].Int()
			if !ok {
				return pass.Errorf(n.op, "DM801", "what %s reads depends on an unbound symbol", n.op.Name)
			}
			bytes = b
		}
		if err := add(v, bytes); err != nil {
			return err
		}
	}
	var err error
	for _, v := range ir.CapturedValues(n.op.Regions...) {
		if err == nil {
			err = add(v, allBytes)
		}
	}
	return err
}

// work sets the time that n computes.
func (g *graph) work(n *node, e *cost.Entry) error {
	for _, v := range n.op.Results[:min(1, len(n.op.Results))] {
		n.effort = elementsOf(v) * steps(n.op) / g.m.Rate(false, types.F32, "") * 1e9
	}
	if n.op.Name != op.Kernel && structural(n.op) {
		return nil // unfusible: its time does not depend on the plan
	}
	flop, ok := e.FLOP.Int()
	if !ok {
		return pass.Errorf(n.op, "DM801", "what %s computes depends on an unbound symbol", n.op.Name)
	}
	if flop == 0 {
		return nil
	}
	if e.Class == op.ClassContraction {
		n.tensor = e.Computes(g.m)
		if e.Attention() != nil { // views are all that its kernel adds to it
			one := []*ir.Op{n.op}
			if how, known, ok := g.rules.Legal(one, n.op.Results, nil, target.Moved{Of: g.readsOf(one)}); ok && known {
				n.tensor = min(n.tensor, e.ComputesWith(g.m, how.Tile))
			}
		}
		g.recomputes(n, float64(flop)/2)
		x, gathers := n.op.In(0), cost.Gathers(g.m, n.op)
		product, tiled := e.Product()
		if all, computed, known := g.rules.Least(product); tiled && known {
			if n.tensor = min(n.tensor, all*1e9); !gathers {
				n.threads = computed*1e9 - n.tensor
			}
		} else if x != nil && !gathers {
			n.threads = n.tensor * (g.m.Rate(true, x.Elem, "")/g.m.Rate(true, x.Elem, "mma") - 1)
		}
	} else {
		n.vector = e.Computes(g.m)
	}
	return nil
}

// recomputes sets how often a contraction of so many products would compute its operands: the elements that the sums name, which for
// a convolution are as many as its window has for each of the image, for each tile of the result that uses them.
func (g *graph) recomputes(n *node, products float64) {
	n.again, n.gather = make([]float64, len(n.ins)), make([]float64, len(n.ins))
	c, err := kernel.ContractionOf(n.op)
	for j, i := range n.ins {
		n.again[j] = math.Ceil(products / (g.values[i].elements * tile))
		for k, v := range n.op.Operands {
			if at, known := g.number[g.source(v)]; err == nil && k < len(c.In) && known && at == i {
				sharing := float64(c.Sharing(k))
				n.gather[j] = 1e9 * cost.Apart(g.m, n.op, k)
				n.again[j] = max(1, products/sharing/g.values[i].elements) * math.Ceil(sharing/tile)
			}
		}
	}
}

func elementsOf(v *ir.Value) float64 {
	if t := v.Tensor(); t != nil {
		n, _ := t.Elements().Int()
		return float64(n)
	}
	return 1
}

// steps is about the number of instructions for one element of o's result.
func steps(o *ir.Op) float64 {
	if d := op.Of(o); d != nil && d.Steps > 0 {
		return float64(d.Steps)
	}
	return 1
}

// foreignOp is the error that o, or an op in its regions, is of another
// dialect.
func foreignOp(o *ir.Op) error {
	culprit := o
	ir.Walk([]*ir.Op{o}, func(inner *ir.Op) bool {
		if op.Of(culprit) != nil && op.Of(inner) == nil {
			culprit = inner
		}
		return true
	})
	return pass.Errorf(culprit, "DM804", "%s is an op of another dialect, which cannot be compiled", culprit.Name)
}
