package main

import (
	"math"
	"math/rand/v2"
	"slices"

	"dmir/analysis/program"
	"dmir/compile/sparse"
	"dmir/compile/tensor"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// matrix is a square sparse matrix by rows.
type matrix struct {
	name      string
	n         int
	positions []int64
	columns   []int64
	mean      bool // the elements of a row are as one, and add up to 1
}

// matrices have the shapes of those of the SuiteSparse collection that papers measure: uniform rows, graphs of the web, of citations and of a
// social network, by power laws, bands and stencils as of discretized equations, dense blocks as of finite elements, and a network of roads. The
// last one is a graph of a social network on which nodes have as many neighbours as in those that networks are trained on.
func matrices(n int) (all []matrix) {
	draw := func(name string, row func(r *rand.Rand, i int) []int64) {
		r := rand.New(rand.NewPCG(7, uint64(n)))
		m := matrix{name: name, n: n, positions: []int64{0}}
		for i := range n {
			columns := row(r, i)
			slices.Sort(columns)
			m.columns = append(m.columns, slices.Compact(columns)...)
			m.positions = append(m.positions, int64(len(m.columns)))
		}
		all = append(all, m)
	}
	inside := func(j int) int64 { return int64(min(max(j, 0), n-1)) }
	near := func(offsets ...int) func(*rand.Rand, int) []int64 {
		return func(_ *rand.Rand, i int) (c []int64) {
			for _, d := range offsets {
				if j := i + d; j >= 0 && j < n {
					c = append(c, int64(j))
				}
			}
			return c
		}
	}
	span := func(width int) (offsets []int) {
		for d := -width; d <= width; d++ {
			offsets = append(offsets, d)
		}
		return offsets
	}
	side, edge := int(math.Sqrt(float64(n))), int(math.Cbrt(float64(n)))
	for _, each := range []struct {
		name string
		n    int
	}{{"uniform 4", 4}, {"uniform", 16}, {"uniform 48", 48}} {
		draw(each.name, func(r *rand.Rand, _ int) (c []int64) {
			for range each.n {
				c = append(c, r.Int64N(int64(n)))
			}
			return c
		})
	}
	// Pareto with so many elements at least and an exponent; columns are the more frequent the smaller they are, by a power.
	graph := func(name string, least, exponent, skew float64) {
		draw(name, func(r *rand.Rand, _ int) (c []int64) {
			length := min(int(least*math.Pow(1-r.Float64(), -1/(exponent-1))), n/8)
			for range length {
				c = append(c, inside(int(float64(n)*math.Pow(r.Float64(), skew))))
			}
			return c
		})
	}
	graph("power law", 4, 2.4, 3)
	graph("social", 6, 2.1, 2)
	graph("citation", 2, 3, 1.5)
	draw("tridiagonal", near(-1, 0, 1))
	draw("band", near(span(13)...))
	draw("stencil", near(-edge*edge, -edge, -1, 0, 1, edge, edge*edge))
	blocks := func(name string, size, across int) {
		draw(name, func(_ *rand.Rand, i int) (c []int64) {
			chosen := rand.New(rand.NewPCG(5, uint64(i/size)))
			for range across {
				b := chosen.IntN(max(n/size, 1))
				for j := range size {
					c = append(c, inside(b*size+j))
				}
			}
			return c
		})
	}
	blocks("blocks 8", 8, 3)
	blocks("blocks 32", 32, 2)
	draw("road", func(r *rand.Rand, i int) (c []int64) {
		for _, j := range []int{i - 1, i + 1, i - side, i + side} {
			if r.IntN(3) > 0 {
				c = append(c, inside(j))
			}
		}
		return c
	})
	n /= 8
	graph("reddit", 80, 2.4, 1.5)
	return all
}

func (m *matrix) stored() int { return len(m.columns) }

// products is how many products the square of m takes, and how many elements that stores.
func (m *matrix) products() (products, stored int) {
	last := make([]int, m.n)
	for i := range m.n {
		for _, k := range m.columns[m.positions[i]:m.positions[i+1]] {
			for _, j := range m.columns[m.positions[k]:m.positions[k+1]] {
				products++
				if last[j] != i+1 {
					last[j] = i + 1
					stored++
				}
			}
		}
	}
	return products, stored
}

// middle is the size of the second dimension of the tensor of three dimensions that is made of a matrix.
const middle = 64

// values are those of the elements.
func (m *matrix) values() *tensor.Tensor {
	values := tensor.New(types.F32, m.stored())
	for i := range m.n {
		for k := m.positions[i]; k < m.positions[i+1]; k++ {
			if values.F32[k] = float32(tensor.Normal(3, 2, uint64(k))); m.mean {
				values.F32[k] = 1 / float32(m.positions[i+1]-m.positions[i])
			}
		}
	}
	return values
}

// elements are those of m; of the tensor of three dimensions element (i, j) is (i, j mod middle, j).
func (m *matrix) elements(three bool) *sparse.COO {
	rows := make([]int64, m.stored())
	for i := range m.n {
		for k := m.positions[i]; k < m.positions[i+1]; k++ {
			rows[k] = int64(i)
		}
	}
	c := &sparse.COO{Shape: []int{m.n, m.n}, At: [][]int64{rows, m.columns}, Values: m.values()}
	if three {
		between := make([]int64, m.stored())
		for k, j := range m.columns {
			between[k] = j % middle
		}
		c.Shape, c.At = []int{m.n, middle, m.n}, [][]int64{rows, between, m.columns}
	}
	return c
}

// given are the components of m by the names of w's argument; what was counted of it is stated in p.
func (m *matrix) given(w *row, p *program.Program) (map[string]*tensor.Tensor, error) {
	x, err := m.packed(w.format)
	if err != nil {
		return nil, err
	}
	given := map[string]*tensor.Tensor{}
	for k, c := range x.Type.Components() {
		given["a."+c.Name] = x.Parts[k]
	}
	counted := x.Count(m.name)
	m.elements(w.format == "csf").CountRows(counted)
	return given, p.Change(func(module *ir.Module) error {
		op.SetArgAttr(module.Funcs[0], 0, op.CountedAttr, counted.Attr())
		return nil
	})
}

// files are m's rows, columns and values for peers.
func (m *matrix) files() map[string]*tensor.Tensor {
	return map[string]*tensor.Tensor{
		"p": tensor.FromInts(types.I32, []int{m.n + 1}, m.positions),
		"c": tensor.FromInts(types.I32, []int{m.stored()}, m.columns),
		"a": m.values(),
	}
}
