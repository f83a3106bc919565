package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"go.lsp.dev/protocol"
)

// deaf is the output to an editor that does not read.
type deaf struct{ ended chan struct{} }

func (d deaf) Write([]byte) (int, error) {
	<-d.ended
	return 0, io.ErrClosedPipe
}

// An editor that asks and never reads costs a bounded number of messages and
// bytes: then the connection ends, and what it sends is not taken.
func TestUnread(t *testing.T) {
	long := strings.Repeat(" ", 64<<10)
	for _, c := range []struct {
		name string
		body func(i int) string
	}{
		{"requests", func(i int) string {
			return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"textDocument/hover","params":{"textDocument":{"uri":%q},"position":{"line":1,"character":8}}}`, i+10, testURI)
		}},
		{"large answers", func(i int) string {
			return fmt.Sprintf(`{"jsonrpc":"2.0","id":"%s%d","method":"no/such"}`, long, i)
		}},
		{"requests that are none", func(int) string { return `{"jsonrpc":"2.0"}` }},
	} {
		t.Run(c.name, func(t *testing.T) {
			out := deaf{make(chan struct{})}
			defer close(out.ended)
			inR, inW := io.Pipe()
			served := make(chan error, 1)
			go func() { served <- Serve(t.Context(), inR, out, Options{}) }()
			send := func(body string) error {
				_, err := fmt.Fprintf(inW, "Content-Length: %d\r\n\r\n%s", len(body), body)
				return err
			}
			for _, body := range []string{
				`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"capabilities":{}}}`,
				`{"jsonrpc":"2.0","method":"initialized","params":{}}`,
				fmt.Sprintf(`{"jsonrpc":"2.0","method":"textDocument/didOpen","params":{"textDocument":{"uri":%q,"languageId":"dmir","version":1,"text":%q}}}`, testURI, ffn),
			} {
				if err := send(body); err != nil {
					t.Fatal(err)
				}
			}
			const most = 4 * maxUnread
			sent := 0
			var err error
			for ; err == nil && sent < most; sent++ {
				err = send(c.body(sent))
			}
			if err == nil {
				t.Fatalf("%d messages were taken", sent)
			}
			if err := <-served; !errors.Is(err, ErrNoShutdown) {
				t.Errorf("served: %v", err)
			}
			var mem runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&mem)
			if mem.HeapAlloc > 512<<20 {
				t.Errorf("%d MB are held after %d messages", mem.HeapAlloc>>20, sent)
			}
		})
	}
}

// Notifications that an editor does not read give way to newer ones, logs to
// nothing; what must arrive keeps its order.
func TestSuperseded(t *testing.T) {
	e := connect(t, Options{}, nil)
	e.initialize(wishes, `{}`)
	c := e.server.client
	release, began := make(chan struct{}), make(chan struct{})
	c.post(func() { close(began); <-release })
	<-began // what follows waits
	var said []string
	for i := range 100_000 {
		c.supersede("a", func() { said = append(said, fmt.Sprint("a", i)) })
		c.supersede("b", func() { said = append(said, fmt.Sprint("b", i)) })
		c.log(protocol.MessageTypeInfo, "text")
	}
	c.post(func() { said = append(said, "end") })
	c.mu.Lock()
	waiting := len(c.queue)
	c.mu.Unlock()
	if waiting > maxLogs+3 {
		t.Errorf("%d messages wait", waiting)
	}
	close(release)
	c.flush(t.Context())
	if got := fmt.Sprint(said); got != "[a99999 b99999 end]" {
		t.Errorf("sent %s", got)
	}
	c.supersede("a", func() { said = append(said, "again") })
	c.flush(t.Context())
	if said[len(said)-1] != "again" {
		t.Error("what was sent is taken for what waits")
	}
}

// Beyond a bound the queue ends the connection and holds no more; so do
// responses.
func TestOverflow(t *testing.T) {
	ended := 0
	release := make(chan struct{})
	c := &client{ctx: context.Background(), overflow: func() { ended++ }}
	c.post(func() { <-release })
	for range 3 * maxUnread {
		c.post(func() {})
	}
	c.mu.Lock()
	if len(c.queue) > maxUnread || ended == 0 {
		t.Errorf("%d messages wait, ended %d times", len(c.queue), ended)
	}
	c.mu.Unlock()
	close(release)
	c.flush(t.Context())

	why := error(nil)
	closed := 0
	s := &stream{ended: func(err error) { why = err }, out: io.Discard, close: func() error { closed++; return nil }}
	for range maxUnread {
		if err := s.wait(1); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.wait(1); !errors.Is(err, errUnread) || !errors.Is(why, errUnread) {
		t.Errorf("%v, ended for %v", err, why)
	}
	s = &stream{ended: s.ended, out: io.Discard, close: s.close}
	if err := s.wait(2 * maxUnreadBytes); err != nil {
		t.Errorf("one large response: %v", err)
	}
	if err := s.wait(1); !errors.Is(err, errUnread) {
		t.Errorf("another beside it: %v", err)
	}
	if closed != 2 {
		t.Errorf("the input was closed %d times", closed)
	}
}
