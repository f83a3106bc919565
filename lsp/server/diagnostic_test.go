package server

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.lsp.dev/jsonrpc2"
	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"

	"dmir/lsp/diagnostics"
)

const (
	pulling = `{"workspace":{"diagnostics":{"refreshSupport":true},"textDocumentContent":{}},"textDocument":{"publishDiagnostics":{"relatedInformation":true,"tagSupport":{"valueSet":[1,2]},"codeDescriptionSupport":true,"dataSupport":true},"diagnostic":{"dynamicRegistration":false}}}`

	// dead has a value that nothing uses, and broken an error.
	dead   = "func.func @dead(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {\n  %0 = dm.exp %x : tensor<64x64xf32>\n  %1 = dm.neg %x : tensor<64x64xf32>\n  return %1 : tensor<64x64xf32>\n}\n"
	broken = "func.func @broken(%x: tensor<4xf32>) -> tensor<4xf32> {\n  return %y : tensor<4xf32>\n}\n"
	sound  = "func.func @sound(%x: tensor<4xf32>) -> tensor<4xf32> {\n  return %x : tensor<4xf32>\n}\n"
)

// pullReport is any report of a pull.
type pullReport struct {
	Kind     string                `json:"kind"`
	ResultID string                `json:"resultId"`
	URI      string                `json:"uri"`
	Version  *int32                `json:"version"`
	Items    []protocol.Diagnostic `json:"-"`
	Raw      []json.RawMessage     `json:"items"`
}

func (r pullReport) codes() string {
	var out []string
	for _, raw := range r.Raw {
		var d struct {
			Code string `json:"code"`
		}
		if json.Unmarshal(raw, &d) == nil {
			out = append(out, d.Code)
		}
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func (e *editor) pull(u, had string) pullReport {
	e.t.Helper()
	params := fmt.Sprintf(`{"textDocument":{"uri":%q}}`, u)
	if had != "" {
		params = fmt.Sprintf(`{"textDocument":{"uri":%q},"previousResultId":%q}`, u, had)
	}
	var raw jsonrpc2.RawMessage
	e.must("textDocument/diagnostic", params, &raw)
	var r pullReport
	if err := json.Unmarshal(raw, &r); err != nil {
		e.t.Fatalf("%s: %v", raw, err)
	}
	return r
}

// pullUntil pulls until a report is what a test waits for.
func (e *editor) pullUntil(what string, ok func(pullReport) bool) {
	e.t.Helper()
	for deadline := time.Now().Add(patient); ; time.Sleep(time.Millisecond) {
		r := e.pull(testURI, "")
		if ok(r) {
			return
		}
		if time.Now().After(deadline) {
			e.t.Fatalf("%s: never; the last report was %+v", what, r)
		}
	}
}

// An editor that pulls is sent nothing; it is asked to pull again if there is more,
// and that nothing has changed where nothing has.
func TestPullDiagnostics(t *testing.T) {
	e := connect(t, Options{Pause: 30 * time.Millisecond}, nil)
	res := e.initialize(pulling, "")
	if o, ok := res.Capabilities.DiagnosticProvider.(*protocol.DiagnosticOptions); !ok || *o.Identifier != "dmir" || !o.WorkspaceDiagnostics || o.InterFileDependencies {
		t.Errorf("capability %+v", res.Capabilities.DiagnosticProvider)
	}
	e.open(broken)
	first := e.pull(testURI, "")
	if first.Kind != "full" || first.codes() != "DM160" {
		t.Fatalf("errors: %s %s", first.Kind, first.codes())
	}
	if again := e.pull(testURI, first.ResultID); again.Kind != "unchanged" || again.ResultID != first.ResultID {
		t.Errorf("asked again: %+v", again)
	}
	e.change(2, `{"text":`+quote(dead)+`}`)
	second := e.pull(testURI, first.ResultID)
	if second.Kind != "full" || second.ResultID == first.ResultID {
		t.Errorf("after an edit: %+v", second)
	}
	if second.codes() == "" { // lint comes after a pause
		e.waitCall("workspace/diagnostic/refresh")
		second = e.pull(testURI, second.ResultID)
	}
	if second.codes() != "DM207" {
		t.Errorf("findings: %s", second.codes())
	}
	refreshes := e.count("workspace/diagnostic/refresh")
	e.change(3, edit(0, 0, 0, 0, "// a comment\n"))
	if third := e.pull(testURI, second.ResultID); third.codes() != "DM207" {
		t.Errorf("the findings do not stay while the text above changes: %s", third.codes())
	}
	e.notify("workspace/didChangeConfiguration", `{"settings":{"dmir":{"lint":{"enabled":false}}}}`)
	for off := false; !off; { // an editor that pulls when it is asked to, and only then
		refreshes++
		e.asked("workspace/diagnostic/refresh", refreshes)
		off = e.pull(testURI, "").codes() == ""
	}
	e.notify("textDocument/didClose", doc)
	if closed := e.pull(testURI, ""); closed.Kind != "full" || closed.codes() != "" {
		t.Errorf("a closed document that is on no disk: %+v", closed)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, n := range e.notes {
		if n.method == "textDocument/publishDiagnostics" {
			t.Errorf("sent to an editor that pulls: %s", n.params)
		}
	}
}

// An editor that could not be told of what is found later is sent it instead.
func TestPullWithoutRefresh(t *testing.T) {
	e := connect(t, Options{}, nil)
	res := e.initialize(`{"textDocument":{"diagnostic":{}}}`, "")
	if res.Capabilities.DiagnosticProvider != nil {
		t.Errorf("capability %+v", res.Capabilities.DiagnosticProvider)
	}
	e.open(dead)
	e.diagnostics(1, func(ds []protocol.Diagnostic) bool { return len(ds) == 1 })
}

// What a diagnostic carries besides its sentence.
func TestDiagnosticDetails(t *testing.T) {
	e := connect(t, Options{}, nil)
	e.initialize(pulling, "")
	e.open(dead + strings.ReplaceAll(sound, "@sound", "@dead"))
	var details struct {
		Code            string `json:"code"`
		Tags            []int  `json:"tags"`
		CodeDescription struct {
			Href string `json:"href"`
		} `json:"codeDescription"`
		Data struct {
			Fixes []struct {
				Title      string `json:"title"`
				Safe       bool   `json:"safe"`
				SavesBytes int64  `json:"saves_bytes"`
			} `json:"fixes"`
		} `json:"data"`
		RelatedInformation []protocol.DiagnosticRelatedInformation `json:"-"`
		Related            []json.RawMessage                       `json:"relatedInformation"`
	}
	byCode := func(code string) json.RawMessage {
		t.Helper()
		var found json.RawMessage
		e.pullUntil(code, func(r pullReport) bool {
			i := slices.IndexFunc(r.Raw, func(raw json.RawMessage) bool { return strings.Contains(string(raw), `"`+code+`"`) })
			if i >= 0 {
				found = r.Raw[i]
			}
			return i >= 0
		})
		return found
	}
	if err := json.Unmarshal(byCode("DM170"), &details); err != nil {
		t.Fatal(err)
	}
	if len(details.Related) != 1 || details.CodeDescription.Href != "dmir:/rule/DM170.md" {
		t.Errorf("a symbol defined twice: %+v", details)
	}
	e.change(2, `{"text":`+quote(dead)+`}`)
	if err := json.Unmarshal(byCode("DM207"), &details); err != nil {
		t.Fatal(err)
	}
	if len(details.Tags) != 1 || details.Tags[0] != 1 || len(details.Data.Fixes) != 1 || !details.Data.Fixes[0].Safe || details.Data.Fixes[0].SavesBytes == 0 || details.CodeDescription.Href != "dmir:/rule/DM207.md" {
		t.Errorf("a value that nothing uses: %+v", details)
	}
}

// workspaceOf writes files and starts a session in their folder.
func workspaceOf(t *testing.T, capabilities string, files map[string]string) (*editor, string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		writeFile(t, filepath.Join(dir, name), text)
	}
	return openWorkspace(t, capabilities, dir), dir
}

// openWorkspace connects an editor to a workspace of one folder.
func openWorkspace(t *testing.T, capabilities, dir string) *editor {
	t.Helper()
	e := connect(t, Options{}, nil)
	e.must("initialize", fmt.Sprintf(`{"processId":null,"rootUri":null,"workspaceFolders":[{"uri":%q,"name":"w"}],"capabilities":%s}`, uri.File(dir), capabilities), nil)
	e.notify("initialized", "{}")
	return e
}

// lintClosed turns on the setting for the diagnostics of files that are not open.
func (e *editor) lintClosed() {
	e.notify("workspace/didChangeConfiguration", `{"settings":{"dmir":{"lint":{"workspace":true}}}}`)
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (e *editor) openAt(path, text string) {
	e.notify("textDocument/didOpen", fmt.Sprintf(`{"textDocument":{"uri":%q,"languageId":"dmir","version":7,"text":%s}}`, uri.File(path), quote(text)))
}

// pullAll pulls the workspace; the answer by file name, as "kind codes".
func (e *editor) pullAll(dir string, had map[string]string) map[string]string {
	e.t.Helper()
	var raw jsonrpc2.RawMessage
	e.must("workspace/diagnostic", `{"previousResultIds":[`+strings.Join(previousIDs(dir, had), ",")+`]}`, &raw)
	return e.reports(dir, raw, had)
}

// previousIDs are the ids of the reports that an editor has, by file name.
func previousIDs(dir string, had map[string]string) (out []string) {
	for name, id := range had {
		out = append(out, fmt.Sprintf(`{"uri":%q,"value":%q}`, uri.File(filepath.Join(dir, name)), id))
	}
	return out
}

func (e *editor) reports(dir string, raw []byte, had map[string]string) map[string]string {
	e.t.Helper()
	var got struct {
		Items []pullReport `json:"items"`
	}
	if err := json.Unmarshal(raw, &got); err != nil {
		e.t.Fatal(err)
	}
	out := map[string]string{}
	for _, r := range got.Items {
		name, err := filepath.Rel(dir, uri.URI(r.URI).FsPath())
		if err != nil {
			e.t.Fatal(err)
		}
		name = filepath.ToSlash(name)
		report := strings.TrimSpace(r.Kind + " " + r.codes())
		if r.Version != nil {
			report += fmt.Sprintf(" v%d", *r.Version)
		}
		out[name] = report
		if had != nil {
			had[name] = r.ResultID
		}
	}
	return out
}

func expect(t *testing.T, what string, got, want map[string]string) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s:\n%v, want\n%v", what, got, want)
	}
}

// The diagnostics of the whole workspace: files that are not open as they are
// on disk, open ones as they are in the editor, each under its own dmir.toml.
func TestWorkspaceDiagnostic(t *testing.T) {
	e, dir := workspaceOf(t, pulling, map[string]string{
		"a.dmir": dead, "b.dmir": broken, "c.dmir": sound, "quiet/a.dmir": dead,
		"quiet/dmir.toml": "[lint]\nignore = [\"DM207\"]\n", ".git/x.dmir": broken, "readme.md": "no program",
	})
	had := map[string]string{}
	expect(t, "nothing is open", e.pullAll(dir, had), map[string]string{})
	e.lintClosed()
	expect(t, "the first pull", e.pullAll(dir, had), map[string]string{"a.dmir": "full DM207", "b.dmir": "full DM160", "c.dmir": "full", "quiet/a.dmir": "full"})
	expect(t, "the next", e.pullAll(dir, had), map[string]string{"a.dmir": "unchanged", "b.dmir": "unchanged", "c.dmir": "unchanged", "quiet/a.dmir": "unchanged"})

	// Another server finds the same, and knows it by its name.
	other := openWorkspace(t, pulling, dir)
	other.lintClosed()
	expect(t, "of another server", other.pullAll(dir, had), map[string]string{"a.dmir": "unchanged", "b.dmir": "unchanged", "c.dmir": "unchanged", "quiet/a.dmir": "unchanged"})

	e.openAt(filepath.Join(dir, "c.dmir"), broken)                 // not saved
	e.openAt(filepath.Join(t.TempDir(), "outside.dmir"), sound)    // not in the workspace
	writeFile(t, filepath.Join(dir, "a.dmir"), sound+"\n// new\n") // by another program
	if err := os.Remove(filepath.Join(dir, "b.dmir")); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, "quiet/dmir.toml"), "[lint]\nignore = [\"DM4\"]\n")
	e.notify("workspace/didChangeWatchedFiles", fmt.Sprintf(`{"changes":[{"uri":%q,"type":2}]}`, uri.File(filepath.Join(dir, "quiet/dmir.toml"))))
	got := e.pullAll(dir, had)
	for name := range got {
		if strings.HasSuffix(name, "outside.dmir") {
			got["outside"] = got[name]
			delete(got, name)
			delete(had, name)
		}
	}
	expect(t, "after changes", got, map[string]string{"a.dmir": "full", "b.dmir": "full", "c.dmir": "full DM160 v7", "quiet/a.dmir": "full DM207", "outside": "full v7"})
}

// With partial results the reports come as they are found, and the pull stays
// open until there is something new; cancelling ends it.
func TestWorkspaceDiagnosticStream(t *testing.T) {
	files := map[string]string{}
	for i := range 70 {
		files[fmt.Sprintf("f%d.dmir", i)] = dead
	}
	e, dir := workspaceOf(t, pulling, files)
	e.lintClosed()
	had := map[string]string{}
	part := func(raw json.RawMessage) bool { return strings.Contains(string(raw), `"all"`) }
	var raw jsonrpc2.RawMessage
	e.must("workspace/diagnostic", `{"previousResultIds":[],"partialResultToken":"all","workDoneToken":"bar"}`, &raw)
	if string(raw) != `{"items":[]}` {
		t.Errorf("the answer after the parts: %s", raw)
	}
	for _, step := range []string{`"begin"`, `"percentage":100`, `"end"`} {
		e.wait("$/progress", func(raw json.RawMessage) bool {
			return strings.Contains(string(raw), `"bar"`) && strings.Contains(string(raw), step)
		})
	}
	seen, parts := map[string]string{}, 0
	e.wait("$/progress", part)
	e.mu.Lock()
	for _, n := range e.notes {
		if n.method == "$/progress" && part(n.params) {
			var p struct {
				Value json.RawMessage `json:"value"`
			}
			if err := json.Unmarshal(n.params, &p); err != nil {
				t.Fatal(err)
			}
			parts++
			for name, report := range e.reports(dir, p.Value, had) {
				seen[name] = report
			}
		}
	}
	e.notes = nil
	e.mu.Unlock()
	if parts < 3 || len(seen) != 70 || seen["f7.dmir"] != "full DM207" {
		t.Errorf("%d parts with %d reports: %v", parts, len(seen), seen)
	}

	params := `{"previousResultIds":[` + strings.Join(previousIDs(dir, had), ",") + `],"partialResultToken":"all"}`
	answered := make(chan error, 1)
	go func() {
		var raw jsonrpc2.RawMessage
		_, err := e.conn.Call(e.server.Context(), "workspace/diagnostic", jsonrpc2.RawMessage(params), &raw)
		answered <- err
	}()
	e.pull(testURI, "") // goes through meanwhile
	select {
	case err := <-answered:
		t.Fatalf("nothing is new, and it is answered: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	e.openAt(filepath.Join(dir, "f3.dmir"), broken)
	e.wait("$/progress", func(raw json.RawMessage) bool { return strings.Contains(string(raw), "DM160") })
	if err := <-answered; err != nil {
		t.Errorf("the open pull is answered: %v", err)
	}

	e.pullAll(dir, had) // so that the next report is empty
	params = `{"previousResultIds":[` + strings.Join(previousIDs(dir, had), ",") + `],"partialResultToken":"all"}`
	id, err := e.conn.Call(context.Background(), "test/unknown", nil, nil) // the next call has the next number
	last, ok := id.Number()
	if codeOf(err) != jsonrpc2.MethodNotFound || !ok {
		t.Fatalf("call %v: %v", id, err)
	}
	go func() {
		_, err := e.conn.Call(e.server.Context(), "workspace/diagnostic", jsonrpc2.RawMessage(params), nil)
		answered <- err
	}()
	for {
		e.notify("$/cancelRequest", fmt.Sprintf(`{"id":%d}`, last+1))
		select {
		case err := <-answered:
			if codeOf(err) != protocol.CodeRequestCancelled {
				t.Errorf("a pull that was cancelled: %v", err)
			}
			return
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// An editor that does not pull has the workspace looked through by a command,
// with progress, and is kept up to date about what it was shown.
func TestLintWorkspace(t *testing.T) {
	e, dir := workspaceOf(t, `{"window":{"workDoneProgress":true}}`, map[string]string{"a.dmir": dead, "b.dmir": broken, "c.dmir": sound})
	e.openAt(filepath.Join(dir, "c.dmir"), broken)
	var got diagnostics.LintResult
	lint := func() {
		t.Helper()
		got = diagnostics.LintResult{}
		var raw jsonrpc2.RawMessage
		e.must("workspace/executeCommand", `{"command":"dmir.lintWorkspace","workDoneToken":"lint"}`, &raw)
		if err := json.Unmarshal(raw, &got); err != nil {
			t.Fatal(err)
		}
	}
	lint()
	if got.Files != 3 || got.Findings != 2 || got.Errors != 2 || got.Message != "2 findings in 3 files, 2 errors" {
		t.Errorf("found %+v", got)
	}
	e.wait("$/progress", func(raw json.RawMessage) bool { return strings.Contains(string(raw), `"percentage":100`) })
	e.wait("$/progress", func(raw json.RawMessage) bool { return strings.Contains(string(raw), `"end"`) })
	shown := func(name, what string) {
		t.Helper()
		e.wait("textDocument/publishDiagnostics", func(raw json.RawMessage) bool {
			return strings.Contains(string(raw), "/"+name+`"`) && strings.Contains(string(raw), what)
		})
	}
	shown("a.dmir", "DM207")
	shown("b.dmir", "DM160")
	writeFile(t, filepath.Join(dir, "a.dmir"), sound)
	e.notify("workspace/didChangeWatchedFiles", fmt.Sprintf(`{"changes":[{"uri":%q,"type":2}]}`, uri.File(filepath.Join(dir, "a.dmir"))))
	shown("a.dmir", `"diagnostics":[]`)
	writeFile(t, filepath.Join(dir, "b.dmir"), sound)
	lint()
	if got.Findings != 1 {
		t.Errorf("after the repair %+v", got)
	}
	shown("b.dmir", `"diagnostics":[]`)
}

// Of many findings an editor is shown the most important ones and, once it asks for the
// hints of some lines, those near them; in one message each, pushed or pulled.
func TestFindingsInView(t *testing.T) {
	var text strings.Builder
	text.WriteString("func.func @f(%x: tensor<64xf32>) -> tensor<64xf32> {\n")
	for i := range 3000 {
		fmt.Fprintf(&text, "  %%v%d = dm.exp %%x : tensor<64xf32>\n", i)
	}
	text.WriteString("  return %x : tensor<64xf32>\n}\n")
	const note = "diagnostics: shown are the 240 most important ones"
	// An editor asks for inlay hints, or for those of its column.
	hints := func(e *editor, u uri.URI, line int) {
		raw := new(jsonrpc2.RawMessage)
		e.must([]string{"textDocument/inlayHint", "dmir/hints"}[line/1000%2], fmt.Sprintf(`{"textDocument":{"uri":%q},"range":{"start":{"line":%d,"character":0},"end":{"line":%d,"character":0}}}`, u, line, line+40), raw)
	}
	u := uri.File(filepath.Join(t.TempDir(), "f.dmir"))
	t.Run("push", func(t *testing.T) {
		e := connect(t, Options{}, nil)
		e.initialize("{}", "")
		e.openAt(u.FsPath(), text.String())
		shows := func(line int) {
			t.Helper()
			e.wait("textDocument/publishDiagnostics", func(raw json.RawMessage) bool {
				s := string(raw)
				return strings.Contains(s, note) && strings.Contains(s, fmt.Sprintf(`"start":{"line":%d,`, line)) && strings.Count(s, `"severity":`) <= 481
			})
		}
		shows(1)
		for _, line := range []int{2900, 1500} {
			hints(e, u, line)
			shows(line)
			shows(line + 40)
		}
	})
	t.Run("pull", func(t *testing.T) {
		e := connect(t, Options{}, nil)
		e.initialize(pulling, "")
		e.openAt(u.FsPath(), text.String())
		for _, line := range []int{2900, 1500} {
			hints(e, u, line)
			for deadline := time.Now().Add(patient); ; time.Sleep(time.Millisecond) {
				if slices.ContainsFunc(e.pull(string(u), "").Raw, func(raw json.RawMessage) bool {
					return strings.Contains(string(raw), fmt.Sprintf(`"start":{"line":%d,`, line+5))
				}) {
					break
				}
				if time.Now().After(deadline) {
					t.Fatalf("line %d is not shown", line)
				}
			}
		}
	})
}

// What the command shows of closed files, an editor that pulls is told too, until the
// command takes it back; open files keep theirs.
func TestLintWorkspaceClears(t *testing.T) {
	for name, capabilities := range map[string]string{"pull": pulling, "push": `{}`} {
		t.Run(name, func(t *testing.T) {
			e, dir := workspaceOf(t, capabilities, map[string]string{"a.dmir": dead, "b.dmir": sound})
			e.openAt(filepath.Join(dir, "b.dmir"), broken)
			command := func(arguments string) {
				e.must("workspace/executeCommand", `{"command":"dmir.lintWorkspace","arguments":[`+arguments+`]}`, nil)
			}
			had := map[string]string{}
			shown := func(what string, a, b string) {
				t.Helper()
				if name == "pull" {
					got := e.pullAll(dir, had)
					delete(got, "b.dmir")
					want := map[string]string{}
					if a != "" {
						want["a.dmir"] = a
					}
					expect(t, what, got, want)
					return
				}
				if b != "" {
					e.wait("textDocument/publishDiagnostics", func(raw json.RawMessage) bool {
						return strings.Contains(string(raw), `/a.dmir"`) && strings.Contains(string(raw), b)
					})
				}
			}
			shown("at first", "", "")
			command("")
			shown("when it is asked for", "full DM207", "DM207")
			command(`{"clear":true}`)
			shown("taken back", "full", `"diagnostics":[]`)
			if name == "pull" {
				expect(t, "once", e.pullAll(dir, map[string]string{}), map[string]string{"b.dmir": "full DM160 v7"})
				return
			}
			e.lintClosed()
			shown("by the setting", "", "DM207")
			e.notify("workspace/didChangeConfiguration", `{"settings":{"dmir":{"lint":{"workspace":false}}}}`)
			shown("taken back", "", `"diagnostics":[]`)
		})
	}
}

// Symbols of the workspace: open files as they are in the editor, others as
// they are on disk, also after they have changed there.
func TestWorkspaceSymbols(t *testing.T) {
	e, dir := workspaceOf(t, `{}`, map[string]string{"a.dmir": dead, "b/c.dmir": "// 𝔻\nmodule @inner { func.func private @leaf() }\n"})
	find := func(query string) string {
		t.Helper()
		var syms protocol.SymbolInformationSlice
		e.must("workspace/symbol", fmt.Sprintf(`{"query":%q}`, query), &syms)
		var out []string
		for _, s := range syms {
			out = append(out, fmt.Sprintf("%s %s:%d:%d", s.Name, filepath.Base(s.Location.URI.FsPath()), s.Location.Range.Start.Line, s.Location.Range.Start.Character))
		}
		return strings.Join(out, ", ")
	}
	if got, want := find(""), "@dead a.dmir:0:0, @inner c.dmir:1:0, @leaf c.dmir:1:16"; got != want {
		t.Errorf("symbols %s, want %s", got, want)
	}
	e.openAt(filepath.Join(dir, "a.dmir"), sound)
	if got, want := find("E"), "@inner c.dmir:1:0, @leaf c.dmir:1:16"; got != want {
		t.Errorf("symbols %s, want %s", got, want)
	}
	writeFile(t, filepath.Join(dir, "b/c.dmir"), "func.func private @other()\n")
	if got, want := find("o"), "@sound a.dmir:0:0, @other c.dmir:0:0"; got != want {
		t.Errorf("symbols %s, want %s", got, want)
	}
}

func TestMalformedPulls(t *testing.T) {
	e := connect(t, Options{}, nil)
	e.initialize(pulling, "")
	for _, method := range []string{"textDocument/diagnostic", "workspace/diagnostic"} {
		for _, params := range []string{`7`, `{"textDocument":7}`, `{"previousResultIds":7}`, `{"previousResultIds":[{"uri":7}]}`, `{"textDocument":{"uri":"file:///"},"previousResultId":8}`} {
			if err := e.call(method, params, nil); err != nil && codeOf(err) != jsonrpc2.InvalidParams {
				t.Errorf("%s %s: %v", method, params, err)
			}
		}
	}
	if r := e.pull("file:///none/at/all.dmir", ""); r.Kind != "full" || len(r.Raw) != 0 {
		t.Errorf("a file that is not there: %+v", r)
	}
	if r := e.pull("untitled:1", ""); r.Kind != "full" || len(r.Raw) != 0 {
		t.Errorf("a document that is not open: %+v", r)
	}
}
