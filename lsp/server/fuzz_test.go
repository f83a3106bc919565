package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"
)

// FuzzServe sends a server arbitrary bytes: it neither panics nor hangs, and
// ends with its input.
func FuzzServe(f *testing.F) {
	frame := func(body string) string { return fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body) }
	begin := frame(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"processId":null,"rootUri":null,"capabilities":{}}}`)
	open := frame(`{"jsonrpc":"2.0","method":"textDocument/didOpen","params":{"textDocument":{"uri":"file:///t.dmir","languageId":"dmir","version":1,"text":"func.func @f() {\n  return\n}\n"}}}`)
	change := frame(`{"jsonrpc":"2.0","method":"textDocument/didChange","params":{"textDocument":{"uri":"file:///t.dmir","version":2},"contentChanges":[{"range":{"start":{"line":1,"character":3},"end":{"line":9,"character":0}},"text":"%x = dm."}]}}`)
	hints := frame(`{"jsonrpc":"2.0","id":2,"method":"textDocument/inlayHint","params":{"textDocument":{"uri":"file:///t.dmir"},"range":{"start":{"line":0,"character":0},"end":{"line":9,"character":0}}}}`)
	asks := ""
	for i, method := range []string{
		"textDocument/completion", "textDocument/signatureHelp", "textDocument/typeDefinition", "textDocument/selectionRange",
		"textDocument/semanticTokens/full", "textDocument/semanticTokens/range", "textDocument/rangeFormatting", "workspace/symbol", "completionItem/resolve",
	} {
		asks += frame(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":{"textDocument":{"uri":"file:///t.dmir"},"position":{"line":1,"character":11},"positions":[{"line":4294967295,"character":4294967295}],"range":{"start":{"line":9,"character":9},"end":{"line":0,"character":0}},"query":"f","label":"x"}}`, i+4, method))
	}
	for _, seed := range []string{
		"", "\r\n", begin, begin + open + change + hints, begin + open + change + asks, begin + "garbage" + open + hints,
		begin + open + "Content-Length: 99999999\r\n\r\n{", "Content-Length: -1\r\n\r\n" + begin,
		begin + frame(`[`) + frame(`[{"jsonrpc":"2.0","id":3,"method":"shutdown"},7]`) + frame(`{"jsonrpc":"2.0","method":"exit"}`),
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		done := make(chan error, 1)
		go func() {
			done <- Serve(context.Background(), bytes.NewReader(in), io.Discard, Options{Pause: time.Hour})
		}()
		select {
		case err := <-done:
			if err != nil && !errors.Is(err, ErrNoShutdown) {
				t.Error(err)
			}
		case <-time.After(patient):
			t.Fatal("the server did not end with its input")
		}
	})
}
