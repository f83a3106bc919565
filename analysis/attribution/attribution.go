// Package attribution gives the cost of a program to the lines, functions and modules of the Python program that it was traced
// from, by the locations of its ops.
//
// Each figure of the parts adds up to the program's exactly. What is due to a line is the sum of its ops; an op that several
// lines have a part in is divided equally among them, and a kernel among its ops by the bytes and FLOP that each would move
// and compute alone.
//
// The frame of a call stack that counts is the innermost in a file of the person's own (Sources): what a library computes is
// due to the line that calls it.
package attribution

import (
	"dmir/analysis/cost"
	"dmir/analysis/machine"
	"dmir/dialect/ir"
	"dmir/dialect/loc"
	"dmir/dialect/op"
)

// Amount is what a part costs.
type Amount = cost.Amount

// Phase is the part of a training step that an op belongs to.
type Phase uint8

const (
	Forward  Phase = iota // all of a program without a backward pass
	Backward              // made by differentiation, or computed again for it
	Update                // computed from gradients: clipping, the optimizer
	phases
)

func (p Phase) String() string { return [phases]string{"forward", "backward", "update"}[p] }

// Share is what is due to one location.
type Share struct {
	Amount
	Loc    loc.Loc // nil where it is not known; else none that joins others
	Phase  Phase
	Op     *ir.Op
	Step   *cost.Entry // the function's own, in which the op is
	Launch int         // cost.Leaf.Launch
	Shared bool        // with other ops of a kernel, or other lines of an op
	Also   []loc.Loc   // of ops that became part of this one without adding to what it costs
}

// Function is the cost of a function by locations.
type Function struct {
	Name   string
	Traced bool // an op has a line that it was traced from; else the lines are those of the program's own text
	Total  Amount
	Shares []Share

	// At the peak of memory, in bytes; nil and 0 where it is not known.
	Held  map[loc.Loc]int64 // by values of ops at a location
	Given int64             // by arguments and constants
	Peak  int64             // in all
}

// Of attributes the cost of f on m. measured, if not nil, are times of the function's own ops in a run, in nanoseconds, in place
// of predicted ones.
func Of(f *cost.Func, m *machine.Machine, measured map[*ir.Op]int64) (*Function, error) {
	leaves, total, err := f.Leaves(m, measured)
	if err != nil {
		return nil, err
	}
	out := &Function{Name: f.Func.Name, Total: total, Traced: traced(leaves)}
	in := phasesOf(f.Run())
	place := func(_ *ir.Op, l loc.Loc) loc.Loc { return l }
	if !out.Traced {
		place = byText(f.Module())
	}
	for _, l := range leaves {
		costs, also := parts(place(l.Op, l.Loc))
		for i, a := range l.Split(make([]Amount, len(costs))) {
			out.Shares = append(out.Shares, Share{
				Amount: a, Loc: costs[i], Phase: in.of(l.Op, costs[i]), Op: l.Op, Step: l.Step, Launch: l.Launch,
				Shared: l.Shared || len(costs) > 1, Also: also,
			})
		}
	}
	out.hold(f, place)
	return out, nil
}

// traced reports whether a leaf has a line that it was traced from.
func traced(leaves []cost.Leaf) bool {
	seen := map[loc.Loc]bool{}
	for _, l := range leaves {
		if l.Loc == nil || seen[l.Loc] {
			continue
		}
		seen[l.Loc] = true
		if _, known := Origin(l.Loc); known {
			return true
		}
	}
	return false
}

// byText gives ops of a program that was not traced the lines of its own text.
func byText(m *ir.Module) func(o *ir.Op, l loc.Loc) loc.Loc {
	made := map[int]*loc.Mapper{}
	return func(o *ir.Op, l loc.Loc) loc.Loc {
		if m == nil || m.Src == nil || o.Span.Len() == 0 {
			return l
		}
		line := m.Src.Pos(o.Span.Start).Line + 1
		if made[line] == nil {
			made[line] = loc.From(loc.At(m.Src.Path, line, 0))
		}
		return made[line].Of(l)
	}
}

// parts are the locations that have a part of what an op at l costs, and those that have none.
func parts(l loc.Loc) (costs, also []loc.Loc) {
	for _, p := range loc.Parts(l) {
		if p.Costs {
			costs = append(costs, p.Loc)
		} else {
			also = append(also, p.Loc)
		}
	}
	if len(costs) == 0 {
		costs = []loc.Loc{nil}
	}
	return costs, also
}

// Costs are the locations among which what an op at l costs is shared; one, nil, where it has none.
func Costs(l loc.Loc) []loc.Loc {
	costs, _ := parts(l)
	return costs
}

// hold fills in what is held at the peak of memory.
func (f *Function) hold(of *cost.Func, place func(*ir.Op, loc.Loc) loc.Loc) {
	plan, from, err := of.Lay()
	if err != nil {
		return // sizes are open
	}
	f.Held, f.Peak = map[loc.Loc]int64{}, plan.Bound
	for _, b := range plan.Buffers {
		if b.First > plan.PeakStep || b.Last < plan.PeakStep {
			continue
		}
		o := from.Of(b.Op)
		if b.Arg || o == nil || o.Name == op.Constant {
			f.Given += b.Bytes
			continue
		}
		costs := Costs(place(o, o.Loc))
		for i, a := range (Amount{Written: b.Bytes}).Split(make([]Amount, len(costs))) {
			f.Held[costs[i]] += a.Written
		}
	}
}
