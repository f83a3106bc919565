package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.lsp.dev/jsonrpc2"
	"go.lsp.dev/protocol"
)

const resolving = `{"workspace":{"workspaceEdit":{"documentChanges":true}},"textDocument":{"codeAction":{"dataSupport":true,"disabledSupport":true,"resolveSupport":{"properties":["edit"]}}}}`

// actions asks for what can be done with the text from the first appearance of
// one text to the end of that of another.
func (e *editor) actions(t *testing.T, text, from, to, context string) []*protocol.CodeAction {
	t.Helper()
	pos := func(off int) string {
		line := strings.Count(text[:off], "\n")
		return fmt.Sprintf(`{"line":%d,"character":%d}`, line, off-strings.LastIndex(text[:off], "\n")-1) // ASCII
	}
	start := strings.Index(text, from)
	end := start
	if to != "" {
		end = start + strings.Index(text[start:], to) + len(to)
	}
	if start < 0 || end < start {
		t.Fatalf("no %q … %q", from, to)
	}
	var raw []json.RawMessage
	e.must("textDocument/codeAction", fmt.Sprintf(`{"textDocument":{"uri":%q},"range":{"start":%s,"end":%s},"context":{"diagnostics":[]%s}}`, testURI, pos(start), pos(end), context), &raw)
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

func (e *editor) resolve(t *testing.T, a *protocol.CodeAction) (*protocol.CodeAction, error) {
	t.Helper()
	raw, err := protocol.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	var answer json.RawMessage
	if err := e.call("codeAction/resolve", string(raw), &answer); err != nil {
		return nil, err
	}
	out := new(protocol.CodeAction)
	if err := protocol.Unmarshal(answer, out); err != nil {
		t.Fatal(err)
	}
	return out, nil
}

func titled(t *testing.T, as []*protocol.CodeAction, prefix string) *protocol.CodeAction {
	t.Helper()
	var all []string
	for _, a := range as {
		if strings.HasPrefix(a.Title, prefix) {
			return a
		}
		all = append(all, a.Title)
	}
	t.Fatalf("no action %q among %q", prefix, all)
	return nil
}

// The list of actions has no edits where the editor asks for them later; they
// are made for the version of the list, or not at all.
func TestResolveAction(t *testing.T) {
	e := connect(t, Options{}, nil)
	e.initialize(resolving, "")
	e.open(ffn)
	all := e.actions(t, ffn, "%h = ", "\n  }", "")
	fuse := titled(t, all, "Fuse into one kernel: saves 67.1 MB, 17.0 µs")
	if fuse.Edit != nil || *fuse.Kind != "refactor.rewrite" || fuse.IsPreferred == nil || !*fuse.IsPreferred {
		t.Errorf("the list has %+v", fuse)
	}
	titled(t, all, "Extract into a function @ffn_part")
	done, err := e.resolve(t, fuse)
	if err != nil {
		t.Fatal(err)
	}
	fused := applyEdit(t, ffn, done.Edit, 1)
	if !strings.Contains(fused, "dm.kernel") || strings.Index(fused, "%h = ") < strings.Index(fused, "dm.kernel") {
		t.Errorf("fused:\n%s", fused)
	}
	e.change(2, `{"text":`+quote(fused)+`}`)
	_, err = e.resolve(t, fuse)
	var rpc *jsonrpc2.Error
	if !errors.As(err, &rpc) || rpc.Code != jsonrpc2.Code(protocol.LSPErrorCodesContentModified) {
		t.Errorf("for a text that is gone: %v", err)
	}
	back, err := e.resolve(t, titled(t, e.actions(t, fused, "dm.kernel", "", ""), "Unfuse the kernel: adds"))
	if err != nil {
		t.Fatal(err)
	}
	if open := applyEdit(t, fused, back.Edit, 2); strings.Contains(open, "dm.kernel") {
		t.Errorf("unfused:\n%s", open)
	}
}

// An editor that names kinds gets those, and one that cannot resolve gets the
// edits at once.
func TestActionKinds(t *testing.T) {
	for _, capabilities := range []string{resolving, `{"workspace":{"workspaceEdit":{"documentChanges":true}}}`} {
		e := connect(t, Options{}, nil)
		e.initialize(capabilities, "")
		e.open(ffn)
		for _, kind := range []string{"quickfix", "refactor", "refactor.extract", "refactor.inline", "refactor.rewrite", "source.fixAll", "source.fixAll.dmir", "source.organizeImports"} {
			as := e.actions(t, ffn, "dm.kernel", "", `,"only":["`+kind+`"]`)
			as = append(as, e.actions(t, ffn, "%h = ", "\n  }", `,"only":["`+kind+`"]`)...)
			if (len(as) == 0) != (kind == "source.organizeImports") {
				t.Errorf("%s: %d actions", kind, len(as))
			}
			for _, a := range as {
				if k := string(*a.Kind); k != kind && !strings.HasPrefix(k, kind+".") {
					t.Errorf("asked for %s, got %s %q", kind, k, a.Title)
				}
				if capabilities != resolving && (a.Edit == nil || len(a.Data) > 0) {
					t.Errorf("%q comes without its edit", a.Title)
				}
				if capabilities == resolving && a.Edit == nil && len(a.Data) == 0 && a.Disabled.Reason == "" {
					t.Errorf("%q comes with nothing", a.Title)
				}
			}
		}
		for _, a := range e.actions(t, ffn, "dm.kernel", "", "") {
			if *a.Kind == fixAll {
				t.Error("what is applied to the whole file is offered without a request for it")
			}
		}
	}
}

// What cannot be applied is shown with the reason, to those who can show it.
func TestDisabledAction(t *testing.T) {
	for _, capabilities := range []string{resolving, ""} {
		e := connect(t, Options{}, nil)
		e.initialize(capabilities, "")
		e.open(ffn)
		reason := ""
		for _, a := range e.actions(t, ffn, "%h = ", "return %y", `,"only":["refactor"]`) {
			if strings.HasPrefix(a.Title, "Fuse") {
				reason = a.Disabled.Reason
			}
		}
		if (capabilities == resolving) != (reason == "func.return is the terminator of the block") {
			t.Errorf("with %q the reason is %q", capabilities, reason)
		}
	}
}

// A finding is silenced by a comment, and is not reported again.
func TestSilence(t *testing.T) {
	e := connect(t, Options{}, nil)
	e.initialize(resolving, "")
	e.open(ffn)
	a := titled(t, e.actions(t, ffn, "dm.kernel", "", `,"only":["quickfix"]`), "Silence DM201 on line 3")
	silent := applyEdit(t, ffn, a.Edit, 1)
	if !strings.Contains(silent, "\n  // dmir: ignore[DM201]\n  %y = dm.kernel") {
		t.Errorf("silenced:\n%s", silent)
	}
	e.change(2, `{"text":`+quote(silent)+`}`)
	e.diagnostics(2, func(ds []protocol.Diagnostic) bool { return len(ds) == 0 })
}

// twice is the same finding in two functions.
const twice = `func.func @f(%x: tensor<1024x1024xf32>) -> tensor<1024x1024xf32> {
  %a = dm.exp %x : tensor<1024x1024xf32>
  return %x : tensor<1024x1024xf32>
}
func.func @g(%x: tensor<1024x1024xf32>) -> tensor<1024x1024xf32> {
  %b = dm.tanh %x : tensor<1024x1024xf32>
  return %x : tensor<1024x1024xf32>
}
`

// A finding that is there more than once can be fixed everywhere at once.
func TestFixAllOfACode(t *testing.T) {
	e := connect(t, Options{}, nil)
	e.initialize(resolving, "")
	e.open(twice)
	done, err := e.resolve(t, titled(t, e.actions(t, twice, "dm.exp", "", `,"only":["quickfix"]`), "Fix all DM207 in the file"))
	if err != nil {
		t.Fatal(err)
	}
	if fixed := applyEdit(t, twice, done.Edit, 1); strings.Contains(fixed, "dm.exp") || strings.Contains(fixed, "dm.tanh") || strings.Count(fixed, "return") != 2 {
		t.Errorf("fixed:\n%s", fixed)
	}
}

// While the cursor moves the editor asks all the time: it gets what is known,
// and nothing is computed for it.
func TestAutomaticActions(t *testing.T) {
	const automatic = `,"triggerKind":2`
	e := connect(t, Options{Pause: time.Hour}, nil)
	e.initialize(resolving, "")
	e.open(ffn)
	for _, a := range e.actions(t, ffn, "dm.kernel", "", automatic) {
		if *a.Kind == protocol.CodeActionKindQuickFix {
			t.Errorf("%q is offered before lint has run", a.Title)
		}
	}
	titled(t, e.actions(t, ffn, "dm.kernel", "", ""), "Move %y into the kernel of %h")
	titled(t, e.actions(t, ffn, "dm.kernel", "", automatic), "Move %y into the kernel of %h")
}
