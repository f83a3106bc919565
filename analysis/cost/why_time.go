package cost

import (
	"cmp"
	"slices"

	"dmir/analysis/machine"
	"dmir/analysis/units"
	"dmir/dialect/types"
)

// Work is FLOP on one unit.
type Work struct {
	Contraction bool       // on the tensor cores, where the machine has such for Elem
	Elem        types.Elem // that it computes on
	Op          string     // "exp", where the machine has a rate of its own for it; else ""
	FLOP        int64
	Rate        float64 // that kernels reach on the machine, FLOP/s
}

// Ns is how long the work takes.
func (w Work) Ns() float64 { return float64(w.FLOP) / w.Rate * 1e9 }

// TimeTerms are the terms of a time: max(Compute, Memory, Link) + Launch, in
// nanoseconds, and the figures of the machine that they come from.
type TimeTerms struct {
	Work                          []Work  // contractions first; units work side by side
	Moved                         int64   // bytes
	Level                         string  // where they lie: "L2", "L2 and L3"; "" for the memory
	Linked                        int64   // bytes of it that cross the link to the host
	Bandwidth, LinkRate           float64 // bytes/s; LinkRate is 0 where the machine names none
	Compute, Memory, Link, Launch float64
	Threads                       int  // of a processor that run it, where not all do; else 0
	OneUnit                       bool // works take turns on one unit, and their times add up
	Measured                      bool // one of the rates is a ceiling of the machine, not its datasheet's
}

// Ns is the time that the terms make.
func (t TimeTerms) Ns() float64 { return max(t.Compute, t.Memory, t.Link) + t.Launch }

// LaunchText is Launch in words.
func (t TimeTerms) LaunchText(m *machine.Machine) string {
	if t.Threads == 1 {
		return units.Time(t.Launch) + " on one thread"
	}
	return m.LaunchText()
}

// MovedText is "50.3 MB / 4.30 TB/s", with the level of the caches.
func (t TimeTerms) MovedText() string {
	text := units.Bytes(t.Moved) + " / " + units.Bandwidth(t.Bandwidth)
	if t.Level != "" {
		text += " in " + t.Level
	}
	return text
}

// Text is "34.4 GFLOP / 788 TFLOP/s", with the op where the rate is its own.
func (w Work) Text() string {
	text := units.FLOP(w.FLOP) + " / " + units.Rate(w.Rate)
	if w.Op != "" {
		text += " of " + w.Op
	}
	return text
}

// TimeTerms are the terms of e's time on m; ok is false for what takes no time
// of its own, is not known, is that of a collective (Collective.Estimate), or sums up its inner ops (a call, an if, a while) or
// members (of tuples).
func (e *Entry) TimeTerms(m *machine.Machine) (t TimeTerms, ok bool) {
	if m == nil || !e.Known || e.inside || e.callee != nil || e.parts != nil || communicates(e.Op) || len(e.Inner) > 0 && !e.Fused {
		return t, false
	}
	var w work
	if !w.add(m, e) {
		return t, false
	}
	read, ok1 := e.Read.Int()
	written, ok2 := e.Written.Int()
	link, ok3 := e.link.Int()
	moved := read + written
	if !ok1 || !ok2 || !ok3 || moved == 0 && w.none() {
		return t, false
	}
	t.Threads = e.threads(m, moved)
	t.OneUnit = m.OneUnit()
	times := slower(m, t.Threads)
	slices.SortFunc(w, func(a, b part) int {
		return cmp.Or(rank(a.unit)-rank(b.unit), cmp.Compare(a.elem, b.elem), cmp.Compare(a.op, b.op))
	})
	for _, p := range w {
		rate := p.rate(m, path(e.Op))
		t.Work = append(t.Work, Work{p.contraction, p.elem, p.op, p.flop, rate / times})
		t.Measured = t.Measured || rate != m.Peak(p.contraction, p.elem)
	}
	move := m.Move(read, written, t.Threads)
	t.Moved, t.Linked, t.Bandwidth, t.Level = moved, link, m.Reach(), move.Level
	if t.Memory = move.Seconds * 1e9; t.Memory > 0 {
		t.Bandwidth = bandwidth(m, moved, move)
	}
	t.Measured = t.Measured || moved > 0 && t.Bandwidth != m.Bandwidth
	t.Compute, t.Launch = w.ns(m, path(e.Op))*times, m.Latency(t.Threads)*1e9
	if link > 0 && m.HostLink > 0 {
		t.LinkRate, t.Link = m.HostLink, float64(link)/m.HostLink*1e9
	}
	return t, true
}

// bandwidth is that of a move of so many bytes: the machine's, or what a mix of reads and
// writes makes of it where they lie.
func bandwidth(m *machine.Machine, moved int64, move machine.Move) float64 {
	if move.Level == "" && m.Read == 0 {
		return m.Reach()
	}
	return float64(moved) / move.Seconds
}

// rank puts contractions first.
func rank(u unit) int {
	if u.contraction {
		return 0
	}
	return 1
}
