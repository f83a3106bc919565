package kernel

import (
	"math/rand/v2"
	"strings"
	"testing"

	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// How indices go with a variable: their step, the values within which it holds,
// and how many neighbours one access can take.
func TestAlong(t *testing.T) {
	s := newSpace()
	a, b := s.Loop("a", 96), s.Loop("b", 8)
	x, y := IndexOf(a), IndexOf(b)
	for _, c := range []struct {
		name              string
		x                 Index
		step, run, vector int64
	}{
		{"the variable", x, 1, 96, 8},
		{"a row of sixteen", y.Times(16).Add(x), 1, 96, 8},
		{"a row of twelve", y.Times(12).Add(x), 1, 96, 4},
		{"from an odd place on", x.Plus(3), 1, 96, 1},
		{"every third", x.Times(3), 3, 96, 1},
		{"another variable", y, 0, 96, 1},
		{"its letter of 16 further in", s.Div(x, 16).Times(640).Add(s.Mod(x, 16)), 1, 16, 8},
		{"its letter of 12 further in", s.Div(x, 12).Times(640).Add(s.Mod(x, 12)), 1, 12, 4},
		{"its letter of 3 further in", s.Div(x, 3).Times(640).Add(s.Mod(x, 3)), 1, 3, 1},
		{"a remainder that the other shifts", s.Mod(x.Add(y), 16), 0, 1, 1},
		{"within a window", s.Within(x.Add(y).Plus(-1), 0, 90), 1, 96, 1},
	} {
		step, run := c.x.Along(a)
		if step != c.step || run != c.run {
			t.Errorf("%s: steps of %d within %d, want %d within %d", c.name, step, run, c.step, c.run)
		}
		if v := c.x.Vector(a, 8); v != c.vector {
			t.Errorf("%s: %d at once, want %d", c.name, v, c.vector)
		}
	}
}

// How the letters of contractions group, and what is too much for one kernel.
func TestTiled(t *testing.T) {
	const head = "func.func @f(%x: tensor<2x3x8x16xf16>, %w: tensor<24x3x16xf16>, %v: tensor<2x8x24xf16>) -> "
	for _, c := range []struct {
		name, body, results      string
		batch, rows, cols, depth int64
		products                 int
		reduces                  bool
		err                      string
	}{
		{"heads in", `%y = dm.einsum "bhlp,nhp->bln" %x, %w : (tensor<2x3x8x16xf16>, tensor<24x3x16xf16>) -> tensor<2x8x24xf16>`, "%y : tensor<2x8x24xf16>", 1, 16, 24, 48, 1, false, ""},
		{"the other way round", `%y = dm.einsum "bhlp,nhp->nbl" %x, %w : (tensor<2x3x8x16xf16>, tensor<24x3x16xf16>) -> tensor<24x2x8xf16>`, "%y : tensor<24x2x8xf16>", 1, 24, 16, 48, 1, false, ""},
		{"a batch", `%y = dm.einsum "bhlp,nhp->hbln" %x, %w : (tensor<2x3x8x16xf16>, tensor<24x3x16xf16>) -> tensor<3x2x8x24xf16>`, "%y : tensor<3x2x8x24xf16>", 3, 16, 24, 16, 1, false, ""},
		{
			"reduced rows", "%y = dm.einsum \"bhlp,nhp->bln\" %x, %w : (tensor<2x3x8x16xf16>, tensor<24x3x16xf16>) -> tensor<2x8x24xf16>\n%0 = dm.reduce %y, kind = add, dims = [0, 1] : (tensor<2x8x24xf16>) -> tensor<24xf16>",
			"%y, %0 : tensor<2x8x24xf16>, tensor<24xf16>", 1, 16, 24, 48, 1, true, "",
		},
		{
			"some of the rows reduced", "%y = dm.einsum \"bhlp,nhp->bln\" %x, %w : (tensor<2x3x8x16xf16>, tensor<24x3x16xf16>) -> tensor<2x8x24xf16>\n%0 = dm.reduce %y, kind = add, dims = [1] : (tensor<2x8x24xf16>) -> tensor<2x24xf16>",
			"%y, %0 : tensor<2x8x24xf16>, tensor<2x24xf16>", 0, 0, 0, 0, 0, false, "%0 reduces neither all rows nor all columns of the contraction",
		},
		{
			"only a reduction", "%y = dm.einsum \"bhlp,nhp->bln\" %x, %w : (tensor<2x3x8x16xf16>, tensor<24x3x16xf16>) -> tensor<2x8x24xf16>\n%0 = dm.reduce %y, kind = add, dims = [0, 1] : (tensor<2x8x24xf16>) -> tensor<24xf16>",
			"%0 : tensor<24xf16>", 0, 0, 0, 0, 0, false, "the kernel only reduces the contraction's elements",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, kinds, _ := strings.Cut(c.results, " : ")
			fn := load(t, head+"("+kinds+") {\n"+c.body+"\nreturn "+c.results+"\n}\n")
			f, err := Of(fn.Body.Ops[:len(fn.Body.Ops)-1], fn.Body.Terminator().Operands)
			if c.err != "" {
				if err == nil || err.Error() != c.err {
					t.Fatalf("%v, want %q", err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			g, err := f.Tiled()
			if err != nil {
				t.Fatal(err)
			}
			if g.Batch != c.batch || g.Rows != c.rows || g.Cols != c.cols || g.Depth != c.depth || g.Products != c.products || g.Reduces != c.reduces {
				t.Errorf("%d×%d×%d×%d, %d products, reduces %t", g.Batch, g.Rows, g.Cols, g.Depth, g.Products, g.Reduces)
			}
		})
	}
}

// What Along and Vector state of an index holds for every value of its variables.
func TestAlongHolds(t *testing.T) {
	stepped, wide := 0, 0
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 11))
		s := newSpace()
		a, b := s.Loop("a", []int64{8, 12, 16}[r.IntN(3)]), s.Loop("b", 6)
		table := &ir.Value{Type: &types.Tensor{Elem: types.I32}}
		x := Const(int64(r.IntN(3) * 4))
		for range 1 + r.IntN(3) {
			y := IndexOf([]*Atom{a, a, b}[r.IntN(3)]).Times(1 + r.Int64N(2)*r.Int64N(4))
			if r.IntN(2) == 0 {
				y = y.Add(IndexOf(b).Times([]int64{1, 4, 8, 16}[r.IntN(4)]))
			}
			if r.IntN(3) == 0 {
				y = y.Plus(r.Int64N(9))
			}
			n := []int64{2, 3, 4, 6, 8, 16}[r.IntN(6)]
			switch r.IntN(5) {
			case 0:
				y = s.Div(y, n)
			case 1:
				y = s.Mod(y, n)
			case 2:
				lo, hi := y.Bounds()
				y = s.Within(y.Plus(-1), lo, hi)
			case 3:
				y = s.atom(Atom{Kind: Datum, E: s.expr(Expr{Op: Load, Elem: types.I32, Buf: table, At: y}), Max: 1 << 20})
			}
			x = x.Add(y.Times([]int64{0, 1, 3, 4, 16, 48}[r.IntN(6)]))
		}
		data := make([]float64, 1000)
		for i := range data {
			data[i] = float64(r.IntN(100))
		}
		step, run := x.Along(a)
		v := x.Vector(a, 8)
		m := &executor{values: map[*ir.Value][]float64{table: data}, vars: map[*Atom]int64{}, free: true, left: 1 << 30}
		for m.vars[b] = 0; m.vars[b] <= b.Max; m.vars[b]++ {
			for i := int64(0); i <= a.Max; i++ {
				m.vars[a] = i - i%run
				from := m.index(x)
				m.vars[a] = i
				if at := m.index(x); at != from+i%run*step {
					t.Fatalf("seed %d: at %d, within %d, it is %d, not %d and %d times %d", seed, i, run, at, from, i%run, step)
				} else if i%v == 0 && v > 1 && at%v != 0 {
					t.Fatalf("seed %d: at %d it is %d, no multiple of %d", seed, i, at, v)
				}
			}
		}
		if step != 0 && run > 1 {
			stepped++
		}
		if v > 1 {
			wide++
		}
	}
	if stepped < 300 || wide < 30 {
		t.Errorf("%d indices with steps, %d with vectors", stepped, wide)
	}
}
