package diagnostics

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"dmir/lsp/workspace"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

// Of many diagnostics the most important ones are shown wherever the view is, and
// those near it; what both views show stays.
func TestPick(t *testing.T) {
	const count = 20000
	src := source.New("f.dmir", strings.Repeat("line\n", count))
	var ds []diag.Diagnostic
	for i := range count {
		d := diag.Diagnostic{Code: "DM201", Severity: diag.Hint, Span: source.Span{Start: 5 * i, End: 5*i + 4}, SavesNs: float64(i % 97)}
		switch i {
		case 19000:
			d.Severity, d.SavesNs = diag.Error, 0
		case 19500:
			d.Severity = diag.Warning
		}
		ds = append(ds, d)
	}
	at := func(near ...lines) (shown map[int]bool) {
		shown = map[int]bool{}
		picked := pick(src, ds, near)
		if note := picked[0]; note.Code != codeTooMany || note.Severity != diag.Info || note.Span != (source.Span{}) ||
			note.Message != "20000 diagnostics: shown are the 240 most important ones and those near the lines in view" {
			t.Errorf("the note is %+v", note)
		}
		if !slices.IsSortedFunc(picked[1:], func(a, b diag.Diagnostic) int { return a.Span.Start - b.Span.Start }) {
			t.Error("the order of the text is lost")
		}
		for _, d := range picked[1:] {
			shown[d.Span.Start/5] = true
		}
		return shown
	}
	important := at()
	if len(important) != most || !important[19000] || !important[19500] || !important[96] || important[90] {
		t.Errorf("%d diagnostics are the most important ones", len(important))
	}
	for _, view := range []lines{{0, 50}, {10000, 10060}, {19980, 20100}, {30000, 30050}} {
		shown := at(view)
		for line := view.first; line < min(view.end, count); line++ {
			if !shown[line] {
				t.Errorf("in view of lines %d to %d: line %d is not shown", view.first, view.end, line)
			}
		}
		for line := range important {
			if !shown[line] {
				t.Errorf("in view of lines %d to %d: line %d, which is important, is gone", view.first, view.end, line)
			}
		}
		if len(shown) > 2*most {
			t.Errorf("%d are shown", len(shown))
		}
	}
	if shown := at(lines{100, 150}, lines{10000, 10060}); !shown[120] || !shown[10050] || shown[5000] {
		t.Error("two views: lines of one of them are not shown, or lines between")
	}
	if n := len(at(lines{0, count})); n != 2*most {
		t.Errorf("%d are shown where everything is in view", n)
	}
	if few := ds[:2*most]; len(pick(src, few, nil)) != len(few) {
		t.Error("few diagnostics are not all shown")
	}
}

// A view decides about what is shown once it leaves the lines around the last one.
func TestLook(t *testing.T) {
	p := new(published)
	snap := &workspace.Snapshot{Address: workspace.Address{Key: "f"}, Src: source.New("f.dmir", "")}
	p.put(snap, make([]diag.Diagnostic, 2*most+1))
	var got []string
	for _, views := range [][]lines{{{100, 140}}, {{120, 160}}, {{140, 180}}, {{141, 181}}, {{61, 101}}, {{61, 101}, {800, 810}}, {{805, 815}}, {{60, 100}, {802, 812}}} {
		got = append(got, fmt.Sprint(p.look("f", views), p.near("f")))
	}
	want := []string{
		"true [{60 180}]", "false [{60 180}]", "false [{60 180}]", "true [{101 221}]", "true [{21 141}]",
		"true [{21 141} {790 820}]", "false [{21 141} {790 820}]", "false [{21 141} {790 820}]",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	p.put(snap, make([]diag.Diagnostic, 2*most))
	if p.look("f", []lines{{5000, 5040}}) {
		t.Error("the view decides although all are shown")
	}
	p.forget("f")
	if p.near("f") != nil {
		t.Error("the view of a closed document is kept")
	}
}
