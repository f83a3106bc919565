package solve

import (
	"math"
	"slices"
)

// A model is a problem in layers, which are sums of the same form: layer 0 is the cost, then come the
// excess terms, then the limits, whose base is −Max. The value of a choice is the sum of layer 0 and
// of max(0, x) for each excess layer x, if no limit's layer is above 0. A model has at most one
// edge between two variables.
type model struct {
	excess, limits int
	base           []float64 // by layer
	margin         []float64 // by layer: more than rounding makes of a sum of the problem's numbers
	vars           []variable
	edges          []edge
}

type variable struct {
	choices []int       // in the problem
	cost    [][]float64 // by layer, by choice; nil: zeros
	edges   []int
}

// An edge's u is less than its v. Limits have no costs of edges.
type edge struct {
	u, v  int
	cost  [][]float64 // by layer; that of choices i and j at i·(choices of v) + j; nil: zeros
	whole bool        // known not to be separable
}

func (m *model) layers() int        { return 1 + m.excess + m.limits }
func (m *model) isLimit(l int) bool { return l > m.excess }
func (m *model) size(v int) int     { return len(m.vars[v].choices) }
func (e *edge) other(v int) int     { return e.u + e.v - v }

// compile returns the layers of a problem, with edges between the same variables added up.
func compile(p *Problem) *model {
	m := &model{excess: len(p.Excess), limits: len(p.Limits), vars: make([]variable, len(p.Unary))}
	m.base, m.margin = make([]float64, m.layers()), make([]float64, m.layers())
	for v := range m.vars {
		x := &m.vars[v]
		x.choices = make([]int, len(p.Unary[v]))
		for i := range x.choices {
			x.choices[i] = i
		}
		x.cost = make([][]float64, m.layers())
		x.cost[0] = append([]float64(nil), p.Unary[v]...)
	}
	layer := func(l int, lists [][]float64, base float64) {
		m.base[l] = base
		m.margin[l] = math.Abs(base)
		for v, c := range lists {
			if len(c) > 0 {
				m.vars[v].cost[l] = append([]float64(nil), c...)
				m.margin[l] += max(math.Abs(slices.Max(c)), math.Abs(slices.Min(c)))
			}
		}
		m.margin[l] *= 1e-12
	}
	for i, x := range p.Excess {
		layer(1+i, x.Unary, x.Base)
	}
	for i, l := range p.Limits {
		layer(1+m.excess+i, l.Use, -l.Max)
	}
	joined := map[[2]int]int{}
	for i := range p.Edges {
		from := &p.Edges[i]
		u, v := min(from.U, from.V), max(from.U, from.V)
		at, ok := joined[[2]int{u, v}]
		if !ok {
			at = len(m.edges)
			joined[[2]int{u, v}] = at
			m.edges = append(m.edges, edge{u: u, v: v, cost: make([][]float64, 1+m.excess)})
		}
		e := &m.edges[at]
		m.add(e, 0, from, from.Cost)
		for k := range p.Excess {
			if lists := p.Excess[k].Edges; i < len(lists) && lists[i] != nil {
				m.add(e, 1+k, from, lists[i])
			}
		}
	}
	m.connect()
	return m
}

func (m *model) add(e *edge, layer int, from *Edge, cost []float64) {
	du, dv := m.size(e.u), m.size(e.v)
	if e.cost[layer] == nil {
		e.cost[layer] = make([]float64, du*dv)
	}
	to := e.cost[layer]
	if from.U == e.u {
		for i, c := range cost {
			to[i] += c
		}
		return
	}
	for j := range dv {
		for i := range du {
			to[i*dv+j] += cost[j*du+i]
		}
	}
}

// connect lists the edges of each variable.
func (m *model) connect() {
	for v := range m.vars {
		m.vars[v].edges = m.vars[v].edges[:0]
	}
	for i := range m.edges {
		e := &m.edges[i]
		m.vars[e.u].edges = append(m.vars[e.u].edges, i)
		m.vars[e.v].edges = append(m.vars[e.v].edges, i)
	}
}

// scale is the largest finite number in the costs.
func (m *model) scale() float64 {
	most := 0.0
	of := func(cost []float64) {
		for _, c := range cost {
			if c = math.Abs(c); c <= math.MaxFloat64 {
				most = max(most, c)
			}
		}
	}
	for v := range m.vars {
		of(m.vars[v].cost[0])
	}
	for i := range m.edges {
		of(m.edges[i].cost[0])
	}
	return most
}

// sums adds up the layers of a choice, which is given by index of the model's choices.
func (m *model) sums(x []int, sums []float64) {
	copy(sums, m.base)
	for v := range m.vars {
		for l, c := range m.vars[v].cost {
			if c != nil {
				sums[l] += c[x[v]]
			}
		}
	}
	for i := range m.edges {
		e := &m.edges[i]
		at := x[e.u]*m.size(e.v) + x[e.v]
		for l, c := range e.cost {
			if c != nil {
				sums[l] += c[at]
			}
		}
	}
}

// choice returns a choice of the model as one of the problem.
func (m *model) choice(x []int) []int {
	out := make([]int, len(x))
	for v, i := range x {
		out[v] = m.vars[v].choices[i]
	}
	return out
}

// restrict returns the model without the choices that alive lacks. Variables with one choice left are
// folded into the layers' bases and the costs of their neighbours, and edges whose cost is a sum of
// costs of their two ends into the costs of these.
func (m *model) restrict(alive [][]bool) *model {
	out := &model{excess: m.excess, limits: m.limits, base: slices.Clone(m.base), margin: m.margin}
	out.vars = make([]variable, len(m.vars))
	kept := make([][]int, len(m.vars))
	for v := range m.vars {
		from, to := &m.vars[v], &out.vars[v]
		for i, ok := range alive[v] {
			if ok {
				kept[v] = append(kept[v], i)
				to.choices = append(to.choices, from.choices[i])
			}
		}
		to.cost = make([][]float64, len(from.cost))
		for l, c := range from.cost {
			if c != nil {
				to.cost[l] = gather(c, kept[v])
			}
		}
		if to.cost[0] == nil {
			to.cost[0] = make([]float64, len(to.choices))
		}
	}
	for i := range m.edges {
		e := &m.edges[i]
		if e.whole && len(kept[e.u]) == m.size(e.u) && len(kept[e.v]) == m.size(e.v) {
			out.edges = append(out.edges, edge{u: e.u, v: e.v, cost: slices.Clone(e.cost), whole: true})
			continue
		}
		f := edge{u: e.u, v: e.v, cost: make([][]float64, len(e.cost))}
		dv := m.size(e.v)
		for l, c := range e.cost {
			if c == nil {
				continue
			}
			f.cost[l] = make([]float64, 0, len(kept[e.u])*len(kept[e.v]))
			for _, a := range kept[e.u] {
				for _, b := range kept[e.v] {
					f.cost[l] = append(f.cost[l], c[a*dv+b])
				}
			}
		}
		if !out.separate(&f) {
			f.whole = true
			out.edges = append(out.edges, f)
		}
	}
	for v := range out.vars {
		x := &out.vars[v]
		if len(x.choices) != 1 {
			continue
		}
		for l, c := range x.cost {
			if c != nil {
				out.base[l] += c[0]
				x.cost[l] = nil
			}
		}
		x.cost[0] = []float64{0}
	}
	out.connect()
	return out
}

func gather(from []float64, at []int) []float64 {
	out := make([]float64, len(at))
	for i, a := range at {
		out[i] = from[a]
	}
	return out
}

// separate folds an edge into the costs of its ends if every layer of it is a sum of a cost of one
// and a cost of the other, as it is if one end has one choice.
func (m *model) separate(e *edge) bool {
	du, dv := m.size(e.u), m.size(e.v)
	for _, c := range e.cost {
		if c != nil && !separable(c, du, dv) {
			return false
		}
	}
	for l, c := range e.cost {
		if c == nil {
			continue
		}
		cu, cv := m.vars[e.u].cost[l], m.vars[e.v].cost[l]
		if cu == nil {
			cu = make([]float64, du)
			m.vars[e.u].cost[l] = cu
		}
		if cv == nil {
			cv = make([]float64, dv)
			m.vars[e.v].cost[l] = cv
		}
		if du == 1 {
			for j := range cv {
				cv[j] += c[j]
			}
			continue
		}
		for i := range cu {
			cu[i] += c[i*dv]
		}
		for j := 1; j < dv; j++ {
			cv[j] += c[j] - c[0]
		}
	}
	return true
}

func separable(c []float64, du, dv int) bool {
	if du == 1 || dv == 1 {
		return true
	}
	most := 0.0
	for _, x := range c {
		if math.IsInf(x, 1) {
			return false
		}
		most = max(most, math.Abs(x))
	}
	for i := 1; i < du; i++ {
		d := c[i*dv] - c[0]
		for j := 1; j < dv; j++ {
			if math.Abs(c[i*dv+j]-c[j]-d) > 1e-14*most {
				return false
			}
		}
	}
	return true
}
