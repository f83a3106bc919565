package server

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"
)

// wire is a client that keeps only the last message, so that it can run for long,
// and that reads only when a test asks it to.
type wire struct {
	t      testing.TB
	in     *io.PipeWriter
	out    *io.PipeReader
	served chan error

	mu       sync.Mutex
	changed  *sync.Cond
	nextID   int
	waiting  map[int]bool // requests without an answer
	last     map[int]json.RawMessage
	keep     int // the answer to keep in last
	errors   map[int]int
	shown    json.RawMessage // the last diagnostics
	version  int             // of them
	internal []string        // errors of the server itself
}

// message is anything that a server sends.
type message struct {
	ID     *int            `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// dial starts a server without reading its output.
func dial(t testing.TB, opts Options) *wire {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	w := &wire{t: t, in: inW, out: outR, served: make(chan error, 1), waiting: map[int]bool{}, last: map[int]json.RawMessage{}, errors: map[int]int{}}
	w.changed = sync.NewCond(&w.mu)
	go func() {
		err := Serve(context.Background(), inR, outW, opts)
		_ = inR.Close() // who still writes shall not wait
		_ = outW.Close()
		w.served <- err
	}()
	t.Cleanup(func() { _ = inW.Close(); _ = outR.Close() })
	return w
}

// listen reads until the server's output ends.
func (w *wire) listen() {
	go func() {
		for in := bufio.NewReader(w.out); ; {
			body, err := readFrame(in)
			if err != nil {
				return
			}
			var m message
			if err := json.Unmarshal(body, &m); err != nil {
				w.t.Errorf("the server wrote %.200q: %v", body, err)
				return
			}
			w.take(m)
		}
	}()
}

func (w *wire) take(m message) {
	w.mu.Lock()
	defer w.mu.Unlock()
	defer w.changed.Broadcast()
	switch {
	case m.Method == "textDocument/publishDiagnostics":
		var p struct {
			Version     int             `json:"version"`
			Diagnostics json.RawMessage `json:"diagnostics"`
		}
		if err := json.Unmarshal(m.Params, &p); err != nil {
			w.t.Error(err)
		}
		w.shown, w.version = p.Diagnostics, p.Version
	case m.Method == "window/logMessage":
		var p struct {
			Type    int    `json:"type"`
			Message string `json:"message"`
		}
		if json.Unmarshal(m.Params, &p) == nil && p.Type == 1 {
			w.internal = append(w.internal, p.Message)
		}
	case m.Method == "" && m.ID != nil:
		delete(w.waiting, *m.ID)
		if *m.ID == w.keep {
			w.last[*m.ID] = m.Result
		}
		if m.Error != nil {
			w.errors[m.Error.Code]++
			if m.Error.Code == -32603 {
				w.internal = append(w.internal, m.Error.Message)
			}
		}
	}
}

// send writes one message. It fails the test where the server does not take it
// in for a long time.
func (w *wire) send(body string) {
	w.t.Helper()
	if err := w.try(body); err != nil {
		w.t.Fatal(err)
	}
}

func (w *wire) try(body string) error {
	stuck := time.AfterFunc(patient, func() { _ = w.in.CloseWithError(errors.New("the server does not read")) })
	defer stuck.Stop()
	_, err := fmt.Fprintf(w.in, "Content-Length: %d\r\n\r\n%s", len(body), body)
	return err
}

// patient is how long the tests wait for what must come: longer than any machine
// under load takes, so that only what never comes fails.
const patient = 10 * time.Minute

func (w *wire) begin() {
	w.request("initialize", `{"processId":null,"rootUri":null,"capabilities":`+wishes+`}`)
	w.notify("initialized", "{}")
}

func (w *wire) notify(method, params string) {
	w.t.Helper()
	w.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":%q,"params":%s}`, method, params))
}

// request asks without waiting.
func (w *wire) request(method, params string) (id int) {
	w.t.Helper()
	w.mu.Lock()
	w.nextID++
	id = w.nextID
	w.waiting[id] = true
	w.mu.Unlock()
	w.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, id, method, params))
	return id
}

// ask waits for the answer.
func (w *wire) ask(method, params string) string {
	w.t.Helper()
	w.mu.Lock()
	w.keep = w.nextID + 1
	w.mu.Unlock()
	id := w.request(method, params)
	w.until("an answer to "+method, func() bool { return !w.waiting[id] })
	w.mu.Lock()
	defer w.mu.Unlock()
	answer := w.last[id]
	delete(w.last, id)
	return string(answer)
}

// until waits for a condition, which is asked with w.mu held.
func (w *wire) until(what string, met func() bool) {
	w.t.Helper()
	late := time.AfterFunc(patient, w.changed.Broadcast)
	defer late.Stop()
	begin := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	for !met() {
		if time.Since(begin) >= patient {
			w.t.Fatalf("%s did not come", what)
		}
		w.changed.Wait()
	}
}

func (w *wire) open(text string) {
	w.notify("textDocument/didOpen", fmt.Sprintf(`{"textDocument":{"uri":%q,"languageId":"dmir","version":1,"text":%s}}`, testURI, quote(text)))
}

func (w *wire) change(version int, changes string) {
	w.notify("textDocument/didChange", fmt.Sprintf(`{"textDocument":{"uri":%q,"version":%d},"contentChanges":[%s]}`, testURI, version, changes))
}

// ends waits for the server to end and returns its error.
func (w *wire) ends() error {
	w.t.Helper()
	select {
	case err := <-w.served:
		return err
	case <-time.After(patient):
		w.t.Fatal("the server did not end")
		return nil
	}
}

// sound holds the server to having had no fault of its own.
func (w *wire) sound() {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.internal) > 0 {
		w.t.Errorf("%d faults of the server itself, the first: %.6000s", len(w.internal), w.internal[0])
	}
}
