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
	c := launches{of: map[*body]dim.Dim{}, decides: map[*body]bool{}}
	n, decides := c.sum(f.Entries)
	what := "kernels"
	if k, ok := n.Int(); ok && k == 1 {
		what = "kernel"
	}
	each := units.Time(m.Launch*1e9) + " each"
	switch {
	case n.IsZero():
		return ""
	case m.CPU:
		return fmt.Sprintf("%s, %s", n, each)
	case decides:
		return fmt.Sprintf("%s %s, %s in a graph; loops and branches launch graphs of their own", n, what, each)
	}
	return fmt.Sprintf("%s %s in one graph, %s", n, what, each)
}

// launches counts kernels, those of a callee once and for all.
type launches struct {
	of      map[*body]dim.Dim
	decides map[*body]bool
}

func (c *launches) sum(entries []*Entry) (n dim.Dim, decides bool) {
	for _, e := range entries {
		k, d := c.entry(e)
		n, decides = n.Add(k), decides || d
	}
	return n, decides
}

func (c *launches) entry(e *Entry) (n dim.Dim, decides bool) {
	switch {
	case !e.Known || e.inside:
		return dim.Dim{}, false
	case e.callee != nil:
		if n, done := c.of[e.callee]; done {
			return n, c.decides[e.callee]
		}
		n, decides = c.sum(e.callee.entries)
		c.of[e.callee], c.decides[e.callee] = n, decides
		return n, decides
	case e.parts != nil:
		return c.sum(e.parts)
	case len(e.Inner) > 0 && !e.Fused:
		n, _ = c.sum(e.Inner)
		round, _ := c.sum(e.round)
		begin, _ := c.sum(e.begin)
		return n.Add(round).Mul(e.Trips).Add(begin), op.LoopBody(e.Op) != nil || e.Op.Name == op.If
	case e.Moved().IsZero() && !e.computes():
		return dim.Dim{}, false
	}
	return dim.Const(1), false
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
