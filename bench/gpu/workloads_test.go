// Package gpu_test holds the workloads of the GPU benchmark to what dmir takes.
package gpu_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"dmir/analysis/program"
	"dmir/syntax/source"
)

// python runs Python 3 in this folder.
func python(t *testing.T, args ...string) {
	t.Helper()
	path, err := exec.LookPath("python3")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip("install Python 3 and run this again")
	}
	cmd := exec.Command(path, args...)
	cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
}

// Every workload's program, at both sizes, is sound.
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

// What the scripts do with times holds without a card.
func TestReport(t *testing.T) {
	python(t, "-m", "unittest", "-q", "bench_test")
}
