package cost

import (
	"fmt"

	"dmir/analysis/machine"
	"dmir/analysis/units"
	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/op"
)

// Launches describes the kernels of a run of f on m, "19 kernels in one graph,
// 1.00 ns each", or the launches, "19, 2.00 µs each", where m is a CPU. Loops whose number of turns is known are written out
// in graphs with what surrounds them; those that the host decides about, and branches, are not: what runs between two
// predicates is launched each time. It is "" where nothing runs or m has no latency.
func (f *Func) Launches(m *machine.Machine) string {
	if m == nil || m.Launch == 0 {
		return ""
	}
	l := launchesOf(f.Entries)
	what := "kernels"
	if k, ok := l.n.Int(); ok && k == 1 {
		what = "kernel"
	}
	each := units.Time(m.Gap()*1e9) + " each"
	switch {
	case l.n.IsZero():
		return ""
	case m.CPU:
		return fmt.Sprintf("%s, %s", l.n, each)
	case l.decides:
		own := ""
		if m.Stream > m.Gap() {
			own = ", at least " + units.Time((m.Stream-m.Gap())*1e9)
		}
		return fmt.Sprintf("%s %s in graphs, %s; where the host reads a predicate it waits and begins another graph%s, which the times leave out", l.n, what, each, own)
	case l.repeats:
		return fmt.Sprintf("%s %s in graphs, %s", l.n, what, each)
	}
	return fmt.Sprintf("%s %s in one graph, %s", l.n, what, each)
}

// launches are the kernels of a body, whether loops repeat them, and whether the host decides about them.
type launches struct {
	n                dim.Dim
	repeats, decides bool
}

// and are l with those of more.
func (l launches) and(more launches) launches {
	return launches{l.n.Add(more.n), l.repeats || more.repeats, l.decides || more.decides}
}

// launches are those of b, counted once for all that call it.
func (b *body) launches() launches {
	b.starts.Do(func() { b.started = launchesOf(b.entries) })
	return b.started
}

func launchesOf(entries []*Entry) (all launches) {
	for _, e := range entries {
		all = all.and(e.launches())
	}
	return all
}

// decided reports whether the host reads a predicate to run o: a branch, or a loop whose number of turns its text does not tell.
func decided(o *ir.Op) bool {
	_, counted := op.TripCount(o)
	return o.Name == op.If || o.Name == op.While && !counted
}

func (e *Entry) launches() launches {
	switch {
	case !e.Known || e.inside:
		return launches{}
	case e.callee != nil:
		return e.callee.launches()
	case e.parts != nil:
		return launchesOf(e.parts)
	case len(e.Inner) > 0 && !e.Fused:
		all := launchesOf(e.Inner).and(launchesOf(e.round))
		all.n = all.n.Mul(e.Trips)
		all = all.and(launchesOf(e.begin))
		all.repeats, all.decides = all.repeats || op.LoopBody(e.Op) != nil, all.decides || decided(e.Op)
		return all
	case e.Moved().IsZero() && !e.computes():
		return launches{}
	}
	return launches{n: dim.Const(max(1, e.Op.Int(LaunchesAttr, 1)))}
}

// computes reports whether e, or what is fused in it, has FLOP.
func (e *Entry) computes() bool {
	if !e.Fused || len(e.Inner) == 0 {
		return !e.FLOP.IsZero()
	}
	for _, i := range e.Inner {
		if i.computes() {
			return true
		}
	}
	return false
}
