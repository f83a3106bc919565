package cost

import (
	"fmt"

	"dmir/analysis/machine"
	"dmir/analysis/units"
	"dmir/dialect/dim"
	"dmir/dialect/op"
)

// Launches describes the kernels of a run of f on m, "19 kernels in one graph,
// 1.00 ns each", or the launches, "19, 2.00 µs each", where m is a CPU. A function
// with loops or branches is not one graph: each stretch of kernels between two
// decisions is launched each time it runs. It is "" where nothing runs or m has
// no latency.
func (f *Func) Launches(m *machine.Machine) string {
	if m == nil || m.Launch == 0 {
		return ""
	}
	n, decides := f.kernels()
	what := "kernels"
	if k, ok := n.Int(); ok && k == 1 {
		what = "kernel"
	}
	each := units.Time(m.Gap()*1e9) + " each"
	switch {
	case n.IsZero():
		return ""
	case m.CPU:
		return fmt.Sprintf("%s, %s", n, each)
	case decides:
		own := "graphs of their own"
		if m.Stream > m.Gap() {
			own += ", each " + units.Time((m.Stream-m.Gap())*1e9) + " more, which the times leave out"
		}
		return fmt.Sprintf("%s %s, %s in a graph; loops and branches launch %s", n, what, each, own)
	}
	return fmt.Sprintf("%s %s in one graph, %s", n, what, each)
}

// kernels is how many kernels a run of f launches, and whether that depends on decisions of loops and branches.
func (f *Func) kernels() (n dim.Dim, decides bool) { return launchesOf(f.Entries) }

// launches are the kernels of a body, and whether loops or branches decide about them.
type launches struct {
	n       dim.Dim
	decides bool
}

// launches are those of b, counted once for all that call it.
func (b *body) launches() (n dim.Dim, decides bool) {
	b.starts.Do(func() { b.started.n, b.started.decides = launchesOf(b.entries) })
	return b.started.n, b.started.decides
}

func launchesOf(entries []*Entry) (n dim.Dim, decides bool) {
	for _, e := range entries {
		k, d := e.launches()
		n, decides = n.Add(k), decides || d
	}
	return n, decides
}

func (e *Entry) launches() (n dim.Dim, decides bool) {
	switch {
	case !e.Known || e.inside:
		return dim.Dim{}, false
	case e.callee != nil:
		return e.callee.launches()
	case e.parts != nil:
		return launchesOf(e.parts)
	case len(e.Inner) > 0 && !e.Fused:
		n, _ = launchesOf(e.Inner)
		round, _ := launchesOf(e.round)
		begin, _ := launchesOf(e.begin)
		return n.Add(round).Mul(e.Trips).Add(begin), op.LoopBody(e.Op) != nil || e.Op.Name == op.If
	case e.Moved().IsZero() && !e.computes():
		return dim.Dim{}, false
	}
	return dim.Const(max(1, e.Op.Int(LaunchesAttr, 1))), false
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
