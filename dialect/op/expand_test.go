package op_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"dmir/compile/interp"
	"dmir/compile/tensor"
	"dmir/dialect/ir"
	"dmir/dialect/lower"
	"dmir/dialect/op"
	"dmir/dialect/verify"
	"dmir/syntax/parse"
	"dmir/syntax/source"
)

// composites are uses of the ops with an expansion, beyond their examples.
var composites = []struct{ name, in, clauses, out string }{
	{"logistic", "2x3xf16", "", "2x3xf16"},
	{"gelu", "2x3xf32", "approximate = tanh", "2x3xf32"},
	{"gelu", "2x3xf64", "", "2x3xf64"},
	{"silu", "7xf32", "", "7xf32"},
	{"softmax", "2x3x4xf32", "dim = 0", "2x3x4xf32"},
	{"softmax", "2x3x4xbf16", "dim = -2", "2x3x4xbf16"},
	{"log_softmax", "2x3x4xf32", "dim = 1", "2x3x4xf32"},
	{"layer_norm", "2x3x4xf32", "", "2x3x4xf32"},
	{"layer_norm", "2x3x4xf32 3x4xf32 3x4xf32", "dims = [1, 2], epsilon = 0.1", "2x3x4xf32"},
	{"layer_norm", "2x3x4xf32 4x3xf32 4x3xf32", "dims = [2, 1]", "2x3x4xf32"},
	{"layer_norm", "2x3x4xf32 4x2x3xf32 4x2x3xf32", "dims = [2, 0, 1]", "2x3x4xf32"},
	{"layer_norm", "2x3x4xf16 2xf32 2xf16", "dims = [0]", "2x3x4xf16"},
	{"rms_norm", "2x3x4xf32 2x4xf32", "dims = [0, 2]", "2x3x4xf32"},
	{"rms_norm", "2x4xf16", "", "2x4xf16"},
	{"batch_norm", "2x3x4xf32 3xf32 3xf32", "", "2x3x4xf32"},
	{"batch_norm", "2x3x4x5xf32 5xf32 5xf32", "dim = 3", "2x3x4x5xf32 5xf32 5xf32"},
	{"batch_norm", "2x3xf16 3xf32 3xf32 3xf32 3xf32", "", "2x3xf16"},
	{"group_norm", "2x6x3x2xf32", "groups = 3", "2x6x3x2xf32"},
	{"group_norm", "2x6xf16 6xf16", "groups = 1", "2x6xf16"},
	{"cross_entropy", "3x5xf32 3xi64", "reduction = sum", "f32"},
	{"cross_entropy", "3x5x2xf32 3x2xi32", "reduction = none, dim = 1", "3x2xf32"},
	{"cross_entropy", "5x3xf16 3xi64", "dim = 0", "f16"},
	{"cross_entropy", "5xf32 i64", "", "f32"},
	{"cross_entropy", "3x5xf32 3xi64", "ignore_index = 2, label_smoothing = 0.25", "f32"},
	{"cross_entropy", "3x5x2xf32 3x2xui32", "reduction = none, dim = 1, ignore_index = 3, label_smoothing = 1.0", "3x2xf32"},
	{"mean", "2x3x4xf32", "dims = [1]", "2x4xf32"},
	{"mean", "2x3xf16", "", "f16"},
	{"variance", "2x3x4xf32", "dims = [0, 2], keep_dims = true", "1x3x1xf32"},
	{"variance", "2x3xbf16", "correction = 0", "bf16"},
	{"logsumexp", "2x3x4xf32", "dims = [-1]", "2x3xf32"},
	{"roll", "4x5x3xi32", "shifts = [-7, 0, 4]", "4x5x3xi32"},
	{"roll", "4x5xi1", "shifts = [1], dims = [1]", "4x5xi1"},
	{"one_hot", "2x3xi32", "classes = 4", "2x3x4xf16"},
	{"rope", "2x3x8xf16 3x4xf16 1x4xf16", "", "2x3x8xf16"},
	{"rope", "2x3x8xf32 2x1x4xf32 4xf32", "pairs = interleaved", "2x3x8xf32"},
	{"one_hot", "2x3xui64", "classes = 4, dim = 0", "4x2x3xi1"},
	{"attention", "1x4x3x8xf32 1x2x5x8xf32 1x2x5x6xf32 3x5xf32", "causal = true", "1x4x3x6xf32"},
	{"attention", "2x4x3x8xf32 2x4x3x8xf32 2x4x3x8xf32", "dropout = 0.5, seed = 3", "2x4x3x8xf32"},
	{"attention", "2x6x3x8xf32 2x2x3x8xf32 2x2x3x8xf32 2x6x1x3xf32", "dropout = 0.25, scale = 0.5", "2x6x3x8xf32"},
	{"attention", "2x4x3x8xf32 2x4x3x8xf32 2x4x3x8xf32 i64", "dropout = 0.5, seed = 3", "2x4x3x8xf32"},
	{"attention", "2x4x3x8xf32 2x2x5x8xf32 2x2x5x8xf32 i64", "dropout = 0.5, seed = 3, whole = [3, 6, 7]", "2x4x3x8xf32"},
	{"attention_grad", "2x2x3x8xf32 2x2x5x8xf32 2x2x5x6xf32 2x2x3x6xf32 2x2x3xf32 2x2x3x6xf32 2x1x5xf32 i32 i32", "dropout = 0.25, seed = 3, whole = [9, 2, 4]", "2x2x3x8xf32 2x2x5x8xf32 2x2x5x6xf32 2x1x5xf32"},
	{"attention", "3x8xf16 5x8xf16 5x8xf16", "causal = true", "3x8xf16"},
	{"attention", "4x3x8xf32 1x5x8xf32 1x5x8xf32", "", "4x3x8xf32"},
	{"embedding", "10x4xf16 2x3xi32", "", "2x3x4xf16"},
	{"attention", "2x4x3x8xf32 2x2x5x8xf32 2x2x5x6xf32 3x5xf32", "causal = true, dropout = 0.5", "2x4x3x6xf32 2x4x3xf32"},
	{"attention", "3x8xf16 5x8xf16 5x8xf16", "", "3x8xf16 3xf32"},
	{"attention_grad", "2x4x3x8xf32 2x2x5x8xf32 2x2x5x6xf32 2x4x3x6xf32 2x4x3xf32 2x4x3x6xf32", "causal = true", "2x4x3x8xf32 2x2x5x8xf32 2x2x5x6xf32"},
	{"attention_grad", "2x2x3x8xf32 2x2x5x8xf32 2x2x5x6xf32 2x2x3x6xf32 2x2x3xf32 2x2x3x6xf32 2x1x5xf32", "dropout = 0.25, seed = 3", "2x2x3x8xf32 2x2x5x8xf32 2x2x5x6xf32 2x1x5xf32"},
	{"attention_grad", "2x2x3x8xf32 2x2x5x8xf32 2x2x5x6xf32 2x2x3x6xf32 2x2x3xf32 2x2x3x6xf32 2x1x5xf32 i32", "dropout = 0.25, seed = 3", "2x2x3x8xf32 2x2x5x8xf32 2x2x5x6xf32 2x1x5xf32"},
	{"segment_attention", "4x3x8xf32 2x4x8xf32 2x4x5xf32 4xi32 5xi32 4x5x1x1xf32", "scale = 0.5", "4x3x5xf32 4x3xf32"},
	{"segment_attention", "4x3x1xf32 2x4x1xf32 2x4x5xf32 4xi32 5xi32", "scores = sum, scale = 0.5, slope = -0.5", "4x3x5xf32 4x3xf32"},
	{"segment_attention", "4x6x3xf32 2x4x3xf32 2x4x5xf32 3xi32 5xi32 1x5x3x2xf32 4x2x3xf32", "block = [3, 2], scores = sum, leak = 0.25, scale = 0.5, slope = -0.5", "4x6x5xf32 4x6xf32"},
	{"segment_attention", "2x6x8xf16 1x8x8xf16 1x8x4xf16 4xi64 5xi64 1x5x2x4xf16", "block = [2, 4]", "2x6x4xf16 2x6xf32"},
	{"segment_product", "2xi32 6xi32 6xf32 6xi64 9xi64 9xf32", "columns = 7, products = 40", "2xi32 25xi32 25xf32"},
	{"segment_product", "3xi64 5xui32 5xi8 4xi32 6xi32 6xi8", "columns = 3, products = 30", "3xi64 6xi64 6xi8"},
	{"segment_product", "3xi32 5xi32 5xf32 4xi32 6xi32 6xf32", "columns = 3, products = 30, kind = min, combine = add", "3xi32 9xi32 9xf32"},
	{"segment_dense_product", "2xi32 6xi32 6xf32 6xi64 9xi64 9xf32", "columns = 7, products = 40, kind = max", "1x7xf32"},
	{"segment_dense_product", "3xi64 5xui32 5xi8 4xi32 6xi32 6xi8", "columns = 3, kind = min, combine = max", "2x3xi8"},
	{"segment_dense_product", "3xi64 5xui32 5xf16 4xi32 6xi32 6xf16", "columns = 3", "2x3xf16"},
	{"segment_sample", "2xi32 6xi32 6xi64 9xi64 2xi32 8xi32 6xf32 9xf32", "sampled = c, columns = 7, products = 40", "8xf32"},
	{"segment_sample", "3xi64 5xui32 4xi32 6xi32 3xi32 4xi32 6xf64 4xf64", "sampled = a, columns = 3, products = 30", "5xf64"},
	{"segment_sample", "3xi32 5xi32 4xi32 6xi32 3xi32 4xi32 5xi8 4xi8", "sampled = b, columns = 3, products = 30", "6xi8"},
	{"attention_grad", "3x4xf64 5x4xf64 5x4xf64 3x4xf64 3xf64 3x4xf64", "scale = 0.3", "3x4xf64 5x4xf64 5x4xf64"},
	{"sgd", "4x3xf32 4x3xf16", "lr = 0.1", "4x3xf32"},
	{"sgd", "4x3xf32 4x3xf32 f32", "weight_decay = 0.1", "4x3xf32 4x3xbf16"},
	{"momentum", "5xf32 5xf32 5xf32", "lr = 0.1, momentum = 0.8", "5xf32 5xf32"},
	{"momentum", "5xf16 5xf16 5xf32 f32", "nesterov = true, weight_decay = 0.1", "5xf16 5xf32"},
}

// program is a function around one op.
func program(t *testing.T, name, in, clauses, out string) *ir.Module {
	t.Helper()
	var args, uses, ins, outs []string
	for i, ty := range listOf(t, in) {
		args = append(args, fmt.Sprintf("%%a%d: %s", i, ty))
		uses, ins = append(uses, fmt.Sprintf("%%a%d", i)), append(ins, ty.String())
	}
	var results []string
	for i, ty := range listOf(t, out) {
		results, outs = append(results, fmt.Sprintf("%%r%d", i)), append(outs, ty.String())
	}
	if clauses != "" {
		clauses = ", " + clauses
	}
	rs, os := strings.Join(results, ", "), strings.Join(outs, ", ")
	text := fmt.Sprintf("func.func @f(%s) -> (%s) {\n  %s = dm.%s %s%s : (%s) -> (%s)\n  return %s : %s\n}\n",
		strings.Join(args, ", "), os, rs, name, strings.Join(uses, ", "), clauses, strings.Join(ins, ", "), os, rs, os)
	m := lower.File(parse.File(source.New("test.dmir", text)))[0]
	for _, d := range append(m.Diags, verify.Module(m)...) {
		t.Fatalf("%s: %s\n%s", d.Code, d.Message, text)
	}
	return m
}

// expand expands o once, in its place, and gives the new values.
func expand(o *ir.Op) []*ir.Value {
	at := 0
	for i, p := range o.Parent.Ops {
		if p == o {
			at = i
		}
	}
	vs := op.Of(o).Expand(&ir.Builder{Block: o.Parent, Index: at, At: o}, o)
	if vs == nil {
		return nil
	}
	for i, r := range o.Results {
		ir.ReplaceUses(r, vs[i])
	}
	ir.Erase(o)
	return vs
}

// TestExpand: the expansion verifies, has the op's types, and computes the same
// numbers as the op's own executor.
func TestExpand(t *testing.T) {
	for _, c := range composites {
		t.Run(fmt.Sprintf("%s %s %s", c.name, c.in, c.clauses), func(t *testing.T) {
			compute := func(m *ir.Module) []*tensor.Tensor {
				args, err := interp.Inputs(t.Context(), m.Funcs[0], nil, 5, nil)
				if err != nil {
					t.Fatal(err)
				}
				r, err := interp.Run(context.Background(), m, m.Funcs[0], args, interp.Options{})
				if err != nil {
					t.Fatal(err)
				}
				return r.Outputs
			}
			m := program(t, c.name, c.in, c.clauses, c.out)
			want := compute(m)
			vs := expand(m.Funcs[0].Body.Ops[0])
			if vs == nil {
				t.Fatal("does not expand")
			}
			for _, o := range m.Funcs[0].Body.Ops {
				if p := verify.Op(o); p != nil {
					t.Errorf("%s: %s: %s", o.Name, p.Code, p.Msg)
				}
			}
			for i, ty := range listOf(t, c.out) {
				if !op.Compatible(vs[i].Type, ty) {
					t.Errorf("result %d is %s, want %s", i, vs[i].Type, ty)
				}
			}
			for i, got := range compute(m) {
				limit := 1e-5
				if got.Elem.Bytes() == 2 {
					limit = 1e-2
				}
				if d := tensor.MaxDiff(got, want[i]); !(d <= limit) {
					t.Errorf("result %d is off by %g", i, d)
				}
			}
		})
	}
}

// With symbolic sizes an expansion either verifies or is refused, as where it
// would divide by a number of elements that is not known.
func TestExpandSymbolic(t *testing.T) {
	cases := []struct {
		name, in, clauses, out string
		expands                bool
	}{
		{"softmax", "bxnxf16", "", "bxnxf16", true},
		{"layer_norm", "bxnx4xf16 4xf16 4xf16", "", "bxnx4xf16", true},
		{"layer_norm", "bxnxf16 nxf16 nxf16", "", "bxnxf16", false},
		{"group_norm", "bx4x3xf32 4xf32 4xf32", "groups = 2", "bx4x3xf32", true},
		{"batch_norm", "bx3xf32 3xf32 3xf32", "", "bx3xf32", false},
		{"cross_entropy", "bx5xf32 bxui64", "", "f32", false},
		{"cross_entropy", "bx5xf32 bxi64", "", "f32", true},
		{"cross_entropy", "bxnxf32 bxi64", "label_smoothing = 0.5", "f32", false},
		{"cross_entropy", "bx5xf32 bxi64", "reduction = none", "bxf32", true},
		{"attention", "bx4xnx8xf16 bx2xnx8xf16 bx2xnx8xf16", "causal = true", "bx4xnx8xf16", true},
		{"attention", "bx4xnx8xf16 bx2xmx8xf16 bx2xmx8xf16", "", "bx4xnx8xf16", true},
		{"attention", "bx4xnx8xf16 bx2xmx8xf16 bx2xmx8xf16", "causal = true", "bx4xnx8xf16", false},
		{"attention", "nxdxf32 mxdxf32 mxdxf32", "", "nxdxf32", false},
		{"attention", "nxdxf32 mxdxf32 mxdxf32", "scale = 0.125", "nxdxf32", true},
		{"embedding", "vxdxf16 bxnxi64", "", "bxnxdxf16", true},
	}
	for _, c := range cases {
		m := program(t, c.name, c.in, c.clauses, c.out)
		before := len(m.Funcs[0].Body.Ops)
		vs := expand(m.Funcs[0].Body.Ops[0])
		if vs == nil && len(m.Funcs[0].Body.Ops) != before {
			t.Errorf("%s %s %s: a refused expansion leaves ops behind", c.name, c.in, c.clauses)
		}
		if (vs != nil) != c.expands {
			t.Errorf("%s %s %s: expands is %t", c.name, c.in, c.clauses, vs != nil)
			continue
		}
		for i, ty := range listOf(t, c.out) {
			if vs != nil && !op.Compatible(vs[i].Type, ty) {
				t.Errorf("%s %s: result %d is %s", c.name, c.in, i, vs[i].Type)
			}
		}
		if vs == nil {
			continue
		}
		for _, o := range m.Funcs[0].Body.Ops {
			if p := verify.Op(o); p != nil {
				t.Errorf("%s %s: %s: %s: %s", c.name, c.in, o.Name, p.Code, p.Msg)
			}
		}
	}
}

// Composites of one element expand in scalar regions, too.
func TestExpandScalar(t *testing.T) {
	for _, name := range []string{"logistic", "silu", "gelu"} {
		for _, elem := range []string{"f32", "f16"} {
			text := strings.NewReplacer("NAME", name, "ELEM", elem).Replace(`func.func @f(%x: tensor<5xELEM>) -> tensor<5xELEM> {
  %y = dm.map %x : (tensor<5xELEM>) -> tensor<5xELEM> {
  ^bb0(%a: ELEM):
    %b = dm.NAME %a : ELEM
    dm.yield %b : ELEM
  }
  return %y : tensor<5xELEM>
}
`)
			compute := func(expanded bool) *tensor.Tensor {
				m, o := first(t, text, "dm."+name)
				if expanded && expand(o) == nil {
					t.Fatalf("dm.%s does not expand on %s", name, elem)
				}
				for _, d := range verify.Module(m) {
					t.Fatalf("%s: %s", d.Code, d.Message)
				}
				args, err := interp.Inputs(t.Context(), m.Funcs[0], nil, 5, nil)
				if err != nil {
					t.Fatal(err)
				}
				r, err := interp.Run(context.Background(), m, m.Funcs[0], args, interp.Options{})
				if err != nil {
					t.Fatal(err)
				}
				return r.Outputs[0]
			}
			if d := tensor.MaxDiff(compute(true), compute(false)); !(d <= 1e-3) {
				t.Errorf("dm.%s of %s is off by %g", name, elem, d)
			}
		}
	}
}
