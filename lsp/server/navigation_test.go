package server

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.lsp.dev/jsonrpc2"
	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"

	"dmir/lsp/connection"
)

const calling = `func.func private @leaf(i32) -> i32
func.func @twice(%x: i32) -> i32 {
  %0 = func.call @leaf(%x) : (i32) -> i32 // 𝔻
  %1 = func.call @leaf(%0) : (i32) -> i32
  return %1 : i32
}
func.func @main(%x: i32) -> i32 {
  %0 = func.call @leaf(%x) : (i32) -> i32
  return %0 : i32
}
`

// Who calls a function and whom it calls, also after the text above it has changed.
func TestCallHierarchy(t *testing.T) {
	e := connect(t, Options{}, nil)
	e.initialize("", "")
	e.open(calling)
	prepare := func(line, char int) protocol.CallHierarchyItem {
		t.Helper()
		var items []protocol.CallHierarchyItem
		e.must("textDocument/prepareCallHierarchy", at(line, char), &items)
		if len(items) != 1 {
			t.Fatalf("items at %d:%d: %+v", line, char, items)
		}
		return items[0]
	}
	params := func(item protocol.CallHierarchyItem) string {
		t.Helper()
		raw, err := protocol.Marshal(&item)
		if err != nil {
			t.Fatal(err)
		}
		return `{"item":` + string(raw) + `}`
	}
	leaf := prepare(2, 20)
	if leaf.Name != "@leaf" || *leaf.Detail != "(i32) -> i32" || leaf.SelectionRange.Start != (protocol.Position{Character: 18}) {
		t.Errorf("item %+v", leaf)
	}
	callers := func(item protocol.CallHierarchyItem) string {
		t.Helper()
		var calls []protocol.CallHierarchyIncomingCall
		e.must("callHierarchy/incomingCalls", params(item), &calls)
		var found []string
		for _, c := range calls {
			found = append(found, c.From.Name)
			for _, r := range c.FromRanges {
				found = append(found, fmt.Sprintf("%d:%d-%d", r.Start.Line, r.Start.Character, r.End.Character))
			}
		}
		return strings.Join(found, " ")
	}
	if got, want := callers(leaf), "@twice 2:17-22 3:17-22 @main 7:17-22"; got != want {
		t.Errorf("callers %s, want %s", got, want)
	}
	e.change(2, edit(0, 0, 0, 0, "// one more line\n\n"))
	if got, want := callers(leaf), "@twice 4:17-22 5:17-22 @main 9:17-22"; got != want {
		t.Errorf("callers after an edit %s, want %s", got, want)
	}
	var calls []protocol.CallHierarchyOutgoingCall
	e.must("callHierarchy/outgoingCalls", params(prepare(8, 12)), &calls)
	if len(calls) != 1 || calls[0].To.Name != "@leaf" || len(calls[0].FromRanges) != 1 {
		t.Errorf("callees of @main: %+v", calls)
	}
	e.change(3, edit(2, 0, 3, 0, "")) // @leaf is gone
	if got := callers(leaf); got != "" {
		t.Errorf("callers of a function that is gone: %s", got)
	}
	var none []protocol.CallHierarchyItem
	e.must("textDocument/prepareCallHierarchy", at(0, 3), &none)
	if len(none) != 0 {
		t.Errorf("a comment is %+v", none)
	}
}

// Files that the text names, with what they are.
func TestDocumentLink(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a b.dmir"), []byte("// nothing\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "b.dmir"), []byte("// nothing\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	e := connect(t, Options{}, nil)
	e.initialize("", "")
	u := string(uri.File(filepath.Join(dir, "f.dmir")))
	text := "// 𝔻 see b.dmir:3\n" + strings.Repeat("// w.npy\n", eagerLinks)
	e.notify("textDocument/didOpen", fmt.Sprintf(`{"textDocument":{"uri":%q,"languageId":"dmir","version":1,"text":%s}}`, u, quote(text)))
	var links []protocol.DocumentLink
	e.must("textDocument/documentLink", fmt.Sprintf(`{"textDocument":{"uri":%q}}`, u), &links)
	if len(links) != 1+eagerLinks {
		t.Fatalf("%d links", len(links))
	}
	first, last := links[0], links[len(links)-1]
	if first.Range.Start.Character != 10 || !strings.HasSuffix(string(*first.Target), "/b.dmir#L3") || *first.Tooltip != "line 3 of b.dmir, 11 B" {
		t.Errorf("link %+v to %s: %s", first.Range, *first.Target, *first.Tooltip)
	}
	if last.Target != nil || last.Data == nil {
		t.Errorf("the last link is resolved already: %+v", last)
	}
	raw, err := protocol.Marshal(&last)
	if err != nil {
		t.Fatal(err)
	}
	var full protocol.DocumentLink
	e.must("documentLink/resolve", string(raw), &full)
	if full.Target == nil || !strings.HasSuffix(string(*full.Target), "/w.npy") || !strings.HasPrefix(*full.Tooltip, "there is no such file") {
		t.Errorf("resolved %+v", full)
	}
	e.must("documentLink/resolve", `{"range":{"start":{"line":0,"character":0},"end":{"line":0,"character":1}},"data":{"path":7}}`, &full)
}

// The places of a value are edited together; those of other names are not.
func TestLinkedEditingRange(t *testing.T) {
	e := connect(t, Options{}, nil)
	e.initialize("", "")
	e.open(ffn)
	var got *protocol.LinkedEditingRanges
	e.must("textDocument/linkedEditingRange", at(1, 3), &got)
	if got == nil || len(got.Ranges) != 2 || got.Ranges[1].Start != (protocol.Position{Line: 3, Character: 16}) || got.WordPattern == nil {
		t.Errorf("the places of %%h: %+v", got)
	}
	got = nil
	e.must("textDocument/linkedEditingRange", at(0, 12), &got)
	if got != nil {
		t.Errorf("the places of @ffn: %+v", got)
	}
}

// Each kind of name is renamed where it appears, after the editor was told
// what would be.
func TestRenameKinds(t *testing.T) {
	const text = "#p = #dm.at<hbm>\n!t = tensor<4xf32, #p>\nfunc.func private @g(!t) -> !t\nfunc.func @f(%x: !t) -> !t {\n  %y:2 = \"a.b\"(%x) : (!t) -> (!t, !t)\n  cf.br ^end\n^end:\n  %z = func.call @g(%y#1) : (!t) -> !t\n  return %z : !t\n}\n"
	for _, c := range []struct {
		line, char  int
		was, to     string
		occurrences int
	}{
		{4, 3, "%y", "pair", 2},
		{7, 21, "%y", "%pair", 2},
		{2, 20, "@g", "callee", 2},
		{7, 18, "@g", "@callee", 2},
		{5, 9, "^end", "tail", 2},
		{1, 20, "#p", "place", 2},
		{8, 15, "!t", "!tensor4", 11},
	} {
		e := connect(t, Options{}, nil)
		e.initialize(`{"workspace":{"workspaceEdit":{"documentChanges":true}}}`, "")
		e.open(text)
		var ph protocol.PrepareRenamePlaceholder
		e.must("textDocument/prepareRename", at(c.line, c.char), &ph)
		if ph.Placeholder != c.was {
			t.Errorf("%s: prepared %+v", c.was, ph)
		}
		var we protocol.WorkspaceEdit
		e.must("textDocument/rename", fmt.Sprintf(`{"textDocument":{"uri":%q},"position":{"line":%d,"character":%d},"newName":%q}`, testURI, c.line, c.char, c.to), &we)
		got := applyEdit(t, text, &we, 1)
		sigil := c.was[:1]
		if n := strings.Count(got, sigil+strings.TrimPrefix(c.to, sigil)); n != c.occurrences {
			t.Errorf("%s to %s in %d places:\n%s", c.was, c.to, n, got)
		}
		var nothing *protocol.PrepareRenamePlaceholder
		e.must("textDocument/prepareRename", at(3, 2), &nothing)
		if nothing != nil {
			t.Errorf("a keyword is renamed: %+v", nothing)
		}
	}
}

// Typing moves white space and nothing else.
func TestOnTypeFormatting(t *testing.T) {
	e := connect(t, Options{}, withText)
	res := e.initialize("", "")
	if o := res.Capabilities.DocumentOnTypeFormattingProvider; o.FirstTriggerCharacter != "\n" || strings.Join(o.MoreTriggerCharacter, "") != "}:" {
		t.Errorf("triggers %+v", o)
	}
	e.open("func.func @f(%x: i32) {\n// 𝔻\n%y=dm.exp %x:i32\n\n}\n")
	var edits []protocol.TextEdit
	e.must("textDocument/onTypeFormatting", fmt.Sprintf(`{"textDocument":{"uri":%q},"position":{"line":3,"character":0},"ch":"\n","options":{"tabSize":2,"insertSpaces":true}}`, testURI), &edits)
	var changes []string
	for i := len(edits) - 1; i >= 0; i-- {
		r := edits[i].Range
		changes = append(changes, edit(int(r.Start.Line), int(r.Start.Character), int(r.End.Line), int(r.End.Character), edits[i].NewText))
	}
	e.change(2, changes...)
	if got, want := e.text(), "func.func @f(%x: i32) {\n// 𝔻\n  %y = dm.exp %x : i32\n  \n}\n"; got != want {
		t.Errorf("after the edits %q, want %q", got, want)
	}
}

// Malformed parameters are refused, and the server goes on.
func TestMalformedNavigation(t *testing.T) {
	e := connect(t, Options{}, nil)
	e.initialize("", "")
	e.open(ffn)
	for _, method := range []string{
		"textDocument/prepareCallHierarchy", "callHierarchy/incomingCalls", "callHierarchy/outgoingCalls",
		"textDocument/documentLink", "documentLink/resolve", "textDocument/linkedEditingRange",
		"textDocument/onTypeFormatting", "textDocument/semanticTokens/full/delta", "textDocument/rename",
	} {
		for _, params := range []string{`7`, `[]`, `{"textDocument":7}`, `{"item":[]}`, `{"item":{"uri":8}}`, `{"range":"x"}`} {
			if err := e.call(method, params, nil); err != nil && codeOf(err) != jsonrpc2.InvalidParams {
				t.Errorf("%s %s: %v", method, params, err)
			}
		}
		for _, params := range []string{at(1<<30, 1<<30), `{"textDocument":{"uri":"file:///none.dmir"},"position":{"line":0,"character":0},"newName":"x"}`} {
			if err := e.call(method, params, nil); err != nil && codeOf(err) != jsonrpc2.InvalidParams && codeOf(err) != connection.RequestFailed {
				t.Errorf("%s %s: %v", method, params, err)
			}
		}
	}
	if e.hints(1, 2) == nil {
		t.Error("the server no longer answers")
	}
}
