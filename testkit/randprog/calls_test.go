package randprog_test

import (
	"strings"
	"testing"

	"dmir/analysis/program"
	"dmir/syntax/source"
	"dmir/testkit/randprog"
)

// TestCalls: the programs are right, and call functions in several sizes.
func TestCalls(t *testing.T) {
	several := 0
	for seed := range uint64(60) {
		generic, static := randprog.Calls(seed)
		for _, text := range []string{generic, static} {
			if p := program.Load(source.New("calls.dmir", text), program.Options{}); p.HasErrors() {
				t.Fatalf("seed %d: %s\n%s", seed, p.Diags[0].Message, text)
			}
		}
		if strings.Count(static, "func.func") > strings.Count(generic, "func.func") {
			several++
		}
	}
	if several < 30 {
		t.Errorf("%d of 60 programs call a function in several sizes", several)
	}
}
