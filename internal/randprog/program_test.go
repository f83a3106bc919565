package randprog_test

import (
	"strings"
	"testing"

	"dmir/analysis/program"
	"dmir/dialect/op"
	"dmir/internal/randprog"
	"dmir/syntax/source"
)

// What is written is valid, and every op of the registry comes up.
func TestProgram(t *testing.T) {
	seen := map[string]bool{}
	for seed := range uint64(3000) {
		text := randprog.Program(seed, randprog.Options{Gradient: seed%4 == 3})
		p := program.Load(source.New("r.dmir", text), program.Options{})
		for _, d := range p.Diags {
			t.Errorf("seed %d: %s %s\n%s", seed, d.Code, d.Message, line(text, d.Span.Start))
		}
		for _, d := range op.All() {
			if strings.Contains(text, d.FullName()+" ") {
				seen[d.Name] = true
			}
		}
	}
	for _, d := range op.All() {
		if !seen[d.Name] {
			t.Errorf("no dm.%s was written", d.Name)
		}
	}
}

func line(text string, at int) string {
	from := strings.LastIndexByte(text[:at], '\n') + 1
	n := strings.IndexByte(text[from:], '\n')
	return text[from : from+n]
}
