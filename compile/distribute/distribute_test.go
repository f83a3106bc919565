package distribute_test

import (
	"math"
	"strings"
	"testing"

	"dmir/compile/distribute"
	"dmir/compile/interp"
	"dmir/compile/pass"
	"dmir/compile/pass/passtest"
	"dmir/compile/pipeline"
	"dmir/compile/tensor"
	"dmir/dialect/partition"
	"dmir/dialect/shard/shardtest"
	"dmir/dialect/verify"
)

// both runs the function @f of a text on one device, as its shardings change nothing there, and
// divided over the devices of its mesh, and compares the results. It returns the divided text.
func both(t *testing.T, text string, tolerance float64) string {
	t.Helper()
	local, _ := compared(t, text, tolerance)
	return local
}

// compared is both with the bytes that the devices send.
func compared(t *testing.T, text string, tolerance float64) (local string, sent map[string]int64) {
	t.Helper()
	u := passtest.Unit(t, text, "f", nil)
	if err := pass.Run(u, pipeline.Export(), nil); err != nil {
		t.Fatal(err)
	}
	args, err := interp.Inputs(t.Context(), u.Func, nil, 7, nil)
	if err != nil {
		t.Fatal(err)
	}
	want, err := interp.Run(t.Context(), u.Module, u.Func, args, interp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	fn, problem := partition.Func(u.Context(), u.Module, u.Func)
	if problem != nil {
		t.Fatalf("%s\n%s", problem.Msg, text)
	}
	u.Func = fn
	local = passtest.Text(t, u)
	m := u.Module.Clone()
	m.RemoveFunc(fn.Name)
	m.AddFunc(fn)
	m.Ops = append(m.Ops, fn.Op)
	for _, d := range verify.Module(m) {
		t.Errorf("the divided function is not valid: %s %s", d.Code, d.Message)
	}
	p, err := distribute.Of(m, fn)
	if err != nil {
		t.Fatal(err)
	}
	got, _, err := p.Run(t.Context(), args, interp.Options{})
	if err != nil {
		t.Fatalf("%v\n%s", err, local)
	}
	for i := range want.Outputs {
		if at := differs(want.Outputs[i], got[i], tolerance); at != "" {
			t.Errorf("result %d: %s\n%s", i, at, local)
		}
	}
	return local, shardtest.Traffic(fn, p.Mesh)
}

func differs(want, got *tensor.Tensor, tolerance float64) string {
	if want.Type() != got.Type() {
		return got.Type() + ", not " + want.Type()
	}
	for i := range want.Len() {
		a, b := want.Float(i), got.Float(i)
		if want.Elem.IsInt() {
			if want.Integer(i) != got.Integer(i) {
				return "an integer differs"
			}
			continue
		}
		if math.Abs(a-b) > tolerance*(1+math.Abs(a)) || math.IsNaN(a) != math.IsNaN(b) {
			return strings.Join([]string{"an element differs:", want.String(), got.String()}, "\n")
		}
	}
	return ""
}

func TestMegatron(t *testing.T) {
	t.Log(both(t, `dm.mesh @pod {data = 2, model = 2}
func.func @f(%x: tensor<4x8xf32, #dm.at<split = @pod[{data}, {}]>>, %w: tensor<8x16xf32, #dm.at<split = @pod[{}, {model}]>>, %v: tensor<16x8xf32>) -> tensor<4x8xf32> {
  %0 = dm.matmul %x, %w : (tensor<4x8xf32, #dm.at<split = @pod[{data}, {}]>>, tensor<8x16xf32, #dm.at<split = @pod[{}, {model}]>>) -> tensor<4x16xf32>
  %1 = dm.gelu %0 : tensor<4x16xf32>
  %2 = dm.matmul %1, %v : (tensor<4x16xf32>, tensor<16x8xf32>) -> tensor<4x8xf32>
  %3 = dm.softmax %2 : tensor<4x8xf32>
  return %3 : tensor<4x8xf32>
}`, 1e-5))
	t.Log(both(t, `dm.mesh @pod {data = 2, model = 3}
func.func @f(%x: tensor<5x8xf32, #dm.at<split = @pod[{data}, {model}]>>) -> (tensor<5x8xf32>, tensor<5xf32>, tensor<f32>) {
  %3 = dm.softmax %x : (tensor<5x8xf32, #dm.at<split = @pod[{data}, {model}]>>) -> tensor<5x8xf32>
  %m = dm.reduce max %x, dims = [1] : (tensor<5x8xf32, #dm.at<split = @pod[{data}, {model}]>>) -> tensor<5xf32>
  %s = dm.reduce add %3 : (tensor<5x8xf32>) -> tensor<f32>
  return %3, %m, %s : tensor<5x8xf32>, tensor<5xf32>, tensor<f32>
}`, 1e-5))
}
