package server

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"go.lsp.dev/jsonrpc2"
	"go.lsp.dev/uri"

	"dmir/lsp/page"
	"dmir/lsp/session"
)

// Both sides of a comparison have costs, and each line says how much more or less it takes than on
// the other: of what is gone, the older side.
func TestChanges(t *testing.T) {
	files := onDisk(t, map[string]string{"f.dmir": "", "dmir.toml": "target = \"a100-80\"\n"})
	u := files["f.dmir"]
	base := strings.Replace(u, "file://", "git:", 1) + `?%7B%22ref%22%3A%22HEAD%22%7D`
	if a := session.AddressOf(uri.URI(base)); a.Base != session.AddressOf(uri.URI(u)).Path || a.Path == a.Base {
		t.Fatalf("address %+v", a)
	}
	e := connect(t, Options{}, nil)
	e.initialize("", "")
	const before = `func.func @f(%x: tensor<512x512xf32>) -> tensor<512x512xf32> {
  %a = dm.exp %x : tensor<512x512xf32>
  %b = dm.tanh %a : tensor<512x512xf32>
  %c = dm.transpose %b, dims = [1, 0] : tensor<512x512xf32>
  return %c : tensor<512x512xf32>
}
`
	after := strings.NewReplacer("  %b = dm.tanh %a : tensor<512x512xf32>\n", "", "transpose %b", "transpose %a", "  return %c :", "  %d = dm.broadcast %c : (tensor<512x512xf32>) -> tensor<4x512x512xf32>\n  %e = dm.reduce max %d, dims = [0] : (tensor<4x512x512xf32>) -> tensor<512x512xf32>\n  return %e :").Replace(before)
	e.openAs(base, before)
	e.openAs(u, after)
	for _, side := range []string{u, base} {
		var got []columnHint
		e.must("dmir/hints", fmt.Sprintf(`{"textDocument":{"uri":%q}}`, side), &got)
		if len(got) < 4 || !strings.Contains(got[0].Tooltip, "a100-80") {
			t.Errorf("%s: hints %+v", side, got)
		}
	}
	var raw jsonrpc2.RawMessage
	e.must(methodChanges, fmt.Sprintf(`{"textDocument":{"uri":%q},"base":{"uri":%q}}`, u, base), &raw)
	var got page.Changes
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatal(err)
	}
	text := strings.Split(after, "\n")
	lines := strings.Split(before, "\n")
	if len(got.Text) == 0 || len(got.Base) == 0 {
		t.Fatalf("%s", raw)
	}
	for _, c := range got.Text {
		if !strings.Contains(text[c.Line], "dm.broadcast") && !strings.Contains(text[c.Line], "dm.reduce") || c.Sign != 1 || c.Label == "" || c.Why == "" {
			t.Errorf("%+v of %q", c, text[c.Line])
		}
	}
	for _, c := range got.Base {
		if !strings.Contains(lines[c.Line], "dm.tanh") || c.Sign >= 0 || !strings.HasPrefix(c.Label, "−") {
			t.Errorf("%+v of %q", c, lines[c.Line])
		}
	}
	if err := e.call(methodChanges, fmt.Sprintf(`{"textDocument":{"uri":%q},"base":{"uri":"file:///none.dmir"}}`, u), nil); err == nil {
		t.Error("a version that is not open")
	}
	if err := e.call(methodChanges, `[]`, nil); codeOf(err) != jsonrpc2.InvalidParams {
		t.Errorf("no parameters: %v", err)
	}
}
