package solve

import (
	"math"
	"slices"
)

// An eliminator minimises a model's layers, weighted and added up, along a plan. Tables of equal
// content are stored once, and a step whose factors are those of an earlier one of its shape is not
// computed again: repeated layers of a network are eliminated once, and what a change of one
// variable does not reach is not eliminated again.
type eliminator struct {
	m    *model
	p    *plan
	only [][]bool // the choices allowed, by variable; nil: all

	tables  []table
	byHash  map[uint64]int32 // the last table of a hash
	memo    map[uint64]int32 // the last entry of a hash in results
	results []result
	edgeIDs []int32 // tables of edges whose cost is layer 0 alone; −1: not stored yet
	stored  int     // numbers in tables

	offset float64 // of the weighted bases and the constants taken out of tables
	ids    [3][]int32
	free   []float64 // where new tables are cut from
	rows   []float64 // the sums of each level of the scope
	offs   []int     // offset of each factor
	vals   [][]float64
	key    []int32
	stats  *Stats
}

type table struct {
	data []float64
	next int32 // the table before it with the same hash, −1: none
}

type result struct {
	key  []int32
	id   int32
	min  float64
	next int32
}

func newEliminator(m *model, p *plan, stats *Stats) *eliminator {
	e := &eliminator{m: m, p: p, stats: stats}
	e.ids[ofVariable] = make([]int32, len(m.vars))
	e.ids[ofEdge] = make([]int32, len(m.edges))
	e.ids[ofStep] = make([]int32, len(p.steps))
	e.edgeIDs = make([]int32, len(m.edges))
	levels, widest := 0, 0
	for s := range p.steps {
		t := &p.steps[s]
		levels = max(levels, (len(t.scope)+1)*m.size(t.v))
		widest = max(widest, len(t.factors))
	}
	e.rows = make([]float64, levels)
	e.offs = make([]int, widest+1)
	e.vals = make([][]float64, widest+1)
	e.forget()
	return e
}

// forget drops all tables.
func (e *eliminator) forget() {
	e.tables, e.results, e.stored, e.free = e.tables[:0], e.results[:0], 0, nil
	e.byHash, e.memo = map[uint64]int32{}, map[uint64]int32{}
	for i := range e.edgeIDs {
		e.edgeIDs[i] = -1
	}
}

func (e *eliminator) alloc(n int) []float64 {
	if n > len(e.free) {
		e.free = make([]float64, max(n, 1<<14))
	}
	out := e.free[:n:n]
	return out
}

// intern stores a table that alloc returned, or finds one of equal content.
func (e *eliminator) intern(data []float64) int32 {
	h := hashFloats(data)
	first, ok := e.byHash[h]
	if !ok {
		first = -1
	}
	for at := first; at >= 0; at = e.tables[at].next {
		if slices.Equal(e.tables[at].data, data) {
			return at
		}
	}
	e.free = e.free[len(data):]
	e.stored += len(data)
	id := int32(len(e.tables))
	e.tables = append(e.tables, table{data, first})
	e.byHash[h] = id
	return id
}

func hashFloats(data []float64) uint64 {
	const prime = 0x9E3779B97F4A7C15
	a, b := uint64(len(data)), uint64(prime)
	i := 0
	for ; i+1 < len(data); i += 2 {
		a = (a ^ math.Float64bits(data[i])) * prime
		b = (b ^ math.Float64bits(data[i+1])) * prime
		a ^= a >> 29
		b ^= b >> 31
	}
	if i < len(data) {
		a = (a ^ math.Float64bits(data[i])) * prime
	}
	return (a ^ b>>32 ^ b<<32) * prime
}

// load stores the weighted costs of variables and edges.
func (e *eliminator) load(w []float64) {
	if e.stored > 4*e.p.entries+1<<22 {
		e.forget()
	}
	e.offset = 0
	for l, b := range e.m.base {
		if w[l] != 0 {
			e.offset += w[l] * b
		}
	}
	for v := range e.m.vars {
		if e.m.size(v) > 1 {
			e.ids[ofVariable][v] = e.loadVariable(v, w)
		}
	}
	for i := range e.m.edges {
		e.ids[ofEdge][i] = e.loadEdge(i, w)
	}
}

func (e *eliminator) loadVariable(v int, w []float64) int32 {
	x := &e.m.vars[v]
	data := e.alloc(len(x.choices))
	copy(data, x.cost[0])
	if w[0] != 1 {
		for i := range data {
			if !math.IsInf(data[i], 1) {
				data[i] *= w[0]
			}
		}
	}
	for l := 1; l < len(x.cost); l++ {
		if c := x.cost[l]; c != nil && w[l] != 0 {
			for i := range data {
				data[i] += w[l] * c[i]
			}
		}
	}
	if e.only != nil {
		for i, on := range e.only[v] {
			if !on {
				data[i] = math.Inf(1)
			}
		}
	}
	return e.intern(data)
}

// loadEdge stores the cost of an edge so that the variable eliminated first has stride 1.
func (e *eliminator) loadEdge(i int, w []float64) int32 {
	x := &e.m.edges[i]
	plain := w[0] == 1
	for l := 1; l < len(x.cost); l++ {
		plain = plain && (x.cost[l] == nil || w[l] == 0)
	}
	if plain && e.edgeIDs[i] >= 0 {
		return e.edgeIDs[i]
	}
	du, dv := e.m.size(x.u), e.m.size(x.v)
	data := e.alloc(du * dv)
	turned := e.p.rank(x.u) < e.p.rank(x.v)
	for l, c := range x.cost {
		if c == nil || (l > 0 && w[l] == 0) {
			continue
		}
		f := w[l]
		at := 0
		for a := range du {
			for b := range dv {
				to := at
				if turned {
					to = b*du + a
				}
				switch {
				case l > 0:
					data[to] += f * c[at]
				case math.IsInf(c[at], 1):
					data[to] = c[at]
				default:
					data[to] = f * c[at]
				}
				at++
			}
		}
	}
	id := e.intern(data)
	if plain {
		e.edgeIDs[i] = id
	}
	return id
}

// run eliminates every step of the plan. It returns the least sum, without what is left in the
// core, and +Inf if there is none.
func (e *eliminator) run() float64 {
	total := e.offset
	for s := range e.p.steps {
		id, least := e.step(s)
		e.ids[ofStep][s] = id
		total += least
		if math.IsInf(total, 1) {
			return total
		}
	}
	return total
}

// step returns the message of a step less its minimum, and the minimum.
func (e *eliminator) step(s int) (int32, float64) {
	t := &e.p.steps[s]
	e.key = append(e.key[:0], int32(t.shape))
	h := uint64(t.shape)
	for i := range t.factors {
		id := e.ids[t.factors[i].kind][t.factors[i].at]
		e.key = append(e.key, id)
		h = (h ^ uint64(id)) * 0x9E3779B97F4A7C15
		h ^= h >> 32
	}
	first, ok := e.memo[h]
	if !ok {
		first = -1
	}
	for at := first; at >= 0; at = e.results[at].next {
		if r := &e.results[at]; slices.Equal(r.key, e.key) {
			e.stats.Reused++
			return r.id, r.min
		}
	}
	e.stats.Computed++
	for i := range t.factors {
		e.vals[i] = e.tables[e.key[1+i]].data
	}
	data := e.alloc(t.size)
	e.minimize(t, data)
	least := slices.Min(data)
	if !math.IsInf(least, 1) {
		for i := range data {
			data[i] -= least
		}
	}
	id := e.intern(data)
	e.memo[h] = int32(len(e.results))
	e.results = append(e.results, result{slices.Clone(e.key), id, least, first})
	return id, least
}

// minimize fills a step's message from e.vals, the tables of its factors. It runs through the choices
// of the scope level by level; row l holds for each choice of the variable the sum of the factors that
// depend on no more than the first l variables of the scope.
func (e *eliminator) minimize(t *step, out []float64) {
	d := e.m.size(t.v)
	row := e.rows[:d]
	clear(row)
	for i := range t.factors {
		e.offs[i] = 0
		if t.factors[i].level == 0 {
			addTo(row, e.vals[i][:d])
		}
	}
	if len(t.scope) == 0 {
		out[0] = slices.Min(row)
		return
	}
	e.level(t, 0, out)
}

func (e *eliminator) level(t *step, l int, out []float64) {
	d := e.m.size(t.v)
	n := e.m.size(t.scope[l])
	from, row := e.rows[l*d:(l+1)*d], e.rows[(l+1)*d:(l+2)*d]
	inner := len(out) / n
	lastLevel := l+1 == len(t.scope)
	for x := range n {
		first := true
		for i := range t.factors {
			f := &t.factors[i]
			if f.level != l+1 {
				continue
			}
			at := e.offs[i] + x*f.strides[l]
			values := e.vals[i][at : at+d]
			if first {
				sumTo(row, from, values)
				first = false
			} else {
				addTo(row, values)
			}
		}
		if first {
			copy(row, from)
		}
		if lastLevel {
			least := row[0]
			for _, c := range row[1:] {
				if c < least {
					least = c
				}
			}
			out[x] = least
			continue
		}
		for i := range t.factors {
			if f := &t.factors[i]; f.level > l+1 {
				e.offs[i] += x * f.strides[l]
			}
		}
		e.level(t, l+1, out[x*inner:(x+1)*inner])
		for i := range t.factors {
			if f := &t.factors[i]; f.level > l+1 {
				e.offs[i] -= x * f.strides[l]
			}
		}
	}
}

func addTo(to, from []float64) {
	from = from[:len(to)]
	for i := range to {
		to[i] += from[i]
	}
}

func sumTo(to, a, b []float64) {
	a, b = a[:len(to)], b[:len(to)]
	for i := range to {
		to[i] = a[i] + b[i]
	}
}

// trace sets x to the choices that make the least sum, where x holds those of the core.
func (e *eliminator) trace(x []int) {
	for s := len(e.p.steps) - 1; s >= 0; s-- {
		t := &e.p.steps[s]
		row := e.rows[:e.m.size(t.v)]
		clear(row)
		for i := range t.factors {
			f := &t.factors[i]
			at := 0
			for k, w := range t.scope {
				at += f.strides[k] * x[w]
			}
			addTo(row, e.tables[e.ids[f.kind][f.at]].data[at:at+len(row)])
		}
		x[t.v] = lowest(row)
	}
}

func lowest(row []float64) int {
	at := 0
	for i, c := range row {
		if c < row[at] {
			at = i
		}
	}
	return at
}

// margins returns for each variable and choice how much the least sum grows if the variable has that
// choice: a second pass from the last step to the first (two-pass bucket elimination, Dechter 1999).
func (e *eliminator) margins() [][]float64 {
	out := make([][]float64, len(e.m.vars))
	down := make([][]float64, len(e.p.steps))
	var belief []float64
	for s := len(e.p.steps) - 1; s >= 0; s-- {
		t := &e.p.steps[s]
		d := e.m.size(t.v)
		for i := range t.factors {
			e.vals[i] = e.tables[e.ids[t.factors[i].kind][t.factors[i].at]].data
			e.offs[i] = 0
		}
		belief = slices.Grow(belief[:0], t.size*d)[:t.size*d]
		row := e.rows[:d]
		clear(row)
		for i := range t.factors {
			if t.factors[i].level == 0 {
				addTo(row, e.vals[i][:d])
			}
		}
		if len(t.scope) == 0 {
			copy(belief, row)
		} else {
			e.spread(t, 0, belief)
		}
		if down[s] != nil {
			for i, c := range down[s] {
				for k := range d {
					belief[i*d+k] += c
				}
			}
		}
		margin := make([]float64, d)
		for k := range margin {
			margin[k] = math.Inf(1)
		}
		for i := 0; i < len(belief); i += d {
			for k, c := range belief[i : i+d] {
				margin[k] = min(margin[k], c)
			}
		}
		if least := slices.Min(margin); !math.IsInf(least, 1) {
			for k := range margin {
				margin[k] -= least
			}
		}
		out[t.v] = margin
		for i := range t.factors {
			if t.factors[i].kind == ofStep {
				down[t.factors[i].at] = e.project(t, i, belief)
			}
		}
	}
	return out
}

// spread is level with the sums in place of their minimum.
func (e *eliminator) spread(t *step, l int, out []float64) {
	d := e.m.size(t.v)
	n := e.m.size(t.scope[l])
	from, row := e.rows[l*d:(l+1)*d], e.rows[(l+1)*d:(l+2)*d]
	inner := len(out) / n
	for x := range n {
		copy(row, from)
		for i := range t.factors {
			if f := &t.factors[i]; f.level == l+1 {
				at := e.offs[i] + x*f.strides[l]
				addTo(row, e.vals[i][at:at+d])
			}
		}
		if l+1 == len(t.scope) {
			copy(out[x*d:], row)
			continue
		}
		for i := range t.factors {
			e.offs[i] += x * t.factors[i].strides[l]
		}
		e.spread(t, l+1, out[x*inner:(x+1)*inner])
		for i := range t.factors {
			e.offs[i] -= x * t.factors[i].strides[l]
		}
	}
}

// project returns what a step and all that follow it add to the message of one of its factors: the
// least of belief for each entry of the message, less the message.
func (e *eliminator) project(t *step, factor int, belief []float64) []float64 {
	message := e.vals[factor]
	out := make([]float64, len(message))
	for i := range out {
		out[i] = math.Inf(1)
	}
	d := e.m.size(t.v)
	strides := t.factors[factor].strides
	at := make([]int, len(t.scope))
	offset := 0
	for i := 0; i < len(belief); i += d {
		to := out[offset : offset+d]
		for k, c := range belief[i : i+d] {
			if c < to[k] {
				to[k] = c
			}
		}
		for l := len(at) - 1; l >= 0; l-- {
			at[l]++
			offset += strides[l]
			if at[l] < e.m.size(t.scope[l]) {
				break
			}
			offset -= at[l] * strides[l]
			at[l] = 0
		}
	}
	for i, c := range message {
		if !math.IsInf(c, 1) {
			out[i] -= c
		}
	}
	return out
}
