package cost

import (
	"fmt"
	"math"
	"math/bits"

	"dmir/analysis/machine"
	"dmir/analysis/memory"
	"dmir/dialect/dim"
	"dmir/dialect/flatten"
	"dmir/dialect/ir"
	"dmir/dialect/loc"
	"dmir/dialect/op"
)

// Amount is what a part of a function costs, in whole numbers that add up.
type Amount struct {
	TimeNs, FLOP, Read, Written, Sent int64 // Read, Written and Sent in bytes
}

// Plus is the sum of a and b.
func (a Amount) Plus(b Amount) Amount {
	return Amount{a.TimeNs + b.TimeNs, a.FLOP + b.FLOP, a.Read + b.Read, a.Written + b.Written, a.Sent + b.Sent}
}

// Moved is Read + Written.
func (a Amount) Moved() int64 { return a.Read + a.Written }

// fields are the numbers of a, to be read and written.
func (a *Amount) fields() [5]*int64 {
	return [5]*int64{&a.TimeNs, &a.FLOP, &a.Read, &a.Written, &a.Sent}
}

// Split divides a by weights, each number by itself, so that the parts add up to it. What has no weight at all in a number is
// divided equally.
func (a Amount) Split(weights []Amount) []Amount {
	out := make([]Amount, len(weights))
	of := make([]int64, len(weights))
	for k, whole := range a.fields() {
		for i := range weights {
			of[i] = *weights[i].fields()[k]
		}
		for i, part := range apportion(*whole, of) {
			*out[i].fields()[k] = part
		}
	}
	return out
}

// apportion divides whole in proportion to weights, which are not negative, into parts that add up to it.
func apportion(whole int64, weights []int64) []int64 {
	out := make([]int64, len(weights))
	if whole == 0 || len(weights) == 0 {
		return out
	}
	var sum uint64
	shift := 0
	for _, w := range weights {
		var carry uint64
		if sum, carry = bits.Add64(sum, uint64(w)>>shift, 0); carry != 0 || sum > 1<<62 {
			sum, shift = sum>>8, shift+8
		}
	}
	if shift > 0 {
		sum = 0
		for _, w := range weights {
			sum += uint64(w) >> shift
		}
	}
	// The parts are the steps of a running sum, rounded: no part is off by more than one, and one pass is enough.
	var before uint64
	var given int64
	for i, w := range weights {
		n, of := uint64(w)>>shift, sum
		if sum == 0 {
			n, of = 1, uint64(len(weights))
		}
		before += n
		hi, lo := bits.Mul64(uint64(whole), before)
		q, _ := bits.Div64(hi, lo, of)
		out[i] = int64(q) - given
		given = int64(q)
	}
	return out
}

// Leaf is an op's part of what a function costs: of one that runs by itself all of it, of one in a kernel the part that is
// due to it.
type Leaf struct {
	Op     *ir.Op
	Loc    loc.Loc // with the calls on the way
	Step   *Entry  // of the function's own, in which it is
	Launch int     // leaves of one kernel have the same, of calls, gradients and loops each op its own
	Shared bool    // with other ops of a kernel
	Amount
}

// mostLeaves bounds them: calls are not opened beyond.
const mostLeaves = 1 << 20

// Leaves are the parts of f's cost on m, op by op, those in loops as often as they run. They add up to the figures of JSON.
// measured, if not nil, are times of ops in a run, in nanoseconds, in place of predicted ones: of those of f's own block, and of
// some in its loops. An error says which sizes are open.
func (f *Func) Leaves(m *machine.Machine, measured map[*ir.Op]int64) ([]Leaf, Amount, error) {
	f = f.PerDevice()
	w := &leaves{t: timer{m}, f: f, measured: measured, in: f.body.in, at: map[loc.Loc]*loc.Mapper{}}
	var total Amount
	for _, e := range f.Entries {
		if !e.Known {
			continue // it is not counted
		}
		a := w.own(e)
		a.TimeNs = int64(math.Round(w.t.entry(e).Ns))
		if measured != nil {
			a.TimeNs = measured[e.Op]
		}
		total = total.Plus(a)
		w.amounts = append(w.amounts, a)
		w.steps = append(w.steps, e)
	}
	if w.err != nil {
		return nil, Amount{}, w.err
	}
	if measured == nil && f.talks() {
		w.expose(&total)
	}
	for i, e := range w.steps {
		w.step, w.launch = e, w.launch+1
		w.spread(e, w.amounts[i], nil, false)
	}
	return w.out, total, w.err
}

// leaves finds them.
type leaves struct {
	t timer
	f *Func

	measured map[*ir.Op]int64
	in       *scope                  // of the function whose ops are spread
	at       map[loc.Loc]*loc.Mapper // of calls
	steps    []*Entry
	amounts  []Amount
	step     *Entry
	launch   int
	out      []Leaf
	err      error
}

// expose takes out of the times of steps what of the collectives runs beside kernels.
func (w *leaves) expose(total *Amount) {
	o := w.f.Overlap(w.t.m)
	if !o.Known {
		return
	}
	alone := map[*Entry]float64{}
	for _, s := range o.Spans {
		alone[s.Entry] = s.End - s.Start
		if s.Comm {
			alone[s.Entry] = s.Exposed
		}
	}
	weights := make([]int64, len(w.steps))
	for i, e := range w.steps {
		ns, known := alone[e]
		if !known {
			ns = float64(w.amounts[i].TimeNs)
		}
		weights[i] = picoseconds(ns)
	}
	total.TimeNs = int64(math.Round(o.Ns))
	for i, ns := range apportion(total.TimeNs, weights) {
		w.amounts[i].TimeNs = ns
	}
}

// own is what e costs, its time in picoseconds: as weights are, so that short ops count.
func (w *leaves) own(e *Entry) Amount {
	ns, known := float64(w.measured[e.Op]), w.measured[e.Op] > 0
	if !known {
		ns = w.t.entry(e).Ns
	}
	a := Amount{TimeNs: picoseconds(ns), FLOP: w.number(e.FLOP), Read: w.number(e.Read), Written: w.number(e.Written)}
	if sent, known := e.Sent(); known {
		a.Sent = TotalSent(sent)
	}
	return a
}

func picoseconds(ns float64) int64 { return int64(math.Round(min(max(ns, 0)*1000, 1<<60))) }

func (w *leaves) number(d dim.Dim) int64 {
	n, known := d.Int()
	if !known && w.err == nil {
		w.err = fmt.Errorf("it depends on %s", d.Symbols()[0])
	}
	return max(n, 0)
}

// spread gives a, what e costs, to the ops that it is due to. call is the location of the call around.
func (w *leaves) spread(e *Entry, a Amount, call loc.Loc, shared bool) {
	switch {
	case e.callee != nil && len(w.out) < mostLeaves:
		in := w.in
		w.in = e.callee.in
		w.children(e, a, e.callee.entries, w.own, nil, w.located(e.Op.Loc, call), shared, true)
		w.in = in
	case e.parts != nil:
		w.children(e, a, e.parts, w.own, nil, call, shared, false)
	case e.Fused && len(e.Inner) > 0:
		w.children(e, a, w.alone(e), w.weight, nil, call, shared || len(e.Inner) > 1, false)
	case len(e.Inner) > 0 || len(e.begin)+len(e.round) > 0:
		all := append(append(append([]*Entry{}, e.Inner...), e.round...), e.begin...)
		times := make([]int64, len(all))
		for i := range all {
			if times[i] = 1; i < len(e.Inner)+len(e.round) {
				times[i] = max(w.number(e.Trips), 0)
			}
		}
		w.children(e, a, all, w.own, times, call, shared, true)
	default:
		w.out = append(w.out, Leaf{e.Op, w.located(e.Op.Loc, call), w.step, w.launch, shared, a})
	}
}

// children spreads a over parts of e by what weight says of each, as often as times says, nil for once.
// apart says that each part is launched by itself.
func (w *leaves) children(e *Entry, a Amount, parts []*Entry, weight func(*Entry) Amount, times []int64, call loc.Loc, shared, apart bool) {
	weights := make([]Amount, len(parts))
	var sum Amount
	for i, p := range parts {
		if p.Known {
			weights[i] = weight(p)
		}
		if times != nil {
			for _, n := range weights[i].fields() {
				if hi, lo := bits.Mul64(uint64(*n), uint64(times[i])); hi == 0 && lo < 1<<62 {
					*n = int64(lo)
				} else {
					*n = 1 << 62
				}
			}
		}
		sum = Amount{sum.TimeNs | weights[i].TimeNs, sum.FLOP | weights[i].FLOP, sum.Read | weights[i].Read, sum.Written | weights[i].Written, sum.Sent | weights[i].Sent}
	}
	// What none of the parts would cost by itself is that of e.
	var rest Amount
	for k, n := range sum.fields() {
		if *n == 0 {
			*rest.fields()[k], *a.fields()[k] = *a.fields()[k], 0
		}
	}
	if rest != (Amount{}) || len(parts) == 0 {
		w.out = append(w.out, Leaf{e.Op, w.located(e.Op.Loc, call), w.step, w.launch, shared, rest})
	}
	for i, part := range a.Split(weights) {
		if apart {
			w.launch++
		}
		w.spread(parts[i], part, call, shared)
	}
}

// located is l in a function that is called at call.
func (w *leaves) located(l, call loc.Loc) loc.Loc {
	if call == nil {
		return l
	}
	if w.at[call] == nil {
		w.at[call] = loc.From(call)
	}
	return w.at[call].Of(l)
}

// alone are the ops inside e, a kernel, each with the cost that it would have as a kernel of its own.
func (w *leaves) alone(e *Entry) []*Entry {
	defer w.f.lock()()
	out := make([]*Entry, len(e.Inner))
	for i, p := range e.Inner {
		out[i] = w.in.entry(p.Op, false)
	}
	return out
}

// weight is own of an op in a kernel, without what a launch of its own would take.
func (w *leaves) weight(e *Entry) Amount {
	a := w.own(e)
	m := w.t.m
	seconds := max(float64(a.FLOP)/m.Rate(e.Class == op.ClassContraction, e.Elem, ""), float64(a.Moved())/m.Reach())
	if a.TimeNs = picoseconds(seconds * 1e9); math.IsNaN(seconds) { // there is no rate for the type
		a.TimeNs = 0
	}
	return a
}

// Run is the cost of what each device runs: of the pieces of values, where f's text divides them; else f itself.
func (f *Func) Run() *Func {
	if f.device != nil {
		return f.device
	}
	if d, _ := f.Divide(); d != nil {
		return d.Device
	}
	return f
}

// Lay is the plan of the memory of what each device runs, and from gives its ops for those of the plan.
func (f *Func) Lay() (plan *memory.Plan, from flatten.From, err error) {
	r := f.Run()
	return NewFlow(r.Func, r.body.in.m, r.body.in.bind).Lay()
}
