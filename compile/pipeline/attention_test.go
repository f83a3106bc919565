package pipeline_test

import (
	"os"
	"strings"
	"testing"

	"dmir/analysis/cost"
	"dmir/analysis/machine"
	"dmir/analysis/program"
	"dmir/compile/driver"
	"dmir/compile/interp"
	"dmir/compile/pass"
	"dmir/compile/pass/passtest"
	"dmir/compile/pipeline"
	"dmir/compile/tensor"
	"dmir/gpu/device"
	"dmir/gpu/emulator"
	"dmir/syntax/diag"
	"dmir/syntax/source"
	"dmir/testkit/need"
)

// written is an attention as people write it, with a mask of keys, and its
// gradient.
const written = `
!x = tensor<2x20x3x16xE>
!s = tensor<2x3x20x20xE>
!w = tensor<2x3x20x20xf32>
func.func @step(%q: !x, %k: !x, %v: !x, %mask: tensor<2x1x1x20xE>, %dy: !x) -> (!x, !x, !x, !x) {
  %y, %dq, %dk, %dv = dm.grad @f %q, %k, %v, %mask, %dy, wrt = [0, 1, 2], cotangents = 1 : (!x, !x, !x, tensor<2x1x1x20xE>, !x) -> (!x, !x, !x, !x)
  return %y, %dq, %dk, %dv : !x, !x, !x, !x
}
func.func private @f(%q: !x, %k: !x, %v: !x, %mask: tensor<2x1x1x20xE>) -> !x {
  %s = dm.einsum "blhd,bmhd->bhlm" %q, %k : (!x, !x) -> !s
  %c = dm.constant dense<0.25> : tensor<E>
  %s1 = dm.mul %s, %c : (!s, tensor<E>) -> !s
  %s2 = dm.add %s1, %mask : (!s, tensor<2x1x1x20xE>) -> !s
  %s3 = dm.convert %s2 : (!s) -> !w
  %m = dm.reduce max %s3, dims = [3], keep_dims = true : (!w) -> tensor<2x3x20x1xf32>
  %l = dm.sub %s3, %m : (!w, tensor<2x3x20x1xf32>) -> !w
  %e = dm.exp %l : !w
  %n = dm.reduce add %e, dims = [3], keep_dims = true : (!w) -> tensor<2x3x20x1xf32>
  %p = dm.div %e, %n : (!w, tensor<2x3x20x1xf32>) -> !w
  %p1 = dm.convert %p : (!w) -> !s
  %y = dm.einsum "bhlm,bmhd->blhd" %p1, %v : (!s, !x) -> !x
  return %y : !x
}
`

// Forward and backward, on the emulated device, what was written out computes what
// the reference does, without a matrix of scores.
func TestAttentionOnDevice(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles C++")
	}
	need.OK(t, emulator.Check())
	h200, _ := machine.Lookup("h200")
	for elem, allowed := range map[string]float64{"f16": 0.01, "f32": 1e-4} {
		t.Run(elem, func(t *testing.T) {
			text := strings.NewReplacer("xE>", "x"+elem+">", "<E>", "<"+elem+">").Replace(written)
			p := program.Load(source.New("attention.dmir", text), program.Options{})
			for _, d := range p.Diags {
				if d.Severity == diag.Error {
					t.Fatal(d.Message)
				}
			}
			m, fn, err := driver.Pick(p, "step")
			if err != nil {
				t.Fatal(err)
			}
			want, err := driver.Run(t.Context(), driver.Job{Program: p, Module: m, Fn: fn, Seed: 7, Device: "reference"}, nil)
			if err != nil {
				t.Fatal(err)
			}
			args, err := interp.Inputs(t.Context(), fn, nil, 7, nil)
			if err != nil {
				t.Fatal(err)
			}
			built, err := driver.Build(t.Context(), m, fn, driver.BuildOptions{Machine: h200})
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(built.Source, "dm::attention_grad") {
				t.Error("no kernel is that of an attention's gradient")
			}
			d, _, err := driver.Choose("emulator")
			if err != nil {
				t.Fatal(err)
			}
			got, err := driver.RunArtifact(t.Context(), d, built, args, device.Options{})
			if err != nil {
				t.Fatal(err)
			}
			for i, w := range want.Outputs {
				if diff := tensor.MaxDiff(got.Outputs[i].Tensor, w.Tensor); !(diff <= allowed) {
					t.Errorf("%s differs from the reference by %g", w.Name, diff)
				}
			}
		})
	}
}

// What the published encoder layer's training step moves, fused, with its
// attention written out and as one op.
func TestAttentionOfEncoder(t *testing.T) {
	text, err := os.ReadFile("../../examples/bert_encoder_train.dmir")
	if err != nil {
		t.Fatal(err)
	}
	moved := func(skip string) (bytes int64, us float64) {
		u := passtest.Unit(t, string(text), "train", nil)
		var passes []pass.Pass
		for _, p := range pipeline.Until(nil, "fuse") {
			if p.Name != skip {
				passes = append(passes, p)
			}
		}
		if err := pass.Run(u, passes, nil); err != nil {
			t.Fatal(err)
		}
		f := cost.Function(u.Func, u.Module, nil)
		n, ok := f.Moved().Int()
		if !ok {
			t.Fatal("a formula")
		}
		return n, f.Time(u.Machine).Ns / 1e3
	}
	before, slow := moved("attention")
	after, fast := moved("")
	t.Logf("fused, the step moves %d B in %.1f µs with its attention written out, %d B in %.1f µs as one op", before, slow, after, fast)
	if after*3 > before*2 || fast >= slow {
		t.Errorf("%d B less are moved, in %.1f µs less; a third is the scores'", before-after, slow-fast)
	}
}
