package refactor

import (
	"fmt"
	"strings"

	"dmir/analysis/cost"
	"dmir/analysis/units"
	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/op"
)

// promise is what a function's total loses by an action.
type promise struct {
	bytes dim.Dim
	ns    float64
	known bool // of the bytes
	timed bool
}

// entry is the cost of o as it stands.
func (s *selection) entry(o *ir.Op) *cost.Entry {
	return cost.Replaced(s.fn, s.m, s.p.Bind, o, map[*ir.Value]*ir.Value{})
}

// promised is the difference that replacing the entries of removed by those of
// added makes for ops of block b. Nothing is promised in a branch, which counts
// only where it is the costlier one, and in regions of ops whose cost is not
// that of what they hold.
func (s *selection) promised(b *ir.Block, removed, added []*cost.Entry) promise {
	trips, ok := s.trips(b)
	p := promise{known: ok, timed: ok}
	count := func(es []*cost.Entry, sign int64) {
		for _, e := range es {
			p.bytes = p.bytes.Add(e.Moved().Mul(trips).Scale(sign))
			t := e.Time(s.p.Target)
			n, constant := trips.Int()
			p.ns += float64(sign) * t.Ns * float64(n)
			p.known = p.known && e.Known
			p.timed = p.timed && t.Known && constant
		}
	}
	count(removed, 1)
	count(added, -1)
	return p
}

// trips is how often the loops around b run it; ok is false where something else
// than loops and the function lies around it.
func (s *selection) trips(b *ir.Block) (n dim.Dim, ok bool) {
	n = dim.Const(1)
	for ; b != nil; b = b.Region.Op.Parent {
		switch o := b.Region.Op; o.Name {
		case op.Func:
			return n, true
		case op.While, op.Scan:
			turns := dim.Sym(cost.Trips)
			if t, known := op.Trips(o); known {
				turns = t
			} else if t, bound := op.Bindings(s.fn, s.p.Bind)[cost.Trips]; bound {
				turns = dim.Const(t)
			}
			if _, counted := op.TripCount(o); counted && b == o.Body(0) {
				turns = dim.Const(0) // nothing asks for its condition
			}
			n = n.Mul(turns)
		default:
			return n, false
		}
	}
	return n, false
}

// maxFormula is the length of the longest formula that goes into a title.
const maxFormula = 40

// worth is the end of a title: ": saves 67.1 MB, 14.0 µs".
func (p promise) worth() string {
	if !p.known {
		return ""
	}
	n, constant := p.bytes.Int()
	if !constant {
		text := units.DimBytes(p.bytes)
		if len(text) > maxFormula || strings.Contains(text, "-") || strings.ContainsAny(text, "−?") {
			return ""
		}
		return ": saves " + text
	}
	word := "saves"
	if n < 0 || n == 0 && p.ns < 0 {
		word, n, p.ns = "adds", -n, -p.ns
	}
	var parts []string
	if n != 0 {
		parts = append(parts, units.Bytes(n))
	}
	if p.timed && p.ns > 0.5 {
		parts = append(parts, units.Time(p.ns))
	}
	if len(parts) == 0 {
		return ""
	}
	return fmt.Sprintf(": %s %s", word, strings.Join(parts, ", "))
}

// on puts what p promises on an action.
func (p promise) on(a Action) Action {
	a.Short, a.Title = a.Title, a.Title+p.worth()
	if n, constant := p.bytes.Int(); p.known && constant {
		a.SavesBytes = n
		if p.timed {
			a.SavesNs = p.ns
		}
	}
	return a
}
