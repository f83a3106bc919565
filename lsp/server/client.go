package server

import (
	"context"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"

	"go.lsp.dev/jsonrpc2"
	"go.lsp.dev/protocol"

	"dmir/internal/escape"
)

// client is the way to the editor. Everything but responses goes through one
// queue, so that nothing that runs on the reading loop ever waits for the
// editor to read, and so that what is sent keeps its order.
type client struct {
	conn jsonrpc2.Conn
	ctx  context.Context // of the connection

	mu      sync.Mutex
	queue   []func()
	running bool
	idle    []chan struct{} // closed when the queue is empty
}

// post queues f.
func (c *client) post(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queue = append(c.queue, f)
	if !c.running {
		c.running = true
		go c.drain()
	}
}

func (c *client) drain() {
	for {
		c.mu.Lock()
		if len(c.queue) == 0 {
			c.running, c.queue = false, nil
			for _, ch := range c.idle {
				close(ch)
			}
			c.idle = nil
			c.mu.Unlock()
			return
		}
		f := c.queue[0]
		c.queue[0] = nil
		c.queue = c.queue[1:]
		c.mu.Unlock()
		c.run(f)
	}
}

// run keeps a message that cannot be made from ending the server.
func (c *client) run(f func()) {
	defer func() {
		if r := recover(); r != nil {
			c.log(protocol.MessageTypeError, fmt.Sprintf("internal error: %v\n%s", r, debug.Stack()))
		}
	}()
	f()
}

// flush waits until everything queued so far has been sent, so that a response
// does not overtake the progress that led to it.
func (c *client) flush(ctx context.Context) {
	c.mu.Lock()
	if !c.running {
		c.mu.Unlock()
		return
	}
	ch := make(chan struct{})
	c.idle = append(c.idle, ch)
	c.mu.Unlock()
	select {
	case <-ch:
	case <-ctx.Done():
	case <-c.ctx.Done():
	}
}

// notify queues a notification. Errors mean that the connection is ending,
// which its reader notices.
func (c *client) notify(method string, params any) {
	c.post(func() { _ = c.conn.Notify(c.ctx, method, params) })
}

// call asks the editor and waits for its answer; never from the reading loop.
// Cancelling ctx withdraws the request.
func (c *client) call(ctx context.Context, method string, params, result any) error {
	c.flush(ctx)
	id, err := c.conn.Call(ctx, method, params, result)
	if ctx.Err() != nil && c.ctx.Err() == nil {
		if n, ok := id.Number(); ok {
			c.notify(protocol.MethodCancelRequest, &protocol.CancelParams{ID: protocol.Integer(n)})
		}
	}
	return err
}

func (c *client) log(kind protocol.MessageType, text string) {
	c.notify(protocol.MethodWindowLogMessage, &protocol.LogMessageParams{Type: kind, Message: text})
}

// show tells the person. Editors make links of [words](command:…), and a name
// from a program must not.
func (c *client) show(kind protocol.MessageType, text string) {
	text = strings.ReplaceAll(escape.Lines(text), "](", "] (")
	c.notify(protocol.MethodWindowShowMessage, &protocol.ShowMessageParams{Type: kind, Message: text})
}
