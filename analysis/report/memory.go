package report

import (
	"math"

	"dmir/analysis/cost"
	"dmir/analysis/memory"
	"dmir/analysis/units"
	"dmir/dialect/ir"
	"dmir/dialect/op"
)

// memory is the plan of the function's memory.
func (b *builder) memory() *Memory {
	out := &Memory{Buffers: []Buffer{}, Steps: []Step{}}
	plan, from, err := cost.NewFlow(b.f.Func, b.f.Module(), b.p.Bind).Lay()
	if err != nil {
		out.Reason = err.Error()
		return out
	}
	for i := range plan.Steps {
		plan.Steps[i].Op = from.Of(plan.Steps[i].Op)
	}
	for i := range plan.Buffers {
		plan.Buffers[i].Op = from.Of(plan.Buffers[i].Op)
	}
	entries := b.f.ByOp()
	ends := b.steps(out, plan, entries)
	for i, x := range plan.Buffers {
		out.Buffers = append(out.Buffers, b.buffer(i, x, plan, ends, entries))
	}
	out.Peak, out.PeakLabel = plan.Peak, units.Bytes(plan.Peak)
	out.Bound, out.BoundLabel = plan.Bound, units.Bytes(plan.Bound)
	out.Over, out.OverLabel = plan.Peak-plan.Bound, units.Bytes(plan.Peak-plan.Bound)
	out.OverShare = units.Percent(float64(out.Over), float64(plan.Bound))
	out.PeakStep = plan.PeakStep
	if len(ends) > 0 {
		out.PeakNs = out.Steps[plan.PeakStep].StartNs
		out.Duration = ends[len(ends)-1]
	}
	return out
}

// steps fills in the steps and returns where each ends, in nanoseconds.
func (b *builder) steps(out *Memory, plan *memory.Plan, entries map[*ir.Op]*cost.Entry) []int64 {
	run := map[*ir.Op]float64{} // nanoseconds, of all rounds
	known := b.times(run, b.f.Entries, 1)
	parts := map[*ir.Op]float64{} // steps of an op: of one on tuples, one for each member
	for _, s := range plan.Steps {
		parts[s.Op]++
	}
	ends := make([]int64, len(plan.Steps))
	var at float64
	for i, s := range plan.Steps {
		x := Step{Op: s.Op.Name, Place: b.placeOf(s.Op), Live: s.Live, LiveLabel: units.Bytes(s.Live)}
		if e := entries[s.Op]; e != nil {
			x.Result, x.Class = resultNames(e), className(e)
			x.TimeLabel = timeLabel(e.Time(b.p.Target))
		}
		x.StartNs = int64(math.Round(at))
		if known {
			at += run[s.Op] / parts[s.Op]
		}
		x.EndNs = int64(math.Round(at))
		ends[i] = x.EndNs
		out.Steps = append(out.Steps, x)
	}
	return ends
}

// times adds the time of every op that takes one, that many rounds of it, copies
// of loops and branches to what hands on what they copy. It reports whether all
// are known.
func (b *builder) times(run map[*ir.Op]float64, es []*cost.Entry, rounds float64) bool {
	for _, e := range es {
		if e.Known && !e.Fused && len(e.Inner) > 0 {
			n, ok := e.Trips.Int()
			begin, round := e.Copies()
			if !ok || !b.times(run, begin, rounds) || !b.times(run, e.Inner, rounds*float64(n)) || !b.times(run, round, rounds*float64(n)) {
				return false
			}
			continue
		}
		t := e.Time(b.p.Target)
		if !t.Known {
			return false
		}
		run[e.Op] += t.Ns * rounds
	}
	return true
}

func (b *builder) buffer(id int, x memory.Buffer, plan *memory.Plan, ends []int64, entries map[*ir.Op]*cost.Entry) Buffer {
	out := Buffer{
		ID: id, Kind: BufferValue, Values: []string{}, First: x.First, Last: x.Last,
		Offset: x.Offset, OffsetText: units.Bytes(x.Offset), Bytes: x.Bytes, BytesLabel: units.Bytes(x.Bytes),
		AtPeak: x.First <= plan.PeakStep && plan.PeakStep <= x.Last,
	}
	if x.Op != nil {
		out.Op, out.Place = x.Op.Name, b.placeOf(x.Op)
		if e := entries[x.Op]; e != nil {
			out.Class = className(e)
		}
	}
	for i, v := range x.Values {
		if i == 0 {
			out.Name, out.Type = valueName(v), shortType(v)
			if v.Span.Len() > 0 {
				from := out.Place
				out.Place = place(b.p.Src, v.Span)
				out.Origin, out.InLines, out.InModules = from.Origin, from.InLines, from.InModules
			}
		}
		out.Values = append(out.Values, valueName(v))
		if returned(v) {
			out.Kind = BufferResult
		}
	}
	switch {
	case x.Arg:
		out.Kind = BufferArgument
	case len(x.Values) == 0:
		out.Kind, out.Name = BufferCall, detail(x.Op)
	}
	if len(ends) > 0 {
		if x.First > 0 {
			out.StartNs = ends[x.First-1]
		}
		out.EndNs = ends[x.Last]
	}
	return out
}

func returned(v *ir.Value) bool {
	for _, u := range v.Uses {
		if u.Op.Name == op.Return {
			return true
		}
	}
	return false
}
