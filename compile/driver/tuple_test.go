package driver

import (
	"slices"
	"strings"
	"testing"

	"dmir/compile/tensor"
)

// grouped is a training step whose parameters and moments are tuples; apart is the
// same with every member written.
const grouped = `
!w = tensor<16x32xf32>
!b = tensor<32xf32>
!v = tensor<32x8xf32>
!layer = tuple<!w, !b>
!params = tuple<!layer, !v>
!half = tuple<tuple<tensor<16x32xbf16>, tensor<32xbf16>>, tensor<32x8xbf16>>
func.func @step(%x: tensor<4x16xf32>, %labels: tensor<4xi64>, %p: !params {dm.stddev = 0.5}, %m: !params, %s: !params {dm.init = 0.01}, %n: tensor<i64> {dm.init = 3}) -> (tensor<f32>, !params, !params, !params, !half) {
  %loss, %g = dm.grad @loss %x, %labels, %p, wrt = [2] : (tensor<4x16xf32>, tensor<4xi64>, !params) -> (tensor<f32>, !params)
  %clip = dm.constant dense<0.5> : tensor<f32>
  %scaled = dm.mul %g, %clip : (!params, tensor<f32>) -> !params
  %p1, %m1, %s1 = dm.adam %p, %scaled, %m, %s, %n, lr = 0.1 : (!params, !params, !params, !params, tensor<i64>) -> (!params, !params, !params)
  %half = dm.convert %p1 : (!params) -> !half
  return %loss, %p1, %m1, %s1, %half : tensor<f32>, !params, !params, !params, !half
}
func.func private @loss(%x: tensor<4x16xf32>, %labels: tensor<4xi64>, %p: !params) -> tensor<f32> {
  %layer, %v = dm.unpack %p : (!params) -> (!layer, !v)
  %w, %b = dm.unpack %layer : (!layer) -> (!w, !b)
  %again = dm.pack %b, %w : (!b, !w) -> tuple<!b, !w>
  %h = func.call @layer(%again, %x) : (tuple<!b, !w>, tensor<4x16xf32>) -> tensor<4x32xf32>
  %logits = dm.matmul %h, %v : (tensor<4x32xf32>, !v) -> tensor<4x8xf32>
  %loss = dm.cross_entropy %logits, %labels : (tensor<4x8xf32>, tensor<4xi64>) -> tensor<f32>
  return %loss : tensor<f32>
}
func.func private @layer(%p: tuple<!b, !w>, %x: tensor<4x16xf32>) -> tensor<4x32xf32> {
  %b, %w = dm.unpack %p : (tuple<!b, !w>) -> (!b, !w)
  %0 = dm.matmul %x, %w : (tensor<4x16xf32>, !w) -> tensor<4x32xf32>
  %1 = dm.add %0, %b : (tensor<4x32xf32>, !b) -> tensor<4x32xf32>
  %2 = dm.tanh %1 : tensor<4x32xf32>
  return %2 : tensor<4x32xf32>
}
`

const apart = `
!w = tensor<16x32xf32>
!b = tensor<32xf32>
!v = tensor<32x8xf32>
func.func @step(%x: tensor<4x16xf32>, %labels: tensor<4xi64>, %pw: !w {dm.stddev = 0.5}, %pb: !b {dm.stddev = 0.5}, %pv: !v {dm.stddev = 0.5}, %mw: !w, %mb: !b, %mv: !v,
    %sw: !w {dm.init = 0.01}, %sb: !b {dm.init = 0.01}, %sv: !v {dm.init = 0.01}, %n: tensor<i64> {dm.init = 3})
    -> (tensor<f32>, !w, !b, !v, !w, !b, !v, !w, !b, !v, tensor<16x32xbf16>, tensor<32xbf16>, tensor<32x8xbf16>) {
  %loss, %gw, %gb, %gv = dm.grad @loss %x, %labels, %pw, %pb, %pv, wrt = [2, 3, 4] : (tensor<4x16xf32>, tensor<4xi64>, !w, !b, !v) -> (tensor<f32>, !w, !b, !v)
  %clip = dm.constant dense<0.5> : tensor<f32>
  %cw = dm.mul %gw, %clip : (!w, tensor<f32>) -> !w
  %cb = dm.mul %gb, %clip : (!b, tensor<f32>) -> !b
  %cv = dm.mul %gv, %clip : (!v, tensor<f32>) -> !v
  %pw1, %mw1, %sw1 = dm.adam %pw, %cw, %mw, %sw, %n, lr = 0.1 : (!w, !w, !w, !w, tensor<i64>) -> (!w, !w, !w)
  %pb1, %mb1, %sb1 = dm.adam %pb, %cb, %mb, %sb, %n, lr = 0.1 : (!b, !b, !b, !b, tensor<i64>) -> (!b, !b, !b)
  %pv1, %mv1, %sv1 = dm.adam %pv, %cv, %mv, %sv, %n, lr = 0.1 : (!v, !v, !v, !v, tensor<i64>) -> (!v, !v, !v)
  %hw = dm.convert %pw1 : (!w) -> tensor<16x32xbf16>
  %hb = dm.convert %pb1 : (!b) -> tensor<32xbf16>
  %hv = dm.convert %pv1 : (!v) -> tensor<32x8xbf16>
  return %loss, %pw1, %pb1, %pv1, %mw1, %mb1, %mv1, %sw1, %sb1, %sv1, %hw, %hb, %hv
      : tensor<f32>, !w, !b, !v, !w, !b, !v, !w, !b, !v, tensor<16x32xbf16>, tensor<32xbf16>, tensor<32x8xbf16>
}
func.func private @loss(%x: tensor<4x16xf32>, %labels: tensor<4xi64>, %w: !w, %b: !b, %v: !v) -> tensor<f32> {
  %0 = dm.matmul %x, %w : (tensor<4x16xf32>, !w) -> tensor<4x32xf32>
  %1 = dm.add %0, %b : (tensor<4x32xf32>, !b) -> tensor<4x32xf32>
  %2 = dm.tanh %1 : tensor<4x32xf32>
  %logits = dm.matmul %2, %v : (tensor<4x32xf32>, !v) -> tensor<4x8xf32>
  %loss = dm.cross_entropy %logits, %labels : (tensor<4x8xf32>, tensor<4xi64>) -> tensor<f32>
  return %loss : tensor<f32>
}
`

// A step on tuples is the step on their members: the same cost and memory, the same
// bits from the reference, the same plan for a device, and results with the members'
// names.
func TestTuples(t *testing.T) {
	t.Parallel()
	a, b := loaded(t, "grouped.dmir", grouped), loaded(t, "apart.dmir", apart)
	am, af, err := Pick(a, "step")
	if err != nil {
		t.Fatal(err)
	}
	bm, bf, err := Pick(b, "step")
	if err != nil {
		t.Fatal(err)
	}
	x, y := a.Cost(af), b.Cost(bf)
	if !x.FLOP.Equal(y.FLOP) || !x.Read.Equal(y.Read) || !x.Written.Equal(y.Written) || !x.Minimum().Equal(y.Minimum()) || x.Time(a.Target) != y.Time(b.Target) {
		t.Errorf("the tuples take %s FLOP, %s B, %s B, at least %s B; their members %s, %s, %s, %s", x.FLOP, x.Read, x.Written, x.Minimum(), y.FLOP, y.Read, y.Written, y.Minimum())
	}
	got, err := Run(t.Context(), Job{Program: a, Module: am, Fn: af, Seed: 5, Device: "reference"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	want, err := Run(t.Context(), Job{Program: b, Module: bm, Fn: bf, Seed: 5, Device: "reference"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for i, o := range got.Outputs {
		names = append(names, o.Name)
		if diff := tensor.MaxDiff(o.Tensor, want.Outputs[i].Tensor); diff != 0 || o.Type != want.Outputs[i].Type {
			t.Errorf("%s, %s, differs by %g from %s, %s", o.Name, o.Type, diff, want.Outputs[i].Name, want.Outputs[i].Type)
		}
	}
	if text := strings.Join(names, " "); text != "loss p1.0.0 p1.0.1 p1.1 m1.0.0 m1.0.1 m1.1 s1.0.0 s1.0.1 s1.1 half.0.0 half.0.1 half.1" {
		t.Errorf("the results are %s", text)
	}
	for _, op := range got.Ops {
		if op.Depth == 0 && !slices.Contains(af.Body.Ops, op.Op) {
			t.Errorf("%s was timed, which is no op of the function", op.Op.Name)
		}
	}
	if testing.Short() {
		return
	}
	needEmulator(t)
	device, err := Run(t.Context(), Job{Program: a, Module: am, Fn: af, Seed: 5, Device: "emulator"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	same, err := Run(t.Context(), Job{Program: b, Module: bm, Fn: bf, Seed: 5, Device: "emulator"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(device.Kernels) != len(same.Kernels) || device.Peak != same.Peak {
		t.Errorf("%d kernels and %d B for tuples, %d and %d B for their members", len(device.Kernels), device.Peak, len(same.Kernels), same.Peak)
	}
	for i, o := range device.Outputs {
		if diff := tensor.MaxDiff(o.Tensor, same.Outputs[i].Tensor); diff != 0 || o.Name != names[i] {
			t.Errorf("%s of the device, here called %s, differs by %g", o.Name, names[i], diff)
		}
	}
}
