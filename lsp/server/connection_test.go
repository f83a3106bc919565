package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"go.lsp.dev/jsonrpc2"
	"go.lsp.dev/protocol"

	"dmir/lsp/connection"
	"dmir/lsp/workspace"
	"dmir/syntax/source"
)

// codeOf is the JSON-RPC code of an error, 0 for nil.
func codeOf(err error) jsonrpc2.Code {
	var e *jsonrpc2.Error
	if errors.As(err, &e) {
		return e.Code
	}
	return 0
}

// Edits apply in the order in which they were sent, whatever else is asked in
// between, in UTF-16 positions over text with surrogate pairs and mixed line ends.
func TestOrderedEdits(t *testing.T) {
	for _, unit := range []string{"utf-16", "utf-8"} {
		t.Run(unit, func(t *testing.T) {
			e := connect(t, Options{Pause: time.Hour}, withText)
			caps := "{}"
			if unit == "utf-8" {
				caps = `{"general":{"positionEncodings":["utf-8","utf-16"]}}`
			}
			if got := e.initialize(caps, "").Capabilities.PositionEncoding; string(got) != unit {
				t.Fatalf("position encoding %q, want %q", got, unit)
			}
			rnd := rand.New(rand.NewPCG(1, 2))
			pieces := []string{"", "a", "𝄞", "é", "\n", "\r\n", "// 😀\n", "%x = dm.relu ", "\t", "日本"}
			lines := []string{"func.func @f() {", "  return // 😀\r", "}", ""}
			model := strings.Join(lines, "\n")
			e.open(model)
			for i := range 2000 {
				lo, hi := cut(rnd, model), cut(rnd, model)
				if hi < lo {
					lo, hi = hi, lo
				}
				if hi-lo > 20 {
					hi = lo
				}
				with := pieces[rnd.IntN(len(pieces))]
				l0, c0 := editorPos(model, lo, unit)
				l1, c1 := editorPos(model, hi, unit)
				e.change(i+2, edit(l0, c0, l1, c1, with))
				model = model[:lo] + with + model[hi:]
				if i%97 == 0 {
					// A call in between sees exactly the edits before it.
					if got := e.text(); got != model {
						t.Fatalf("after edit %d:\n got %q\nwant %q", i, got, model)
					}
				}
			}
			if got := e.text(); got != model {
				t.Errorf("final text:\n got %q\nwant %q", got, model)
			}
		})
	}
}

// cut is a random place between characters and not inside "\r\n", where no
// editor has a position.
func cut(rnd *rand.Rand, s string) int {
	for {
		i := rnd.IntN(len(s) + 1)
		inside := i > 0 && i < len(s) && (s[i]&0xC0 == 0x80 || s[i-1] == '\r' && s[i] == '\n')
		alone := i > 0 && s[i-1] == '\r' && (i == len(s) || s[i] != '\n')
		if !inside && !alone {
			return i
		}
	}
}

func editorPos(s string, off int, unit string) (line, col int) {
	line = strings.Count(s[:off], "\n")
	head := s[strings.LastIndexByte(s[:off], '\n')+1 : off]
	if unit == "utf-8" {
		return line, len(head)
	}
	return line, len(utf16.Encode([]rune(head)))
}

// Positions beyond a line, beyond the text, inside a surrogate pair, and in the
// wrong order go where the specification or common sense puts them.
func TestPositions(t *testing.T) {
	for name, c := range map[string]struct{ text, edit, want string }{
		"past the end of a line":     {"ab\ncd\n", edit(0, 99, 0, 99, "X"), "abX\ncd\n"},
		"before a carriage return":   {"ab\r\ncd", edit(0, 99, 0, 99, "X"), "abX\r\ncd"},
		"past the last line":         {"ab\ncd", edit(9, 0, 9, 5, "X"), "ab\ncdX"},
		"the largest position":       {"ab", edit(4294967295, 4294967295, 4294967295, 4294967295, "X"), "abX"},
		"inside a surrogate pair":    {"a😀b", edit(0, 2, 0, 2, "X"), "aX😀b"},
		"behind a surrogate pair":    {"a😀b", edit(0, 3, 0, 3, "X"), "a😀Xb"},
		"end before start":           {"abcd", edit(0, 3, 0, 1, "X"), "aXd"},
		"across lines":               {"ab\r\ncd\nef", edit(0, 1, 2, 1, ""), "af"},
		"whole text":                 {"ab", `{"text":"new"}`, "new"},
		"several edits count onward": {"ab", edit(0, 0, 0, 0, "1\n") + "," + edit(1, 2, 1, 2, "2"), "1\nab2"},
	} {
		t.Run(name, func(t *testing.T) {
			e := connect(t, Options{}, withText)
			e.initialize("", "")
			e.open(c.text)
			e.change(2, c.edit)
			if got := e.text(); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// A handler that panics, on the reading loop or off it, in a call or in a
// notification, costs one answer and nothing else.
func TestPanics(t *testing.T) {
	e := connect(t, Options{}, func(s *server) {
		s.methods.Calls["test/begin"] = func(jsonrpc2.RawMessage) (connection.Work, error) { panic("at once") }
		s.methods.Calls["test/work"] = func(jsonrpc2.RawMessage) (connection.Work, error) {
			return func(context.Context) (any, error) { panic("later") }, nil
		}
		s.methods.Notifications["test/note"] = func(jsonrpc2.RawMessage) error { panic("unasked") }
	})
	e.initialize("", "")
	for _, m := range []string{"test/begin", "test/work"} {
		if err := e.call(m, "{}", nil); codeOf(err) != jsonrpc2.InternalError {
			t.Errorf("%s: %v, want an internal error", m, err)
		}
	}
	e.notify("test/note", "{}")
	e.wait("window/logMessage", func(raw json.RawMessage) bool { return strings.Contains(string(raw), "unasked") })
	e.must("shutdown", "null", nil)
}

// Everything that is not a well-formed message for a known method is refused or
// logged, and the connection goes on.
func TestMalformed(t *testing.T) {
	e := connect(t, Options{}, withText)
	if err := e.call("textDocument/hover", "{}", nil); codeOf(err) != jsonrpc2.ServerNotInitialized {
		t.Errorf("before initialize: %v", err)
	}
	e.initialize("", "")
	if err := e.call("initialize", `{"processId":null,"rootUri":null,"capabilities":{}}`, nil); codeOf(err) != jsonrpc2.InvalidRequest {
		t.Errorf("a second initialize: %v", err)
	}
	e.open("a")

	e.notify("no/such", `{"x":1}`)
	e.notify("$/optional", `{"x":1}`)
	e.notify("textDocument/didChange", `{"textDocument":7}`)
	e.notify("textDocument/didChange", `[1,2]`)
	e.notify("textDocument/didChange", `{"textDocument":{"uri":"file:///unknown","version":1},"contentChanges":[]}`)
	e.notify("textDocument/didClose", `{"textDocument":{"uri":"file:///unknown"}}`)
	e.notify("$/cancelRequest", `{"id":{}}`)
	e.notify("$/cancelRequest", `{"id":12345678901}`)
	e.wait("window/logMessage", func(raw json.RawMessage) bool { return strings.Contains(string(raw), "no/such") })

	for method, want := range map[string]jsonrpc2.Code{
		"no/such":                jsonrpc2.MethodNotFound,
		"textDocument/didChange": jsonrpc2.MethodNotFound, // a notification
	} {
		if err := e.call(method, "{}", nil); codeOf(err) != want {
			t.Errorf("%s: %v, want code %d", method, err, want)
		}
	}
	for _, params := range []string{`7`, `[]`, `{"textDocument":7}`, `{"textDocument":{"uri":"x"},"position":"here"}`, `{"textDocument":{"uri":"file:///t"},"position":{"line":-1,"character":0}}`} {
		if err := e.call("textDocument/hover", params, nil); codeOf(err) != jsonrpc2.InvalidParams {
			t.Errorf("hover with %s: %v, want invalid params", params, err)
		}
	}
	for _, body := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"shutdown"`, `no JSON`, `7`, `null`, `""`, `{}`, `{"jsonrpc":"1.0","id":1,"method":"x"}`,
		`{"jsonrpc":"2.0","id":{},"method":"x"}`, `{"jsonrpc":"2.0","method":7}`, `[`, `[]`, `[1,{}]`, "\x00\xff\xfe",
		strings.Repeat("[", 100_000), `{"jsonrpc":"2.0","id":1,"method":"x","params":` + strings.Repeat("[", 100_000),
	} {
		e.frame(body)
		if got := e.text(); got != "a" {
			t.Fatalf("after %.40q: text %q", body, got)
		}
	}
	for _, raw := range []string{"\r\n\r\n", "garbage\r\n\r\n", "Content-Length: x\r\n\r\n{}", "Content-Length: 0\r\n\r\n", `{"no":"header"}` + "\n", strings.Repeat("x", 100_000)} {
		e.raw(raw)
		if got := e.text(); got != "a" {
			t.Fatalf("after the bytes %.40q: text %q", raw, got)
		}
	}
	e.must("shutdown", "null", nil)
}

// Deeply nested parameters are refused, not recursed into.
func TestDeepParameters(t *testing.T) {
	e := connect(t, Options{}, withText)
	e.initialize("", "")
	e.open("a")
	deep := strings.Repeat(`{"a":`, 200_000) + "1" + strings.Repeat("}", 200_000)
	e.notify("workspace/didChangeConfiguration", `{"settings":`+deep+`}`)
	_ = e.call("workspace/executeCommand", `{"command":"dmir.cost","arguments":[`+deep+`]}`, nil)
	if got := e.text(); got != "a" {
		t.Errorf("text %q", got)
	}
}

// A batch is answered as one array.
func TestBatch(t *testing.T) {
	e := connect(t, Options{}, withText)
	e.initialize("", "")
	e.open("a")
	// The client of this test cannot read a batch; it ends on one. So it is
	// enough that the notification in the batch took effect, in order.
	e.frame(`[{"jsonrpc":"2.0","method":"textDocument/didChange","params":{"textDocument":{"uri":"` + testURI + `","version":2},"contentChanges":[{"text":"b"}]}}]`)
	if got := e.text(); got != "b" {
		t.Errorf("text %q", got)
	}
}

// $/cancelRequest reaches a call that is being answered.
func TestCancel(t *testing.T) {
	started := make(chan struct{})
	e := connect(t, Options{}, func(s *server) {
		s.methods.Calls["test/slow"] = func(jsonrpc2.RawMessage) (connection.Work, error) {
			return func(ctx context.Context) (any, error) {
				close(started)
				<-ctx.Done()
				return nil, ctx.Err()
			}, nil
		}
	})
	e.initialize("", "")
	done := make(chan error, 1)
	go func() {
		_, err := e.conn.Call(context.Background(), "test/slow", nil, nil)
		done <- err
	}()
	<-started
	e.notify("$/cancelRequest", `{"id":2}`) // the second call of this client
	if err := <-done; codeOf(err) != protocol.CodeRequestCancelled {
		t.Errorf("got %v", err)
	}
}

// A session that ends without shutdown is an error.
func TestExit(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(*editor)
		want error
	}{
		"shutdown and exit": {func(e *editor) { e.must("shutdown", "null", nil); e.notify("exit", "null") }, nil},
		"exit alone":        {func(e *editor) { e.notify("exit", "null") }, ErrNoShutdown},
		"end of input":      {func(e *editor) { _ = e.toward.Close() }, ErrNoShutdown},
		"shutdown and end of input": {func(e *editor) {
			e.must("shutdown", "null", nil)
			if err := e.call("textDocument/hover", "{}", nil); codeOf(err) != jsonrpc2.InvalidRequest {
				t.Errorf("hover after shutdown: %v", err)
			}
			_ = e.toward.Close()
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			e := connect(t, Options{}, nil)
			e.initialize("", "")
			c.end(e)
			if got := <-e.served; !errors.Is(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

// For an editor that does not read, the newest diagnostics of a document wait,
// and none of those before.
func TestUnreadDiagnostics(t *testing.T) {
	e := connect(t, Options{}, nil)
	e.initialize("", "")
	gate := make(chan struct{})
	e.server.Supersede("gate", "test/gate", func() any { <-gate; return nil })
	src := source.New("f.dmir", "")
	for version := range int32(100) {
		for _, uri := range []string{"file:///a.dmir", "file:///b.dmir"} {
			e.server.diagnostics.Publish(&workspace.Snapshot{Address: workspace.Address{URI: uri}, Version: version, Src: src}, nil)
		}
	}
	close(gate)
	for _, uri := range []string{"file:///a.dmir", "file:///b.dmir"} {
		got := e.wait(protocol.MethodTextDocumentPublishDiagnostics, func(raw json.RawMessage) bool { return strings.Contains(string(raw), uri) })
		if !strings.Contains(string(got), `"version":99`) {
			t.Errorf("sent: %s", got)
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if n := len(slices.DeleteFunc(slices.Clone(e.notes), func(n note) bool { return n.method != protocol.MethodTextDocumentPublishDiagnostics })); n != 2 {
		t.Errorf("%d diagnostics were sent for two documents", n)
	}
}

// A message that cannot be made is logged, and those behind it are sent.
func TestPanicWhileSending(t *testing.T) {
	e := connect(t, Options{}, nil)
	e.initialize("", "")
	e.server.Supersede("test", "test/note", func() any { panic("out of luck") })
	e.wait(protocol.MethodWindowLogMessage, func(raw json.RawMessage) bool { return strings.Contains(string(raw), "out of luck") })
}

// A server whose input stays open ends with the process that started it.
func TestParentDeath(t *testing.T) {
	hang := workerCommand("hang")
	parent := exec.Command(hang[0], hang[1:]...)
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	e := connect(t, Options{}, nil)
	e.must("initialize", fmt.Sprintf(`{"processId":%d,"rootUri":null,"capabilities":{}}`, parent.Process.Pid), nil)
	_ = parent.Process.Kill()
	_ = parent.Wait()
	select {
	case err := <-e.served:
		if !errors.Is(err, ErrNoShutdown) {
			t.Errorf("got %v", err)
		}
	case <-time.After(patient):
		t.Error("the server outlived its parent")
	}
}

// An invalid message is answered with the id null and an error code, in the order
// of the messages.
func TestRefusals(t *testing.T) {
	frame := func(body string) string { return fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body) }
	for name, c := range map[string]struct {
		in   string
		want jsonrpc2.Code
	}{
		"no JSON":              {frame(`{"jsonrpc":`), jsonrpc2.ParseError},
		"no object":            {frame(`7`), jsonrpc2.InvalidRequest},
		"no version":           {frame(`{"id":1,"method":"shutdown"}`), jsonrpc2.InvalidRequest},
		"a broken batch":       {frame(`[{]`), jsonrpc2.ParseError},
		"an empty message":     {"Content-Length: 0\r\n\r\n", jsonrpc2.InvalidRequest},
		"a length in words":    {"Content-Length: ten\r\n\r\n", jsonrpc2.ParseError},
		"no header":            {"hello\r\n", jsonrpc2.ParseError},
		"a header of no field": {"X-Y: z\r\n\r\n", jsonrpc2.ParseError},
	} {
		t.Run(name, func(t *testing.T) {
			inR, inW := io.Pipe()
			outR, outW := io.Pipe()
			s := newServer(context.Background(), inR, outW, Options{})
			s.Conn.Serve(s.methods)
			go func() {
				_, _ = io.WriteString(inW, c.in+frame(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"processId":null,"rootUri":null,"capabilities":{}}}`))
			}()
			answers := jsonrpc2.NewStream(pipes{outR, inW})
			var refused, served bool
			for !refused || !served {
				m, _, err := answers.Read(context.Background())
				if err != nil {
					t.Fatal(err)
				}
				r := m.(*jsonrpc2.Response)
				if r.ID().IsValid() {
					served = true
				} else {
					refused = true
					if got := codeOf(r.Err()); got != c.want {
						t.Errorf("code %d (%v), want %d", got, r.Err(), c.want)
					}
				}
			}
			_ = inW.Close()
			_ = s.wait()
		})
	}
}
