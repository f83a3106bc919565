package server

import (
	"encoding/json"
	"strings"
	"testing"

	"go.lsp.dev/protocol"
)

// The text of a document is taken out of its parameters, whatever stands
// around it; where it is not as JSON has it, nothing is.
func TestCutText(t *testing.T) {
	for _, text := range []string{"", "a", "%0 = \"dm.exp\"(%x)\n", "\\\"\\", "tab\tcr\rü€😀\u2028\u0000", strings.Repeat("line \"quoted\" \\n\n", 1000)} {
		for _, params := range []any{
			map[string]any{"textDocument": map[string]any{"languageId": "mlir", "text": text, "uri": "file:///a\"b", "version": 7}},
			map[string]any{"more": map[string]any{"text": "no"}, "text": "no", "textDocument": map[string]any{"a": []any{map[string]any{"text": "no"}}, "text": text, "uri": "file:///a", "version": 7}},
		} {
			raw, err := json.MarshalIndent(params, "", " ")
			if err != nil {
				t.Fatal(err)
			}
			rest, got, ok := cutText(raw)
			if !ok || got != text {
				t.Fatalf("%s gave %q, %v", raw, got, ok)
			}
			var p, q protocol.DidOpenTextDocumentParams
			if err := protocol.Unmarshal(rest, &p); err != nil {
				t.Fatalf("%s left %s: %v", raw, rest, err)
			}
			if err := protocol.Unmarshal(raw, &q); err != nil {
				t.Fatal(err)
			}
			if p.TextDocument.Text != "" || p.TextDocument.URI != q.TextDocument.URI || p.TextDocument.Version != 7 {
				t.Errorf("%s left %s", raw, rest)
			}
		}
	}
	for _, raw := range []string{
		``, `{`, `{"textDocument":{"text":"`, `{"textDocument":{"text":"a\"}}`, `{"textDocument":{"text":"\x"}}`, `{"textDocument":{"text":"\u12"}}`,
		`{"textDocument":{"text":"\ud800"}}`, `{"textDocument":{"text":"\ud800\u0041"}}`, `{"textDocument":{"text":7}}`, `{"text":"a"}`,
		"{\"textDocument\":{\"text\":\"\xff\"}}", `{"textDocument":{"text":"\`, `{"textDocument":[{"uri":"a"}],"x":"`,
	} {
		if _, text, ok := cutText([]byte(raw)); ok {
			t.Errorf("%s gave %q", raw, text)
		}
	}
}
