// Package cuda compiles kernels to CUDA C++: each form of compile/kernel, and of a
// whole scheduled function the program that a device runs (gpu/artifact).
//
// A kernel is planned first (Plan): its launches, their tiles and the memory that
// they share. The passes and the planner of groups read that. Then its text is
// written as a tree of statements (stmt), verified, and rendered. The text uses
// the prelude's names (gpu/prelude) and is meant to be read: the value names of
// the program, one statement for each scalar op, lines that point back to the
// program.
package cuda

import (
	"dmir/analysis/machine"
)

// Target is what kernels are written for.
type Target struct {
	Arch    string // "sm_80", "sm_90a", …
	Machine *machine.Machine
	Tiles   *Choices // of contractions, where they were measured; nil: the model decides
	Rank    int      // take the candidate of this rank, 1 the best, to measure it; 0: none in particular
}

// multiprocessors is how many the target has; a machine whose data does not give
// the number counts as an H100.
func (t Target) multiprocessors() int64 {
	if n := t.Machine.SMs; n > 0 {
		return int64(n)
	}
	return 132
}
