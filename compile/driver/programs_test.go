package driver

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"dmir/analysis/machine"
	"dmir/analysis/program"
	"dmir/compile/interp"
	"dmir/compile/suite"
	"dmir/compile/tensor"
	"dmir/dialect/ir"
	"dmir/gpu/artifact"
	"dmir/gpu/device"
	"dmir/gpu/devicetest"
	"dmir/gpu/native"
	"dmir/gpu/nvrtc"
	"dmir/gpu/nvrtc/nvrtctest"
	"dmir/gpu/ptx/ptxtest"
	"dmir/testkit/need"
)

const programs = "../../testdata/programs"

func files(t testing.TB, pattern string) []string {
	t.Helper()
	found, err := filepath.Glob(pattern)
	if err != nil || len(found) == 0 {
		t.Fatalf("%s: no files (%v)", pattern, err)
	}
	return found
}

func read(t testing.TB, path string) *program.Program {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return loaded(t, path, string(text))
}

// programCase is a program whose results are those of the reference.
func programCase(t testing.TB, path string) devicetest.Case {
	t.Helper()
	return caseOf(t, read(t, path), strings.TrimSuffix(filepath.Base(path), ".dmir"))
}

// caseOf is programCase for a program that was read.
func caseOf(t testing.TB, p *program.Program, name string) devicetest.Case {
	t.Helper()
	m, fn, err := Pick(p, "")
	if err != nil {
		t.Fatal(err)
	}
	want, err := Run(t.Context(), Job{Program: p, Module: m, Fn: fn, Seed: 7, Device: "reference"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	args, err := interp.Inputs(t.Context(), fn, p.Bind, 7, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := devicetest.Case{Name: name}
	for _, a := range args {
		b := tensor.Pack(a)
		c.Inputs = append(c.Inputs, b)
	}
	c.Build = builderOf(m, fn, p.Bind)
	allowed := 0.0 // results of wide types come from half-precision ones all the same
	for _, a := range append(slices.Clone(args), tensorsOf(want)...) {
		allowed = max(allowed, tolerance(a))
	}
	suite.Record(t, 7, suite.Source{
		Name: name, Class: "programs", Build: c.Build, Args: args, Want: tensorsOf(want), Again: suite.Reference(t.Context(), m, fn, p.Bind, nil),
		Within: func(int) suite.Within { return suite.Within{Most: allowed, Scaled: true} },
	})
	c.Check = func(outputs [][]byte) error {
		var errs []error
		for i, w := range want.Outputs {
			got, err := tensor.Unpack(outputs[i], w.Tensor.Elem, w.Tensor.Shape)
			if err != nil {
				return err
			}
			if d := scaledDiff(got, w.Tensor); !(d <= allowed) {
				errs = append(errs, fmt.Errorf("%s, %s: differs from the reference by %g", w.Name, w.Type, d))
			}
		}
		return errors.Join(errs...)
	}
	return c
}

// builderOf compiles a function for any architecture.
func builderOf(m *ir.Module, fn *ir.Func, bind map[string]int64) func(arch string) (*artifact.Program, error) {
	return func(arch string) (*artifact.Program, error) {
		return Build(context.Background(), m, fn, BuildOptions{Machine: machineFor(arch), Arch: arch, Bind: bind})
	}
}

func tensorsOf(r *Result) (ts []*tensor.Tensor) {
	for _, o := range r.Outputs {
		if o.Sparse != nil {
			ts = append(ts, o.Sparse.Parts...)
			continue
		}
		ts = append(ts, o.Tensor)
	}
	return ts
}

// overBudget are the examples with kernels that issue more instructions than the time of what they move
// allows, and why.
var overBudget = map[string]string{
	"pruned_mlp.dmir": "the gradient by a stored weight is a sum along two rows, whose elements a thread reads one by one: 150 % in the kernel with Adam",
}

// scaledDiff is the largest difference between elements of got and want, against
// 1 + the largest element of want: sums of many terms lose that much.
func scaledDiff(got, want *tensor.Tensor) float64 {
	top, most := 0.0, 0.0
	for i := range want.Len() {
		w, g := want.Float(i), got.Float(i)
		if math.IsNaN(w) && math.IsNaN(g) || w == g {
			continue
		}
		if most = max(most, math.Abs(w-g)); math.IsNaN(w - g) {
			return math.NaN()
		}
		top = max(top, math.Abs(w))
	}
	return most / (1 + top)
}

// machineFor is a machine of that architecture.
func machineFor(arch string) *machine.Machine {
	name := "h200"
	switch {
	case strings.HasPrefix(arch, "sm_80"):
		name = "a100-80"
	case strings.HasPrefix(arch, "sm_10"):
		name = "b200"
	case arch == "sm_86", arch == "sm_89", arch == "sm_120":
		name = "rtx4090"
	}
	m, _ := machine.Lookup(name)
	return m
}

// Every device that is here computes what the reference does; each program runs on every second of them in turn.
func TestDevices(t *testing.T) {
	t.Parallel()
	needEmulator(t)
	var cases []devicetest.Case
	for _, path := range files(t, filepath.Join(programs, "*.dmir")) {
		cases = append(cases, programCase(t, path))
	}
	for k, d := range device.Devices() {
		t.Run(d.Name(), func(t *testing.T) {
			var own []devicetest.Case
			for i, c := range cases {
				if need.Turn(t, i+k, 2) {
					own = append(own, c)
				}
			}
			if d.Name() == "cpu" {
				_, err := native.Find(t.Context())
				need.OK(t, err)
			}
			devicetest.Run(t, d, own)
		})
	}
}

// uncompiled are the examples that are not compiled whole.
var uncompiled = map[string]string{
	"attention_symbolic.dmir": "two functions",
}

// sizes are those of the symbols of examples that leave sizes open.
var sizes = map[string]int64{"b": 2, "n": 512, "h": 8, "d": 64}

// archs are the architectures that code is made for.
var archs = []string{"sm_80", "sm_90a", "sm_100"}

// Every kernel of the examples and of the programs compiles without spills and warnings, an eighth of them in
// turn: for Hopper two times of three, else for another architecture. Those of examples that are bound
// by memory issue no more on an H200 than it can while it moves their bytes.
func TestArchitectures(t *testing.T) {
	t.Parallel()
	needNVRTC(t)
	others := []string{"sm_80", "sm_100", "sm_86", "sm_89", "sm_120"} // package cuda assembles each form of kernel for them
	for i, path := range append(files(t, filepath.Join(programs, "*.dmir")), files(t, "../../examples/*.dmir")...) {
		if reason := uncompiled[filepath.Base(path)]; reason != "" {
			t.Logf("%s: %s", path, reason)
			continue
		}
		done := map[string]bool{}
		for j, arch := range []string{"sm_90a", others[i%len(others)], "sm_90a"} {
			if done[arch] || !need.Turn(t, i+8*j, 24) {
				continue
			}
			done[arch] = true
			t.Run(strings.TrimSuffix(filepath.Base(path), ".dmir")+"/"+arch, func(t *testing.T) {
				t.Parallel()
				m, fn, err := Pick(read(t, path), "")
				if err != nil {
					t.Fatal(err)
				}
				built, err := Build(t.Context(), m, fn, BuildOptions{Machine: machineFor(arch), Arch: arch, Bind: sizes})
				if err != nil {
					t.Fatal(err)
				}
				if err := built.Check(); err != nil {
					t.Fatal(err)
				}
				res, err := nvrtc.CompileProgram(t.Context(), built, arch, nvrtc.Options{})
				if err != nil {
					t.Fatal(err)
				}
				ptxtest.Check(t, built, res)
				for _, k := range res.Kernels {
					t.Logf("%-40s %3d registers, %6d bytes of shared memory", k.Name, k.Registers, k.Shared)
				}
				nvrtctest.Clean(t, res)
				if arch == "sm_90a" && strings.Contains(path, "examples") && overBudget[filepath.Base(path)] == "" {
					withinBudget(t, built, res.Cubin, machineFor(arch))
				}
			})
		}
	}
}
