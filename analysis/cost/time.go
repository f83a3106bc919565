package cost

import (
	"math"
	"math/bits"
	"slices"
	"strings"

	"dmir/analysis/machine"
	"dmir/dialect/ir"
	"dmir/dialect/op"
)

// The bounds: which term of an op's time is the largest.
const (
	Compute = "compute"
	Memory  = "memory"
	L2      = "L2"      // operands of tiles, from the level-2 cache
	Latency = "latency" // of the memory
	Launch  = "launch"
	Tail    = "tail"    // of multiprocessors that wait for the last tiles
	Network = "network" // of collectives
)

// Time is a predicted duration.
type Time struct {
	Ns    float64
	Bound string // Compute, Memory, Latency or Network; "" where nothing runs or it is not known
	Known bool   // false where the cost depends on an unbound symbol or on an unknown op
}

// Time is e's time on m: what a kernel takes to start, and the longer of what it computes and
// what it moves (TimeTerms). In a kernel the tensor cores and the vector
// units work side by side, so that the slower of the two counts; a call, an if
// and a while take the sum of what they run. Ops inside a kernel take no time
// of their own.
func (e *Entry) Time(m *machine.Machine) Time {
	t := timer{m}
	return t.entry(e)
}

// Time is the sum of the times of f's entries, less what of its collectives runs beside
// kernels (Overlap); the bound is that of the terms that make up most of the sum.
func (f *Func) Time(m *machine.Machine) Time {
	t := f.serial(m)
	if t.Known && f.talks() {
		t.Ns = f.Overlap(m).Ns
	}
	return t
}

// serial is the sum of the times of f's entries.
func (f *Func) serial(m *machine.Machine) Time {
	t := timer{m}
	x, done := f.timed.Load(m)
	if !done {
		f.visit("cost", len(f.Entries))
		x, _ = f.timed.LoadOrStore(m, t.tally(f.Entries))
	}
	return x.(*tally).time()
}

// tally is the sum of the times of entries. It is exact, so that taking out what
// was put in leaves what was there before, and the order does not matter.
type tally struct {
	unknown int // entries whose time is not known
	all     fixed
	by      [len(bounds)]fixed
}

// add adds an entry's time, sign times: 1 or -1.
func (y *tally) add(x Time, sign int64) {
	if !x.Known {
		y.unknown += int(sign)
		return
	}
	y.all.add(x.Ns, sign)
	for i, b := range bounds {
		if x.Bound == b {
			y.by[i].add(x.Ns, sign)
		}
	}
}

func (y *tally) time() Time {
	if y.unknown > 0 {
		return Time{}
	}
	total, most := Time{Ns: y.all.float(), Known: true}, 0.0
	for i, b := range bounds {
		if ns := y.by[i].float(); ns > most {
			total.Bound, most = b, ns
		}
	}
	return total
}

// fixed is a number of 128 bits, 60 of them behind the point: room for the
// digits of all times from a hundredth of a nanosecond to centuries.
type fixed struct {
	hi int64
	lo uint64
}

func (f *fixed) add(ns float64, sign int64) {
	ns = min(ns, 1e19)
	hi := math.Floor(ns / 16)
	lo := uint64((ns - 16*hi) * (1 << 60))
	var carry uint64
	if sign > 0 {
		f.lo, carry = bits.Add64(f.lo, lo, 0)
	} else {
		f.lo, carry = bits.Sub64(f.lo, lo, 0)
	}
	f.hi += sign * (int64(hi) + int64(carry))
}

func (f fixed) float() float64 { return float64(f.hi)*16 + float64(f.lo)/(1<<60) }

func (t timer) tally(entries []*Entry) *tally {
	y := &tally{}
	for _, e := range entries {
		t.count(y, e, 1)
	}
	return y
}

// count adds e to y, sign times. An op on tuples is its members, so that the sum is theirs to the last digit.
func (t timer) count(y *tally, e *Entry, sign int64) {
	if e.Known && !e.inside && e.callee == nil && e.parts != nil {
		for _, p := range e.parts {
			t.count(y, p, sign)
		}
		return
	}
	y.add(t.entry(e), sign)
}

// timer times entries on one machine; a callee, which many calls may share,
// once and for all.
type timer struct{ m *machine.Machine }

func (t timer) sum(entries []*Entry) Time { return t.tally(entries).time() }

// bounds are in the order in which the first of equal ones counts.
var bounds = [...]string{Compute, Memory, L2, Latency, Launch, Tail, Network}

func (t timer) entry(e *Entry) Time {
	switch {
	case !e.Known || t.m == nil:
		return Time{}
	case e.inside:
		return Time{Known: true}
	case e.callee != nil:
		if x, done := e.callee.timed.Load(t.m); done {
			return x.(Time)
		}
		x := t.sum(e.callee.entries)
		e.callee.timed.Store(t.m, x)
		return x
	case e.parts != nil:
		return t.sum(e.parts)
	case communicates(e.Op):
		return t.collective(e)
	case len(e.Inner) > 0 && !e.Fused:
		n, ok := e.Trips.Int()
		x := t.sum(slices.Concat(e.Inner, e.round))
		if !ok || !x.Known {
			return Time{}
		}
		x.Ns *= float64(n)
		if len(e.begin) > 0 {
			begin := t.sum(e.begin)
			x.Ns += begin.Ns
			x.Known = begin.Known
		}
		return x
	}
	x, ok := e.terms(t.m, nil)
	if !ok {
		return Time{Known: x.nothing}
	}
	return Time{Ns: x.ns(), Known: true, Bound: x.bound()}
}

// collective is the time of e on its links: no less than what it moves in memory.
func (t timer) collective(e *Entry) Time {
	read, ok1 := e.Read.Int()
	written, ok2 := e.Written.Int()
	if e.Comm == nil || !ok1 || !ok2 {
		return Time{}
	}
	return e.Comm.time(t.m, read, written)
}

// time is that of a collective which reads and writes so many bytes of memory. Values that are one are copied into one buffer
// and out of it where processors exchange; GPUs begin their exchanges together.
func (c *Collective) time(m *machine.Machine, read, written int64) Time {
	x, err := c.Estimate(m)
	if err != nil {
		return Time{}
	}
	seconds := max(x.Time, m.Move(read, written, 0).Seconds)
	if m.CPU && c.values > 1 {
		seconds += m.Move(read+written, read+written, 0).Seconds
	}
	return Time{Ns: seconds * 1e9, Bound: Network, Known: true}
}

// TileAttr is the attribute in which a contraction records how it is cut into
// tiles, "mma 128x128x32 / 4": path, block, and how blocks share operands and sums. The
// pass kernels writes it; one that is there is kept where it fits.
const TileAttr = op.TileAttr

// path is how o, a step, uses the tensor cores; "" where that is not decided yet.
func path(o *ir.Op) string { return pathOf(o.Str(TileAttr)) }

// pathOf is that of a tile.
func pathOf(tile string) string {
	path, _, _ := strings.Cut(tile, " ")
	return path
}
