package feature

import (
	"slices"
	"strings"
	"unicode/utf8"

	"dmir/analysis/cost"
	"dmir/analysis/plan/request"
	"dmir/analysis/program"
	"dmir/analysis/report"
	"dmir/analysis/units"
	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/syntax/source"
)

// Lens is a line above a function.
type Lens struct {
	Span    source.Span // the function's name
	Title   string      // "" for totals that are requested later, with Totals
	Command string      // "dmir.run", "dmir.compile", "dmir.profile", "dmir.view", "dmir.cost", "dmir.panel", "dmir.more", "dmir.plan", "dmir.applyPlan", or "" for a note
	Func    string      // the function it is about, without "@"
	Panel   string      // the kind of panel, of "dmir.panel"
	View    string      // "cuda", "ptx" or "converted", of "dmir.view"
	More    []Lens      // of "dmir.more"
}

// LensOptions are what lenses can offer.
type LensOptions struct {
	Devices
	Kept    *Kept
	Saved   bool // the text differs from the file on disk
	Plan    PlanChoice
	Planned func(fn string) bool // a plan for the text is known
}

// ManyFuncs is the number of functions from which on each has only the lenses
// that are used most, and its totals when they come into view.
const ManyFuncs = 200

// mostLenses is the number of lenses of a function, its totals and More aside.
const mostLenses = 4

// Lenses are the totals of each function that has a body and what can be done with
// it, the rest under one lens with More.
func Lenses(p *program.Program, o LensOptions) []Lens {
	many := len(p.Funcs) >= ManyFuncs
	var out []Lens
	modules := modulesOf(p)
	for _, f := range p.Funcs {
		if f.Func.Body == nil {
			continue
		}
		sum := Lens{Span: f.Func.Op.Head, Func: f.Func.Name}
		if !many {
			sum.Title = o.Kept.title(p, f)
		}
		out = append(out, sum)
		does := lensesOf(f, o, many)
		if !many && !p.Imported && f.Unknown == 0 && request.IsStepOf(f) {
			plan := []Lens{{Span: sum.Span, Title: planTitle(p, modules[f.Func], f.Func, o.Plan), Command: "dmir.plan", Func: sum.Func}}
			if o.Planned != nil && o.Planned(sum.Func) {
				plan = append(plan, Lens{Span: sum.Span, Title: "Apply the plan", Command: "dmir.applyPlan", Func: sum.Func})
			}
			does = slices.Insert(does, 1, plan...)
		}
		if p.Imported {
			does = slices.Insert(does, min(1, len(does)), Lens{Span: sum.Span, Title: "Convert to dm", Command: "dmir.view", Func: sum.Func, View: "converted"})
		}
		if n := min(len(does), mostLenses); n < len(does) {
			more := Lens{Span: sum.Span, Title: "More…", Command: "dmir.more", Func: sum.Func, More: does[n:]}
			does = append(does[:n:n], more)
		}
		out = append(out, does...)
	}
	return out
}

// modulesOf is the module of each function.
func modulesOf(p *program.Program) map[*ir.Func]*ir.Module {
	of := map[*ir.Func]*ir.Module{}
	for _, m := range p.Modules {
		for _, fn := range m.Funcs {
			of[fn] = m
		}
	}
	return of
}

// lensesOf are what can be done with f, what is used most first; that alone where
// there are many functions.
func lensesOf(f *cost.Func, o LensOptions, many bool) []Lens {
	var out []Lens
	add := func(l Lens) {
		l.Span, l.Func = f.Func.Op.Head, f.Func.Name
		out = append(out, l)
	}
	on := func(what, device string) string {
		if device == "" {
			return what
		}
		return what + " on " + device
	}
	runs, known := f.Unknown == 0, !nothingKnown(f)
	if runs {
		add(Lens{Title: on("Run", o.Run), Command: "dmir.run"})
	}
	add(Lens{Title: "Cost", Command: "dmir.cost"})
	if known {
		add(Lens{Title: "Graph", Command: "dmir.panel", Panel: report.KindGraph})
	}
	if many {
		return out
	}
	if o.Saved {
		add(Lens{Title: "Compare with saved", Command: "dmir.panel", Panel: report.KindDiff})
	}
	if runs {
		add(Lens{Title: on("Profile", o.Profile), Command: "dmir.profile"})
		add(Lens{Title: "Compile", Command: "dmir.compile"})
		add(Lens{Title: "Show CUDA", Command: "dmir.view", View: "cuda"})
		add(Lens{Title: "Show PTX", Command: "dmir.view", View: "ptx"})
	}
	if known {
		add(Lens{Title: "Roofline", Command: "dmir.panel", Panel: report.KindRoofline})
		add(Lens{Title: "Memory plan", Command: "dmir.panel", Panel: report.KindMemory})
		if f.Mesh() != nil {
			add(Lens{Title: "Mesh", Command: "dmir.panel", Panel: report.KindMesh})
			add(Lens{Title: "Timeline", Command: "dmir.panel", Panel: report.KindTimeline})
		}
	}
	return out
}

// Totals are the cost of the function called name in one line, "" where it is
// gone.
func Totals(p *program.Program, kept *Kept, name string) string {
	f := p.Func(name)
	if f == nil {
		return ""
	}
	return kept.title(p, f)
}

func nothingKnown(f *cost.Func) bool {
	return f.Unknown > 0 && f.FLOP.IsZero() && f.Moved().IsZero()
}

// totals is a function's cost in one line, the time first.
func totals(p *program.Program, f *cost.Func) string {
	unknown := plural(f.Unknown, "op") + " not counted"
	if nothingKnown(f) {
		return unknown
	}
	var parts []string
	on := f.Mesh()
	if on != nil {
		parts = append(parts, plural(on.Devices(), "device"))
	}
	if on != nil || f.Microbatches() > 1 {
		shown := Settled(f)
		if shown == nil {
			return strings.Join(append(parts, "…"), " · ")
		}
		f = shown
	}
	if t := f.Time(p.Target); t.Known {
		parts = append(parts, units.Time(t.Ns)+" on "+p.Target.Name)
	}
	parts = append(parts, inTotals(f.Moved())+" moved")
	if sent, known := f.Sent(); known && len(sent) > 0 {
		parts = append(parts, units.Bytes(cost.TotalSent(sent))+" sent")
	}
	if waste := f.Waste(); f.Unknown == 0 && !waste.IsZero() {
		parts = append(parts, "waste "+inTotals(waste))
	}
	if f.Unknown > 0 {
		parts = append(parts, unknown)
	}
	return strings.Join(parts, " · ")
}

// inTotals is a size, or what it depends on where the formula is long.
func inTotals(d dim.Dim) string {
	const widest = 24
	if s := units.DimBytes(d); utf8.RuneCountInString(s) <= widest {
		return s
	}
	return shortFormula(d)
}
