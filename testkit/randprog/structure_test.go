package randprog_test

import (
	"strings"
	"testing"

	"dmir/analysis/program"
	"dmir/syntax/source"
	"dmir/testkit/randprog"
)

// Programs are valid, and every construct occurs.
func TestStructure(t *testing.T) {
	var all strings.Builder
	for seed := range uint64(60) {
		text := randprog.Structure(seed, 40, seed%2 == 1)
		all.WriteString(text)
		if p := program.Load(source.New("r.dmir", text), program.Options{}); len(p.Diags) > 0 {
			t.Fatalf("seed %d: %+v\n%s", seed, p.Diags[0], text)
		}
	}
	for _, op := range []string{"dm.kernel", "dm.while", "dm.if", "func.call", "dm.reshape", "dm.dynamic_update_slice", "dm.add"} {
		if !strings.Contains(all.String(), op) {
			t.Errorf("no %s was written", op)
		}
	}
}
