package server

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"go.lsp.dev/jsonrpc2"
)

// An editor that never reads can go on sending: nothing it sends waits for
// what it does not read. When it reads at last, everything it asked is answered
// and the diagnostics are those of the last text.
func TestClientThatNeverReads(t *testing.T) {
	w := dial(t, Options{Pause: time.Millisecond})
	w.begin()
	w.open(ffn)
	for v := 2; v <= 2000; v++ {
		w.change(v, edit(0, 0, 0, 0, "// typing\n"))
		if v%5 == 0 {
			w.request("textDocument/inlayHint", fmt.Sprintf(`{"textDocument":{"uri":%q},"range":{"start":{"line":0,"character":0},"end":{"line":99999,"character":0}}}`, testURI))
		}
	}
	w.listen()
	w.until("every answer", func() bool { return len(w.waiting) == 0 })
	w.until("the last diagnostics", func() bool { return w.version == 2000 && strings.Contains(string(w.shown), "DM201") })
	w.sound()
}

// A connection that ends anywhere in a message ends the server.
func TestCloseInsideMessage(t *testing.T) {
	frame := func(body string) string { return fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body) }
	begin := frame(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"processId":null,"rootUri":null,"capabilities":{}}}`)
	last := frame(`{"jsonrpc":"2.0","method":"textDocument/didOpen","params":{"textDocument":{"uri":"file:///t.dmir","languageId":"dmir","version":1,"text":"😀"}}}`)
	for cut := range len(last) {
		w := dial(t, Options{Pause: time.Hour})
		w.listen()
		if _, err := io.WriteString(w.in, begin+last[:cut]); err != nil {
			t.Fatal(err)
		}
		_ = w.in.Close()
		if err := w.ends(); !errors.Is(err, ErrNoShutdown) {
			t.Fatalf("cut after %d bytes: %v", cut, err)
		}
	}
}

// What a header promises takes no memory before it comes, and ends nothing.
func TestHugeLengths(t *testing.T) {
	for _, length := range []string{"536870911", "536870913", "1099511627775", "1099511627776", "99999999999999999999999", "-5", "0x10", "1e9", "", " ", "10, 10"} {
		t.Run(length, func(t *testing.T) {
			w := dial(t, Options{Pause: time.Hour})
			w.listen()
			w.begin()
			w.open("a")
			_ = w.ask("textDocument/hover", at(0, 0))
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			if _, err := fmt.Fprintf(w.in, "Content-Length: %s\r\n\r\n{}", length); err != nil {
				t.Fatal(err)
			}
			_ = w.in.Close()
			if err := w.ends(); !errors.Is(err, ErrNoShutdown) { // and so it has read the header
				t.Error(err)
			}
			runtime.ReadMemStats(&after)
			if grown := after.TotalAlloc - before.TotalAlloc; grown > 32<<20 {
				t.Errorf("%d MB were set aside", grown>>20)
			}
			w.sound()
		})
	}
}

// Positions and ranges that are none are refused by every method, those past
// the end are taken for the end; no answer is a fault of the server.
func TestImpossiblePositions(t *testing.T) {
	e := connect(t, Options{Pause: time.Hour, Worker: workerCommand("leave")}, nil)
	e.initialize(wishes, "")
	const text = "func.func @f(%é: tensor<4xf32>) { // 😀\r\n  %y = dm.exp %é : tensor<4xf32>\r  return\n}"
	e.open(text)
	for _, place := range []string{
		`{"line":4294967295,"character":4294967295}`, `{"line":0,"character":4294967295}`, `{"line":99,"character":0}`,
		`{"line":-1,"character":0}`, `{"line":0,"character":-7}`, `{"line":1.5,"character":0}`, `{"line":1e99,"character":0}`, `{"line":4294967296,"character":0}`,
		`{"line":"1","character":0}`, `{"character":1}`, `{}`, `null`, `[]`, `7`, `"here"`,
	} {
		end := `{"line":0,"character":1}`
		for _, method := range everyMethod() {
			if method == "workspace/executeCommand" {
				continue
			}
			e.holds(method, text, strings.NewReplacer(`"previousResultIds":[],`, "").Replace(
				fmt.Sprintf(`{"textDocument":{"uri":%[1]q},"position":%[2]s,"positions":[%[2]s],"range":{"start":%[2]s,"end":%[3]s},"context":{"includeDeclaration":true,"diagnostics":[]},
"newName":"%%n","query":"","ch":"}","options":{"tabSize":2,"insertSpaces":true},"previousResultId":"none","label":"x","title":"x","by":"bytes","kind":"roofline","uri":%[1]q,
"item":{"name":"f","kind":12,"uri":%[1]q,"range":{"start":%[2]s,"end":%[3]s},"selectionRange":{"start":%[3]s,"end":%[2]s}}}`, testURI, place, end)))
		}
	}
}

// A range whose end lies before its start is the same range turned round.
func TestReversedRanges(t *testing.T) {
	e := connect(t, Options{Pause: time.Hour, Worker: workerCommand("leave")}, nil)
	e.initialize(wishes, `{"heat":"time","lint":{"enabled":false}}`)
	text := strings.Replace(ffn, "dm.matmul", "dm.matmul  ", 1)
	e.open(text)
	lines := strings.Count(text, "\n") + 1
	for _, method := range everyMethod() {
		if !slices.Contains([]string{"textDocument/rangeFormatting", "textDocument/semanticTokens/range", "textDocument/inlayHint", "textDocument/codeAction", methodHeat, methodHints}, method) {
			continue
		}
		answer := func(from, to int) string {
			var raw jsonrpc2.RawMessage
			if err := e.call(method, fmt.Sprintf(`{"textDocument":{"uri":%q},"range":{"start":{"line":%d,"character":3},"end":{"line":%d,"character":1}},
"ranges":[],"by":"time","context":{"diagnostics":[]},"options":{"tabSize":2,"insertSpaces":true}}`, testURI, from, to), &raw); err != nil {
				t.Fatalf("%s from line %d to %d: %v", method, from, to, err)
			}
			return string(raw)
		}
		turned := func(from, to int) string {
			var raw jsonrpc2.RawMessage
			e.must(method, fmt.Sprintf(`{"textDocument":{"uri":%q},"range":{"start":{"line":%d,"character":1},"end":{"line":%d,"character":3}},
"ranges":[],"by":"time","context":{"diagnostics":[]},"options":{"tabSize":2,"insertSpaces":true}}`, testURI, to, from), &raw)
			return string(raw)
		}
		for from := range lines {
			for to := range from {
				if got, want := answer(from, to), turned(from, to); got != want {
					t.Fatalf("%s from line %d to %d: %s\nturned round: %s", method, from, to, got, want)
				}
			}
		}
	}
}

// Text that is no Unicode: halves of surrogate pairs become the replacement
// character, in the text and in its columns; bytes that are no UTF-8 end
// nothing.
func TestNoUnicode(t *testing.T) {
	e := connect(t, Options{Pause: time.Millisecond}, withText)
	e.initialize("", "")
	open := func(text string) {
		e.notify("textDocument/didClose", doc)
		e.frame(fmt.Sprintf(`{"jsonrpc":"2.0","method":"textDocument/didOpen","params":{"textDocument":{"uri":%q,"languageId":"dmir","version":1,"text":"%s"}}}`, testURI, text))
	}
	for _, c := range []struct{ text, edit, want string }{
		{`a\ud83db`, edit(0, 2, 0, 2, "X"), "a\uFFFDXb"},
		{`\ude00\ud83d`, edit(0, 1, 0, 1, "X"), "\uFFFDX\uFFFD"},
		{`\ud83d\ude00b`, edit(0, 2, 0, 2, "X"), "😀Xb"},
		{`a\u0000b`, edit(0, 2, 0, 2, "X"), "a\x00Xb"},
		{`\ufeffab`, edit(0, 1, 0, 1, "X"), "\ufeffXab"},
		{`a\u2028b\u0085c`, edit(0, 4, 0, 4, "X"), "a\u2028b\u0085Xc"}, // no line ends here
	} {
		open(c.text)
		e.change(2, c.edit)
		if got := e.text(); got != c.want {
			t.Errorf("%s: got %q, want %q", c.text, got, c.want)
		}
	}
	open("fine")
	for _, bytes := range []string{"\xff", "a\xc3", "\xed\xa0\xbd", "\xf8\x88\x80\x80\x80", "\xc0\xaf"} {
		e.frame(fmt.Sprintf(`{"jsonrpc":"2.0","method":"textDocument/didChange","params":{"textDocument":{"uri":%q,"version":3},"contentChanges":[{"text":"x%s"}]}}`, testURI, bytes))
		if got := e.text(); got != "fine" && !strings.HasPrefix(got, "x") {
			t.Errorf("after %q: text %q", bytes, got)
		}
		_ = e.hints(0, 9)
	}
}

// Two requests of one number are two requests; numbers may be anything.
func TestDuplicateIDs(t *testing.T) {
	w := dial(t, Options{Pause: time.Hour})
	counted := make(chan string, 100)
	go func() {
		for in := bufio.NewReader(w.out); ; {
			body, err := readFrame(in)
			if err != nil {
				close(counted)
				return
			}
			counted <- string(body)
		}
	}()
	w.begin()
	w.open(ffn)
	ids := []string{"7", "7", "7", `"7"`, `"7"`, `""`, "-1", "0", "9007199254740993", `"\u0000"`}
	for _, id := range ids {
		w.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"textDocument/hover","params":%s}`, id, at(1, 8)))
		w.send(`{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":8}}`)
	}
	answered := 0
	for answered < len(ids)+1 {
		select {
		case m := <-counted:
			if !strings.Contains(m, `"method"`) {
				answered++
			}
		case <-time.After(patient):
			t.Fatalf("%d of %d requests were answered", answered, len(ids)+1)
		}
	}
}

// Before initialize and after shutdown every request is refused and no
// notification takes effect.
func TestOutsideTheSession(t *testing.T) {
	e := connect(t, Options{Pause: time.Hour}, withText)
	e.open("too early")
	e.change(2, `{"text":"early"}`)
	for _, m := range everyMethod() {
		if err := e.call(m, "{}", nil); codeOf(err) != jsonrpc2.ServerNotInitialized {
			t.Errorf("%s before initialize: %v", m, err)
		}
	}
	e.initialize("", "")
	var got *string
	e.must("test/text", doc, &got)
	if got != nil {
		t.Errorf("opened before initialize: %q", *got)
	}
	e.open("a")
	e.must("shutdown", "null", nil)
	e.change(2, `{"text":"late"}`)
	for _, m := range append(everyMethod(), "shutdown", "initialize") {
		if err := e.call(m, "{}", nil); codeOf(err) != jsonrpc2.InvalidRequest {
			t.Errorf("%s after shutdown: %v", m, err)
		}
	}
}

// Documents that are opened twice, closed twice, changed when closed, and
// versions that go backward: the text is that of the last message that applies.
func TestDisorderlyDocuments(t *testing.T) {
	e := connect(t, Options{Pause: time.Millisecond}, withText)
	e.initialize("", "")
	e.open("one")
	e.open("two")
	if got := e.text(); got != "two" {
		t.Errorf("opened twice: %q", got)
	}
	e.change(-5, edit(0, 0, 0, 0, "X"))
	e.change(-5, edit(0, 0, 0, 0, "Y"))
	e.change(2147483647)
	if got := e.text(); got != "YXtwo" {
		t.Errorf("changed: %q", got)
	}
	e.notify("textDocument/didClose", doc)
	e.notify("textDocument/didClose", doc)
	e.change(9, `{"text":"closed"}`)
	e.open("three")
	if got := e.text(); got != "three" {
		t.Errorf("opened again: %q", got)
	}
}
