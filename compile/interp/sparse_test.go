package interp

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"dmir/compile/tensor"
	"dmir/dialect/types"
)

// formatsOf are formats of tensors of a rank with dimensions of 4, 6 and 8, by which blocks
// of 2 go.
func formatsOf(rank int) []string {
	switch rank {
	case 1:
		return []string{"#dm.sparse_vector<nnz = E>", "#dm.sparse<map = (i) -> (i : dense), posWidth = 32>", "#dm.sparse<map = (i) -> (i floordiv 2 : compressed, i mod 2 : dense), nnz = E>"}
	case 2:
		return []string{
			"#dm.csr<nnz = E>", "#dm.csc<nnz = E, posWidth = 64, crdWidth = 64>", "#dm.coo<nnz = E>", "#dm.dcsr<nnz = [8, E]>", "#dm.dcsc<nnz = E>", "#dm.bsr<2x2, nnz = E>", "#dm.bsr<1x2, nnz = E, crdWidth = 16>",
			"#dm.sparse<map = (i, j) -> (j : compressed(nonunique), i : singleton), nnz = E>",
			"#dm.sparse<map = (i, j) -> (i : compressed, j : dense), nnz = E>",
			"#dm.sparse<map = (i, j) -> (j floordiv 2 : dense, i floordiv 2 : compressed, j mod 2 : dense, i mod 2 : dense), nnz = E>",
			"#dm.sparse<map = (i, j) -> (j : dense, i : dense)>",
		}
	}
	return []string{
		"#dm.csf<nnz = E>", "#dm.coo<nnz = E>", "#dm.sparse<map = (i, j, k) -> (j : dense, k : compressed, i : compressed), nnz = E>",
		"#dm.sparse<map = (i, j, k) -> (i : dense, j : dense, k : compressed), nnz = E>", "#dm.sparse<map = (i, j, k) -> (k : compressed, i floordiv 2 : compressed, i mod 2 : dense, j : dense), nnz = E>",
	}
}

// typeOf is the text of a tensor type.
func typeOf(shape []int, format string) string {
	var b strings.Builder
	b.WriteString("tensor<")
	n := 1
	for _, d := range shape {
		fmt.Fprintf(&b, "%dx", d)
		n *= d
	}
	b.WriteString("f64")
	if format != "" {
		b.WriteString(", " + strings.ReplaceAll(format, "E", fmt.Sprint(n+3)))
	}
	return b.String() + ">"
}

// TestSparseOps compares ops on sparse tensors of all formats with the same ops on dense
// ones, for random patterns: none, one, few, half and all of the elements.
func TestSparseOps(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	size := map[byte]int{'i': 4, 'j': 6, 'k': 8, 'l': 2, 'm': 3}
	shapeOf := func(letters string) (s []int) {
		for i := range letters {
			s = append(s, size[letters[i]])
		}
		return s
	}
	// Each case has the letters of the sparse operand S, those of dense ones, and an expression.
	cases := []struct{ sparse, dense, op, out string }{
		{"ij", "j", `dm.einsum "ij,j->i" S, %b0`, "i"},
		{"ij", "i", `dm.einsum "ij,i->j" S, %b0`, "j"},
		{"ij", "i,j", `dm.einsum "ij,i,j->" S, %b0, %b1`, ""},
		{"ij", "jl", `dm.einsum "ij,jl->il" S, %b0`, "il"},
		{"ij", "il", `dm.einsum "ij,il->lj" S, %b0`, "lj"},
		{"ij", "jl,lm", `dm.einsum "jl,ij,lm->mi" %b0, S, %b1`, "mi"},
		{"ij", "ij", `dm.einsum "ij,ij->j" S, %b0`, "j"},
		{"ij", "l", `dm.einsum "ij,l->lji" S, %b0`, "lji"},
		{"ij", "jk", `dm.matmul S, %b0`, "ik"},
		{"ij", "ki", `dm.matmul %b0, S`, "kj"},
		{"ij", "", `dm.einsum "ij->ji" S`, "ji"},
		{"i", "i", `dm.einsum "i,i->" S, %b0`, ""},
		{"i", "il", `dm.einsum "i,il->l" S, %b0`, "l"},
		{"ijk", "k", `dm.einsum "ijk,k->ij" S, %b0`, "ij"},
		{"ijk", "kl", `dm.einsum "ijk,kl->ijl" S, %b0`, "ijl"},
		{"ijk", "jl,kl", `dm.einsum "ijk,jl,kl->il" S, %b0, %b1`, "il"},
		{"ijk", "il,kl", `dm.einsum "ijk,il,kl->jl" S, %b0, %b1`, "jl"},
		{"ijk", "", `dm.reduce add S, dims = [1]`, "ik"},
		{"ij", "", `dm.reduce add S, dims = [0], keep_dims = true`, "aj"},
	}
	size['a'] = 1
	for _, c := range cases {
		for _, format := range formatsOf(len(c.sparse)) {
			for density := range 5 {
				x := tensor.New(types.F64, shapeOf(c.sparse)...)
				for i := range x.Len() {
					if []bool{false, i == 5, rng.IntN(8) == 0, rng.IntN(2) == 0, true}[density] {
						x.SetFloat(i, rng.NormFloat64())
					}
				}
				args := []*tensor.Tensor{x}
				dense, sparse := typeOf(x.Shape, ""), typeOf(x.Shape, format)
				params, ts := "%x: "+dense, map[string]string{"S": dense}
				var others []string
				if c.dense != "" {
					others = strings.Split(c.dense, ",")
				}
				for i, letters := range others {
					y := tensor.New(types.F64, shapeOf(letters)...)
					for k := range y.Len() {
						y.SetFloat(k, rng.NormFloat64())
					}
					args = append(args, y)
					name := fmt.Sprintf("%%b%d", i)
					ts[name] = typeOf(y.Shape, "")
					params += ", " + name + ": " + ts[name]
				}
				out := typeOf(shapeOf(c.out), "")
				text := func(s, st string) string {
					ts["S"] = st
					var operands []string
					for _, w := range strings.FieldsFunc(c.op[strings.LastIndexByte(c.op, '"')+1:], func(r rune) bool { return r == ' ' || r == ',' }) {
						if w == "S" || w[0] == '%' {
							operands = append(operands, ts[w])
						}
					}
					return strings.ReplaceAll(c.op, "S", s) + " : (" + strings.Join(operands, ", ") + ") -> " + out
				}
				program := fmt.Sprintf("func.func @f(%s) -> (%s, %s, %s) {\n  %%s = dm.convert_format %%x : (%s) -> %s\n  %%d = dm.convert_format %%s : (%s) -> %s\n  %%y = %s\n  %%z = %s\n  return %%d, %%y, %%z : %s, %s, %s\n}",
					params, dense, out, out, dense, sparse, sparse, dense, text("%s", sparse), text("%x", dense), dense, out, out)
				got := run(t, program, args...)
				if !sameValues(got[0], x, 0) {
					t.Fatalf("%s\nconverted: %v, from %v", program, got[0], x)
				}
				if !sameValues(got[1], got[2], 1e-12) {
					t.Fatalf("%s\nx = %v\n%v, dense %v", program, x, got[1], got[2])
				}
			}
		}
	}
}

func sameValues(a, b *tensor.Tensor, tolerance float64) bool {
	if !slices.Equal(a.Shape, b.Shape) {
		return false
	}
	for i := range a.Len() {
		if math.Abs(a.Float(i)-b.Float(i)) > tolerance*max(1, math.Abs(b.Float(i))) {
			return false
		}
	}
	return true
}
