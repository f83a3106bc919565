package driver

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dmir/analysis/program"
	"dmir/compile/interp"
	"dmir/compile/tensor"
	"dmir/dialect/ir"
	"dmir/dialect/types"
	"dmir/gpu/device"
	"dmir/gpu/native"
	"dmir/syntax/source"
	"dmir/testkit/need"
)

func load(t *testing.T, text string) *program.Program {
	t.Helper()
	p := program.Load(source.New("f.dmir", text), program.Options{})
	for _, d := range p.Diags {
		t.Fatal(d.Message)
	}
	return p
}

func body(head string) string {
	return head + "(%x: tensor<2xf32>) -> tensor<2xf32> {\n  return %x : tensor<2xf32>\n}\n"
}

func TestPick(t *testing.T) {
	f, g, private, declared := body("func.func @f"), body("func.func @g"), body("func.func private @p"), "func.func private @d(tensor<2xf32>)\n"
	for name, c := range map[string]struct {
		text, name string
		want       string // the function, or the error
	}{
		"by name":           {f + g, "g", "@g"},
		"with the sign":     {f + g, "@g", "@g"},
		"main":              {f + body("func.func @main"), "", "@main"},
		"the only one":      {f, "", "@f"},
		"the public one":    {private + f, "", "@f"},
		"private by name":   {private + f, "p", "@p"},
		"several":           {f + private + g, "", "several functions are public: @f, @g"},
		"all private":       {private, "", "every function is private: @p"},
		"unknown":           {f, "h", "no function @h; there are @f"},
		"only declared":     {declared + f, "d", "no function @d; there are @f"},
		"nothing to run":    {declared, "", "the file has no function with a body"},
		"in another module": {"module {\n" + f + "}\n// -----\nmodule {\n" + g + "}\n", "g", "@g"},
	} {
		t.Run(name, func(t *testing.T) {
			m, fn, err := Pick(load(t, c.text), c.name)
			var got string
			if err != nil {
				got = err.Error()
			} else if got = "@" + fn.Name; m.Func(fn.Name) != fn {
				t.Error("the function is not of the module")
			}
			if got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestRun(t *testing.T) {
	p := load(t, `func.func @f(%x: tensor<2xf32>, %y: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) {
  %s = dm.add %x, %y : tensor<2xf32>
  return %s, %s, %y : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
}`)
	m, fn, err := Pick(p, "")
	if err != nil {
		t.Fatal(err)
	}
	job := Job{Program: p, Module: m, Fn: fn, Seed: 3, Device: "reference", Inputs: map[string]*tensor.Tensor{
		"x": tensor.FromFloats(types.F32, []int{2}, []float64{1, 2}),
		"y": tensor.FromFloats(types.F32, []int{2}, []float64{10, 20}),
	}}
	steps := 0
	res, err := Run(t.Context(), job, func(done, total int, _ *ir.Op) { steps++ })
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, o := range res.Outputs {
		names = append(names, o.Name+": "+o.Summary())
	}
	if got, want := strings.Join(names, "; "), "s: min 11, mean 16.5, max 22; result1: min 11, mean 16.5, max 22; y: min 10, mean 15, max 20"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if res.Device != "reference" || len(res.Ops) != 1 || steps == 0 {
		t.Errorf("got %+v after %d steps", res, steps)
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Run(ctx, job, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled run ends with %v", err)
	}
	job.Device = "npu"
	if _, err := Run(t.Context(), job, nil); err == nil || !strings.Contains(err.Error(), "the devices are cuda") {
		t.Errorf("got %v", err)
	}
	job.Device, job.Inputs["z"] = "", job.Inputs["x"]
	var e *interp.Error
	if _, err := Run(t.Context(), job, nil); !errors.As(err, &e) || e.Code != "DM702" {
		t.Errorf("got %v", err)
	}
}

// "auto" takes the processor for what runs often where clang is there, and the reference executor where
// it is not or fails.
func TestProcessor(t *testing.T) {
	_, err := native.Find(t.Context())
	need.OK(t, err)
	if device.Default() != nil {
		need.OK(t, errors.New("auto takes the GPU of this machine"))
	}
	p := load(t, `func.func @f(%x: tensor<2xf32>) -> tensor<2xf32> {
  %s = dm.add %x, %x : tensor<2xf32>
  return %s : tensor<2xf32>
}`)
	m, fn, err := Pick(p, "")
	if err != nil {
		t.Fatal(err)
	}
	failing := filepath.Join(t.TempDir(), "clang")
	script := "#!/bin/sh\n[ \"$1\" = --version ] && echo clang version 15.0.0 && exit\necho out of paper >&2\nexit 1\n"
	if err := os.WriteFile(failing, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ clang, device, why string }{
		{"", "cpu", "this machine's CPU, compiled by clang"},
		{failing + "-none", "reference", "which is not a program"},
		{failing, "reference", "out of paper"},
	} {
		t.Setenv("DMIR_CLANG", c.clang)
		t.Setenv("DMIR_CACHE", t.TempDir())
		res, err := Run(t.Context(), Job{Program: p, Module: m, Fn: fn, Steps: 1 << 20}, nil)
		if err != nil {
			t.Errorf("clang %q: %v", c.clang, err)
			continue
		}
		if res.Device != c.device || !strings.Contains(res.Why, c.why) {
			t.Errorf("clang %q: on %s (%s), want %s (%s)", c.clang, res.Device, res.Why, c.device, c.why)
		}
	}
}

func TestSummary(t *testing.T) {
	o := Output{Tensor: tensor.FromFloats(types.F32, []int{4}, []float64{1, 3, math.NaN(), math.Inf(-1)})}
	if got, want := o.Summary(), "min 1, mean 2, max 3, 1 NaN, 1 infinite"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
