// Package ptxtest checks the kernels that tests compile by the rules of package ptx.
package ptxtest

import (
	"strings"
	"testing"

	"dmir/gpu/artifact"
	"dmir/gpu/nvrtc"
	"dmir/gpu/ptx"
)

// Check fails the test for each finding in the kernels of a program, and where the
// assembler makes wgmma wait for each other; it logs how much was not decided.
func Check(t testing.TB, p *artifact.Program, compiled *nvrtc.Result) *ptx.Report {
	t.Helper()
	r, err := ptx.Program(p, compiled.PTX, compiled.Kernels)
	if err != nil {
		t.Errorf("the PTX of %s: %v", p.Name, err)
		return &ptx.Report{}
	}
	for _, f := range r.Findings {
		t.Error(f)
	}
	for line := range strings.Lines(compiled.Log) {
		if strings.Contains(line, "Potential Performance Loss") {
			t.Error(strings.TrimSpace(line))
		}
	}
	for reason, n := range r.Undecided {
		t.Logf("PTX of %s: %d not decided: %s", p.Name, n, reason)
	}
	return r
}
