package interp

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dmir/compile/tensor"
	"dmir/dialect/ir"
	"dmir/dialect/types"
)

func f32(shape []int, v ...float64) *tensor.Tensor { return tensor.FromFloats(types.F32, shape, v) }

func i64(shape []int, v ...int64) *tensor.Tensor { return tensor.FromInts(types.I64, shape, v) }

// Control flow, calls and regions, worked by hand.
func TestPrograms(t *testing.T) {
	for _, c := range []struct {
		name, text string
		in, want   []*tensor.Tensor
	}{
		{
			"while doubles three times", `func.func @f(%x: tensor<2xf32>) -> (tensor<i64>, tensor<2xf32>) {
  %zero = dm.constant dense<0> : tensor<i64>
  %n, %y = dm.while %zero, %x : (tensor<i64>, tensor<2xf32>) -> (tensor<i64>, tensor<2xf32>) {
  ^bb0(%i: tensor<i64>, %v: tensor<2xf32>):
    %three = dm.constant dense<3> : tensor<i64>
    %more = dm.compare lt %i, %three : (tensor<i64>, tensor<i64>) -> tensor<i1>
    dm.yield %more : tensor<i1>
  } do {
  ^bb0(%i: tensor<i64>, %v: tensor<2xf32>):
    %one = dm.constant dense<1> : tensor<i64>
    %next = dm.add %i, %one : tensor<i64>
    %w = dm.add %v, %v : tensor<2xf32>
    dm.yield %next, %w : tensor<i64>, tensor<2xf32>
  }
  return %n, %y : tensor<i64>, tensor<2xf32>
}`,
			[]*tensor.Tensor{f32([]int{2}, 1, -3)},
			[]*tensor.Tensor{i64([]int{}, 3), f32([]int{2}, 8, -24)},
		},
		{
			"recursion ends by if: 5!", `func.func @f(%n: tensor<i64>) -> tensor<i64> {
  %one = dm.constant dense<1> : tensor<i64>
  %c = dm.compare le %n, %one : (tensor<i64>, tensor<i64>) -> tensor<i1>
  %y = dm.if %c : (tensor<i1>) -> tensor<i64> {
    dm.yield %one : tensor<i64>
  } else {
    %m = dm.sub %n, %one : tensor<i64>
    %r = func.call @f(%m) : (tensor<i64>) -> tensor<i64>
    %p = dm.mul %n, %r : tensor<i64>
    dm.yield %p : tensor<i64>
  }
  return %y : tensor<i64>
}`,
			[]*tensor.Tensor{i64([]int{}, 5)},
			[]*tensor.Tensor{i64([]int{}, 120)},
		},
		{
			"symbols are each function's own", `func.func @f(%x: tensor<?x2xf32, #dm.at<dims = [n]>>, %z: tensor<?xf32, #dm.at<dims = [m]>>) -> (tensor<f32>, tensor<f32>) {
  %a = func.call @sum(%x) : (tensor<?x2xf32, #dm.at<dims = [n]>>) -> tensor<f32>
  %w = dm.reshape %z : (tensor<?xf32, #dm.at<dims = [m]>>) -> tensor<?x2xf32, #dm.at<dims = [k]>>
  %b = func.call @sum(%w) : (tensor<?x2xf32, #dm.at<dims = [k]>>) -> tensor<f32>
  return %a, %b : tensor<f32>, tensor<f32>
}
func.func private @sum(%x: tensor<?x2xf32, #dm.at<dims = [n]>>) -> tensor<f32> {
  %y = dm.reduce add %x : (tensor<?x2xf32, #dm.at<dims = [n]>>) -> tensor<f32>
  return %y : tensor<f32>
}`,
			[]*tensor.Tensor{f32([]int{1, 2}, 1, 2), f32([]int{4}, 1, 2, 3, 4)},
			[]*tensor.Tensor{f32([]int{}, 3), f32([]int{}, 10)},
		},
		{
			"map broadcasts and branches", `func.func @f(%x: tensor<2x1xf32>, %y: tensor<3xf32>) -> tensor<2x3xf32> {
  %z = dm.map %x, %y : (tensor<2x1xf32>, tensor<3xf32>) -> tensor<2x3xf32> {
  ^bb0(%a: f32, %b: f32):
    %c = dm.compare lt %a, %b : (f32, f32) -> i1
    %r = dm.if %c : (i1) -> f32 {
      dm.yield %a : f32
    } else {
      %n = dm.neg %b : f32
      dm.yield %n : f32
    }
    dm.yield %r : f32
  }
  return %z : tensor<2x3xf32>
}`,
			[]*tensor.Tensor{f32([]int{2, 1}, 1, 5), f32([]int{3}, 0, 2, 7)},
			[]*tensor.Tensor{f32([]int{2, 3}, 0, 1, 1, 0, -2, 5)},
		},
		{
			"map with two results and a constant", `func.func @f(%x: tensor<3xf32>) -> (tensor<3xf32>, tensor<3xi1>) {
  %z, %p = dm.map %x : (tensor<3xf32>) -> (tensor<3xf32>, tensor<3xi1>) {
  ^bb0(%a: f32):
    %k = dm.constant 2.0 : f32
    %m = dm.mul %a, %k : f32
    %c = dm.compare gt %m, %k : (f32, f32) -> i1
    dm.yield %k, %c : f32, i1
  }
  return %z, %p : tensor<3xf32>, tensor<3xi1>
}`,
			[]*tensor.Tensor{f32([]int{3}, 0, 1, 2)},
			[]*tensor.Tensor{f32([]int{3}, 2, 2, 2), tensor.FromInts(types.I1, []int{3}, []int64{0, 0, 1})},
		},
		{
			"a region reduces in order: the last of each row", `func.func @f(%x: tensor<2x5xf32>, %init: tensor<f32>) -> tensor<2xf32> {
  %y = dm.reduce %x, %init, dims = [1] : (tensor<2x5xf32>, tensor<f32>) -> tensor<2xf32> {
  ^bb0(%a: f32, %b: f32):
    dm.yield %b : f32
  }
  return %y : tensor<2xf32>
}`,
			[]*tensor.Tensor{f32([]int{2, 5}, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9), f32([]int{}, -1)},
			[]*tensor.Tensor{f32([]int{2}, 4, 9)},
		},
		{
			"a region over nothing gives the initial value", `func.func @f(%x: tensor<2x0xf32>, %init: tensor<f32>) -> tensor<2xf32> {
  %y = dm.reduce %x, %init, dims = [1] : (tensor<2x0xf32>, tensor<f32>) -> tensor<2xf32> {
  ^bb0(%a: f32, %b: f32):
    %c = dm.add %a, %b : f32
    dm.yield %c : f32
  }
  return %y : tensor<2xf32>
}`,
			[]*tensor.Tensor{f32([]int{2, 0}), f32([]int{}, 7)},
			[]*tensor.Tensor{f32([]int{2}, 7, 7)},
		},
		{
			"integers divide by zero as XLA does", `func.func @f(%x: tensor<2xi32>, %y: tensor<2xi32>) -> (tensor<2xi32>, tensor<2xi32>) {
  %q = dm.div %x, %y : tensor<2xi32>
  %r = dm.rem %x, %y : tensor<2xi32>
  return %q, %r : tensor<2xi32>, tensor<2xi32>
}`,
			[]*tensor.Tensor{tensor.FromInts(types.I32, []int{2}, []int64{7, math.MinInt32}), tensor.FromInts(types.I32, []int{2}, []int64{0, -1})},
			[]*tensor.Tensor{tensor.FromInts(types.I32, []int{2}, []int64{-1, math.MinInt32}), tensor.FromInts(types.I32, []int{2}, []int64{7, 0})},
		},
		{
			"sums in f16 stop growing at 2048, in f32 they do not", `func.func @f(%x: tensor<4096xf16>) -> (tensor<f16>, tensor<f16>, tensor<f16>, tensor<f16>) {
  %a = dm.reduce add %x : (tensor<4096xf16>) -> tensor<f16>
  %b = dm.reduce add %x, accumulate = f16 : (tensor<4096xf16>) -> tensor<f16>
  %c = dm.einsum "i,i->" %x, %x : (tensor<4096xf16>, tensor<4096xf16>) -> tensor<f16>
  %d = dm.einsum "i,i->" %x, %x, accumulate = f16 : (tensor<4096xf16>, tensor<4096xf16>) -> tensor<f16>
  return %a, %b, %c, %d : tensor<f16>, tensor<f16>, tensor<f16>, tensor<f16>
}`,
			[]*tensor.Tensor{ones(4096)},
			[]*tensor.Tensor{half(4096), half(2048), half(4096), half(2048)},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := run(t, c.text, c.in...)
			for i := range c.want {
				if d := cmp.Diff(c.want[i], got[i]); d != "" {
					t.Errorf("result %d: got %v, want %v", i, got[i], c.want[i])
				}
			}
		})
	}
}

func ones(n int) *tensor.Tensor {
	x := tensor.New(types.F16, n)
	for i := range x.F32 {
		x.F32[i] = 1
	}
	return x
}

func half(v float64) *tensor.Tensor { return tensor.FromFloats(types.F16, []int{}, []float64{v}) }

// small is an example with its sizes made small.
func small(t *testing.T, name string) string {
	text, err := os.ReadFile("../../examples/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return strings.NewReplacer("8x16x512x512", "2x4x6x6", "8x512x", "2x6x", "16x64", "4x8", "1024", "32", "4096", "48").Replace(string(text))
}

// Wrapping ops in kernels changes no bit of the results.
func TestFusionChangesNoBit(t *testing.T) {
	plain, fused := run(t, small(t, "bert_encoder.dmir")), run(t, small(t, "bert_encoder_fused.dmir"))
	for i := range plain {
		if d := cmp.Diff(plain[i], fused[i]); d != "" {
			t.Errorf("result %d differs: %v and %v", i, plain[i], fused[i])
		}
		if s := plain[i].Stats(); s.NaNs+s.Infs > 0 || s.Min == s.Max {
			t.Errorf("result %d is degenerate: %+v", i, s)
		}
	}
}

// Results do not depend on the number of threads.
func TestThreads(t *testing.T) {
	text := `func.func @f(%x: tensor<300x700xf32>, %w: tensor<700x90xf32>) -> (tensor<300x90xf32>, tensor<f32>, tensor<700xf32>, tensor<300x700xf32>, tensor<50000xf32>) {
  %a = dm.einsum "ij,jk->ik" %x, %w : (tensor<300x700xf32>, tensor<700x90xf32>) -> tensor<300x90xf32>
  %b = dm.reduce add %x : (tensor<300x700xf32>) -> tensor<f32>
  %c = dm.reduce add %x, dims = [0] : (tensor<300x700xf32>) -> tensor<700xf32>
  %d = dm.dropout %x, rate = 0.5, seed = 3 : (tensor<300x700xf32>) -> tensor<300x700xf32>
  %e = dm.rng normal, seed = 4 : tensor<50000xf32>
  return %a, %b, %c, %d, %e : tensor<300x90xf32>, tensor<f32>, tensor<700xf32>, tensor<300x700xf32>, tensor<50000xf32>
}`
	m := read(t, text)
	one, err := try(t, m, Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	five, err := try(t, m, Options{Threads: 5})
	if err != nil {
		t.Fatal(err)
	}
	if !cmp.Equal(one, five) {
		t.Error("one and five threads give different results")
	}
}

func TestDropout(t *testing.T) {
	out := run(t, `func.func @f(%x: tensor<10000xf32>) -> (tensor<10000xf32>, tensor<10000xi1>) {
  %y, %mask = dm.dropout %x, rate = 0.2, seed = 7 : (tensor<10000xf32>) -> (tensor<10000xf32>, tensor<10000xi1>)
  return %y, %mask : tensor<10000xf32>, tensor<10000xi1>
}`, tensor.FromFloats(types.F32, []int{10000}, floats(ones(10000))))
	kept := 0
	for i, m := range out[1].Bool {
		kept += int(m)
		if want := float32(m) * 1.25; out[0].F32[i] != want {
			t.Fatalf("element %d is %g with mask %d, want %g", i, out[0].F32[i], m, want)
		}
	}
	if kept < 7800 || kept > 8200 {
		t.Errorf("%d of 10000 elements are kept, want about 8000", kept)
	}
}

// Each step, seed and use of a seed draws numbers of its own, the same whenever
// it is asked; integers of all types count the same steps.
func TestSteps(t *testing.T) {
	draw := func(elem types.Elem, step, seed int) [2]string {
		text := fmt.Sprintf(`func.func @f(%%x: tensor<64xf32>, %%s: tensor<%s>) -> (tensor<64xi1>, tensor<64xf32>) {
  %%y, %%mask = dm.dropout %%x, %%s, rate = 0.5, seed = %[2]d : (tensor<64xf32>, tensor<%[1]s>) -> (tensor<64xf32>, tensor<64xi1>)
  %%r = dm.rng uniform %%s, seed = %[2]d : (tensor<%[1]s>) -> tensor<64xf32>
  return %%mask, %%r : tensor<64xi1>, tensor<64xf32>
}`, elem, seed)
		at := tensor.New(elem)
		at.SetInt(0, int64(step))
		out := run(t, text, tensor.FromFloats(types.F32, []int{64}, floats(ones(64))), at)
		return [2]string{fmt.Sprint(out[0].Bool), fmt.Sprint(out[1].F32)}
	}
	seen := map[string]string{}
	for step := range 4 {
		for seed := range 3 {
			d := draw(types.I64, step, seed)
			for _, x := range d {
				if other := seen[x]; other != "" {
					t.Errorf("step %d of seed %d draws what %s draws", step, seed, other)
				}
				seen[x] = fmt.Sprintf("step %d of seed %d", step, seed)
			}
			for _, elem := range []types.Elem{types.I32, types.UI64, types.UI8} {
				if draw(elem, step, seed) != d {
					t.Errorf("step %d of seed %d as %s draws other numbers", step, seed, elem)
				}
			}
		}
	}
	if draw(types.I64, -1, 0) != draw(types.I32, -1, 0) {
		t.Error("step -1 of i64 and of i32 draw different numbers")
	}
}

// Every error of a run has a location, a message and a help text.
func TestErrors(t *testing.T) {
	const symbolic = `func.func @f(%x: tensor<?x2xf32, #dm.at<dims = [n]>>, %y: tensor<?xf32, #dm.at<dims = [n]>>) -> tensor<?x2xf32, #dm.at<dims = [n]>> {
  %z = dm.exp %x : tensor<?x2xf32, #dm.at<dims = [n]>>
  return %z : tensor<?x2xf32, #dm.at<dims = [n]>>
}`
	for _, c := range []struct {
		name, text string
		in         []*tensor.Tensor
		code, msg  string
	}{
		{"unbound", symbolic, nil, "DM701", `the size "n" of tensor<?x2xf32, #dm.at<dims = [n]>> has no value`},
		{"element type", symbolic, []*tensor.Tensor{i64([]int{1, 2}, 1, 2), f32([]int{1}, 1)}, "DM702", "input %x of @f: expected tensor<?x2xf32, #dm.at<dims = [n]>>, got tensor<1x2xi64>"},
		{"one symbol, two sizes", symbolic, []*tensor.Tensor{f32([]int{1, 2}, 1, 2), f32([]int{3}, 1, 2, 3)}, "DM702", "input %y of @f: expected tensor<1xf32>, got tensor<3xf32>"},
		{"a size too small", strings.Replace(symbolic, ">> {", ">> attributes {dm.sizes = {n = {min = 2, max = 3}}} {", 1), []*tensor.Tensor{f32([]int{1, 2}, 1, 2), f32([]int{1}, 3)}, "DM702", "@f: the size n is 1, and the function is for sizes from 2 on (dm.sizes)"},
		{"a size too large", strings.Replace(symbolic, ">> {", ">> attributes {dm.sizes = {n = {max = 3}}} {", 1), []*tensor.Tensor{f32([]int{4, 2}, 1, 2, 1, 2, 1, 2, 1, 2), f32([]int{4}, 3, 3, 3, 3)}, "DM702", "@f: the size n is 4, and the function is for sizes up to 3 (dm.sizes)"},
		{"no input", symbolic, []*tensor.Tensor{nil, f32([]int{1}, 1)}, "DM702", "expected tensor<?x2xf32, #dm.at<dims = [n]>>, got nothing"},
		{"count", symbolic, []*tensor.Tensor{f32([]int{1}, 1)}, "DM702", "@f takes 2 inputs, got 1"},
		{"unknown op", "func.func @f(%x: tensor<2xf32>) -> tensor<2xf32> {\n  %y = \"other.op\"(%x) : (tensor<2xf32>) -> tensor<2xf32>\n  return %y : tensor<2xf32>\n}", nil, "DM703", "other.op cannot be run by the reference executor"},
		{"declaration", "func.func private @f(%x: tensor<2xf32>) -> tensor<2xf32>", nil, "DM703", "@f is only declared"},
		{"too large", "func.func @f() -> tensor<f32> {\n  %y = dm.rng uniform : tensor<1000000x1000000xf32>\n  %z = dm.reduce add %y : (tensor<1000000x1000000xf32>) -> tensor<f32>\n  return %z : tensor<f32>\n}", nil, "DM705", "does not fit"},
		{"argument too large", "func.func @f(%x: tensor<1000000x1000000xf32>) -> tensor<1000000x1000000xf32> {\n  return %x : tensor<1000000x1000000xf32>\n}", nil, "DM705", "does not fit into memory"},
		{"endless recursion", "func.func @f(%x: tensor<2xf32>) -> tensor<2xf32> {\n  %y = func.call @f(%x) : (tensor<2xf32>) -> tensor<2xf32>\n  return %y : tensor<2xf32>\n}", nil, "DM706", "more than 1000 deep"},
		{"nothing to pick", "func.func @f(%x: tensor<2x0xf32>, %i: tensor<2xi64>) -> tensor<f32> {\n  %y = dm.cross_entropy %x, %i : (tensor<2x0xf32>, tensor<2xi64>) -> tensor<f32>\n  return %y : tensor<f32>\n}", nil, "DM707", "cannot be indexed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := read(t, c.text)
			_, err := try(t, m, Options{}, c.in...)
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("got %v, want a *Error", err)
			}
			if e.Code != c.code || !strings.Contains(e.Msg, c.msg) {
				t.Errorf("got %s: %s, want %s: %s", e.Code, e.Msg, c.code, c.msg)
			}
			if d := e.Diagnostic(); d.Name == "" || d.Help == "" && e.Code != "DM707" || d.Span.Len() == 0 {
				t.Errorf("the diagnostic lacks a name, a help or a place: %+v", d)
			}
		})
	}
}

// No rows without elements have no loss.
func TestEmptyRows(t *testing.T) {
	out, err := try(t, read(t, `func.func @f(%x: tensor<0x0xf32>, %l: tensor<0xi64>) -> tensor<f32> {
  %y = dm.cross_entropy %x, %l, reduction = sum : (tensor<0x0xf32>, tensor<0xi64>) -> tensor<f32>
  return %y : tensor<f32>
}`), Options{})
	if err != nil || out[0].Float(0) != 0 {
		t.Errorf("%v, %v", out, err)
	}
}

func TestInputs(t *testing.T) {
	m := read(t, `func.func @f(%x: tensor<?x2xf32, #dm.at<dims = [n]>>, %y: tensor<?xf32, #dm.at<dims = [2*n]>>) -> tensor<?xf32, #dm.at<dims = [2*n]>> attributes {dm.bind = {n = 3}} {
  return %y : tensor<?xf32, #dm.at<dims = [2*n]>>
}`)
	fn := m.Funcs[0]
	all, err := Inputs(t.Context(), fn, nil, 5, nil)
	if err != nil {
		t.Fatal(err)
	}
	if all[0].Shape[0] != 3 || all[1].Shape[0] != 6 {
		t.Errorf("dm.bind gives %s and %s", all[0].Type(), all[1].Type())
	}
	some, err := Inputs(t.Context(), fn, nil, 5, map[string]*tensor.Tensor{"x": f32([]int{3, 2}, 1, 2, 3, 4, 5, 6)})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(all[1], some[1]); d != "" {
		t.Error("an argument depends on what else is given")
	}
	if other, err := Inputs(t.Context(), fn, map[string]int64{"n": 4}, 5, nil); err != nil || other[1].Shape[0] != 8 {
		t.Errorf("got %v, %v", other, err)
	}
	if _, err := Inputs(t.Context(), fn, nil, 5, map[string]*tensor.Tensor{"z": all[0]}); err == nil || !strings.Contains(err.Error(), `@f has no argument "z"`) {
		t.Errorf("got %v", err)
	}
	if _, shape, err := ArgType(fn, 0, nil); err != nil || !cmp.Equal(shape, []int{3, 2}) {
		t.Errorf("got %v, %v", shape, err)
	}
}

// Arguments that each fit into memory need not fit together, and making them
// can be given up.
func TestInputsBounded(t *testing.T) {
	m := read(t, `func.func @f(%x: tensor<?xf32, #dm.at<dims = [n]>>, %y: tensor<?xf32, #dm.at<dims = [n]>>) {
  return
}`)
	n := memoryLimit(0) / 4 * 2 / 3 // elements that take two thirds of what there is
	var e *Error
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Inputs(ctx, m.Funcs[0], map[string]int64{"n": 4}, 1, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled context gives %v", err)
	}
	big := &tensor.Tensor{Elem: types.F32, Shape: []int{int(n)}}
	if _, err := Inputs(t.Context(), m.Funcs[0], nil, 1, map[string]*tensor.Tensor{"x": big}); !errors.As(err, &e) || e.Code != "DM705" {
		t.Errorf("two tensors that do not fit together give %v", err)
	}
}

// A cancelled run ends with the context's error, whatever it is doing.
func TestCancel(t *testing.T) {
	for name, text := range map[string]string{
		"loop": `func.func @f(%x: tensor<2xf32>) -> tensor<2xf32> {
  %y = dm.while %x : (tensor<2xf32>) -> tensor<2xf32> {
  ^bb0(%v: tensor<2xf32>):
    %c = dm.constant dense<true> : tensor<i1>
    dm.yield %c : tensor<i1>
  } do {
  ^bb0(%v: tensor<2xf32>):
    dm.yield %v : tensor<2xf32>
  }
  return %y : tensor<2xf32>
}`,
		"product": `func.func @f(%x: tensor<8000x8000xf16>) -> tensor<8000x8000xf16> {
  %y = dm.matmul %x, %x : (tensor<8000x8000xf16>, tensor<8000x8000xf16>) -> tensor<8000x8000xf16>
  return %y : tensor<8000x8000xf16>
}`,
	} {
		t.Run(name, func(t *testing.T) {
			m := read(t, text)
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			arg := m.Funcs[0].Args[0].Tensor()
			shape, _ := shapeOf(arg, nil)
			_, err := Run(ctx, m, m.Funcs[0], []*tensor.Tensor{tensor.New(arg.Elem, shape...)}, Options{
				Progress: func(int, int, *ir.Op) { cancel() },
			})
			if !errors.Is(err, context.Canceled) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// Progress rises to its total and names ops; timings name every op once.
func TestProgressAndTimings(t *testing.T) {
	m := read(t, small(t, "bert_encoder.dmir"))
	args, err := Inputs(t.Context(), m.Funcs[0], nil, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	last, all := 0, 0
	r, err := Run(context.Background(), m, m.Funcs[0], args, Options{Progress: func(done, total int, o *ir.Op) {
		if done < last || done > total || o == nil {
			t.Errorf("progress goes from %d to %d of %d at %v", last, done, total, o)
		}
		last, all = done, total
	}})
	if err != nil {
		t.Fatal(err)
	}
	if last != all || all == 0 {
		t.Errorf("progress ends at %d of %d", last, all)
	}
	seen, top := map[*ir.Op]bool{}, 0
	for _, o := range r.Ops {
		if seen[o.Op] || o.Count != 1 || o.Ns < 0 || o.Bytes == 0 {
			t.Errorf("%s: %+v", o.Op.Name, o)
		}
		seen[o.Op] = true
		if o.Depth == 0 {
			top++
		}
	}
	if want := len(m.Funcs[0].Body.Ops) - 1; top != want {
		t.Errorf("%d timings of the body's %d ops", top, want)
	}
	if r.Peak <= 0 {
		t.Errorf("peak is %d", r.Peak)
	}
}

// Rows too long for one goroutine are sorted like short ones.
func TestSortLong(t *testing.T) {
	const n = 3*sortRun + 17
	x := tensor.Random(types.I32, []int{1, n}, 1, 0) // digits: many equal elements
	out := run(t, strings.ReplaceAll(`func.func @f(%x: tensor<1xNxi32>) -> (tensor<1xNxi32>, tensor<1xNxi64>) {
  %v, %i = dm.sort %x, descending = true : (tensor<1xNxi32>) -> (tensor<1xNxi32>, tensor<1xNxi64>)
  return %v, %i : tensor<1xNxi32>, tensor<1xNxi64>
}`, "N", strconv.Itoa(n)), x)
	for i := range n {
		if out[0].Int[i] != x.Int[out[1].Int[i]] {
			t.Fatalf("value %d is not that of its position", i)
		}
		if i > 0 && (out[0].Int[i] > out[0].Int[i-1] || out[0].Int[i] == out[0].Int[i-1] && out[1].Int[i] < out[1].Int[i-1]) {
			t.Fatalf("element %d is out of order", i)
		}
	}
}
