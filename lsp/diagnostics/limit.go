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
	first := func(i, j int) int { // the more important one
		a, b := &ds[i], &ds[j]
		return cmp.Or(cmp.Compare(b.Severity, a.Severity), cmp.Compare(b.SavesNs, a.SavesNs), cmp.Compare(a.Span.Start, b.Span.Start), cmp.Compare(i, j))
	}
	// Between 240 and 480 of the most important ones so far, of which from time to time the less important
	// half goes, with the least important one that stays as the mark for all that follow.
	chosen := make([]int, 0, 2*most)
	mark := -1
	cut := func() {
		slices.SortFunc(chosen, first)
		chosen = chosen[:most]
		mark = chosen[most-1]
	}
	for i := range ds {
		if mark >= 0 && first(i, mark) > 0 {
			continue
		}
		if chosen = append(chosen, i); len(chosen) == 2*most {
			cut()
		}
	}
	cut()
	shown := make(map[int]bool, 2*most)
	for _, i := range chosen {
		shown[i] = true
	}
	views := make([]source.Span, 0, len(near))
	for _, l := range near {
		if l.first < src.Lines() {
			v := source.Span{Start: src.LineStart(l.first), End: src.Len() + 1}
			if l.end < src.Lines() {
				v.End = src.LineStart(l.end)
			}
			views = append(views, v)
		}
	}
	var around []int
	for i := range ds {
		at := ds[i].Span.Start
		if !shown[i] && slices.ContainsFunc(views, func(v source.Span) bool { return v.Start <= at && at < v.End }) {
			around = append(around, i)
		}
	}
	slices.SortFunc(around, first)
	for _, i := range around[:min(len(around), most)] {
		shown[i] = true
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
		if l := (lines{int(min(r.Start.Line, r.End.Line)), int(max(r.Start.Line, r.End.Line)) + 1}); l.first < l.end && l.end-l.first <= widest {
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
