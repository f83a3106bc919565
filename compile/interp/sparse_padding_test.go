package interp

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"dmir/compile/sparse"
	"dmir/compile/tensor"
	"dmir/dialect/types"
)

// What products compute of padding, or of rows that store nothing, is in no result and no gradient, and the gradient by a sparse operand is 0
// at its padding: dense operands are infinite or NaN where nothing is stored, also at the coordinates that padding has. Of several
// sparse operands the second one stores what is not finite, where the first one stores nothing.
func TestSparseProductPadding(t *testing.T) {
	size := map[byte]int{'i': 4, 'j': 6, 'k': 8, 'r': 3}
	shapeOf := func(letters string) (s []int) {
		for i := range letters {
			s = append(s, size[letters[i]])
		}
		return s
	}
	for _, c := range []struct{ eq, second, before string }{
		{"ij,j->i", "", ""}, {"ij,i->j", "", ""}, {"ij,j->", "", ""}, {"ij,i->ij", "", ""}, {"ij,jr->ir", "", ""}, {"ij,jr->ri", "", ""}, {"ij,ir->jr", "", ""}, {"ij,jr->r", "", ""},
		{"ij,ij->i", "", ""}, {"ij,ij->", "", ""}, {"ij,i,j->", "", ""}, {"ij,jr,ir->ir", "", ""}, {"ij,ir,jr->r", "", ""}, {"ij,ir,jr->ij", "", ""},
		{"ij,jr->ir", "", "softmax"}, {"ij,ir,jr->jr", "", "softmax"},
		{"ijk,jr,kr->ir", "", ""}, {"ijk,ir,jr->kr", "", ""}, {"ijk,ir,kr->jr", "", ""}, {"ijk,k->ij", "", ""}, {"ijk,kr->ijr", "", ""}, {"ijk,i,j,k->", "", ""},
		{"ij,ir,jr->i", "", "sample"}, {"ij,ri,jr->i", "", "sample"}, {"ij,ijr,jr->i", "", "sample"},
		{"ij,jk->ik", "csr", ""}, {"ij,ij->ij", "csr", ""}, {"ij,ij->i", "coo", ""}, {"ij,j->i", "sparse_vector", ""}, {"ij,jk,kr->ir", "csr", ""}, {"ij,ij,jr->ir", "csr", ""}, {"ijk,jk,kr->ir", "csr", ""},
	} {
		left, output, _ := strings.Cut(c.eq, "->")
		inputs := strings.Split(left, ",")
		for _, format := range formatsOf(len(inputs[0])) {
			if strings.Contains(format, " i : dense)") || strings.Contains(format, " j : dense)") {
				continue // it stores what is not finite
			}
			for _, none := range []float64{math.Inf(1), math.NaN()} {
				var args []*tensor.Tensor
				var dense []string
				for n, letters := range inputs {
					x := tensor.New(types.F64, shapeOf(letters)...)
					for i := range x.Len() {
						switch {
						case low(letters, inputs[0], x.Shape, i):
							if n > 0 {
								x.SetFloat(i, none)
							}
						case n > 0 || i%3 == 0:
							x.SetFloat(i, float64(i%7)-2.5)
						}
					}
					args, dense = append(args, x), append(dense, typeOf(x.Shape, ""))
				}
				first, out := typeOf(args[0].Shape, format), typeOf(shapeOf(output), "")
				var params, body, operands, ts []string
				for n, d := range dense {
					params, operands, ts = append(params, fmt.Sprintf("%%x%d: %s", n, d)), append(operands, fmt.Sprintf("%%x%d", n)), append(ts, d)
				}
				given, takes := strings.Join(append([]string{"%s"}, operands[1:]...), ", "), strings.Join(append([]string{first}, dense[1:]...), ", ")
				operands[0], ts[0] = "%s", first
				bound, terms := "", left
				if c.second != "" {
					ts[1] = typeOf(args[1].Shape, "#dm."+c.second+"<nnz = E>")
					body, operands[1], bound = append(body, fmt.Sprintf("%%u = dm.convert_format %%x1 : (%s) -> %s", dense[1], ts[1])), "%u", ", products = 4000"
				}
				switch c.before {
				case "softmax":
					body, operands[0] = append(body, fmt.Sprintf("%%t = dm.softmax %%s, dim = 1 : %s", first)), "%t"
				case "sample":
					body = append(body, fmt.Sprintf(`%%t = dm.sample "%s->ij" %s : (%s) -> %s`, strings.TrimPrefix(left, "ij,"), given, takes, first), "%u = dm.mul %t, %s : "+first)
					operands, ts, terms = []string{"%u"}, []string{first}, "ij"
				}
				body = append(body, fmt.Sprintf("%%y = dm.einsum \"%s->%s\" %s%s : (%s) -> %s", terms, output, strings.Join(operands, ", "), bound, strings.Join(ts, ", "), out))
				text := strings.NewReplacer("GRADS", numbered("%%d%d", len(args)), "ALL", numbered("%d", len(args)), "GIVEN", given, "TAKES", takes, "OUT", out, "FIRST", first, "DENSE", dense[0],
					"PARAMS", strings.Join(params, ", "), "OWN", strings.Join(append([]string{"%s: " + first}, params[1:]...), ", "), "BODY", strings.Join(body, "\n  "), "DIMS", numbered("%d", len(output))).Replace(
					`func.func @f(PARAMS) -> (OUT, tensor<f64>, TAKES) {
  %s = dm.convert_format %x0 : (DENSE) -> FIRST
  %y = func.call @product(GIVEN) : (TAKES) -> OUT
  %l, GRADS = dm.grad @loss GIVEN, wrt = [ALL] : (TAKES) -> (tensor<f64>, TAKES)
  return %y, %l, GRADS : OUT, tensor<f64>, TAKES
}

func.func private @product(OWN) -> OUT {
  BODY
  return %y : OUT
}

func.func private @loss(OWN) -> tensor<f64> {
  %y = func.call @product(GIVEN) : (TAKES) -> OUT
  %z = dm.mul %y, %y : OUT
  %l = dm.reduce add %z, dims = [DIMS] : (OUT) -> tensor<f64>
  return %l : tensor<f64>
}`)
				got := run(t, text, args...)
				for n, v := range got {
					for i := range v.Len() {
						if x := v.Float(i); math.IsNaN(x) || math.IsInf(x, 0) {
							t.Errorf("%v of %s, %g where nothing is stored: output %d is %g at %d", c, format, none, n, x, i)
							break
						}
					}
				}
				typ, err := sparse.ParseType(first)
				if err != nil {
					t.Fatal(err)
				}
				if err := (&sparse.Tensor{Type: typ, Parts: got[2 : 2+len(typ.Components())]}).Check(); err != nil {
					t.Errorf("%v of %s, %g where nothing is stored: the gradient: %v", c, format, none, err)
				}
			}
		}
	}
}

// low reports whether a coordinate of element i along one of the letters that of has as well is below 2.
func low(letters, of string, shape []int, i int) bool {
	for d := len(shape) - 1; d >= 0; d-- {
		if strings.Contains(of, letters[d:d+1]) && i%shape[d] < 2 {
			return true
		}
		i /= shape[d]
	}
	return false
}
