package driver

import (
	"fmt"
	"strings"
	"testing"

	"dmir/gpu/native"
	"dmir/testkit/need"
)

// Transpositions whose rows and columns lie apart in several ways: along one dimension of several, with dimensions between them
// that are read one after the other, in tiles that are not whole, and of elements of each size.
func TestTranspositions(t *testing.T) {
	_, err := native.Find(t.Context())
	need.OK(t, err)
	var args, body, values, types []string
	for i, c := range []struct {
		elem  string
		shape []int
		dims  []int
		after string // an op of the transposed elements
	}{
		{"f32", []int{18, 70, 33}, []int{2, 1, 0}, "neg"},
		{"f32", []int{64, 3, 128}, []int{2, 1, 0}, ""},
		{"f32", []int{17, 16, 24, 20}, []int{3, 2, 1, 0}, ""},
		{"f32", []int{3, 16, 16, 16}, []int{0, 2, 3, 1}, ""},
		{"f32", []int{16, 8, 8, 100}, []int{3, 1, 0, 2}, ""},
		{"f64", []int{16, 17, 18, 65}, []int{3, 1, 2, 0}, "abs"},
		{"f16", []int{17, 16, 24, 20}, []int{3, 0, 2, 1}, ""},
		{"bf16", []int{2, 33, 3, 40}, []int{0, 3, 2, 1}, "neg"},
		{"i64", []int{16, 3, 130, 17}, []int{2, 1, 3, 0}, ""},
		{"i8", []int{20, 2, 33, 66}, []int{3, 1, 0, 2}, ""},
	} {
		of := func(order []int) string {
			var b strings.Builder
			for _, d := range order {
				fmt.Fprintf(&b, "%dx", c.shape[d])
			}
			return "tensor<" + b.String() + c.elem + ">"
		}
		from, to := of([]int{0, 1, 2, 3}[:len(c.shape)]), of(c.dims)
		args = append(args, fmt.Sprintf("%%x%d: %s", i, from))
		body = append(body, fmt.Sprintf("  %%y%d = dm.transpose %%x%[1]d, dims = %s : (%s) -> %s", i, strings.ReplaceAll(fmt.Sprint(c.dims), " ", ", "), from, to))
		value := fmt.Sprintf("%%y%d", i)
		if c.after != "" {
			body = append(body, fmt.Sprintf("  %%z%d = dm.%s %s : %s", i, c.after, value, to))
			value = fmt.Sprintf("%%z%d", i)
		}
		values, types = append(values, value), append(types, to)
	}
	p := loaded(t, "transpositions.dmir", fmt.Sprintf("func.func @f(%s) -> (%s) {\n%s\n  return %s : %s\n}\n", strings.Join(args, ", "), strings.Join(types, ", "),
		strings.Join(body, "\n"), strings.Join(values, ", "), strings.Join(types, ", ")))
	m, fn, err := Pick(p, "")
	if err != nil {
		t.Fatal(err)
	}
	job := Job{Program: p, Module: m, Fn: fn, Seed: 7, Device: "reference"}
	want, err := Run(t.Context(), job, nil)
	if err != nil {
		t.Fatal(err)
	}
	job.Device = "cpu"
	got, err := Run(t.Context(), job, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range want.Outputs {
		a, b := want.Outputs[i].Tensor, got.Outputs[i].Tensor
		for k := range a.Len() {
			if a.Elem.IsFloat() && a.Float(k) != b.Float(k) || !a.Elem.IsFloat() && a.Integer(k) != b.Integer(k) {
				t.Errorf("%s, %s: element %d differs", values[i], types[i], k)
				break
			}
		}
	}
}
