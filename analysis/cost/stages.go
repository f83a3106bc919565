package cost

import (
	"dmir/analysis/machine"
	"dmir/base/streams"
	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// StageFigures are those of the devices of one position along the axis of a pipeline.
type StageFigures struct {
	Func string // what they run
	Figures
	BusyNs float64 // of its kernels, alone
	WaitNs float64 // in which none of them runs, until the last of all devices has ended
}

// InStages are the figures of a step in stages as it is compiled: fs are the functions of the positions along the axis of
// its pipeline. They run together: a send takes the time of its network, beside kernels, and what it sends is there when
// it ends. The time is that until the last device has ended, the other figures are those of the device that has most.
func InStages(fs []*Func, m *machine.Machine) Figures {
	out := Figures{Compiled: true, Peaks: []dim.Dim{{}}}
	programs, links, ok := together(fs, m)
	var schedules []streams.Schedule
	if ok {
		var err error
		schedules, err = streams.Timelines(programs, links)
		ok = err == nil
	}
	most := func(into *dim.Dim, n dim.Dim) {
		a, known := into.Int()
		if b, also := n.Int(); known && also && b > a {
			*into = n
		}
	}
	sent := int64(0)
	out.Sent = &sent
	for d, f := range fs {
		s := StageFigures{Func: f.Func.Name, Figures: f.Figures(m)}
		most(&out.Kernels, s.Kernels)
		most(&out.Moved, s.Moved)
		for _, p := range s.Peaks {
			most(&out.Peaks[0], p)
		}
		switch {
		case s.Sent == nil:
			out.Sent = nil
		case out.Sent != nil && (d == 0 || *s.Sent > sent):
			sent, out.Along = *s.Sent, s.Along
		}
		if ok {
			s.BusyNs = schedules[d].Compute
			s.WaitNs = schedules[d].Total - s.BusyNs
			out.Time = Time{Ns: schedules[d].Total, Known: true}
		}
		out.Stages = append(out.Stages, s)
	}
	return out
}

// pipeline is the axis along which the stages of f lie; "": it has none.
func (f *Func) pipeline() string { return types.TextOf(f.Func.Op.Attr(op.PipelineAttr)) }

// together are the steps of all devices, and which wait for those of others. A dm.recv is no step: what uses its result
// waits for the dm.send.
func together(fs []*Func, m *machine.Machine) (programs [][]streams.Step, links []streams.Link, ok bool) {
	sends := map[string][]streams.At{} // by op.Point
	type waiting struct {
		point string
		nth   int
		at    streams.At
	}
	var waits []waiting
	for d, f := range fs {
		entries := f.PerDevice().Entries
		received := map[*ir.Op]waiting{}
		counts := map[string]int{}
		var own []*Entry
		for _, e := range entries {
			switch e.Op.Name {
			case op.Recv:
				p := op.Point(e.Op)
				received[e.Op] = waiting{point: p, nth: counts[p]}
				counts[p]++
				continue
			}
			own = append(own, e)
		}
		scheduled := numbered(entries)
		uses := func(e *Entry, f func(o *ir.Op)) {
			ir.Walk([]*ir.Op{e.Op}, func(o *ir.Op) bool {
				for _, v := range o.Operands {
					f(v.Op)
				}
				return true
			})
			for _, o := range waitsOf(e.Op, scheduled) {
				f(o)
			}
		}
		p, known := timer{m}.program(own, scheduled, func(e *Entry) (waits bool) {
			uses(e, func(o *ir.Op) {
				_, from := received[o]
				waits = waits || from
			})
			return waits
		})
		if !known {
			return nil, nil, false
		}
		for i, e := range own {
			if e.Op.Name == op.Send {
				point := op.Point(e.Op)
				sends[point] = append(sends[point], streams.At{Device: d, Step: p.at[i]})
			}
			seen := map[*ir.Op]bool{}
			uses(e, func(o *ir.Op) {
				if w, from := received[o]; from && !seen[o] {
					seen[o] = true
					w.at = streams.At{Device: d, Step: p.at[i]}
					waits = append(waits, w)
				}
			})
		}
		programs = append(programs, p.steps)
	}
	for _, w := range waits {
		from := sends[w.point]
		if w.nth >= len(from) {
			return nil, nil, false
		}
		links = append(links, streams.Link{From: from[w.nth], To: w.at})
	}
	return programs, links, true
}
