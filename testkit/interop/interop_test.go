// Package interop_test verifies the examples: each passes through every tool, and
// through MLIR, without a change of meaning.
package interop_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"dmir/analysis/lint"
	"dmir/analysis/machine"
	"dmir/analysis/program"
	"dmir/compile/driver"
	"dmir/compile/kernel"
	"dmir/compile/tensor"
	"dmir/dialect/print"
	"dmir/syntax/diag"
	"dmir/syntax/format"
	"dmir/syntax/parse"
	"dmir/syntax/source"
	"dmir/testkit/need"
)

const (
	tool      = "mlir-opt-22"
	small     = 4             // the size of symbolic dimensions
	cheapFLOP = 2_000_000_000 // more is not run here
)

func TestExamples(t *testing.T) {
	need.Long(t)
	paths, err := filepath.Glob("../../examples/*.dmir")
	if err != nil || len(paths) == 0 {
		t.Fatal("no examples:", err)
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			src := source.New(path, string(text))
			if format.File(parse.File(src)) != src.Text() {
				t.Error("is not formatted")
			}
			p := load(t, src, nil)
			bind := map[string]int64{}
			for _, f := range p.Funcs {
				for _, s := range f.Unbound() {
					bind[s] = small
				}
			}
			p = load(t, src, bind)
			for _, d := range lint.Run(t.Context(), p, lint.Options{}) {
				if d.Severity == diag.Error {
					t.Errorf("%s: %s", diag.Place(src, d.Span), d.Message)
				}
			}
			t.Run("fixed", func(t *testing.T) {
				fixed := lint.FixAll(t.Context(), p, lint.Options{}, false, func(s *source.File) *program.Program { return load(t, s, bind) })
				same(t, p, fixed.Program, len(fixed.Applied) > 0)
			})
			t.Run("through MLIR", func(t *testing.T) { same(t, p, throughMLIR(t, p, bind), false) })
		})
	}
}

func load(t *testing.T, src *source.File, bind map[string]int64) *program.Program {
	t.Helper()
	target, _ := machine.Lookup(machine.Default)
	p := program.Load(src, program.Options{Target: target, Bind: bind, OneKernel: kernel.Unfit})
	for _, d := range p.Diags {
		if d.Severity >= diag.Warning {
			t.Fatalf("%s: %s\n%s", diag.Place(src, d.Span), d.Message, src.Line(src.Pos(d.Span.Start).Line))
		}
	}
	return p
}

// throughMLIR prints p in generic form, has mlir-opt verify and print it, and
// reads that.
func throughMLIR(t *testing.T, p *program.Program, bind map[string]int64) *program.Program {
	t.Helper()
	need.Tool(t, tool, "apt-get install mlir-22-tools")
	text, err := print.Generic(p.Modules[0])
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(tool, "--allow-unregistered-dialect")
	var stderr bytes.Buffer
	cmd.Stdin, cmd.Stderr = bytes.NewReader([]byte(text)), &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, stderr.String(), text)
	}
	q := load(t, source.New(tool, string(out)), bind)
	if d := print.Diff(p.Modules[0], q.Modules[0]); d != "" {
		t.Errorf("%s\n%s", d, out)
	}
	return q
}

// same requires that q's functions have the costs of p's, or move less, and compute
// the same bits if that does not take long.
func same(t *testing.T, p, q *program.Program, less bool) {
	t.Helper()
	for i, f := range p.Funcs {
		g := q.Funcs[i]
		if f.FLOP.String() != g.FLOP.String() || f.Minimum().String() != g.Minimum().String() {
			t.Errorf("@%s: %s FLOP and a minimum of %s, then %s and %s", f.Func.Name, f.FLOP, f.Minimum(), g.FLOP, g.Minimum())
		}
		if !less && f.Moved().String() != g.Moved().String() {
			t.Errorf("@%s moves %s, then %s", f.Func.Name, f.Moved(), g.Moved())
		}
		before, ok1 := f.Moved().Int()
		after, ok2 := g.Moved().Int()
		if ok1 && ok2 && after > before {
			t.Errorf("@%s moves %d bytes more", f.Func.Name, after-before)
		}
		if n, ok := f.FLOP.Int(); !ok || n > cheapFLOP || f.Func.Body == nil {
			continue
		}
		a, b := run(t, p, f.Func.Name), run(t, q, f.Func.Name)
		for i := range a {
			if d := tensor.MaxDiff(a[i].Tensor, b[i].Tensor); d != 0 {
				t.Errorf("@%s: result %s differs by %g", f.Func.Name, a[i].Name, d)
			}
		}
	}
}

func run(t *testing.T, p *program.Program, fn string) []driver.Output {
	t.Helper()
	m, f, err := driver.Pick(p, fn)
	if err != nil {
		t.Fatal(err)
	}
	res, err := driver.Run(t.Context(), driver.Job{Program: p, Module: m, Fn: f, Seed: 1, Device: "reference"}, nil)
	if err != nil {
		t.Fatalf("@%s: %v", fn, err)
	}
	return res.Outputs
}
