// Package connection exchanges messages with an editor over a pair of pipes: their
// framing, their order, the cancellation of requests, and a bound on what waits
// for an editor that does not read. Of the protocol it implements the codec and the
// messages about messages, such as logs and cancellations.
//
// Notifications and the beginnings of calls run in the order of arrival; no call
// delays another. Nothing that an editor sends ends the connection except the end
// of its input: a handler that panics is answered with an internal error, a
// malformed message is refused, and a notification that fails is logged.
package connection

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"
	"sync"

	"go.lsp.dev/jsonrpc2"
	"go.lsp.dev/protocol"

	"dmir/base/escape"
)

// Conn is the connection with one editor. All that is sent except responses goes
// through one queue, which keeps its order; no method but Call and Flush waits for
// the editor.
type Conn struct {
	ctx      context.Context // ends with the connection
	cancel   context.CancelFunc
	rpc      jsonrpc2.Conn
	queue    queue
	dispatch dispatcher
	ended    chan struct{}
	once     sync.Once
}

// New returns a connection that reads nothing before Serve.
func New(ctx context.Context, in io.Reader, out io.Writer) *Conn {
	c := &Conn{ended: make(chan struct{})}
	c.ctx, c.cancel = context.WithCancel(ctx)
	str := &stream{in: bufio.NewReader(in), out: out, ended: c.End}
	str.close = func() error {
		c.End()
		if closer, ok := in.(io.Closer); ok && in != io.Reader(os.Stdin) {
			return closer.Close()
		}
		return nil
	}
	c.rpc = jsonrpc2.NewConn(str, jsonrpc2.WithCodec(Codec{}))
	str.refuse = func(bad *jsonrpc2.Error) {
		c.post(func() { _, _ = str.WriteFrame(c.ctx, jsonrpc2.AppendResponse(nil, jsonrpc2.ID{}, nil, bad)) })
	}
	c.queue.overflow = str.giveUp
	c.queue.failed = func(r any) { c.Panicked("sending", r) }
	c.queue.dropped = func(n int) {
		c.Log(protocol.MessageTypeWarning, fmt.Sprintf("%d messages were dropped while the editor was not reading", n))
	}
	return c
}

// Serve begins to read, and answers with the given methods.
func (c *Conn) Serve(m Methods) {
	c.dispatch = dispatcher{c: c, Methods: m, flight: inFlight{cancel: map[jsonrpc2.ID]context.CancelFunc{}}}
	c.rpc.Go(c.ctx, c.dispatch.handle)
}

// Context ends with the connection.
func (c *Conn) Context() context.Context { return c.ctx }

// End makes Wait return. It may be called any number of times.
func (c *Conn) End() { c.once.Do(func() { close(c.ended) }) }

// Wait returns when End was called, the input has ended, or the context is done.
func (c *Conn) Wait() {
	select {
	case <-c.ended:
	case <-c.rpc.Done():
	case <-c.ctx.Done():
	}
}

// Cancel ends the context of the connection.
func (c *Conn) Cancel() { c.cancel() }

// Close closes the transport. It may wait for a reader that its input does not
// release, as a terminal's may not.
func (c *Conn) Close() error { return c.rpc.Close() }

func (c *Conn) post(send func()) { c.queue.post(&outgoing{send: send}) }

// Notify queues a notification.
func (c *Conn) Notify(method string, params any) {
	c.post(func() { c.send(method, params) })
}

// Supersede queues a notification in the place of one that waits under the same
// key. Its parameters are made when it is sent.
func (c *Conn) Supersede(key any, method string, params func() any) {
	c.queue.post(&outgoing{key: key, send: func() { c.send(method, params()) }})
}

// send sends a notification. Its errors mean that the connection is ending, which
// the reader notices.
func (c *Conn) send(method string, params any) { _ = c.rpc.Notify(c.ctx, method, params) }

// Call sends a request after all that is queued and waits for its answer. It must
// not be called from the reading loop. If ctx ends, the request is cancelled.
func (c *Conn) Call(ctx context.Context, method string, params, result any) error {
	c.Flush(ctx)
	id, err := c.rpc.Call(ctx, method, params, result)
	if ctx.Err() != nil && c.ctx.Err() == nil {
		if n, ok := id.Number(); ok {
			c.Notify(protocol.MethodCancelRequest, &protocol.CancelParams{ID: protocol.Integer(n)})
		}
	}
	return err
}

// Flush waits until all that is queued has been sent, so that a response does not
// overtake the progress before it.
func (c *Conn) Flush(ctx context.Context) { c.queue.flush(ctx, c.ctx) }

// Log writes to the editor's log.
func (c *Conn) Log(kind protocol.MessageType, text string) {
	c.queue.post(&outgoing{log: true, send: func() {
		c.send(protocol.MethodWindowLogMessage, &protocol.LogMessageParams{Type: kind, Message: text})
	}})
}

// Show shows a message to the user. Editors make links of [words](command:…), which
// a name from a program must not become.
func (c *Conn) Show(kind protocol.MessageType, text string) {
	text = strings.ReplaceAll(escape.Lines(text), "](", "] (")
	c.Notify(protocol.MethodWindowShowMessage, &protocol.ShowMessageParams{Type: kind, Message: text})
}

// Panicked logs a recovered panic.
func (c *Conn) Panicked(during string, r any) {
	c.Log(protocol.MessageTypeError, fmt.Sprintf("%s: internal error: %v\n%s", during, r, debug.Stack()))
}
