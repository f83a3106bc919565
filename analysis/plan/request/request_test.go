package request_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"dmir/analysis/config"
	"dmir/analysis/cost"
	"dmir/analysis/machine"
	"dmir/analysis/plan"
	"dmir/analysis/plan/request"
	"dmir/analysis/program"
	"dmir/dialect/ir"
	"dmir/syntax/source"
)

const (
	forward = `func.func NAME(%x: tensor<8x4xf32>, %w: tensor<4x4xf32>) -> tensor<f32> {
  %y = dm.matmul %x, %w : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %l = dm.reduce add %y : (tensor<8x4xf32>) -> tensor<f32>
  return %l : tensor<f32>
}
`
	training = `func.func NAME(%x: tensor<8x4xf32>, %w: tensor<4x4xf32>) -> (tensor<f32>, tensor<4x4xf32> {dm.state = "w"}) {
  %l, %d = dm.grad @loss %x, %w, wrt = [1] : (tensor<8x4xf32>, tensor<4x4xf32>) -> (tensor<f32>, tensor<4x4xf32>)
  %n = dm.sgd %w, %d, lr = 0.1 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %l, %n : tensor<f32>, tensor<4x4xf32>
}
`
)

func load(t *testing.T, text, toml, target string) *program.Program {
	t.Helper()
	conf, diags := config.Parse(source.New("dmir.toml", toml))
	m, ok := machine.Lookup(target)
	if len(diags) > 0 || !ok {
		t.Fatal(diags, target)
	}
	p := program.Load(source.New("f.dmir", text), program.Options{Config: conf, Target: m})
	if p.HasErrors() {
		t.Fatalf("%v", p.Diags)
	}
	return p
}

func named(text, name string) string { return strings.ReplaceAll(text, "NAME", name) }

func TestStep(t *testing.T) {
	loss := named(forward, "private @loss")
	for _, c := range []struct{ name, text, fn, want string }{
		{"the only step", loss + named(training, "@step") + named(forward, "@other"), "", "step"},
		{"by name", loss + named(training, "@step") + named(forward, "@other"), "@other", "other"},
		{"main of several", loss + named(training, "@step") + named(training, "@main"), "", "main"},
		{"several", loss + named(training, "@a") + named(training, "@b"), "", "several functions are training steps: @a, @b"},
		{"none, but one is public", loss + named(forward, "@f"), "", "f"},
		{"none", named(forward, "@f") + named(forward, "@g"), "", "no function is a training step: @f, @g"},
		{"no such name", named(forward, "@f"), "g", "no function @g; there are @f"},
		{"nothing", "", "", "the file has no function with a body"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, fn, err := request.Step(load(t, c.text, "", "h200"), c.fn)
			got := ""
			if err != nil {
				got = err.Error()
			} else {
				got = fn.Name
			}
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestNew(t *testing.T) {
	step := named(forward, "private @loss") + named(training, "@step")
	meshed := "dm.mesh @pod {data = 2, tensor = 2}\n" + step
	l40s, _ := machine.Lookup("l40s")
	const toml = "[plan]\ndevices = 16\ntarget = \"dgx-a100\"\nmemory = \"30 GB\"\n"
	for _, c := range []struct {
		name, text, toml, target string
		asked                    request.Asked
		devices                  int
		on                       string
		memory                   int64
		code                     string
	}{
		{"asked", step, toml, "h200", request.Asked{Devices: 4, Memory: 5}, 4, "dgx-a100", 5, ""},
		{"dmir.toml", step, toml, "h200", request.Asked{}, 16, "dgx-a100", 30e9, ""},
		{"the settings before dmir.toml", step, toml, "h200", request.Asked{Otherwise: 2}, 2, "dgx-a100", 30e9, ""},
		{"the mesh before both", meshed, toml, "h200", request.Asked{Otherwise: 2}, 4, "dgx-a100", 30e9, ""},
		{"a cluster of the target", meshed, "", "h100", request.Asked{}, 4, "dgx-h100", 0, ""},
		{"the target is a cluster", meshed, "", "gb200-nvl72", request.Asked{}, 4, "gb200-nvl72", 0, ""},
		{"no cluster of the target", meshed, "", "rtx4090", request.Asked{}, 4, "rtx4090", 0, plan.CodeLinks},
		{"a machine that is no cluster", meshed, "", "h100", request.Asked{Machine: l40s}, 4, "l40s", 0, plan.CodeLinks},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := request.New(load(t, c.text, c.toml, c.target), c.asked)
			var e *plan.Error
			if code := ""; errors.As(err, &e) {
				if code = e.Code; code != c.code {
					t.Fatalf("%v", err)
				}
			} else if err != nil || c.code != "" {
				t.Fatalf("%v", err)
			}
			if o := r.Options; o.Devices != c.devices || o.Machine.Name != c.on || o.Memory != c.memory {
				t.Errorf("%d × %s of %d bytes", o.Devices, o.Machine.Name, o.Memory)
			}
			if d, ok := r.Error(err); ok && (d.Span.Len() == 0 || d.Code != c.code || d.Help == "") {
				t.Errorf("%+v", d)
			}
		})
	}
	if _, err := request.New(load(t, step, "", "h200"), request.Asked{}); !errors.Is(err, request.ErrDevices) {
		t.Errorf("for no number of devices: %v", err)
	}
}

func TestParseMemory(t *testing.T) {
	if n, err := request.ParseMemory("70 GB"); n != 70e9 || err != nil {
		t.Errorf("%d %v", n, err)
	}
	for _, bad := range []string{"", "-1 GB", "0 B", "70 GHz"} {
		if n, err := request.ParseMemory(bad); err == nil {
			t.Errorf("%q is %d", bad, n)
		}
	}
}

// Figures of an imported program, as one traced from JAX, are those of the model, and the reason names what makes a text that is compiled.
func TestImportedIsNotPriced(t *testing.T) {
	const text = `func.func public @main(%arg0: tensor<64x64xf32>, %arg1: tensor<512x64xf32>) -> tensor<512x64xf32> {
  %0 = stablehlo.dot_general %arg1, %arg0, contracting_dims = [1] x [0] : (tensor<512x64xf32>, tensor<64x64xf32>) -> tensor<512x64xf32>
  return %0 : tensor<512x64xf32>
}
`
	p := load(t, text, "", "dgx-h100")
	p.Compiled = func(context.Context, *program.Program, *ir.Func, *machine.Machine) (cost.Figures, error) {
		t.Error("a text in another format was priced")
		return cost.Figures{}, nil
	}
	r, err := request.New(p, request.Asked{Devices: 2})
	if err != nil {
		t.Fatal(err)
	}
	found, err := r.Search(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if want := "dmir import"; !strings.Contains(found.Modelled, want) {
		t.Errorf("figures are the model's since %q, want %q", found.Modelled, want)
	}
}
