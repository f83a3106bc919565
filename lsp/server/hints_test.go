package server

import (
	"fmt"
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
	if err := e.call("dmir/hints", `{"textDocument":{"uri":"`+testURI+`"},"by":"colour"}`, nil); codeOf(err) != jsonrpc2.InvalidParams {
		t.Errorf("by colour: %v", err)
	}
	e.notify("workspace/didChangeConfiguration", `{"settings":{"dmir":{"hints":{"enabled":false}}}}`)
	if e.must("dmir/hints", doc, &got); len(got) != 0 {
		t.Errorf("hints are off, and there: %+v", got)
	}
}
