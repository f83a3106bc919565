package shard

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"dmir/dialect/mesh"
	"dmir/dialect/types"
)

func grid(t *testing.T, sizes ...int) *Grid {
	t.Helper()
	m := &mesh.Mesh{Name: "m"}
	for i, n := range sizes {
		m.Axes = append(m.Axes, mesh.Axis{Name: string(rune('a' + i)), Size: n})
	}
	g, err := NewGrid(m, nil)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestBoxing: over p devices and T elements a change of layout sends what OneFlow's boxing
// costs state (Yuan et al., arXiv 2110.15032, Table 2), summed over the devices.
func TestBoxing(t *testing.T) {
	for _, p := range []int{2, 3, 4, 8} {
		g := grid(t, p)
		shape := []int64{int64(6 * p), int64(5 * p)}
		all := shape[0] * shape[1]
		split := func(d int) Layout {
			l := Whole(2)
			l.Dims[d] = []int{0}
			return l
		}
		whole, partial := Whole(2), Layout{Dims: make([][]int, 2), Partial: []int{0}}
		n := int64(p)
		for _, c := range []struct {
			name     string
			from, to Layout
			sent     int64
		}{
			{"split to broadcast", split(0), whole, all * (n - 1)},
			{"split to another split", split(0), split(1), all * (n - 1) / n},
			{"partial to split", partial, split(1), all * (n - 1)},
			{"partial to broadcast", partial, whole, 2 * all * (n - 1)},
			{"broadcast to split", whole, split(0), 0},
			{"broadcast to partial", whole, partial, 0},
			{"split to itself", split(1), split(1), 0},
		} {
			if plan := g.Plan(shape, c.from, c.to); plan.Sent != c.sent {
				t.Errorf("%s over %d devices sends %d of %d elements, want %d", c.name, p, plan.Sent, all, c.sent)
			}
		}
	}
}

// random is a layout of a tensor of a rank on g.
func random(r *rand.Rand, g *Grid, rank int) Layout {
	l := Whole(rank)
	for _, a := range r.Perm(len(g.Atoms)) {
		switch k := r.IntN(rank + 2); {
		case k < rank:
			l.Dims[k] = append(l.Dims[k], a)
		case k == rank:
			l.Partial = append(l.Partial, a)
		}
	}
	return Layout{Dims: l.Dims, Partial: sorted(l.Partial)}
}

func sorted(s []int) []int {
	for i := range s {
		for j := i; j > 0 && s[j] < s[j-1]; j-- {
			s[j], s[j-1] = s[j-1], s[j]
		}
	}
	return s
}

// TestPlanIsNoWorse: a plan never sends more than reducing and gathering everything and
// cutting it again, in any of the ways to do so, and its moves lead from one layout to the other.
func TestPlanIsNoWorse(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		g := grid(t, [][]int{{2}, {4}, {2, 2}, {3}, {2, 3}, {2, 2, 2}, {4, 2}}[r.IntN(7)]...)
		rank := 1 + r.IntN(3)
		shape := make([]int64, rank)
		for i := range shape {
			shape[i] = int64(1 + r.IntN(13))
		}
		from, to := random(r, g, rank), random(r, g, rank)
		plan := g.Plan(shape, from, to)
		name := fmt.Sprintf("%v on %v: %v to %v", shape, g.Sizes, from, to)
		if plan == nil {
			t.Fatalf("%s has no plan", name)
		}
		at, sent := from, int64(0)
		for _, m := range plan.Moves {
			at, sent = m.Into, sent+m.Sent
		}
		if !at.Equal(to) || sent != plan.Sent {
			t.Fatalf("%s ends at %v, %d of %d elements sent", name, at, sent, plan.Sent)
		}
		if naive := g.naive(shape, from); plan.Sent > naive {
			t.Errorf("%s sends %d elements; by way of the whole tensor it is %d", name, plan.Sent, naive)
		}
	}
}

// naive is what is sent by an all-reduce of what is partial and an all-gather of each
// dimension that is divided.
func (g *Grid) naive(shape []int64, l Layout) int64 {
	devices := int64(g.Mesh.Devices())
	elements := func(l Layout) int64 {
		n := int64(1)
		for _, d := range g.Piece(shape, l) {
			n *= d
		}
		return n
	}
	sent := int64(0)
	if p := int64(g.Count(l.Partial)); p > 1 {
		sent += 2 * elements(l) * (p - 1) * devices / p
	}
	at := l.Clone()
	at.Partial, at.Reduce = nil, types.Add
	for d := range at.Dims {
		p := int64(g.Count(at.Dims[d]))
		sent += elements(at) * (p - 1) * devices
		at.Dims[d] = nil
	}
	return sent
}
