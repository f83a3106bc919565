package cost

import (
	"strings"

	"dmir/analysis/machine"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// work is FLOP by unit and element type.
type work []part

type part struct {
	unit
	flop int64
}

type unit struct {
	contraction bool
	elem        types.Elem
	op          string // that m has a rate of its own for; else ""
}

// unitOf is what e computes on.
func unitOf(m *machine.Machine, e *Entry) unit {
	u := unit{contraction: e.Class == op.ClassContraction, elem: e.Elem}
	if len(m.Ops) > 0 {
		if name := strings.TrimPrefix(e.Op.Name, "dm."); m.OpRate(name, e.Elem) > 0 {
			u.op = name
		}
	}
	return u
}

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

// add counts e, or what is fused in it, by what m computes it on; false where that is a formula.
func (w *work) add(m *machine.Machine, e *Entry) bool {
	if e.Fused && len(e.Inner) > 0 {
		for _, i := range e.Inner {
			if !w.add(m, i) {
				return false
			}
		}
		return true
	}
	n, ok := e.FLOP.Int()
	if !ok {
		return false
	}
	if n == 0 {
		return true
	}
	u := unitOf(m, e)
	for i := range *w {
		if (*w)[i].unit == u {
			(*w)[i].flop += n
			return true
		}
	}
	*w = append(*w, part{u, n})
	return true
}

func (w work) none() bool { return len(w) == 0 }

// ns is the time of the slower unit, each at the rate that kernels reach, or of both
// one after the other where they are one.
func (w work) ns(m *machine.Machine, path string) float64 {
	var tensor, vector float64
	for _, p := range w {
		s := float64(p.flop) / p.rate(m, path) * 1e9
		if p.contraction || m.OneUnit() {
			tensor += s
		} else {
			vector += s
		}
	}
	return max(tensor, vector)
}
