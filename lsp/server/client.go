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
// editor to read, and so that what is sent keeps its order. An editor that does
// not read has a bounded number of messages wait for it: what a newer one
// supersedes is not sent, logs beyond a few are left out, and beyond maxUnread
// the connection ends.
type client struct {
	conn     jsonrpc2.Conn
	ctx      context.Context // of the connection
	overflow func()          // ends the connection; nil: nothing does

	mu      sync.Mutex
	queue   []*outgoing
	waiting map[any]*outgoing // by what supersedes them
	logs    int               // that wait
	left    int               // logs that were left out since
	running bool
	idle    []chan struct{} // closed when the queue is empty
}

// outgoing is a message to send.
type outgoing struct {
	send func()
	key  any // nil: no other supersedes it
	log  bool
}

const (
	maxUnread      = 1 << 13  // messages that wait for an editor that does not read
	maxUnreadBytes = 64 << 20 // of responses that do
	maxLogs        = 256
)

// post queues f.
func (c *client) post(f func()) { c.enqueue(&outgoing{send: f}) }

// supersede queues f in place of what waits under the same key.
func (c *client) supersede(key any, f func()) { c.enqueue(&outgoing{send: f, key: key}) }

func (c *client) enqueue(m *outgoing) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if old := c.waiting[m.key]; old != nil && m.key != nil {
		old.send = m.send
		return
	}
	switch {
	case m.log && c.logs >= maxLogs:
		c.left++
		return
	case len(c.queue) >= maxUnread:
		if c.overflow != nil {
			c.overflow()
		}
		return
	}
	if m.log {
		c.logs++
	}
	if m.key != nil {
		if c.waiting == nil {
			c.waiting = map[any]*outgoing{}
		}
		c.waiting[m.key] = m
	}
	c.queue = append(c.queue, m)
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
			left := c.left
			c.left = 0
			c.mu.Unlock()
			if left > 0 {
				c.log(protocol.MessageTypeWarning, fmt.Sprintf("%d messages were left out while the editor did not read", left))
			}
			return
		}
		m := c.queue[0]
		c.queue[0] = nil
		c.queue = c.queue[1:]
		if m.key != nil {
			delete(c.waiting, m.key)
		}
		if m.log {
			c.logs--
		}
		send := m.send // before another message takes its place
		c.mu.Unlock()
		c.run(send)
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
	c.enqueue(&outgoing{log: true, send: func() {
		_ = c.conn.Notify(c.ctx, protocol.MethodWindowLogMessage, &protocol.LogMessageParams{Type: kind, Message: text})
	}})
}

// show tells the person. Editors make links of [words](command:…), and a name
// from a program must not.
func (c *client) show(kind protocol.MessageType, text string) {
	text = strings.ReplaceAll(escape.Lines(text), "](", "] (")
	c.notify(protocol.MethodWindowShowMessage, &protocol.ShowMessageParams{Type: kind, Message: text})
}
