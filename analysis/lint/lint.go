// Package lint finds waste and risk in a program and reports what each finding
// costs in bytes and time. A rule is one file: its documentation, its check,
// its fix; its cases stand beside it in testdata. A fix promises a saving, and
// a test applies every fix and recomputes.
package lint

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"

	"dmir/analysis/cost"
	"dmir/analysis/machine"
	"dmir/analysis/program"
	"dmir/dialect/ir"
	"dmir/dialect/mesh"
	"dmir/dialect/origin"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

// Safety describes what a rule's fix preserves.
type Safety string

// The kinds of fix.
const (
	NoFix  Safety = ""
	Safe   Safety = "safe"   // same function, same rounding
	Unsafe Safety = "unsafe" // may change rounding, or what callers see of their arguments
)

// Rule is one thing worth saying.
type Rule struct {
	Code     string // "DM201"
	Name     string // "fusible-into-producer"
	Summary  string // one line, no final stop
	Severity diag.Severity
	Fix      Safety
	Doc      string // Markdown: What it does, Why it matters, Example, Fix; register adds Level
	Check    func(*Context)

	// Compiler is what the compiler does about a finding by itself, such as "fuses
	// such ops": the finding is a hint, unless Finding.Kept. Tests compare the plans
	// of a program with and without the fix. Empty if the waste remains in the plan.
	Compiler string
	Kept     string // which findings the compiler leaves to a person; "" if none

	// Python is the remedy in the Python program that a program was traced from, in the words of JAX and PyTorch: a clause
	// without a final stop. It stands in the place of Finding.Help where the finding stands at a line of Python. Empty
	// if a finding says nothing there that Finding.Help does not.
	Python string
	Remedy string // a part of the names of functions that Python names: nothing is said at what was traced inside of these
}

// level documents which severity r's findings have, and why.
func (r *Rule) level() string {
	name := func(s diag.Severity) string { return strings.ToUpper(s.String()[:1]) + s.String()[1:] }
	text := "\n## Level\n" + name(r.Severity)
	if r.Compiler != "" {
		text = "\n## Level\n" + name(diag.Hint) + ": " + r.byItself()
		if r.Kept != "" {
			text += ". " + name(r.Severity) + " for " + r.Kept
		}
	}
	return text + ".\n"
}

// byItself says why a finding of r is a hint.
func (r *Rule) byItself() string {
	return "the compiler " + r.Compiler + " by itself; a change of the text saves nothing in the compiled program"
}

// Level is the severity of a rule's findings as tables list it.
func (r *Rule) Level() string {
	switch {
	case r.Compiler == "":
		return r.Severity.String()
	case r.Kept == "":
		return diag.Hint.String()
	}
	return diag.Hint.String() + ", " + r.Severity.String()
}

// all holds the rules in the order of their files.
var all []*Rule

// register adds a rule to all and documents its code.
func register(r *Rule) *Rule {
	all = append(all, r)
	r.Doc += r.level()
	diag.Register([]diag.Code{{Code: r.Code, Name: r.Name, Summary: r.Summary, Doc: r.Doc, Python: r.Python, Remedy: r.Remedy, Ignorable: true}})
	return r
}

// Rules lists the rules in the order of their codes.
func Rules() []*Rule {
	rs := slices.Clone(all)
	slices.SortFunc(rs, func(a, b *Rule) int { return cmp.Compare(a.Code, b.Code) })
	return rs
}

// Lookup finds a rule by code or name, in any case.
func Lookup(s string) *Rule {
	for _, r := range all {
		if strings.EqualFold(r.Code, s) || strings.EqualFold(r.Name, s) {
			return r
		}
	}
	return nil
}

// Options select rules. An entry is a code, a name, or a prefix of a code
// ("DM2"); "ALL" is every rule. Ignore wins over Select.
type Options struct {
	Select, Ignore []string

	// NoHints leaves out findings about waste that the compiler removes by itself.
	NoHints bool

	// Only is the one code whose fixes FixAll applies, be it a rule's or another
	// diagnostic's; "" is all.
	Only string
}

func (o Options) enabled(r *Rule) bool {
	if o.Only != "" && r.Code != o.Only {
		return false
	}
	match := func(list []string) bool {
		return slices.ContainsFunc(list, func(s string) bool {
			return strings.EqualFold(s, "all") || strings.EqualFold(s, r.Name) ||
				(s != "" && strings.HasPrefix(r.Code, strings.ToUpper(s)))
		})
	}
	return (len(o.Select) == 0 || match(o.Select)) && !match(o.Ignore)
}

// Unmatched are the entries of Select and Ignore that name no rule.
func (o Options) Unmatched() []string {
	var bad []string
	for _, s := range slices.Concat(o.Select, o.Ignore) {
		if !slices.ContainsFunc(all, func(r *Rule) bool { return (Options{Select: []string{s}}).enabled(r) }) {
			bad = append(bad, s)
		}
	}
	return bad
}

// Context is what a rule sees: one function, its cost and the machine.
type Context struct {
	Module  *ir.Module
	Fn      *ir.Func
	Cost    *cost.Func
	Machine *machine.Machine
	Bind    map[string]int64

	program *program.Program

	rule   *Rule
	ctx    context.Context
	report func(diag.Diagnostic)
	order  map[*ir.Op]int // place in the block; see index
	time   *cost.Time
	trials int
	mesh   func() *mesh.Mesh // of Cost; asked for with each finding, and found in the whole function
}

// Run checks every function of p and returns the findings in textual order,
// suppressed ones left out; none for an imported program. A function with errors in it
// is not checked: what its lines cost is not known. It stops early, with nothing, when
// ctx ends.
func Run(ctx context.Context, p *program.Program, opts Options) []diag.Diagnostic {
	if p.Imported {
		return nil // who wrote the text is another tool
	}
	var found []diag.Diagnostic
	broken := errorSpans(p)
	rules := slices.DeleteFunc(Rules(), func(r *Rule) bool { return !opts.enabled(r) })
	costs := make(map[*ir.Func]*cost.Func, len(p.Funcs))
	for _, f := range p.Funcs {
		costs[f.Func] = f
	}
	for _, m := range p.Modules {
		for _, fn := range m.Funcs {
			if fn.Body == nil || broken(fn.Op) {
				continue
			}
			c := &Context{
				Module: m, Fn: fn, Cost: costs[fn], Machine: p.Target, Bind: p.Bind, program: p, ctx: ctx,
				report: func(d diag.Diagnostic) { found = append(found, d) }, mesh: sync.OnceValue(costs[fn].Mesh),
			}
			for _, r := range rules {
				if ctx.Err() != nil {
					return nil
				}
				c.rule = r
				r.Check(c)
			}
		}
	}
	if slices.Contains(rules, notCounted) {
		if d, ok := Uncounted(p); ok {
			found = append(found, d)
		}
	}
	if opts.NoHints {
		found = slices.DeleteFunc(found, func(d diag.Diagnostic) bool { return d.Severity == diag.Hint })
	}
	found = suppress(p.Src, found)
	slices.SortStableFunc(found, func(a, b diag.Diagnostic) int {
		return cmp.Or(cmp.Compare(a.Span.Start, b.Span.Start), cmp.Compare(a.Code, b.Code))
	})
	return found
}

// Checked reports whether Run checks a place: it lies in a function without errors.
func Checked(p *program.Program) func(source.Span) bool {
	broken := errorSpans(p)
	var checked []source.Span // in textual order
	for _, f := range p.Funcs {
		if !broken(f.Func.Op) {
			checked = append(checked, f.Func.Op.Span)
		}
	}
	return func(s source.Span) bool {
		i, _ := slices.BinarySearchFunc(checked, s.Start+1, func(c source.Span, at int) int { return cmp.Compare(c.Start, at) })
		return i > 0 && s.End <= checked[i-1].End
	}
}

func errorSpans(p *program.Program) func(*ir.Op) bool {
	var starts []int
	for _, d := range p.Diags {
		if d.Severity == diag.Error {
			starts = append(starts, d.Span.Start)
		}
	}
	slices.Sort(starts)
	return func(o *ir.Op) bool {
		i, _ := slices.BinarySearch(starts, o.Span.Start)
		return i < len(starts) && starts[i] < o.Span.End
	}
}

// Finding is what a rule found; Report adds the code, the cost and the promise.
type Finding struct {
	Op      *ir.Op
	Message string
	Label   string // under the caret
	Help    string
	Saving  *Saving // what the fix, or the remedy in Help, saves; nil where it saves no bytes
	Related []diag.Related
	Tags    []diag.Tag
	Fix     *diag.Fix // Title and Edits; the rest is filled in
	Notes   []string
	Tried   bool // Saving is a trial's
	Kept    bool // the compiler leaves the waste in: see [Rule.Compiler]
}

// Report records f under the current rule.
func (c *Context) Report(f Finding) {
	if f.Saving != nil && c.shown() != c.Cost {
		if !f.Tried {
			f.Saving = nil
			if f.Fix != nil {
				f.Saving = c.trial(f.Fix.Edits)
			}
		}
		if f.Saving.loses() {
			return
		}
	}
	d := diag.Diagnostic{
		Code: c.rule.Code, Name: c.rule.Name, Severity: c.rule.Severity,
		Span: place(f.Op), Message: f.Message, Label: f.Label, Help: f.Help,
		Related: f.Related, Tags: f.Tags, Notes: f.Notes,
	}
	if f.Saving != nil {
		d.Notes = append(d.Notes, f.Saving.sentence(c))
		_, d.SavesNs = f.Saving.promise()
	}
	if c.rule.Compiler != "" && !f.Kept {
		d.Severity = diag.Hint
		d.Notes = append(d.Notes, c.rule.byItself())
	}
	if f.Fix != nil {
		fix := *f.Fix
		fix.Safe = c.rule.Fix == Safe
		if f.Saving != nil {
			fix.SavesBytes, fix.SavesNs = f.Saving.promise()
			fix.SavesSent = f.Saving.Sent
		}
		slices.SortFunc(fix.Edits, func(a, b diag.Edit) int { return cmp.Compare(a.Span.Start, b.Span.Start) })
		if eol := source.LineEnd(c.Module.Src.Text()); eol != "\n" {
			for i, e := range fix.Edits {
				fix.Edits[i].Text = strings.ReplaceAll(strings.ReplaceAll(e.Text, eol, "\n"), "\n", eol)
			}
		}
		d.Fixes = []diag.Fix{fix}
	}
	c.report(d)
}

// place is what a finding about o underlines: the op's name, a function's symbol.
func place(o *ir.Op) source.Span {
	switch t := origin.Tree(o); {
	case t == nil:
		return o.Head
	case t.Func != nil && !t.Func.NameSpan.Empty():
		return t.Abs(t.Func.NameSpan)
	default:
		return t.Abs(t.NameSpan)
	}
}
