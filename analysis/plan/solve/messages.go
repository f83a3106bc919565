package solve

import "math"

// A diffuser bounds a model from below where elimination takes too many entries. It eliminates the
// variables with up to two neighbours, and moves costs between the variables and edges of the rest so
// that all stay ≥ 0 and the constant grows: sequential tree-reweighted message passing (Kolmogorov,
// "Convergent tree-reweighted message passing for energy minimization", 2006), in the form of soft arc
// consistency, where costs are moved and never copied (Cooper et al., "Soft arc consistency revisited",
// 2010), so that the constant is a bound at any time.
type diffuser struct {
	e      *eliminator
	nodes  []diffuse
	links  []link
	bound  float64 // the constant
	stats  *Stats
	sweeps int
	row    []float64
}

// A diffuse is a variable of the core.
type diffuse struct {
	v           int
	cost        []float64 // what was moved to it; ≥ 0 after its turn in a sweep
	links       []int     // those to earlier nodes first
	back, ahead int       // numbers of links to earlier and later nodes
}

// A link is the sum of the tables between two nodes. Its cost of a pair is table − a − b.
type link struct {
	u, v   int // nodes, u before v
	table  []float64
	a, b   []float64 // what was moved to u and to v
	shared []linkPart
}

type linkPart struct {
	kind   factorKind
	at     int
	turned bool // the table has u's choices with stride 1
}

func newDiffuser(m *model, p *plan, sweeps int, stats *Stats) *diffuser {
	d := &diffuser{e: newEliminator(m, p, stats), stats: stats, sweeps: sweeps}
	node := make([]int, len(m.vars))
	most := 0
	for v := range node {
		node[v] = -1
	}
	for i, v := range p.core {
		node[v] = i
		most = max(most, m.size(v))
		d.nodes = append(d.nodes, diffuse{v: v, cost: make([]float64, m.size(v))})
	}
	d.row = make([]float64, most)
	between := map[[2]int]int{}
	join := func(a, b int, part linkPart) {
		u, v := min(a, b), max(a, b)
		part.turned = a > b
		at, ok := between[[2]int{u, v}]
		if !ok {
			at = len(d.links)
			between[[2]int{u, v}] = at
			du, dv := len(d.nodes[u].cost), len(d.nodes[v].cost)
			d.links = append(d.links, link{u: u, v: v, table: make([]float64, du*dv), a: make([]float64, du), b: make([]float64, dv)})
		}
		d.links[at].shared = append(d.links[at].shared, part)
	}
	for i := range m.edges {
		// The eliminator stores edges with the variable of lower rank, here the lower variable, last.
		if e := &m.edges[i]; node[e.u] >= 0 && node[e.v] >= 0 {
			join(node[e.v], node[e.u], linkPart{kind: ofEdge, at: i})
		}
	}
	for s := range p.steps {
		if t := &p.steps[s]; len(t.scope) == 2 && node[t.scope[0]] >= 0 && node[t.scope[1]] >= 0 {
			join(node[t.scope[0]], node[t.scope[1]], linkPart{kind: ofStep, at: s})
		}
	}
	for i, l := range d.links {
		d.nodes[l.u].ahead++
		d.nodes[l.v].back++
		d.nodes[l.v].links = append(d.nodes[l.v].links, i)
	}
	for i, l := range d.links {
		d.nodes[l.u].links = append(d.nodes[l.u].links, i)
	}
	return d
}

// load sets the costs of the core. Costs that earlier sweeps moved stay where they are.
func (d *diffuser) load(w []float64) bool {
	e := d.e
	e.load(w)
	d.bound = e.run()
	if math.IsInf(d.bound, 1) {
		return false
	}
	node := make(map[int]int, len(d.nodes))
	for i := range d.nodes {
		n := &d.nodes[i]
		node[n.v] = i
		copy(n.cost, e.tables[e.ids[ofVariable][n.v]].data)
	}
	for s := range e.p.steps {
		if t := &e.p.steps[s]; len(t.scope) == 1 {
			if i, ok := node[t.scope[0]]; ok {
				addTo(d.nodes[i].cost, e.tables[e.ids[ofStep][s]].data)
			}
		}
	}
	for i := range d.links {
		l := &d.links[i]
		du, dv := len(l.a), len(l.b)
		clear(l.table)
		for _, part := range l.shared {
			data := e.tables[e.ids[part.kind][part.at]].data
			if !part.turned {
				addTo(l.table, data)
				continue
			}
			for b := range dv {
				for a := range du {
					l.table[a*dv+b] += data[b*du+a]
				}
			}
		}
		moveBack(d.nodes[l.u].cost, l.a)
		moveBack(d.nodes[l.v].cost, l.b)
	}
	return true
}

// moveBack adds what earlier sweeps moved; what is forbidden stays so.
func moveBack(cost, moved []float64) {
	for i, c := range moved {
		if math.IsInf(c, -1) {
			cost[i] = math.Inf(1)
		} else {
			cost[i] += c
		}
	}
}

// pull moves to node n what link i costs in any case.
func (d *diffuser) pull(n *diffuse, i int) {
	l := &d.links[i]
	du, dv := len(l.a), len(l.b)
	if d.nodes[l.v].v == n.v {
		row := d.row[:dv]
		for j := range row {
			row[j] = math.Inf(1)
		}
		for a := range du {
			f := l.a[a]
			table := l.table[a*dv:][:len(row)]
			for j, least := range row {
				if c := table[j] - f; c < least {
					row[j] = c
				}
			}
		}
		n.take(row, l.b)
		return
	}
	row := d.row[:du]
	for a := range row {
		least := math.Inf(1)
		table := l.table[a*dv:][:len(l.b)]
		for j, f := range l.b {
			if c := table[j] - f; c < least {
				least = c
			}
		}
		row[a] = least
	}
	n.take(row, l.a)
}

func (n *diffuse) take(row, moved []float64) {
	for i, c := range row {
		switch {
		case math.IsInf(n.cost[i], 1) || math.IsInf(c, 1):
			n.cost[i], moved[i] = math.Inf(1), math.Inf(-1)
		default:
			n.cost[i] += c - moved[i]
			moved[i] = c
		}
	}
}

// turn pulls from a node's links on one side, moves its least cost to the constant, and shares the rest
// among the links on the other side. It reports false if the node has no choice of finite cost.
func (d *diffuser) turn(at int, forward bool, x []int) bool {
	n := &d.nodes[at]
	from, to := n.links[:n.back], n.links[n.back:]
	if !forward {
		from, to = to, from
	}
	for _, i := range from {
		d.pull(n, i)
	}
	least := math.Inf(1)
	for _, c := range n.cost {
		least = min(least, c)
	}
	if math.IsInf(least, 1) {
		return false
	}
	d.bound += least
	for i := range n.cost {
		n.cost[i] -= least
	}
	if x != nil {
		x[n.v] = d.round(n, x)
	}
	if len(to) == 0 {
		return true
	}
	share := 1 / float64(max(n.back, n.ahead))
	for _, i := range to {
		l := &d.links[i]
		moved := l.a
		if d.nodes[l.v].v == n.v {
			moved = l.b
		}
		for k, c := range n.cost {
			if math.IsInf(c, 1) {
				moved[k] = math.Inf(-1)
			} else {
				moved[k] -= share * c
			}
		}
	}
	rest := 1 - share*float64(len(to))
	for k, c := range n.cost {
		if !math.IsInf(c, 1) {
			n.cost[k] = max(0, rest*c)
		}
	}
	return true
}

// round returns the best choice of a node given those of the earlier ones.
func (d *diffuser) round(n *diffuse, x []int) int {
	row := d.row[:len(n.cost)]
	copy(row, n.cost)
	for _, i := range n.links[:n.back] {
		l := &d.links[i]
		a := x[d.nodes[l.u].v]
		f := l.a[a]
		for j, c := range l.table[a*len(l.b) : (a+1)*len(l.b)] {
			if c -= f + l.b[j]; !math.IsNaN(c) {
				row[j] += c
			}
		}
	}
	return lowest(row)
}

// sweep visits the nodes forward and backward. It reports false if no choice has a finite cost.
func (d *diffuser) sweep(x []int) bool {
	d.stats.Sweeps++
	for i := range d.nodes {
		if !d.turn(i, true, x) {
			return false
		}
	}
	for i := len(d.nodes) - 1; i >= 0; i-- {
		if !d.turn(i, false, nil) {
			return false
		}
	}
	return true
}

// run returns a lower bound of the weighted layers, and sets x to a choice whose sum should be low.
// It ends when sweeps hardly raise the bound, when the bound reaches enough, or when ended reports true.
func (d *diffuser) run(w []float64, x []int, enough float64, visit func(), ended func() bool) float64 {
	if !d.load(w) {
		return math.Inf(1)
	}
	last := math.Inf(-1)
	for k := range d.sweeps {
		round := x
		if k%8 != 7 && k != 0 {
			round = nil
		}
		if !d.sweep(round) {
			return math.Inf(1)
		}
		if round != nil {
			d.e.trace(x)
			visit()
		}
		if d.bound >= enough || ended() {
			break
		}
		if k%8 == 7 {
			if gain := d.bound - last; gain <= 1e-6*math.Abs(d.bound) || gain < (enough-d.bound)/32 {
				break
			}
			last = d.bound
		}
	}
	return d.bound
}

// margins returns for the variables of the core how much the sum grows at least above the bound with
// each choice.
func (d *diffuser) margins() [][]float64 {
	out := make([][]float64, len(d.e.m.vars))
	for i := range d.nodes {
		n := &d.nodes[i]
		for _, l := range n.links {
			d.pull(n, l)
		}
		out[n.v] = append([]float64(nil), n.cost...)
		least := math.Inf(1)
		for _, c := range n.cost {
			least = min(least, c)
		}
		if !math.IsInf(least, 1) && least > 0 {
			d.bound += least
			for k := range n.cost {
				n.cost[k] -= least
				out[n.v][k] -= least
			}
		}
	}
	return out
}
