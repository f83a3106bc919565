package feature

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"dmir/analysis/lint"
	"dmir/analysis/program"
	"dmir/analysis/refactor"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

// Action is a change of the text that is offered for a selection.
type Action struct {
	Kind       string           // as editors ask for it: "quickfix", "refactor.rewrite" …
	Title      string           // with what it saves where that is known
	Short      string           // without that: for what it was applied, the history has what it saved
	Disabled   string           // why it cannot be applied; "" where it can
	Preferred  bool             // what to do, where only one thing is to be done
	Diagnostic *diag.Diagnostic // that it answers, nil where none

	// Edits are there where they cost nothing; those of the others makes the
	// function that Source names, from ID.
	Edits  []diag.Edit
	Source ActionSource
	ID     string // what the edits do, of those that are not a diagnostic's own
}

// ActionSource is what makes the edits of an action.
type ActionSource string

// The sources.
const (
	Known     ActionSource = ""         // Edits has them
	Refactor  ActionSource = "refactor" // RefactorEdits
	FixAll    ActionSource = "fixAll"   // all safe fixes of the file
	FixAllOf  ActionSource = "fixAllOf" // all fixes of the code in ID
	quickfix               = "quickfix"
	fixAllFor              = "source.fixAll.dmir"
)

// Actions lists what can be done with the text in span, given the findings and
// other diagnostics of the file, of those kinds that are wanted. The program is
// asked only about what lies at span.
func Actions(p *program.Program, found []diag.Diagnostic, span source.Span, wanted func(kind string) bool) []Action {
	var out []Action
	if wanted(quickfix) {
		out = append(out, quickFixes(p, found, span)...)
	}
	if wanted("refactor") || wanted(string(refactor.Extract)) || wanted(string(refactor.Inline)) || wanted(string(refactor.Rewrite)) {
		for _, a := range refactor.Actions(p, span) {
			if wanted(string(a.Kind)) {
				out = append(out, Action{
					Kind: string(a.Kind), Title: a.Title, Short: a.Short, Disabled: a.Disabled,
					Preferred: a.Disabled == "" && a.SavesBytes > 0, Source: Refactor, ID: a.ID,
				})
			}
		}
	}
	if wanted(fixAllFor) && anySafe(found) {
		out = append(out, Action{Kind: fixAllFor, Title: "Apply all safe fixes", Source: FixAll})
	}
	for i := range out {
		out[i].Short = cmp.Or(out[i].Short, out[i].Title)
	}
	return distinct(p.Src, out)
}

// distinct drops each action that does what an earlier one of its title does.
// Where the fixes of several diagnostics have one title, each names its line.
func distinct(src *source.File, actions []Action) []Action {
	titled := map[string][]int{} // the places in out of the actions with a title
	var out []Action
	for _, a := range actions {
		if !slices.ContainsFunc(titled[a.Title], func(i int) bool {
			return out[i].ID == a.ID && (a.ID != "" || slices.Equal(out[i].Edits, a.Edits))
		}) {
			titled[a.Title] = append(titled[a.Title], len(out))
			out = append(out, a)
		}
	}
	for _, at := range titled {
		for _, i := range at {
			if d := out[i].Diagnostic; d != nil && len(at) > 1 {
				out[i].Title += fmt.Sprintf(" (line %d)", src.Pos(d.Span.Start).Line+1)
			}
		}
	}
	return out
}

// anySafe reports whether [FixAll] has anything to do: it leaves hints alone.
func anySafe(found []diag.Diagnostic) bool {
	for _, d := range found {
		if d.Severity > diag.Hint && len(d.Fixes) > 0 && d.Fixes[0].Safe {
			return true
		}
	}
	return false
}

// mostOffered bounds the diagnostics of a selection that are answered one by one. A longer list is not read, and all fixes of a code
// are offered anyway.
const mostOffered = 100

// quickFixes are the fixes of the diagnostics at span, the silencing of each
// finding, and for a code that is found more than once all its fixes.
func quickFixes(p *program.Program, found []diag.Diagnostic, span source.Span) []Action {
	var fixes, all, rest []Action
	var at []diag.Diagnostic
	seen, fixable := map[string]bool{}, map[string]int{}
	for _, d := range found {
		if len(d.Fixes) > 0 {
			fixable[d.Code]++
		}
		if d.Span.Start <= span.End && d.Span.End >= span.Start && len(at) < mostOffered {
			at = append(at, d)
		}
	}
	for _, f := range FixesAt(at, span) {
		d := f.Diagnostic
		fixes = append(fixes, Action{Kind: quickfix, Title: f.Title, Short: f.Short, Preferred: f.Fix.Safe, Diagnostic: &d, Edits: f.Fix.Edits})
		if fixable[d.Code] > 1 && !seen[d.Code] {
			seen[d.Code] = true
			title := "Fix all " + d.Code + " in the file"
			if !f.Fix.Safe {
				title += " (may change rounding)"
			}
			all = append(all, Action{Kind: quickfix, Title: title, Source: FixAllOf, ID: d.Code})
		}
	}
	for _, d := range at {
		if lint.Lookup(d.Code) == nil {
			continue
		}
		if d.Code == budgetExceeded {
			rest = append(rest, raised(p, d)...)
		}
		rest = append(rest, Action{Kind: quickfix, Title: fmt.Sprintf("Silence %s on line %d", d.Code, p.Src.Pos(d.Span.Start).Line+1), Diagnostic: &d, Edits: silence(p.Src, d)})
	}
	return append(append(fixes, all...), rest...)
}

// budgetExceeded is the rule whose remedy may be another budget.
const budgetExceeded = "DM501"

func raised(p *program.Program, d diag.Diagnostic) []Action {
	for _, a := range refactor.Actions(p, source.Span{Start: d.Span.Start, End: d.Span.Start}) {
		if a.ID != "budget" || a.Disabled != "" {
			continue
		}
		if c, err := refactor.Apply(p, source.Span{Start: d.Span.Start, End: d.Span.Start}, a.ID); err == nil {
			return []Action{{Kind: quickfix, Title: a.Title, Diagnostic: &d, Edits: c.Edits, ID: a.ID}}
		}
	}
	return nil
}

const ignore = "// dmir: ignore["

// silence are the edits that make lint pass over d: its code joins those that
// are ignored on its line or right above, else a comment is written above.
func silence(src *source.File, d diag.Diagnostic) []diag.Edit {
	line := src.Pos(d.Span.Start).Line
	for n := line; n >= 0; n-- {
		text := src.Line(n)
		if n < line && !strings.HasPrefix(strings.TrimSpace(text), "//") {
			break
		}
		before, rest, found := strings.Cut(text, ignore)
		if list, _, closed := strings.Cut(rest, "]"); found && closed {
			at := src.LineStart(n) + len(before) + len(ignore) + len(list)
			code := ", " + d.Code
			if strings.TrimSpace(list) == "" {
				code = d.Code
			}
			return []diag.Edit{{Span: source.Span{Start: at, End: at}, Text: code}}
		}
	}
	text := src.Line(line)
	indent := text[:len(text)-len(strings.TrimLeft(text, " \t"))]
	at := src.LineStart(line)
	eol := "\n"
	if end := at + len(text); src.Slice(source.Span{Start: end, End: end + 1}) == "\r" {
		eol = "\r\n"
	}
	return []diag.Edit{{Span: source.Span{Start: at, End: at}, Text: indent + ignore + d.Code + "]" + eol}}
}

// RefactorEdits are the edits of the refactoring that Actions listed as id for
// the same program and span; the error is a message for the user.
func RefactorEdits(p *program.Program, span source.Span, id string) ([]diag.Edit, error) {
	c, err := refactor.Apply(p, span, id)
	if err != nil {
		return nil, err
	}
	return c.Edits, nil
}
