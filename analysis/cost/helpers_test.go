package cost_test

import (
	"flag"
	"os"
	"testing"

	"dmir/analysis/cost"
	"dmir/analysis/machine"
	"dmir/analysis/program"
	"dmir/dialect/dim"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// load analyses text and fails the test if anything is wrong with it.
func load(t *testing.T, name, text string, opts program.Options) *program.Program {
	t.Helper()
	p := program.Load(source.New(name, text), opts)
	for _, d := range p.Diags {
		if d.Severity == diag.Error {
			line, col := p.Src.Human(d.Span.Start)
			t.Errorf("%s:%d:%d: %s %s", name, line, col, d.Code, d.Message)
		}
	}
	if t.Failed() {
		t.FailNow()
	}
	return p
}

func loadFile(t *testing.T, path string) *program.Program {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return load(t, path, string(text), program.Options{})
}

// only is the one function of p.
func only(t *testing.T, p *program.Program) *cost.Func {
	t.Helper()
	if len(p.Funcs) != 1 {
		t.Fatalf("%d functions, want 1", len(p.Funcs))
	}
	return p.Funcs[0]
}

func lookup(t *testing.T, name string) *machine.Machine {
	t.Helper()
	m, ok := machine.Lookup(name)
	if !ok {
		t.Fatalf("no machine %s", name)
	}
	return m
}

func number(t *testing.T, d dim.Dim) int64 {
	t.Helper()
	n, ok := d.Int()
	if !ok {
		t.Fatalf("%s is no number", d)
	}
	return n
}
