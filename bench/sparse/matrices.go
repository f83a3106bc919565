package main

import (
	"math"
	"math/rand/v2"
	"slices"

	"dmir/compile/tensor"
	"dmir/dialect/types"
)

// matrix is a square sparse matrix by rows.
type matrix struct {
	name      string
	n         int
	positions []int64
	columns   []int64
}

// matrices have the shapes of matrices that papers measure: uniform rows, rows by a power law as of a
// graph of the web, a band as of a discretized equation, and few neighbours as of a network of roads.
func matrices(n int) []matrix {
	draw := func(name string, row func(r *rand.Rand, i int) []int64) matrix {
		r := rand.New(rand.NewPCG(7, uint64(n)))
		m := matrix{name: name, n: n, positions: []int64{0}}
		for i := range n {
			columns := row(r, i)
			slices.Sort(columns)
			m.columns = append(m.columns, slices.Compact(columns)...)
			m.positions = append(m.positions, int64(len(m.columns)))
		}
		return m
	}
	inside := func(j int) int64 { return int64(min(max(j, 0), n-1)) }
	side := int(math.Sqrt(float64(n)))
	return []matrix{
		draw("uniform", func(r *rand.Rand, _ int) (c []int64) {
			for range 16 {
				c = append(c, r.Int64N(int64(n)))
			}
			return c
		}),
		draw("power law", func(r *rand.Rand, _ int) (c []int64) {
			length := min(int(4*math.Pow(1-r.Float64(), -1/1.4)), n/8) // Pareto, of exponent 2.4
			for range length {
				u := r.Float64()
				c = append(c, inside(int(float64(n)*u*u*u)))
			}
			return c
		}),
		draw("band", func(_ *rand.Rand, i int) (c []int64) {
			for j := i - 13; j <= i+13; j++ {
				c = append(c, inside(j))
			}
			return c
		}),
		draw("road", func(r *rand.Rand, i int) (c []int64) {
			for _, j := range []int{i - 1, i + 1, i - side, i + side} {
				if r.IntN(3) > 0 {
					c = append(c, inside(j))
				}
			}
			return c
		}),
	}
}

func (m *matrix) stored() int { return len(m.columns) }

// tensors are the components of m.
func (m *matrix) tensors() map[string]*tensor.Tensor {
	values := tensor.New(types.F32, m.stored())
	for k := range values.F32 {
		values.F32[k] = float32(tensor.Normal(3, 2, uint64(k)))
	}
	return map[string]*tensor.Tensor{
		"p": tensor.FromInts(types.I32, []int{m.n + 1}, m.positions),
		"c": tensor.FromInts(types.I32, []int{m.stored()}, m.columns),
		"a": values,
	}
}
