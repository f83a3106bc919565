package report

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"dmir/analysis/cost"
	"dmir/analysis/machine"
	"dmir/analysis/units"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// roofline is the function's ops under the machine's roofs (Williams, Waterman,
// Patterson, "Roofline", CACM 2009), at the FLOP/s that are predicted for them.
func (b *builder) roofline() *Roofline {
	r := roofs{Roofline: &Roofline{Roofs: []Roof{}, Dots: []Dot{}, Rest: []Dot{}}, b: b, index: map[unit]int{}}
	r.entries(b.f.Entries, 1, "")
	r.sort()
	r.frame()
	return r.Roofline
}

type roofs struct {
	*Roofline
	b     *builder
	index map[unit]int
}

// unit is a unit of the machine at work on an element type.
type unit struct{ name, elem string }

// entries adds the dots of es, which run so often; reason explains why that is not
// known.
func (r *roofs) entries(es []*cost.Entry, runs int64, reason string) {
	for _, e := range es {
		if e.Known && !e.Fused && len(e.Inner) > 0 {
			n, ok := e.Trips.Int()
			why := reason
			if !ok {
				n, why = 1, dependsOn(e.Trips.Symbols())
			}
			begin, round := e.Copies()
			r.entries(begin, runs, reason)
			r.entries(e.Inner, times(runs, n), why)
			r.entries(round, times(runs, n), why)
			continue
		}
		r.dot(e, runs, reason)
	}
}

func times(a, b int64) int64 {
	if a != 0 && b > math.MaxInt64/a {
		return math.MaxInt64
	}
	return a * b
}

func dependsOn(symbols []string) string { return "depends on " + strings.Join(symbols, ", ") }

func (r *roofs) dot(e *cost.Entry, runs int64, reason string) {
	b := r.b
	d := Dot{
		Op: e.Op.Name, Result: resultNames(e), Detail: detail(e.Op), Class: className(e),
		Place: b.placeOf(e.Op), Cost: b.entryCost(e), Roof: -1, Runs: runs,
	}
	t := e.Time(b.p.Target)
	if t.Known && reason == "" {
		d.Share = b.share(t.Ns * float64(runs))
		d.ShareLabel = units.Percent(d.Share, 1)
	}
	flop, known := e.FLOP.Int()
	moved, knownMoved := e.Moved().Int()
	switch {
	case !e.Known:
		d.Reason = "not known"
	case !known || !knownMoved || !t.Known:
		var names []string
		names = append(append(names, e.FLOP.Symbols()...), e.Moved().Symbols()...)
		slices.Sort(names)
		if d.Reason = dependsOn(slices.Compact(names)); len(names) == 0 {
			d.Reason = "not known"
		}
	case t.Ns == 0:
		return // a view or the like: it runs nothing
	case flop == 0:
		d.Reason = "computes nothing"
	case moved == 0:
		d.Reason = "moves nothing"
	default:
		x := float64(flop) / (t.Ns / 1e9)
		d.Achieved, d.AchievedLabel = &x, units.Rate(x)
		d.Roof = r.roof(e)
		bandwidth := b.p.Target.Reach()
		if terms, ok := e.TimeTerms(b.p.Target); ok {
			bandwidth = terms.Bandwidth // that of a cache where the data lies there
		}
		d.RoofShare = x / min(r.Roofs[d.Roof].Rate, *d.Intensity*bandwidth)
		d.RoofLabel = units.Percent(d.RoofShare, 1)
		r.Dots = append(r.Dots, d)
		return
	}
	r.Rest = append(r.Rest, d)
}

// roof is the number of the roof over e.
func (r *roofs) roof(e *cost.Entry) int {
	u := unitOf(r.b.p.Target, e)
	i, seen := r.index[u]
	if !seen {
		m := r.b.p.Target
		rate := m.Rate(e.Class == op.ClassContraction, e.Elem, "")
		i = len(r.Roofs)
		r.index[u] = i
		ridge := rate / m.Reach()
		r.Roofs = append(r.Roofs, Roof{
			Unit: u.name, Elem: u.elem, Rate: rate, Label: units.Rate(rate),
			Ridge: ridge, RidgeLabel: units.Intensity(ridge),
		})
	}
	return i
}

// unitOf is what Peak of the machine takes its rate from.
func unitOf(m *machine.Machine, e *cost.Entry) unit {
	switch {
	case e.Class == op.ClassContraction && m.TensorCore[e.Elem] > 0:
		return unit{contractionUnit(m), e.Elem.String()}
	case m.Vector[e.Elem] > 0:
		return unit{unitVector, e.Elem.String()}
	}
	return unit{unitVector, types.F32.String()}
}

// sort puts the highest roof first.
func (r *roofs) sort() {
	order := make([]int, len(r.Roofs))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		x, y := r.Roofs[a], r.Roofs[b]
		return cmp.Or(cmp.Compare(y.Rate, x.Rate), cmp.Compare(x.Unit, y.Unit), cmp.Compare(x.Elem, y.Elem))
	})
	sorted := make([]Roof, len(order))
	to := make([]int, len(order))
	for i, old := range order {
		sorted[i], to[old] = r.Roofs[old], i
	}
	r.Roofs = sorted
	for i := range r.Dots {
		r.Dots[i].Roof = to[r.Dots[i].Roof]
	}
}

// frame sets the ends of the axes.
func (r *roofs) frame() {
	m := r.b.p.Target
	x, y := span{}, span{}
	for _, f := range r.Roofs {
		x.hold(f.Ridge)
		y.hold(f.Rate)
	}
	for _, d := range r.Dots {
		x.hold(*d.Intensity)
		y.hold(*d.Achieved)
	}
	if len(r.Roofs) == 0 {
		rate := m.Rate(false, types.F32, "")
		x.hold(rate / m.Reach())
		y.hold(rate)
	}
	r.MinX, r.MaxX = x.decades()
	r.MinY, r.MaxY = y.decades()
}

// span is a range of positive numbers.
type span struct{ lo, hi float64 }

func (s *span) hold(x float64) {
	if x <= 0 || math.IsInf(x, 0) || math.IsNaN(x) {
		return
	}
	if s.lo == 0 || x < s.lo {
		s.lo = x
	}
	s.hi = max(s.hi, x)
}

// decades is the powers of ten around s, at least two apart.
func (s *span) decades() (lo, hi float64) {
	if s.lo == 0 {
		return 1, 100
	}
	from, to := math.Floor(math.Log10(s.lo)), math.Ceil(math.Log10(s.hi))
	if to-from < 2 {
		from, to = from-1, to+1
	}
	return math.Pow10(int(from)), math.Pow10(int(to))
}
