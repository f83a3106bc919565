package lint_test

import (
	"flag"
	"fmt"
	"strings"
	"testing"

	"dmir/analysis/lint"
	"dmir/analysis/program"
	"dmir/syntax/diag"
	"dmir/syntax/source"
	"dmir/testkit/need"
	"dmir/testkit/randprog"
)

var programs = flag.Int("programs", 250, "how many random programs TestRandomPrograms checks")

// TestRandomPrograms verifies the fixes on random programs: applied alone, each
// saves what it states and changes no bit that it must keep; applied together,
// they lead to a correct program without findings.
func TestRandomPrograms(t *testing.T) {
	need.Long(t)
	fixes := map[string]int{}
	for seed := range uint64(*programs) {
		text := randprog.Messy(seed, 4+int(seed%12))
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
	sameResults(t, p, fixed.Program, p.Func("f"), diag.Fix{Title: "all fixes", Safe: !unsafe})
	again := lint.FixAll(t.Context(), fixed.Program, lint.Options{}, unsafe, load)
	if len(again.Applied) > 0 {
		t.Errorf("%s is fixed only the second time:\n%s", again.Applied[0].Message, fixed.Src.Text())
	}
}

// An attention of symbolic sizes, whose fix states no savings, is reported before
// findings that would put its ops into kernels.
func TestAttentionBeforeKernels(t *testing.T) {
	const text = `!h = tensor<?x4x?x16xf32, #dm.at<dims = [b, n]>>
!s = tensor<?x4x?x?xf32, #dm.at<dims = [b, n, n]>>
!m = tensor<?x?xi64, #dm.at<dims = [n, n]>>
!seen = tensor<?x?xi1, #dm.at<dims = [n, n]>>
func.func @same(%q: !h, %k: !h, %v: !h) -> !h {
  %s = dm.einsum "bhqd,bhkd->bhqk" %q, %k : (!h, !h) -> !s
  %i = dm.iota dim = 0 : !m
  %j = dm.iota dim = 1 : !m
  %m = dm.compare ge %i, %j : (!m, !m) -> !seen
  %n = dm.constant dense<-1.0e9> : tensor<f32>
  %t = dm.select %m, %s, %n : (!seen, !s, tensor<f32>) -> !s
  %p = dm.softmax %t, dim = 3 : !s
  %0 = dm.einsum "bhqk,bhkd->bhqd" %p, %v : (!s, !h) -> !h
  %1 = dm.add %0, %q : !h
  return %1 : !h
}
`
	load := func(s *source.File) *program.Program { return load(t, s) }
	fixed := lint.FixAll(t.Context(), load(source.New("in.dmir", text)), lint.Options{}, true, load)
	if !strings.Contains(fixed.Src.Text(), "dm.attention") {
		t.Errorf("no attention is left:\n%s", fixed.Src.Text())
	}
}
