package linalg_test

import (
	"flag"
	"math"
	"os"
	"regexp"
	"strings"
	"testing"

	"dmir/compile/interp"
	"dmir/compile/sparse"
	"dmir/compile/tensor"
	"dmir/dialect/ir"
	"dmir/dialect/linalg"
	"dmir/dialect/lower"
	"dmir/dialect/print"
	"dmir/dialect/types"
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

// The regions of sparse_tensor.unary, binary, select and reduce compute what they say of what tensors store.
func TestSemirings(t *testing.T) {
	data, err := os.ReadFile("testdata/semirings.mlir")
	need.OK(t, err)
	m := imported(t, string(data))
	type at struct {
		x, y           float64
		inX, inY, main bool // main: on the diagonal or above it
		is             bool // of the third argument
		place          int
	}
	where := func(v float64, is bool) (float64, bool) { return v, is }
	want := map[string]func(e at) (float64, bool){
		"least": func(e at) (float64, bool) {
			if e.inX && e.inY {
				return min(e.x, e.y), true
			}
			return e.x + e.y, e.inX || e.inY
		},
		"without": func(e at) (float64, bool) { return where(e.x, e.inX && !e.inY) },
		"places":  func(e at) (float64, bool) { return where(float64(e.place), e.inX) },
		"complement": func(e at) (float64, bool) {
			if e.inX {
				return math.Exp(e.x), true
			}
			return 2, true
		},
		"negated": func(e at) (float64, bool) {
			if e.inX && e.inY {
				return e.x / e.y, true
			}
			return -e.y, e.inY
		},
		"triangles": func(e at) (float64, bool) {
			if e.inX && e.inY && !e.main {
				return e.x - e.y, true
			}
			return e.x + e.y, e.inX || e.inY
		},
		"scaled":   func(e at) (float64, bool) { return where(e.x+e.y, e.inX) },
		"upper":    func(e at) (float64, bool) { return where(e.x, e.inX && e.place%6 > e.place/6) },
		"products": nil,
		"chosen": func(e at) (float64, bool) {
			if e.is {
				return e.x, e.inX || e.inY
			}
			return e.y, e.inX || e.inY
		},
	}
	if len(m.Funcs) != len(want) {
		t.Fatalf("%d functions", len(m.Funcs))
	}
	for _, f := range m.Funcs {
		var args, dense []*tensor.Tensor
		for k, v := range f.Args {
			typ := v.Tensor()
			shape, _ := sparse.Numbers(typ.Shape)
			x := tensor.New(typ.Elem, int(shape[0]))
			if len(shape) == 2 {
				x = tensor.New(typ.Elem, int(shape[0]), int(shape[1]))
			}
			for i := range x.Len() {
				if i*(5+4*k)%7 > 3 {
					x.SetFloat(i, float64(i%5)-float64(k)-7)
				}
			}
			dense = append(dense, x)
			if typ.Format == nil {
				args = append(args, x)
				continue
			}
			s, err := sparse.Pack(sparse.Open(typ), sparse.OfDense(x))
			need.OK(t, err)
			args = append(args, s.Parts...)
		}
		res, err := interp.Run(t.Context(), m, f, args, interp.Options{})
		if err != nil {
			t.Errorf("@%s: %v", f.Name, err)
			continue
		}
		typ := f.Results[0].(*types.Tensor)
		got := map[int]float64{}
		if typ.Format == nil {
			for i := range res.Outputs[0].Len() {
				got[i] = res.Outputs[0].Float(i)
			}
		} else {
			c, err := (&sparse.Tensor{Type: sparse.Shaped(typ, dense[0].Shape, storedBy(typ, res.Outputs)), Parts: res.Outputs}).Unpack()
			if err != nil {
				t.Errorf("@%s: %v", f.Name, err)
				continue
			}
			for k := range c.Len() {
				i := 0
				for d := range c.At {
					i = i*dense[0].Shape[d] + int(c.At[d][k])
				}
				got[i] = c.Values.Float(k)
			}
		}
		stored := 0
		for i := range dense[0].Len() {
			e := at{x: dense[0].Float(i), inX: dense[0].Float(i) != 0, place: i, main: i%6 >= i/6}
			if len(dense) > 1 {
				e.y, e.inY = dense[1].Float(i), dense[1].Float(i) != 0
			}
			e.is = len(dense) > 2 && dense[2].Float(i) != 0
			if want[f.Name] == nil {
				continue
			}
			w, is := want[f.Name](e)
			if is {
				stored++
			}
			if g, has := got[i]; has != is || is && math.Abs(g-w) > 1e-12 {
				t.Errorf("@%s: element %d is %g, %t, want %g, %t", f.Name, i, g, has, w, is)
			}
		}
		if want[f.Name] == nil {
			for r := range 4 {
				w := 1.0
				for c := range 6 {
					if x := dense[0].Float(r*6 + c); x != 0 {
						w *= x
					}
				}
				if got[r] != w {
					t.Errorf("@%s: row %d is %g, want %g", f.Name, r, got[r], w)
				}
			}
		} else if stored != len(got) {
			t.Errorf("@%s stores %d elements, want %d", f.Name, len(got), stored)
		}
	}
}

// storedBy is how many entries each compressed level of what parts store has room for.
func storedBy(t *types.Tensor, parts []*tensor.Tensor) (out []int64) {
	for i, c := range t.Components() {
		if c.Kind == types.Coordinates && t.Format.Levels[c.Level].HasPositions() {
			out = append(out, int64(parts[i].Len()))
		}
	}
	return out
}

// What is not read is one diagnostic that names it.
func TestNotRead(t *testing.T) {
	for _, c := range []struct{ body, says string }{
		{"%y = linalg.conv_1d ins(%a, %a : tensor<4xf32>, tensor<4xf32>) outs(%a : tensor<4xf32>) -> tensor<4xf32>", "linalg.conv_1d is not imported"},
		{"%y = linalg.generic {indexing_maps = [affine_map<(i,j) -> (i+j)>, affine_map<(i,j) -> (i)>], iterator_types = [\"parallel\", \"reduction\"]} ins(%a : tensor<4xf32>) outs(%a : tensor<4xf32>) {\n^bb0(%x: f32, %o: f32):\n linalg.yield %x : f32\n} -> tensor<4xf32>", "single dimensions"},
		{"%y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = [\"parallel\"]} ins(%a : tensor<4xf32>) outs(%a : tensor<4xf32>) {\n^bb0(%x: f32, %o: f32):\n %z = math.fpowi %x, %x : f32, f32\n linalg.yield %z : f32\n} -> tensor<4xf32>", "math.fpowi in a region"},
		{"%y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = [\"parallel\"]} ins(%a : tensor<4xf32>) outs(%a : tensor<4xf32>) {\n^bb0(%x: f32, %o: f32):\n %z = sparse_tensor.unary %x : f32 to f32 present={} absent={\n %c = arith.constant 1.0 : f32\n sparse_tensor.yield %c : f32 }\n linalg.yield %z : f32\n} -> tensor<4xf32>", "of a dense tensor"},
	} {
		m := linalg.Import(parse.File(source.New("a.mlir", "func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {\n"+c.body+"\nreturn %y : tensor<4xf32>\n}\n")), nil)[0]
		if len(m.Diags) != 1 || m.Diags[0].Severity != diag.Error || !strings.Contains(m.Diags[0].Message, c.says) {
			t.Errorf("%q: %v", c.says, m.Diags)
		}
	}
}

// No text makes the import fail otherwise than by diagnostics.
func FuzzImport(f *testing.F) {
	head := ""
	for _, name := range []string{"testdata/kernels.mlir", "testdata/semirings.mlir"} {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		for kernel := range strings.SplitSeq(string(data), "  func.func") {
			f.Add("func.func" + kernel)
		}
		own, _, _ := strings.Cut(string(data), "module")
		head += own
	}
	f.Fuzz(func(_ *testing.T, text string) {
		for _, m := range linalg.Import(parse.File(source.New("a.mlir", head+text)), nil) {
			verify.Module(m)
		}
	})
}
