package emulator

import (
	"testing"

	"dmir/gpu/artifact"
)

// Only kernels with much work are optimised, by the mean of a program, and those whose work is not known.
func TestLevel(t *testing.T) {
	for _, c := range []struct {
		flop, bytes int64
		kernels     int
		want        string
	}{{0, 0, 1, "-O1"}, {smallWork - 2, 1, 1, "-O0"}, {smallWork - 1, 1, 1, "-O1"}, {smallWork, smallWork, 3, "-O0"}} {
		p := &artifact.Program{Kernels: make([]artifact.Kernel, c.kernels), Steps: []artifact.Step{{FLOP: c.flop, ReadBytes: c.bytes}}}
		if got := level(p); got != c.want {
			t.Errorf("%d FLOP and %d bytes of %d kernels: %s, want %s", c.flop, c.bytes, c.kernels, got, c.want)
		}
	}
}
