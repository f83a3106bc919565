// Package cuda compiles kernels to CUDA C++, in each form of package kernel.
// Package assemble makes of them the program that a device runs.
//
// A kernel is planned first (Plan): its launches, their tiles and the memory
// they share, which the passes and the fusion planner read. Then its text is
// built as a tree of statements (stmt), verified, and rendered. The text uses
// the names of the prelude (gpu/prelude) and is meant to be read: the value
// names of the program, one statement for each scalar op, #line directives to
// the program.
package cuda

import (
	"dmir/analysis/machine"
)

// Target is the machine and the options that kernels are generated for.
type Target struct {
	Arch    string // "sm_80", "sm_90a", …
	Machine *machine.Machine
	Tiles   *Choices // measured tiles of contractions; nil: the model chooses
	Rank    int      // choose the candidate of this rank, 1 the best, to measure it; 0: the default choice
}

// multiprocessors is the number on the target's machine; an H100's where its
// data has none.
func (t Target) multiprocessors() int64 {
	if n := t.Machine.SMs; n > 0 {
		return int64(n)
	}
	return 132
}
