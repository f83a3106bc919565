package interp

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"dmir/compile/sparse"
	"dmir/compile/tensor"
	"dmir/dialect/types"
)

// withGaps are the components of x in a format whose level number loose is loose, and below which each entry has as many values as any
// other: behind the entries of each parent lie some that are in no range, whose values are NaN.
func withGaps(t *testing.T, rng *rand.Rand, text string, loose int, x *tensor.Tensor) (*types.Tensor, []*tensor.Tensor) {
	t.Helper()
	typ, err := sparse.ParseType(text)
	if err != nil {
		t.Fatal(err)
	}
	s, err := sparse.Pack(sparse.Open(typ), sparse.OfDense(x))
	if err != nil {
		t.Fatal(err)
	}
	at := typ.Component(loose, types.Positions)
	positions := slices.Clone(s.Parts[at].Int)
	var from []int // of each entry the one that it was, -1 in a gap
	for p := 0; p < len(positions); p += 2 {
		begin, end := positions[p], positions[p+1]
		positions[p] = int64(len(from))
		for i := begin; i < end; i++ {
			from = append(from, int(i))
		}
		positions[p+1] = int64(len(from))
		for range rng.IntN(3) {
			from = append(from, -1)
		}
	}
	typ = sparse.Shaped(typ, x.Shape, []int64{int64(len(from))})
	parts := make([]*tensor.Tensor, len(s.Parts))
	for i, c := range typ.Components() {
		n, _ := c.Tensor.Shape[0].Int()
		parts[i] = tensor.New(c.Tensor.Elem, int(n))
		each := int(n) / max(len(from), 1)
		for k := range int(n) {
			switch {
			case i == at:
				parts[i].Int[k] = positions[k]
			case c.Kind == types.Values && from[k/each] < 0:
				parts[i].SetFloat(k, math.NaN())
			case c.Kind == types.Values:
				parts[i].SetFloat(k, s.Parts[i].Float(from[k/each]*each+k%each))
			case from[k] >= 0:
				parts[i].Int[k] = s.Parts[i].Int[from[k]]
			}
		}
	}
	return typ, parts
}

// What lies in the gaps between the entries of a loose level takes no part in ops and gradients, whatever it is.
func TestSparseGaps(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for _, c := range []struct {
		rank, loose int
		format      string
	}{
		{1, 0, "(i) -> (i : loose_compressed)"},
		{2, 1, "(i, j) -> (i : dense, j : loose_compressed)"},
		{2, 1, "(i, j) -> (j : dense, i : loose_compressed)"},
		{2, 0, "(i, j) -> (i : loose_compressed(nonunique), j : singleton)"},
		{2, 0, "(i, j) -> (i : loose_compressed, j : dense)"},
		{2, 1, "(i, j) -> (i floordiv 2 : dense, j floordiv 2 : loose_compressed, i mod 2 : dense, j mod 2 : dense)"},
		{3, 1, "(i, j, k) -> (i : dense, j : loose_compressed(nonunique), k : singleton)"},
	} {
		for _, p := range []float64{0, 0.1, 0.5, 1} {
			x := tensor.New(types.F64, []int{4, 6, 8}[:c.rank]...)
			for i := range x.Len() {
				if rng.Float64() < p {
					x.SetFloat(i, math.Abs(rng.NormFloat64())+0.5)
				}
			}
			letters := "ijk"[:c.rank]
			dense := typeOf(x.Shape, "")
			typ, parts := withGaps(t, rng, strings.Replace(dense, ">", ", #dm.sparse<map = "+c.format+", nnz = 200>>", 1), c.loose, x)
			args := append([]*tensor.Tensor{x, tensor.New(types.F64, x.Shape[c.rank-1], 3)}, parts...)
			for i := range args[1].Len() {
				args[1].SetFloat(i, rng.NormFloat64())
			}
			last := letters[c.rank-1:]
			out := typeOf(append(slices.Clone(x.Shape[:c.rank-1]), 3), "")
			vector := typeOf(x.Shape[:1], "")
			var names, ts []string
			for i, part := range typ.Components() {
				names, ts = append(names, fmt.Sprintf("%%p%d", i)), append(ts, part.Tensor.String())
			}
			params := ""
			for i := range names {
				params += ", " + names[i] + ": " + ts[i]
			}
			full := strings.Replace(dense, ">", ", #dm.sparse<map = "+c.format+", nnz = 200>>", 1)
			compact := strings.Replace(dense, ">", ", #dm."+[]string{"sparse_vector", "csr", "csf"}[c.rank-1]+"<nnz = 200>>", 1)
			dims := numbered("%d", c.rank)
			rest := strings.TrimPrefix(strings.TrimPrefix(dims, "0"), ", ")
			text := strings.NewReplacer("PARAMS", params, "NAMES", strings.Join(names, ", "), "TYPES", strings.Join(ts, ", "), "SPARSE", typ.String(), "FULL", full, "COMPACT", compact,
				"DENSE", dense, "OUT", out, "VECTOR", vector, "EQ", letters+","+last+"r->"+letters[:c.rank-1]+"r", "BACK", letters+","+letters+"->"+letters[:1],
				"DIMS", dims, "REST", rest, "B", typeOf(args[1].Shape, "")).Replace(`func.func @f(%x: DENSE, %b: BPARAMS) -> (DENSE, DENSE, DENSE, DENSE, OUT, OUT, VECTOR, VECTOR, VECTOR, VECTOR, DENSE, DENSE, DENSE, DENSE, B, B) {
  %s = dm.pack NAMES : (TYPES) -> SPARSE
  %d = dm.convert_format %s : (SPARSE) -> DENSE
  %c = dm.convert_format %s : (SPARSE) -> COMPACT
  %e = dm.convert_format %c : (COMPACT) -> DENSE
  %y = dm.einsum "EQ" %s, %b : (SPARSE, B) -> OUT
  %z = dm.einsum "EQ" %x, %b : (DENSE, B) -> OUT
  %m = dm.reduce max %s, dims = [REST] : (SPARSE) -> VECTOR
  %n = dm.reduce max %x, dims = [REST] : (DENSE) -> VECTOR
  %q = dm.einsum "BACK" %s, %c : (SPARSE, COMPACT) -> VECTOR
  %r = dm.einsum "BACK" %x, %x : (DENSE, DENSE) -> VECTOR
  %u = dm.add %s, %c : (SPARSE, COMPACT) -> FULL
  %v = dm.convert_format %u : (FULL) -> DENSE
  %w = dm.add %x, %x : DENSE
  %g = dm.mul %s, %c : (SPARSE, COMPACT) -> FULL
  %h = dm.convert_format %g : (FULL) -> DENSE
  %k = dm.mul %x, %x : DENSE
  %l0, %ds = dm.grad @sparse %s, %b, wrt = [1] : (SPARSE, B) -> (tensor<f64>, B)
  %l1, %dx = dm.grad @dense %x, %b, wrt = [1] : (DENSE, B) -> (tensor<f64>, B)
  return %d, %x, %e, %x, %y, %z, %m, %n, %q, %r, %v, %w, %h, %k, %ds, %dx : DENSE, DENSE, DENSE, DENSE, OUT, OUT, VECTOR, VECTOR, VECTOR, VECTOR, DENSE, DENSE, DENSE, DENSE, B, B
}

func.func private @sparse(%s: SPARSE, %b: B) -> tensor<f64> {
  %y = dm.einsum "EQ" %s, %b : (SPARSE, B) -> OUT
  %z = dm.mul %y, %y : OUT
  %l = dm.reduce add %z, dims = [DIMS] : (OUT) -> tensor<f64>
  return %l : tensor<f64>
}

func.func private @dense(%s: DENSE, %b: B) -> tensor<f64> {
  %y = dm.einsum "EQ" %s, %b : (DENSE, B) -> OUT
  %z = dm.mul %y, %y : OUT
  %l = dm.reduce add %z, dims = [DIMS] : (OUT) -> tensor<f64>
  return %l : tensor<f64>
}`)
			got := run(t, text, args...)
			for i := 0; i < len(got); i += 2 {
				if !sameValues(got[i], got[i+1], 1e-12) {
					t.Errorf("%s, %g stored: result %d is %v, dense %v\n%s", c.format, p, i/2, got[i], got[i+1], text)
				}
			}
		}
	}
}
