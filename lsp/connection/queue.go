package connection

import (
	"context"
	"sync"
)

// queue sends messages in order from its own goroutine, so that posting one
// never waits for the editor to read. The number of messages that wait is bounded:
// a message supersedes one that waits under the same key, logs beyond maxLogs are
// dropped, and beyond MaxUnread the connection ends.
type queue struct {
	overflow func()    // ends the connection
	failed   func(any) // reports a panic while a message was made
	dropped  func(int) // reports how many logs were dropped

	mu      sync.Mutex
	list    []*outgoing
	waiting map[any]*outgoing // by key
	logs    int               // that wait
	left    int               // logs dropped since the queue was last empty
	running bool
	idle    []chan struct{} // closed when the queue is empty
}

// outgoing is a message to send.
type outgoing struct {
	send func()
	key  any // nil: no other supersedes it
	log  bool
}

// MaxUnread is how many messages, and how many requests that are being answered, an
// editor may have at a time.
const MaxUnread = 1 << 13

const (
	maxUnreadBytes = 64 << 20 // of responses that wait for an editor that does not read
	maxLogs        = 256
)

// post queues a message.
func (q *queue) post(m *outgoing) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if old := q.waiting[m.key]; old != nil && m.key != nil {
		old.send = m.send
		return
	}
	switch {
	case m.log && q.logs >= maxLogs:
		q.left++
		return
	case len(q.list) >= MaxUnread:
		q.overflow()
		return
	}
	if m.log {
		q.logs++
	}
	if m.key != nil {
		if q.waiting == nil {
			q.waiting = map[any]*outgoing{}
		}
		q.waiting[m.key] = m
	}
	q.list = append(q.list, m)
	if !q.running {
		q.running = true
		go q.drain()
	}
}

func (q *queue) drain() {
	for {
		q.mu.Lock()
		if len(q.list) == 0 {
			q.running, q.list = false, nil
			for _, ch := range q.idle {
				close(ch)
			}
			q.idle = nil
			left := q.left
			q.left = 0
			q.mu.Unlock()
			if left > 0 {
				q.dropped(left)
			}
			return
		}
		m := q.list[0]
		q.list[0] = nil
		q.list = q.list[1:]
		if m.key != nil {
			delete(q.waiting, m.key)
		}
		if m.log {
			q.logs--
		}
		send := m.send // before another message takes its place
		q.mu.Unlock()
		q.run(send)
	}
}

// run sends a message and recovers from a panic while it is made.
func (q *queue) run(f func()) {
	defer func() {
		if r := recover(); r != nil {
			q.failed(r)
		}
	}()
	f()
}

// flush waits until all that is queued has been sent, or one of the contexts ends.
func (q *queue) flush(ctx, connection context.Context) {
	q.mu.Lock()
	if !q.running {
		q.mu.Unlock()
		return
	}
	ch := make(chan struct{})
	q.idle = append(q.idle, ch)
	q.mu.Unlock()
	select {
	case <-ch:
	case <-ctx.Done():
	case <-connection.Done():
	}
}
