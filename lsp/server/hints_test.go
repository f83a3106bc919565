package server

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"go.lsp.dev/jsonrpc2"

	"dmir/lsp/feature"
)

// The column and the inlay hints are one source: each line has the same figures in
// both, in the column at the same place of each line.
func TestColumn(t *testing.T) {
	e := connect(t, Options{}, withText)
	e.initialize("", "")
	e.open(ffn)
	var got []columnHint
	e.must("dmir/hints", doc, &got)
	var labels []string
	for _, h := range got {
		if n := utf8.RuneCountInString(h.Label); n != feature.LabelWidth {
			t.Errorf("%q has %d characters", h.Label, n)
		}
		if h.Level == nil && h.Line > 0 || h.Measured || !strings.Contains(h.Tooltip, "time on h200") {
			t.Errorf("hint %+v", h)
		}
		labels = append(labels, fmt.Sprintf("%d: %s", h.Line, strings.Join(strings.Fields(h.Label), " ")))
	}
	if want := strings.Join(e.hints(0, 99), "\n"); strings.Join(labels, "\n") != want || len(got) != 3 {
		t.Errorf("the column has\n%s\ninlay hints are\n%s", strings.Join(labels, "\n"), want)
	}
	e.must("dmir/hints", `{"textDocument":{"uri":"`+testURI+`"},"by":"waste","range":{"start":{"line":2,"character":9},"end":{"line":2,"character":10}}}`, &got)
	if len(got) != 1 || got[0].Line != 2 || got[0].Level == nil {
		t.Errorf("of line 2 %+v", got)
	}
	// Parts that overlap, in any order: each line once, in the order of the text.
	e.must("dmir/hints", `{"textDocument":{"uri":"`+testURI+`"},"ranges":[`+lineRange(2, 3)+`,`+lineRange(0, 0)+`,`+lineRange(2, 2)+`]}`, &got)
	var at []int
	for _, h := range got {
		at = append(at, h.Line)
	}
	if !slices.Equal(at, []int{0, 2}) {
		t.Errorf("of lines 0 and 2 to 3: %v", at)
	}
	if err := e.call("dmir/hints", `{"textDocument":{"uri":"`+testURI+`"},"by":"colour"}`, nil); codeOf(err) != jsonrpc2.InvalidParams {
		t.Errorf("by colour: %v", err)
	}
	e.notify("workspace/didChangeConfiguration", `{"settings":{"dmir":{"hints":{"enabled":false}}}}`)
	if e.must("dmir/hints", doc, &got); len(got) != 0 {
		t.Errorf("hints are off, and there: %+v", got)
	}
}

func lineRange(first, last int) string {
	return fmt.Sprintf(`{"start":{"line":%d,"character":0},"end":{"line":%d,"character":0}}`, first, last)
}
