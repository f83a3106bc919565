package cost

import (
	"slices"
	"strings"

	"dmir/analysis/machine"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// work is what a kernel computes.
type work struct {
	parts             []part  // FLOP by unit and element type
	tensor, vector    float64 // ns of contractions, with those that read their tiles or wait for the last ones, and of the rest
	compute, l2, tail float64 // ns: the terms of tensor
	threads           int     // of a processor that run the kernel, where not all do
	rows              bool    // a processor reduces long rows, or walks segments, and computes no time beside what comes from memory
	uneven            int64   // segments of another length than the one before, of which each costs a processor a branch that it did not foresee
	streams           bool    // a processor multiplies while an operand comes from memory
}

type part struct {
	unit
	flop int64
	ns   float64
}

type unit struct {
	contraction bool
	elem        types.Elem
	op          string // that m has a rate of its own for; else ""
	elements    bool   // which count, for want of FLOP
}

// unitOf is what e computes on.
func unitOf(m *machine.Machine, e *Entry) unit {
	u := unit{contraction: e.Class == op.ClassContraction, elem: e.Elem}
	if len(m.Ops) > 0 {
		if name := opName(e); m.OpRate(name, e.Elem) > 0 {
			u.op = name
		}
	}
	return u
}

// opName is the name of e's op in the file of a machine.
func opName(e *Entry) string { return strings.TrimPrefix(e.Op.Name, op.Prefix) }

// rate is the FLOP/s that kernels reach on the unit.
func (u unit) rate(m *machine.Machine, path string) float64 {
	if u.op != "" {
		return m.OpRate(u.op, u.elem)
	}
	return m.Rate(u.contraction, u.elem, path)
}

// threads is how many threads of m run e, which moves so much; 0 are all.
func (e *Entry) threads(m *machine.Machine, moved int64) int {
	if m.Grain == 0 {
		return 0
	}
	flop, _ := e.FLOP.Int() // what is a formula has no time
	return m.Threads(moved, flop)
}

// slower is how many times longer m computes on so many of its threads.
func slower(m *machine.Machine, threads int) float64 {
	if threads == 0 {
		return 1
	}
	return float64(m.SMs) / float64(threads)
}

// add counts e, or what is fused in it, by what m computes it on, with parts where they are wanted; tile is that of
// contractions. It is false where the FLOP are a formula.
func (w *work) add(m *machine.Machine, e *Entry, tile string, parts bool) bool {
	if e.Fused && len(e.Inner) > 0 {
		for _, i := range e.Inner {
			if !(m.OneUnit() && summed(i, e.Inner)) && !w.add(m, i, tile, parts) {
				return false
			}
		}
		return true
	}
	n, ok := e.FLOP.Int()
	if !ok {
		return false
	}
	u := unitOf(m, e)
	sorts := e.sort != nil && !m.CPU && m.L2Bandwidth > 0
	if n == 0 && (u.op != "" || sorts) {
		n, u.elements = e.elements, true
	}
	var byRow float64 // of what has no FLOP
	if n == 0 {
		if byRow = e.walked(m) + float64(e.numbered())*m.RowTime(opName(e), e.Elem)/float64(max(m.SMs, 1))*1e9; byRow > 0 {
			n, u.op, u.elements = e.elements, opName(e), true
		}
	}
	if n == 0 {
		return true
	}
	var ns float64
	if e.segments != nil && !m.CPU && m.L2Bandwidth > 0 {
		ns = m.SegmentTime(*e.segments) * 1e9
		w.vector += ns
	} else if byRow > 0 {
		ns = byRow + w.ends(m, e)
		w.vector += ns
	} else if sorts {
		ns = m.SortTime(*e.sort) * 1e9
		w.vector += ns
	} else if x, tiled := e.productTime(m, tile, w.threads); tiled {
		ns = x.Compute
		if x.Streams {
			w.streams = true
			w.vector += x.Total()
		} else {
			w.tensor += x.Total()
			w.l2 += x.L2
			w.tail += x.Tail
			w.compute += ns
		}
	} else {
		ns = float64(n) / u.rate(m, pathOf(tile)) * 1e9
		if e.rows > 0 && m.OneUnit() {
			w.rows = w.rows || e.elements/e.rows*e.Elem.Bytes() >= machine.LongRow
			ns += e.walked(m) + w.ends(m, e)
		}
		if u.contraction {
			w.tensor += ns
			w.compute += ns
		} else {
			w.vector += ns
		}
	}
	if !parts {
		return true
	}
	for i := range w.parts {
		if p := &w.parts[i]; p.unit == u {
			p.flop += n
			p.ns += ns
			return true
		}
	}
	w.parts = append(w.parts, part{u, n, ns})
	return true
}

// walked is how long m takes for the rows that e walks, beside their elements, in ns.
func (e *Entry) walked(m *machine.Machine) float64 {
	return float64(e.rows) * m.RowTime(opName(e), e.Elem) / float64(max(m.SMs, 1)) * 1e9
}

// ends is how long m takes for ends of e's segments that it did not foresee, in ns. Ops of a kernel walk segments together.
func (w *work) ends(m *machine.Machine, e *Entry) float64 {
	more := max(0, e.uneven-w.uneven)
	w.uneven += more
	return float64(more) * m.Mispredict / float64(max(m.SMs, 1)) * 1e9
}

// summed reports whether e, one of the ops of a kernel, is a product that another one sums: one instruction multiplies and adds.
func summed(e *Entry, ops []*Entry) bool {
	return e.Op != nil && e.Op.Name == op.Prefix+"mul" && slices.ContainsFunc(ops, func(x *Entry) bool {
		return x.Op != nil && (op.ReducesSegments(x.Op) || x.Op.Name == op.Prefix+"reduce") && op.Str(x.Op, "kind") == "add" && x.Op.Operands[0].Op == e.Op
	})
}

// numbered is how many rows of several elements e reads by their numbers, where that is all that a kernel does.
func (e *Entry) numbered() (n int64) {
	if e.inside {
		return 0
	}
	for _, t := range e.tables {
		if t.Row > e.Elem.Bytes() {
			n += t.Tables * t.Profile.Reads
		}
	}
	return n
}

func (w *work) none() bool { return w.tensor == 0 && w.vector == 0 }
