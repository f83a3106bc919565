package diagnostics

import (
	"cmp"
	"fmt"
	"slices"

	"go.lsp.dev/protocol"

	"dmir/lsp/workspace"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

const codeTooMany = "DM722"

// Codes are the diagnostics of this package.
var Codes = diag.Register([]diag.Code{
	{
		Code: codeTooMany, Name: "too-many-diagnostics",
		Doc: "An editor is shown the 240 most important diagnostics of a document, errors before warnings before hints and then " +
			"those that save most time, and those near the lines in view, which follow as you scroll.",
		Help: "the command line shows all: dmir lint --hints",
	},
})

const (
	// most is how many diagnostics of a document an editor is shown for their
	// importance, and how many more for their place. VS Code draws 500 of a document.
	most = 240
	// widest is the number of lines from which a request does not tell what is in
	// view: some editors ask about whole documents.
	widest = 1000
	// maxViews is how many parts of a document are taken to be in view.
	maxViews = 16
)

// lines are consecutive lines of a document; the zero value is none.
type lines struct{ first, end int }

// around returns l with as many lines on either side, so that scrolling a little
// changes nothing.
func (l lines) around() lines {
	n := l.end - l.first
	return lines{max(l.first-n, 0), l.end + n}
}

func (l lines) holds(m lines) bool { return l.first <= m.first && m.end <= l.end }

// pick returns the diagnostics that an editor is shown: all of few; of many, the most
// important ones, which do not depend on what is in view, those in near, and one that
// gives the number of all.
func pick(src *source.File, ds []diag.Diagnostic, near []lines) []diag.Diagnostic {
	if len(ds) <= 2*most {
		return ds
	}
	order := make([]int, len(ds))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int {
		a, b := &ds[i], &ds[j]
		return cmp.Or(cmp.Compare(b.Severity, a.Severity), cmp.Compare(b.SavesNs, a.SavesNs), cmp.Compare(a.Span.Start, b.Span.Start))
	})
	shown := make([]bool, len(ds))
	for _, i := range order[:most] {
		shown[i] = true
	}
	inView := func(at int) bool {
		line := src.Pos(at).Line
		return slices.ContainsFunc(near, func(l lines) bool { return l.first <= line && line < l.end })
	}
	left := most
	for _, i := range order[most:] {
		if left > 0 && inView(ds[i].Span.Start) {
			shown[i] = true
			left--
		}
	}
	note := fmt.Sprintf("%d diagnostics: shown are the %d most important ones and those near the lines in view", len(ds), most)
	out := []diag.Diagnostic{diag.New(codeTooMany, diag.Info, source.Span{}, note)}
	for i, d := range ds {
		if shown[i] {
			out = append(out, d)
		}
	}
	return out
}

// Look takes all lines of an open document that an editor shows, and has it shown
// their diagnostics if the document has too many for all of them.
func (rep *Reporter) Look(snap *workspace.Snapshot, ranges ...protocol.Range) {
	var views []lines
	for _, r := range ranges[:min(len(ranges), maxViews)] {
		if l := (lines{int(r.Start.Line), int(r.End.Line) + 1}); l.first < l.end && l.end-l.first <= widest {
			views = append(views, l)
		}
	}
	if len(views) == 0 || !rep.published.look(snap.Key, views) {
		return
	}
	if rep.s.Features.Pulls {
		rep.refreshDiagnostics()
	} else {
		rep.pushAgain(snap.Key)
	}
}
