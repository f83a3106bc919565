package lint_test

import (
	"os"
	"path/filepath"
	"testing"

	"dmir/analysis/lint"
	"dmir/syntax/source"
)

// TestFixesOfExamples applies each fix of the examples by itself: the function that it is in moves the promised bytes less and takes
// the promised time less, which is no loss, and no other function, such as one that calls it or its gradient, moves more or takes longer.
func TestFixesOfExamples(t *testing.T) {
	paths, err := filepath.Glob("../../examples/*.dmir")
	if err != nil || len(paths) == 0 {
		t.Fatal("no examples:", err)
	}
	proven := map[string]int{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(filepath.Base(path), func(t *testing.T) {
			p := load(t, source.New(path, string(text)))
			mustBeCorrect(t, p)
			for _, d := range lint.Run(t.Context(), p, lint.Options{}) {
				if len(d.Fixes) == 0 {
					continue
				}
				if d.SavesNs < 0 || d.Fixes[0].SavesNs < 0 {
					t.Errorf("%s: promises to take %g ns longer", d.Fixes[0].Title, -d.Fixes[0].SavesNs)
				}
				q := applied(t, p, d.Fixes[0])
				keepsPromise(t, p, q, d)
				for i, f := range p.Funcs {
					before, after := f.PerDevice(), q.Funcs[i].PerDevice()
					if grown, ok := after.Moved().Sub(before.Moved()).Int(); ok && grown > 0 && d.Fixes[0].SavesBytes >= 0 {
						t.Errorf("%s: @%s moves %d bytes more", d.Fixes[0].Title, f.Func.Name, grown)
					}
					if was, is := before.Time(p.Target), after.Time(p.Target); was.Known && is.Known && is.Ns > was.Ns+1e-6*(1+was.Ns) {
						t.Errorf("%s: @%s takes %g ns longer", d.Fixes[0].Title, f.Func.Name, is.Ns-was.Ns)
					}
				}
				proven[d.Code]++
			}
		})
	}
	t.Logf("fixes proven: %v", proven)
}
