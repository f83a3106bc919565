package driver

import (
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"dmir/analysis/program"
	"dmir/compile/interp"
	"dmir/compile/tensor"
	"dmir/dialect/op"
)

// training is the job of the example that trains, on a device, with its arguments
// of the first step.
func training(t *testing.T, dev string) (Job, []*tensor.Tensor) {
	t.Helper()
	text, err := os.ReadFile("../../examples/transformer_train.dmir")
	if err != nil {
		t.Fatal(err)
	}
	return job(t, loaded(t, "transformer_train.dmir", string(text)), dev)
}

func job(t *testing.T, p *program.Program, dev string) (Job, []*tensor.Tensor) {
	t.Helper()
	m, fn, err := Pick(p, "")
	if err != nil {
		t.Fatal(err)
	}
	args, err := interp.Inputs(t.Context(), fn, nil, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	return Job{Program: p, Module: m, Fn: fn, Device: dev}, args
}

// steps makes n steps from args on and returns the losses and the state after them.
func steps(t *testing.T, j Job, args []*tensor.Tensor, n int) (losses []float64, state []Output) {
	t.Helper()
	s, err := Open(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for range n {
		outs, err := s.Step(t.Context(), args)
		if err != nil {
			t.Fatal(err)
		}
		losses = append(losses, outs[0].Tensor.Float(0))
		args = make([]*tensor.Tensor, len(args))
	}
	if state, err = s.Current(t.Context()); err != nil {
		t.Fatal(err)
	}
	return losses, state
}

// next are the arguments after a state.
func next(j Job, s []Output, args []*tensor.Tensor) []*tensor.Tensor {
	args = slices.Clone(args)
	for i := range s { // the first result is the loss, the others are the arguments after the first
		args[i+1] = s[i].Tensor
	}
	return args
}

// The example learns, and goes on from its state in the same bits.
func TestTraining(t *testing.T) {
	j, args := training(t, "reference")
	losses, whole := steps(t, j, args, 40)
	if losses[0] < 2 || losses[39] > losses[0]/2 {
		t.Errorf("the loss goes from %g to %g", losses[0], losses[39])
	}
	_, half := steps(t, j, args, 17)
	_, rest := steps(t, j, next(j, half, args), 23)
	same(t, whole, rest)
}

func TestTrainingOnEmulator(t *testing.T) {
	t.Parallel()
	needEmulator(t)
	j, args := training(t, "reference")
	want, _ := steps(t, j, args, 2)
	j.Device = "emulator"
	got, whole := steps(t, j, args, 2)
	for i := range want {
		if math.Abs(got[i]-want[i]) > 1e-3 {
			t.Errorf("step %d: the loss is %g on the emulator, %g in the reference executor", i+1, got[i], want[i])
		}
	}
	_, half := steps(t, j, args, 1)
	_, rest := steps(t, j, next(j, half, args), 1)
	same(t, whole, rest)
}

func same(t *testing.T, a, b []Output) {
	t.Helper()
	if len(a) != 28 || len(b) != len(a) {
		t.Fatalf("%d and %d values of state, want 28", len(a), len(b))
	}
	for i := range a {
		if !slices.Equal(tensor.Pack(a[i].Tensor), tensor.Pack(b[i].Tensor)) {
			t.Errorf("%s has other bits", a[i].Name)
		}
	}
}

// Which results are written over the arguments that they become, and that the
// steps are right where none is.
func TestStateInPlace(t *testing.T) {
	const head = "func.func @f(%w: tensor<8x8xf32>, %v: tensor<8x8xf32>, %x: tensor<8x8xf32>, %i: tensor<i32>)"
	for _, c := range []struct {
		name, text string
		in         string // the state that is in place
	}{
		{"an optimizer", ` -> (tensor<8x8xf32> {dm.state = "w"}, tensor<8x8xf32> {dm.state = "v"}) {
  %g = dm.tanh %x : tensor<8x8xf32>
  %w1, %v1 = dm.momentum %w, %g, %v, lr = 0.1 : (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>)
  return %w1, %v1 : tensor<8x8xf32>, tensor<8x8xf32>
}`, "w v"},
		{"an optimizer after a product, in one kernel", ` -> (tensor<8x8xf32> {dm.state = "w"}, tensor<8x8xf32> {dm.state = "v"}) {
  %y = dm.matmul %x, %w : tensor<8x8xf32>
  %h = dm.tanh %y : tensor<8x8xf32>
  %g = dm.matmul %x, %h, transpose_a = true : tensor<8x8xf32>
  %w1, %v1 = dm.momentum %w, %g, %v, lr = 0.1 : (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>)
  return %w1, %v1 : tensor<8x8xf32>, tensor<8x8xf32>
}`, "w v"},
		{"a product of the state itself", ` -> (tensor<8x8xf32> {dm.state = "w"}) {
  %g = dm.matmul %x, %w : tensor<8x8xf32>
  %w1 = dm.sub %w, %g : tensor<8x8xf32>
  return %w1 : tensor<8x8xf32>
}`, ""},
		{"another reader, later in the text", ` -> (tensor<8x8xf32> {dm.state = "w"}, tensor<8xf32>) {
  %w1 = dm.add %w, %x : tensor<8x8xf32>
  %p = dm.matmul %x, %w : tensor<8x8xf32>
  %q = dm.reduce max %p, dims = [1] : (tensor<8x8xf32>) -> tensor<8xf32>
  return %w1, %q : tensor<8x8xf32>, tensor<8xf32>
}`, "w"},
		{"the old value is a result too", ` -> (tensor<8x8xf32> {dm.state = "w"}, tensor<8x8xf32>) {
  %w1 = dm.add %w, %x : tensor<8x8xf32>
  return %w1, %w : tensor<8x8xf32>, tensor<8x8xf32>
}`, ""},
		{"old and new are compared", ` -> (tensor<8x8xf32> {dm.state = "w"}, tensor<8x8xf32>) {
  %w1 = dm.add %w, %x : tensor<8x8xf32>
  %p = dm.matmul %w1, %w1 : tensor<8x8xf32>
  %q = dm.matmul %p, %w : tensor<8x8xf32>
  return %w1, %q : tensor<8x8xf32>, tensor<8x8xf32>
}`, ""},
		{"two that change places", ` -> (tensor<8x8xf32> {dm.state = "v"}, tensor<8x8xf32> {dm.state = "w"}) {
  return %w, %v : tensor<8x8xf32>, tensor<8x8xf32>
}`, ""},
		{"a transpose of the state", ` -> (tensor<8x8xf32> {dm.state = "w"}) {
  %t = dm.transpose %w, dims = [1, 0] : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %w1 = dm.add %w, %t : tensor<8x8xf32>
  return %w1 : tensor<8x8xf32>
}`, ""},
		{"a cache that grows by a row", ` -> (tensor<8x8xf32> {dm.state = "w"}, tensor<i32> {dm.state = "i"}) {
  %row = dm.slice %x, start_indices = [0, 0], limit_indices = [1, 8] : (tensor<8x8xf32>) -> tensor<1x8xf32>
  %z = dm.constant dense<0> : tensor<i32>
  %w1 = dm.dynamic_update_slice %w, %row, %i, %z : (tensor<8x8xf32>, tensor<1x8xf32>, tensor<i32>, tensor<i32>) -> tensor<8x8xf32>
  %one = dm.constant dense<1> : tensor<i32>
  %i1 = dm.add %i, %one : tensor<i32>
  return %w1, %i1 : tensor<8x8xf32>, tensor<i32>
}`, "w"},
		{"a value that does not read the state", ` -> (tensor<8x8xf32> {dm.state = "w"}, tensor<8x8xf32>) {
  %w1 = dm.tanh %x : tensor<8x8xf32>
  %y = dm.matmul %w, %x : tensor<8x8xf32>
  return %w1, %y : tensor<8x8xf32>, tensor<8x8xf32>
}`, "w"},
		{"a product of other values", ` -> (tensor<8x8xf32> {dm.state = "w"}, tensor<8xf32>) {
  %p = dm.matmul %x, %v : tensor<8x8xf32>
  %w1 = dm.gelu %p : tensor<8x8xf32>
  %q = dm.reduce max %w, dims = [1] : (tensor<8x8xf32>) -> tensor<8xf32>
  return %w1, %q : tensor<8x8xf32>, tensor<8xf32>
}`, "w"},
		{"two that are normalized into each other", ` -> (tensor<8x8xf32> {dm.state = "w"}, tensor<8x8xf32> {dm.state = "v"}) {
  %w1 = dm.softmax %v, dim = 1 : tensor<8x8xf32>
  %v1 = dm.softmax %x, dim = 0 : tensor<8x8xf32>
  return %w1, %v1 : tensor<8x8xf32>, tensor<8x8xf32>
}`, "w v"},
		{"a new value that an op reads beside the old one", ` -> (tensor<8x8xf32> {dm.state = "w"}, tensor<8x8xf32>) {
  %w1 = dm.softmax %x, dim = 1 : tensor<8x8xf32>
  %p = dm.matmul %w1, %w : tensor<8x8xf32>
  return %w1, %p : tensor<8x8xf32>, tensor<8x8xf32>
}`, ""},
		{"parts put together", ` -> (tensor<8x8xf32> {dm.state = "w"}, tensor<8x8xf32>) {
  %l = dm.slice %x, start_indices = [0, 0], limit_indices = [8, 4] : (tensor<8x8xf32>) -> tensor<8x4xf32>
  %p = dm.matmul %v, %l : (tensor<8x8xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %w1 = dm.concatenate %l, %p, dim = 1 : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x8xf32>
  %y = dm.tanh %w : tensor<8x8xf32>
  return %w1, %y : tensor<8x8xf32>, tensor<8x8xf32>
}`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			j, args := job(t, loaded(t, "f.dmir", head+c.text), "reference")
			p, err := Build(t.Context(), j.Module, j.Fn, BuildOptions{Machine: j.Program.Target})
			if err != nil {
				t.Fatal(err)
			}
			if err := p.Check(); err != nil {
				t.Fatal(err)
			}
			var in []string
			for i, n := range op.State(j.Fn.Op) {
				if n >= 0 && p.Outputs[i] == p.Inputs[n] && p.Buffers[p.Inputs[n]].Kind == "input" {
					in = append(in, j.Fn.Args[n].Name[1:])
				}
			}
			if got := strings.Join(in, " "); got != c.in {
				t.Errorf("in place: %q, want %q", got, c.in)
			}
			needEmulator(t)
			want := threeSteps(t, j, args)
			j.Device = "emulator"
			got := threeSteps(t, j, args)
			for i := range want {
				for k := range want[i].Tensor.Len() {
					a, b := got[i].Tensor.Float(k), want[i].Tensor.Float(k)
					if math.Abs(a-b) > 1e-4*(1+math.Abs(b)) {
						t.Fatalf("%s: element %d is %g, in the reference executor %g", want[i].Name, k, a, b)
					}
				}
			}
		})
	}
}

// threeSteps makes three steps and returns what the last one returned, with the state.
func threeSteps(t *testing.T, j Job, args []*tensor.Tensor) []Output {
	t.Helper()
	s, err := Open(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var outs []Output
	for range 3 {
		if outs, err = s.Step(t.Context(), args); err != nil {
			t.Fatal(err)
		}
		args = make([]*tensor.Tensor, len(args))
	}
	state, err := s.Current(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return append(outs, state...)
}

// A check may be of a result that is state, which stays on the device.
func TestStepsCheckState(t *testing.T) {
	for dev, want := range map[string]float64{"reference": 3, "emulator": 3} {
		if dev == "emulator" && testing.Short() {
			continue
		}
		p := loaded(t, "check.dmir", `func.func @f(%w: tensor<3xf32> {dm.init = 0.0}) -> (tensor<3xf32> {dm.state = "w"}) {
  %one = dm.constant dense<1.0> : tensor<f32>
  %most = dm.constant dense<3.0> : tensor<3xf32>
  %next = dm.add %w, %one : (tensor<3xf32>, tensor<f32>) -> tensor<3xf32>
  %d = dm.min %next, %most : tensor<3xf32>
  check.expect_almost_eq %next, %d : tensor<3xf32>, tensor<3xf32>
  return %next : tensor<3xf32>
}
`)
		j, args := job(t, p, dev)
		s, err := Open(t.Context(), j)
		if err != nil {
			t.Fatalf("%s: %v", dev, err)
		}
		made := 0.0
		for range 5 {
			if _, err = s.Step(t.Context(), args); err != nil {
				break
			}
			made++
			args = make([]*tensor.Tensor, len(args))
		}
		s.Close()
		if made != want || err == nil {
			t.Errorf("%s: the check failed after %g steps with %v, want after %g", dev, made, err, want)
		}
	}
}
