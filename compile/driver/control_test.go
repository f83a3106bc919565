package driver

import (
	"context"
	"errors"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"dmir/compile/planned"
	"dmir/gpu/artifact"
	"dmir/gpu/nvrtc"
	"dmir/gpu/ptx/ptxtest"
)

// controlled are programs with loops and branches: what is easily got wrong
// about values that cross the bounds of a region.
var controlled = map[string]string{
	"none": `func.func @f(%x: tensor<5xf32>) -> (tensor<i64>, tensor<5xf32>) {
  %zero = dm.constant dense<0> : tensor<i64>
  %n, %y = dm.while %zero, %x : (tensor<i64>, tensor<5xf32>) -> (tensor<i64>, tensor<5xf32>) {
  ^bb0(%i: tensor<i64>, %v: tensor<5xf32>):
    %more = dm.compare lt %i, %zero : (tensor<i64>, tensor<i64>) -> tensor<i1>
    dm.yield %more : tensor<i1>
  } do {
  ^bb0(%i: tensor<i64>, %v: tensor<5xf32>):
    %one = dm.constant dense<1> : tensor<i64>
    %next = dm.add %i, %one : tensor<i64>
    %w = dm.exp %v : tensor<5xf32>
    dm.yield %next, %w : tensor<i64>, tensor<5xf32>
  }
  return %n, %y : tensor<i64>, tensor<5xf32>
}`,
	// Carried values change places, one of them seen in another shape, one stays,
	// one becomes what it was not before, one a number.
	"places": `func.func @f(%a: tensor<2x3xf32>, %b: tensor<2x3xf32>, %c: tensor<4xf32>, %d: tensor<4xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) {
  %zero = dm.constant dense<0> : tensor<i64>
  %start = dm.constant dense<2.0> : tensor<f32>
  %n, %p, %q, %r, %s, %e = dm.while %zero, %a, %b, %c, %d, %start, trip_count = 3 : (tensor<i64>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<i64>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) {
  ^bb0(%i: tensor<i64>, %x: tensor<2x3xf32>, %y: tensor<2x3xf32>, %u: tensor<4xf32>, %v: tensor<4xf32>, %k: tensor<f32>):
    %three = dm.constant dense<3> : tensor<i64>
    %more = dm.compare lt %i, %three : (tensor<i64>, tensor<i64>) -> tensor<i1>
    dm.yield %more : tensor<i1>
  } do {
  ^bb0(%i: tensor<i64>, %x: tensor<2x3xf32>, %y: tensor<2x3xf32>, %u: tensor<4xf32>, %v: tensor<4xf32>, %k: tensor<f32>):
    %one = dm.constant dense<1> : tensor<i64>
    %next = dm.add %i, %one : tensor<i64>
    %flat = dm.reshape %x : (tensor<2x3xf32>) -> tensor<6xf32>
    %back = dm.reshape %flat : (tensor<6xf32>) -> tensor<2x3xf32>
    %half = dm.constant dense<0.5> : tensor<f32>
    dm.yield %next, %y, %back, %u, %c, %half : tensor<i64>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>
  }
  return %p, %q, %r, %s, %e : tensor<2x3xf32>, tensor<2x3xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>
}`,
	// A branch in a loop, a loop in the branch, a product with a table from outside.
	"nested": `func.func @f(%x: tensor<4x4xf32>, %w: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<f32>) {
  %zero = dm.constant dense<0> : tensor<i64>
  %table = dm.constant dense<[0.5, -0.25, 0.125, 1.0]> : tensor<4xf32>
  %before = dm.mul %x, %w : tensor<4x4xf32>
  %n, %y = dm.while %zero, %before, trip_count = 4 : (tensor<i64>, tensor<4x4xf32>) -> (tensor<i64>, tensor<4x4xf32>) {
  ^bb0(%i: tensor<i64>, %v: tensor<4x4xf32>):
    %four = dm.constant dense<4> : tensor<i64>
    %more = dm.compare lt %i, %four : (tensor<i64>, tensor<i64>) -> tensor<i1>
    dm.yield %more : tensor<i1>
  } do {
  ^bb0(%i: tensor<i64>, %v: tensor<4x4xf32>):
    %one = dm.constant dense<1> : tensor<i64>
    %two = dm.constant dense<2> : tensor<i64>
    %next = dm.add %i, %one : tensor<i64>
    %early = dm.compare lt %i, %two : (tensor<i64>, tensor<i64>) -> tensor<i1>
    %r = dm.if %early : (tensor<i1>) -> tensor<4x4xf32> {
      %m, %s = dm.while %i, %v : (tensor<i64>, tensor<4x4xf32>) -> (tensor<i64>, tensor<4x4xf32>) {
      ^bb0(%j: tensor<i64>, %t: tensor<4x4xf32>):
        %again = dm.compare lt %j, %two : (tensor<i64>, tensor<i64>) -> tensor<i1>
        dm.yield %again : tensor<i1>
      } do {
      ^bb0(%j: tensor<i64>, %t: tensor<4x4xf32>):
        %up = dm.add %j, %one : tensor<i64>
        %p = dm.einsum "ij,jk->ik" %t, %w : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
        %q = dm.add %p, %table : (tensor<4x4xf32>, tensor<4xf32>) -> tensor<4x4xf32>
        dm.yield %up, %q : tensor<i64>, tensor<4x4xf32>
      }
      dm.yield %s : tensor<4x4xf32>
    } else {
      %e = dm.softmax %v, dim = 1 : tensor<4x4xf32>
      %g = dm.mul %e, %before : tensor<4x4xf32>
      dm.yield %g : tensor<4x4xf32>
    }
    dm.yield %next, %r : tensor<i64>, tensor<4x4xf32>
  }
  %sum = dm.reduce add %y, dims = [0, 1] : (tensor<4x4xf32>) -> tensor<f32>
  return %y, %sum : tensor<4x4xf32>, tensor<f32>
}`,
	// A condition that is an argument, one that a kernel makes, and a branch
	// without a second side; results that are arguments, and one of both.
	"branches": `func.func @f(%x: tensor<6xf32>, %y: tensor<6xf32>) -> (tensor<6xf32>, tensor<6xf32>, tensor<6xf32>) {
  %a = dm.reduce add %x, dims = [0] : (tensor<6xf32>) -> tensor<f32>
  %b = dm.reduce add %y, dims = [0] : (tensor<6xf32>) -> tensor<f32>
  %c = dm.compare lt %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
  %p, %q = dm.if %c : (tensor<i1>) -> (tensor<6xf32>, tensor<6xf32>) {
    %e = dm.exp %x : tensor<6xf32>
    dm.yield %e, %y : tensor<6xf32>, tensor<6xf32>
  } else {
    %s = dm.sub %y, %x : tensor<6xf32>
    dm.yield %x, %s : tensor<6xf32>, tensor<6xf32>
  }
  %r = dm.if %c : (tensor<i1>) -> tensor<6xf32> {
    dm.yield %q : tensor<6xf32>
  } else {
    dm.yield %p : tensor<6xf32>
  }
  return %p, %q, %r : tensor<6xf32>, tensor<6xf32>, tensor<6xf32>
}`,
	// What is carried lies in one order of dimensions, what begins in another.
	"orders": `func.func @f(%x: tensor<3x5xf32>) -> tensor<3x5xf32> {
  %zero = dm.constant dense<0> : tensor<i64>
  %turned = dm.copy %x : (tensor<3x5xf32>) -> tensor<3x5xf32, #dm.at<order = [1, 0]>>
  %n, %y = dm.while %zero, %turned, trip_count = 2 : (tensor<i64>, tensor<3x5xf32, #dm.at<order = [1, 0]>>) -> (tensor<i64>, tensor<3x5xf32>) {
  ^bb0(%i: tensor<i64>, %v: tensor<3x5xf32, #dm.at<order = [1, 0]>>):
    %two = dm.constant dense<2> : tensor<i64>
    %more = dm.compare lt %i, %two : (tensor<i64>, tensor<i64>) -> tensor<i1>
    dm.yield %more : tensor<i1>
  } do {
  ^bb0(%i: tensor<i64>, %v: tensor<3x5xf32, #dm.at<order = [1, 0]>>):
    %one = dm.constant dense<1> : tensor<i64>
    %next = dm.add %i, %one : tensor<i64>
    %w = dm.add %v, %x : (tensor<3x5xf32, #dm.at<order = [1, 0]>>, tensor<3x5xf32>) -> tensor<3x5xf32>
    dm.yield %next, %w : tensor<i64>, tensor<3x5xf32>
  }
  return %y : tensor<3x5xf32>
}`,
}

// iteration is the example of a loop without what checks itself, which the
// reference alone runs.
func iteration(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../examples/power_iteration.dmir")
	if err != nil {
		t.Fatal(err)
	}
	var kept []string
	for line := range strings.Lines(string(text)) {
		if !strings.Contains(line, "check.") {
			kept = append(kept, line)
		}
	}
	return strings.NewReplacer(
		"func.func @main()", "func.func @main() -> (tensor<f64>, !vector, tensor<i64>)",
		"  return\n", "  return %lambda, %v, %turns : tensor<f64>, !vector, tensor<i64>\n",
	).Replace(strings.Join(kept, ""))
}

// Loops and branches compute on the device what they do in the reference, and
// each step moves in each run what the cost model predicts.
func TestControl(t *testing.T) {
	t.Parallel()
	needEmulator(t)
	texts := map[string]string{"iteration": iteration(t)}
	for name, text := range controlled {
		texts[name] = text
	}
	texts["in place"] = strings.Replace(controlled["nested"], "(tensor<4x4xf32>, tensor<f32>) {", "(tensor<4x4xf32>, tensor<f32>) attributes {dm.in_place} {", 1)
	for name, text := range texts {
		t.Run(name, func(t *testing.T) {
			built, got := agree(t, loaded(t, name+".dmir", text), "")
			if err := built.Check(); err != nil {
				t.Error(err)
			}
			for i, k := range got.Kernels {
				s := &built.Steps[i]
				if s.Differs == "" && s.ReadBytes+s.WrittenBytes > 0 && (k.CountedReadBytes != s.ReadBytes*k.Runs || k.CountedWrittenBytes != s.WrittenBytes*k.Runs) {
					t.Errorf("%s: %d bytes read and %d written in %d runs; the model predicts %d and %d for each", s.Name, k.CountedReadBytes, k.CountedWrittenBytes, k.Runs, s.ReadBytes, s.WrittenBytes)
				}
			}
		})
	}
}

// rounds is a program with a loop of five turns that carries a and b, matrices that begin as arguments.
func rounds(body, a, b string) string {
	return `!x = tensor<8x8xf32>
func.func @f(%x: !x, %y: !x, %w: !x) -> (!x, !x) {
  %zero = dm.constant dense<0> : tensor<i64>
  %n, %p, %q = dm.while %zero, %x, %y : (tensor<i64>, !x, !x) -> (tensor<i64>, !x, !x) {
  ^bb0(%i: tensor<i64>, %a: !x, %b: !x):
    %five = dm.constant dense<5> : tensor<i64>
    %more = dm.compare lt %i, %five : (tensor<i64>, tensor<i64>) -> tensor<i1>
    dm.yield %more : tensor<i1>
  } do {
  ^bb0(%i: tensor<i64>, %a: !x, %b: !x):
    %one = dm.constant dense<1> : tensor<i64>
    %next = dm.add %i, %one : tensor<i64>
` + body + `
    dm.yield %next, ` + a + ", " + b + ` : tensor<i64>, !x, !x
  }
  return %p, %q : !x, !x
}
`
}

// What a loop carries is computed in the place of what it was where nothing reads that any more, and the kernel reads each
// element where it writes it, or none; else it is copied there at the end of a round.
func TestCarriedInPlace(t *testing.T) {
	t.Parallel()
	needEmulator(t)
	for _, c := range []struct {
		name, body, a, b string
		copies           int // of a round
	}{
		{"both", "%c = dm.add %a, %b : !x\n%d = dm.sub %a, %b : !x", "%c", "%d", 0},
		{"places", "%c = dm.add %a, %b : !x", "%b", "%c", 3}, // b is put aside
		{"one for two", "%c = dm.add %a, %b : !x", "%c", "%c", 1},
		{"product", "%c = dm.matmul %a, %w : !x", "%c", "%b", 1},
		{"behind a product", "%m = dm.matmul %a, %w : !x\n%c = dm.softmax %m, dim = 1 : !x", "%c", "%b", 0},
		{"beside a row of it", "%s = dm.softmax %a, dim = 1 : !x\n%d = dm.matmul %s, %b : !x\n%e = dm.softmax %d, dim = 1 : !x\n%c = dm.tanh %a : !x", "%c", "%e", 1}, // one kernel has both
		{"reversed", "%c = dm.reverse %a, dims = [0] : !x", "%c", "%b", 1},
		{"row", "%c = dm.softmax %a, dim = 1 : !x", "%c", "%b", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			built, _ := agree(t, loaded(t, c.name+".dmir", rounds(c.body, c.a, c.b)), "")
			if err := built.Check(); err != nil {
				t.Error(err)
			}
			copies := 0
			for i, n := range built.Times() {
				if built.Steps[i].Kind == artifact.StepCopy && n == 5 {
					copies++
				}
			}
			if copies != c.copies {
				t.Errorf("%d copies in a round, want %d", copies, c.copies)
			}
		})
	}
}

// The steps of a loop count once for each iteration of its trip count.
func TestControlPrediction(t *testing.T) {
	p := loaded(t, "iteration.dmir", iteration(t))
	m, fn, err := Pick(p, "")
	if err != nil {
		t.Fatal(err)
	}
	built, err := Build(t.Context(), m, fn, BuildOptions{Machine: machineFor("sm_90a")})
	if err != nil {
		t.Fatal(err)
	}
	once := 0.0
	most := int64(0)
	for i, n := range built.Times() {
		once += built.Steps[i].TimeNs
		most = max(most, n)
	}
	if most != 100 || built.Predicted() < 40*once {
		t.Errorf("the body of 100 rounds counts %d times; %g ns for a run, %g ns for each step once", most, built.Predicted(), once)
	}
}

// What a program with loops costs as it is compiled is the time of its steps: nothing asks for the condition of a counted loop.
func TestLoopsCostTheirSteps(t *testing.T) {
	lstm, err := os.ReadFile("../../examples/lstm_train.dmir")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"iteration": iteration(t), "lstm": string(lstm), "both": rounds("%c = dm.add %a, %b : !x\n%d = dm.sub %a, %b : !x", "%c", "%d"), "places": rounds("%c = dm.add %a, %b : !x", "%b", "%c")} {
		p := loaded(t, name+".dmir", text)
		m, fn, err := Pick(p, "")
		if err != nil {
			t.Fatal(err)
		}
		on := machineFor("sm_90a")
		built, err := Build(t.Context(), m, fn, BuildOptions{Machine: on, Arch: "sm_90a"})
		if err != nil {
			t.Fatal(err)
		}
		f, err := planned.For(t.Context(), p, fn, on, "sm_90a")
		if err != nil {
			t.Fatal(err)
		}
		if got, want := f.Time(on).Ns, built.Predicted(); math.Abs(got-want) > 1e-3*want {
			t.Errorf("%s costs %g ns, its steps take %g", name, got, want)
		}
	}
}

// Loops whose trip count is known, scans and their gradients among them, run without
// a predicate that the host reads back.
func TestNothingReadBack(t *testing.T) {
	lstm, err := os.ReadFile("../../examples/lstm_train.dmir")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]struct {
		text    string
		repeats int
	}{"power iteration": {iteration(t), 1}, "lstm": {string(lstm), 2}} {
		m, fn, err := Pick(loaded(t, name, want.text), "")
		if err != nil {
			t.Fatal(err)
		}
		built, err := Build(t.Context(), m, fn, BuildOptions{Machine: machineFor("sm_90a")})
		if err != nil {
			t.Fatal(err)
		}
		repeats := 0
		for i := range built.Steps {
			if built.Steps[i].Kind == artifact.StepRepeat {
				repeats++
			}
		}
		if err := built.Check(); err != nil || built.ReadsBack() || repeats != want.repeats {
			t.Errorf("%s: it repeats %d times, and reads back: %t; %v", name, repeats, built.ReadsBack(), err)
		}
	}
}

// A loop that never ends does with its context.
func TestEndlessLoop(t *testing.T) {
	t.Parallel()
	needEmulator(t)
	p := loaded(t, "endless.dmir", strings.Replace(iteration(t), "dm.compare lt %i, %limit", "dm.compare ne %i, %limit", 1))
	p = loaded(t, "endless.dmir", strings.Replace(p.Src.Text(), "dense<1> : tensor<i64>", "dense<0> : tensor<i64>", 1))
	m, fn, err := Pick(p, "")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
	defer cancel()
	if _, err := Run(ctx, Job{Program: p, Module: m, Fn: fn, Device: "emulator"}, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("it ends with %v", err)
	}
}

// Kernels of regions compile for every architecture, and the exported file too.
func TestControlArchitectures(t *testing.T) {
	t.Parallel()
	needNVRTC(t)
	p := loaded(t, "nested.dmir", controlled["nested"])
	m, fn, err := Pick(p, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, arch := range archs {
		built, err := Build(t.Context(), m, fn, BuildOptions{Machine: machineFor(arch), Arch: arch})
		if err != nil {
			t.Fatal(err)
		}
		if err := built.Check(); err != nil {
			t.Fatal(err)
		}
		if res, err := nvrtc.CompileProgram(t.Context(), built, arch, nvrtc.Options{}); err != nil {
			t.Errorf("%s: %v", arch, err)
		} else {
			ptxtest.Check(t, built, res)
		}
		loops := 0
		for i := range built.Steps {
			if k := built.Steps[i].Kind; k == artifact.StepLoop || k == artifact.StepRepeat {
				loops++
			}
		}
		if loops != 2 {
			t.Errorf("%s: %d loops", arch, loops)
		}
	}
}
