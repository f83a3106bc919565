package server

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"go.lsp.dev/jsonrpc2"
	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"

	"dmir/lsp/connection"
	"dmir/lsp/feature"
)

const ffn = `func.func @ffn(%x: tensor<8x512x1024xf16>, %w: tensor<1024x4096xf16>, %b: tensor<4096xf16>) -> tensor<8x512x4096xf16> {
  %h = dm.einsum "bln,nu->blu" %x, %w : (tensor<8x512x1024xf16>, tensor<1024x4096xf16>) -> tensor<8x512x4096xf16>
  %y = dm.kernel -> tensor<8x512x4096xf16> {
    %0 = dm.add %h, %b : (tensor<8x512x4096xf16>, tensor<4096xf16>) -> tensor<8x512x4096xf16>
    %1 = dm.relu %0 : tensor<8x512x4096xf16>
    dm.yield %1 : tensor<8x512x4096xf16>
  }
  return %y : tensor<8x512x4096xf16>
}
`

// hints are the labels between two lines.
func (e *editor) hints(first, last int) []string {
	e.t.Helper()
	var hs []protocol.InlayHint
	e.must("textDocument/inlayHint", fmt.Sprintf(`{"textDocument":{"uri":%q},"range":{"start":{"line":%d,"character":0},"end":{"line":%d,"character":0}}}`, testURI, first, last), &hs)
	var labels []string
	for _, h := range hs {
		l := string(h.Label.(protocol.String))
		if utf8.RuneCountInString(l) > feature.LabelWidth {
			e.t.Errorf("the label %q is too long", l)
		}
		labels = append(labels, fmt.Sprintf("%d: %s", h.Position.Line, l))
	}
	return labels
}

func at(line, char int) string {
	return fmt.Sprintf(`{"textDocument":{"uri":%q},"position":{"line":%d,"character":%d}}`, testURI, line, char)
}

const doc = `{"textDocument":{"uri":"` + testURI + `"}}`

// A session on one file: what is shown without being asked, and what is asked.
func TestSession(t *testing.T) {
	e := connect(t, Options{}, withText)
	e.initialize(`{"workspace":{"workspaceEdit":{"documentChanges":true}},"textDocument":{"documentSymbol":{"hierarchicalDocumentSymbolSupport":true}}}`, "")
	e.open(ffn)

	ds := e.diagnostics(1, func(ds []protocol.Diagnostic) bool { return len(ds) == 1 })
	if ds[0].Code != protocol.String("DM201") || ds[0].Range.Start.Line != 2 {
		t.Errorf("diagnostic %+v", ds[0])
	}
	if got, want := strings.Join(e.hints(1, 2), "\n"), "1: 50.0µs 50MB\n2: 17.0µs 67MB"; got != want {
		t.Errorf("hints of lines 1 to 2:\n%s\nwant\n%s", got, want)
	}

	var h protocol.Hover
	e.must("textDocument/hover", at(1, 8), &h)
	if text := h.Contents.(*protocol.MarkupContent).Value; !strings.Contains(text, "34.4 GFLOP") || !strings.Contains(text, "Einstein") {
		t.Errorf("hover %q", text)
	}

	var lenses []protocol.CodeLens
	e.must("textDocument/codeLens", doc, &lenses)
	if len(lenses) != 6 || lenses[1].Command.Command != "dmir.run" || string(lenses[1].Command.Arguments[0]) != fmt.Sprintf(`{"uri":%q,"func":"ffn"}`, testURI) {
		t.Errorf("lenses %+v", lenses)
	}

	var loc protocol.LocationSlice
	e.must("textDocument/definition", at(3, 17), &loc)
	if len(loc) != 1 || loc[0].Range.Start != (protocol.Position{Line: 1, Character: 2}) {
		t.Errorf("definition of %%h: %+v", loc)
	}
	e.must("textDocument/references", fmt.Sprintf(`{"textDocument":{"uri":%q},"position":{"line":1,"character":3},"context":{"includeDeclaration":true}}`, testURI), &loc)
	if len(loc) != 2 {
		t.Errorf("references of %%h: %+v", loc)
	}
	var marks []protocol.DocumentHighlight
	e.must("textDocument/documentHighlight", at(1, 3), &marks)
	if len(marks) != 2 || marks[0].Kind != protocol.DocumentHighlightKindWrite {
		t.Errorf("highlights %+v", marks)
	}
	var folds []protocol.FoldingRange
	e.must("textDocument/foldingRange", doc, &folds)
	if len(folds) != 2 || folds[0].StartLine != 0 || folds[0].EndLine != 7 {
		t.Errorf("folds %+v", folds)
	}
	var syms protocol.DocumentSymbolSlice
	e.must("textDocument/documentSymbol", doc, &syms)
	if len(syms) != 1 || syms[0].Name != "@ffn" || len(syms[0].Children) != 1 || syms[0].Children[0].Name != "%y" {
		t.Errorf("symbols %+v", syms)
	}

	var ph protocol.PrepareRenamePlaceholder
	e.must("textDocument/prepareRename", at(1, 3), &ph)
	if ph.Placeholder != "%h" {
		t.Errorf("prepareRename %+v", ph)
	}
	var we protocol.WorkspaceEdit
	e.must("textDocument/rename", fmt.Sprintf(`{"textDocument":{"uri":%q},"position":{"line":1,"character":3},"newName":"hidden"}`, testURI), &we)
	if got, want := applyEdit(t, ffn, &we, 1), strings.ReplaceAll(ffn, "%h", "%hidden"); got != want {
		t.Errorf("renamed:\n%s", got)
	}
	if err := e.call("textDocument/rename", fmt.Sprintf(`{"textDocument":{"uri":%q},"position":{"line":1,"character":3},"newName":"%%x"}`, testURI), nil); codeOf(err) != connection.RequestFailed {
		t.Errorf("a rename to a name that is taken: %v", err)
	}
}

// applyEdit checks the version that an edit is for and applies it.
func applyEdit(t *testing.T, text string, we *protocol.WorkspaceEdit, version int32) string {
	t.Helper()
	if len(we.DocumentChanges) != 1 {
		t.Fatalf("edit %+v", we)
	}
	change := we.DocumentChanges[0].(*protocol.TextDocumentEdit)
	if v := change.TextDocument.Version; v == nil || *v != version {
		t.Fatalf("the edit is for version %v", v)
	}
	lines := strings.SplitAfter(text, "\n")
	off := func(p protocol.Position) int {
		return len(strings.Join(lines[:p.Line], "")) + int(p.Character) // ASCII
	}
	for i := len(change.Edits) - 1; i >= 0; i-- {
		e := change.Edits[i].(*protocol.TextEdit)
		text = text[:off(e.Range.Start)] + e.NewText + text[off(e.Range.End):]
	}
	return text
}

// Quick fixes keep their promise when applied, one at a time and all at once.
func TestFixes(t *testing.T) {
	e := connect(t, Options{}, nil)
	e.initialize(`{"workspace":{"workspaceEdit":{"documentChanges":true}}}`, "")
	e.open(ffn)
	ask := func(only string) []*protocol.CodeAction {
		t.Helper()
		var raw []json.RawMessage
		e.must("textDocument/codeAction", fmt.Sprintf(`{"textDocument":{"uri":%q},"range":{"start":{"line":2,"character":8},"end":{"line":2,"character":8}},"context":{"diagnostics":[]%s}}`, testURI, only), &raw)
		var out []*protocol.CodeAction
		for _, r := range raw {
			a := new(protocol.CodeAction)
			if err := protocol.Unmarshal(r, a); err != nil {
				t.Fatal(err)
			}
			out = append(out, a)
		}
		return out
	}
	quick := ask(`,"only":["quickfix"]`)
	if len(quick) == 0 || *quick[0].Kind != "quickfix" || !*quick[0].IsPreferred || len(quick[0].Diagnostics) != 1 || !strings.Contains(quick[0].Title, "saves 67.1 MB") {
		t.Fatalf("quick fixes %+v", quick)
	}
	all := ask(`,"only":["source.fixAll"]`)
	if len(all) != 1 || *all[0].Kind != fixAll {
		t.Fatalf("fix all: %+v", all)
	}
	fixed := applyEdit(t, ffn, quick[0].Edit, 1)
	if again := applyEdit(t, ffn, all[0].Edit, 1); again != fixed {
		t.Errorf("one fix gives\n%s\nall give\n%s", fixed, again)
	}
	e.change(2, `{"text":`+quote(fixed)+`}`)
	e.diagnostics(2, func(ds []protocol.Diagnostic) bool { return len(ds) == 0 })
	// The lens now shows what the fix promised: 117 − 67.1 MB.
	var lenses []protocol.CodeLens
	e.must("textDocument/codeLens", doc, &lenses)
	if title := lenses[0].Command.Title; !strings.HasSuffix(title, " · 50.3 MB moved") {
		t.Errorf("after the fix: %s", title)
	}
}

// Formatting sends small edits and keeps line ends.
func TestFormatting(t *testing.T) {
	for _, eol := range []string{"\n", "\r\n"} {
		e := connect(t, Options{}, withText)
		e.initialize("", "")
		messy := strings.ReplaceAll("func.func   @f() {\n\n\nreturn\n}\n", "\n", eol)
		e.open(messy)
		var edits []protocol.TextEdit
		e.must("textDocument/formatting", `{"textDocument":{"uri":"`+testURI+`"},"options":{"tabSize":2,"insertSpaces":true}}`, &edits)
		var changes []string
		for i := len(edits) - 1; i >= 0; i-- {
			r := edits[i].Range
			changes = append(changes, edit(int(r.Start.Line), int(r.Start.Character), int(r.End.Line), int(r.End.Character), edits[i].NewText))
		}
		e.change(2, changes...)
		if got, want := e.text(), strings.ReplaceAll("func.func @f() {\n  return\n}\n", "\n", eol); got != want {
			t.Errorf("formatted %q, want %q", got, want)
		}
		e.must("textDocument/formatting", `{"textDocument":{"uri":"`+testURI+`"},"options":{"tabSize":2,"insertSpaces":true}}`, &edits)
		if len(edits) != 0 {
			t.Errorf("formatting formatted text: %+v", edits)
		}
	}
}

// Settings arrive by every road and take effect at once.
func TestSettings(t *testing.T) {
	e := connect(t, Options{}, nil)
	e.initialize(`{"workspace":{"inlayHint":{"refreshSupport":true}}}`, `{"target":"v100"}`)
	e.open(ffn)
	title := func() string {
		var lenses []protocol.CodeLens
		e.must("textDocument/codeLens", doc, &lenses)
		return lenses[0].Command.Title
	}
	if got := title(); !strings.Contains(got, " on v100 ") {
		t.Errorf("by initializationOptions: %s", got)
	}
	e.notify("workspace/didChangeConfiguration", `{"settings":{"dmir":{"target":"l40s","hints":{"enabled":false},"lint.enabled":false,"run":7}}}`)
	if got := title(); !strings.Contains(got, " on l40s ") {
		t.Errorf("by didChangeConfiguration: %s", got)
	}
	e.waitCall("workspace/inlayHint/refresh")
	if got := e.hints(0, 9); len(got) != 0 {
		t.Errorf("hints switched off: %q", got)
	}
	e.wait("window/logMessage", func(p json.RawMessage) bool { return strings.Contains(string(p), "dmir.run is not an object") })
	e.notify("workspace/didChangeConfiguration", `{"settings":{"dmir":{"target":"h2000"}}}`)
	e.diagnostics(1, func(ds []protocol.Diagnostic) bool {
		return len(ds) > 0 && strings.Contains(string(ds[0].Message.(protocol.String)), `did you mean h200?`)
	})
}

// A client that is asked for its settings.
func TestPulledSettings(t *testing.T) {
	e := connect(t, Options{}, nil)
	e.config = `{"target":"b200"}`
	e.initialize(`{"workspace":{"configuration":true,"inlayHint":{"refreshSupport":true},"didChangeWatchedFiles":{"dynamicRegistration":true}}}`, "")
	e.waitCall("client/registerCapability")
	e.waitCall("workspace/inlayHint/refresh") // the pull has changed the target
	e.open(ffn)
	var lenses []protocol.CodeLens
	e.must("textDocument/codeLens", doc, &lenses)
	if got := lenses[0].Command.Title; !strings.Contains(got, " on b200 ") {
		t.Errorf("pulled: %s", got)
	}
}

// Settings that change while an answer is on its way: the answer that counts is
// the newest, however late an older one comes.
func TestPulledSettingsInOrder(t *testing.T) {
	e := connect(t, Options{}, nil)
	late := make(chan struct{})
	e.config, e.hold = `{"target":"v100"}`, late
	e.initialize(`{"workspace":{"configuration":true,"inlayHint":{"refreshSupport":true}}}`, "")
	e.open(ffn)
	e.asked("workspace/configuration", 1)
	e.mu.Lock()
	e.config, e.hold = `{"target":"b200"}`, nil
	e.mu.Unlock()
	e.notify("workspace/didChangeConfiguration", `{"settings":null}`)
	time.Sleep(50 * time.Millisecond) // for a server that would ask beside it
	close(late)
	e.asked("workspace/inlayHint/refresh", 2)
	var lenses []protocol.CodeLens
	e.must("textDocument/codeLens", doc, &lenses)
	if got := lenses[0].Command.Title; !strings.Contains(got, " on b200 ") {
		t.Errorf("pulled last: %s", got)
	}
}

// dmir.toml beside the file applies, its faults are shown in it, and a change
// to it is noticed.
func TestConfigFile(t *testing.T) {
	dir := t.TempDir()
	toml := filepath.Join(dir, "dmir.toml")
	write := func(text string) {
		if err := os.WriteFile(toml, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("target = \"mine\"\n[lint]\nignore = [\"DM201\"]\n[machines.mine]\nbase = \"h200\"\ntitle = \"My machine\"\n")
	e := connect(t, Options{}, nil)
	e.initialize("", "")
	u := string(uri.File(filepath.Join(dir, "f.dmir")))
	e.notify("textDocument/didOpen", fmt.Sprintf(`{"textDocument":{"uri":%q,"languageId":"dmir","version":1,"text":%s}}`, u, quote(ffn)))
	var cost struct {
		Title string `json:"title"`
		Text  string `json:"text"`
	}
	e.must("workspace/executeCommand", fmt.Sprintf(`{"command":"dmir.cost","arguments":[{"uri":%q,"func":"ffn"}]}`, u), &cost)
	if cost.Title != "Cost of @ffn on mine" || !strings.Contains(cost.Text, "einsum") {
		t.Errorf("cost %+v", cost)
	}
	var targets []struct {
		Name    string `json:"name"`
		Title   string `json:"title"`
		Current bool   `json:"current"`
	}
	e.must("workspace/executeCommand", fmt.Sprintf(`{"command":"dmir.targets","arguments":[{"uri":%q}]}`, u), &targets)
	for _, m := range targets {
		if m.Current != (m.Name == "mine") {
			t.Errorf("current %+v", m)
		}
	}
	targets = nil
	e.must("workspace/executeCommand", `{"command":"dmir.targets"}`, &targets)
	if !strings.Contains(fmt.Sprint(targets), "My machine") || !strings.Contains(fmt.Sprint(targets), "h200") {
		t.Errorf("targets %v", targets)
	}
	write("tarket = \"v100\"\n")
	e.notify("workspace/didChangeWatchedFiles", fmt.Sprintf(`{"changes":[{"uri":%q,"type":2}]}`, uri.File(toml)))
	e.wait("textDocument/publishDiagnostics", func(p json.RawMessage) bool {
		return strings.Contains(string(p), "dmir.toml") && strings.Contains(string(p), "tarket")
	})
	write("")
	e.notify("workspace/didChangeWatchedFiles", fmt.Sprintf(`{"changes":[{"uri":%q,"type":2}]}`, uri.File(toml)))
	e.wait("textDocument/publishDiagnostics", func(p json.RawMessage) bool {
		return strings.Contains(string(p), "dmir.toml") && strings.Contains(string(p), `"diagnostics":[]`)
	})
	e.wait("textDocument/publishDiagnostics", func(p json.RawMessage) bool {
		return strings.Contains(string(p), "f.dmir") && strings.Contains(string(p), "DM201") // no longer ignored
	})
}

// Errors appear while typing; closing the file takes them away.
func TestDiagnosticsFollow(t *testing.T) {
	e := connect(t, Options{}, nil)
	e.initialize("", "")
	e.open(ffn)
	e.change(2, edit(4, 17, 4, 19, "%9"))
	ds := e.diagnostics(2, func(ds []protocol.Diagnostic) bool {
		return len(ds) > 0 && ds[0].Severity == protocol.DiagnosticSeverityError
	})
	if got := ds[0].Range; got.Start.Line != 4 || got.Start.Character != 17 {
		t.Errorf("the error is at %+v", got)
	}
	e.notify("textDocument/didClose", doc)
	e.wait("textDocument/publishDiagnostics", func(p json.RawMessage) bool {
		return strings.Contains(string(p), `"diagnostics":[]`) && !strings.Contains(string(p), "version")
	})
	var h *protocol.Hover
	e.must("textDocument/hover", at(1, 8), &h)
	if h != nil {
		t.Errorf("hover on a closed file: %+v", h)
	}
}

// Diagnostics carry the address that the editor uses for a document, and
// finds it under any spelling.
func TestAddresses(t *testing.T) {
	e := connect(t, Options{}, nil)
	e.initialize("", "")
	const spelt, other = "file:///a+b@c/f(1).dmir", "file:///a%2Bb%40c/f%281%29.dmir"
	e.notify("textDocument/didOpen", fmt.Sprintf(`{"textDocument":{"uri":%q,"languageId":"dmir","version":1,"text":%s}}`, spelt, quote(ffn)))
	e.wait("textDocument/publishDiagnostics", func(p json.RawMessage) bool { return strings.Contains(string(p), spelt) })
	for _, u := range []string{spelt, other} {
		var loc protocol.LocationSlice
		raw := new(json.RawMessage)
		e.must("textDocument/definition", fmt.Sprintf(`{"textDocument":{"uri":%q},"position":{"line":3,"character":17}}`, u), (*jsonrpc2.RawMessage)(raw))
		if !strings.Contains(string(*raw), spelt) || protocol.Unmarshal(*raw, &loc) != nil || len(loc) != 1 {
			t.Errorf("asked for %s, the definition is at %s", u, *raw)
		}
		if err := e.call("workspace/executeCommand", fmt.Sprintf(`{"command":"dmir.cost","arguments":[{"uri":%q}]}`, u), nil); err != nil {
			t.Errorf("cost of %s: %v", u, err)
		}
	}
	e.notify("textDocument/didClose", fmt.Sprintf(`{"textDocument":{"uri":%q}}`, other))
	e.wait("textDocument/publishDiagnostics", func(p json.RawMessage) bool {
		return strings.Contains(string(p), spelt) && strings.Contains(string(p), `"diagnostics":[]`)
	})
}
