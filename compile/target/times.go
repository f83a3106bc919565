package target

import (
	"dmir/analysis/cost"
	"dmir/analysis/machine"
	"dmir/compile/kernel"
	"dmir/dialect/ir"
)

// Moved is what a kernel reads and writes, in bytes.
type Moved struct {
	Read, Written int64
	Of            func(v *ir.Value) int64 // that it reads of a value
}

// Times is what a target knows of the kernels that it would generate.
type Times struct {
	// Of is equal for times that are the same for every kernel; nil: for no others.
	Of any
	// Running is how the kernel of f runs; ok is false where there is none.
	Running func(f *kernel.Form, moved Moved) (how cost.Running, ok bool)
	// Least is the time in seconds below which no kernel computes p, and below which none does that computes an operand of it. nil: that of
	// the best tile of libraries.
	Least func(p machine.Product) (all, computed float64)
}
