package diff

import (
	"context"
	"fmt"
	"math"
	"strings"

	"dmir/analysis/cost"
	"dmir/analysis/program"
	"dmir/analysis/units"
	"dmir/dialect/dim"
)

// Breach is what keeps a new version from passing.
type Breach struct {
	Func    *cost.Func // of the new version
	Grown   bool       // beyond the old version; otherwise beyond its own budget
	Open    bool       // whether it passes depends on sizes that are not bound
	Message string
}

// A Gate holds a new version of a program to an old one and to its own budgets.
type Gate struct {
	Old, New  *program.Program
	Tolerance float64 // by how much figures may grow, as a share of what was: 0.05
	// Written compares the versions as written, otherwise as they are compiled. A function's own budget says
	// itself which it is for.
	Written bool
}

// Breaches are those of the new version: functions that move more bytes,
// take more time, hold more memory or send more to other devices than before, by more than the tolerance,
// or exceed the budget that is written on them. A
// function that is new is held to its own budget only.
func (g Gate) Breaches(ctx context.Context, funcs []Func) []Breach {
	var out []Breach
	for _, f := range funcs {
		if f.New == nil {
			continue
		}
		if f.Old != nil {
			out = append(out, g.grown(ctx, f)...)
		}
		out = append(out, g.exceeded(ctx, f.New)...)
	}
	return out
}

// both are the figures of the versions of f, of the same kind of text, and why they are not of the compiled one.
func (g Gate) both(ctx context.Context, f Func) (old, new cost.Figures, why error) {
	on := g.New.Target
	new, why = g.New.Figures(ctx, f.New, on, g.Written)
	if why == nil {
		old, why = g.Old.Figures(ctx, f.Old, on, g.Written)
	}
	if why != nil {
		new, _ = g.New.Figures(ctx, f.New, on, true)
		old, _ = g.Old.Figures(ctx, f.Old, on, true)
	}
	return old, new, why
}

// because ends the message about a function that cannot be compiled.
func because(why error) string {
	if why == nil {
		return ""
	}
	return "; it cannot be compiled: " + why.Error()
}

func (g Gate) grown(ctx context.Context, f Func) []Breach {
	var out []Breach
	was, is, why := g.both(ctx, f)
	add := func(verb string, old, new []dim.Dim, show func(dim.Dim) string) {
		switch within(old, new, g.Tolerance) {
		case no:
			out = append(out, Breach{Func: f.New, Grown: true, Message: fmt.Sprintf("@%s %s", f.New.Func.Name, more(verb, is.Text(), old, new, g.Tolerance, show)) + because(why)})
		case maybe:
			out = append(out, Breach{Func: f.New, Grown: true, Open: true, Message: fmt.Sprintf(
				"whether @%s %s more than before %s depends on %s: %s, before %s", f.New.Func.Name, verb, is.Text(), symbols(old, new), list(new, show), list(old, show))})
		}
	}
	add("moves", []dim.Dim{was.Moved}, []dim.Dim{is.Moved}, units.DimBytes)
	if was.Time.Known && is.Time.Known {
		ns := func(t cost.Time) []dim.Dim { return []dim.Dim{dim.Const(int64(math.Round(t.Ns)))} }
		add("takes", ns(was.Time), ns(is.Time), func(d dim.Dim) string {
			n, _ := d.Int()
			return units.Time(float64(n))
		})
	}
	if was.Sent != nil && is.Sent != nil {
		add("sends", []dim.Dim{dim.Const(*was.Sent)}, []dim.Dim{dim.Const(*is.Sent)}, units.DimBytes)
	}
	if len(was.Peaks) > 0 && len(is.Peaks) > 0 {
		add("holds", was.Peaks, is.Peaks, units.DimBytes)
	}
	return out
}

type answer int

const (
	yes answer = iota
	no
	maybe
)

// within reports whether the largest of new is at most the largest of old and
// the tolerance, for all values of the symbols.
func within(old, new []dim.Dim, tolerance float64) answer {
	if tolerance == 0 {
		if all(new, func(n dim.Dim) bool { return some(old, func(o dim.Dim) bool { return o.AtLeast(n) }) }) {
			return yes
		}
		if some(new, func(n dim.Dim) bool { return all(old, func(o dim.Dim) bool { return n.AtLeast(o.Add(dim.Const(1))) }) }) {
			return no
		}
		return maybe
	}
	if within(old, new, 0) == yes {
		return yes
	}
	if o, ok := old[0].Int(); ok && len(old) == 1 && len(new) == 1 {
		if n, ok := new[0].Int(); ok {
			if float64(n-o) <= tolerance*float64(o) {
				return yes
			}
			return no
		}
	}
	// A formula is scaled to ten thousandths.
	const unit = 10_000
	scaled := func(ds []dim.Dim, by int64) []dim.Dim {
		out := make([]dim.Dim, len(ds))
		for i, d := range ds {
			out[i] = d.Scale(by)
		}
		return out
	}
	return within(scaled(old, unit+int64(math.Round(tolerance*unit))), scaled(new, unit), 0)
}

func all(ds []dim.Dim, is func(dim.Dim) bool) bool {
	return !some(ds, func(d dim.Dim) bool { return !is(d) })
}

func some(ds []dim.Dim, is func(dim.Dim) bool) bool {
	for _, d := range ds {
		if is(d) {
			return true
		}
	}
	return false
}

// more is "moves 16.8 MB more than before as compiled: 134 MB, before 117 MB (+14.3 %)".
func more(verb, of string, old, new []dim.Dim, tolerance float64, show func(dim.Dim) string) string {
	text := verb
	if len(old) == 1 && len(new) == 1 {
		text += " " + cut(show(new[0].Sub(old[0])))
	}
	text += fmt.Sprintf(" more than before %s: %s, before %s", of, list(new, show), list(old, show))
	o, ok := old[0].Int()
	n, ok2 := new[0].Int()
	if ok && ok2 && o > 0 {
		text += " (+" + units.Percent(float64(n-o), float64(o))
		if tolerance > 0 {
			text += ", " + units.Percent(tolerance, 1) + " allowed"
		}
		text += ")"
	}
	return text
}

func list(ds []dim.Dim, show func(dim.Dim) string) string {
	if len(ds) == 1 {
		return cut(show(ds[0]))
	}
	parts := make([]string, min(len(ds), 4))
	for i := range parts {
		parts[i] = cut(show(ds[i]))
	}
	return "max(" + strings.Join(parts, ", ") + ")"
}

// cut leaves the beginning of a formula that is long.
func cut(label string) string {
	const widest = 80
	if r := []rune(label); len(r) > widest {
		return string(r[:widest-1]) + "…"
	}
	return label
}

func symbols(lists ...[]dim.Dim) string {
	seen := map[string]bool{}
	var names []string
	for _, ds := range lists {
		for _, d := range ds {
			for _, s := range d.Symbols() {
				if !seen[s] {
					seen[s] = true
					names = append(names, s)
				}
			}
		}
	}
	if len(names) == 0 {
		return "numbers that 64 bits do not count"
	}
	if len(names) > 8 {
		names = append(names[:8], "…")
	}
	return strings.Join(names, ", ")
}

// exceeded is f's own budget.
func (g Gate) exceeded(ctx context.Context, f *cost.Func) []Breach {
	limits, errs := cost.ParseBudget(f.Func)
	var out []Breach
	for _, err := range errs {
		out = append(out, Breach{Func: f, Message: err.Error()})
	}
	var open []cost.Limit
	for _, l := range limits {
		have, why := g.New.Figures(ctx, f, g.New.Target, l.Written)
		over, left := f.Over(have, g.New.Bind, []cost.Limit{l})
		for _, x := range over {
			out = append(out, Breach{Func: f, Message: x.Message(f) + because(why)})
		}
		open = append(open, left...)
	}
	for _, l := range open {
		out = append(out, Breach{Func: f, Open: true, Message: fmt.Sprintf("whether @%s exceeds its %s depends on %s", f.Func.Name, l.Attr, openOn(f))})
	}
	return out
}

func openOn(f *cost.Func) string {
	if names := f.Unbound(); len(names) > 0 {
		return strings.Join(names[:min(len(names), 8)], ", ")
	}
	return "ops that dmir does not know"
}
