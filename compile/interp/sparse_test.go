package interp

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"dmir/compile/sparse"
	"dmir/compile/tensor"
	"dmir/dialect/types"
	"dmir/dialect/verify"
	"dmir/testkit/randprog"
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
			"#dm.sparse<map = (i, j) -> (i : dense, j : loose_compressed), nnz = E>",
		}
	}
	return []string{
		"#dm.csf<nnz = E>", "#dm.coo<nnz = E>", "#dm.sparse<map = (i, j, k) -> (j : dense, k : compressed, i : compressed), nnz = E>",
		"#dm.sparse<map = (i, j, k) -> (i : dense, j : dense, k : compressed), nnz = E>", "#dm.sparse<map = (i, j, k) -> (k : compressed, i floordiv 2 : compressed, i mod 2 : dense, j : dense), nnz = E>",
		"#dm.sparse<map = (i, j, k) -> (i : dense, j : loose_compressed(nonunique), k : singleton), nnz = E>",
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
		if !(math.Abs(a.Float(i)-b.Float(i)) <= tolerance*max(1, math.Abs(b.Float(i)))) {
			return false
		}
	}
	return true
}

// TestSparseElements compares ops whose results are sparse with the same on dense tensors:
// of one pattern, of two that are merged, and of conversions between all formats.
func TestSparseElements(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, rank := range []int{1, 2, 3} {
		shape := []int{4, 6, 8}[:rank]
		formats := formatsOf(rank)
		for _, format := range formats {
			for density := range 5 {
				random := func(p float64) *tensor.Tensor {
					x := tensor.New(types.F64, shape...)
					for i := range x.Len() {
						if rng.Float64() < p {
							x.SetFloat(i, math.Abs(rng.NormFloat64())+0.5)
						}
					}
					return x
				}
				p := []float64{0, 0.02, 0.2, 0.6, 1}[density]
				x, y, b := random(p), random(0.5*p+0.1), random(1)
				dense, sparse, other := typeOf(shape, ""), typeOf(shape, format), typeOf(shape, formats[rng.IntN(len(formats))])
				blocks := strings.Contains(sparse+other, "floordiv") || strings.Contains(sparse+other, "bsr") || strings.Contains(sparse+other, ": dense)")
				var body strings.Builder
				fmt.Fprintf(&body, "  %%s = dm.convert_format %%x : (%s) -> %s\n  %%t = dm.convert_format %%y : (%[1]s) -> %[2]s\n", dense, sparse)
				var got, want []string
				each := func(ofSparse, ofDense string) {
					n := len(got)
					fmt.Fprintf(&body, "  %%r%[1]d = %[2]s\n  %%g%[1]d = dm.convert_format %%r%[1]d : (%[3]s) -> %[4]s\n  %%w%[1]d = %[5]s\n", n, ofSparse, sparse, dense, ofDense)
					got, want = append(got, fmt.Sprintf("%%g%d", n)), append(want, fmt.Sprintf("%%w%d", n))
				}
				for _, op := range []string{"add", "sub", "max", "min", "mul"} {
					each(fmt.Sprintf("dm.%s %%s, %%t : %s", op, sparse), fmt.Sprintf("dm.%s %%x, %%y : %s", op, dense))
				}
				each(fmt.Sprintf("dm.mul %%s, %%b : (%s, %s) -> %[1]s", sparse, dense), fmt.Sprintf("dm.mul %%x, %%b : %s", dense))
				each(fmt.Sprintf("dm.div %%s, %%b : (%s, %s) -> %[1]s", sparse, dense), fmt.Sprintf("dm.div %%x, %%b : %s", dense))
				each("dm.tanh %s : "+sparse, "dm.tanh %x : "+dense)
				fmt.Fprintf(&body, "  %%two = dm.add %%s, %%s : %s\n  %%q = dm.relu %%two : %[1]s\n", sparse)
				each("dm.sub %q, %s : "+sparse, "dm.max %x, %x : "+dense)
				if !blocks {
					fmt.Fprintf(&body, "  %%o = dm.convert_format %%s : (%s) -> %s\n", sparse, other)
					each(fmt.Sprintf("dm.convert_format %%o : (%s) -> %s", other, sparse), "dm.max %x, %x : "+dense)
				}
				ts := strings.Repeat(dense+", ", 2*len(got)-1) + dense
				program := fmt.Sprintf("func.func @f(%%x: %s, %%y: %[1]s, %%b: %[1]s) -> (%s) {\n%s  return %s : %[2]s\n}", dense, ts, body.String(), strings.Join(append(got, want...), ", "))
				out := run(t, program, x, y, b)
				for i := range got {
					if !sameValues(out[i], out[len(got)+i], 1e-12) {
						t.Fatalf("%s\nx = %v\ny = %v\nresult %d: %v, dense %v", program, x, y, i, out[i], out[len(got)+i])
					}
				}
			}
		}
	}
}

// TestSparseRows compares sampled products and softmax over what is stored with dense ones
// under a mask.
func TestSparseRows(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for _, format := range formatsOf(2) {
		for _, p := range []float64{0.1, 0.5, 1} {
			args := []*tensor.Tensor{tensor.New(types.F64, 4, 6), tensor.New(types.F64, 4, 3), tensor.New(types.F64, 6, 3)}
			for a, x := range args {
				for i := range x.Len() {
					if a > 0 || rng.Float64() < p || i%6 == 0 {
						x.SetFloat(i, math.Abs(rng.NormFloat64())+0.5)
					}
				}
			}
			sparse := typeOf([]int{4, 6}, format)
			out := run(t, strings.ReplaceAll(`func.func @f(%x: tensor<4x6xf64>, %q: tensor<4x3xf64>, %k: tensor<6x3xf64>) -> (tensor<4x6xf64>, tensor<4x6xf64>, tensor<4x6xf64>, tensor<4x6xf64>, tensor<4x6xf64>, tensor<4x6xf64>, tensor<4x6xf64>) {
  %s = dm.convert_format %x : (tensor<4x6xf64>) -> SPARSE
  %one = dm.div %s, %s : SPARSE
  %stored = dm.convert_format %one : (SPARSE) -> tensor<4x6xf64>
  %a = dm.sample "ik,jk->ij" %s, %q, %k : (SPARSE, tensor<4x3xf64>, tensor<6x3xf64>) -> SPARSE
  %p = dm.softmax %a, dim = 1 : SPARSE
  %c = dm.softmax %s, dim = 0 : SPARSE
  %y = dm.convert_format %p : (SPARSE) -> tensor<4x6xf64>
  %z = dm.convert_format %c : (SPARSE) -> tensor<4x6xf64>
  %e = dm.sample %s, %x : (SPARSE, tensor<4x6xf64>) -> SPARSE
  %d = dm.convert_format %e : (SPARSE) -> tensor<4x6xf64>
  %m = dm.einsum "ik,jk->ij" %q, %k : (tensor<4x3xf64>, tensor<6x3xf64>) -> tensor<4x6xf64>
  %ri = dm.sample "ik->ij" %s, %q : (SPARSE, tensor<4x3xf64>) -> SPARSE
  %rj = dm.sample "jk->ij" %s, %k : (SPARSE, tensor<6x3xf64>) -> SPARSE
  %i = dm.convert_format %ri : (SPARSE) -> tensor<4x6xf64>
  %j = dm.convert_format %rj : (SPARSE) -> tensor<4x6xf64>
  return %stored, %m, %y, %z, %d, %i, %j : tensor<4x6xf64>, tensor<4x6xf64>, tensor<4x6xf64>, tensor<4x6xf64>, tensor<4x6xf64>, tensor<4x6xf64>, tensor<4x6xf64>
}`, "SPARSE", sparse), args...)
			stored, scores := out[0], out[1]
			if strings.Contains(format, "bsr") || strings.Contains(format, "dense") { // what is in a block is stored, 0 or not: 0/0
				for i := range stored.Len() {
					if math.IsNaN(stored.Float(i)) {
						stored.SetFloat(i, 1)
					}
				}
			}
			soft := func(x *tensor.Tensor, i int, others func(k int) int, n int) float64 {
				sum := 0.0
				for k := range n {
					if j := others(k); stored.Float(j) == 1 {
						sum += math.Exp(x.Float(j))
					}
				}
				if stored.Float(i) != 1 {
					return 0
				}
				return math.Exp(x.Float(i)) / sum
			}
			sum := func(x *tensor.Tensor, row int) float64 { return x.Float(3*row) + x.Float(3*row+1) + x.Float(3*row+2) }
			for i := range 24 {
				for a, want := range []float64{sum(args[1], i/6), sum(args[2], i%6)} {
					if got := out[5+a].Float(i); math.Abs(got-want*stored.Float(i)) > 1e-12 {
						t.Fatalf("%s: element %d is repeated as %g, want %g\n%v", format, i, got, want, stored)
					}
				}
				row := soft(scores, i, func(k int) int { return i/6*6 + k }, 6)
				column := soft(args[0], i, func(k int) int { return k*6 + i%6 }, 4)
				if math.Abs(out[2].Float(i)-row) > 1e-12 || math.Abs(out[3].Float(i)-column) > 1e-12 || out[4].Float(i) != args[0].Float(i) {
					t.Fatalf("%s: element %d: %g and %g, want %g and %g; sampled %g of %g\n%v", format, i, out[2].Float(i), out[3].Float(i), row, column, out[4].Float(i), args[0].Float(i), stored)
				}
			}
		}
	}
}

// What lies beyond the entries of a sparse tensor takes no part, and is 0 in results and gradients: nothing that is computed of it is NaN,
// where rows are empty, the last one too, where a dense operand is infinite at an element that is not stored, and where a derivative at 0 is.
func TestSparsePadding(t *testing.T) {
	for _, format := range formatsOf(2) {
		for _, last := range []int{0, 2, 4} { // rows with elements
			x, b := tensor.New(types.F64, 4, 6), tensor.New(types.F64, 4, 6)
			for i := range b.Len() {
				b.SetFloat(i, float64(i-2)/3)
				if i%2 == 1 && i < 6*last {
					x.SetFloat(i, float64(i)/2)
				}
			}
			b.SetFloat(0, math.Inf(1))
			b.SetFloat(2, 0)
			for _, op := range []string{"dm.softmax %s, dim = 1 : SPARSE", "dm.softmax %s, dim = 0 : SPARSE", "dm.div %s, %s : SPARSE", "dm.div %s, %b : (SPARSE, DENSE) -> SPARSE", "dm.mul %s, %b : (SPARSE, DENSE) -> SPARSE", "dm.sqrt %s : SPARSE", "dm.cbrt %s : SPARSE", "dm.sample %s, %b : (SPARSE, DENSE) -> SPARSE"} {
				if !strings.HasPrefix(op, "dm.softmax") && !strings.HasPrefix(op, "dm.sample") && (strings.Contains(format, "bsr") || strings.Contains(format, "dense)")) {
					continue // what is in a block is stored, 0 or not: 0/0, and roots of 0
				}
				out := run(t, strings.NewReplacer("SPARSE", typeOf([]int{4, 6}, format), "DENSE", "tensor<4x6xf64>").Replace(strings.Replace(`func.func @f(%x: DENSE, %b: DENSE) -> (tensor<f64>, SPARSE, SPARSE, DENSE) {
  %s = dm.convert_format %x : (DENSE) -> SPARSE
  %y = func.call @op(%s, %b) : (SPARSE, DENSE) -> SPARSE
  %l, %ds, %db = dm.grad @loss %s, %b, wrt = [0, 1] : (SPARSE, DENSE) -> (tensor<f64>, SPARSE, DENSE)
  return %l, %y, %ds, %db : tensor<f64>, SPARSE, SPARSE, DENSE
}

func.func private @loss(%s: SPARSE, %b: DENSE) -> tensor<f64> {
  %y = func.call @op(%s, %b) : (SPARSE, DENSE) -> SPARSE
  %z = dm.mul %y, %y : SPARSE
  %l = dm.reduce add %z : (SPARSE) -> tensor<f64>
  return %l : tensor<f64>
}

func.func private @op(%s: SPARSE, %b: DENSE) -> SPARSE {
  %y = OP
  return %y : SPARSE
}`, "OP", op, 1)), x, b)
				for n, v := range out {
					for i := range v.Len() {
						if math.IsNaN(v.Float(i)) {
							t.Errorf("%s, %d rows, %s: output %d is NaN at %d: %v", format, last, op, n, i, v)
							break
						}
					}
				}
				typ, err := sparse.ParseType(typeOf([]int{4, 6}, format))
				if err != nil {
					t.Fatal(err)
				}
				n := len(typ.Components())
				for i, name := range []string{"the result", "the gradient"} {
					if err := (&sparse.Tensor{Type: typ, Parts: out[1+i*n : 1+(i+1)*n]}).Check(); err != nil {
						t.Errorf("%s, %d rows, %s: %s: %v", format, last, op, name, err)
					}
				}
			}
		}
	}
}

// TestSparsePrograms compares random programs on sparse tensors with the same on dense ones.
func TestSparsePrograms(t *testing.T) {
	n := uint64(100)
	if s := os.Getenv("DMIR_SPARSE"); s != "" {
		n, _ = strconv.ParseUint(s, 10, 64)
	}
	for seed := range n {
		text := randprog.Sparse(seed)
		m := read(t, text)
		for _, d := range verify.Module(m) {
			t.Fatalf("seed %d: %s\n%s", seed, d.Message, text)
		}
		out, err := try(t, m, Options{})
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, text)
		}
		for i := range randprog.SparsePairs {
			if !sameValues(out[i], out[randprog.SparsePairs+i], 1e-10) {
				t.Fatalf("seed %d: result %d: %v, dense %v\n%s", seed, i, out[i], out[randprog.SparsePairs+i], text)
			}
		}
	}
}

// TestSparseCases runs programs that once went wrong: their results are equal in pairs.
func TestSparseCases(t *testing.T) {
	for name, text := range map[string]string{
		"a tensor that a tuple holds twice": `!s = tensor<8x6xf64, #dm.csr<nnz = 48>>
func.func @f(%x: tensor<8x6xf64>) -> (tensor<8x6xf64>, tensor<8x6xf64>) {
  %a = dm.convert_format %x : (tensor<8x6xf64>) -> !s
  %p = dm.pack %a, %a : (!s, !s) -> tuple<!s, !s>
  %b, %c = dm.unpack %p : (tuple<!s, !s>) -> (!s, !s)
  %d = dm.add %b, %c : (!s, !s) -> tensor<8x6xf64, #dm.csr<nnz = 96>>
  %y = dm.convert_format %d : (tensor<8x6xf64, #dm.csr<nnz = 96>>) -> tensor<8x6xf64>
  %z = dm.add %x, %x : tensor<8x6xf64>
  return %y, %z : tensor<8x6xf64>, tensor<8x6xf64>
}`,
		"the gradient by what is pruned is that of what is kept": `!n = tensor<4x8xf64, #dm.nm<2:4>>
func.func @f(%x: tensor<4x8xf64>, %w: tensor<8x3xf64>) -> (tensor<4x8xf64>, tensor<4x8xf64>) {
  %l, %d = dm.grad @loss %x, %w, wrt = [0] : (tensor<4x8xf64>, tensor<8x3xf64>) -> (tensor<f64>, tensor<4x8xf64>)
  %n = dm.prune %x : (tensor<4x8xf64>) -> !n
  %kept = dm.convert_format %n : (!n) -> tensor<4x8xf64>
  %ones = dm.div %kept, %x : tensor<4x8xf64>
  %sums = dm.reduce add %w, dims = [1] : (tensor<8x3xf64>) -> tensor<8xf64>
  %y = dm.mul %ones, %sums : (tensor<4x8xf64>, tensor<8xf64>) -> tensor<4x8xf64>
  return %d, %y : tensor<4x8xf64>, tensor<4x8xf64>
}
func.func private @loss(%x: tensor<4x8xf64>, %w: tensor<8x3xf64>) -> tensor<f64> {
  %n = dm.prune %x : (tensor<4x8xf64>) -> !n
  %y = dm.matmul %n, %w : (!n, tensor<8x3xf64>) -> tensor<4x3xf64>
  %l = dm.reduce add %y : (tensor<4x3xf64>) -> tensor<f64>
  return %l : tensor<f64>
}`,
		"a step of shortest paths, a product in the semiring of minima and sums": `!s = tensor<8x6xf64, #dm.csr<nnz = 48>>
func.func @f(%x: tensor<8x6xf64>, %d: tensor<6xf64>) -> (tensor<8xf64>, tensor<8xf64>) {
  %r = dm.relu %x : tensor<8x6xf64>
  %a = dm.convert_format %r : (tensor<8x6xf64>) -> !s
  %p, %c, %v = dm.unpack %a : (!s) -> (tensor<9xi32>, tensor<48xi32>, tensor<48xf64>)
  %from = dm.gather %d, %c, dim = 0 : (tensor<6xf64>, tensor<48xi32>) -> tensor<48xf64>
  %way = dm.add %v, %from : tensor<48xf64>
  %y = dm.segment_reduce min %way, %p : (tensor<48xf64>, tensor<9xi32>) -> tensor<8xf64>
  %zero = dm.constant dense<0.0> : tensor<f64>
  %one = dm.constant dense<1.0> : tensor<f64>
  %far = dm.div %one, %zero : tensor<f64>
  %is = dm.compare gt %r, %zero : (tensor<8x6xf64>, tensor<f64>) -> tensor<8x6xi1>
  %all = dm.add %r, %d : (tensor<8x6xf64>, tensor<6xf64>) -> tensor<8x6xf64>
  %edges = dm.select %is, %all, %far : (tensor<8x6xi1>, tensor<8x6xf64>, tensor<f64>) -> tensor<8x6xf64>
  %z = dm.reduce min %edges, dims = [1] : (tensor<8x6xf64>) -> tensor<8xf64>
  %hundred = dm.constant dense<100.0> : tensor<f64>
  %u = dm.min %y, %hundred : (tensor<8xf64>, tensor<f64>) -> tensor<8xf64>
  %w = dm.min %z, %hundred : (tensor<8xf64>, tensor<f64>) -> tensor<8xf64>
  return %u, %w : tensor<8xf64>, tensor<8xf64>
}`,
		"a product of rows whose result stores whole rows": `!a = tensor<8x6xf64, #dm.csr<nnz = 48>>
!b = tensor<6x4xf64, #dm.coo<nnz = 24>>
!c = tensor<8x4xf64, #dm.sparse<map = (i, j) -> (i : compressed, j : dense), nnz = 8>>
func.func @f(%x: tensor<8x6xf64>, %w: tensor<6x4xf64>) -> (tensor<8x4xf64>, tensor<8x4xf64>) {
  %r = dm.relu %x : tensor<8x6xf64>
  %a = dm.convert_format %r : (tensor<8x6xf64>) -> !a
  %b = dm.convert_format %w : (tensor<6x4xf64>) -> !b
  %c = dm.matmul %a, %b, products = 192 : (!a, !b) -> !c
  %m = dm.sample "ik,kj->ij" %c, %a, %b, products = 192 : (!c, !a, !b) -> !c
  %y = dm.convert_format %m : (!c) -> tensor<8x4xf64>
  %z = dm.matmul %r, %w : (tensor<8x6xf64>, tensor<6x4xf64>) -> tensor<8x4xf64>
  return %y, %z : tensor<8x4xf64>, tensor<8x4xf64>
}`,
		"a loose operand that shares no letter": `!s = tensor<4x6xf64, #dm.sparse<map = (i, j) -> (i : dense, j : loose_compressed), nnz = 24>>
!v = tensor<3xf64, #dm.sparse_vector<nnz = 3>>
func.func @f(%x: tensor<4x6xf64>, %w: tensor<3xf64>) -> (tensor<3x4x6xf64>, tensor<3x4x6xf64>) {
  %r = dm.relu %x : tensor<4x6xf64>
  %s = dm.convert_format %r : (tensor<4x6xf64>) -> !s
  %v = dm.convert_format %w : (tensor<3xf64>) -> !v
  %y = dm.einsum "k,ij->kij" %v, %s, products = 100 : (!v, !s) -> tensor<3x4x6xf64>
  %z = dm.einsum "k,ij->kij" %w, %r : (tensor<3xf64>, tensor<4x6xf64>) -> tensor<3x4x6xf64>
  return %y, %z : tensor<3x4x6xf64>, tensor<3x4x6xf64>
}`,
		"blocks of which some elements are stored": `!s = tensor<8xf64, #dm.sparse<map = (i) -> (i floordiv 2 : compressed, i mod 2 : compressed), nnz = 8>>
func.func @f(%x: tensor<8xf64>) -> (tensor<8xf64>, tensor<8xf64>) {
  %r = dm.relu %x : tensor<8xf64>
  %a = dm.convert_format %r : (tensor<8xf64>) -> !s
  %b = dm.convert_format %a : (!s) -> tensor<8xf64, #dm.sparse_vector<nnz = 8>>
  %c = dm.convert_format %b : (tensor<8xf64, #dm.sparse_vector<nnz = 8>>) -> !s
  %y = dm.convert_format %c : (!s) -> tensor<8xf64>
  return %y, %r : tensor<8xf64>, tensor<8xf64>
}`,
	} {
		out := run(t, text)
		if !sameValues(out[0], out[1], 1e-14) {
			t.Errorf("%s: %v, want %v", name, out[0], out[1])
		}
	}
}
