package sparse_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dmir/compile/sparse"
	"dmir/compile/tensor"
	"dmir/dialect/op"
	"dmir/dialect/types"
	"dmir/syntax/parse"
)

// typeOf is a type by its text, whose nnz may be missing.
func typeOf(t *testing.T, text string) *types.Tensor {
	t.Helper()
	x, err := parse.Type(text)
	if err != nil {
		t.Fatal(err)
	}
	ty, err := types.FromExpr(x, nil)
	if err != nil {
		t.Fatal(err)
	}
	return ty.(*types.Tensor)
}

// formats are types of tensors of every kind of level, in several orders, with room for as many entries
// as there are.
var formats = []string{
	"tensor<12x20xf32, #dm.csr>", "tensor<12x20xf32, #dm.csc>", "tensor<12x20xf64, #dm.coo>", "tensor<12x20xf16, #dm.dcsr>", "tensor<12x20xf32, #dm.dcsc>",
	"tensor<12x20xf32, #dm.bsr<4x5>>", "tensor<12x20xf32, #dm.bsr<1x20>>", "tensor<12x20xi32, #dm.csr<posWidth = 64, crdWidth = 8>>",
	"tensor<40xf32, #dm.sparse_vector>", "tensor<4x5x6xf32, #dm.csf>", "tensor<4x5x6xf32, #dm.coo>", "tensor<4x5x6xi1, #dm.csf>",
	"tensor<4x5x6xf32, #dm.sparse<map = (i, j, k) -> (k : dense, i : compressed, j : dense)>>",
	"tensor<4x5x6xf32, #dm.sparse<map = (i, j, k) -> (j : compressed, i : dense, k : compressed)>>",
	"tensor<12x20xf32, #dm.sparse<map = (i, j) -> (i : dense, j : loose_compressed)>>",
	"tensor<12x20xf32, #dm.sparse<map = (i, j) -> (i : dense, j : dense)>>",
	"tensor<12x20xf32, #dm.sparse<map = (i, j) -> (i floordiv 4 : compressed(nonunique), j floordiv 5 : singleton, i mod 4 : dense, j mod 5 : dense)>>",
	"tensor<12x20xf32, #dm.sparse<map = (i, j) -> (i : compressed, j : dense)>>",
}

// coo draws n elements of a tensor of a type, in random order.
func coo(ty *types.Tensor, n int, r *rand.Rand) *sparse.COO {
	sizes, _ := sparse.Numbers(ty.Shape)
	total := 1
	c := &sparse.COO{At: make([][]int64, len(sizes))}
	for _, s := range sizes {
		total *= int(s)
		c.Shape = append(c.Shape, int(s))
	}
	n = min(n, total)
	for _, k := range r.Perm(total)[:n] {
		for d := len(sizes) - 1; d >= 0; d-- {
			c.At[d] = append(c.At[d], int64(k)%sizes[d])
			k /= int(sizes[d])
		}
	}
	c.Values = tensor.New(ty.Elem, n)
	for k := range n {
		c.Values.SetFloat(k, float64(r.IntN(9)+1))
	}
	return c
}

func dense(t *testing.T, c *sparse.COO) *tensor.Tensor {
	t.Helper()
	x, err := c.Dense()
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// What is packed is unpacked, from any order, with and without padding, and passes its check.
func TestPack(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, text := range formats {
		ty := typeOf(t, text)
		for _, n := range []int{0, 1, 7, 60, 1000} {
			c := coo(ty, n, r)
			x, err := sparse.Pack(ty, c)
			if err != nil {
				t.Fatalf("%s, %d elements: %v", text, n, err)
			}
			got, err := x.Unpack()
			if err != nil {
				t.Fatalf("%s, %d elements: %v", text, n, err)
			}
			if d := cmp.Diff(dense(t, c), dense(t, got)); d != "" {
				t.Fatalf("%s, %d elements: %s", text, n, d)
			}
			if int64(got.Len()) != x.Stored() {
				t.Errorf("%s: unpacks %d elements, and stores %d", text, got.Len(), x.Stored())
			}
			stored, _ := sparse.Numbers(x.Type.Format.Stored)
			for i := range stored {
				stored[i] += int64(i) + 2
			}
			padded, err := x.Fit(sparse.Shaped(ty, c.Shape, stored))
			if err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			again, err := padded.Unpack()
			if err != nil || padded.Stored() != x.Stored() {
				t.Fatalf("%s with padding: %v, %d stored", text, err, padded.Stored())
			}
			if d := cmp.Diff(got, again); d != "" {
				t.Fatalf("%s with padding: %s", text, d)
			}
		}
	}
}

// Components of a small matrix, worked by hand.
func TestComponents(t *testing.T) {
	c := &sparse.COO{Shape: []int{4, 4}, At: [][]int64{{3, 0, 3, 1}, {2, 1, 0, 1}}, Values: tensor.FromFloats(types.F32, []int{4}, []float64{4, 1, 3, 2})}
	for _, k := range []struct{ ty, want string }{
		{"tensor<4x4xf32, #dm.csr>", "0 1 2 2 4 | 1 1 0 2 | 1 2 3 4"},
		{"tensor<4x4xf32, #dm.csr<nnz = 6>>", "0 1 2 2 4 | 1 1 0 2 0 0 | 1 2 3 4 0 0"},
		{"tensor<4x4xf32, #dm.csc>", "0 1 3 4 4 | 3 0 1 3 | 3 1 2 4"},
		{"tensor<4x4xf32, #dm.coo>", "0 4 | 0 1 3 3 | 1 1 0 2 | 1 2 3 4"},
		{"tensor<4x4xf32, #dm.dcsr<nnz = [4, 5]>>", "0 3 | 0 1 3 0 | 0 1 2 4 4 | 1 1 0 2 0 | 1 2 3 4 0"},
		{"tensor<4x4xf32, #dm.bsr<2x2>>", "0 1 3 | 0 0 1 | 0 1 0 2 0 0 3 0 0 0 4 0"},
		{"tensor<4x4xf32, #dm.nm<2:4>>", "0 1 0 1 0 1 0 2 | 0 1 0 2 0 0 3 4"},
		{"tensor<4x4xf32, #dm.sparse<map = (i, j) -> (i : dense, j : loose_compressed)>>", "0 1 1 2 2 2 2 4 | 1 1 0 2 | 1 2 3 4"},
	} {
		x, err := sparse.Pack(typeOf(t, k.ty), c)
		if err != nil {
			t.Errorf("%s: %v", k.ty, err)
			continue
		}
		if got := text(x); got != k.want {
			t.Errorf("%s: %s, want %s", k.ty, got, k.want)
		}
	}
}

func text(x *sparse.Tensor) string {
	var parts []string
	for _, p := range x.Parts {
		var s []string
		for i := range p.Len() {
			s = append(s, fmt.Sprint(p.Float(i)))
		}
		parts = append(parts, strings.Join(s, " "))
	}
	return strings.Join(parts, " | ")
}

func TestPackErrors(t *testing.T) {
	c := func(rows, cols []int64) *sparse.COO {
		return &sparse.COO{Shape: []int{4, 4}, At: [][]int64{rows, cols}, Values: tensor.New(types.F32, len(rows))}
	}
	for _, k := range []struct {
		ty   string
		c    *sparse.COO
		want string
	}{
		{"tensor<4x4xf32, #dm.csr>", c([]int64{1, 0, 1}, []int64{2, 1, 2}), "(1, 2) is there twice"},
		{"tensor<4x4xf32, #dm.csr>", c([]int64{1, 4}, []int64{2, 1}), "(4, 1) is outside of the shape [4 4]"},
		{"tensor<4x4xf32, #dm.csr<nnz = 1>>", c([]int64{1, 2}, []int64{2, 1}), "level 1 stores 2 entries, and tensor<4x4xf32, #dm.csr<nnz = 1>> has room for 1"},
		{"tensor<4x4xf32, #dm.dcsr<nnz = [1, 2]>>", c([]int64{1, 2}, []int64{2, 1}), "level 0 stores 2 entries"},
		{"tensor<4x4xf32, #dm.nm<2:4>>", c([]int64{1, 1, 1}, []int64{0, 1, 3}), "(1, 3) is one more than the 2 of 4 neighbours that level 1 stores"},
		{"tensor<4x4xf32, #dm.sparse<map = (i, j) -> (i : compressed, j : singleton)>>", c([]int64{1, 1}, []int64{0, 1}), "(1, 1) is the second element where level 1, singleton, stores one"},
		{"tensor<?x4xf32, #dm.csr>", c([]int64{1, 1}, []int64{0, 1}), "is no number"},
	} {
		if _, err := sparse.Pack(typeOf(t, k.ty), k.c); err == nil || !strings.Contains(err.Error(), k.want) {
			t.Errorf("%s: %v, want %q", k.ty, err, k.want)
		}
	}
}

// Each component may be wrong in each way, and says where.
func TestCheck(t *testing.T) {
	for _, k := range []struct{ ty, parts, want string }{
		{"tensor<3x4xf32, #dm.csr<nnz = 4>>", "0 2 2 3 | 1 3 0 0 | 1 2 3 0", ""},
		{"tensor<3x4xf32, #dm.csr<nnz = 4>>", "1 2 2 3 | 1 3 0 0 | 1 2 3 0", "positions[0] is 1: positions of level 1 (d1 : compressed) begin with 0"},
		{"tensor<3x4xf32, #dm.csr<nnz = 4>>", "0 2 1 3 | 1 3 0 0 | 1 2 3 0", "positions[2] is 1, behind 2: positions of level 1 (d1 : compressed) never fall"},
		{"tensor<3x4xf32, #dm.csr<nnz = 4>>", "0 2 2 5 | 1 3 0 0 | 1 2 3 0", "positions[3] is 5, but level 1 (d1 : compressed) has room for 4 entries"},
		{"tensor<3x4xf32, #dm.csr<nnz = 4>>", "0 2 2 3 | 1 4 0 0 | 1 2 3 0", "coordinates[1] is 4, outside of level 1 (d1 : compressed), whose size is 4"},
		{"tensor<3x4xf32, #dm.csr<nnz = 4>>", "0 2 2 3 | -1 3 0 0 | 1 2 3 0", "coordinates[0] is -1, outside"},
		{"tensor<3x4xf32, #dm.csr<nnz = 4>>", "0 2 2 3 | 3 1 0 0 | 1 2 3 0", "coordinates[1] is 1, behind 3: coordinates of level 1 (d1 : compressed) rise in each segment"},
		{"tensor<3x4xf32, #dm.csr<nnz = 4>>", "0 2 2 3 | 3 3 0 0 | 1 2 3 0", "coordinates[1] is 3, as is entry 0"},
		{"tensor<3x4xf32, #dm.csr<nnz = 4>>", "0 2 2 3 | 1 3 0 2 | 1 2 3 0", "coordinates[3] is 2, but level 1 ends at 3"},
		{"tensor<3x4xf32, #dm.csr<nnz = 4>>", "0 2 2 3 | 1 3 0 0 | 1 2 3 7", "values[3] is 7"},
		{"tensor<3x4xf32, #dm.csr<nnz = 4>>", "0 2 3 | 1 3 0 0 | 1 2 3 7", "positions is no tensor<4xi32>"},
		{"tensor<3x4xf32, #dm.coo<nnz = 3>>", "0 3 | 0 0 2 | 1 3 0 | 1 2 3", ""},
		{"tensor<3x4xf32, #dm.coo<nnz = 3>>", "0 3 | 0 2 0 | 1 3 0 | 1 2 3", "coordinates0[2] is (0, 0), behind (2, 3)"},
		{"tensor<3x4xf32, #dm.coo<nnz = 3>>", "0 3 | 0 0 2 | 1 1 0 | 1 2 3", "coordinates0[1] is (0, 1), as is entry 0"},
		{"tensor<3x4xf32, #dm.coo<nnz = 3>>", "0 3 | 0 0 2 | 1 9 0 | 1 2 3", "coordinates1[1] is 9, outside of level 1"},
		{"tensor<3x4xf32, #dm.dcsr<nnz = [2, 3]>>", "0 2 | 0 2 | 0 1 3 | 1 1 3 | 1 2 3", ""},
		{"tensor<3x4xf32, #dm.dcsr<nnz = [2, 3]>>", "0 2 | 2 0 | 0 1 3 | 1 1 3 | 1 2 3", "coordinates0[1] is 0, behind 2"},
		{"tensor<2x4xf32, #dm.nm<2:4>>", "0 3 1 2 | 1 2 3 4", ""},
		{"tensor<2x4xf32, #dm.nm<2:4>>", "0 3 2 1 | 1 2 3 4", "coordinates[3] is 1, behind 2"},
		{"tensor<1x8xf32, #dm.nm<2:4>>", "0 3 3 5 | 1 2 3 4", "coordinates[2] is 3, outside of 4 … 7"},
		{"tensor<3x4xf32, #dm.sparse<map = (i, j) -> (i : dense, j : compressed(nonordered)), nnz = 4>>", "0 3 3 4 | 3 0 1 0 | 1 2 3 1", ""},
		{"tensor<3x4xf32, #dm.sparse<map = (i, j) -> (i : dense, j : compressed(nonordered)), nnz = 4>>", "0 3 3 4 | 3 0 3 0 | 1 2 3 1", "coordinates[2] is 3, as is entry 0"},
	} {
		ty := typeOf(t, k.ty)
		x := &sparse.Tensor{Type: ty}
		cs := ty.Components()
		for i, p := range strings.Split(k.parts, "|") {
			var v []float64
			for _, f := range strings.Fields(p) {
				var n float64
				fmt.Sscan(f, &n)
				v = append(v, n)
			}
			x.Parts = append(x.Parts, tensor.FromFloats(cs[i].Tensor.Elem, []int{len(v)}, v))
		}
		err := x.Check()
		if (err == nil) != (k.want == "") || err != nil && !strings.Contains(err.Error(), k.want) {
			t.Errorf("%s: %s: %v, want %q", k.ty, k.parts, err, k.want)
		}
		var bad *sparse.Error
		if errors.As(err, &bad) && !strings.Contains(k.want, "is no ") && bad.Help == "" {
			t.Errorf("%s: %v has no remedy", k.parts, err)
		}
		if _, unpack := x.Unpack(); (unpack == nil) != (err == nil) {
			t.Errorf("%s: %s: unpacks: %v", k.ty, k.parts, unpack)
		}
	}
}

// Every pattern of every format stores as many elements as there is room for, in order and each
// once, and the same ones for the same seed.
func TestDraw(t *testing.T) {
	all := append(slices.Clone(formats), "tensor<12x20xf32, #dm.nm<2:4>>",
		"tensor<12x20xf32, #dm.sparse<map = (i, j) -> (i : dense, j floordiv 4 : dense, j mod 4 : structured[2, 4])>>",
		"tensor<12x20xf32, #dm.sparse<map = (i, j) -> (i : compressed, j : structured[1, 4])>>")
	for _, text := range all {
		ty := typeOf(t, text)
		for _, kind := range op.Patterns {
			p, _ := op.StatedPattern(types.Str(kind))
			p.Size = 3
			for _, n := range []int64{0, 1, 7, 23, 30} {
				if n > 12 && strings.Contains(text, "structured[1") || n > 5 && strings.Contains(text, "j : compressed, i") || n > 4 && strings.HasSuffix(text, "i : compressed, j : dense)>>") {
					continue
				}
				if n > 12 && (strings.Contains(text, "bsr") || strings.Contains(text, "floordiv")) {
					n = 12 // all blocks
				}
				shape, _ := sparse.Numbers(ty.Shape)
				sizes := make([]int, len(shape))
				for d := range shape {
					sizes[d] = int(shape[d])
				}
				stored := slices.Repeat([]int64{n}, len(ty.Format.Stored))
				want := sparse.Shaped(ty, sizes, stored)
				x, err := sparse.Draw(want, p, tensor.NewStream(7, 1))
				if err != nil {
					if strings.Contains(text, "#dm.sparse") && strings.Contains(err.Error(), "places") {
						continue
					}
					t.Fatalf("%s, %s, %d: %v", text, kind, n, err)
				}
				if err := x.Check(); err != nil {
					t.Fatalf("%s, %s, %d: %v", text, kind, n, err)
				}
				values, _ := want.Values().Int()
				if x.Stored() != values {
					t.Errorf("%s, %s: stores %d of %d", text, kind, x.Stored(), values)
				}
				again, _ := sparse.Draw(want, p, tensor.NewStream(7, 1))
				if d := cmp.Diff(x.Parts, again.Parts); d != "" {
					t.Errorf("%s, %s: the second time others: %s", text, kind, d)
				}
			}
		}
	}
}

// places are the rows and columns of a matrix that is drawn.
func drawn(t *testing.T, text, kind string, change func(*op.Pattern)) *sparse.COO {
	t.Helper()
	p, _ := op.StatedPattern(types.Str(kind))
	if change != nil {
		change(&p)
	}
	x, err := sparse.Draw(typeOf(t, text), p, tensor.NewStream(3, 0))
	if err != nil {
		t.Fatalf("%s, %s: %v", text, kind, err)
	}
	c, err := x.Unpack()
	if err != nil {
		t.Fatalf("%s, %s: %v", text, kind, err)
	}
	return c
}

// Patterns have the shapes that their names say, whatever the order that the format stores them in.
func TestPatterns(t *testing.T) {
	for _, format := range []string{"csr", "csc", "coo", "dcsr"} {
		ty := "tensor<400x600xf32, #dm." + format + "<nnz = 2400>>"
		degrees := func(c *sparse.COO) []int {
			d := make([]int, 400)
			for _, r := range c.At[0] {
				d[r]++
			}
			slices.SortFunc(d, func(a, b int) int { return b - a })
			return d
		}
		even, steep := degrees(drawn(t, ty, "uniform", nil)), degrees(drawn(t, ty, "power_law", nil))
		if even[0] > 25 || even[399] > 3 {
			t.Errorf("%s, uniform: the largest row has %d of 2400 elements, the smallest %d", format, even[0], even[399])
		}
		// Of a law with the exponent 2.1 row k has as k^-0.91 of row 1.
		if steep[0] < 250 || steep[0] < 12*steep[19] || steep[399] > 2 {
			t.Errorf("%s, power law: rows have %v", format, steep[:20])
		}
		flat := degrees(drawn(t, ty, "power_law", func(p *op.Pattern) { p.Exponent = 11 }))
		if flat[0] > 20 {
			t.Errorf("%s, a flatter power law: the largest row has %d", format, flat[0])
		}
		for _, width := range []int64{-1, 10} {
			reach := max(width, 2)
			c := drawn(t, ty, "band", func(p *op.Pattern) { p.Width = width })
			for k, r := range c.At[0] {
				if d := c.At[1][k] - r*599/399; d < -reach-1 || d > reach+1 {
					t.Fatalf("%s, band of %d: %s is %d from the diagonal", format, width, c.Place(k), d)
				}
			}
			if d := degrees(c); d[0]-d[200] > 1 {
				t.Errorf("%s, band of %d: rows have from %d to %d", format, width, d[0], d[399])
			}
		}
		blocks := map[[2]int64]int{}
		c := drawn(t, ty, "blocks", func(p *op.Pattern) { p.Size = 20 })
		for k, r := range c.At[0] {
			blocks[[2]int64{r / 20, c.At[1][k] / 20}]++
		}
		if len(blocks) != 6 {
			t.Errorf("%s: %d blocks of 400 hold 2400 elements", format, len(blocks))
		}
		for at, n := range blocks {
			if n != 400 {
				t.Errorf("%s: block %v has %d elements", format, at, n)
			}
		}
	}
}

// What is drawn of a huge tensor costs as much as it stores, of rows that few have room for only these
// are taken, and what has no room is refused.
func TestDrawBounds(t *testing.T) {
	const huge = "tensor<1000000000x2000000000xf32, #dm.coo<nnz = 100>>"
	for _, kind := range op.Patterns {
		if c := drawn(t, huge, kind, nil); c.Len() != 100 {
			t.Errorf("%s: %d elements", kind, c.Len())
		}
		rows := map[int64]bool{}
		for _, r := range drawn(t, "tensor<1000x50xf32, #dm.dcsr<nnz = [5, 100]>>", kind, nil).At[0] {
			rows[r] = true
		}
		if len(rows) > 5 {
			t.Errorf("%s: %d rows, with room for 5", kind, len(rows))
		}
	}
	for _, k := range []struct{ ty, kind, want string }{
		{"tensor<3x4xf32, #dm.csr<nnz = 13>>", "uniform", "stores 13 entries, but has 12 places for them"},
		{"tensor<40x50xf32, #dm.dcsr<nnz = [1, 51]>>", "uniform", "has 50 places"},
		{"tensor<100x100xf32, #dm.csr<nnz = 999>>", "band", "a band of 2 on both sides of the diagonal has 494 places, and 999 entries are stored"},
		{"tensor<100x100x100xf32, #dm.csf<nnz = [10, 10, 90]>>", "uniform", "level 1 stores 8"},
	} {
		p, _ := op.StatedPattern(types.Str(k.kind))
		p.Width = 2
		if _, err := sparse.Draw(typeOf(t, k.ty), p, tensor.NewStream(3, 0)); err == nil || !strings.Contains(err.Error(), k.want) {
			t.Errorf("%s: %v, want %q", k.ty, err, k.want)
		}
	}
}
