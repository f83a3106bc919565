package server

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.lsp.dev/jsonrpc2"
	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"

	"dmir/lsp/connection"
	"dmir/lsp/feature"
)

// openAs opens a document at an address of its own.
func (e *editor) openAs(u, text string) {
	e.t.Helper()
	e.notify("textDocument/didOpen", fmt.Sprintf(`{"textDocument":{"uri":%q,"languageId":"dmir","version":1,"text":%s}}`, u, quote(text)))
}

// onDisk writes files into a new folder and returns the address of each.
func onDisk(t *testing.T, files map[string]string) map[string]string {
	t.Helper()
	dir := t.TempDir()
	addresses := map[string]string{"": string(uri.File(dir))}
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		addresses[name] = string(uri.File(path))
	}
	return addresses
}

func (e *editor) lenses(u string) (titles []string, all []protocol.CodeLens) {
	e.t.Helper()
	e.must("textDocument/codeLens", fmt.Sprintf(`{"textDocument":{"uri":%q}}`, u), &all)
	for _, l := range all {
		titles = append(titles, l.Command.Title)
	}
	return titles, all
}

// The comparison with what is saved is offered while there is something to
// compare, and of a document that has a file.
func TestLenses(t *testing.T) {
	files := onDisk(t, map[string]string{"f.dmir": ffn})
	e := connect(t, Options{}, nil)
	e.initialize(`{"workspace":{"codeLens":{"refreshSupport":true}}}`, "")
	u := files["f.dmir"]
	e.openAs(u, ffn)
	does := feature.DevicesFor("auto")
	first := "Run on " + does.Run + "|Cost|Graph|"
	profile, rest := "Profile on "+does.Profile, "Compile|Show CUDA|Show PTX|Roofline|Memory plan"
	rows := map[bool]string{
		false: first + profile + "|More…: " + rest,
		true:  first + "Compare with saved|More…: " + profile + "|" + rest,
	}
	// One row has at most five entries and one that leads to the rest.
	row := func(at string) string {
		titles, all := e.lenses(at)
		if len(all) != 6 {
			t.Errorf("%d lenses", len(all))
			return ""
		}
		var more struct{ Items []protocol.Command }
		if err := json.Unmarshal(all[5].Command.Arguments[0], &more); err != nil {
			t.Error(err)
		}
		var items []string
		for _, c := range more.Items {
			items = append(items, c.Title)
		}
		if len(strings.Split(titles[0], " · ")) != 3 {
			t.Errorf("totals %s", titles[0])
		}
		return strings.Join(titles[1:], "|") + ": " + strings.Join(items, "|")
	}
	saved := func(want bool, when string) {
		t.Helper()
		if got := row(u); got != rows[want] {
			t.Errorf("%s: %s", when, got)
		}
	}
	change := func(version int, text string) {
		e.notify("textDocument/didChange", fmt.Sprintf(`{"textDocument":{"uri":%q,"version":%d},"contentChanges":[{"text":%s}]}`, u, version, quote(text)))
	}
	saved(false, "opened")
	change(2, "// note\n"+ffn)
	saved(true, "edited")
	change(3, strings.Replace(ffn, "%y", "%z", 1))
	saved(true, "as long as the file")
	change(4, ffn)
	saved(false, "undone")
	change(5, ffn+"\n")
	path, err := uri.Parse(u)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path.FsPath(), []byte(ffn+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	e.notify("textDocument/didSave", fmt.Sprintf(`{"textDocument":{"uri":%q}}`, u))
	e.waitCall("workspace/codeLens/refresh")
	saved(false, "saved")
	e.openAs("untitled:Untitled-1", ffn)
	if got := row("untitled:Untitled-1"); got != rows[false] {
		t.Errorf("never saved: %s", got)
	}
}

// Editors that do not show the choice behind More are asked to.
func TestMore(t *testing.T) {
	for _, answer := range []string{`{"title":"Roofline"}`, `null`, `{"title":"none of them"}`} {
		e := connect(t, Options{}, nil)
		e.choice = answer
		e.initialize(`{"window":{"showDocument":{"support":true}}}`, "")
		e.open(ffn)
		for _, fn := range []string{"ffn", "gone"} {
			e.must("workspace/executeCommand", fmt.Sprintf(`{"command":"dmir.more","arguments":[{"uri":%q,"func":%q}]}`, testURI, fn), nil)
		}
		if asked := e.asked("window/showMessageRequest", 1); !strings.Contains(asked, `"@ffn"`) || !strings.Contains(asked, `{"title":"Roofline"}`) || strings.Contains(asked, `{"title":"Cost"}`) {
			t.Errorf("asked %s", asked)
		}
		if strings.Contains(answer, "Roofline") {
			e.waitCall("window/showDocument")
		}
	}
}

// In a file of many functions totals come when a lens is in view.
func TestManyLenses(t *testing.T) {
	var text strings.Builder
	for i := range 250 {
		fmt.Fprintf(&text, "func.func @f%d(%%x: tensor<%dxf32>) -> tensor<%dxf32> {\n  %%y = dm.exp %%x : tensor<%dxf32>\n  return %%y : tensor<%dxf32>\n}\n", i, i+1, i+1, i+1, i+1)
	}
	e := connect(t, Options{}, nil)
	e.initialize("", "")
	e.openAs(testURI, text.String())
	titles, all := e.lenses(testURI)
	if len(all) != 4*250 || strings.Join(titles[8:12], "|") != "|Run on "+feature.DevicesFor("auto").Run+"|Cost|Graph" {
		t.Fatalf("%d lenses %q", len(all), titles[:12])
	}
	raw, err := protocol.Marshal(&all[8])
	if err != nil {
		t.Fatal(err)
	}
	var full protocol.CodeLens
	e.must("codeLens/resolve", string(raw), &full)
	if full.Command.Title != "1.40 µs on h200 · 24 B moved" || full.Range != all[8].Range {
		t.Errorf("resolved %+v", full)
	}
	for _, other := range []string{`{"range":{"start":{"line":0,"character":0},"end":{"line":0,"character":1}}}`, `{"range":{"start":{"line":0,"character":0},"end":{"line":0,"character":1}},"data":{"uri":"file:///gone","func":"f"}}`} {
		e.must("codeLens/resolve", other, &full)
	}
	if err := e.call("codeLens/resolve", `{"range":{"start":{"line":0,"character":0},"end":{"line":0,"character":1}},"data":7}`, nil); codeOf(err) != jsonrpc2.InvalidParams {
		t.Errorf("a foreign lens: %v", err)
	}
}

type heatAnswer []struct {
	Range protocol.Range `json:"range"`
	Level int            `json:"level"`
	Text  string         `json:"text"`
}

func (e *editor) heat(params string) heatAnswer {
	e.t.Helper()
	raw := new(json.RawMessage)
	e.must("dmir/heat", params, (*jsonrpc2.RawMessage)(raw))
	var got heatAnswer
	if err := json.Unmarshal(*raw, &got); err != nil {
		e.t.Fatal(err)
	}
	return got
}

// Heat is requested by what colours the lines, or by the setting, for a part of the
// file.
func TestHeat(t *testing.T) {
	e := connect(t, Options{}, nil)
	e.initialize("", "")
	e.openAs(testURI, ffn)
	got := e.heat(`{"textDocument":{"uri":"` + testURI + `"},"by":"time"}`)
	if len(got) != 2 || got[0].Level != 6 || got[0].Text != "74.6 % of the time of @ffn: 50.0 µs" || got[0].Range.Start != (protocol.Position{Line: 1, Character: 2}) || got[1].Range.End.Line != 2 {
		t.Errorf("by time %+v", got)
	}
	if got := e.heat(`{"textDocument":{"uri":"` + testURI + `"},"by":"waste","range":{"start":{"line":2,"character":9},"end":{"line":4,"character":0}}}`); len(got) != 1 || got[0].Text != "50.0 % of the waste of @ffn: 33.6 MB" {
		t.Errorf("of a range %+v", got)
	}
	if got := e.heat(doc); len(got) != 0 {
		t.Errorf("off by default, %+v", got)
	}
	e.notify("workspace/didChangeConfiguration", `{"settings":{"dmir":{"heat":"bytes"}}}`)
	if got := e.heat(doc); len(got) != 2 || !strings.Contains(got[1].Text, "of the bytes of") {
		t.Errorf("as set %+v", got)
	}
	if err := e.call("dmir/heat", `{"textDocument":{"uri":"`+testURI+`"},"by":"colour"}`, nil); codeOf(err) != jsonrpc2.InvalidParams {
		t.Errorf("by colour: %v", err)
	}
	if err := e.call("dmir/heat", `[]`, nil); codeOf(err) != jsonrpc2.InvalidParams {
		t.Errorf("no parameters: %v", err)
	}
	raw := new(json.RawMessage)
	if e.must("dmir/heat", `{"textDocument":{"uri":"file:///gone.dmir"},"by":"time"}`, (*jsonrpc2.RawMessage)(raw)); string(*raw) != "null" {
		t.Errorf("of a closed file %s", *raw)
	}
}

// command runs a command and reads its answer.
func (e *editor) command(name, args string, result any) {
	e.t.Helper()
	raw := new(json.RawMessage)
	e.must("workspace/executeCommand", fmt.Sprintf(`{"command":%q,"arguments":[%s]}`, name, args), (*jsonrpc2.RawMessage)(raw))
	if err := json.Unmarshal(*raw, result); err != nil {
		e.t.Fatalf("%s: %v in %s", name, err, *raw)
	}
}

// A switch is switched over and back, and forgotten when the editor's own
// setting changes.
func TestToggle(t *testing.T) {
	e := connect(t, Options{}, nil)
	e.initialize(`{"workspace":{"inlayHint":{"refreshSupport":true}}}`, "")
	e.openAs(testURI, ffn)
	var now map[string]bool
	toggle := func(what string, want bool) {
		t.Helper()
		now = nil
		if e.command("dmir.toggle", fmt.Sprintf(`{"setting":%q}`, what), &now); now[what] != want || len(now) != 1 {
			t.Errorf("%s now stands at %v", what, now)
		}
	}
	shown := func() bool { return len(e.hints(0, 9)) > 0 }
	toggle("hints", false)
	if shown() {
		t.Error("hints are off, and there")
	}
	e.waitCall("workspace/inlayHint/refresh")
	e.notify("workspace/didChangeConfiguration", `{"settings":{"dmir":{"target":"l40s"}}}`)
	if shown() {
		t.Error("another setting switches hints on")
	}
	toggle("hints", true)
	toggle("hints", false)
	e.notify("workspace/didChangeConfiguration", `{"settings":{"dmir":{"hints":{"enabled":false}}}}`)
	if shown() {
		t.Error("hints are off by setting, and there")
	}
	toggle("hints", true)
	toggle("lint", false)
	e.change(2, edit(0, 0, 0, 0, "// a\n"))
	e.diagnostics(2, func(ds []protocol.Diagnostic) bool { return len(ds) == 0 })
	toggle("lint", true)
	e.change(3, edit(0, 0, 0, 0, "// b\n"))
	e.diagnostics(3, func(ds []protocol.Diagnostic) bool { return len(ds) == 1 })
	if err := e.call("workspace/executeCommand", `{"command":"dmir.toggle","arguments":[{"setting":"light"}]}`, nil); codeOf(err) != jsonrpc2.InvalidParams {
		t.Errorf("an unknown switch: %v", err)
	}
}

type shownPanel struct{ URI, Kind, Function, Title, HTML, URL string }

// An editor that draws panels gets their pages, and their data after edits.
func TestPanels(t *testing.T) {
	files := onDisk(t, map[string]string{"f.dmir": ffn})
	u := files["f.dmir"]
	e := connect(t, Options{}, nil)
	e.initialize("", `{"panels":true}`)
	e.openAs(u, ffn)
	data := func(kind string) (version int, got map[string]any) {
		t.Helper()
		raw := new(json.RawMessage)
		e.must("dmir/panelData", fmt.Sprintf(`{"uri":%q,"kind":%q,"function":"ffn"}`, u, kind), (*jsonrpc2.RawMessage)(raw))
		var answer struct {
			Version int
			Data    map[string]any
		}
		if err := json.Unmarshal(*raw, &answer); err != nil {
			t.Fatal(err)
		}
		return answer.Version, answer.Data
	}
	for _, kind := range []string{"graph", "roofline", "memory", "diff"} {
		var p shownPanel
		e.command("dmir.panel", fmt.Sprintf(`{"uri":%q,"kind":%q,"function":"ffn"}`, u, kind), &p)
		if p.URI != u || p.Kind != kind || p.Function != "ffn" || p.Title == "" || p.URL != "" || !strings.HasPrefix(p.HTML, "<!DOCTYPE html>") {
			t.Errorf("%s: %.200v", kind, p)
		}
		if _, got := data(kind); got["kind"] != kind || got[kind] == nil {
			t.Errorf("%s: data %.200v", kind, got)
		}
	}
	if _, got := data("diff"); got["diff"].(map[string]any)["same"] != true {
		t.Errorf("the file and its document differ: %.300v", got["diff"])
	}
	e.notify("textDocument/didChange", fmt.Sprintf(`{"textDocument":{"uri":%q,"version":2},"contentChanges":[%s]}`, u, edit(4, 4, 4, 16, "%1 = dm.exp")))
	version, got := data("diff")
	if version != 2 || got["diff"].(map[string]any)["same"] != false {
		t.Errorf("version %d: %.300v", version, got["diff"])
	}
	// While the function has an error, a panel shows what lens and hints do: what it
	// had before.
	_, good := data("graph")
	e.notify("textDocument/didChange", fmt.Sprintf(`{"textDocument":{"uri":%q,"version":3},"contentChanges":[%s]}`, u, edit(4, 4, 4, 15, "%1 = dm.e")))
	_, got = data("graph")
	if titles, _ := e.lenses(u); got["stale"] != "of the text before the error in line 5" || !strings.HasPrefix(titles[0], "≈ ") || !strings.HasSuffix(titles[0], "before the error in line 5") {
		t.Errorf("stale %v, %q", got["stale"], titles[0])
	}
	delete(got, "stale")
	if diff := cmp.Diff(good, got); diff != "" {
		t.Error(diff)
	}
	e.notify("textDocument/didChange", fmt.Sprintf(`{"textDocument":{"uri":%q,"version":4},"contentChanges":[%s]}`, u, edit(4, 4, 4, 13, "%1 = dm.exp")))
	if _, got = data("graph"); got["stale"] != nil {
		t.Errorf("mended: %v", got["stale"])
	}
	for params, code := range map[string]jsonrpc2.Code{
		fmt.Sprintf(`{"uri":%q,"kind":"pie"}`, u):                     connection.RequestFailed,
		fmt.Sprintf(`{"uri":%q,"kind":"graph","function":"gone"}`, u): connection.RequestFailed,
		`{"uri":"file:///gone.dmir","kind":"graph"}`:                  connection.RequestFailed,
		`{"kind":"graph"}`: jsonrpc2.InvalidParams,
		`{"uri":7}`:        jsonrpc2.InvalidParams,
	} {
		if err := e.call("dmir/panelData", params, nil); codeOf(err) != code {
			t.Errorf("%s: %v", params, err)
		}
	}
}

// A panel names its file as people do in the workspace: from the innermost folder
// that has it, and in full where none does.
func TestPanelFile(t *testing.T) {
	files := onDisk(t, map[string]string{"w/a.dmir": ffn, "w/sub/deep/b.dmir": ffn, "out.dmir": ffn})
	e := connect(t, Options{}, nil)
	e.must("initialize", fmt.Sprintf(`{"processId":null,"rootUri":null,"workspaceFolders":[{"uri":%q,"name":"w"},{"uri":%q,"name":"s"}],"capabilities":{},"initializationOptions":{"panels":true}}`, files[""]+"/w", files[""]+"/w/sub"), nil)
	e.notify("initialized", "{}")
	out, err := uri.Parse(files["out.dmir"])
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"w/a.dmir": "a.dmir", "w/sub/deep/b.dmir": "deep/b.dmir", "out.dmir": out.FsPath()} {
		e.openAs(files[name], ffn)
		for _, kind := range []string{"graph", "diff"} {
			raw := new(json.RawMessage)
			e.must("dmir/panelData", fmt.Sprintf(`{"uri":%q,"kind":%q,"function":"ffn"}`, files[name], kind), (*jsonrpc2.RawMessage)(raw))
			var got struct {
				Data struct {
					File string
					Diff struct{ New string }
				}
			}
			if err := json.Unmarshal(*raw, &got); err != nil {
				t.Fatal(err)
			}
			if got.Data.File != want || kind == "diff" && got.Data.Diff.New != want {
				t.Errorf("%s of %s: file %q, new %q, want %q", kind, name, got.Data.File, got.Data.Diff.New, want)
			}
		}
	}
}

// Any other editor has a browser opened, whose page follows the text, and shows
// the places that are chosen there.
func TestPanelInBrowser(t *testing.T) {
	e := connect(t, Options{}, nil)
	e.initialize(`{"window":{"showDocument":{"support":true}},"general":{"positionEncodings":["utf-16"]}}`, "")
	e.openAs(testURI, "// 𝔻\n"+ffn)
	var p shownPanel
	e.command("dmir.panel", fmt.Sprintf(`{"uri":%q,"kind":"graph"}`, testURI), &p)
	if p.HTML != "" || !strings.HasPrefix(p.URL, "http://127.0.0.1:") {
		t.Fatalf("%+v", p)
	}
	asked := e.asked("window/showDocument", 1)
	if !strings.Contains(asked, p.URL) || !strings.Contains(asked, `"external":true`) {
		t.Errorf("asked to show %s", asked)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{Jar: jar, Transport: &http.Transport{}} // with no time-out, which would end the stream of events
	defer browser.CloseIdleConnections()
	get := func(path string) *http.Response {
		t.Helper()
		res, err := browser.Get(p.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	res := get("")
	html, err := io.ReadAll(res.Body)
	_ = res.Body.Close()
	if err != nil || res.StatusCode != 200 || !strings.Contains(string(html), `"function":"ffn"`) || strings.Contains(string(html), "dmir-nonce-placeholder") {
		t.Fatalf("%s %v %.300s", res.Status, err, html)
	}
	stream := get("events")
	defer func() { _ = stream.Body.Close() }()
	events := make(chan string)
	go func() {
		defer close(events)
		for in := json.NewDecoder(strip(stream.Body)); ; {
			var m struct {
				Type string
				Line int
				Data struct{ Title, Function string }
			}
			if in.Decode(&m) != nil {
				return
			}
			events <- fmt.Sprint(m.Type, " ", m.Line, m.Data.Function)
		}
	}()
	shown := func() string {
		t.Helper()
		select {
		case event := <-events:
			return event
		case <-time.After(patient):
			t.Fatal("the page gets no event")
			return ""
		}
	}
	post := func(name, body string) int {
		t.Helper()
		res, err := browser.Post(p.URL+name, "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		return res.StatusCode
	}
	for _, c := range []struct{ body, selection string }{
		{`{"line":1,"column":3,"endColumn":4}`, `"start":{"line":0,"character":2},"end":{"line":0,"character":3}`},
		{`{"line":1,"column":4,"endColumn":5}`, `"start":{"line":0,"character":3},"end":{"line":0,"character":5}`}, // 𝔻 is two units
		{`{"line":99999,"column":-7,"endColumn":99999999}`, `"start":{"line":10,"character":0},"end":{"line":10,"character":0}`},
		{`{"line":3,"column":9,"endColumn":2}`, `"start":{"line":2,"character":8},"end":{"line":2,"character":8}`},
	} {
		n := e.count("window/showDocument")
		if status := post("reveal", c.body); status != 204 {
			t.Errorf("%s: %d", c.body, status)
		}
		if asked := e.asked("window/showDocument", n+1); !strings.Contains(asked, c.selection) && !strings.Contains(asked, swapped(c.selection)) || strings.Contains(asked, "external") {
			t.Errorf("%s: asked to show %s", c.body, asked)
		}
	}
	if post("reveal", `{`) != 400 || post("else", `{}`) != 400 || post("function", `{"name":"gone"}`) != 400 {
		t.Error("a page may send anything")
	}

	e.notify("dmir/select", at(2, 4))
	if got := shown(); got != "select 3" {
		t.Errorf("the page got %q", got)
	}
	var marks []protocol.DocumentHighlight
	e.must("textDocument/documentHighlight", at(4, 5), &marks)
	if got := shown(); got != "select 5" {
		t.Errorf("the page got %q", got)
	}
	e.change(2, edit(9, 0, 9, 0, "func.func @g(%x: tensor<4xf32>) -> tensor<4xf32> {\n  return %x : tensor<4xf32>\n}\n"))
	if got := shown(); got != "data 0ffn" {
		t.Errorf("after an edit the page got %q", got)
	}
	if status := post("function", `{"name":"g"}`); status != 204 {
		t.Errorf("another function: %d", status)
	}
	if got := shown(); got != "data 0g" {
		t.Errorf("the page got %q", got)
	}
	e.notify("textDocument/didClose", doc)
	if _, more := <-events; more {
		t.Error("the page of a closed document goes on")
	}
	if res := get(""); res.StatusCode != 404 {
		t.Errorf("the page of a closed document: %s", res.Status)
	}
}

// swapped is a range the other way round, as JSON may have it.
func swapped(s string) string {
	start, end, _ := strings.Cut(s, `,"end"`)
	return `"end"` + end + "," + start
}

// strip leaves the data of a stream of events.
func strip(r io.Reader) io.Reader {
	out, in := io.Pipe()
	go func() {
		var all [1 << 16]byte
		left := ""
		for {
			n, err := r.Read(all[:])
			left += string(all[:n])
			for {
				line, rest, ok := strings.Cut(left, "\n")
				if !ok {
					break
				}
				left = rest
				if data, ok := strings.CutPrefix(line, "data: "); ok {
					_, _ = io.WriteString(in, data+"\n")
				}
			}
			if err != nil {
				_ = in.Close()
				return
			}
		}
	}()
	return out
}

// An editor that opens no addresses is shown the address of the page.
func TestPanelWithoutShowDocument(t *testing.T) {
	e := connect(t, Options{}, nil)
	e.initialize("", "")
	e.openAs(testURI, ffn)
	var p shownPanel
	e.command("dmir.panel", fmt.Sprintf(`{"uri":%q,"kind":"memory"}`, testURI), &p)
	e.wait("window/showMessage", func(raw json.RawMessage) bool { return strings.Contains(string(raw), p.URL) })
	e.must("shutdown", "", nil)
	if _, err := http.Get(p.URL); err == nil {
		t.Error("pages are served after shutdown")
	}
}

// A picture is drawn where the editor turns Markdown into a page; the others get
// a line of text.
func TestPictures(t *testing.T) {
	for _, c := range []struct {
		capabilities, options string
		picture               bool
	}{
		{`{}`, "", false},
		{`{"general":{"markdown":{"parser":"marked","version":"1.1.0"}}}`, "", true},
		{`{"general":{"markdown":{"parser":"marked"}}}`, `{"pictures":false}`, false},
		{`{}`, `{"pictures":true}`, true},
		{`{"general":{"markdown":{"parser":"marked"}},"textDocument":{"hover":{"contentFormat":["plaintext"]}}}`, "", false},
	} {
		e := connect(t, Options{}, nil)
		e.initialize(c.capabilities, c.options)
		e.open(ffn)
		var h protocol.Hover
		e.must("textDocument/hover", at(1, 8), &h)
		text := h.Contents.(*protocol.MarkupContent).Value
		if got := strings.Contains(text, "](data:image/svg+xml;base64,"); got != c.picture || strings.Contains(text, "memory ────────┼●─────── compute") == got {
			t.Errorf("%s %s:\n%s", c.capabilities, c.options, text)
		}
		for _, want := range []string{"compute-bound", "3.73 times the ridge intensity (183 FLOP/B); reaches 87.3 % of 788 TFLOP/s", "read    = %x 8.39 MB + %w 8.39 MB", "= max(34.4 GFLOP / 788 TFLOP/s + 4.97 µs tail, 50.3 MB / 4.30 TB/s) + 800 ns latency of the memory + 600 ns in a graph"} {
			if !strings.Contains(text, want) {
				t.Errorf("the hover does not contain %q:\n%s", want, text)
			}
		}
	}
}
