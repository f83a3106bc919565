// Package pass holds what every pass of the compiler is given, how passes are
// run and checked, and what rewriting needs. Package pipeline holds the one
// ordered list of them. Before the first one the module is written without tuples
// (package flatten). A pass changes a function in place, from valid text to
// valid text; after each one the function is verified.
package pass

import (
	"context"

	"dmir/analysis/machine"
	"dmir/base/work"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/gpu/artifact"
)

// NameAttr is the attribute with the name of a step, which the pass fuse writes.
const NameAttr = op.NameAttr

// Unit is what a pass is given: one function of a module, or a region of its
// control flow; see Body.
type Unit struct {
	Ctx    context.Context // nil: nothing ends it early
	Module *ir.Module
	Func   *ir.Func // a pass may put another function in its place (gradient)
	// Parts are, once the stages of a pipeline are split, the functions of the positions along its axis of
	// the mesh, which later passes change one by one; Func is then the one they were made of. nil: all
	// devices run Func.
	Parts   []Part
	Machine *machine.Machine
	Options Options
	region  *ir.Block // set by Regions; nil: the unit is the function
	// Warnings are what a person should know of a program that compiles all the
	// same, in the order of the passes.
	Warnings []*Error
	// Gaps are, once kernels are chosen, how good they are: of the function, then of
	// each region of its control flow.
	Gaps []Gap
	// Checks are what the host compares after a run; the first Returned results are
	// those of the function.
	Checks   []artifact.Check
	Returned int
	// Progress, if not nil, is called at the start of each pass and, by long ones, as
	// they go on: how much of the pass is done, from 0 to 1.
	Progress func(pass string, done float64)
	// Work counts what passes visit; nil unless a test counts.
	Work *work.Counts
	pass string // that runs
}

// Part is the function of the devices of one position along the axis of a pipeline.
type Part struct {
	Func          *ir.Func
	Args, Results []int // by its own: those of the function that was split
}

// Functions are those that devices run: the function, or its parts.
func (u *Unit) Functions() []*ir.Func {
	if u.Parts == nil {
		return []*ir.Func{u.Func}
	}
	out := make([]*ir.Func, len(u.Parts))
	for i := range u.Parts {
		out[i] = u.Parts[i].Func
	}
	return out
}

// Gap is how far the kernels of a body may be from the best ones, in the model by
// which they are chosen.
type Gap struct {
	Func           string  // its function
	In             *ir.Op  // the op whose region it is; nil for the function
	Ns, LeastNs    float64 // predicted time of the kernels, and a lower bound on that of any others
	Bytes, Minimum int64   // that the kernels move, and a lower bound on what others move
	// Cut: the body was bounded in pieces. The bounds hold, but are lower than for the
	// whole, so that the kernels may be the best ones all the same.
	Cut bool
}

// Time is the gap of the time: the part of it that other kernels might save.
func (g Gap) Time() float64 {
	if g.Ns <= g.LeastNs {
		return 0
	}
	return 1 - g.LeastNs/g.Ns
}

// Exact reports that no other kernels take less time.
func (g Gap) Exact() bool { return !g.Cut && g.Time() == 0 }

// Report reports how much of the pass that runs is done, from 0 to 1.
func (u *Unit) Report(done float64) {
	if u.Progress != nil {
		u.Progress(u.pass, done)
	}
}

// Step reports that done of all parts of the work of the pass are done, and returns
// the cause for which the context has ended, if it has. Passes that may take longer
// than a tenth of a second call it at least as often.
func (u *Unit) Step(done, all int) error {
	if done%64 == 0 {
		u.Report(float64(done) / float64(max(1, all)))
	}
	return context.Cause(u.Context())
}

// Begin sets what Report is about.
func (u *Unit) Begin(name string) {
	u.pass = name
	u.Report(0)
}

// Body is the block that the pass works on.
func (u *Unit) Body() Body {
	if u.region != nil {
		return Body{u.region, u.Func}
	}
	return BodyOf(u.Func)
}

// Model is the machine whose times are predicted.
func (u *Unit) Model() *machine.Machine {
	if u.Machine != nil {
		return u.Machine
	}
	m, _ := machine.Lookup(machine.Default)
	return m
}

// Warn adds a warning.
func (u *Unit) Warn(e *Error) { u.Warnings = append(u.Warnings, e) }

// Context ends long searches; it is never nil.
func (u *Unit) Context() context.Context {
	if u.Ctx == nil {
		return context.Background()
	}
	return u.Ctx
}

// Options are the choices of one run that passes for any target read.
type Options struct {
	Bind map[string]int64 // sizes of dimension symbols
	Grad bool             // the function is made its own joint forward and backward graph
	// Devices is how many devices run the function together: those of its mesh; 0: one, for
	// which shardings mean nothing. AllDevices are as many as the mesh has.
	Devices int
	// Sparse keeps sparse tensors as values, for who writes them where there are some; else
	// passes see their components.
	Sparse bool
}

// AllDevices is Options.Devices where the mesh of the program decides.
const AllDevices = -1

// Pass is one step from function to function.
type Pass struct {
	Name    string // as in dmir opt --passes
	Summary string // one line, no final stop
	Run     func(*Unit) error
}
