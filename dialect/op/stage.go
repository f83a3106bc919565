package op

import (
	"fmt"
	"slices"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// The attributes of ops and calls that divide a training step into stages and say what is computed twice.
const (
	// StageAttr is the number of the stage that an op belongs to: dm.stage = 2. In the text of a function it holds for
	// the op and those after it, until the next one that has it (ResolveStages); stages are numbered along the model
	// from 0. A derivative op is of the stage of the op that it is the derivative of.
	StageAttr = ir.StageAttr
	// StagesAttr, of a dm.scan, is how many stages its iterations are cut into, equally many for each but the last, from stage 0 on:
	// dm.stages = 4. What stands before the loop is of stage 0, what stands behind it of the last one. See package stacks.
	StagesAttr = "dm.stages"
	// MicroAttr is the number of the micro-batch that an op works on.
	MicroAttr = ir.MicroAttr
	// BackwardAttr marks, in a function with stages, the ops that differentiation has added.
	BackwardAttr = ir.BackwardAttr
	// RecomputeAttr, a unit, marks an op whose results, or a call whose values but for its results, are not kept for the
	// derivative but computed again there. The ops of an inlined call have its number instead, a positive integer.
	RecomputeAttr = ir.RecomputeAttr
	// RecomputedAttr marks an op that computes again what one marked with RecomputeAttr has computed. It is equal to
	// no op without it.
	RecomputedAttr = ir.RecomputedAttr
)

// The attributes of a function that is a training step.
const (
	// MicrobatchesAttr is the number of parts that the batch is cut into, whose gradients are summed.
	MicrobatchesAttr = "dm.microbatches"
	// PipelineAttr is the axis of the mesh along which the stages lie.
	PipelineAttr = "dm.pipeline"
	// ScheduleAttr is the order in which a pipeline works, one of Schedules.
	ScheduleAttr = "dm.schedule"
)

// The schedules of pipelines; package pipelining has what they are.
const (
	ScheduleGPipe       = "gpipe"
	Schedule1F1B        = "1f1b"
	ScheduleInterleaved = "interleaved"
	ScheduleZBH1        = "zb-h1"
	ScheduleZBV         = "zb-v"
)

// Schedules are the values of ScheduleAttr.
var Schedules = []string{ScheduleGPipe, Schedule1F1B, ScheduleInterleaved, ScheduleZBH1, ScheduleZBV}

// StageOf is the stage of o; ok is false where it has none of its own.
func StageOf(o *ir.Op) (stage int64, ok bool) {
	n, ok := o.Attr(StageAttr).(types.Int)
	return n.V, ok
}

// ResolveStages gives each of ops, those of the body of a function as they stand in its text, the stage that it
// belongs to: its own, or that of the last op before it that has one.
func ResolveStages(ops []*ir.Op) {
	var stage types.Attr
	for _, o := range ops {
		if a := o.Attr(StageAttr); a != nil {
			stage = a
		} else if stage != nil && !Ends(o) {
			o.SetAttr(StageAttr, stage)
		}
	}
}

// Staged reports whether one of ops has a stage, or is cut into stages.
func Staged(ops []*ir.Op) bool {
	return slices.ContainsFunc(ops, func(o *ir.Op) bool { return o.Attr(StageAttr) != nil || o.Attr(StagesAttr) != nil })
}

// StageBack is the first of ops, those of the body of a function, with a stage before that of an op in front of
// it, and that op; nil where there is none, or where ops are not those of a model: derivatives and micro-batches go
// through the stages in other orders.
func StageBack(ops []*ir.Op) (o, before *ir.Op) {
	last := int64(-1)
	var found, later, at *ir.Op
	for _, p := range ops {
		if p.Attr(BackwardAttr) != nil || p.Attr(MicroAttr) != nil {
			return nil, nil
		}
		switch n, ok := StageOf(p); {
		case !ok:
		case n < last && found == nil:
			found, later = p, at
		case n > last:
			last, at = n, p
		}
	}
	return found, later
}

// CutProblem is why o cannot be cut into n loops, one after the other, with what to do about it; "" where it can.
func CutProblem(o *ir.Op, n int) (msg, help string) {
	if o.Name != Scan {
		return o.Name + " is no dm.scan, whose iterations could be cut into stages", "state " + StageAttr + " on ops, or write equal layers as a dm.scan over their stacked weights"
	}
	trips, p := scanLength(o)
	size, known := trips.Int()
	switch {
	case p != nil:
		return "the number of iterations is not known", "make the loop valid first"
	case Bool(o, "reverse"):
		return "a loop from the last element to the first is not cut into stages", "write the layers in the order in which they run; of a loop that is differentiated the reverse one follows by itself"
	case !known:
		return "the number of iterations is " + trips.String() + ", which is no number yet", "bind its symbols"
	case !Stageable(int(size), n):
		return fmt.Sprintf("the loop runs %d times: of %d stages, with %d layers each but for the last, some would have none", size, n, StageLayers(int(size), n)), "use fewer stages, or a number that divides the number of layers"
	}
	return "", ""
}

// StageLayers is how many of so many layers of a loop a stage has, of n; the last one may have fewer.
func StageLayers(layers, n int) int { return dim.Share(layers, n) }

// Stageable reports whether each of n stages then has a layer.
func Stageable(layers, n int) bool { return dim.Shared(layers, n) }

// Inlined gives ops, which stand for a call, its marks: its stage to those that have none of their own, which are
// resolved already, and where its values are to be computed again, that with the number segment.
func Inlined(ops []*ir.Op, call *ir.Op, segment int64) {
	recompute := call.Attr(RecomputeAttr)
	if n, ok := recompute.(types.Int); ok {
		segment = n.V
	}
	for _, o := range ops {
		if a := call.Attr(StageAttr); a != nil && o.Attr(StageAttr) == nil && !Ends(o) {
			o.SetAttr(StageAttr, a)
		}
		if recompute != nil && !Ends(o) {
			o.SetAttr(RecomputeAttr, types.Int{V: segment, Elem: types.I64})
		}
	}
}

// Segments is the largest number of an inlined call in RecomputeAttr of ops, 0 where there is none.
func Segments(ops []*ir.Op) (n int64) {
	for _, o := range ops {
		if i, ok := o.Attr(RecomputeAttr).(types.Int); ok {
			n = max(n, i.V)
		}
	}
	return n
}

// DropRecompute takes RecomputeAttr away from ops and those inside them, once derivatives are written out.
func DropRecompute(ops []*ir.Op) {
	ir.Walk(ops, func(o *ir.Op) bool {
		o.RemoveAttr(RecomputeAttr)
		return true
	})
}
