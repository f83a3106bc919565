package driver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dmir/analysis/program"
	"dmir/compile/tensor"
	"dmir/dialect/ir"
	"dmir/dialect/mesh"
	"dmir/dialect/op"
	"dmir/dialect/types"
	"dmir/gpu/artifact"
	"dmir/gpu/collective"
	"dmir/gpu/device"
	"dmir/syntax/source"
	"dmir/testkit/need"
)

// teamJob is the function called name of a text without errors.
func teamJob(t *testing.T, text, name string) Job {
	t.Helper()
	p := program.Load(source.New("in.dmir", text), program.Options{Target: machineFor("")})
	m, fn, err := Pick(p, name)
	if err != nil {
		t.Fatal(err)
	}
	if errs := p.ErrorsOf(m, fn); len(errs) > 0 {
		t.Fatal(errs[0].Message)
	}
	return Job{Program: p, Module: m, Fn: fn, Seed: 7}
}

// hasDevice skips the test where a device is missing that a machine may lack.
func hasDevice(t *testing.T, name string) {
	t.Helper()
	d, _, err := device.Find(name)
	if err == nil && name == "cpu" {
		_, _, err = device.FindAmong([]device.Kind{{Name: "cpu", Find: func() ([]device.Device, error) { return []device.Device{d}, nil }}}, "cpu", false)
	}
	need.OK(t, err)
}

// collectives has every collective in each form that the pass of that name arranges: along
// inner dimensions, on axes in another order than the mesh's, on parts of one, of halves, of
// elements of which two share a byte, in place, and in a loop and a branch that depend on data.
const collectives = `dm.mesh @pod {x = 2, y = 2}
func.func @f(%a: tensor<4x4x3xf32>, %h: tensor<4x6xf16>, %n: tensor<3x5xi4>, %b: tensor<8xi1>, %d: tensor<4x4xf64>) -> (tensor<4x16x3xf32>, tensor<4x1x3xf32>, tensor<4x16x3xf32>, tensor<4x4x3xf32>, tensor<4x6xf16>, tensor<6x5xi4>, tensor<8xi1>, tensor<4x4xf64>, tensor<4x4x3xf32>, tensor<i64>, tensor<4x4xf64>, tensor<4x4xf64>, tensor<4x4x3xf32>, tensor<4x4xf64>) attributes {dm.mesh = @pod} {
  %0 = dm.all_gather %a, dim = 1, axes = ["y", "x"] : (tensor<4x4x3xf32>) -> tensor<4x16x3xf32>
  %1 = dm.reduce_scatter add %a, dim = 1, axes = ["y", "x"] : (tensor<4x4x3xf32>) -> tensor<4x1x3xf32>
  %2 = dm.all_to_all %0, split = 1, concat = 0, axes = ["x"] : (tensor<4x16x3xf32>) -> tensor<8x8x3xf32>
  %3 = dm.all_to_all %2, split = 0, concat = 1, axes = ["x"] : (tensor<8x8x3xf32>) -> tensor<4x16x3xf32>
  %4 = dm.collective_permute %a, pairs = [[0, 1], [1, 3], [2, 2]], axes = ["y", "x"] : tensor<4x4x3xf32>
  %5 = dm.all_reduce add %h, axes = ["x", "y"] : tensor<4x6xf16>
  %6 = dm.all_gather %n, dim = 0, axes = ["y"] : (tensor<3x5xi4>) -> tensor<6x5xi4>
  %7 = dm.all_reduce or %b, axes = ["x"] : tensor<8xi1>
  %8 = dm.relu %d : tensor<4x4xf64>
  %9 = dm.all_reduce max %8, axes = ["y"] : tensor<4x4xf64>
  dm.send %a, from = 1, to = 0, channel = 3, axes = ["x"] : (tensor<4x4x3xf32>) -> ()
  %10 = dm.recv from = 1, to = 0, channel = 3, axes = ["x"] : tensor<4x4x3xf32>
  %11 = dm.partition_id axes = ["y", "x"] : tensor<i64>
  %12 = dm.all_reduce add %d, axes = ["x", "y"] : tensor<4x4xf64>
  %13 = dm.abs %12 : tensor<4x4xf64>
  %one = dm.constant dense<1.0> : tensor<f64>
  %limit = dm.constant dense<1000.0> : tensor<f64>
  %14 = dm.while %13 : (tensor<4x4xf64>) -> tensor<4x4xf64> {
  ^bb0(%s: tensor<4x4xf64>):
    %m = dm.reduce max %s : (tensor<4x4xf64>) -> tensor<f64>
    %more = dm.compare lt %m, %limit : (tensor<f64>, tensor<f64>) -> tensor<i1>
    dm.yield %more : tensor<i1>
  } do {
  ^bb0(%s: tensor<4x4xf64>):
    %t = dm.all_reduce add %s, axes = ["x", "y"] : tensor<4x4xf64>
    %u = dm.add %t, %one : (tensor<4x4xf64>, tensor<f64>) -> tensor<4x4xf64>
    dm.yield %u : tensor<4x4xf64>
  }
  %15 = dm.reduce max %14 : (tensor<4x4xf64>) -> tensor<f64>
  %16 = dm.compare lt %15, %limit : (tensor<f64>, tensor<f64>) -> tensor<i1>
  %17 = dm.if %16 : (tensor<i1>) -> tensor<4x4xf64> {
    dm.yield %14 : tensor<4x4xf64>
  } else {
    %k = dm.collective_permute %d, pairs = [[0, 1], [1, 0]], axes = ["y"] : tensor<4x4xf64>
    dm.yield %k : tensor<4x4xf64>
  }
  %18 = dm.all_reduce min %a, axes = [] : tensor<4x4x3xf32>
  return %0, %1, %3, %4, %5, %6, %7, %9, %10, %11, %14, %17, %18, %12 : tensor<4x16x3xf32>, tensor<4x1x3xf32>, tensor<4x16x3xf32>, tensor<4x4x3xf32>, tensor<4x6xf16>, tensor<6x5xi4>, tensor<8xi1>, tensor<4x4xf64>, tensor<4x4x3xf32>, tensor<i64>, tensor<4x4xf64>, tensor<4x4xf64>, tensor<4x4x3xf32>, tensor<4x4xf64>
}`

// varied are the arguments of a function, another one for each device.
func varied(j Job) map[string]PieceReader {
	out := map[string]PieceReader{}
	for i, a := range j.Fn.Args {
		out[strings.TrimPrefix(a.Name, "%")] = func(device int, elem types.Elem, shape []int) (*tensor.Tensor, error) {
			return tensor.Random(elem, shape, uint64(100+device), uint64(i)), nil
		}
	}
	return out
}

// bucketed has collectives that take less time as one: reductions of odd sizes, in f16 too, some that another needs, parts and
// wholes of several dimensions, in a loop, and some that the text has as one.
const bucketed = `dm.mesh @pod {x = 2, y = 2}
func.func @f(%a: tensor<7x3xf32>, %b: tensor<5xf32>, %c: tensor<8x4xf32>, %h: tensor<9xf16>, %k: tensor<1x3xf16>, %i: tensor<6xi32>) -> (tensor<7x3xf32>, tensor<5xf32>, tensor<2x4xf32>, tensor<8x1xf32>, tensor<9xf16>, tensor<1x3xf16>, tensor<6xi32>, tensor<28x3xf32>, tensor<20xf32>, tensor<5xf32>, tensor<7x3xf32>, tensor<8x4xf32>, tensor<7x3xf32>) attributes {dm.mesh = @pod} {
  %0 = dm.all_reduce add %a, axes = ["x", "y"] : tensor<7x3xf32>
  %1 = dm.all_reduce add %b, axes = ["x", "y"] : tensor<5xf32>
  %2 = dm.reduce_scatter add %c, dim = 0, axes = ["y", "x"] : (tensor<8x4xf32>) -> tensor<2x4xf32>
  %3 = dm.reduce_scatter add %c, dim = 1, axes = ["y", "x"] : (tensor<8x4xf32>) -> tensor<8x1xf32>
  %4 = dm.all_reduce max %h, axes = ["x"] : tensor<9xf16>
  %5 = dm.all_reduce max %k, axes = ["x"] : tensor<1x3xf16>
  %6 = dm.all_reduce max %i, axes = ["x"] : tensor<6xi32>
  %7 = dm.all_gather %a, dim = 0, axes = ["x", "y"] : (tensor<7x3xf32>) -> tensor<28x3xf32>
  %8 = dm.all_gather %b, dim = 0, axes = ["x", "y"] : (tensor<5xf32>) -> tensor<20xf32>
  %9 = dm.tanh %1 : tensor<5xf32>
  %10 = dm.all_reduce add %9, axes = ["x", "y"] : tensor<5xf32>
  %n = dm.constant dense<0> : tensor<i64>
  %one = dm.constant dense<1> : tensor<i64>
  %three = dm.constant dense<3> : tensor<i64>
  %11, %12, %13 = dm.while %n, %a, %c : (tensor<i64>, tensor<7x3xf32>, tensor<8x4xf32>) -> (tensor<i64>, tensor<7x3xf32>, tensor<8x4xf32>) {
  ^bb0(%p: tensor<i64>, %s: tensor<7x3xf32>, %t: tensor<8x4xf32>):
    %more = dm.compare lt %p, %three : (tensor<i64>, tensor<i64>) -> tensor<i1>
    dm.yield %more : tensor<i1>
  } do {
  ^bb0(%p: tensor<i64>, %s: tensor<7x3xf32>, %t: tensor<8x4xf32>):
    %q = dm.add %p, %one : tensor<i64>
    %u = dm.all_reduce max %s, axes = ["y"] : tensor<7x3xf32>
    %v = dm.all_reduce max %t, axes = ["y"] : tensor<8x4xf32>
    dm.yield %q, %u, %v : tensor<i64>, tensor<7x3xf32>, tensor<8x4xf32>
  }
  %14, %15 = dm.kernel -> (tensor<7x3xf32>, tensor<8x4xf32>) {
    %l = dm.all_reduce min %a, axes = ["y"] : tensor<7x3xf32>
    %m = dm.all_reduce min %c, axes = ["y"] : tensor<8x4xf32>
    dm.yield %l, %m : tensor<7x3xf32>, tensor<8x4xf32>
  }
  %16 = dm.add %12, %14 : tensor<7x3xf32>
  %17 = dm.add %13, %15 : tensor<8x4xf32>
  return %0, %1, %2, %3, %4, %5, %6, %7, %8, %10, %14, %17, %16 : tensor<7x3xf32>, tensor<5xf32>, tensor<2x4xf32>, tensor<8x1xf32>, tensor<9xf16>, tensor<1x3xf16>, tensor<6xi32>, tensor<28x3xf32>, tensor<20xf32>, tensor<5xf32>, tensor<7x3xf32>, tensor<8x4xf32>, tensor<7x3xf32>
}`

// TestCollectives: compiled programs exchange what the reference executor exchanges, on every
// device, several values as one where that takes less time.
func TestCollectives(t *testing.T) {
	for _, c := range []struct {
		name, text string
		exchanges  int // of values
		steps      int
	}{{"each", collectives, 13, 13}, {"as one", bucketed, 14, 8}} {
		j := teamJob(t, c.text, "f")
		j.On = Distribution{Devices: 4, Pieces: true}
		j.Pieces = varied(j)
		j.Device = "reference"
		want := runOnce(t, j)
		for _, d := range []string{"cpu", "emulator"} {
			t.Run(c.name+"/"+d, func(t *testing.T) {
				hasDevice(t, d)
				j := j
				j.Device = d
				sameResults(t, want, runOnce(t, j))
			})
		}
		built, err := Build(t.Context(), j.Module, j.Fn, BuildOptions{Machine: machineFor(""), Devices: 4})
		if err != nil {
			t.Fatal(err)
		}
		values, steps := 0, 0
		for _, s := range built.Steps {
			if s.Kind == artifact.StepCollective {
				steps++
				values += len(s.Collective.Values())
			}
		}
		if values != c.exchanges || steps != c.steps {
			t.Errorf("%s: %d values in %d steps, want %d in %d", c.name, values, steps, c.exchanges, c.steps)
		}
	}
}

func runOnce(t *testing.T, j Job) *Result {
	t.Helper()
	if j.Device == "reference" {
		j.Device = ""
	}
	res, err := Run(t.Context(), j, nil)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// sameResults compares results, or all their pieces.
func sameResults(t *testing.T, want, got *Result) {
	t.Helper()
	for i, w := range want.Outputs {
		g := got.Outputs[i]
		if len(w.Pieces) != len(g.Pieces) {
			t.Fatalf("result %d has %d pieces, not %d", i, len(g.Pieces), len(w.Pieces))
		}
		check := func(where string, w, g *tensor.Tensor) {
			if w.Type() != g.Type() {
				t.Errorf("result %d%s is %s, not %s", i, where, g.Type(), w.Type())
			} else if d := scaledDiff(g, w); !(d <= tolerance(w)) {
				t.Errorf("result %d%s, %s: differs by %g", i, where, w.Type(), d)
			}
		}
		if w.Pieces == nil {
			check("", w.Tensor, g.Tensor)
		}
		for k := range w.Pieces {
			check(fmt.Sprintf(" of device %d", k), w.Pieces[k].Tensor, g.Pieces[k].Tensor)
		}
	}
}

// steps are training steps, which repeat with their state. An emulator runs the smaller one that smaller makes of their text.
var teamSteps = []struct {
	file, sizes string
	devices     int
	on          []string
	smaller     []string // old and new texts
}{
	{"../../examples/mlp_megatron.dmir", "data=1,model=2", 2, []string{"cpu"}, nil},
	{"../../examples/mlp_megatron.dmir", "data=2,model=2", 4, []string{"cpu"}, nil},
	{"../../examples/llama_fsdp.dmir", "data=4", 4, []string{"cpu"}, nil},
	{"../../examples/moe.dmir", "expert=2", 2, []string{"cpu", "emulator"}, []string{"4x128", "4x32", "48", "12", "256", "64"}},
	{"../distribute/testdata/steps/encoder.dmir", "data=2,model=2", 4, []string{"cpu"}, nil},
	{"../distribute/testdata/steps/cnn.dmir", "data=1,space=2", 2, []string{"cpu", "emulator"}, nil},
}

// TestTeamSteps: whole training steps, compiled, are on several devices what they are on one, in
// the second step as well, whose state has stayed in pieces.
func TestTeamSteps(t *testing.T) {
	for k, s := range teamSteps {
		for _, d := range s.on {
			t.Run(fmt.Sprint(filepath.Base(s.file), " ", s.sizes, " ", d), func(t *testing.T) {
				if k > 0 || d == "emulator" {
					need.Long(t)
				}
				hasDevice(t, d)
				text, err := os.ReadFile(s.file)
				if err != nil {
					t.Fatal(err)
				}
				if d == "emulator" {
					text = []byte(strings.NewReplacer(s.smaller...).Replace(string(text)))
				}
				j := teamJob(t, string(text), "step")
				j.Device = "reference"
				want := twice(t, j)
				j.Device = d
				j.On = Distribution{Devices: s.devices, Mesh: sizesOf(t, s.sizes)}
				got := twice(t, j)
				for i, w := range want {
					if d := scaledDiff(got[i].Tensor, w.Tensor); !(d <= 5e-3) {
						t.Errorf("%s, %s: differs by %g", w.Name, w.Type, d)
					}
				}
			})
		}
	}
}

func sizesOf(t *testing.T, text string) map[string]int64 {
	out := map[string]int64{}
	for part := range strings.SplitSeq(text, ",") {
		name, size, _ := strings.Cut(part, "=")
		var n int64
		if _, err := fmt.Sscan(size, &n); err != nil {
			t.Fatal(err)
		}
		out[name] = n
	}
	return out
}

// twice makes two steps, and gives the results of the second and the state.
func twice(t *testing.T, j Job) []Output {
	t.Helper()
	args, err := j.whole(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s, err := Open(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	outs, err := s.Step(t.Context(), args)
	if err == nil {
		outs, err = s.Step(t.Context(), make([]*tensor.Tensor, len(args)))
	}
	if err != nil {
		t.Fatal(err)
	}
	state, err := s.Current(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	return append(outs, state...)
}

// TestTeamOps: each op of the registry, with arguments divided along each dimension in turn,
// compiled for the processor, computes on the devices of a mesh what it computes on one.
func TestTeamOps(t *testing.T) {
	need.Long(t)
	hasDevice(t, "cpu")
	for n, def := range op.All() {
		if n%3 != 0 && def.Family == op.Elementwise || n%2 != 0 || def.Name == "grad" || strings.Contains(def.Example, "dm.mesh") { // a sample: all of them run in package distribute
			continue
		}
		t.Run(def.Name, func(t *testing.T) {
			j := teamJob(t, def.Example, "example")
			j.Device = "reference"
			want, err := Run(t.Context(), j, nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, k := range []int{n / 2 % 2} {
				on := &mesh.Mesh{Name: "m", Axes: []mesh.Axis{{Name: "x", Size: 2}, {Name: "y", Size: 2}}}
				own := j
				own.Module = j.Module.Clone()
				own.Module.Ops = append([]*ir.Op{on.Op()}, own.Module.Ops...)
				own.Fn = own.Module.Func(j.Fn.Name)
				split := false
				for i, a := range own.Fn.Args {
					ty := a.Tensor()
					if ty == nil || ty.Rank() == 0 || ty.Format != nil && def.Whole != "" { // of an op that is not divided, devices divide no sparse tensor
						continue
					}
					r := *ty
					r.At.Shard = &types.Sharding{Mesh: "m", Dims: make([]types.Split, ty.Rank())}
					r.At.Shard.Dims[(i+k)%ty.Rank()].Axes = [][]types.Axis{{{Name: "y"}}, {{Name: "y"}, {Name: "x"}}}[k]
					a.Type, split = &r, true
				}
				if !split {
					continue
				}
				own.Fn.Retype()
				own.Device, own.On = "cpu", Distribution{Devices: 4}
				got, err := Run(t.Context(), own, nil)
				if err != nil {
					t.Errorf("%d: %v", k, err)
					continue
				}
				sameResults(t, want, got)
			}
		})
	}
}

// broken is a device on which one rank fails in the middle of a run, or never calls.
type broken struct {
	device.Device
	rank int
	err  error
}

func (b broken) Run(ctx context.Context, p *artifact.Program, inputs [][]byte, o device.Options) (*device.Result, error) {
	if o.Comm.Rank() == b.rank {
		return nil, b.err
	}
	return b.Device.Run(ctx, p, inputs, o)
}

// TestTeamFailures: where one device fails, all end, and there is one error, which names it; a
// program is refused on another number of devices.
func TestTeamFailures(t *testing.T) {
	hasDevice(t, "cpu")
	d, _, err := device.Find("cpu")
	if err != nil {
		t.Fatal(err)
	}
	j := teamJob(t, collectives, "f")
	j.On.Devices = 4
	p, _, err := j.build(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	args, err := j.whole(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	failure := errors.New("the memory is full")
	_, err = RunTogether(t.Context(), broken{d, 2, failure}, p, args, nil, Distribution{}, device.Options{})
	if !errors.Is(err, failure) || err.Error() != "device 2: the memory is full" {
		t.Errorf("error %v", err)
	}
	var count *CountError
	if _, err = RunTogether(t.Context(), d, p, args, nil, Distribution{Devices: 2}, device.Options{}); !errors.As(err, &count) {
		t.Errorf("on two devices: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err = RunTogether(ctx, d, p, args, nil, Distribution{}, device.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if _, err := d.Run(t.Context(), p, nil, device.Options{Comm: collective.Local(2)[0]}); err == nil {
		t.Error("it runs without its inputs on two devices")
	}
}
