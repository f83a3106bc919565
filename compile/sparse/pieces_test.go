package sparse_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"dmir/compile/sparse"
	"dmir/compile/tensor"
	"dmir/dialect/types"
)

// TestPieces: a tensor cut into pieces of any format, by rows or by entries, is put together as it was; by entries no piece has more
// than its share, however the elements lie.
func TestPieces(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 9))
	for _, text := range formats {
		ty := typeOf(t, text)
		if ty.Format.Stored == nil || strings.Contains(text, "loose") {
			continue
		}
		for _, n := range []types.Pieces{{Outer: 1}, {Outer: 2}, {Outer: 3}, {Outer: 4}, {Outer: 1, Inner: 2}, {Outer: 3, Inner: 2}, {Outer: 2, Inner: 4}} {
			for _, byEntries := range []bool{false, true} {
				if n.Inner > 0 && (byEntries || ty.Rank() != 2 || strings.Contains(text, "structured")) {
					continue
				}
				c := coo(ty, r.IntN(40), r)
				if byEntries { // most in the first rows
					outer := ty.Format.Outermost()
					for k := range c.At[outer] {
						if c.At[outer][k] > 1 && r.IntN(2) == 0 {
							c.At[outer][k] = 0
						}
					}
					c = distinct(c)
				}
				x, err := sparse.Pack(sparse.Open(ty), c)
				if err != nil {
					t.Fatal(err)
				}
				most, err := x.Largest(n, byEntries)
				if err != nil {
					t.Fatal(err)
				}
				held, _ := sparse.Numbers(x.Held().Format.Stored)
				last := len(held) - 1
				if share := (held[last] + n.Count() - 1) / n.Count(); byEntries && most[last] > share {
					t.Errorf("%s: the largest of %d pieces has %d of %d entries, more than %d", text, n.Count(), most[last], held[last], share)
				}
				to := sparse.InPieces(x.Type, n, byEntries, most)
				parts, err := x.Cut(to)
				if err != nil {
					t.Fatal(err)
				}
				back, err := sparse.Joined(to, parts, x.Type)
				if err != nil {
					t.Fatal(err)
				}
				got, err := back.Unpack()
				if err != nil {
					t.Fatal(err)
				}
				if d := tensor.MaxDiff(dense(t, got), dense(t, c)); d != 0 {
					t.Errorf("%s in %d pieces, by entries %t, differs by %g", text, n, byEntries, d)
				}
			}
		}
	}
}

// distinct is c with the first of those elements that have the same coordinates.
func distinct(c *sparse.COO) *sparse.COO {
	seen := map[int64]bool{}
	var keep []int
	for k := range c.At[0] {
		place := int64(0)
		for d := range c.At {
			place = place*int64(c.Shape[d]) + c.At[d][k]
		}
		if !seen[place] {
			seen[place] = true
			keep = append(keep, k)
		}
	}
	out := &sparse.COO{Shape: slices.Clone(c.Shape), Values: sparse.Take(c.Values, keep)}
	for d := range c.At {
		var at []int64
		for _, k := range keep {
			at = append(at, c.At[d][k])
		}
		out.At = append(out.At, at)
	}
	return out
}

// TestPiecesText: how pieces are cut is a part of the type's text.
func TestPiecesText(t *testing.T) {
	for _, text := range []string{
		"tensor<12x20xf32, #dm.csr<nnz = 8, pieces = 4>>", "tensor<12x20xf32, #dm.csr<nnz = 8, pieces = 4, by = entries>>",
	} {
		if got := typeOf(t, text).String(); got != text {
			t.Errorf("%s is written as %s", text, got)
		}
	}
	a, b := typeOf(t, "tensor<12x20xf32, #dm.csr<nnz = 8, pieces = 4>>"), typeOf(t, "tensor<12x20xf32, #dm.csr<nnz = 8, pieces = 4, by = entries>>")
	if a.Format.Equal(b.Format) {
		t.Error("both are the same type")
	}
	if rows, entries := a.Components()[0].Tensor.String(), b.Components()[0].Tensor.String(); rows != "tensor<4x4xi32>" || entries != "tensor<4x13xi32>" {
		t.Errorf("positions are %s by rows and %s by entries", rows, entries)
	}
}
