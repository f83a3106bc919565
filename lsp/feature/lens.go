package feature

import (
	"strings"

	"dmir/analysis/cost"
	"dmir/analysis/program"
	"dmir/analysis/units"
	"dmir/syntax/source"
)

// Lens is a line above a function.
type Lens struct {
	Span    source.Span // the function's name
	Title   string
	Command string // "dmir.run", "dmir.cost", or "" for a note
	Func    string // the function it is about, without "@"
}

// Lenses are what can be done with each function that has a body, and its totals.
func Lenses(p *program.Program) []Lens {
	var out []Lens
	for _, f := range p.Funcs {
		if f.Func.Body == nil {
			continue
		}
		span, name := f.Func.Op.Head, f.Func.Name
		if f.Unknown == 0 {
			out = append(out, Lens{span, "Run", "dmir.run", name})
		}
		out = append(out, Lens{span, "Cost", "dmir.cost", name}, Lens{span, totals(p, f), "", name})
	}
	return out
}

// totals is a function's cost in one line.
func totals(p *program.Program, f *cost.Func) string {
	unknown := plural(f.Unknown, "op") + " not counted"
	if f.Unknown > 0 && f.FLOP.IsZero() && f.Moved().IsZero() {
		return unknown
	}
	parts := []string{
		units.DimFLOP(f.FLOP),
		units.DimBytes(f.Moved()) + " moved",
		"minimum " + units.DimBytes(f.Minimum),
	}
	if t := f.Time(p.Target); t.Known {
		parts = append(parts, units.Time(t.Ns)+" on "+p.Target.Name)
	}
	if f.Unknown > 0 {
		parts = append(parts, unknown)
	}
	return strings.Join(parts, " · ")
}
