package sparse

import (
	"math"
	"testing"

	"dmir/compile/tensor"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// What is counted of a pattern is what a person counts.
func TestCount(t *testing.T) {
	c := &COO{Shape: []int{40, 64}, At: [][]int64{{0, 0, 0, 3, 3, 39}, {0, 1, 40, 1, 40, 63}}, Values: tensor.New(types.F32, 6)}
	typ, err := ParseType("tensor<40x64xf32, #dm.csr<nnz = 6>>")
	if err != nil {
		t.Fatal(err)
	}
	x, err := Pack(typ, c)
	if err != nil {
		t.Fatal(err)
	}
	got := x.Count("m.mtx")
	c.CountRows(got)
	if got.Stored != 6 || got.Rows != 40 || got.Empty != 37 || got.Median != 0 || got.Longest != 3 || got.Blocks != 3 || len(got.Levels) != 1 {
		t.Fatalf("got %+v", got)
	}
	p := got.Levels[0].Profile // 0 1 40 | 1 40 | 63
	if p.Reads != 6 || p.By[0].Touched != 4 || p.By[1].Touched != 3 || len(p.By[0].Later) != 1 || p.By[0].Later[0] != 6 || p.By[1].Later[0] != 5 {
		t.Fatalf("got %+v", p)
	}
	if again := op.CountedOf(got.Attr()); again == nil || again.Levels[0].Profile.By[1].Later[0] != 5 || again.Longest != 3 || again.File != "m.mtx" {
		t.Fatalf("read again: %+v", again)
	}
}

// The formula of a distribution is what is counted of a pattern that is drawn from it: how many rows of a table are touched, and how many
// reads miss caches of any size.
func TestCountDrawn(t *testing.T) {
	const n, stored = 2048, 2048 * 24
	for _, p := range []op.Pattern{{Kind: "uniform"}, {Kind: "band", Width: -1}, {Kind: "band", Width: 40}, {Kind: "blocks", Size: 32}, {Kind: "power_law", Exponent: 2.1}} {
		p.Size, p.Exponent = max(p.Size, 1), max(p.Exponent, 2.1)
		typ, err := ParseType("tensor<2048x2048xf32, #dm.csr<nnz = 49152>>")
		if err != nil {
			t.Fatal(err)
		}
		x, err := Draw(typ, p, tensor.NewStream(1, 2))
		if err != nil {
			t.Fatal(err)
		}
		counted := x.Count("").Levels[0].Profile
		numbers := op.Numbers{Type: typ, Level: 1, Pattern: &p}
		formula, ok := numbers.Profile(n, stored, nil)
		if !ok {
			t.Fatalf("%s has no formula", p.Kind)
		}
		for _, lines := range []float64{48, 200, 1000, 4000} {
			got, want := formula.Misses(0, lines, 0), counted.Misses(0, lines, 0)
			if math.Abs(got-want) > 0.25*want+200 {
				t.Errorf("%s, width %d: a cache of %g rows misses %.0f by the formula, %.0f counted", p.Kind, p.Width, lines, got, want)
			}
		}
	}
}
