// Package solvetest makes problems of the shape of a training step of a transformer, for tests and
// benchmarks of package solve.
package solvetest

import (
	"math/rand/v2"

	"dmir/analysis/plan/solve"
)

// A Shape is the size of a layered problem. The sizes of tensors vary with Seed.
type Shape struct {
	Layers int
	Axes   int     // of the mesh: the choices of a matrix product are 5 to this power
	Seed   uint64  // layers are equal but for Vary
	Vary   float64 // relative random change of each cost; 0: layers are equal
	Memory float64 // the limit as a share of what replicating everything uses; 0: none
	Hidden bool    // an excess term: communication of gradients beyond the backward computation
}

// The ways in which an axis of the mesh divides a tensor of three dimensions, or a matrix.
const (
	whole = iota
	first // batch, or rows of a matrix
	second
	last
)

// A maker builds a problem op by op.
type maker struct {
	p      *solve.Problem
	r      *rand.Rand
	shape  Shape
	specs  [][][]int // by variable, choice, axis: how the result is divided
	bytes  []float64 // by variable: of the result
	use    [][]float64
	hidden [][]float64
	edges  [][]float64
	width  float64 // devices along an axis
}

// Layered returns a problem with about 50 variables and 85 edges for each layer: parameters, the ops of
// the forward pass, and of the backward pass, which read values of the forward pass.
func Layered(s Shape) *solve.Problem {
	m := &maker{p: &solve.Problem{}, r: rand.New(rand.NewPCG(s.Seed, 7)), shape: s, width: 4}
	batch, hidden, inner, probs := 64.0, 8.0, 32.0, 64.0
	kinds := []struct{ x, w, y float64 }{ // bytes of the operand, the weight and the result
		{batch, hidden * 3, 3 * batch}, {batch, hidden, batch}, {batch, inner, 4 * batch}, {4 * batch, inner, batch},
	}
	for i := range kinds {
		f := 0.5 + m.r.Float64()
		kinds[i].w *= f
	}
	x := m.pointwise(batch, 1)
	type saved struct{ norm, qkv, scores, mix, proj, norm2, up, act, down, x, y, w0, w1, w2, w3 int }
	var layers []saved
	for range s.Layers {
		var l saved
		l.x = x
		l.w0, l.w1, l.w2, l.w3 = m.weight(kinds[0].w), m.weight(kinds[1].w), m.weight(kinds[2].w), m.weight(kinds[3].w)
		l.norm = m.pointwise(batch, 1, x)
		l.qkv = m.product(kinds[0].y, 6, false, l.norm, l.w0)
		l.scores = m.pointwise(probs, 4, l.qkv)
		l.mix = m.pointwise(batch, 4, l.scores, l.qkv)
		l.proj = m.product(batch, 2, false, l.mix, l.w1)
		l.y = m.pointwise(batch, 1, l.proj, x)
		l.norm2 = m.pointwise(batch, 1, l.y)
		l.up = m.product(kinds[2].y, 8, false, l.norm2, l.w2)
		l.act = m.pointwise(kinds[2].y, 1, l.up)
		l.down = m.product(batch, 8, false, l.act, l.w3)
		x = m.pointwise(batch, 1, l.down, l.y)
		layers = append(layers, l)
	}
	g := m.pointwise(batch, 1, x)
	for i := len(layers) - 1; i >= 0; i-- {
		l := layers[i]
		gradient := func(w, x, dy int, bytes float64) {
			d := m.product(bytes, 4, true, x, dy)
			u := m.update(bytes, d, w)
			m.update(bytes, u, w)
		}
		gradient(l.w3, l.act, g, kinds[3].w)
		dact := m.product(kinds[2].y, 8, false, g, l.w3)
		dup := m.pointwise(kinds[2].y, 1, dact, l.up)
		gradient(l.w2, l.norm2, dup, kinds[2].w)
		dnorm := m.product(batch, 8, false, dup, l.w2)
		dy := m.pointwise(batch, 1, m.pointwise(batch, 1, dnorm, l.y), g)
		gradient(l.w1, l.mix, dy, kinds[1].w)
		dmix := m.product(batch, 2, false, dy, l.w1)
		dscores := m.pointwise(probs, 4, dmix, l.qkv)
		dprobs := m.pointwise(probs, 4, dscores, l.scores)
		dqkv := m.pointwise(kinds[0].y, 4, dprobs, l.qkv, dmix, l.scores)
		gradient(l.w0, l.norm, dqkv, kinds[0].w)
		dx := m.product(batch, 6, false, dqkv, l.w0)
		g = m.pointwise(batch, 1, m.pointwise(batch, 1, dx, l.x), dy)
	}
	if s.Memory > 0 {
		whole := 0.0
		for _, b := range m.bytes {
			whole += b
		}
		m.p.Limits = []solve.Limit{{Use: m.use, Max: whole * s.Memory}}
	}
	if s.Hidden {
		m.p.Excess = []solve.Excess{{Base: -20 * float64(s.Layers), Unary: m.hidden, Edges: m.edges}}
	}
	return m.p
}

// assignments calls f with every assignment of one of n ways to each axis.
func (m *maker) assignments(n int, f func(axes []int)) {
	axes := make([]int, m.shape.Axes)
	for {
		f(axes)
		i := 0
		for ; i < len(axes); i++ {
			axes[i]++
			if axes[i] < n {
				break
			}
			axes[i] = 0
		}
		if i == len(axes) {
			return
		}
	}
}

func (m *maker) vary(c float64) float64 {
	return c * (1 + m.shape.Vary*(m.r.Float64()-0.5))
}

// variable adds a variable whose choices are assignments of ways to axes. The functions give for each
// axis how the result and operand k are divided, and what share of the result is sent to add it up.
func (m *maker) variable(bytes, work float64, ways int, gradient bool, result func(way int) int, operand func(k, way int) int,
	sent func(way int) float64, operands ...int,
) int {
	v := len(m.p.Unary)
	var cost, use, hidden []float64
	var specs [][]int
	var wants [][][]int
	m.assignments(ways, func(axes []int) {
		parts, moved, divided := 1.0, 0.0, 1.0
		var spec []int
		want := make([][]int, len(operands))
		for _, way := range axes {
			if way != whole {
				divided *= m.width
			}
			moved += sent(way)
			spec = append(spec, result(way))
			if result(way) != whole {
				parts *= m.width
			}
			for k := range operands {
				want[k] = append(want[k], operand(k, way))
			}
		}
		comm := m.vary(moved * bytes / parts / 8)
		c := m.vary(work * 10 / divided)
		if gradient && m.shape.Hidden {
			hidden = append(hidden, comm)
		} else {
			hidden = append(hidden, 0)
			c += comm
		}
		cost, use, specs, wants = append(cost, c), append(use, bytes/parts), append(specs, spec), append(wants, want)
	})
	m.p.Unary, m.use, m.hidden = append(m.p.Unary, cost), append(m.use, use), append(m.hidden, hidden)
	m.specs, m.bytes = append(m.specs, specs), append(m.bytes, bytes)
	for k, u := range operands {
		var table []float64
		for _, from := range m.specs[u] {
			for _, want := range wants {
				table = append(table, m.vary(m.reshard(m.bytes[u], from, want[k])))
			}
		}
		m.p.Edges = append(m.p.Edges, solve.Edge{U: u, V: v, Cost: table})
		m.edges = append(m.edges, nil)
	}
	return v
}

// reshard is the time to bring a tensor from one division to another.
func (m *maker) reshard(bytes float64, from, to []int) float64 {
	sum := 0.0
	share := bytes / 8
	for i := range from {
		if to[i] != whole {
			share /= m.width
		}
	}
	for i, a := range from {
		switch b := to[i]; {
		case a == b || a == whole:
		case b == whole:
			sum += share * (m.width - 1) / m.width
		default:
			sum += share
		}
	}
	return sum
}

func (m *maker) weight(bytes float64) int {
	none := func(int) float64 { return 0 }
	return m.variable(bytes, 0, 3, false, func(way int) int { return way }, nil, none)
}

func (m *maker) pointwise(bytes, work float64, operands ...int) int {
	none := func(int) float64 { return 0 }
	return m.variable(bytes, work, 4, false, func(way int) int { return way }, func(_, way int) int { return way }, none, operands...)
}

func (m *maker) update(bytes float64, operands ...int) int {
	none := func(int) float64 { return 0 }
	return m.variable(bytes, 0.2, 3, false, func(way int) int { return way }, func(_, way int) int { return way }, none, operands...)
}

// product adds a matrix product: ways are none, batch, sequence, columns of the weight, and the contracted
// dimension, whose partial sums are sent.
func (m *maker) product(bytes, work float64, gradient bool, x, w int) int {
	result := [...]int{whole, first, second, last, whole}
	operands := [2][5]int{{whole, first, second, whole, last}, {whole, whole, whole, second, first}}
	if gradient { // of a weight: batch and sequence are contracted
		result = [...]int{whole, whole, whole, first, second}
		operands = [2][5]int{{whole, first, second, last, whole}, {whole, first, second, whole, last}}
	}
	sent := func(way int) float64 {
		if result[way] == whole && way != whole {
			return 2
		}
		return 0
	}
	return m.variable(bytes, work, 5, gradient, func(way int) int { return result[way] },
		func(k, way int) int { return operands[k][way] }, sent, x, w)
}
