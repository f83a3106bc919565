package interp

import (
	"context"
	"math"
	"strings"
	"testing"

	"dmir/compile/tensor"
	"dmir/dialect/ir"
	"dmir/dialect/types"
)

func numbers(elem types.Elem, vals ...float64) *tensor.Tensor {
	return tensor.FromFloats(elem, []int{len(vals)}, vals)
}

// near holds a result to numbers worked by hand.
func near(t *testing.T, what string, got *tensor.Tensor, want ...float64) {
	t.Helper()
	if d := tensor.MaxDiff(got, tensor.FromFloats(got.Elem, got.Shape, want)); !(d <= 1e-6) {
		t.Errorf("%s is %v, want %v", what, floats(got), want)
	}
}

// Steps of the optimizers by their formulas, with the numbers written out.
func TestOptimizers(t *testing.T) {
	w, g := numbers(types.F32, 1, -2), numbers(types.F32, 0.5, 4)
	out := run(t, `func.func @f(%w: tensor<2xf32>, %g: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf16>) {
  %a, %h = dm.sgd %w, %g, lr = 0.1, weight_decay = 0.5 : (tensor<2xf32>, tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf16>)
  return %a, %h : tensor<2xf32>, tensor<2xf16>
}`, w, g)
	near(t, "sgd", out[0], 1-0.1*(0.5+0.5), -2-0.1*(4-1))
	if out[1].Elem != types.F16 || math.Abs(out[1].Float(1)+2.3) > 2e-3 {
		t.Errorf("the half-precision copy is %v", floats(out[1]))
	}
	out = run(t, `func.func @f(%w: tensor<2xf32>, %g: tensor<2xf32>, %m: tensor<2xf32>, %lr: tensor<f32>) -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) {
  %a, %m1 = dm.momentum %w, %g, %m, %lr, momentum = 0.5 : (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<f32>) -> (tensor<2xf32>, tensor<2xf32>)
  %b, %m2 = dm.momentum %w, %g, %m, lr = 0.1, momentum = 0.5, nesterov = true : (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>)
  return %a, %m1, %b : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
}`, w, g, numbers(types.F32, 2, 2), tensor.FromFloats(types.F32, []int{}, []float64{0.01}))
	near(t, "momentum", out[0], 1-0.01*1.5, -2-0.01*5)
	near(t, "the momentum", out[1], 1.5, 5)
	near(t, "nesterov", out[2], 1-0.1*(0.5+0.75), -2-0.1*(4+2.5))

	// From zeros the first step of Adam is lr in the direction against the gradient.
	zero := numbers(types.F32, 0, 0)
	out = run(t, `func.func @f(%w: tensor<2xf32>, %g: tensor<2xf32>, %m: tensor<2xf32>, %v: tensor<2xf32>, %step: tensor<i32>) -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) {
  %a, %m1, %v1 = dm.adam %w, %g, %m, %v, %step, lr = 0.1, weight_decay = 0.5 : (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<i32>) -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>)
  return %a, %m1, %v1 : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
}`, w, g, zero, zero, tensor.FromInts(types.I32, []int{}, []int64{1}))
	near(t, "adam", out[0], 1-0.1-0.1*0.5, -2-0.1+0.1)
	near(t, "the mean", out[1], 0.05, 0.4)
	near(t, "the mean of squares", out[2], 0.00025, 0.016)
}

// Of equal elements the first is chosen, padding never, and a NaN before all.
func TestSelectAndScatter(t *testing.T) {
	text := `func.func @f(%x: tensor<5xf32>, %s: tensor<3xf32>) -> tensor<5xf32> {
  %y = dm.select_and_scatter KIND %x, %s, window_dimensions = [3], window_strides = [2], padding = [[1, 1]] : (tensor<5xf32>, tensor<3xf32>) -> tensor<5xf32>
  return %y : tensor<5xf32>
}`
	with := func(kind string) string { return strings.ReplaceAll(text, "KIND", kind) }
	s := numbers(types.F32, 1, 10, 100)
	near(t, "max", run(t, with("max"), numbers(types.F32, -1, -1, -3, -2, -2), s)[0], 1, 10, 0, 100, 0)
	near(t, "min", run(t, with("min"), numbers(types.F32, 5, 5, 5, 4, 9), s)[0], 1, 0, 0, 110, 0)
	near(t, "with NaN", run(t, with("max"), numbers(types.F32, 5, math.NaN(), 9, 4, 9), s)[0], 0, 11, 0, 0, 100)
}

// The second result of an attention is the logarithm of the sum of exponentials.
func TestLogSumExp(t *testing.T) {
	q := tensor.FromFloats(types.F64, []int{2, 1}, []float64{1, 2})
	k := tensor.FromFloats(types.F64, []int{2, 1}, []float64{3, 5})
	out := run(t, `func.func @f(%q: tensor<2x1xf64>, %k: tensor<2x1xf64>) -> tensor<2xf64> {
  %y, %lse = dm.attention %q, %k, %k, causal = true, scale = 1.0 : (tensor<2x1xf64>, tensor<2x1xf64>, tensor<2x1xf64>) -> (tensor<2x1xf64>, tensor<2xf64>)
  return %lse : tensor<2xf64>
}`, q, k)
	near(t, "lse", out[0], 3, math.Log(math.Exp(6)+math.Exp(10)))
}

// Attributes of arguments initialize them where no input is given.
func TestInitialInputs(t *testing.T) {
	m := read(t, `func.func @f(%a: tensor<400xf32> {dm.init = 0.5}, %b: tensor<400xf16> {dm.stddev = 0.01}, %n: tensor<i64> {dm.init = 3}, %c: tensor<2xf32>, %d: tensor<2xf32> {dm.init = 9.0}) {
  return
}`)
	args, err := Inputs(t.Context(), m.Funcs[0], nil, 1, map[string]*tensor.Tensor{"d": numbers(types.F32, 1, 2)})
	if err != nil {
		t.Fatal(err)
	}
	var square float64
	for i := range 400 {
		square += args[1].Float(i) * args[1].Float(i)
	}
	if args[0].Float(399) != 0.5 || math.Abs(math.Sqrt(square/400)-0.01) > 0.001 || args[2].Integer(0) != 3 || args[4].Float(0) != 1 {
		t.Errorf("%v %g %v %v", args[0].Float(399), math.Sqrt(square/400), args[2], args[4])
	}
	if plain := tensor.Random(types.F32, []int{2}, 1, 3); tensor.MaxDiff(args[3], plain) != 0 {
		t.Error("an argument without attributes has other numbers than before")
	}
}

// Progress goes on while a gradient or a called function runs, and each
// execution of a gradient in a loop gives the same.
func TestGradientProgress(t *testing.T) {
	m := read(t, `func.func @f(%x: tensor<64x64xf32>) -> (tensor<i64>, tensor<64x64xf32>) {
  %a = func.call @twice(%x) : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %loss, %dx = dm.grad @loss %a : (tensor<64x64xf32>) -> (tensor<f32>, tensor<64x64xf32>)
  %zero = dm.constant dense<0> : tensor<i64>
  %n, %y = dm.while %zero, %dx : (tensor<i64>, tensor<64x64xf32>) -> (tensor<i64>, tensor<64x64xf32>) {
  ^bb0(%i: tensor<i64>, %v: tensor<64x64xf32>):
    %three = dm.constant dense<3> : tensor<i64>
    %more = dm.compare lt %i, %three : (tensor<i64>, tensor<i64>) -> tensor<i1>
    dm.yield %more : tensor<i1>
  } do {
  ^bb0(%i: tensor<i64>, %v: tensor<64x64xf32>):
    %one = dm.constant dense<1> : tensor<i64>
    %next = dm.add %i, %one : tensor<i64>
    %l, %dv = dm.grad @loss %a : (tensor<64x64xf32>) -> (tensor<f32>, tensor<64x64xf32>)
    dm.yield %next, %dv : tensor<i64>, tensor<64x64xf32>
  }
  %same = dm.compare eq %y, %dx : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xi1>
  %bits = dm.convert %same : (tensor<64x64xi1>) -> tensor<64x64xi64>
  %count = dm.reduce add %bits : (tensor<64x64xi64>) -> tensor<i64>
  return %count, %y : tensor<i64>, tensor<64x64xf32>
}
func.func private @twice(%x: tensor<?x64xf32, #dm.at<dims = [n]>>) -> tensor<?x64xf32, #dm.at<dims = [n]>> {
  %y = dm.add %x, %x : tensor<?x64xf32, #dm.at<dims = [n]>>
  %z = dm.tanh %y : tensor<?x64xf32, #dm.at<dims = [n]>>
  return %z : tensor<?x64xf32, #dm.at<dims = [n]>>
}
func.func private @loss(%x: tensor<?x64xf32, #dm.at<dims = [n]>>) -> tensor<f32> {
  %0 = dm.layer_norm %x : tensor<?x64xf32, #dm.at<dims = [n]>>
  %1 = dm.matmul %0, %0, transpose_b = true : (tensor<?x64xf32, #dm.at<dims = [n]>>, tensor<?x64xf32, #dm.at<dims = [n]>>) -> tensor<?x?xf32, #dm.at<dims = [n, n]>>
  %2 = dm.mul %1, %1 : tensor<?x?xf32, #dm.at<dims = [n, n]>>
  %3 = dm.reduce add %2 : (tensor<?x?xf32, #dm.at<dims = [n, n]>>) -> tensor<f32>
  return %3 : tensor<f32>
}`)
	args, err := Inputs(t.Context(), m.Funcs[0], nil, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	last, all := 0, 0
	r, err := Run(context.Background(), m, m.Funcs[0], args, Options{Progress: func(done, total int, o *ir.Op) {
		if done < last || done > total || o == nil {
			t.Errorf("progress goes from %d to %d of %d", last, done, total)
		}
		last, all = done, total
	}})
	if err != nil {
		t.Fatal(err)
	}
	if last != all || all == 0 {
		t.Errorf("progress ends at %d of %d", last, all)
	}
	if r.Outputs[0].Integer(0) != 64*64 {
		t.Error("a gradient in a loop differs")
	}
}
