package gradient_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"dmir/compile/gradient"
	"dmir/compile/interp"
	"dmir/compile/tensor"
	"dmir/dialect/ir"
	"dmir/dialect/lower"
	"dmir/dialect/mesh"
	"dmir/dialect/print"
	"dmir/dialect/verify"
	"dmir/syntax/diag"
	"dmir/syntax/parse"
	"dmir/syntax/source"
)

// read lowers a text without errors.
func read(t testing.TB, text string) *ir.Module {
	t.Helper()
	f := parse.File(source.New("test.dmir", text))
	m := lower.File(f)[0]
	for _, d := range append(append(f.Diags, m.Diags...), verify.Module(m)...) {
		if d.Severity == diag.Error {
			t.Fatalf("%s: %s\n%s", d.Code, d.Message, text)
		}
	}
	return m
}

func compute(t testing.TB, m *ir.Module, f *ir.Func, args []*tensor.Tensor) []*tensor.Tensor {
	t.Helper()
	r, err := interp.Run(context.Background(), m, f, args, interp.Options{})
	if err != nil {
		t.Fatalf("@%s: %v", f.Name, err)
	}
	return r.Outputs
}

func inputs(t testing.TB, f *ir.Func, seed uint64, given map[string]*tensor.Tensor) []*tensor.Tensor {
	t.Helper()
	args, err := interp.Inputs(t.Context(), f, nil, seed, given)
	if err != nil {
		t.Fatal(err)
	}
	return args
}

// printed is f as text, read again: what is differentiated must be a program
// that a person can open.
func printed(t testing.TB, m *ir.Module, f *ir.Func) (*ir.Module, string) {
	t.Helper()
	text, err := print.Pretty(&ir.Module{Src: m.Src, Aliases: m.Aliases, Ops: append(mesh.Ops(m), f.Op)})
	if err != nil {
		t.Fatal(err)
	}
	return read(t, text), text
}

// against holds the gradient of the first function of a text, f64 throughout,
// to central differences: of the sum of its results, each times a fixed random
// cotangent, in every direction of every floating-point argument.
func against(t *testing.T, text string, given map[string]*tensor.Tensor) {
	t.Helper()
	m := read(t, text)
	f := m.Funcs[0]
	g, err := gradient.Function(m, f, gradient.Options{Seeded: true})
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	back, shown := printed(t, m, g)
	args := inputs(t, f, 3, given)
	all := append([]*tensor.Tensor{}, args...)
	cots := make([]*tensor.Tensor, len(f.Results))
	for i, y := range compute(t, m, f, args) {
		if !y.Elem.IsFloat() {
			continue
		}
		c := tensor.New(y.Elem, y.Shape...)
		for k := range c.Len() {
			c.SetFloat(k, tensor.Normal(77, uint64(i), uint64(k)))
		}
		cots[i] = c
		all = append(all, c)
	}
	value := func() float64 {
		var sum float64
		for i, y := range compute(t, m, f, args) {
			for k := range y.Len() {
				if cots[i] != nil {
					sum += y.Float(k) * cots[i].Float(k)
				}
			}
		}
		return sum
	}
	grads := compute(t, back, back.Funcs[0], all)
	const h = 1e-5
	n := 0
	for _, x := range args {
		if !x.Elem.IsFloat() {
			continue
		}
		d := grads[n]
		n++
		for k := range x.Len() {
			was := x.Float(k)
			x.SetFloat(k, was+h)
			up := value()
			x.SetFloat(k, was-h)
			down := value()
			x.SetFloat(k, was)
			want := (up - down) / (2 * h)
			if got := d.Float(k); !(math.Abs(got-want) <= 2e-6*(1+math.Abs(want))) {
				t.Errorf("gradient %d, element %d is %.9g, differences give %.9g\n%s\n%s", n-1, k, got, want, text, shown)
				return
			}
		}
	}
	if n != len(grads) {
		t.Errorf("%d gradients of %d arguments", len(grads), n)
	}
}

// one is a function around one op, in the short form "3x4 5" of f64 operands;
// an operand "4:i64" has another element type.
func one(name, in, clauses, out string) string {
	kind := func(s string) string {
		shape, elem, ok := strings.Cut(s, ":")
		if !ok {
			elem = "f64"
		}
		if shape == "" {
			return "tensor<" + elem + ">"
		}
		return "tensor<" + shape + "x" + elem + ">"
	}
	var args, uses, ins, results, outs []string
	for i, s := range strings.Fields(in) {
		s = strings.TrimPrefix(s, "_")
		args = append(args, fmt.Sprintf("%%a%d: %s", i, kind(s)))
		uses, ins = append(uses, fmt.Sprintf("%%a%d", i)), append(ins, kind(s))
	}
	for i, s := range strings.Fields(out) {
		s = strings.TrimPrefix(s, "_")
		results, outs = append(results, fmt.Sprintf("%%r%d", i)), append(outs, kind(s))
	}
	if clauses != "" {
		clauses = ", " + clauses
	}
	rs, os := strings.Join(results, ", "), strings.Join(outs, ", ")
	return fmt.Sprintf("func.func @f(%s) -> (%s) {\n  %s = dm.%s %s%s : (%s) -> (%s)\n  return %s : %s\n}\n",
		strings.Join(args, ", "), os, rs, name, strings.Join(uses, ", "), clauses, strings.Join(ins, ", "), os, rs, os)
}

// positive makes the argument's numbers lie away from 0.
func positive(shape ...int) *tensor.Tensor {
	x := tensor.New(f64, shape...)
	for k := range x.Len() {
		x.SetFloat(k, 0.3+math.Abs(tensor.Normal(5, 9, uint64(k))))
	}
	return x
}

// integers are ns as a vector of i64.
func integers(ns ...int64) *tensor.Tensor {
	return tensor.FromInts(i64, []int{len(ns)}, ns)
}

func whole(n int, shape ...int) *tensor.Tensor {
	x := tensor.New(i64, shape...)
	for k := range x.Len() {
		x.SetInt(k, int64(tensor.Uniform(4, 2, uint64(k))*float64(n)))
	}
	return x
}
