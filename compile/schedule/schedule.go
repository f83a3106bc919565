// Package schedule computes a static plan of a function whose body is kernels,
// and records it in the text: the order of the kernels and their streams (pass
// schedule), and the offset of every value in one allocation (pass plan). The
// text is still a function with value semantics that every other tool reads and
// runs.
//
// Read model.go first: a model is the steps of a function, and the roots, which are
// values with memory of their own. order.go is the pass schedule: problem.go states the
// order as tasks, list.go finds a good one, exact.go proves short ones best, stream.go
// assigns streams by times, overlap.go puts collectives beside other work, and budget.go and remat.go compute values again where a budget
// of memory asks for it. plan.go is the pass plan: live_range.go, place.go and skyline.go
// give roots their offsets. apply.go puts the ops of a model in their new order, read.go and
// text.go read a Schedule from text, check.go proves it; region.go treats what a loop or a branch holds.
//
// A step is an op of the body that runs: all but constants, views that move
// nothing and the return. Steps are numbered from 0 in the order of the text.
//
//	dm.stream = 1          of a step: the stream it runs on; 0 where absent
//	dm.waits = [3]         of a step: earlier steps on other streams that must have ended
//	dm.offsets = [0, 256]  of a step or a constant: byte offset of each result; -1 outside the device's memory
//	dm.scratch = 1024      of a step, from the code generator: bytes of scratch memory
//	dm.scratch_offset = 0  of a step with dm.scratch
//	dm.scratch_read = 1024, dm.scratch_written = 1024
//	                       of a step: bytes that its launches move beyond those that cross its boundary; see package cost
//	dm.arg_offsets = [0]   of the function: byte offset of each argument
//	dm.workspace = 4096    of the function: bytes of the allocation; of a region's dm.yield: of the region
//	dm.in_place            of the function: element-wise kernels may overwrite operands that they are the last to read
//
// A dm.while or a dm.if is one step. The memory of its regions is its scratch
// memory: dm.workspace of a region's dm.yield is its size in bytes, the offsets
// in the region are relative to its start, and the regions of one op, of which
// one runs at a time, share it. The block's arguments have the memory of the
// results of the while, captured values keep theirs, and constants that are not
// numbers in a kernel's text are outside of the regions. A while needs
// additional bytes for carried values that its body passes on in another
// position (Swapped).
//
// Arguments and constants keep their memory throughout, so that a step can be
// run repeatedly; a result keeps its memory from its definition to the end. All
// other values share memory by live range. All of this may be edited by hand:
// Check proves or refutes the text.
package schedule

import (
	"fmt"
	"strings"

	"dmir/compile/pass"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
	"dmir/syntax/diag"
)

// Align divides every offset, in bytes: it is the alignment of the driver's own
// allocations, and more than any vector load or tensor map requires.
const Align = 256

// The attributes of a planned function.
const (
	StreamAttr        = op.StreamAttr
	WaitsAttr         = op.WaitsAttr
	OffsetsAttr       = op.OffsetsAttr
	ScratchAttr       = op.ScratchAttr
	ScratchOffsetAttr = op.ScratchOffsetAttr
	WorkspaceAttr     = op.WorkspaceAttr
	ArgOffsetsAttr    = op.ArgOffsetsAttr
	InPlaceAttr       = op.InPlaceAttr
)

// Codes lists the diagnostics of schedules and plans.
var Codes = diag.Register([]diag.Code{
	{Code: "DM841", Name: "peak-over-budget", Doc: "The function holds more memory at one step than `dm.max_peak` allows, and neither another order nor recomputing values brings it below.", Help: "raise `dm.max_peak`, or free what the message lists"},
	{Code: "DM842", Name: "schedule-attribute", Doc: "An attribute of the schedule or of the memory plan is missing or malformed: `dm.stream` is a non-negative integer, `dm.waits`, `dm.offsets` and `dm.arg_offsets` are lists of integers, `dm.workspace` is a number of bytes.", Help: "run the passes schedule and plan again, or write the attribute as the message says"},
	{Code: "DM843", Name: "wait", Doc: "A step waits for one that does not run before it on another stream.", Help: "name earlier steps on other streams; steps are counted from 0 in the order of the text, without constants and views that move nothing"},
	{Code: "DM844", Name: "missing-wait", Doc: "A step reads a value that another stream computes, without waiting for it.", Help: "add the step to `dm.waits`, or put both on one stream"},
	{Code: "DM845", Name: "misaligned", Doc: "An offset is not a multiple of 256 bytes, which bulk copies and vector loads need.", Help: "move it to a multiple of 256"},
	{Code: "DM846", Name: "outside-workspace", Doc: "A value lies outside the workspace.", Help: "raise `dm.workspace`, or move the value"},
	{Code: "DM847", Name: "overlap", Doc: "Two values share bytes of the workspace, and nothing guarantees that the last read of one precedes the first write of the other.", Help: "move one of them, or order their steps with `dm.waits`"},
})

// Problems are all errors of a schedule, in the order found; as an error it is
// the first of them.
type Problems []diag.Diagnostic

func (ps Problems) Error() string {
	if len(ps) == 0 {
		return "no problem"
	}
	s := ps[0].Message
	if n := len(ps) - 1; n > 0 {
		s += fmt.Sprintf(" (and %s more)", diag.Count(n, "problem"))
	}
	return s
}

// strip removes the attributes of an earlier run of the passes.
func strip(b pass.Body, names ...string) {
	for _, n := range names {
		head(b).RemoveAttr(n)
	}
	for _, o := range b.Ops {
		for _, n := range names {
			if o.Attr(n) != nil {
				o.RemoveAttr(n)
			}
		}
	}
}

func integers(ns []int64) types.Attr {
	a := make(types.Array, len(ns))
	for i, n := range ns {
		a[i] = types.Int{V: n}
	}
	return a
}

// called is the name of v in messages: its name, or the op that defines it.
func called(v *ir.Value) string {
	switch {
	case v.Name != "":
		return v.Name
	case v.Op != nil:
		return "a result of " + label(v.Op)
	}
	return "an argument"
}

// label is the name of o in messages: its name attribute, its results or its
// kind.
func label(o *ir.Op) string {
	if n := o.Str(pass.NameAttr); n != "" {
		return n
	}
	var names []string
	for _, v := range o.Results {
		if v.Name != "" {
			names = append(names, v.Name)
		}
	}
	if len(names) > 0 {
		return strings.Join(names, ", ")
	}
	return o.Name
}
