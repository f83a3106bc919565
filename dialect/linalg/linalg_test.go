package linalg_test

import (
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"

	"dmir/compile/interp"
	"dmir/compile/tensor"
	"dmir/dialect/ir"
	"dmir/dialect/linalg"
	"dmir/dialect/lower"
	"dmir/dialect/print"
	"dmir/dialect/verify"
	"dmir/syntax/diag"
	"dmir/syntax/parse"
	"dmir/syntax/source"
	"dmir/testkit/need"
)

var update = flag.Bool("update", false, "rewrite the expected programs in testdata")

// imported is the program in text.
func imported(t *testing.T, text string) *ir.Module {
	t.Helper()
	f := parse.File(source.New("kernels.mlir", text))
	if !linalg.Holds(f) {
		t.Fatal("the program is not one to import")
	}
	m := linalg.Import(f, nil)[0]
	for _, d := range append(m.Diags, verify.Module(m)...) {
		if d.Severity == diag.Error {
			t.Fatal(d.Message)
		}
	}
	return m
}

// Kernels as MLIR's sparse tests have them are the expected programs, which are read again.
func TestKernels(t *testing.T) {
	data, err := os.ReadFile("testdata/kernels.mlir")
	need.OK(t, err)
	m := imported(t, string(data))
	if len(m.Diags) != 1 || !strings.Contains(m.Diags[0].Message, "left out: @print: sparse_tensor.print") {
		t.Errorf("the diagnostics are %v", m.Diags)
	}
	got, err := print.Sections([]*ir.Module{m})
	need.OK(t, err)
	if *update {
		need.OK(t, os.WriteFile("testdata/kernels.dmir", []byte(got), 0o644))
	}
	want, err := os.ReadFile("testdata/kernels.dmir")
	need.OK(t, err)
	if got != string(want) {
		t.Errorf("the program is\n%s", got)
	}
	again := lower.File(parse.File(source.New("kernels.dmir", got)))[0]
	for _, d := range append(again.Diags, verify.Module(again)...) {
		if d.Severity == diag.Error {
			t.Error(d.Message)
		}
	}
}

// What kernels compute of sparse tensors is what they compute of dense ones.
func TestNumbers(t *testing.T) {
	data, err := os.ReadFile("testdata/kernels.mlir")
	need.OK(t, err)
	text := string(data)
	sparse := imported(t, text)
	plain := regexp.MustCompile(`, #(CSR|CSC|CSF)>`).ReplaceAllString(text, ">")
	dense := imported(t, regexp.MustCompile(`sparse_tensor.unary(.|\n)*?absent=\{\}`).ReplaceAllString(plain, "arith.negf %x : f32"))
	for _, f := range sparse.Funcs {
		if f.Name == "matvec" {
			continue
		}
		args, err := interp.Inputs(t.Context(), f, nil, 3, nil)
		need.OK(t, err)
		for k, a := range args {
			if strings.HasPrefix(f.Args[k].Name, "%a") {
				for i := range a.Len() {
					if (i+k)*7%5 > 1 {
						a.SetFloat(i, 0)
					}
				}
			}
		}
		want, err := interp.Run(t.Context(), dense, dense.Func(f.Name), args, interp.Options{})
		need.OK(t, err)
		got, err := interp.Run(t.Context(), sparse, f, args, interp.Options{})
		need.OK(t, err)
		for i, w := range want.Outputs {
			if d := tensor.MaxDiff(got.Outputs[i], w); d > 1e-6 {
				t.Errorf("@%s: result %d is %v, want %v", f.Name, i, got.Outputs[i], w)
			}
		}
	}
}

// What is not read is one diagnostic that names it.
func TestNotRead(t *testing.T) {
	for _, c := range []struct{ body, says string }{
		{"%y = linalg.conv_1d ins(%a, %a : tensor<4xf32>, tensor<4xf32>) outs(%a : tensor<4xf32>) -> tensor<4xf32>", "linalg.conv_1d is not imported"},
		{"%y = linalg.generic {indexing_maps = [affine_map<(i,j) -> (i+j)>, affine_map<(i,j) -> (i)>], iterator_types = [\"parallel\", \"reduction\"]} ins(%a : tensor<4xf32>) outs(%a : tensor<4xf32>) {\n^bb0(%x: f32, %o: f32):\n linalg.yield %x : f32\n} -> tensor<4xf32>", "single dimensions"},
		{"%y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = [\"parallel\"]} ins(%a : tensor<4xf32>) outs(%a : tensor<4xf32>) {\n^bb0(%x: f32, %o: f32):\n %z = math.fpowi %x, %x : f32, f32\n linalg.yield %z : f32\n} -> tensor<4xf32>", "math.fpowi in a region"},
		{"%y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = [\"parallel\"]} ins(%a : tensor<4xf32>) outs(%a : tensor<4xf32>) {\n^bb0(%x: f32, %o: f32):\n %z = sparse_tensor.unary %x : f32 to f32 present={} absent={\n %c = arith.constant 1.0 : f32\n sparse_tensor.yield %c : f32 }\n linalg.yield %z : f32\n} -> tensor<4xf32>", "what is not stored"},
	} {
		m := linalg.Import(parse.File(source.New("a.mlir", "func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {\n"+c.body+"\nreturn %y : tensor<4xf32>\n}\n")), nil)[0]
		if len(m.Diags) != 1 || m.Diags[0].Severity != diag.Error || !strings.Contains(m.Diags[0].Message, c.says) {
			t.Errorf("%q: %v", c.says, m.Diags)
		}
	}
}

// No text makes the import fail otherwise than by diagnostics.
func FuzzImport(f *testing.F) {
	data, err := os.ReadFile("testdata/kernels.mlir")
	if err != nil {
		f.Fatal(err)
	}
	for kernel := range strings.SplitSeq(string(data), "  func.func") {
		f.Add("func.func" + kernel)
	}
	head, _, _ := strings.Cut(string(data), "module")
	f.Fuzz(func(_ *testing.T, text string) {
		for _, m := range linalg.Import(parse.File(source.New("a.mlir", head+text)), nil) {
			verify.Module(m)
		}
	})
}
