package distribute_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"dmir/compile/devices"
	"dmir/compile/distribute"
	"dmir/compile/interp"
	"dmir/compile/pass"
	"dmir/compile/pass/passtest"
	"dmir/compile/pipeline"
	"dmir/compile/tensor"
	"dmir/dialect/op"
	"dmir/dialect/partition"
	"dmir/dialect/types"
	"dmir/testkit/need"
)

// steps are whole training steps and the meshes that they run on: of 2 and of 4 devices.
var steps = []struct {
	file   string
	meshes []string
}{
	{"testdata/steps/encoder.dmir", []string{"data=1,model=2", "data=2,model=2", "data=4,model=1", "data=1,model=4"}},
	{"testdata/steps/cnn.dmir", []string{"data=1,space=2", "data=2,space=2", "data=1,space=4"}},
	{"../../examples/mlp_megatron.dmir", []string{"data=1,model=2", "data=2,model=2", "data=1,model=3"}},
	{"../../examples/llama_fsdp.dmir", []string{"data=2", "data=4"}},
	{"../../examples/moe.dmir", []string{"expert=2", "expert=4"}},
}

func axisSizes(t *testing.T, text string) map[string]int64 {
	t.Helper()
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

// step is a training step without tuples, calls and gradients.
func step(t *testing.T, file, sizes string) *pass.Unit {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	u := passtest.Unit(t, string(text), "step", nil)
	u.Module = u.Module.Clone()
	u.Func = u.Module.Func("step")
	if err := devices.Mesh(u.Module, axisSizes(t, sizes)); err != nil {
		t.Fatal(err)
	}
	if err := pass.Run(u, pipeline.Export(), nil); err != nil {
		t.Fatal(err)
	}
	return u
}

const repeats = 3

// alone runs a step some times on one device.
func alone(t *testing.T, u *pass.Unit, args []*tensor.Tensor) []*tensor.Tensor {
	t.Helper()
	args = append([]*tensor.Tensor{}, args...)
	var outs []*tensor.Tensor
	for range repeats {
		res, err := interp.Run(t.Context(), u.Module, u.Func, args, interp.Options{})
		if err != nil {
			t.Fatal(err)
		}
		outs = res.Outputs
		for i, in := range op.State(u.Func.Op) {
			if in >= 0 {
				args[in] = outs[i]
			}
		}
	}
	return outs
}

// TestSteps: whole training steps, repeated with their state, are on several devices what they are
// on one: in f64 to the rounding of sums in another order.
func TestSteps(t *testing.T) {
	for _, s := range steps {
		for _, sizes := range s.meshes {
			t.Run(filepath.Base(s.file)+" "+sizes, func(t *testing.T) {
				need.Long(t)
				t.Parallel()
				u := step(t, s.file, sizes)
				args, err := interp.Inputs(t.Context(), u.Func, nil, 3, nil)
				if err != nil {
					t.Fatal(err)
				}
				want := alone(t, u, args)
				fn, problem := partition.Func(u.Context(), u.Module, u.Func)
				if problem != nil {
					t.Fatal(problem)
				}
				p, err := distribute.Of(u.Module, fn)
				if err != nil {
					t.Fatal(err)
				}
				team := p.Local()
				if err := team.Set(args); err != nil {
					t.Fatal(err)
				}
				for i := range repeats {
					res, err := team.Run(t.Context(), interp.Options{})
					if err != nil {
						t.Fatal(err)
					}
					for k := 0; i == repeats-1 && k < len(want); k++ {
						got, err := team.Whole(t.Context(), res, k)
						if err != nil {
							t.Fatal(err)
						}
						if at := differs(want[k], got, stepTolerance(got.Elem)); at != "" {
							t.Errorf("result %d: %s", k, at)
						}
					}
					team.Carry(res, op.State(fn.Op))
				}
			})
		}
	}
}

// stepTolerance allows for what steps make of rounding.
func stepTolerance(e types.Elem) float64 {
	if e == types.F64 {
		return 1e-9
	}
	return 2e-3
}

// TestStepsOverMPI: the command runs the same steps with a process for each device, under one of two
// implementations of MPI in turn.
func TestStepsOverMPI(t *testing.T) {
	need.Long(t)
	launchers := [][]string{
		{need.Tool(t, "mpirun.openmpi", "apt-get install openmpi-bin"), "--oversubscribe", "-n"},
		{need.Tool(t, "mpirun.mpich", "apt-get install mpich"), "-n"},
	}
	dmir := need.Command(t)
	for i, s := range steps {
		for j, sizes := range s.meshes[:2] {
			u := step(t, s.file, sizes)
			args, err := interp.Inputs(t.Context(), u.Func, nil, 3, nil)
			if err != nil {
				t.Fatal(err)
			}
			want := alone(t, u, args)
			n := int64(1)
			for _, size := range axisSizes(t, sizes) {
				n *= size
			}
			for k, l := range launchers {
				if !need.Turn(t, i+2*j+k, 2*len(launchers)) {
					continue
				}
				t.Run(fmt.Sprintf("%s %s %s", filepath.Base(l[0]), filepath.Base(s.file), sizes), func(t *testing.T) {
					dir := t.TempDir()
					cmd := exec.CommandContext(t.Context(), l[0], append(l[1:len(l):len(l)], fmt.Sprint(n), dmir, "run", "--seed", "3", "--steps", fmt.Sprint(repeats),
						"--func", "step", "--mesh", sizes, "--output", dir, s.file)...)
					cmd.Env = append(os.Environ(), "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1")
					if out, err := cmd.CombinedOutput(); err != nil {
						t.Fatalf("%v\n%s", err, out)
					}
					for i, v := range u.Func.Body.Terminator().Operands {
						if i > 0 && op.State(u.Func.Op)[i] < 0 {
							continue
						}
						file := filepath.Join(dir, strings.TrimPrefix(v.Name, "%")+".npy")
						got, err := tensor.LoadNPY(file, want[i].Elem, want[i].Shape)
						if err != nil {
							t.Fatal(err)
						}
						if at := differs(want[i], got, stepTolerance(got.Elem)); at != "" {
							t.Errorf("%s: %s", v.Name, at)
						}
					}
				})
			}
		}
	}
}
