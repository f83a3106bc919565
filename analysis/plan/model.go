package plan

import (
	"cmp"
	"context"
	"slices"

	"dmir/analysis/plan/solve"
	"dmir/dialect/ir"
	"dmir/dialect/op"
)

// A model is the choices of a graph on a grid: a variable for each node, and one for each value that
// several nodes use, with equal layers choosing alike.
type model struct {
	*graph
	grid      *grid
	bandwidth float64
	vars      []variable
	ofNode    []int // variables, by node
	ofValue   []int // by value: that of the layout its users see; negative: its only user sees that of the node
	links     []link
}

// A variable is a choice.
type variable struct {
	nodes      []int // that choose alike; nil of a value
	values     []int
	strategies []strategy
	layouts    []layout // of a value
}

// A link is a value on its way: from the variable that makes it, or holds it, to one that uses it.
type link struct {
	from, to int
	value    int
	result   int  // of from, a node: the layout is that of the result; negative: from is of a value
	operand  int  // of to, a node; negative: to is of a value
	stored   bool // from or to is an argument, as it is stored
	times    float64
	layer    int
	phase    phase
	deferred bool // nothing of the micro-batch waits for it
	node     int  // that uses it, -1 for a value
}

func newModel(g *graph, gr *grid, bandwidth float64) *model {
	m := &model{graph: g, grid: gr, bandwidth: bandwidth, ofValue: make([]int, len(g.values))}
	m.ofNode, m.vars = g.tied()
	for i := range m.ofValue {
		m.ofValue[i] = -1
	}
	for i := range m.vars {
		x := &m.vars[i]
		of := x.nodes[0]
		for _, k := range x.nodes { // the first layer's parameter may be read by the forward pass alone
			if n := g.nodes[k]; n.o == nil && g.passes(g.result(n, 0)) == 2 {
				of = k
			}
		}
		x.strategies = g.strategies(g.nodes[of], gr, bandwidth)
		g.work.Add("strategies", len(x.strategies))
	}
	m.share()
	m.connect()
	return m
}

// tied are the variables of nodes, which are the same on all grids.
func (g *graph) tied() (ofNode []int, vars []variable) {
	g.ties.Do(func() {
		m := &model{graph: g, ofNode: make([]int, len(g.nodes))}
		m.tie()
		g.variables, g.ofNode = m.vars, m.ofNode
	})
	return g.ofNode, slices.Clone(g.variables)
}

// tie gives nodes their variables: those of equal layers at the same place have one.
func (m *model) tie() {
	type place struct {
		kind uint64
		nth  int
	}
	at := map[place]int{}
	count := make([]map[uint64]int, 0)
	for range m.layerCount() {
		count = append(count, map[uint64]int{})
	}
	kinds := m.kinds()
	for i, n := range m.nodes {
		v := len(m.vars)
		if n.o != nil && m.layers != nil && n.layer >= 1 && n.layer <= m.layers.left {
			k := place{kinds[i], count[n.layer][kinds[i]]}
			count[n.layer][kinds[i]]++
			if w, ok := at[k]; ok {
				v = w
			} else {
				at[k] = v
			}
		}
		m.assign(i, v)
	}
	// Arguments are tied by what uses them.
	type user struct{ variable, operand int }
	byUser := map[user]int{}
	for i, n := range m.nodes {
		if n.o != nil || m.layers == nil || n.layer < 1 || n.layer > m.layers.left {
			continue
		}
		u := m.result(n, 0).uses
		if len(u) == 0 {
			continue
		}
		k := user{m.ofNode[u[0].node], u[0].operand}
		if w, ok := byUser[k]; ok && m.result(m.nodes[m.vars[w].nodes[0]], 0).v.Type == m.result(n, 0).v.Type {
			m.vars[m.ofNode[i]].nodes = nil
			m.ofNode[i] = w
			m.vars[w].nodes = append(m.vars[w].nodes, i)
		} else {
			byUser[k] = m.ofNode[i]
		}
	}
	m.compact()
}

func (m *model) assign(i, v int) {
	if v == len(m.vars) {
		m.vars = append(m.vars, variable{})
	}
	m.vars[v].nodes = append(m.vars[v].nodes, i)
	m.ofNode[i] = v
}

// compact drops variables without nodes.
func (m *model) compact() {
	now := make([]int, len(m.vars))
	kept := m.vars[:0]
	for i, x := range m.vars {
		now[i] = len(kept)
		if len(x.nodes) > 0 {
			kept = append(kept, x)
		}
	}
	m.vars = kept
	for i, v := range m.ofNode {
		m.ofNode[i] = now[v]
	}
}

// layerCount is how many numbers of layers there are, that before and that behind the layers included.
func (g *graph) layerCount() int {
	if g.layers == nil {
		return 1
	}
	return g.layers.left + 2
}

// kinds are numbers that are equal for nodes that compute the same in the same phase.
func (g *graph) kinds() []uint64 {
	out := make([]uint64, len(g.nodes))
	for i, n := range g.nodes {
		if n.o != nil {
			out[i] = kindsOf([]*ir.Op{n.o})[0]*3 + uint64(n.phase)
		}
	}
	return out
}

// share gives a variable to each value that several nodes use, with the layouts that its maker and its users
// know without sums that are not reduced.
func (m *model) share() {
	type key struct{ variable, result int }
	several := map[key]bool{}
	for _, v := range m.values {
		if (len(v.uses) > 1 || v.fixed != nil) && m.nodes[v.node].o != nil {
			several[key{m.ofNode[v.node], v.index}] = true
		}
	}
	made := map[key]int{}
	for x, v := range m.values {
		k := key{m.ofNode[v.node], v.index}
		if !several[k] {
			continue
		}
		at, ok := made[k]
		if !ok {
			at = len(m.vars)
			made[k] = at
			m.vars = append(m.vars, variable{})
		}
		y := &m.vars[at]
		y.values = append(y.values, x)
		m.ofValue[x] = at
		add := func(l layout) {
			if !slices.Contains(l[:len(m.grid.axes)], partial) && !slices.Contains(y.layouts, l) && m.grid.fits(v, l) && (v.fixed == nil || *v.fixed == l) {
				y.layouts = append(y.layouts, l)
			}
		}
		for _, s := range m.vars[m.ofNode[v.node]].strategies {
			add(s.out[v.index])
		}
		for _, u := range v.uses {
			for _, s := range m.vars[m.ofNode[u.node]].strategies {
				add(s.in[u.operand])
			}
		}
		if v.fixed != nil && len(y.layouts) == 0 {
			y.layouts = []layout{*v.fixed}
		}
	}
}

// between is how many times a value passes from layer a to layer b in the text.
func (g *graph) between(a, b int) float64 {
	l := g.layers
	switch {
	case l == nil || l.count == l.left:
		return 1
	case a == b:
		return float64(l.times(a))
	case min(a, b) == 1 && max(a, b) == 2:
		return float64(l.times(2))
	case min(a, b) >= 1 && max(a, b) <= l.left:
		return 1
	}
	// Of a value outside of the layers, every layer is a user.
	in := a
	if b >= 1 && b <= l.left {
		in = b
	}
	if in >= 1 && in <= l.left {
		return float64(l.times(in))
	}
	return 1
}

func (m *model) connect() {
	for x, v := range m.values {
		maker := m.nodes[v.node]
		from, result := m.ofNode[v.node], v.index
		if at := m.ofValue[x]; at >= 0 {
			m.links = append(m.links, link{
				from: from, to: at, value: x, result: result, operand: -1, node: -1,
				times: m.between(maker.layer, maker.layer), layer: maker.layer, phase: m.flow(maker, nil, v),
			})
			from, result = at, -1
		}
		for _, u := range v.uses {
			n := m.nodes[u.node]
			l := link{
				from: from, to: m.ofNode[u.node], value: x, result: result, operand: u.operand, node: u.node,
				stored: maker.o == nil && n.phase == once, times: m.between(maker.layer, n.layer), layer: n.layer, phase: m.flow(maker, n, v),
			}
			l.deferred = maker.o != nil && maker.phase != once && (n.phase == once || m.aside(n))
			m.links = append(m.links, l)
		}
	}
	// The next value of an argument has the layout in which that is stored.
	for _, a := range m.state {
		v := m.values[a]
		x := v.next
		y := m.values[x]
		l := link{
			from: m.ofNode[y.node], to: m.ofNode[v.node], value: x, result: y.index, operand: -1, stored: true, node: -1,
			times: m.between(m.nodes[v.node].layer, m.nodes[v.node].layer), layer: m.nodes[v.node].layer, phase: once,
		}
		if at := m.ofValue[x]; at >= 0 {
			l.from, l.result = at, -1
		}
		m.links = append(m.links, l)
	}
}

// aside reports whether nothing but the end of the step waits for n, of the only micro-batch: for the gradient of a parameter.
func (m *model) aside(n *node) bool {
	return m.near && m.grid.single() && n.phase == backward && m.ofWeights(n)
}

// flow is the phase in which a value is brought from its maker to a user: that of the micro-batch, unless
// the value is the same for all.
func (m *model) flow(maker, user *node, v *value) phase {
	switch {
	case !v.micro:
		return once
	case user != nil:
		return user.phase
	}
	return maker.phase
}

// layoutOf is the layout that a choice of the variable at the given end of l gives the value.
func (m *model) made(l *link, choice int) layout {
	x := &m.vars[l.from]
	switch {
	case x.strategies == nil:
		return x.layouts[choice]
	case l.stored && m.nodes[x.nodes[0]].o == nil:
		return x.strategies[choice].stored
	}
	return x.strategies[choice].out[l.result]
}

func (m *model) wanted(l *link, choice int) layout {
	x := &m.vars[l.to]
	switch {
	case x.strategies == nil:
		return x.layouts[choice]
	case l.operand < 0:
		return x.strategies[choice].stored
	}
	return x.strategies[choice].in[l.operand]
}

func (x *variable) size() int { return max(len(x.strategies), len(x.layouts)) }

// A load is how a setting weighs the costs of a model.
type load struct {
	pipe      int
	recompute string
	inflight  float64 // micro-batches whose activations the first stage holds
	memory    float64 // bytes of a device
	hidden    float64 // see graph.hidden
	free      bool    // whatever the setting computes again, it takes no less
	course    *course // of a pipeline: what of the step follows one another; nil: all devices have the same part of the step
}

// weights are how often a device does what is done for each micro-batch, and what is done once, if a pipeline's
// stages were equal and never waited: no schedule takes less.
func (g *grid) weights(l load) (micro, single float64) {
	p := float64(l.pipe)
	return float64(g.micro) / p, 1 / p
}

// again is how often n runs for a micro-batch.
func (n *node) again(recompute string) float64 {
	if n.unit < 0 {
		return 1
	}
	if recompute == Full || recompute == Selective && n.cheap {
		return 2
	}
	return 1
}

// outside reports whether n stands before or behind the layers.
func (g *graph) outside(n *node) bool { return !g.layers.has(n.layer) }

// keeps reports whether the value stays from the forward pass to the backward pass.
func (m *model) keeps(v *value, recompute string) bool {
	n := m.nodes[v.node]
	if !v.saved || n.unit < 0 || recompute == None {
		return v.saved || recompute == Full && n.unit >= 0 && m.leaves(v)
	}
	if recompute == Full {
		return m.leaves(v)
	}
	return !n.cheap || m.leaves(v)
}

// leaves reports whether another unit of the forward pass than that of the value uses it.
func (m *model) leaves(v *value) bool {
	n := m.nodes[v.node]
	return slices.ContainsFunc(v.uses, func(u use) bool {
		k := m.nodes[u.node]
		return k.phase == forward && k.unit != n.unit
	})
}

// crosses reports whether the next layer uses the value.
func (g *graph) crosses(v *value) bool {
	n := g.nodes[v.node]
	return slices.ContainsFunc(v.uses, func(u use) bool {
		k := g.nodes[u.node]
		return k.phase == forward && k.layer > n.layer
	})
}

// The ways to recompute.
const (
	None      = "none"      // every value that the backward pass needs is kept
	Selective = "selective" // what is cheap is computed again: all but contractions and attention
	Full      = "full"      // a layer keeps what it begins with
)

// preferPieces is the cost of holding an argument, as a part of the time that it takes to read it: between
// choices that take equally long, that which holds less is taken.
const preferPieces = 1e-3

// preference is what a choice of the arguments costs at most for what they hold. No time is taken for that, so that
// bounds leave it out.
func (m *model) preference(l load) (t float64) {
	_, single := m.grid.weights(l)
	for i := range m.vars {
		x := &m.vars[i]
		if x.strategies == nil || m.nodes[x.nodes[0]].o != nil {
			continue
		}
		most := slices.MaxFunc(x.strategies, func(a, b strategy) int { return cmp.Compare(a.held, b.held) }).held
		for _, at := range x.nodes {
			t += m.prefers(m.nodes[at], most, single)
		}
	}
	return t
}

// prefers is what it costs that argument n holds so many bytes.
func (m *model) prefers(n *node, bytes, single float64) float64 {
	return preferPieces * bytes / m.bandwidth * m.between(n.layer, n.layer) * single
}

// solve chooses, and bounds the time of all choices.
func (m *model) solve(ctx context.Context, p *solve.Problem, l load, o solve.Options) (*solve.Solution, error) {
	sol, err := solve.Solve(ctx, p, o)
	if err == nil {
		sol.Bound -= m.preference(l)
	}
	return sol, err
}

// unhidden is the part of the communication that runs beside computation which is waited for all the same: by the first op that
// needs it, and because nothing is left to compute behind the last gradient.
const unhidden = 0.1

// hidden is the part of the communication beside computation that computation may hide.
func (g *graph) hidden() float64 {
	if g.near {
		return 1 - unhidden
	}
	return 1
}

// takes is how long a device takes in a step for n, divided by s, without what is beside the computation.
func (m *model) takes(n *node, s *strategy, l load) float64 {
	if n.o == nil {
		_, single := m.grid.weights(l)
		return m.prefers(n, s.held, single)
	}
	return (s.time + s.comm) * m.runs(n, m.grid, l)
}

// runs is how often a device runs n, an op, in a step.
func (g *graph) runs(n *node, gr *grid, l load) float64 {
	if l.course != nil {
		return l.course.least.runs(n.phase, n.layer, n.phase == backward && g.ofWeights(n), n.again(l.recompute))
	}
	micro, single := gr.weights(l)
	times := g.between(n.layer, n.layer)
	if n.micro {
		return micro * times * n.again(l.recompute)
	}
	return single * times
}

// problem is the choice of strategies and layouts as an optimization.
func (m *model) problem(l load) *solve.Problem {
	micro, single := m.grid.weights(l)
	n := len(m.vars)
	p := &solve.Problem{Unary: make([][]float64, n)}
	excess, gathering := solve.Excess{Unary: make([][]float64, n)}, solve.Excess{Unary: make([][]float64, n)}
	apart := !m.grid.single() // what micro-batches gather each of them has to hide
	limits := []solve.Limit{{Use: make([][]float64, n), Max: l.memory}}
	if l.pipe > 1 {
		limits = append(limits, solve.Limit{Use: make([][]float64, n), Max: l.memory})
	}
	for i := range m.vars {
		x := &m.vars[i]
		p.Unary[i] = make([]float64, x.size())
		excess.Unary[i] = make([]float64, x.size())
		gathering.Unary[i] = make([]float64, x.size())
		for k := range limits {
			limits[k].Use[i] = make([]float64, x.size())
		}
		for _, at := range x.nodes {
			n := m.nodes[at]
			times := m.between(n.layer, n.layer)
			late, gathers := times*single, times*micro // how often it is on a device that is waited for, and how often gathered for
			hides, meets := late, gathers              // the same of what computation hides
			if k := l.course; k != nil {
				late, gathers, hides, meets = k.least.once[n.layer], k.least.gathers(n.layer), k.most.once[n.layer], k.most.gathers(n.layer)
				if n.unit >= 0 && l.free { // what is computed again hides more, and is in the course as often as its passes back
					back := k.least.inputs[n.layer]
					hides, meets = max(hides, 2*hides-back), max(meets, 2*meets-back)
				}
			}
			for c, s := range x.strategies {
				p.Unary[i][c] += m.takes(n, &s, l)
				if n.o == nil {
					beside, comm := &excess, s.comm*late
					if s.again {
						comm = float64(m.passes(m.result(n, 0))) * s.comm * gathers
						if apart {
							beside = &gathering
						}
					}
					beside.Unary[i][c] += l.hidden * comm
					p.Unary[i][c] += (1 - l.hidden) * comm
				}
				if n.o != nil && n.phase != once {
					computes := s.time * n.again(l.recompute)
					excess.Unary[i][c] -= computes * hides
					gathering.Unary[i][c] -= computes * meets
				}
				for k := range limits {
					limits[k].Use[i][c] += m.holds(n, &s, l, k)
				}
			}
		}
		m.roomless(x, l.memory, p.Unary[i])
		for _, at := range x.values {
			v := m.values[at]
			for c, lay := range x.layouts {
				for k := range limits {
					limits[k].Use[i][c] += m.holdsValue(v, lay, l, k)
				}
			}
		}
	}
	m.tables(p, &excess, l)
	p.Limits = limits
	p.Excess = []solve.Excess{excess}
	if apart {
		gathering.Edges = make([][]float64, len(p.Edges))
		p.Excess = append(p.Excess, gathering)
	}
	return p
}

// tables adds the conversions on links: edges between variables.
func (m *model) tables(p *solve.Problem, excess *solve.Excess, l load) {
	type pair struct{ u, v int }
	at := map[pair]int{}
	for i := range m.links {
		k := &m.links[i]
		from, to := m.vars[k.from].size(), m.vars[k.to].size()
		table := m.conversions(k, m.passed(k, l))
		if table == nil {
			continue
		}
		u, w2 := k.from, k.to
		if u == w2 { // a variable with itself, as of layers in a row
			for a := range from {
				t := table[a*to+a]
				if k.deferred {
					excess.Unary[u][a] += l.hidden * t
					t *= 1 - l.hidden
				}
				p.Unary[u][a] += t
			}
			continue
		}
		e, ok := at[pair{u, w2}]
		if !ok {
			if f, back := at[pair{w2, u}]; back {
				e, ok = f, true
				table = transposed(table, from, to)
			}
		}
		if !ok {
			e = len(p.Edges)
			at[pair{u, w2}] = e
			p.Edges = append(p.Edges, solve.Edge{U: u, V: w2, Cost: make([]float64, from*to)})
			excess.Edges = append(excess.Edges, nil)
		}
		if k.deferred && excess.Edges[e] == nil {
			excess.Edges[e] = make([]float64, from*to)
		}
		for i, t := range table {
			if k.deferred {
				excess.Edges[e][i] += l.hidden * t
				t *= 1 - l.hidden
			}
			p.Edges[e].Cost[i] += t
		}
	}
}

// isContraction reports whether most of n's time is on the units of contractions.
func isContraction(n *node) bool {
	return n.o != nil && (op.Of(n.o).Class == op.ClassContraction || isAttention(n))
}
