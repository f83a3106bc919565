package interp

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"dmir/compile/tensor"
	"dmir/dialect/types"
	"dmir/dialect/verify"
)

// TestSparseProducts compares contractions of several sparse operands, in all formats and with
// random patterns, with the same of dense ones: with dense and with sparse results, with
// and without a bound on products, and their gradients.
func TestSparseProducts(t *testing.T) {
	size := map[byte]int{'i': 4, 'j': 6, 'k': 8, 'l': 2, 'm': 4}
	cases := []struct {
		eq      string
		sparse  string // y for each operand that is
		expands bool
	}{
		{"ik,kj->ij", "yy", true}, {"ik,kj->ji", "yy", true}, {"ki,jk->ij", "yy", true}, {"ik,kj->i", "yy", true}, {"ik,kj->", "yy", true},
		{"ij,ij->ij", "yy", false}, {"ij,ji->ij", "yy", false}, {"ij,ij->", "yy", false}, {"ij,ij->j", "yy", false}, {"i,i->", "yy", false}, {"ij,j->i", "yy", false}, {"ij,i->ij", "yy", false},
		{"i,j->ij", "yy", true}, {"ij,jk,kl->il", "yyy", true}, {"ij,jk,ik->ik", "yyy", true}, {"ijk,kj->i", "yy", false}, {"ijk,kl->ijl", "yy", true}, {"ijk,jl,kl->il", "yyy", true},
		{"ik,kj,j->ij", "yyn", true}, {"ik,kj,il->lj", "yyn", true}, {"ij,j->ij", "yn", false}, {"ijk,k->ij", "yn", false}, {"ijk,kl->ijl", "yn", false}, {"ij,jl->il", "yn", false}, {"ij->ji", "y", false}, {"ij->i", "y", false},
		{"im->im", "y", false}, {"ii->i", "y", false}, {"ii,ij->j", "yy", true}, {"ij,kl->k", "yy", true}, {"ij,ij,ij->ij", "yyy", false}, {"ij,jl,ij->il", "yny", false},
	}
	n := 2 * len(cases)
	if s := os.Getenv("DMIR_SPARSE"); s != "" {
		n, _ = strconv.Atoi(s)
	}
	for seed := range n {
		rng := rand.New(rand.NewPCG(uint64(seed), 9))
		c := cases[seed%len(cases)]
		left, output, _ := strings.Cut(c.eq, "->")
		shapeOf := func(letters string) (s []int) {
			for i := range letters {
				s = append(s, size[letters[i]])
			}
			return s
		}
		var params, body, names, ts, denses, dts []string
		var args []*tensor.Tensor
		for i, letters := range strings.Split(left, ",") {
			x := tensor.New(types.F64, shapeOf(letters)...)
			p := []float64{0, 0.1, 0.3, 0.6, 1}[rng.IntN(5)]
			if c.sparse[i] == 'n' {
				p = 1
			}
			for k := range x.Len() {
				if rng.Float64() < p {
					x.SetFloat(k, rng.NormFloat64())
				}
			}
			args = append(args, x)
			dense := typeOf(x.Shape, "")
			params = append(params, fmt.Sprintf("%%x%d: %s", i, dense))
			denses, dts = append(denses, fmt.Sprintf("%%x%d", i)), append(dts, dense)
			if c.sparse[i] == 'n' {
				names, ts = append(names, fmt.Sprintf("%%x%d", i)), append(ts, dense)
				continue
			}
			fs := formatsOf(len(letters))
			st := typeOf(x.Shape, fs[rng.IntN(len(fs))])
			body = append(body, fmt.Sprintf("  %%s%d = dm.convert_format %%x%[1]d : (%s) -> %s", i, dense, st))
			names, ts = append(names, fmt.Sprintf("%%s%d", i)), append(ts, st)
		}
		bound := ""
		if c.expands {
			bound = ", products = " + []string{"3000", `"2 * 2000"`}[rng.IntN(2)]
		}
		to := shapeOf(output)
		out := typeOf(to, "")
		var got, want []string
		add := func(format string, a ...any) { body = append(body, "  "+fmt.Sprintf(format, a...)) }
		add("%%want = dm.einsum %q %s : (%s) -> %s", c.eq, strings.Join(denses, ", "), strings.Join(dts, ", "), out)
		each := func(bound string) {
			g := fmt.Sprintf("%%g%d", len(got))
			add("%s = dm.einsum %q %s%s : (%s) -> %s", g, c.eq, strings.Join(names, ", "), bound, strings.Join(ts, ", "), out)
			got, want = append(got, g), append(want, "%want")
		}
		each("")
		if c.expands {
			each(bound)
		}
		if output != "" && strings.Contains(strings.Join(ts, ""), "nnz") {
			fs := formatsOf(len(output))
			st := typeOf(to, fs[rng.IntN(len(fs))])
			g := fmt.Sprintf("%%g%d", len(got))
			add("%ss = dm.einsum %q %s%s : (%s) -> %s", g, c.eq, strings.Join(names, ", "), bound, strings.Join(ts, ", "), st)
			add("%s = dm.convert_format %[1]ss : (%s) -> %s", g, st, out)
			got, want = append(got, g), append(want, "%want")
		}
		// The first operand's elements that are not 0 are stored: what is sampled there is the product.
		masked := len(output) == len(strings.Split(left, ",")[0]) && slices.Equal(args[0].Shape, to) && c.sparse[0] == 'y'
		if masked {
			add("%%sampled = dm.sample %q %s, %s%s : (%s, %s) -> %s", c.eq, names[0], strings.Join(names, ", "), bound, ts[0], strings.Join(ts, ", "), ts[0])
			add("%%again = dm.convert_format %%sampled : (%s) -> %s", ts[0], out)
			got, want = append(got, "%again"), append(want, "%want")
		}
		// Weighted sums of a result and of the dense one, by whose gradients both are compared.
		results := strings.Join(slices.Repeat([]string{out}, 2*len(got)), ", ")
		loss := func(name, y string) string {
			all := "abc"[:len(to)]
			return fmt.Sprintf("func.func @%s(%s) -> tensor<f64> {\n%s\n  %%w = dm.rng normal, seed = 3 : %s\n  %%l = dm.einsum \"%s,%[5]s->\" %[6]s, %%w : (%[4]s, %[4]s) -> tensor<f64>\n  return %%l : tensor<f64>\n}\n",
				name, strings.Join(params, ", "), strings.Join(body, "\n"), out, all, y)
		}
		own := got[rng.IntN(len(got))]
		text := loss("sparse", own) + loss("dense", "%want")
		add("%%l0, %s = dm.grad @sparse %s, wrt = %s : (%s) -> (tensor<f64>, %s)", numbered("%%a%d", len(args)), strings.Join(denses, ", "), "["+numbered("%d", len(args))+"]", strings.Join(dts, ", "), strings.Join(dts, ", "))
		add("%%l1, %s = dm.grad @dense %s, wrt = %s : (%s) -> (tensor<f64>, %s)", numbered("%%b%d", len(args)), strings.Join(denses, ", "), "["+numbered("%d", len(args))+"]", strings.Join(dts, ", "), strings.Join(dts, ", "))
		program := fmt.Sprintf("func.func @f(%s) -> (%s, %s) {\n%s\n  return %s, %s, %s : %[2]s, %[3]s\n}\n%[8]s", strings.Join(params, ", "), results, strings.Join(append(dts, dts...), ", "),
			strings.Join(body, "\n"), strings.Join(append(got, want...), ", "), numbered("%%a%d", len(args)), numbered("%%b%d", len(args)), text)
		m := read(t, program)
		for _, d := range verify.Module(m) {
			t.Fatalf("seed %d: %s %s\n%s", seed, d.Code, d.Message, program)
		}
		res, err := try(t, m, Options{}, args...)
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, program)
		}
		for i := range got {
			a, b := res[i], res[len(got)+i]
			if masked && i == len(got)-1 {
				a, b = where(args[0], a), where(args[0], b)
			}
			if !sameValues(a, b, 1e-10) {
				t.Fatalf("seed %d: result %d: %v, dense %v\n%s\n%v", seed, i, a, b, program, args)
			}
		}
		if own == "%again" { // no gradient flows through what is not sampled
			continue
		}
		for i, x := range args {
			a, b := res[2*len(got)+i], res[2*len(got)+len(args)+i]
			if !sameValues(where(x, a), where(x, b), 1e-10) {
				t.Fatalf("seed %d: gradient of %s by operand %d: %v, dense %v\n%s\n%v", seed, own, i, a, b, program, args)
			}
		}
	}
}

// numbered is a list of n words, each with its number.
func numbered(format string, n int) string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf(format, i)
	}
	return strings.Join(out, ", ")
}

// where is y with 0 wherever x is 0.
func where(x, y *tensor.Tensor) *tensor.Tensor {
	z := tensor.New(types.F64, y.Shape...)
	for i := range y.Len() {
		if x.Float(i) != 0 {
			z.SetFloat(i, y.Float(i))
		}
	}
	return z
}

// What outgrows its bound is an error: products, and elements of the result.
func TestSparseProductBounds(t *testing.T) {
	for bounds, want := range map[[2]string]string{
		{"64", "16"}:      "",
		{"63", "16"}:      "%c is a sum of 64 products of stored elements, but products = 63",
		{"64", "15"}:      "%c would store 16 elements, but its nnz leaves room for 15",
		{`"8 * 8"`, "99"}: "",
	} {
		text := fmt.Sprintf(`!s = tensor<4x4xf64, #dm.csr<nnz = 16>>
func.func @f(%%x: tensor<4x4xf64>) -> tensor<4x4xf64> {
  %%a = dm.convert_format %%x : (tensor<4x4xf64>) -> !s
  %%c = dm.matmul %%a, %%a, products = %s : (!s, !s) -> tensor<4x4xf64, #dm.csr<nnz = %s>>
  %%y = dm.convert_format %%c : (tensor<4x4xf64, #dm.csr<nnz = %[2]s>>) -> tensor<4x4xf64>
  return %%y : tensor<4x4xf64>
}`, bounds[0], bounds[1])
		_, err := try(t, read(t, text), Options{})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("products = %s, nnz = %s: %v, want %q", bounds[0], bounds[1], err, want)
		}
	}
}
