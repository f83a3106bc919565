package server

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"dmir/lsp/connection"
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
			const most = 4 * connection.MaxUnread
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
