// Package cost says what every op, kernel and function computes and moves, and
// how long that takes on a machine. The definitions:
//
//   - FLOP: what the registry counts for the op.
//   - read, written: the bytes that cross the boundary of the op, or of the
//     kernel, from and to its memory space. An op reads each value among its
//     operands once, at the value's own size, and writes each result once. Ops
//     that touch a part of a value (slices, gathers, updates) move that part. A
//     reshape and the inside of a dm.kernel move nothing.
//   - moved: read + written.
//   - minimum: what the function would move as one kernel: the bytes of its used
//     arguments and of its results.
//   - waste: moved − minimum.
//   - time: max(FLOP / peak, moved / bandwidth) + launch latency; an op that
//     neither computes nor moves takes none.
//
// All counts are dims: a cost that depends on an unbound symbol stays a formula.
package cost

import (
	"slices"
	"sync"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// Entry is the cost of one op.
type Entry struct {
	Op      *ir.Op
	Class   op.Class
	FLOP    dim.Dim
	Read    dim.Dim    // bytes
	Written dim.Dim    // bytes
	Elem    types.Elem // of what it computes on; with Class it decides the peak
	Known   bool       // false: an op dmir does not know or could not read; nothing is counted
	Line    int        // 1-based; 0 for an op that has no place in the text

	// Inner are the ops of the entry's regions. Those of a kernel (Fused) move
	// nothing of their own; those of an if (the costlier branch) and of a while
	// (both regions, once) run one after the other. The ops in regions of an
	// unknown op are listed but not counted.
	Inner []*Entry
	Fused bool

	Trips dim.Dim // how often Inner runs: 1 but for a while

	callee *body   // of a call
	link   dim.Dim // bytes that cross the link to the host
	inside bool    // of a kernel
}

// Moved is Read + Written.
func (e *Entry) Moved() dim.Dim { return e.Read.Add(e.Written) }

// Func is the cost of a function.
type Func struct {
	Func    *ir.Func
	Entries []*Entry
	FLOP    dim.Dim
	Read    dim.Dim
	Written dim.Dim
	Minimum dim.Dim
	Peak    dim.Dim // largest sum of live bytes in device memory at any op; the first of Peaks

	// Peaks are the candidates for the peak none of which is the largest for
	// all values of the unbound symbols: one where nothing is unbound, none
	// where there are too many symbols to say.
	Peaks []dim.Dim

	Unknown int // entries, at any depth, of which nothing is counted

	timed sync.Map // *machine.Machine to Time
	find  sync.Once
	byOp  map[*ir.Op]*Entry
	extra []*Entry // of branches that are not taken; found but not counted
}

// Moved is Read + Written.
func (f *Func) Moved() dim.Dim { return f.Read.Add(f.Written) }

// Waste is Moved − Minimum.
func (f *Func) Waste() dim.Dim { return f.Moved().Sub(f.Minimum) }

// Find is the entry of o at any depth, nil where it has none. Safe for
// concurrent use.
func (f *Func) Find(o *ir.Op) *Entry {
	f.find.Do(func() {
		f.byOp = make(map[*ir.Op]*Entry, len(f.Entries))
		f.Walk(func(e *Entry) { f.byOp[e.Op] = e })
		walk(f.extra, func(e *Entry) { f.byOp[e.Op] = e })
	})
	return f.byOp[o]
}

// Walk visits every entry, at any depth, in textual order.
func (f *Func) Walk(visit func(*Entry)) { walk(f.Entries, visit) }

func walk(entries []*Entry, visit func(*Entry)) {
	for _, e := range entries {
		visit(e)
		walk(e.Inner, visit)
	}
}

// Unbound is the sorted list of the symbols that f's cost depends on.
func (f *Func) Unbound() []string {
	var names []string
	for _, d := range append([]dim.Dim{f.FLOP, f.Read, f.Written, f.Minimum}, f.Peaks...) {
		names = append(names, d.Symbols()...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
