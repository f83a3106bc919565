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
	// (both regions, once) run one after the other.
	Inner []*Entry
	Fused bool

	Trips dim.Dim // how often Inner runs; 1 but for a while

	callee *body   // of a call
	link   dim.Dim // bytes that cross the link to the host
}

// body is a list of entries that several calls share.
type body struct {
	entries []*Entry
	bytes   dim.Dim // peak bytes beyond the callee's arguments and results
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
	Peak    dim.Dim // largest sum of live bytes at any op; the first of Peaks

	// Peaks are the candidates for the peak none of which is the largest for
	// all values of the unbound symbols; one where nothing is unbound.
	Peaks []dim.Dim

	Unknown int // entries, at any depth, of which nothing is counted

	byOp map[*ir.Op]*Entry
}

// Moved is Read + Written.
func (f *Func) Moved() dim.Dim { return f.Read.Add(f.Written) }

// Waste is Moved − Minimum.
func (f *Func) Waste() dim.Dim { return f.Moved().Sub(f.Minimum) }
