package lint_test

import (
	"flag"
	"fmt"
	"strings"
	"testing"

	"dmir/analysis/lint"
	"dmir/analysis/program"
	"dmir/internal/messy"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

var programs = flag.Int("programs", 250, "how many random programs TestRandomPrograms checks")

// TestRandomPrograms holds every promise of a fix on programs that nobody
// wrote: applied by itself, each saves what it says and changes no bit it must
// not; applied together, they end in a correct program of which nothing is left
// to say.
func TestRandomPrograms(t *testing.T) {
	fixes := map[string]int{}
	for seed := range uint64(*programs) {
		text := messy.Program(seed, 4+int(seed%12))
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			defer func() {
				if t.Failed() {
					t.Logf("the program:\n%s", text)
				}
			}()
			p := load(t, source.New("random.dmir", text))
			mustBeCorrect(t, p)
			for _, d := range lint.Run(t.Context(), p, lint.Options{}) {
				if prove(t, p, d, lint.Lookup(d.Code)) {
					fixes[d.Code]++
				}
			}
			for _, unsafe := range []bool{false, true} {
				fixedProgram(t, p, unsafe)
			}
		})
	}
	t.Logf("fixes proven: %v", fixes)
}

func fixedProgram(t *testing.T, p *program.Program, unsafe bool) {
	t.Helper()
	load := func(s *source.File) *program.Program { return load(t, s) }
	fixed := lint.FixAll(t.Context(), p, lint.Options{}, unsafe, load)
	mustBeCorrect(t, fixed.Program)
	if before, after := strings.Count(p.Src.Text(), "// keep"), strings.Count(fixed.Src.Text(), "// keep"); before != after {
		t.Errorf("%d comments before the fixes, %d after them:\n%s", before, after, fixed.Src.Text())
	}
	before, after := p.Funcs[0].Moved(), fixed.Funcs[0].Moved()
	if saved, ok := before.Sub(after).Int(); ok && saved < 0 {
		t.Errorf("the fixes make it move %d bytes more:\n%s", -saved, fixed.Src.Text())
	}
	sameResults(t, p, fixed.Program, "f", diag.Fix{Title: "all fixes", Safe: !unsafe})
	again := lint.FixAll(t.Context(), fixed.Program, lint.Options{}, unsafe, load)
	if len(again.Applied) > 0 {
		t.Errorf("%s is fixed only the second time:\n%s", again.Applied[0].Message, fixed.Src.Text())
	}
}
