package report

import (
	"fmt"

	"dmir/analysis/cost"
	"dmir/analysis/units"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// hasPatterns reports whether sparse tensors are among f's arguments or constants.
func hasPatterns(f *cost.Func) bool {
	for _, v := range f.Func.Args {
		for _, m := range types.Members(v.Type) {
			if m.Tensor.Format != nil {
				return true
			}
		}
	}
	for _, o := range f.Func.Body.Ops {
		if o.Name == op.Pack && op.IsSparse(o) {
			return true
		}
	}
	return false
}

// patterns completes the pictures of the function's sparse tensors.
func (b *builder) patterns(all []PatternAt) []Pattern {
	out := []Pattern{}
	for _, of := range all {
		p := of.Pattern
		p.Place = place(b.p.Src, of.Span)
		if p.Counts == nil {
			p.Counts = []int64{}
		}
		places := 1.0
		for _, n := range p.Shape {
			places *= float64(n)
		}
		p.StoredLabel = units.Count(float64(p.Stored))
		if places > 0 {
			p.StoredLabel += " of " + units.Count(places) + ", " + units.Percent(float64(p.Stored), places)
		}
		p.SummaryLabel = p.summary()
		out = append(out, p)
	}
	return out
}

// summary says in words where the elements lie, for those who do not see the picture.
func (p *Pattern) summary() string {
	if p.Reason != "" {
		return "There is no picture: " + p.Reason
	}
	var all, near, most int64
	filled := 0
	for k, n := range p.Counts {
		if n == 0 {
			continue
		}
		filled++
		all, most = all+n, max(most, n)
		row, column := float64(k/p.Across)+0.5, float64(k%p.Across)+0.5
		if d := row/float64(p.Down) - column/float64(p.Across); d < 1.0/8 && d > -1.0/8 {
			near += n
		}
	}
	if all == 0 {
		return "Nothing is stored"
	}
	return fmt.Sprintf("%s of the cells of a grid of %d × %d have elements; %s of the elements lie within an eighth of the diagonal, and the fullest cell has %s of them",
		units.Percent(float64(filled), float64(len(p.Counts))), p.Down, p.Across, units.Percent(float64(near), float64(all)), units.Percent(float64(most), float64(all)))
}
