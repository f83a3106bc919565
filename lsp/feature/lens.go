package feature

import (
	"strings"

	"dmir/analysis/cost"
	"dmir/analysis/program"
	"dmir/analysis/report"
	"dmir/analysis/units"
	"dmir/syntax/source"
)

// Lens is a line above a function.
type Lens struct {
	Span    source.Span // the function's name
	Title   string      // "" for totals that are requested later, with Totals
	Command string      // "dmir.run", "dmir.compile", "dmir.profile", "dmir.view", "dmir.cost", "dmir.panel", or "" for a note
	Func    string      // the function it is about, without "@"
	Panel   string      // the kind of panel, of "dmir.panel"
	View    string      // "cuda" or "ptx", of "dmir.view"
}

// LensOptions are what lenses can offer.
type LensOptions struct {
	Devices
	Saved bool // the text differs from the file on disk
}

// ManyFuncs is the number of functions from which on each has only the lenses
// that are used most, and its totals when they come into view.
const ManyFuncs = 200

// Lenses are what can be done with each function that has a body, and its totals.
func Lenses(p *program.Program, o LensOptions) []Lens {
	many := len(p.Funcs) >= ManyFuncs
	on := func(what, device string) string {
		if device == "" {
			return what
		}
		return what + " on " + device
	}
	var out []Lens
	for _, f := range p.Funcs {
		if f.Func.Body == nil {
			continue
		}
		span, name := f.Func.Op.Head, f.Func.Name
		panel := func(title, kind string) {
			out = append(out, Lens{Span: span, Title: title, Command: "dmir.panel", Func: name, Panel: kind})
		}
		do := func(title, command, view string) {
			out = append(out, Lens{Span: span, Title: title, Command: command, Func: name, View: view})
		}
		if f.Unknown == 0 {
			do(on("Run", o.Run), "dmir.run", "")
			if !many {
				do(on("Profile", o.Profile), "dmir.profile", "")
				do("Compile", "dmir.compile", "")
				do("Show CUDA", "dmir.view", "cuda")
				do("Show PTX", "dmir.view", "ptx")
			}
		}
		out = append(out, Lens{Span: span, Title: "Cost", Command: "dmir.cost", Func: name})
		if !nothingKnown(f) {
			panel("Graph", report.KindGraph)
			if !many {
				panel("Roofline", report.KindRoofline)
				panel("Memory plan", report.KindMemory)
			}
		}
		if o.Saved && !many {
			panel("Compare with saved", report.KindDiff)
		}
		sum := Lens{Span: span, Func: name}
		if !many {
			sum.Title = totals(p, f)
		}
		out = append(out, sum)
	}
	return out
}

// Totals are the cost of the function called name in one line, "" where it is
// gone.
func Totals(p *program.Program, name string) string {
	f := p.Func(name)
	if f == nil {
		return ""
	}
	return totals(p, f)
}

func nothingKnown(f *cost.Func) bool {
	return f.Unknown > 0 && f.FLOP.IsZero() && f.Moved().IsZero()
}

// totals is a function's cost in one line.
func totals(p *program.Program, f *cost.Func) string {
	unknown := plural(f.Unknown, "op") + " not counted"
	if nothingKnown(f) {
		return unknown
	}
	parts := []string{
		units.DimFLOP(f.FLOP),
		units.DimBytes(f.Moved()) + " moved",
		"minimum " + units.DimBytes(f.Minimum()),
	}
	if waste := f.Waste(); f.Unknown == 0 && !waste.IsZero() {
		parts = append(parts, "waste "+units.DimBytes(waste))
	}
	if t := f.Time(p.Target); t.Known {
		parts = append(parts, units.Time(t.Ns)+" on "+p.Target.Name)
	}
	if f.Unknown > 0 {
		parts = append(parts, unknown)
	}
	return strings.Join(parts, " · ")
}
