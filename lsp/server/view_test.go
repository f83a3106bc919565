package server

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"go.lsp.dev/jsonrpc2"
	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"

	"dmir/lsp/connection"
	"dmir/lsp/session"
)

// content is the text of a virtual document.
func (e *editor) content(at string) string {
	e.t.Helper()
	var res protocol.TextDocumentContentResult
	e.must("workspace/textDocumentContent", fmt.Sprintf(`{"uri":%q}`, at), &res)
	return res.Text
}

// The program at other levels, beside the text, and following it.
func TestVirtualDocuments(t *testing.T) {
	e := connect(t, Options{}, nil)
	res := e.initialize(`{"workspace":{"textDocumentContent":{}},"window":{"showDocument":{"support":true}}}`, `{"lint":{"enabled":false}}`)
	if o, ok := res.Capabilities.Workspace.TextDocumentContent.(*protocol.TextDocumentContentRegistrationOptions); !ok || len(o.Schemes) != 1 || o.Schemes[0] != "dmir" {
		t.Errorf("capabilities %+v", res.Capabilities.Workspace.TextDocumentContent)
	}
	e.open(ffn)
	for view, want := range map[string]string{
		"generic":  `"dm.einsum"(%x, %w)`,
		"expanded": `dm.einsum "bln,nu->blu" %x, %w`,
		"fixed":    "%y = dm.kernel -> tensor<8x512x4096xf16> {\n    %h = dm.einsum", // also where lint is switched off
		"cost":     "einsum",
	} {
		at := session.ViewAddress(view, testURI, "")
		if got := e.content(at); !strings.Contains(got, want) {
			t.Errorf("%s:\n%s", view, got)
		}
	}
	var shown struct{ URI, Text string }
	e.command("dmir.view", fmt.Sprintf(`{"uri":%q,"view":"generic"}`, testURI), &shown)
	at := session.ViewAddress("generic", testURI, "")
	if asked := e.asked("window/showDocument", 1); shown.URI != at || shown.Text != "" || !strings.Contains(asked, at) {
		t.Errorf("%+v, asked to show %s", shown, asked)
	}

	// While typing: once for each view that the editor still has.
	const refresh = "workspace/textDocumentContent/refresh"
	e.change(2, edit(1, 7, 1, 7, " "))
	e.change(3, edit(7, 9, 7, 11, "%h"))
	for n := 1; n <= 4; n++ {
		e.asked(refresh, n)
	}
	if got := e.content(at); !strings.Contains(got, `"func.return"(%h)`) {
		t.Errorf("after an edit:\n%s", got)
	}
	e.change(4, edit(7, 9, 7, 11, "%gone"))
	if asked := e.asked(refresh, 5); !strings.Contains(asked, at) {
		t.Errorf("refreshed %s", asked)
	}
	if got := e.content(at); !strings.HasPrefix(got, "// This program has errors") {
		t.Errorf("with an error:\n%s", got)
	}
	if n := e.count(refresh); n != 5 {
		t.Errorf("%d refreshes; views that the editor does not ask for again are closed", n)
	}
	for params, code := range map[string]jsonrpc2.Code{
		`{"uri":"dmir:/generic/gone.mlir?file%3A%2F%2F%2Fgone.dmir"}`: connection.RequestFailed,
		`{"uri":"dmir:/rule/DM9999.md"}`:                              connection.RequestFailed,
		`{"uri":"dmir:/pie/t.dmir?file%3A%2F%2F%2Ft.dmir"}`:           jsonrpc2.InvalidParams,
		`{"uri":"dmir:/generic/t.dmir"}`:                              jsonrpc2.InvalidParams,
		`{"uri":"file:///t.dmir"}`:                                    jsonrpc2.InvalidParams,
		`{}`:                                                          jsonrpc2.InvalidParams,
		`[7]`:                                                         jsonrpc2.InvalidParams,
	} {
		if err := e.call("workspace/textDocumentContent", params, nil); codeOf(err) != code {
			t.Errorf("%s: %v", params, err)
		}
	}
	if err := e.call("workspace/executeCommand", fmt.Sprintf(`{"command":"dmir.view","arguments":[{"uri":%q,"view":"pie"}]}`, testURI), nil); codeOf(err) != jsonrpc2.InvalidParams || !strings.Contains(err.Error(), "cost, cuda, expanded, fixed, generic") {
		t.Errorf("an unknown view: %v", err)
	}
}

// An editor that knows no virtual documents gets the text.
func TestViewWithoutVirtualDocuments(t *testing.T) {
	e := connect(t, Options{}, nil)
	e.initialize(`{"window":{"showDocument":{"support":true}}}`, "")
	e.open(ffn)
	var shown struct{ URI, Text string }
	e.command("dmir.view", fmt.Sprintf(`{"uri":%q,"view":"expanded"}`, testURI), &shown)
	if shown.Text != ffn || e.count("window/showDocument") != 0 {
		t.Errorf("%+v", shown)
	}
	e.command("dmir.view", `{"uri":"dmir:/rule/dm201.md"}`, &shown)
	if !strings.HasPrefix(shown.Text, "# DM201 fusible-into-producer\n") || !strings.Contains(shown.Text, "## Silence") {
		t.Errorf("%+v", shown)
	}
}

// A virtual document that the editor opens is seen as the document that it
// shows: for the same machine.
func TestVirtualDocumentAsDocument(t *testing.T) {
	files := onDisk(t, map[string]string{"dmir.toml": `target = "l40s"`, "f.dmir": ffn})
	e := connect(t, Options{}, nil)
	e.initialize("", "")
	at := session.ViewAddress("expanded", files["f.dmir"], "")
	e.openAs(at, e.content(at))
	titles, _ := e.lenses(at)
	if got := titles[0]; !strings.Contains(got, " on l40s ") {
		t.Errorf("%q", titles)
	}
}

// Each folder of the workspace has settings of its own; the innermost counts,
// and those of the editor where there is none.
func TestFolders(t *testing.T) {
	files := onDisk(t, map[string]string{"a/f.dmir": ffn, "a/in/f.dmir": ffn, "ab/f.dmir": ffn, "b/f.dmir": ffn})
	root := files[""]
	e := connect(t, Options{}, nil)
	e.config = `{"target":"b200"}`
	e.scoped = map[string]string{root + "/a": `{"target":"v100"}`, root + "/a/in": `{"target":"l40s"}`, root + "/b": `{"target":"a100-80","hints":{"enabled":false}}`}
	var res protocol.InitializeResult
	e.must("initialize", fmt.Sprintf(`{"processId":null,"rootUri":null,"workspaceFolders":[{"uri":%q,"name":"a"},{"uri":%q,"name":"in"}],"capabilities":{"workspace":{"configuration":true,"workspaceFolders":true,"inlayHint":{"refreshSupport":true}}}}`, root+"/a", root+"/a/in"), &res)
	e.notify("initialized", "{}")
	e.asked("workspace/inlayHint/refresh", 1)
	machine := func(u string) string {
		t.Helper()
		titles, _ := e.lenses(u)
		_, on, _ := strings.Cut(titles[0], " on ")
		return strings.Fields(on)[0]
	}
	check := func(want map[string]string) {
		t.Helper()
		for name, m := range want {
			if got := machine(files[name]); got != m {
				t.Errorf("%s is for %s, want %s", name, got, m)
			}
		}
	}
	for _, name := range []string{"a/f.dmir", "a/in/f.dmir", "ab/f.dmir", "b/f.dmir"} {
		e.openAs(files[name], ffn)
	}
	e.openAs("untitled:one", ffn)
	check(map[string]string{"a/f.dmir": "v100", "a/in/f.dmir": "l40s", "ab/f.dmir": "b200", "b/f.dmir": "b200"})
	if got := machine("untitled:one"); got != "b200" {
		t.Errorf("what is in no folder is for %s", got)
	}
	n := e.count("workspace/inlayHint/refresh")
	e.notify("workspace/didChangeWorkspaceFolders", fmt.Sprintf(`{"event":{"added":[{"uri":%q,"name":"b"}],"removed":[{"uri":%q,"name":"in"}]}}`, root+"/b", root+"/a/in"))
	e.asked("workspace/inlayHint/refresh", n+1)
	check(map[string]string{"a/f.dmir": "v100", "a/in/f.dmir": "v100", "ab/f.dmir": "b200", "b/f.dmir": "a100-80"})
	var hints []protocol.InlayHint
	whole := `"range":{"start":{"line":0,"character":0},"end":{"line":9,"character":0}}`
	if e.must("textDocument/inlayHint", fmt.Sprintf(`{"textDocument":{"uri":%q},%s}`, files["b/f.dmir"], whole), &hints); len(hints) != 0 {
		t.Errorf("hints are off in b, and there: %+v", hints)
	}
}

// The text of a dmir.toml in the editor counts, not the one on disk; a file that
// is removed or comes nearer counts as soon as the editor reports it.
func TestConfigInEditor(t *testing.T) {
	files := onDisk(t, map[string]string{"dmir.toml": `target = "l40s"`, "sub/f.dmir": ffn})
	u, toml := files["sub/f.dmir"], files["dmir.toml"]
	e := connect(t, Options{}, nil)
	e.initialize(`{"workspace":{"inlayHint":{"refreshSupport":true}},"textDocument":{"synchronization":{"dynamicRegistration":true},"hover":{"dynamicRegistration":true},"completion":{"dynamicRegistration":true}}}`, "")
	registered := e.asked("client/registerCapability", 1)
	for _, want := range []string{"textDocument/didOpen", "textDocument/didChange", "textDocument/didClose", "textDocument/hover", "textDocument/completion", `"pattern":"**/dmir.toml"`} {
		if !strings.Contains(registered, want) {
			t.Errorf("%s is not registered: %s", want, registered)
		}
	}
	e.openAs(u, ffn)
	refreshed := 0
	machine := func(want, when string) {
		t.Helper()
		if refreshed > 0 {
			e.asked("workspace/inlayHint/refresh", refreshed)
		}
		refreshed++
		titles, _ := e.lenses(u)
		if got := titles[0]; !strings.Contains(got, " on "+want+" ") {
			t.Errorf("%s: %s", when, got)
		}
	}
	machine("l40s", "on disk")
	e.notify("textDocument/didOpen", fmt.Sprintf(`{"textDocument":{"uri":%q,"languageId":"toml","version":1,"text":"target = \"b200\"\n"}}`, toml))
	machine("b200", "open in the editor")
	e.notify("textDocument/didChange", fmt.Sprintf(`{"textDocument":{"uri":%q,"version":2},"contentChanges":[%s]}`, toml, edit(0, 10, 0, 14, "v100")))
	machine("v100", "typed")
	e.notify("textDocument/didChange", fmt.Sprintf(`{"textDocument":{"uri":%q,"version":3},"contentChanges":[%s]}`, toml, edit(0, 10, 0, 14, "v1000")))
	machine("v100", "mistyped")
	e.wait("textDocument/publishDiagnostics", func(p json.RawMessage) bool {
		return strings.Contains(string(p), "dmir.toml") && strings.Contains(string(p), `no machine \"v1000\"`)
	})
	var hover *protocol.Hover
	if e.must("textDocument/hover", fmt.Sprintf(`{"textDocument":{"uri":%q},"position":{"line":0,"character":1}}`, toml), &hover); hover == nil {
		t.Error("no hover for target")
	} else if text := hover.Contents.(*protocol.MarkupContent).Value; !strings.Contains(text, "times are predicted for") {
		t.Errorf("the hover of target: %s", text)
	}
	var list protocol.CompletionList
	e.must("textDocument/completion", fmt.Sprintf(`{"textDocument":{"uri":%q},"position":{"line":0,"character":12}}`, toml), &list)
	if !slices.ContainsFunc(list.Items, func(c protocol.CompletionItem) bool { return c.Label == "v100" }) {
		t.Errorf("completions of target: %+v", list.Items)
	}
	e.notify("textDocument/didClose", fmt.Sprintf(`{"textDocument":{"uri":%q}}`, toml))
	machine("l40s", "closed unsaved")

	near, err := uri.Parse(files[""] + "/sub/dmir.toml")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(near.FsPath(), []byte(`target = "a100-80"`), 0o644); err != nil {
		t.Fatal(err)
	}
	e.notify("workspace/didChangeWatchedFiles", fmt.Sprintf(`{"changes":[{"uri":%q,"type":1}]}`, near))
	machine("a100-80", "a nearer one")
	if err := os.Remove(near.FsPath()); err != nil {
		t.Fatal(err)
	}
	e.notify("workspace/didChangeWatchedFiles", fmt.Sprintf(`{"changes":[{"uri":%q,"type":3}]}`, near))
	machine("l40s", "which is removed")
	e.notify("textDocument/didChange", fmt.Sprintf(`{"textDocument":{"uri":%q,"version":9},"contentChanges":[{"text":""}]}`, toml))
	e.wait("window/logMessage", func(p json.RawMessage) bool { return strings.Contains(string(p), "is not open") })
}

// Errors in a dmir.toml are published while it is edited, with no program open, and
// cleared when the file is as before, or removed.
func TestConfigAlone(t *testing.T) {
	files := onDisk(t, map[string]string{"dmir.toml": "target = \"l40s\"\n", "b/dmir.toml": "tarket = 7\n", "b/f.dmir": ffn})
	e := connect(t, Options{}, nil)
	e.initialize("", "")
	published := func(name, want string, nth int) {
		t.Helper()
		n := 0
		e.wait("textDocument/publishDiagnostics", func(p json.RawMessage) bool {
			if strings.Contains(string(p), files[name]) && strings.Contains(string(p), want) {
				n++
			}
			return n == nth
		})
	}
	toml := files["dmir.toml"]
	e.notify("textDocument/didOpen", fmt.Sprintf(`{"textDocument":{"uri":%q,"languageId":"toml","version":1,"text":"tarket = 1\n"}}`, toml))
	published("dmir.toml", "tarket", 1)
	e.notify("textDocument/didClose", fmt.Sprintf(`{"textDocument":{"uri":%q}}`, toml))
	published("dmir.toml", `"diagnostics":[]`, 1)

	e.openAs(files["b/f.dmir"], ffn)
	published("b/dmir.toml", "tarket", 1)
	path, err := uri.Parse(files["b/dmir.toml"])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path.FsPath()); err != nil {
		t.Fatal(err)
	}
	e.notify("workspace/didChangeWatchedFiles", fmt.Sprintf(`{"changes":[{"uri":%q,"type":3}]}`, path))
	published("b/dmir.toml", `"diagnostics":[]`, 1)
}
