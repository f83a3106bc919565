package server

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"go.lsp.dev/jsonrpc2"
)

// While a dmir.toml has an error, the last one without holds, and every figure has a mark and the
// reason; without a last one the defaults hold, marked as well.
func TestBrokenConfig(t *testing.T) {
	files := onDisk(t, map[string]string{"dmir.toml": "target = \"a100-8\n", "f.dmir": ffn})
	u, toml := files["f.dmir"], files["dmir.toml"]
	e := connect(t, Options{}, nil)
	e.initialize(`{"workspace":{"inlayHint":{"refreshSupport":true}}}`, `{"lint":{"enabled":false}}`)
	e.openAs(u, ffn)
	e.notify("textDocument/didOpen", fmt.Sprintf(`{"textDocument":{"uri":%q,"languageId":"toml","version":1,"text":"target = \"a100-8\n"}}`, toml))
	ask := func(method, params string) string {
		t.Helper()
		var raw jsonrpc2.RawMessage
		e.must(method, fmt.Sprintf(`{"textDocument":{"uri":%q}%s}`, u, params), &raw)
		return string(raw)
	}
	whole := `,"range":{"start":{"line":0,"character":0},"end":{"line":99,"character":0}}`
	for i, c := range []struct{ text, target, by, doubt string }{
		{"target = \"a100-8\n", "h200", "default", "dmir.toml has an error in line 1"},
		{"target = \"a100-80\"\n", "a100-80", "dmir.toml", ""},
		{"\ntarget = \"a100-8\n", "a100-80", "dmir.toml", "by dmir.toml before the error in line 2"},
		{"target = \"h900\"\n", "a100-80", "dmir.toml", "by dmir.toml before the error in line 1"},
		{"tarket = \"h200\"\n", "a100-80", "dmir.toml", "by dmir.toml before the error in line 1"},
		{"target = \"h100\"\n", "h100", "dmir.toml", ""},
		{"", "h200", "default", ""},
	} {
		e.notify("textDocument/didChange", fmt.Sprintf(`{"textDocument":{"uri":%q,"version":%d},"contentChanges":[{"text":%s}]}`, toml, i+2, quote(c.text)))
		e.asked("workspace/inlayHint/refresh", i+2)
		var now struct{ Target, Title, By, Config, Doubt string }
		if err := json.Unmarshal([]byte(ask(methodStatus, "")), &now); err != nil {
			t.Fatal(err)
		}
		if now.Target != c.target || now.By != c.by || now.Doubt != c.doubt || !strings.HasSuffix(now.Config, "dmir.toml") || now.Title == "" {
			t.Errorf("%q: status %+v", c.text, now)
		}
		titles, _ := e.lenses(u)
		marked := c.doubt != ""
		if want := " on " + c.target + " · "; strings.HasPrefix(titles[0], "≈ ") != marked || !strings.Contains(titles[0], want) || marked && !strings.HasSuffix(titles[0], " · "+c.doubt) {
			t.Errorf("%q: lens %q", c.text, titles[0])
		}
		var shown struct{ Title string }
		e.command("dmir.cost", fmt.Sprintf(`{"uri":%q}`, u), &shown)
		panel := new(jsonrpc2.RawMessage)
		e.must("dmir/panelData", fmt.Sprintf(`{"uri":%q,"kind":"roofline","function":"ffn"}`, u), panel)
		for what, text := range map[string]string{
			"hints": ask("textDocument/inlayHint", whole), "hover": ask("textDocument/hover", `,"position":{"line":4,"character":10}`), "heat": ask("dmir/heat", whole+`,"by":"time"`),
			"column": ask("dmir/hints", whole+`,"by":"time"`), "cost": shown.Title, "panel": string(*panel),
		} {
			if strings.Contains(text, "≈") != (marked && what != "panel") || strings.Contains(text, c.doubt) != (marked || c.doubt == "") {
				t.Errorf("%q: %s: %s", c.text, what, text)
			}
		}
	}
}

// A target of the settings that is no machine is told apart from a choice.
func TestUnknownTargetStatus(t *testing.T) {
	for options, want := range map[string]string{
		`{"target":"h100"}`: `{"target":"h100","title":"H100 SXM5 80 GB","by":"settings","config":"","doubt":""}`,
		`{"target":"h900"}`: `{"target":"h200","title":"H200 SXM","by":"default","config":"","doubt":"the setting dmir.target names no machine"}`,
	} {
		e := connect(t, Options{}, nil)
		e.initialize("", options)
		e.open(ffn)
		var got jsonrpc2.RawMessage
		e.must(methodStatus, doc, &got)
		if string(got) != want {
			t.Errorf("%s: %s", options, got)
		}
	}
}
