// Package ptxtest checks the kernels that tests compile by the rules of package ptx.
package ptxtest

import (
	"slices"
	"strings"
	"testing"

	"dmir/gpu/artifact"
	"dmir/gpu/nvrtc"
	"dmir/gpu/ptx"
)

// Check fails the test for each finding in the kernels of a program, for what the compiler warns of, as that wgmma wait for each other,
// and for kernels whose accesses move three times the sectors of global memory or twice the passes of shared memory that they need, but for
// those whose name has one of scattered in it. It logs how much was not decided.
func Check(t testing.TB, p *artifact.Program, compiled *nvrtc.Result, scattered ...string) *ptx.Report {
	t.Helper()
	r, err := ptx.Program(p, compiled.PTX, compiled.Kernels)
	if err != nil {
		t.Errorf("the PTX of %s: %v", p.Name, err)
		return &ptx.Report{}
	}
	for _, f := range r.Findings {
		t.Error(f)
	}
	for _, line := range compiled.Warnings() {
		t.Errorf("%s: %s", compiled.Arch, line)
	}
	for name, m := range r.Traffic {
		if slices.ContainsFunc(scattered, func(part string) bool { return strings.Contains(name, part) }) {
			continue
		}
		for _, x := range []struct {
			what  string
			moved ptx.Moved
			few   int     // below which edges count more than the pattern
			most  float64 // of the ratio; that of the edges of a block with odd sizes is below 3
		}{
			{"sectors read", m.Read, 128, 3}, {"sectors written", m.Written, 128, 3}, {"passes of shared memory", m.Shared, 4096, 2},
		} {
			if x.moved.Least >= x.few && x.moved.Ratio() > x.most {
				t.Errorf("%s of %s: %d %s, %d would do", name, p.Name, x.moved.Used, x.what, x.moved.Least)
			}
		}
	}
	for reason, n := range r.Undecided {
		t.Logf("PTX of %s: %d not decided: %s", p.Name, n, reason)
	}
	return r
}
