package server

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/cookiejar"
	"slices"
	"strings"
	"testing"

	"go.lsp.dev/jsonrpc2"
	"go.lsp.dev/protocol"

	"dmir/analysis/report"
	"dmir/lsp/connection"
	"dmir/testkit/randprog"
)

// historyEditor is an editor that applies actions to its text, as editors do.
type historyEditor struct {
	*editor
	now     string
	version int32
	reverts int
}

func (e *historyEditor) become(text string) {
	e.version++
	e.now = text
	e.notify("textDocument/didChange", fmt.Sprintf(`{"textDocument":{"uri":%q,"version":%d},"contentChanges":[{"text":%s}]}`, testURI, e.version, quote(text)))
}

// apply applies an edit and sends its parts one by one, as editors do.
func (e *historyEditor) apply(t *testing.T, we *protocol.WorkspaceEdit) {
	t.Helper()
	e.now = applyEdit(t, e.now, we, e.version)
	e.version++
	e.change(int(e.version), contentChanges(we)...)
}

// contentChanges are the edits of a document as didChange has them, from the last to
// the first.
func contentChanges(we *protocol.WorkspaceEdit) []string {
	var out []string
	for _, c := range slices.Backward(we.DocumentChanges[0].(*protocol.TextDocumentEdit).Edits) {
		c := c.(*protocol.TextEdit)
		out = append(out, edit(int(c.Range.Start.Line), int(c.Range.Start.Character), int(c.Range.End.Line), int(c.Range.End.Character), c.NewText))
	}
	return out
}

// act applies the action with a title that begins so, where the text has its line.
func (e *historyEditor) act(t *testing.T, line, title string) string {
	t.Helper()
	n := strings.Count(e.now[:strings.Index(e.now, line)], "\n")
	var raw []json.RawMessage
	e.must("textDocument/codeAction", fmt.Sprintf(`{"textDocument":{"uri":%q},"range":{"start":{"line":%d,"character":4},"end":{"line":%d,"character":4}},"context":{"diagnostics":[]}}`, testURI, n, n), &raw)
	var titles []string
	for _, r := range raw {
		var a protocol.CodeAction
		if err := protocol.Unmarshal(r, &a); err != nil {
			t.Fatal(err)
		}
		titles = append(titles, a.Title)
		if !strings.HasPrefix(a.Title, title) {
			continue
		}
		if a.Edit == nil {
			e.must("codeAction/resolve", string(r), &a)
		}
		e.become(applyEdit(t, e.now, a.Edit, e.version))
		return a.Title
	}
	t.Fatalf("no action %q among %q", title, titles)
	return ""
}

func (e *historyEditor) history() []report.Applied {
	e.t.Helper()
	raw := new(json.RawMessage)
	e.must("dmir/panelData", fmt.Sprintf(`{"uri":%q,"kind":"history"}`, testURI), (*jsonrpc2.RawMessage)(raw))
	var answer struct{ Data report.Data }
	if err := json.Unmarshal(*raw, &answer); err != nil {
		e.t.Fatal(err)
	}
	return answer.Data.History.Applied
}

// revert has the server revert an entry, and applies the edit that it asks for.
func (e *historyEditor) revert(t *testing.T, id int) error {
	t.Helper()
	err := e.call("workspace/executeCommand", fmt.Sprintf(`{"command":"dmir.revert","arguments":[{"uri":%q,"id":%d}]}`, testURI, id), nil)
	if err != nil {
		return err
	}
	e.reverts++
	var p protocol.ApplyWorkspaceEditParams
	if err := protocol.Unmarshal([]byte(e.asked("workspace/applyEdit", e.reverts)), &p); err != nil {
		t.Fatal(err)
	}
	if p.Label == nil || !strings.HasPrefix(*p.Label, "Revert: ") {
		t.Errorf("label %v", p.Label)
	}
	e.apply(t, &p.Edit)
	return nil
}

func startHistory(t *testing.T, capabilities, text string) *historyEditor {
	t.Helper()
	e := &historyEditor{editor: connect(t, Options{}, nil), now: text, version: 1}
	e.initialize(capabilities, `{"panels":true}`)
	e.open(text)
	return e
}

const applying = `{"workspace":{"applyEdit":true,"workspaceEdit":{"documentChanges":true}},"textDocument":{"codeAction":{"dataSupport":true,"resolveSupport":{"properties":["edit"]}}}}`

func line(e report.Applied) string { return e.State + " " + e.Title }

// What was applied is in the history, with what it saved, and can be reverted after
// other edits; what was undone is marked.
func TestHistory(t *testing.T) {
	for _, capabilities := range []string{applying, strings.Replace(applying, `"resolveSupport"`, `"none"`, 1)} {
		e := startHistory(t, capabilities, ffn)
		if list := e.history(); len(list) != 0 {
			t.Fatalf("at first %+v", list)
		}
		e.act(t, "%y = dm.kernel", "Unfuse the kernel")
		unfused := e.now
		e.become("// note\n" + e.now)
		const fuse = "Fuse with %0 into a kernel"
		if offered := e.act(t, "%h = ", fuse); !strings.Contains(offered, ": saves ") {
			t.Errorf("%q has no savings: the history is not seen to leave them out", offered)
		}
		fused := e.now
		silence := e.act(t, "dm.yield", "Write in generic form")
		list := e.history()
		if len(list) != 3 || list[0].Title != silence || list[1].Title != fuse || list[0].ID != 3 || len(list[1].At) != len("15:04:05") {
			t.Fatalf("%+v", list)
		}
		if list[1].State != report.StateEdited || list[1].Note != "revert “"+silence+"” first" {
			t.Errorf("%+v", list[1])
		}
		g := list[1].Saved
		if len(g) != 1 || g[0].Function != "ffn" || g[0].Moved.OldLabel == g[0].Moved.NewLabel || !strings.HasPrefix(g[0].Moved.ChangeLabel, "−") || !strings.HasPrefix(g[0].Time.ChangeLabel, "−") {
			t.Errorf("saved %+v", g)
		}
		if err := e.revert(t, 2); codeOf(err) != connection.RequestFailed || !strings.Contains(err.Error(), "cannot revert: revert “") {
			t.Errorf("what was edited since: %v", err)
		}
		if err := e.revert(t, 3); err != nil || e.now != fused {
			t.Fatalf("%v\n%s", err, e.now)
		}
		e.become(strings.Replace(e.now, "return", "// end\n  return", 1))
		if err := e.revert(t, 2); err != nil || e.now != "// note\n"+strings.Replace(unfused, "return", "// end\n  return", 1) {
			t.Fatalf("%v\n%s", err, e.now)
		}
		if err := e.revert(t, 2); codeOf(err) != connection.RequestFailed || !strings.Contains(err.Error(), "reverted already") {
			t.Errorf("twice: %v", err)
		}
		if err := e.revert(t, 1); err != nil || e.now != "// note\n"+strings.Replace(ffn, "return", "// end\n  return", 1) {
			t.Fatalf("%v\n%s", err, e.now)
		}
		// The editor undoes the last revert.
		e.become("// note\n" + strings.Replace(unfused, "return", "// end\n  return", 1))
		list = e.history()
		if len(list) != 3 || list[2].State != report.StateApplied || list[1].State != report.StateReverted || list[0].State != report.StateReverted {
			t.Errorf("%+v", list)
		}
		if err := e.revert(t, 9); codeOf(err) != connection.RequestFailed || !strings.Contains(err.Error(), "no such entry") {
			t.Errorf("an unknown entry: %v", err)
		}
		e.notify("textDocument/didClose", doc)
		if err := e.call("dmir/panelData", fmt.Sprintf(`{"uri":%q,"kind":"history"}`, testURI), nil); codeOf(err) != connection.RequestFailed || !strings.Contains(err.Error(), "not open") {
			t.Errorf("closed: %v", err)
		}
		e.open(ffn)
		if list := e.history(); len(list) != 0 {
			t.Errorf("opened again: %+v", list)
		}
	}
}

// Actions at random places, reverted from the last to the first, leave the text of
// before, whatever was written around them.
func TestHistoryOfRandomPrograms(t *testing.T) {
	seeds := 30
	if testing.Short() {
		seeds = 8
	}
	refused := 0
	for seed := range uint64(seeds) {
		text := randprog.Structure(seed, 12, seed%2 == 1)
		e := startHistory(t, applying, text)
		r := rand.New(rand.NewPCG(seed, 1))
		for range 20 {
			n := r.IntN(strings.Count(e.now, "\n"))
			var raw []json.RawMessage
			e.must("textDocument/codeAction", fmt.Sprintf(`{"textDocument":{"uri":%q},"range":{"start":{"line":%d,"character":6},"end":{"line":%d,"character":6}},"context":{"diagnostics":[]}}`, testURI, n, n), &raw)
			if len(raw) == 0 {
				continue
			}
			var a protocol.CodeAction
			if err := protocol.Unmarshal(raw[r.IntN(len(raw))], &a); err != nil {
				t.Fatal(err)
			}
			if strings.HasPrefix(a.Title, "Write ") || strings.HasPrefix(a.Title, "Join ") {
				continue // the generic form and the own one take each other back, as splitting and joining do
			}
			if a.Edit == nil {
				resolved, err := protocol.Marshal(&a)
				if err != nil {
					t.Fatal(err)
				}
				if e.call("codeAction/resolve", string(resolved), &a) != nil || a.Edit == nil {
					continue
				}
			}
			e.apply(t, a.Edit)
			if r.IntN(2) == 0 {
				e.become(fmt.Sprintf("// note %d\n%s// end\n", r.IntN(100), e.now))
			}
		}
		reverted := 0
		for { // the last one first; an action may have taken back one before it
			list := e.history()
			i := slices.IndexFunc(list, func(a report.Applied) bool { return a.State != report.StateReverted })
			if i < 0 {
				break
			}
			// It may be uncertain what an action wrote of what stands there; and of two
			// actions each may take the other one back.
			if e.revert(t, list[i].ID) != nil || reverted > 50 {
				reverted = -1
				break
			}
			reverted++
		}
		if reverted < 0 {
			refused++
			continue
		}
		var kept []string
		for l := range strings.Lines(e.now) {
			if !strings.HasPrefix(l, "// note ") && l != "// end\n" {
				kept = append(kept, l)
			}
		}
		if got := strings.Join(kept, ""); got != text {
			t.Fatalf("seed %d: %d reverts leave\n%s\nof\n%s", seed, reverted, got, text)
		}
	}
	if refused > seeds/8 {
		t.Errorf("%d of %d programs cannot be reverted", refused, seeds)
	}
}

// An editor may send the edits of an action one by one, with what was typed after them.
func TestHistoryOfBatches(t *testing.T) {
	e := startHistory(t, applying, separate)
	var raw []json.RawMessage
	e.must("textDocument/codeAction", fmt.Sprintf(`{"textDocument":{"uri":%q},"range":{"start":{"line":2,"character":4},"end":{"line":2,"character":4}},"context":{"diagnostics":[],"only":["refactor"]}}`, testURI), &raw)
	for _, r := range raw {
		var a protocol.CodeAction
		if err := protocol.Unmarshal(r, &a); err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(a.Title, "Fuse") {
			continue
		}
		e.must("codeAction/resolve", string(r), &a)
		changes := contentChanges(a.Edit)
		e.change(2, append(changes, edit(0, 0, 0, 0, "// typed\n"))...)
		if list := e.history(); len(list) != 1 || !strings.HasPrefix(a.Title, list[0].Title+": saves ") || list[0].State != report.StateApplied {
			t.Errorf("%d changes: %+v", len(changes), list)
		}
		return
	}
	t.Fatal("nothing to fuse")
}

// All fixes of a file are one entry; an edit that an editor refuses is an error.
func TestHistoryOfFixes(t *testing.T) {
	e := startHistory(t, strings.Replace(applying, `"applyEdit":true,`, "", 1), ffn)
	var raw []json.RawMessage
	e.must("textDocument/codeAction", fmt.Sprintf(`{"textDocument":{"uri":%q},"range":{"start":{"line":0,"character":0},"end":{"line":0,"character":0}},"context":{"diagnostics":[],"only":["source.fixAll"]}}`, testURI), &raw)
	if len(raw) != 1 {
		t.Fatalf("%s", raw)
	}
	var a protocol.CodeAction
	e.must("codeAction/resolve", string(raw[0]), &a)
	e.become(applyEdit(t, e.now, a.Edit, e.version))
	list := e.history()
	if len(list) != 1 || line(list[0]) != "applied Apply all safe fixes" {
		t.Fatalf("%+v", list)
	}
	if err := e.revert(t, 1); codeOf(err) != connection.RequestFailed || !strings.Contains(err.Error(), "workspace/applyEdit") {
		t.Errorf("an editor that applies nothing: %v", err)
	}
}

// A page in a browser reverts an entry, and chooses what a comparison compares.
func TestVersionsInBrowser(t *testing.T) {
	files := onDisk(t, map[string]string{"f.dmir": separate, "g.dmir": ffn})
	e := connect(t, Options{}, nil)
	e.initialize(strings.Replace(applying, `"textDocument"`, `"window":{"showDocument":{"support":true}},"textDocument"`, 1), "")
	u := files["f.dmir"]
	e.openAs(u, separate)
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{Jar: jar, Transport: &http.Transport{}}
	defer browser.CloseIdleConnections()
	page := func(p shownPanel) string {
		t.Helper()
		res, err := browser.Get(p.URL)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = res.Body.Close() }()
		html, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode != 200 {
			t.Fatal(res.Status, err)
		}
		return string(html)
	}
	post := func(p shownPanel, name, body string) (int, string) {
		t.Helper()
		res, err := browser.Post(p.URL+name, "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = res.Body.Close() }()
		text, _ := io.ReadAll(res.Body)
		return res.StatusCode, string(text)
	}
	var diff, history shownPanel
	e.command("dmir.panel", fmt.Sprintf(`{"uri":%q,"kind":"diff","base":"g.dmir"}`, u), &diff)
	if html := page(diff); !strings.Contains(html, `"base":"g.dmir"`) || !strings.Contains(html, `"status":"unfused"`) {
		t.Errorf("%.300s", html[strings.Index(html, `id="data"`):])
	}
	if status, text := post(diff, "compare", `{"base":"saved","version":""}`); status != 204 {
		t.Errorf("%d %s", status, text)
	}
	if html := page(diff); !strings.Contains(html, `"base":"saved","version":"text"`) {
		t.Errorf("%.300s", html[strings.Index(html, `id="data"`):])
	}
	if status, text := post(diff, "reveal", `{"line":2,"version":"g.dmir"}`); status != 204 || !strings.Contains(e.asked("window/showDocument", 2), files["g.dmir"]) {
		t.Errorf("%d %s", status, text)
	}
	if status, text := post(diff, "reveal", `{"line":2,"version":"saved"}`); status != 400 || !strings.Contains(text, "workspace/textDocumentContent") {
		t.Errorf("an editor that shows no virtual document: %d %s", status, text)
	}
	var raw []json.RawMessage
	e.must("textDocument/codeAction", fmt.Sprintf(`{"textDocument":{"uri":%q},"range":{"start":{"line":1,"character":3},"end":{"line":1,"character":3}},"context":{"diagnostics":[],"only":["refactor.rewrite"]}}`, u), &raw)
	var a protocol.CodeAction
	if len(raw) == 0 {
		t.Fatal("no refactoring")
	}
	e.must("codeAction/resolve", string(raw[0]), &a)
	short, _, _ := strings.Cut(a.Title, ": saves ")
	e.notify("textDocument/didChange", fmt.Sprintf(`{"textDocument":{"uri":%q,"version":2},"contentChanges":[{"text":%s}]}`, u, quote(applyEdit(t, separate, a.Edit, 1))))
	e.command("dmir.panel", fmt.Sprintf(`{"uri":%q,"kind":"history"}`, u), &history)
	if html := page(history); !strings.Contains(html, `"title":`+quote(short)) {
		t.Errorf("%.300s", html[strings.Index(html, `id="data"`):])
	}
	if status, text := post(history, "revert", `{"id":1}`); status != 204 || !strings.Contains(e.asked("workspace/applyEdit", 1), "Revert: "+strings.Trim(quote(short), `"`)) {
		t.Errorf("%d %s", status, text)
	}
	if status, text := post(history, "revert", `{"id":7}`); status != 400 || !strings.Contains(text, "no such entry") {
		t.Errorf("%d %s", status, text)
	}
}
