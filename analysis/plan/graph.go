package plan

import (
	"slices"
	"sync"

	"dmir/analysis/cost"
	"dmir/analysis/machine"
	"dmir/base/work"
	"dmir/dialect/ir"
	"dmir/dialect/microbatch"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// A phase is the part of a step that an op belongs to.
type phase uint8

// The phases. What is done once in a step does not depend on the micro-batch: gradients are
// reduced, parameters updated.
const (
	forward phase = iota
	backward
	once
)

// A node is an op of the step, or an argument of it.
type node struct {
	o     *ir.Op // nil: an argument
	arg   *ir.Value
	f     *op.Factors
	phase phase
	layer int // 0 before the layers, 1 to layers.left, then what stands behind them
	unit  int // of a forward op: equal for those that full recomputation computes again together, and negative for one that it does not
	micro bool
	batch int // the factor along which micro-batches divide the op; negative: none

	compute float64 // s, of the whole op
	flop    float64
	product *product // of a contraction: what of it a device computes decides how long
	launch  float64  // s, of the kernel that it begins
	fused   float64  // what it takes among the ops of its kernel, as a part of what it takes by itself
	reads   []int    // operands that its kernel reads from memory
	writes  []int    // results that its kernel writes to memory
	moved   float64  // bytes of the whole op, for ops that move parts of their operands; else negative
	rows    []int    // factors that are the rows of an op with an expansion
	cheap   bool     // selective recomputation does it again
}

// A value is what nodes hand to each other.
type value struct {
	v     *ir.Value
	node  int // that makes it
	index int // of the result
	uses  []use
	micro bool
	batch int // the dimension along which micro-batches divide it; negative: none
	bytes float64
	shape []int64
	elem  float64 // bytes of an element
	class int     // equal for values of one type whose micro-batches are divided alike
	fixed *layout // that the text states
	// pieces is how many pieces an argument has that is a component of a sparse tensor in pieces, which are its first dimension; else 0.
	pieces int64
	// divisible are the dimensions of an argument that may be divided; nil: all.
	divisible []int8
	saved     bool // a forward op makes it, and a backward op needs it
	next      int  // of an argument that is state: the value that it has in the next step; else -1
}

type use struct{ node, operand int }

// A graph is the step: its nodes in order, arguments first.
type graph struct {
	*straight
	nodes  []*node
	values []*value
	of     map[*ir.Value]int // into values
	state  []int             // values of arguments that are state
	data   []int             // values of arguments with samples
	batch  int64             // samples of a step
	known  microbatch.Known  // by which that was found
	// samples are the arguments with samples, whole those that may have been meant to: that neither have samples nor are
	// stated or known to be no data.
	samples, whole []string
	again          map[*ir.Value]bool // arguments that the text has gathered again for the backward pass
	flop           float64            // of a step, all layers
	target         *machine.Machine
	timed          sync.Map  // machine.Product and machine.Attention to seconds
	ties           sync.Once // of what follows
	variables      []variable
	ofNode         []int
	work           *work.Counts
	// near is that the model follows what texts take as they are compiled, which are compared with it: see search.fuse,
	// model.exposed, model.aside and hidden.
	near bool
}

func newGraph(s *straight, m *machine.Machine, batch []string) (*graph, error) {
	g := &graph{straight: s, target: m, of: map[*ir.Value]int{}, again: map[*ir.Value]bool{}}
	isNext := map[*ir.Value]*ir.Value{}
	for a, v := range s.next {
		isNext[v] = a
	}
	used := map[*ir.Value]bool{}
	for _, o := range s.fn.Body.Ops {
		for _, v := range ir.UsedValues(o) {
			used[v] = true
		}
	}
	for _, a := range s.fn.Args {
		if a.Tensor() == nil || !used[a] {
			continue
		}
		g.add(&node{arg: a, batch: -1, phase: once, moved: -1, fused: 1}, a)
		if of, ok := op.ArgAttr(s.fn, a.Index, op.ComponentAttr).(types.TypeAttr); ok {
			g.values[g.of[a]].pieces = of.T.(*types.Tensor).Format.Pieces.Count()
		}
	}
	costs := cost.Function(s.fn, s.m, nil).ByOp()
	for _, o := range s.fn.Body.Ops {
		if o.Name == op.Return {
			continue
		}
		if o.Bad || op.Of(o) == nil {
			return nil, &Error{Code: CodeStep, At: o, Msg: o.Name + " is not known, so that the step cannot be planned", Help: "write it with ops of the dialect"}
		}
		n := &node{o: o, f: op.DivisionOf(o), batch: -1, moved: -1, fused: 1}
		if o.Name == op.Reshard {
			n.f = alike(o)
		}
		if n.f == nil {
			n.f = &op.Factors{}
		} else {
			n.divideRows()
		}
		e := costs[o]
		if e != nil && e.Known {
			if t, ok := e.TimeTerms(m); ok {
				n.compute = e.Computes(m) / 1e9
				n.launch = (t.Launch + t.Latency) / 1e9
				n.product = productOf(n, e)
				n.moved = float64(t.Moved)
			} else if t := e.Time(m); t.Known {
				n.compute = t.Ns / 1e9
			}
		}
		if e != nil {
			if f, ok := e.FLOP.Int(); ok {
				n.flop = float64(f)
				g.flop += float64(f) * float64(s.layers.times(int(o.Int(layerAttr, 0))))
			}
		}
		g.add(n, o.Results...)
	}
	for i, n := range g.nodes {
		if n.o == nil {
			continue
		}
		for k, v := range n.o.Operands {
			if x, ok := g.of[v]; ok {
				g.values[x].uses = append(g.values[x].uses, use{i, k})
			}
		}
	}
	for a, v := range s.next {
		x, ok := g.of[a]
		y, made := g.of[v]
		if ok && made {
			g.values[x].next = y
			g.state = append(g.state, x)
		}
	}
	slices.Sort(g.state)
	if err := g.divideBatch(batch); err != nil {
		return nil, err
	}
	g.phases()
	g.numberLayers()
	g.kernels()
	type class struct {
		text  string
		batch int
	}
	classes := map[class]int{}
	for _, v := range g.values {
		k := class{v.v.Type.String(), v.batch}
		if _, ok := classes[k]; !ok {
			classes[k] = len(classes)
		}
		v.class = classes[k]
	}
	return g, nil
}

// divideRows adds factors for the rows of an op that has an expansion, as a softmax: where they are divided, the
// partitioner writes the op out, and devices combine maxima and sums.
func (n *node) divideRows() {
	d := op.Of(n.o)
	x := n.o.In(0)
	dims, ok := op.RowDims(n.o)
	if d.Expand == nil || !ok || x == nil || len(n.f.Operands) == 0 || len(n.f.Operands[0]) != x.Rank() {
		return
	}
	for _, row := range dims {
		if size, known := x.Shape[row].Int(); !known || size == 1 || len(n.f.Operands[0][row]) > 0 {
			continue
		}
		f := len(n.f.Sizes)
		n.f.Sizes, n.f.Kinds = append(n.f.Sizes, x.Shape[row]), append(n.f.Kinds, op.Exchanged)
		n.rows = append(n.rows, f)
		give := func(tensors [][][]int, k int, v *ir.Value) {
			t := v.Tensor()
			if t == nil || k >= len(tensors) || len(tensors[k]) != t.Rank() {
				return
			}
			if at := row - x.Rank() + t.Rank(); at >= 0 && t.Shape[at].Equal(x.Shape[row]) && len(tensors[k][at]) == 0 {
				tensors[k][at] = []int{f}
			}
		}
		for k, v := range n.o.Operands {
			give(n.f.Operands, k, v)
		}
		for k, v := range n.o.Results {
			give(n.f.Results, k, v)
		}
	}
}

// alike are the factors of an op that hands its operand on.
func alike(o *ir.Op) *op.Factors {
	f := &op.Factors{Operands: [][][]int{nil}, Results: [][][]int{nil}, Linear: [][]int{{0}}}
	for d, size := range o.In(0).Shape {
		f.Sizes, f.Kinds = append(f.Sizes, size), append(f.Kinds, op.Parallel)
		f.Operands[0] = append(f.Operands[0], []int{d})
		f.Results[0] = append(f.Results[0], []int{d})
	}
	return f
}

func (g *graph) add(n *node, results ...*ir.Value) {
	for i, r := range results {
		t := r.Tensor()
		if t == nil {
			continue
		}
		bytes, _ := t.Bytes().Int()
		g.of[r] = len(g.values)
		x := &value{v: r, node: len(g.nodes), index: i, batch: -1, bytes: float64(bytes), elem: float64(t.Elem.Bits()) / 8, next: -1}
		for _, d := range t.Shape {
			n, _ := d.Int()
			x.shape = append(x.shape, n)
		}
		g.values = append(g.values, x)
	}
	g.nodes = append(g.nodes, n)
}

// operand is the value that operand k of n is; nil for what is no tensor of the step.
func (g *graph) operand(n *node, k int) *value {
	if x, ok := g.of[n.o.Operands[k]]; ok {
		return g.values[x]
	}
	return nil
}

// result is the value of result k of n.
func (g *graph) result(n *node, k int) *value {
	v := n.arg
	if n.o != nil {
		v = n.o.Results[k]
	}
	if x, ok := g.of[v]; ok {
		return g.values[x]
	}
	return nil
}

// phases tells forward from backward ops. What is computed of sums over samples is done once.
func (g *graph) phases() {
	marked := false
	for _, n := range g.nodes {
		marked = marked || n.o != nil && n.o.Attr(forwardAttr) != nil
	}
	back := make([]bool, len(g.nodes))
	for i, n := range g.nodes {
		if n.o == nil {
			continue
		}
		isForward := n.o.Attr(forwardAttr) != nil
		back[i] = marked && !isForward
		switch {
		case !n.micro:
			n.phase = once
		case back[i]:
			n.phase = backward
		}
	}
	for _, v := range g.values {
		n := g.nodes[v.node]
		if n.o == nil || n.phase != forward || !v.micro {
			continue
		}
		v.saved = slices.ContainsFunc(v.uses, func(u use) bool { return g.nodes[u.node].phase == backward })
	}
}

// numberLayers gives each node the layer that its op was marked with, and those without a mark that of what
// they read or, for arguments, of what reads them.
func (g *graph) numberLayers() {
	const none = -1
	for _, n := range g.nodes {
		n.layer = none
		if n.o == nil {
			continue
		}
		if a := n.o.Attr(layerAttr); a != nil {
			n.layer = int(n.o.Int(layerAttr, 0))
			continue
		}
		for k := range n.o.Operands {
			if v := g.operand(n, k); v != nil && v.v.Tensor().Rank() > 0 {
				n.layer = max(n.layer, g.nodes[v.node].layer)
			}
		}
	}
	for _, n := range slices.Backward(g.nodes) {
		for k := 0; n.layer == none && (n.o == nil && k == 0 || n.o != nil && k < len(n.o.Results)); k++ {
			if v := g.result(n, k); v != nil {
				for _, u := range v.uses {
					if l := g.nodes[u.node].layer; n.layer == none || l != none && l < n.layer {
						n.layer = l
					}
				}
			}
		}
		n.layer = max(n.layer, 0)
		n.unit = -1
		switch {
		case n.o == nil || n.phase != forward:
		case g.layers.has(n.layer):
			n.unit = n.layer
		case g.layers != nil && n.o.Attr(callAttr) != nil:
			n.unit = g.layers.left + 1 + int(n.o.Int(callAttr, 0))
		}
	}
}

// kernels groups nodes as the compiler's fused kernels do, to tell which values cross memory: what computes
// element by element joins the kernel that made the operand it comes last after; a normalization joins one
// that has none yet. It is an estimate, which takes no time to speak of; the compiler's own search decides
// when the program is built.
func (g *graph) kernels() {
	kernel := make([]int, len(g.nodes))
	normalized := map[int]bool{}
	for i, n := range g.nodes {
		kernel[i] = i
		if n.o == nil {
			continue
		}
		class := op.Of(n.o).Class
		n.cheap = n.phase == forward && class != op.ClassContraction && !isAttention(n)
		whole := n.wholeTraffic(g)
		joins := class == op.ClassElementwise || (class == op.ClassMovement && whole) || class == op.ClassNormalization
		if !joins || !whole {
			continue
		}
		last := -1
		for k := range n.o.Operands {
			if v := g.operand(n, k); v != nil && v.v.Tensor().Rank() > 0 {
				last = max(last, v.node)
			}
		}
		if last < 0 || g.nodes[last].o == nil || g.nodes[last].phase != n.phase || g.nodes[last].layer != n.layer || !g.nodes[last].wholeTraffic(g) {
			continue
		}
		root := kernel[last]
		if class == op.ClassNormalization {
			if normalized[root] || op.Of(g.nodes[root].o).Class == op.ClassContraction {
				continue
			}
			normalized[root] = true
		}
		kernel[i] = root
		n.launch = 0
	}
	for i, n := range g.nodes {
		if n.o != nil && op.Of(n.o).Class == op.ClassNormalization && kernel[i] == i {
			normalized[i] = true
		}
	}
	g.widened(kernel)
	type read struct{ kernel, value int }
	seen := map[read]bool{}
	for i, n := range g.nodes {
		if n.o == nil {
			continue
		}
		if !n.wholeTraffic(g) {
			continue // n.moved counts
		}
		n.moved = -1
		for k, v := range n.o.Operands {
			x, ok := g.of[v]
			if !ok || kernel[g.values[x].node] == kernel[i] || seen[read{kernel[i], x}] {
				continue
			}
			seen[read{kernel[i], x}] = true
			n.reads = append(n.reads, k)
		}
		for k, v := range n.o.Results {
			x, ok := g.of[v]
			if !ok {
				continue
			}
			val := g.values[x]
			if len(val.uses) == 0 || slices.ContainsFunc(val.uses, func(u use) bool { return kernel[u.node] != kernel[i] }) {
				n.writes = append(n.writes, k)
			}
		}
		if n.compute == 0 && len(n.reads)+len(n.writes) == 0 {
			n.launch = 0
		}
	}
}

// widened moves each element-wise op whose result is larger than its operands, as a conversion from half precision, into
// the kernel of its users where they are in one: the smaller operands cross memory then.
func (g *graph) widened(kernel []int) {
	for i, n := range slices.Backward(g.nodes) {
		if n.o == nil || len(n.o.Results) != 1 || op.Of(n.o).Class != op.ClassElementwise || !n.wholeTraffic(g) {
			continue
		}
		result := g.result(n, 0)
		if result == nil || len(result.uses) == 0 {
			continue
		}
		into, bytes := kernel[result.uses[0].node], 0.0
		for k := range n.o.Operands {
			if v := g.operand(n, k); v != nil {
				bytes += v.bytes
			}
		}
		user := g.nodes[result.uses[0].node]
		if bytes >= result.bytes || into == i || user.phase != n.phase || user.layer != n.layer || user.o != nil && op.Of(user.o).Class == op.ClassContraction ||
			slices.ContainsFunc(result.uses, func(u use) bool { return kernel[u.node] != into }) || slices.Contains(kernel[i+1:], i) {
			continue
		}
		kernel[i] = into
	}
}

// isAttention reports whether n computes scores of queries and keys that it does not write: it is as
// expensive as a contraction.
func isAttention(n *node) bool { return n.f != nil && n.f.Together[0] != n.f.Together[1] }

// wholeTraffic reports whether n reads and writes each of its values once and whole; a slice, a
// gather and a reshape do not.
func (n *node) wholeTraffic(g *graph) bool {
	if n.o == nil {
		return true
	}
	if n.moved < 0 {
		return true
	}
	total := 0.0
	seen := map[*ir.Value]bool{}
	for k, x := range n.o.Operands {
		if v := g.operand(n, k); v != nil && !seen[x] {
			seen[x] = true
			total += v.bytes
		}
	}
	for k := range n.o.Results {
		if v := g.result(n, k); v != nil {
			total += v.bytes
		}
	}
	return n.moved >= total*0.999 && n.moved <= total*1.001
}
