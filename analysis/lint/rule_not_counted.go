package lint

import (
	"fmt"
	"slices"
	"strings"

	"dmir/analysis/program"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/syntax/diag"
)

// NotCounted is the code of the finding about ops of other dialects.
const NotCounted = "DM220"

var notCounted = register(&Rule{
	Code: NotCounted, Name: "not-counted", Severity: diag.Info,
	Summary: "the file has ops of other dialects, which are not checked and whose cost is not counted",
	Doc: `## What it does
Names the ops of other dialects in a file, how many there are and the line of the first. ` + "`check.expect_*`" + ` ops, which
` + "`dmir run`" + ` executes, are not among them.

## Why it matters
dmir reads any dialect of MLIR, but rules, costs and the compiler take only this one. Without this finding a program of
another dialect would look like one without waste. It does not change the exit status of ` + "`dmir lint`" + ` and ` + "`dmir cost`" + `;
with ` + "`--strict`" + ` it is an error, and the status 1.

## Example
` + "```mlir" + `
%1 = stablehlo.cosine %0 : tensor<11xbf16>
` + "```" + `

## Fix
None: write the op in this dialect. ` + "`dmir explain cosine`" + ` names its counterpart.
`,
	Check: func(*Context) {}, // it is about files; see foreignOps
})

// Foreign is the ops of one name of another dialect.
type Foreign struct {
	Name  string `json:"name"`
	Count int    `json:"count"`
	Line  int    `json:"line"` // of the first, 1-based
}

// ForeignOps are the ops of other dialects in p, by the place of the first of each name.
func ForeignOps(p *program.Program) []Foreign {
	list, _ := foreignOps(p)
	return list
}

func foreignOps(p *program.Program) (list []Foreign, first *ir.Op) {
	at := map[string]int{}
	for _, m := range p.Modules {
		ir.Walk(m.Ops, func(o *ir.Op) bool {
			dialect, _, _ := strings.Cut(o.Name, ".")
			if slices.Contains(ownDialects, dialect) {
				return true
			}
			i, seen := at[o.Name]
			if !seen {
				i, at[o.Name] = len(list), len(list)
				line, _ := p.Src.Human(o.Head.Start)
				list = append(list, Foreign{Name: o.Name, Line: line})
			}
			if list[i].Count++; first == nil {
				first = o
			}
			return true
		})
	}
	return list, first
}

// ownDialects are those whose ops dmir checks or executes.
var ownDialects = []string{strings.TrimSuffix(op.Prefix, "."), "func", "builtin", "check"}

// Uncounted is the finding about the ops of other dialects in p; ok is false if there
// are none, or if the text has errors, by which ops may be misread.
func Uncounted(p *program.Program) (d diag.Diagnostic, ok bool) {
	list, first := foreignOps(p)
	if first == nil || p.HasErrors() {
		return d, false
	}
	total := 0
	for _, f := range list {
		total += f.Count
	}
	slices.SortStableFunc(list, func(a, b Foreign) int { return b.Count - a.Count })
	var names []string
	for _, f := range list[:min(len(list), mostNames)] {
		if names = append(names, f.Name); f.Count > 1 {
			names[len(names)-1] = fmt.Sprintf("%d %s", f.Count, f.Name)
		}
	}
	if more := len(list) - mostNames; more > 0 {
		names = append(names, fmt.Sprintf("%d other names", more))
	}
	what := "1 op of another dialect is"
	if total > 1 {
		what = fmt.Sprintf("%d ops of other dialects are", total)
	}
	d = diag.Diagnostic{
		Code: notCounted.Code, Name: notCounted.Name, Severity: notCounted.Severity, Span: place(first),
		Message: fmt.Sprintf("%s not checked, and not counted in any cost: %s", what, strings.Join(names, ", ")), Label: "the first one",
	}
	for _, hint := range p.Diags { // about the op alone
		if hint.Code == "DM167" && hint.Span.Start == d.Span.Start {
			d.Help = hint.Help
		}
	}
	return d, true
}

// mostNames is how many names a message lists.
const mostNames = 6
