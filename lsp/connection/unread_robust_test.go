package connection

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"go.lsp.dev/protocol"
)

// Notifications that an editor does not read give way to newer ones, logs to
// nothing; what must arrive keeps its order.
func TestSuperseded(t *testing.T) {
	c := New(t.Context(), strings.NewReader(""), io.Discard)
	release, began := make(chan struct{}), make(chan struct{})
	post := func(f func()) { c.queue.post(&outgoing{send: f}) }
	supersede := func(key string, f func()) { c.queue.post(&outgoing{key: key, send: f}) }
	post(func() { close(began); <-release })
	<-began // what follows waits
	var ran []string
	for i := range 100_000 {
		supersede("a", func() { ran = append(ran, fmt.Sprint("a", i)) })
		supersede("b", func() { ran = append(ran, fmt.Sprint("b", i)) })
		c.Log(protocol.MessageTypeInfo, "text")
	}
	post(func() { ran = append(ran, "end") })
	c.queue.mu.Lock()
	waiting := len(c.queue.list)
	c.queue.mu.Unlock()
	if waiting > maxLogs+3 {
		t.Errorf("%d messages wait", waiting)
	}
	close(release)
	c.Flush(t.Context())
	if got := fmt.Sprint(ran); got != "[a99999 b99999 end]" {
		t.Errorf("sent %s", got)
	}
	supersede("a", func() { ran = append(ran, "again") })
	c.Flush(t.Context())
	if ran[len(ran)-1] != "again" {
		t.Error("what was sent is taken for what waits")
	}
}

// Beyond a bound the queue ends the connection and holds no more; so do
// responses.
func TestOverflow(t *testing.T) {
	ended := 0
	release := make(chan struct{})
	c := &Conn{ctx: t.Context(), queue: queue{overflow: func() { ended++ }}}
	c.post(func() { <-release })
	for range 3 * MaxUnread {
		c.post(func() {})
	}
	c.queue.mu.Lock()
	if len(c.queue.list) > MaxUnread || ended == 0 {
		t.Errorf("%d messages wait, ended %d times", len(c.queue.list), ended)
	}
	c.queue.mu.Unlock()
	close(release)
	c.Flush(t.Context())

	stopped, closed := false, 0
	s := &stream{ended: func() { stopped = true }, out: io.Discard, close: func() error { closed++; return nil }}
	for range MaxUnread {
		if err := s.wait(1); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.wait(1); !errors.Is(err, errUnread) || !stopped {
		t.Errorf("%v, ended %v", err, stopped)
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
