package cost

import (
	"cmp"
	"fmt"
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
	FLOP        int64      // or, with Elements, elements
	Rate        float64    // that kernels reach on the machine, FLOP/s
	Elements    bool       // the op has no FLOP
	Alone       bool       // on a processor: not beside what comes from memory
}

// Ns is how long the work takes.
func (w Work) Ns() float64 { return float64(w.FLOP) / w.Rate * 1e9 }

// TimeTerms are the terms of a time: Launch + Latency + max(max(Compute, L2) + Tail, Tables, Longest, Memory, Link), in
// nanoseconds, and the figures of the machine that they come from. Rows that a kernel reads by their numbers come from the level-2 cache
// (Near) or, where it does not hold them until they are read again, from the memory a further time (Again). On a processor (OneUnit) products and rows that are reduced do
// not run beside what comes from memory: their time is added to the larger of the rest.
type TimeTerms struct {
	Work                []Work  // contractions first; units work side by side
	Moved               int64   // bytes
	Near, Again         int64   // bytes of rows read by number: from the caches, and from the memory beyond what is among Moved
	Level               string  // where they lie: "L2", "L2 and L3"; "" for the memory
	Linked              int64   // bytes of it that cross the link to the host
	Bandwidth, LinkRate float64 // bytes/s; LinkRate is 0 where the machine names none

	Compute float64 // the slower unit's
	L2      float64 // operands of the tiles of contractions, from the level-2 cache
	Tables  float64 // rows read by number, from the caches
	Longest float64 // those of the longest row of a sparse matrix, which one block or thread reads
	Tail    float64 // edges that tiles pad, and multiprocessors that wait for the last ones
	Memory  float64
	Link    float64
	Latency float64 // of the memory
	Launch  float64
	Kernels int64 // that run one after the other, of which Latency and Launch are the sums

	Threads  int      // of a processor that run it, where not all do; else 0
	OneUnit  bool     // works take turns on one unit, and their times add up
	Measured bool     // one of the rates is a ceiling of the machine, not its datasheet's
	Assumed  []string // constants of the machine among these figures that are a relative's, as keys of its file

	products, vector float64 // of contractions with their tiles, and of the rest
	nothing          bool    // it takes no time
}

// Ns is the time that the terms make.
func (t TimeTerms) Ns() float64 { return t.ns() }

func (t *TimeTerms) ns() float64 {
	if t.OneUnit {
		return t.products + max(max(t.vector, t.Memory)+t.Tables, t.Longest, t.Link) + t.Latency + t.Launch // rows that are read by number are waited for
	}
	return max(t.products, t.vector, t.Tables, t.Longest, t.Memory, t.Link) + t.Latency + t.Launch
}

// NearText is "67.1 MB of rows / 6.00 TB/s in L2", or on a processor in its caches.
func (t TimeTerms) NearText(m *machine.Machine) string {
	where := "L2"
	if m.CPU {
		where = "the caches"
	}
	return units.Bytes(t.Near) + " of rows / " + units.Bandwidth(float64(t.Near)/t.Tables*1e9) + " in " + where
}

// bound is the largest term of the time.
func (t *TimeTerms) bound() string {
	bound, most := Memory, max(t.Memory, t.Link)
	products := t.products
	if t.OneUnit {
		products += t.vector
	}
	if products > most || t.vector > most {
		bound, most = Compute, t.vector
		if products > t.vector {
			most = max(t.Compute, t.L2)
			if t.L2 > t.Compute {
				bound = L2
			}
			if t.Tail > most {
				bound, most = Tail, t.Tail
			}
		}
	}
	if t.Tables > most {
		bound, most = L2, t.Tables
	}
	if t.Longest > most {
		bound, most = Tail, t.Longest
	}
	if t.Latency > most {
		bound, most = Latency, t.Latency
	}
	if t.Launch > most {
		bound = Launch
	}
	return bound
}

// LaunchText is Launch in words.
func (t TimeTerms) LaunchText(m *machine.Machine) string {
	if t.Threads == 1 {
		return units.Time(t.Launch) + " on one thread"
	}
	if t.Kernels > 1 {
		return fmt.Sprintf("%s in a graph for %d kernels", units.Time(t.Launch), t.Kernels)
	}
	return m.LaunchText()
}

// MovedText is "50.3 MB / 4.30 TB/s", with the level of the caches.
func (t TimeTerms) MovedText() string {
	text := units.Bytes(t.Moved)
	if t.Again > 0 {
		text = units.Bytes(t.Moved+t.Again) + ", of which " + units.Bytes(t.Again) + " again,"
	}
	text += " / " + units.Bandwidth(t.Bandwidth)
	if t.Level != "" {
		text += " in " + t.Level
	}
	return text
}

// Text is "34.4 GFLOP / 788 TFLOP/s", with the op where the rate is its own: "262 k elements / 2.00 G/s of transpose".
func (w Work) Text() string {
	text := units.FLOP(w.FLOP) + " / " + units.Rate(w.Rate)
	if w.Elements {
		text = units.Count(float64(w.FLOP)) + " elements / " + units.Count(w.Rate) + "/s"
	}
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
	if t, ok = e.terms(m, &w); !ok {
		return t, false
	}
	times := slower(m, t.Threads)
	slices.SortFunc(w.parts, func(a, b part) int {
		return cmp.Or(rank(a.unit)-rank(b.unit), cmp.Compare(a.elem, b.elem), cmp.Compare(a.op, b.op))
	})
	for _, p := range w.parts {
		rate := float64(p.flop) / p.ns * 1e9
		t.Work = append(t.Work, Work{p.contraction, p.elem, p.op, p.flop, rate / times, p.elements, t.OneUnit && (w.rows || p.contraction && !w.streams)})
		t.Measured = t.Measured || m.Rate(p.contraction, p.elem, "") != m.Peak(p.contraction, p.elem)
		t.assume(m, machine.CeilingOf(p.contraction, p.elem))
	}
	if t.Moved > 0 {
		t.Measured = t.Measured || t.Bandwidth != m.Bandwidth
		t.assume(m, machine.KeyBandwidth)
	}
	if t.L2 > 0 || t.Tables > 0 {
		t.assume(m, machine.KeyL2Bandwidth)
	}
	if t.Latency > 0 {
		t.assume(m, machine.KeyMemoryLatency)
	}
	if m.Dependent > 0 {
		t.assume(m, machine.KeyDependent)
	} else {
		t.assume(m, machine.KeyLaunch)
	}
	return t, true
}

// Computes is how long e computes on m, in ns: what it moves and what a kernel adds left out. It is 0 where that is a formula.
func (e *Entry) Computes(m *machine.Machine) float64 {
	return e.ComputesWith(m, e.Op.Str(TileAttr))
}

// assume notes the constant of m with this key if it is assumed.
func (t *TimeTerms) assume(m *machine.Machine, key string) {
	if m.Assumed[key] != "" && !slices.Contains(t.Assumed, key) {
		t.Assumed = append(t.Assumed, key)
	}
}

// terms are those of a kernel on m; ok is false where they are not known or it takes no time. Its parts are noted in w
// where that is given.
func (e *Entry) terms(m *machine.Machine, w *work) (t TimeTerms, ok bool) {
	return e.running(m, runningOf(e.Op), w)
}

// running are the terms of a kernel that runs as r says.
func (e *Entry) running(m *machine.Machine, r Running, w *work) (t TimeTerms, ok bool) {
	parts := w != nil
	if !parts {
		w = new(work)
	}
	read, ok1 := e.Read.Int()
	written, ok2 := e.Written.Int()
	link, ok3 := e.link.Int()
	if !ok1 || !ok2 || !ok3 {
		return t, false
	}
	t.Threads = e.threads(m, read+written)
	w.threads = t.Threads
	if !w.add(m, e, r.Tile, parts) {
		return t, false
	}
	moved := read + written
	if moved == 0 && w.none() {
		t.nothing = true
		return t, false
	}
	times := slower(m, t.Threads)
	t.OneUnit = m.OneUnit()
	again, first, long := e.tableTerms(m, &t, moved)
	w.vector += first / times
	w.rows = w.rows || t.OneUnit && long
	if w.rows {
		w.tensor, w.vector = w.tensor+w.vector, 0
	}
	if ns := float64(r.Epilogue); ns > 0 && w.tensor > 0 && !m.CPU {
		w.tensor, w.tail = w.tensor+ns, w.tail+ns
	}
	t.products, t.vector = w.tensor*times, w.vector*times
	t.Compute, t.L2, t.Tail = max(w.compute, w.vector)*times, w.l2*times, w.tail*times
	if t.OneUnit {
		t.Compute = t.products + t.vector - t.Tail
	}
	move := m.Move(read+again, written, t.Threads)
	t.Moved, t.Linked, t.Bandwidth, t.Level, t.Memory = moved, link, m.Reach(), move.Level, move.Seconds*1e9
	if t.Memory > 0 {
		t.Bandwidth = bandwidth(m, moved+again, move)
	}
	if b := float64(r.Bandwidth); b > 0 && moved > 0 && !m.CPU && float64(moved+again)/b*1e9 > t.Memory {
		t.Memory, t.Bandwidth = float64(moved+again)/b*1e9, b
	}
	if link > 0 && m.HostLink > 0 {
		t.LinkRate, t.Link = m.HostLink, float64(link)/m.HostLink*1e9
	}
	t.Latency, t.Launch, t.Kernels = m.Fill()*1e9, m.Latency(t.Threads)*1e9, 1
	if n := r.Launches; n > 1 && !m.CPU {
		t.Latency, t.Launch, t.Kernels = t.Latency*float64(n), t.Launch*float64(n), n
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
