package llvm_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"dmir/analysis/machine"
	"dmir/analysis/program"
	"dmir/compile/driver"
	_ "dmir/compile/target/all"
	"dmir/gpu/artifact"
	"dmir/syntax/source"
	"dmir/testkit/need"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// arch is the architecture of golden texts.
const arch = "x86-64-v3"

// built compiles the function of a program's text for arch.
func built(t testing.TB, name, text, arch string) *artifact.Program {
	t.Helper()
	p := program.Load(source.New(name, text), program.Options{})
	if p.HasErrors() {
		t.Fatal(p.Diags)
	}
	m, fn, err := driver.Pick(p, "")
	if err != nil {
		t.Fatal(err)
	}
	cpu, _ := machine.Lookup("cpu")
	out, err := driver.Build(t.Context(), m, fn, driver.BuildOptions{Machine: cpu, Arch: arch})
	if err != nil {
		t.Fatal(err)
	}
	if err := out.Check(); err != nil {
		t.Fatal(err)
	}
	return out
}

// The IR of each construct is the golden one, and LLVM verifies it.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files (%v)", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(file)
			if err != nil || len(a.Files) != 2 {
				t.Fatalf("%d files (%v)", len(a.Files), err)
			}
			p := built(t, "program.dmir", string(a.Files[0].Data), arch)
			verify(t, p.Source)
			got := bodies(p)
			if *update {
				a.Files[1].Data = []byte(got)
				if err := os.WriteFile(file, txtar.Format(a), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if want := string(a.Files[1].Data); got != want {
				t.Errorf("got (go test ./compile/llvm -update rewrites the file):\n%s\nwant:\n%s", got, want)
			}
		})
	}
}

var debug = regexp.MustCompile(`, !dbg ![0-9]+| !dbg ![0-9]+`)

// bodies are the functions of p's kernels that compute, without places in the program.
func bodies(p *artifact.Program) string {
	var b strings.Builder
	lines := strings.SplitAfter(p.Source, "\n")
	for i, k := range p.Kernels {
		var tasks int
		for _, s := range p.Steps {
			if s.Kind == artifact.StepLaunch && s.Launch.Kernel == i {
				tasks = s.Launch.Grid[0]
			}
		}
		fmt.Fprintf(&b, "; %s, tasks: %d, scratch memory: %d bytes\n", k.Class, tasks, k.Scratch)
		for _, line := range lines[k.First-1 : k.Last] {
			b.WriteString(debug.ReplaceAllString(line, ""))
			if line == "}\n" {
				break
			}
		}
	}
	return b.String()
}

// verify runs LLVM's verifier on a module.
func verify(t testing.TB, text string) {
	t.Helper()
	opt := need.Tool(t, "opt", "apt-get install llvm")
	cmd := exec.Command(opt, "-passes=verify", "-disable-output", "-")
	cmd.Stdin = strings.NewReader(text)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// The kernels of all examples and programs are valid for every architecture: a program for one of them in every second
// run, in turn, so that a run has an eighth of the programs for each.
func TestVerified(t *testing.T) {
	need.Long(t)
	for _, pattern := range []string{"../../examples/*.dmir", "../../testdata/programs/*.dmir"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: no files (%v)", pattern, err)
		}
		for i, file := range files {
			if strings.Contains(file, "symbolic") || strings.Contains(file, "transformer_block") {
				continue // of open sizes
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			archs := []string{"x86-64-v2", "x86-64-v3", "x86-64-v4", "armv8-a"}
			for j, arch := range archs {
				if !need.Turn(t, i+j, 2*len(archs)) {
					continue
				}
				t.Run(filepath.Base(file)+"/"+arch, func(t *testing.T) {
					t.Parallel()
					verify(t, built(t, file, string(text), arch).Source)
				})
			}
		}
	}
}
