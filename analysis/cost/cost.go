// Package cost describes what every op, kernel and function computes and moves, and
// how long that takes on a machine. The definitions:
//
//   - FLOP: what the registry counts for the op.
//   - read, written: the bytes that cross the boundary of the op, or of the
//     kernel, from and to its memory space. An op reads each value among its
//     operands once, at the value's own size, and writes each result once. Ops
//     that touch a part of a value (slices, gathers) move that part, and so do
//     updates of a part where they are done in place (op.InPlace); elsewhere they
//     move the copy. A reshape, a constant and the inside of a dm.kernel move nothing; a
//     kernel reads the constants inside it that are data (op.Loads).
//   - moved: read + written.
//   - minimum: what the function would move as one kernel: the bytes of its used
//     arguments, of its constants of several elements and of its results.
//   - waste: moved − minimum.
//   - time: what a kernel takes to start, and the longer of what it computes and moves
//     (TimeTerms); an op that neither computes nor moves takes none.
//   - sent: bytes that leave a device, by axes of the mesh (shard.TransferOf). A collective
//     takes what package network predicts, and no less than its own moves in memory.
//   - exposed: the time of collectives in which no kernel runs (Overlap).
//
// The cost of a function whose values are divided over a mesh is that of what each device
// runs (Divided), and a line has the costs of the ops made of it.
//
// All counts are dims: a cost that depends on an unbound symbol stays a formula.
package cost

import (
	"slices"
	"sort"
	"sync"

	"dmir/analysis/machine"
	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/shard"
	"dmir/dialect/types"
)

// Entry is the cost of one op.
type Entry struct {
	Op      *ir.Op
	FLOP    dim.Dim
	Read    dim.Dim    // bytes
	Written dim.Dim    // bytes
	Elem    types.Elem // of what it computes on; with Class it decides the peak
	Class   op.Class
	Known   bool // false: an op dmir does not know or could not read; nothing is counted
	Fused   bool // see Inner
	inside  bool // of a kernel
	// follows is set if the cost depends on what other ops do with the operands:
	// whether an update is done in place.
	follows bool
	in      *ir.Module // whose text Op is in, nil for none
	// elements are those of the first result, of what reduces rows those of the first operand, and rows those that it reduces;
	// 0 where they are not known, or it has none.
	elements, rows int64

	*Within // never nil; to be written through own alone
}

// Within is what most entries of a long text do not have. Entries without any share one value, which keeps
// an entry at half the size.
type Within struct {
	// Inner are the ops of the entry's regions. Those of a kernel (Fused) move
	// nothing of their own; those of an if (the more expensive branch) and of a while
	// (both regions, once) run one after the other. The ops in regions of an
	// unknown op are listed but not counted.
	Inner []*Entry
	Trips dim.Dim // how often Inner runs: 1 but for a while

	// begin are the copies that a while makes of what it begins with, round those
	// that hand values on at the end of each run of Inner.
	begin, round []*Entry

	parts []*Entry // of an op on tuples: those of its members

	// Comm is what the devices of a mesh do together in the op; nil of other ops, and where
	// that depends on unbound symbols.
	Comm *Collective

	// Of contractions whose sizes are known: the matrices, or the scores.
	product   machine.Product
	phases    machine.Product // of a convolution whose image has zeros between its elements
	attention *machine.Attention
	segments  *machine.Segments
	sort      *machine.Sort // of lines whose sizes are known

	tables []table // that the op reads row by row
	uneven int64   // segments that it walks with another length than the one before

	callee *body   // of a call
	link   dim.Dim // bytes that cross the link to the host
}

// nothing is the Within of entries that have none. It must not be written to.
var nothing = &Within{Trips: dim.Const(1)}

// own is the entry's Within, to be written to.
func (e *Entry) own() *Within {
	if e.Within == nothing {
		e.Within = &Within{Trips: nothing.Trips}
	}
	return e.Within
}

// Line is the line of the op, 1-based; 0 for an op that has no place in the text.
func (e *Entry) Line() int {
	if e.in == nil || e.in.Src == nil || e.Op.Span.Len() == 0 {
		return 0
	}
	return e.in.Src.Pos(e.Op.Span.Start).Line + 1
}

// Moved is Read + Written.
func (e *Entry) Moved() dim.Dim { return e.Read.Add(e.Written) }

// Copies are those that a loop makes once, of what it begins with, and those of
// each time that Inner runs, of what that hands on.
func (e *Entry) Copies() (begin, round []*Entry) { return e.begin, e.round }

// Func is the cost of a function.
type Func struct {
	Func    *ir.Func
	Entries []*Entry
	FLOP    dim.Dim
	Read    dim.Dim
	Written dim.Dim
	Unknown int // entries, at any depth, of which nothing is counted

	body        *body
	least       *dim.Dim  // the minimum; nil until it is asked for
	timed       *sync.Map // *machine.Machine to *tally, ofSends to *sends
	overlap     *sync.Map // *machine.Machine to Overlap
	device      *Func     // of the lines of a divided function: what each device runs
	divided     *Divided
	undivided   *shard.Problem
	shardings   *shard.Values
	unshardable *shard.Problem
	spread      bool // shardings are those of f as it stands
	marked      *marks
	memos       [2]shard.Memo
	turn        int      // the memo that shardings come from
	tried       bool     // divided and undivided are computed
	extra       []*Entry // of branches that are not taken; found but not counted
	// follow are the ops whose entries follow what others do; nil until a change
	// asks for them.
	follow map[*ir.Op]bool
	lead   *Entry // see leading; nil for not known
	odd    int    // entries that are not known
}

// Minimum is what f would move as one kernel: the bytes of its used arguments,
// of its constants of several elements and of its results. It is computed on first use.
func (f *Func) Minimum() dim.Dim {
	if f.body == nil {
		return dim.Dim{}
	}
	c := f.body.in.coster
	c.late.Lock()
	defer c.late.Unlock()
	if f.least == nil {
		n := c.scope(f.body.in.env).minimum(f.body.fn, f.marks().order())
		f.least = &n
	}
	return *f.least
}

// HasData reports whether constants of f are data in memory.
func (f *Func) HasData() bool {
	return f.body != nil && f.body.in.data.Load() && slices.ContainsFunc(f.Marked(), holdsData)
}

// Peaks are the candidates for the largest sum of live bytes in device memory
// at any op, none of which is the largest for all values of the unbound
// symbols: one where nothing is unbound, none where there are too many symbols
// to compare. They are computed on first use. Of a compiled function it is the size of its memory.
func (f *Func) Peaks() []dim.Dim {
	if f.body == nil {
		return nil
	}
	if f.planned() {
		return []dim.Dim{dim.Const(f.Func.Op.Int(op.WorkspaceAttr, 0))}
	}
	c := f.body.in.coster
	c.late.Lock()
	defer c.late.Unlock()
	return f.body.peaks()
}

// Peak is the first of Peaks, 0 where there is none.
func (f *Func) Peak() dim.Dim {
	if peaks := f.Peaks(); len(peaks) > 0 {
		return peaks[0]
	}
	return dim.Dim{}
}

// Module is the module that holds the function; nil of one without a body.
func (f *Func) Module() *ir.Module {
	if f.body == nil {
		return nil
	}
	return f.body.in.m
}

// Moved is Read + Written.
func (f *Func) Moved() dim.Dim { return f.Read.Add(f.Written) }

// Waste is Moved − Minimum.
func (f *Func) Waste() dim.Dim { return f.Moved().Sub(f.Minimum()) }

// Follows reports whether some ops of f cost what they do because of what others
// do: updates, which are in place where nothing else needs the value, and loops
// and branches, which copy what is not made where it belongs. A change of f may
// then save more than the costs of the changed ops alone.
func (f *Func) Follows() bool {
	return slices.ContainsFunc(f.Entries, func(e *Entry) bool { return e.follows || len(e.round) > 0 })
}

// Find is the entry of o at any depth, nil where it has none.
func (f *Func) Find(o *ir.Op) *Entry {
	if e := find(f.Entries, o); e != nil {
		return e
	}
	return find(f.extra, o)
}

// find looks where o stands, and everywhere for an op that has no place in the
// text.
func find(entries []*Entry, o *ir.Op) *Entry {
	if o.Span.Len() > 0 {
		i := sort.Search(len(entries), func(i int) bool { return entries[i].Op.Span.Start > o.Span.Start }) - 1
		if i >= 0 && entries[i].Op == o {
			return entries[i]
		}
		if i >= 0 && entries[i].Op.Span.Contains(o.Span.Start) {
			if e := find(entries[i].Inner, o); e != nil {
				return e
			}
		}
	}
	for _, e := range entries {
		if o.Span.Len() > 0 && e.Op.Span.Len() > 0 && !e.Op.Span.Contains(o.Span.Start) {
			continue
		}
		if e.Op == o {
			return e
		}
		if in := find(e.Inner, o); in != nil {
			return in
		}
	}
	return nil
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
	for _, d := range append([]dim.Dim{f.FLOP, f.Read, f.Written, f.Minimum()}, f.Peaks()...) {
		names = append(names, d.Symbols()...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
