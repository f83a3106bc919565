package report

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"dmir/analysis/cost"
	"dmir/analysis/units"
)

// classComm is the class of collectives in a timeline.
const classComm = "communication"

// timeline is when a device of the function's mesh computes and communicates.
func (b *builder) timeline() *Timeline {
	on := b.f.Mesh()
	out := &Timeline{Mesh: on.Name, Devices: on.Devices(), Bars: []Bar{}, Exposed: []Interval{}, Sent: []SentOn{}}
	device := b.f
	divided, problem := b.f.Divide()
	switch {
	case problem != nil:
		out.Reason = problem.Msg
		return out
	case divided != nil:
		device = divided.Device
	}
	if sent, known := device.Sent(); known {
		out.Sent, out.SentLabel = sentOn(sent), units.Bytes(cost.TotalSent(sent))
	}
	o := device.Overlap(b.p.Target)
	if !o.Known {
		out.Reason = b.untimed(device)
		return out
	}
	if o.Spans == nil {
		o.Spans = b.oneAfterTheOther(device)
	}
	out.TimeNs, out.TimeLabel = round(o.Ns), units.Time(o.Ns)
	out.ComputeNs, out.ComputeLabel = round(o.Compute), units.Time(o.Compute)
	out.CommNs, out.CommLabel = round(o.Comm), units.Time(o.Comm)
	out.ExposedNs, out.ExposedLabel = round(o.ExposedNs), units.Time(o.ExposedNs)
	out.ExposedShare = units.Percent(o.ExposedNs, o.Ns)
	for _, s := range o.Spans {
		if s.End > s.Start {
			out.Bars = append(out.Bars, b.bar(s, o.Ns))
		}
	}
	slices.SortStableFunc(out.Bars, func(x, y Bar) int {
		return cmp.Or(cmp.Compare(x.StartNs, y.StartNs), cmp.Compare(x.Stream, y.Stream))
	})
	out.Exposed = exposed(out.Bars)
	return out
}

func round(ns float64) int64 { return int64(math.Round(ns)) }

// untimed is why the times of f are not known.
func (b *builder) untimed(f *cost.Func) string {
	if err := f.NoLinks(b.p.Target); err != nil {
		return err.Error()
	}
	if names := f.Unbound(); len(names) > 0 {
		return "the times depend on " + strings.Join(names[:min(len(names), 8)], ", ")
	}
	return "the time of an op is not known"
}

// oneAfterTheOther are the spans of a function that sends nothing.
func (b *builder) oneAfterTheOther(f *cost.Func) []cost.Span {
	var out []cost.Span
	at := 0.0
	for _, e := range f.Entries {
		t := e.Time(b.p.Target)
		out = append(out, cost.Span{Entry: e, Start: at, End: at + t.Ns})
		at += t.Ns
	}
	return out
}

func (b *builder) bar(s cost.Span, total float64) Bar {
	e := s.Entry
	out := Bar{
		Op: e.Op.Name, Result: resultNames(e), Detail: detail(e.Op), Class: className(e), Stream: StreamCompute,
		Place: b.placeOf(e.Op), Cost: b.entryCost(e),
		Interval:  Interval{round(s.Start), round(s.End)},
		ExposedNs: round(s.Exposed), Sent: []SentOn{},
	}
	if s.Exposed > 0 {
		out.ExposedLabel = units.Time(s.Exposed)
	}
	// A loop takes less than its ops alone where they run beside each other.
	ns := round(s.End - s.Start)
	out.TimeNs, out.TimeLabel = &ns, units.Time(s.End-s.Start)
	if total > 0 {
		out.Share, out.ShareLabel = (s.End-s.Start)/total, units.Percent(s.End-s.Start, total)
	}
	if sent, known := e.Sent(); known {
		out.Sent = sentOn(sent)
	}
	if s.Comm {
		out.Stream, out.Class = StreamComm, classComm
	}
	if c := e.Comm; c != nil {
		out.Detail, out.Why = "along "+c.Axes, nil // what the link takes, not the memory
		out.Comm = &CollectiveInfo{Axes: c.Axes, Devices: c.Devices, BufferLabel: units.Bytes(c.Buffer)}
		if x, err := c.Estimate(b.p.Target); err == nil {
			out.Comm.Algorithm, out.Comm.Link = string(x.Algorithm), x.Link
		}
	}
	return out
}

func sentOn(sent []cost.Sent) []SentOn {
	out := []SentOn{}
	for _, s := range sent {
		out = append(out, SentOn{s.Axes, s.Bytes, units.Bytes(s.Bytes)})
	}
	return out
}

// exposed are the times in which a bar of communication runs and none of computation.
func exposed(bars []Bar) []Interval {
	out := []Interval{}
	busy := int64(0) // where the computation seen so far ends
	next := 0
	add := func(from, to int64) {
		if n := len(out); n > 0 && out[n-1].EndNs == from {
			out[n-1].EndNs = to
		} else {
			out = append(out, Interval{from, to})
		}
	}
	for _, c := range bars {
		if c.Stream != StreamComm {
			continue
		}
		at := c.StartNs
		for ; next < len(bars) && bars[next].StartNs < c.EndNs; next++ {
			x := bars[next]
			if x.Stream != StreamCompute {
				continue
			}
			if from := max(at, busy); x.StartNs > from {
				add(from, x.StartNs)
			}
			busy = max(busy, x.EndNs)
			at = max(at, busy)
		}
		if from := max(at, busy); c.EndNs > from {
			add(from, c.EndNs)
		}
	}
	return out
}
