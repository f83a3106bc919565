package solve

import (
	"container/heap"
	"slices"
)

// A plan is an order of elimination of variables with the tables that it needs: bucket elimination
// (Dechter, "Bucket elimination: a unifying framework for reasoning", 1999). It depends on the sizes
// of the variables and on the edges, not on costs.
type plan struct {
	steps   []step
	stepOf  []int // by variable: its step, or −1 for those of core
	entries int   // of all steps: choices of the variable times those of its scope
	core    []int // variables that the plan leaves, where elimination would take too many entries
}

// A step eliminates v: its message is, for each choice of scope, the least sum of its factors.
type step struct {
	v       int
	scope   []int // the neighbours at that time, the one to be eliminated first last
	size    int   // choices of scope
	factors []factor
	shape   int // equal for steps of equal sizes and strides
}

// A factor of a step is a table in which v has stride 1.
type factor struct {
	kind    factorKind
	at      int   // the variable, edge, or step
	strides []int // by position in scope; 0: does not depend on it
	level   int   // 1 + the last position in scope that it depends on; 0: on v alone
}

type factorKind uint8

const (
	ofVariable factorKind = iota
	ofEdge
	ofStep
)

// A weight is the product of the sizes of a variable and its neighbours, in the heap of order.
type weight struct {
	v       int
	entries float64
}

type weights struct {
	items []weight
	where []int // by variable: index in items, −1: none
}

func (h *weights) Len() int { return len(h.items) }
func (h *weights) Less(i, j int) bool {
	a, b := h.items[i], h.items[j]
	return a.entries < b.entries || (a.entries == b.entries && a.v < b.v)
}

func (h *weights) Swap(i, j int) {
	h.items[i], h.items[j] = h.items[j], h.items[i]
	h.where[h.items[i].v], h.where[h.items[j].v] = i, j
}

func (h *weights) Push(x any) {
	h.where[x.(weight).v] = len(h.items)
	h.items = append(h.items, x.(weight))
}

func (h *weights) Pop() any {
	last := h.items[len(h.items)-1]
	h.items = h.items[:len(h.items)-1]
	h.where[last.v] = -1
	return last
}

// order plans the elimination of m's variables, the one with the fewest entries next, until all are
// gone, one takes more than the entries given, or one has more than scope neighbours; the rest is the
// plan's core. Variables with one choice need no step.
func order(m *model, entries float64, scope int) *plan {
	n := len(m.vars)
	p := &plan{stepOf: make([]int, n)}
	near := make([][]int, n) // sorted
	for v := range m.vars {
		p.stepOf[v] = -1
		for _, e := range m.vars[v].edges {
			near[v] = append(near[v], m.edges[e].other(v))
		}
		slices.Sort(near[v])
	}
	h := &weights{where: make([]int, n)}
	count := func(v int) float64 {
		c := float64(m.size(v))
		for _, w := range near[v] {
			c *= float64(m.size(w))
		}
		return c
	}
	for v := range m.vars {
		h.where[v] = -1
		if m.size(v) > 1 {
			h.where[v] = len(h.items)
			h.items = append(h.items, weight{v, count(v)})
		}
	}
	heap.Init(h)
	left := entries
	var late []weight
	for h.Len() > 0 {
		next := heap.Pop(h).(weight)
		if next.entries > left {
			late = append(late, next)
			break
		}
		v := next.v
		if len(near[v]) > scope {
			late = append(late, next)
			continue
		}
		left -= next.entries
		p.entries += int(next.entries)
		p.stepOf[v] = len(p.steps)
		p.steps = append(p.steps, step{v: v, scope: near[v]})
		for _, a := range near[v] {
			near[a] = join(near[a], near[v], a, v)
		}
		for _, a := range near[v] {
			if at := h.where[a]; at >= 0 {
				h.items[at].entries = count(a)
				heap.Fix(h, at)
			} else if i := slices.IndexFunc(late, func(w weight) bool { return w.v == a }); i >= 0 {
				late = slices.Delete(late, i, i+1)
				heap.Push(h, weight{a, count(a)})
			}
		}
	}
	for _, w := range slices.Concat(late, h.items) {
		p.core = append(p.core, w.v)
	}
	slices.Sort(p.core)
	p.wire(m)
	return p
}

// join returns the union of two sorted lists without x and y.
func join(a, b []int, x, y int) []int {
	out := make([]int, 0, len(a)+len(b))
	for len(a) > 0 || len(b) > 0 {
		var next int
		switch {
		case len(b) == 0 || (len(a) > 0 && a[0] < b[0]):
			next, a = a[0], a[1:]
		case len(a) == 0 || b[0] < a[0]:
			next, b = b[0], b[1:]
		default:
			next, a, b = a[0], a[1:], b[1:]
		}
		if next != x && next != y {
			out = append(out, next)
		}
	}
	return out
}

// rank is the number of the step of a variable; those of the core follow all steps.
func (p *plan) rank(v int) int {
	if s := p.stepOf[v]; s >= 0 {
		return s
	}
	return len(p.steps) + v
}

// wire lists the factors of each step and their strides.
func (p *plan) wire(m *model) {
	received := make([][]int, len(p.steps))
	shapes := map[string]int{}
	var key []byte
	for s := range p.steps {
		t := &p.steps[s]
		slices.SortFunc(t.scope, func(a, b int) int { return p.rank(b) - p.rank(a) })
		t.size = 1
		for _, w := range t.scope {
			t.size *= m.size(w)
		}
		t.factors = append(t.factors, factor{kind: ofVariable, at: t.v, strides: make([]int, len(t.scope))})
		for _, e := range m.vars[t.v].edges {
			w := m.edges[e].other(t.v)
			if p.rank(w) < s {
				continue
			}
			f := factor{kind: ofEdge, at: e, strides: make([]int, len(t.scope))}
			f.strides[slices.Index(t.scope, w)] = m.size(t.v)
			t.factors = append(t.factors, f)
		}
		for _, c := range received[s] {
			f := factor{kind: ofStep, at: c, strides: make([]int, len(t.scope))}
			stride := 1
			scope := p.steps[c].scope
			for i := len(scope) - 1; i >= 0; i-- {
				if w := scope[i]; w != t.v {
					f.strides[slices.Index(t.scope, w)] = stride
				}
				stride *= m.size(scope[i])
			}
			t.factors = append(t.factors, f)
		}
		for i := range t.factors {
			f := &t.factors[i]
			for at, stride := range f.strides {
				if stride != 0 {
					f.level = at + 1
				}
			}
		}
		if len(t.scope) > 0 {
			if to := p.stepOf[t.scope[len(t.scope)-1]]; to >= 0 {
				received[to] = append(received[to], s)
			}
		}
		key = appendInts(key[:0], m.size(t.v), len(t.scope))
		for _, w := range t.scope {
			key = appendInts(key, m.size(w))
		}
		for _, f := range t.factors {
			key = appendInts(key, f.strides...)
		}
		shape, ok := shapes[string(key)]
		if !ok {
			shape = len(shapes)
			shapes[string(key)] = shape
		}
		t.shape = shape
	}
}

func appendInts(to []byte, xs ...int) []byte {
	for _, x := range xs {
		to = append(to, byte(x), byte(x>>8), byte(x>>16), byte(x>>24))
	}
	return to
}
