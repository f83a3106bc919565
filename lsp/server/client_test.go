package server

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"go.lsp.dev/jsonrpc2"
	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"

	"dmir/lsp/connection"
	"dmir/lsp/session"
)

// editor is a language client over a pair of pipes.
type editor struct {
	t      *testing.T
	conn   jsonrpc2.Conn
	toward *lockedWriter // the server's input
	server *server
	served chan error

	mu    sync.Mutex
	cond  *sync.Cond
	notes []note
	calls []string
	asks  []note // the calls with their parameters
	// config answers workspace/configuration; scoped does for folders. Each
	// answer waits for hold, where there is one.
	config string
	scoped map[string]string
	hold   chan struct{}
	choice string // answers window/showMessageRequest
}

type note struct {
	method string
	params json.RawMessage
}

type lockedWriter struct {
	mu sync.Mutex
	*io.PipeWriter
}

func (w *lockedWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.PipeWriter.Write(p)
}

type pipes struct {
	io.Reader
	io.WriteCloser
}

// connect starts a server and a client of it; prepare may change the server
// before it reads.
func connect(t *testing.T, opts Options, prepare func(*server)) *editor {
	t.Helper()
	if opts.Pause == 0 {
		opts.Pause = time.Millisecond
	}
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	e := &editor{t: t, toward: &lockedWriter{PipeWriter: inW}, served: make(chan error, 1), config: "null"}
	e.cond = sync.NewCond(&e.mu)
	e.server = newServer(context.Background(), inR, outW, opts)
	if prepare != nil {
		prepare(e.server)
	}
	e.server.Conn.Serve(e.server.methods)
	go func() {
		err := e.server.wait()
		_ = outW.Close()
		e.served <- err
	}()
	e.conn = jsonrpc2.NewConn(jsonrpc2.NewStream(pipes{outR, e.toward}), jsonrpc2.WithCodec(connection.Codec{}))
	e.conn.Go(context.Background(), e.handle)
	t.Cleanup(func() {
		_ = inW.Close()
		select {
		case <-e.conn.Done():
		case <-time.After(patient):
			t.Error("the server did not end with its input")
		}
	})
	return e
}

// handle records what the server sends and answers its calls.
func (e *editor) handle(ctx context.Context, req *jsonrpc2.Request) (any, error) {
	answer, hold := e.take(req)
	if hold != nil {
		jsonrpc2.Async(ctx)
		<-hold
	}
	return answer, nil
}

func (e *editor) take(req *jsonrpc2.Request) (answer any, hold <-chan struct{}) {
	e.mu.Lock()
	defer e.mu.Unlock()
	defer e.cond.Broadcast()
	method := strings.Clone(req.Method())
	if req.IsCall() {
		e.calls = append(e.calls, method)
		e.asks = append(e.asks, note{method, append(json.RawMessage(nil), req.Params()...)})
		switch method {
		case protocol.MethodWorkspaceConfiguration:
			return e.configuration(json.RawMessage(req.Params())), e.hold
		case protocol.MethodWorkspaceApplyEdit:
			return jsonrpc2.RawMessage(`{"applied":true}`), nil
		case protocol.MethodWindowShowDocument:
			return jsonrpc2.RawMessage(`{"success":true}`), nil
		case protocol.MethodWindowShowMessageRequest:
			return jsonrpc2.RawMessage(e.choice), nil
		}
		return nil, nil
	}
	e.notes = append(e.notes, note{method, append(json.RawMessage(nil), req.Params()...)})
	return nil, nil
}

// configuration is the answer to what is asked of the settings.
func (e *editor) configuration(params json.RawMessage) jsonrpc2.RawMessage {
	var asked struct {
		Items []struct {
			ScopeURI string `json:"scopeUri"`
		} `json:"items"`
	}
	if err := json.Unmarshal(params, &asked); err != nil {
		e.t.Error(err)
	}
	var out []string
	for _, item := range asked.Items {
		switch {
		case item.ScopeURI == "":
			out = append(out, e.config)
		default:
			out = append(out, or(e.scoped[item.ScopeURI], "null"))
		}
	}
	return jsonrpc2.RawMessage("[" + strings.Join(out, ",") + "]")
}

// count is how often the server has made a call.
func (e *editor) count(method string) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := 0
	for _, a := range e.asks {
		if a.method == method {
			n++
		}
	}
	return n
}

// asked waits for the nth call of a method and returns its parameters.
func (e *editor) asked(method string, nth int) string {
	e.t.Helper()
	timeout := time.AfterFunc(patient, func() { e.cond.Broadcast() })
	defer timeout.Stop()
	start := time.Now()
	e.mu.Lock()
	defer e.mu.Unlock()
	for {
		n := 0
		for _, a := range e.asks {
			if a.method == method {
				if n++; n == nth {
					return string(a.params)
				}
			}
		}
		if time.Since(start) >= patient {
			e.t.Fatalf("the server made %d calls of %s, not %d", n, method, nth)
		}
		e.cond.Wait()
	}
}

// initialize begins the session with the given capabilities and options, both
// JSON, either of which may be "".
func (e *editor) initialize(capabilities, options string) protocol.InitializeResult {
	e.t.Helper()
	params := `{"processId":null,"rootUri":null,"capabilities":` + or(capabilities, "{}")
	if options != "" {
		params += `,"initializationOptions":` + options
	}
	var res protocol.InitializeResult
	e.must("initialize", params+"}", &res)
	e.notify("initialized", "{}")
	return res
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// call sends a request with JSON parameters.
func (e *editor) call(method, params string, result any) error {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patient)
	defer cancel()
	_, err := e.conn.Call(ctx, method, jsonrpc2.RawMessage(params), result)
	if ctx.Err() != nil {
		e.t.Fatalf("%s was not answered", method)
	}
	return err
}

// must is call that has to succeed.
func (e *editor) must(method, params string, result any) {
	e.t.Helper()
	if err := e.call(method, params, result); err != nil {
		e.t.Fatalf("%s: %v", method, err)
	}
}

func (e *editor) notify(method, params string) {
	e.t.Helper()
	if err := e.conn.Notify(context.Background(), method, jsonrpc2.RawMessage(params)); err != nil {
		e.t.Fatal(err)
	}
}

// raw sends bytes as they are.
func (e *editor) raw(s string) {
	e.t.Helper()
	if _, err := io.WriteString(e.toward, s); err != nil {
		e.t.Fatal(err)
	}
}

// frame sends bytes as the body of a message.
func (e *editor) frame(body string) {
	e.raw(fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body))
}

// wait returns the first notification that matches, waiting for it.
func (e *editor) wait(method string, match func(json.RawMessage) bool) json.RawMessage {
	e.t.Helper()
	timeout := time.AfterFunc(patient, func() { e.cond.Broadcast() })
	defer timeout.Stop()
	start := time.Now()
	e.mu.Lock()
	defer e.mu.Unlock()
	for {
		for _, n := range e.notes {
			if n.method == method && (match == nil || match(n.params)) {
				return n.params
			}
		}
		if time.Since(start) >= patient {
			last := e.notes[max(0, len(e.notes)-5):]
			e.t.Fatalf("no %s came that matches; %d notifications did, the last: %.2000s", method, len(e.notes), last)
		}
		e.cond.Wait()
	}
}

// waitCall waits until the server has made a call.
func (e *editor) waitCall(method string) {
	e.t.Helper()
	timeout := time.AfterFunc(patient, func() { e.cond.Broadcast() })
	defer timeout.Stop()
	start := time.Now()
	e.mu.Lock()
	defer e.mu.Unlock()
	for {
		for _, c := range e.calls {
			if c == method {
				return
			}
		}
		if time.Since(start) >= patient {
			e.t.Fatalf("the server did not call %s", method)
		}
		e.cond.Wait()
	}
}

const testURI = "file:///work%20space/t.dmir"

func (e *editor) open(text string) {
	e.notify("textDocument/didOpen", fmt.Sprintf(`{"textDocument":{"uri":%q,"languageId":"dmir","version":1,"text":%s}}`, testURI, quote(text)))
}

// change sends edits of one version; each is JSON.
func (e *editor) change(version int, edits ...string) {
	e.notify("textDocument/didChange", fmt.Sprintf(`{"textDocument":{"uri":%q,"version":%d},"contentChanges":[%s]}`, testURI, version, strings.Join(edits, ",")))
}

func edit(l0, c0, l1, c1 int, text string) string {
	return fmt.Sprintf(`{"range":{"start":{"line":%d,"character":%d},"end":{"line":%d,"character":%d}},"text":%s}`, l0, c0, l1, c1, quote(text))
}

func quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// text is the document as the server has it after all that was sent so far.
func (e *editor) text() string {
	e.t.Helper()
	var got string
	e.must("test/text", fmt.Sprintf(`{"textDocument":{"uri":%q}}`, testURI), &got)
	return got
}

// withText lets tests ask for the text of a document.
func withText(s *server) {
	text := onDocument(
		func(p *protocol.HoverParams) uri.URI { return p.TextDocument.URI },
		func(_ context.Context, _ *server, p session.Place, _ *protocol.HoverParams) (any, error) {
			return jsonrpc2.RawMessage(quote(p.Src.Text())), nil
		})
	s.methods.Calls["test/text"] = func(raw jsonrpc2.RawMessage) (connection.Work, error) { return text(s, raw) }
}

// diagnostics waits for the diagnostics of a version that satisfy ok.
func (e *editor) diagnostics(version int32, ok func([]protocol.Diagnostic) bool) []protocol.Diagnostic {
	e.t.Helper()
	var got []protocol.Diagnostic
	e.wait("textDocument/publishDiagnostics", func(raw json.RawMessage) bool {
		var p protocol.PublishDiagnosticsParams
		if err := protocol.Unmarshal(raw, &p); err != nil {
			e.t.Error(err)
			return true
		}
		v, _ := p.Version.Get()
		if v != version || ok != nil && !ok(p.Diagnostics) {
			return false
		}
		got = p.Diagnostics
		return true
	})
	return got
}
