// Package gpu_test checks that dmir accepts the workloads of the GPU benchmark.
package gpu_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"dmir/analysis/machine"
	"dmir/analysis/program"
	"dmir/compile/driver"
	"dmir/compile/interp"
	"dmir/compile/suite"
	"dmir/compile/tensor"
	"dmir/dialect/types"
	"dmir/gpu/artifact"
	"dmir/gpu/device"
	"dmir/gpu/nvrtc"
	"dmir/gpu/nvrtc/nvrtctest"
	"dmir/gpu/ptx/ptxtest"
	"dmir/syntax/source"
	"dmir/testkit/need"
)

// python runs Python 3 in this folder.
func python(t *testing.T, args ...string) {
	t.Helper()
	path := need.Tool(t, "python3", "apt-get install python3")
	cmd := exec.Command(path, args...)
	cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
}

// Every workload's program, at both sizes, is valid.
func TestWorkloads(t *testing.T) {
	for _, size := range [][]string{nil, {"--small"}} {
		dir := t.TempDir()
		python(t, append([]string{"workloads.py", "--write", dir}, size...)...)
		paths, err := filepath.Glob(filepath.Join(dir, "*.dmir"))
		if err != nil || len(paths) < 50 {
			t.Fatalf("%d programs, %v", len(paths), err)
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			p := program.Load(source.New(path, string(text)), program.Options{})
			for _, d := range p.Diags {
				t.Errorf("%s: %s", filepath.Base(path), d.Message)
			}
		}
	}
}

// The workloads at small sizes are part of the device suite. Without PyTorch they
// are the check of the kernels' results. Without a folder for the cases the test
// builds only a few.
func TestWorkloadCases(t *testing.T) {
	need.Long(t)
	dir := t.TempDir()
	python(t, "workloads.py", "--small", "--write", dir)
	paths, err := filepath.Glob(filepath.Join(dir, "*.dmir"))
	if err != nil {
		t.Fatal(err)
	}
	_, _, all := suite.Recording()
	seen := map[string]bool{}
	for i, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		_, body, _ := strings.Cut(string(text), "\n") // the first line is the name
		if seen[body] || !all && i%30 > 0 {
			continue
		}
		seen[body] = true
		name := strings.TrimSuffix(filepath.Base(path), ".dmir")
		t.Run(name, func(t *testing.T) { keep(t, name, path, string(text)) })
	}
}

// keep creates a case from a workload and the reference's results.
func keep(t *testing.T, name, path, text string) {
	p := program.Load(source.New(path, text), program.Options{})
	m, fn, err := driver.Pick(p, "")
	if err != nil {
		t.Fatal(err)
	}
	given := map[string]*tensor.Tensor{}
	for i, a := range fn.Args {
		arg := strings.TrimPrefix(a.Name, "%")
		elem, shape, err := interp.ArgType(fn, i, nil)
		if err != nil {
			t.Fatal(err)
		}
		file := strings.TrimSuffix(path, ".dmir") + "." + arg + ".npy"
		if _, err := os.Stat(file); err == nil {
			if given[arg], err = tensor.LoadNPY(file, elem, shape); err != nil {
				t.Fatal(err)
			}
		}
	}
	reference := suite.Reference(t.Context(), m, fn, nil, given)
	args, want, err := reference(7)
	if err != nil {
		t.Fatal(err)
	}
	target, _ := machine.Lookup("h200")
	of := suite.Source{
		Class: "workloads", Args: args, Want: want, Again: reference,
		Build: func(arch string) (*artifact.Program, error) {
			return driver.Build(t.Context(), m, fn, driver.BuildOptions{Machine: target, Arch: arch})
		},
		Within: func(i int) suite.Within { // the limits of worker.py, by the coarsest numbers of the program, plus the reference's own rounding
			limit := 0.0
			for _, x := range slices.Concat(args, want[i:i+1]) {
				of := map[int64]float64{2: 0x1p-10, 4: 0x1p-20, 8: 0}[x.Elem.Bytes()]
				if x.Elem == types.BF16 {
					of = 0x1p-7
				}
				limit = max(limit, of)
			}
			return suite.Within{Most: 64 * limit, Length: 12 * limit, Scaled: true}
		},
	}
	suite.Record(t, 7, of)
	d, _, err := device.Find("emulator")
	if _, _, ok := suite.Recording(); ok || err != nil {
		return
	}
	of.Again = nil
	made, err := suite.Make(of, 7, "")
	if err != nil {
		t.Fatal(err)
	}
	if r := made.Run(t.Context(), d, 10*time.Minute); r.Outcome != suite.Passed {
		t.Errorf("%s: %s, %s", name, r.Outcome, r.Why)
	}
}

// sized are the parts of a workload's name that tell those of one kind apart.
var sized = regexp.MustCompile(`^([lb]?\d+|b?f\d+|odd|qkv|out|up|down)$`)

// kindOf is the name of a workload without its sizes and element types.
func kindOf(path string) string {
	parts := strings.Split(strings.TrimSuffix(filepath.Base(path), ".dmir"), "_")
	return strings.Join(slices.DeleteFunc(parts, sized.MatchString), "_")
}

// The kernels of the workloads, at the sizes that are measured, hold the rules of
// package ptx: in turn, of one of every sixth kind. Package cuda checks each form of kernel.
func TestWorkloadKernels(t *testing.T) {
	need.Long(t)
	nvrtctest.Compiler(t)
	dir := t.TempDir()
	python(t, "workloads.py", "--write", dir)
	paths, err := filepath.Glob(filepath.Join(dir, "*.dmir"))
	if err != nil {
		t.Fatal(err)
	}
	target, _ := machine.Lookup("h200")
	total, programs := 0, 0
	kinds, seen, rank := map[string]int{}, map[string]int{}, map[string]int{}
	for _, path := range paths {
		kind := kindOf(path)
		if kinds[kind]++; kinds[kind] == 1 {
			rank[kind] = len(rank)
		}
	}
	for _, path := range paths {
		kind := kindOf(path)
		if seen[kind]++; !need.Turn(t, 6*seen[kind]+rank[kind]%6, 6*kinds[kind]) {
			continue
		}
		programs++
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		// The same name everywhere, so that what was compiled is found again.
		m, fn, err := driver.Pick(program.Load(source.New("workload.dmir", string(text)), program.Options{}), "")
		if err != nil {
			t.Fatal(err)
		}
		built, err := driver.Build(t.Context(), m, fn, driver.BuildOptions{Machine: target, Arch: target.Arch})
		if err != nil {
			t.Fatal(err)
		}
		compiled, err := nvrtc.CompileProgram(t.Context(), built, target.Arch, nvrtc.Options{})
		if err != nil {
			t.Fatalf("%s: %v", filepath.Base(path), err)
		}
		r := ptxtest.Check(t, built, compiled)
		total += r.Kernels
		if len(r.Findings) > 0 {
			t.Errorf("%s: %d findings", filepath.Base(path), len(r.Findings))
		}
	}
	t.Logf("%d kernels of %d workloads", total, programs)
}

// The tests of the Python scripts.
func TestReport(t *testing.T) {
	need.Long(t)
	python(t, "-m", "unittest", "-q", "bench_test")
}
