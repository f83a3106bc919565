package connection

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"go.lsp.dev/jsonrpc2"
	"go.lsp.dev/protocol"
)

// Work is the part of a call that runs beside the reading loop.
type Work func(context.Context) (any, error)

// Methods answer what an editor sends, by the names of the protocol's methods.
// They run on the reading loop, in the order of arrival.
type Methods struct {
	// Calls decode the parameters of a request and take the snapshot that it is
	// about; the Work that they return runs concurrently.
	Calls map[string]func(params jsonrpc2.RawMessage) (Work, error)
	// Notifications act on a notification. An error is logged.
	Notifications map[string]func(params jsonrpc2.RawMessage) error
	// Admit returns an error if a method is not allowed now.
	Admit func(method string) error
}

// dispatcher is the handler of the connection.
type dispatcher struct {
	c *Conn
	Methods
	flight inFlight
}

// handle implements [jsonrpc2.Handler]. It returns no error for a notification
// and lets no panic through: either would end the connection.
func (d *dispatcher) handle(ctx context.Context, req *jsonrpc2.Request) (any, error) {
	if req.IsCall() {
		return d.call(ctx, req)
	}
	d.notification(req)
	return nil, nil
}

func (d *dispatcher) call(ctx context.Context, req *jsonrpc2.Request) (result any, err error) {
	method, id := strings.Clone(req.Method()), req.ID()
	released := false
	release := func() {
		if !released {
			released = true
			jsonrpc2.Async(ctx)
		}
	}
	defer func() {
		if r := recover(); r != nil {
			d.c.Panicked(method, r)
			result, err = nil, jsonrpc2.Errorf(jsonrpc2.InternalError, "%s: internal error: %v", method, r)
		}
		release() // before a response is written: the editor may not be reading
	}()

	if err := d.Admit(method); err != nil {
		return nil, err
	}
	begin, known := d.Calls[method]
	if !known {
		return nil, fmt.Errorf("%q: %w", method, jsonrpc2.ErrMethodNotFound)
	}
	if d.flight.full() {
		return nil, jsonrpc2.Errorf(RequestFailed, "%d requests are being answered; wait for some of them", MaxUnread)
	}
	do, err := begin(req.Params())
	if err != nil {
		return nil, err
	}
	ctx, done := d.flight.start(ctx, id)
	defer done()
	release()
	result, err = do(ctx)
	if ctx.Err() != nil && (err == nil || errors.Is(err, context.Canceled)) {
		return nil, protocol.ErrRequestCancelled
	}
	return result, err
}

func (d *dispatcher) notification(req *jsonrpc2.Request) {
	method := strings.Clone(req.Method())
	defer func() {
		if r := recover(); r != nil {
			d.c.Panicked(method, r)
		}
	}()
	if method == protocol.MethodCancelRequest {
		d.cancelRequest(req.Params())
		return
	}
	f, known := d.Notifications[method]
	switch {
	case !known && strings.HasPrefix(method, "$/"):
		return // optional by the specification
	case !known:
		d.c.Log(protocol.MessageTypeInfo, fmt.Sprintf("notification %q is not known", method))
		return
	case d.Admit(method) != nil:
		return
	}
	if err := f(req.Params()); err != nil {
		d.c.Log(protocol.MessageTypeWarning, fmt.Sprintf("%s: %v", method, err))
	}
}

// cancelRequest decodes by hand: the protocol's type has room for 32 bits only.
func (d *dispatcher) cancelRequest(raw jsonrpc2.RawMessage) {
	var p struct {
		ID json.RawMessage `json:"id"`
	}
	if json.Unmarshal(raw, &p) != nil {
		return
	}
	var n int64
	var str string
	switch {
	case json.Unmarshal(p.ID, &n) == nil:
		d.flight.stop(jsonrpc2.NewNumberID(n))
	case json.Unmarshal(p.ID, &str) == nil:
		d.flight.stop(jsonrpc2.NewStringID(str))
	}
}

// inFlight holds the cancel functions of the calls that are being answered.
type inFlight struct {
	mu     sync.Mutex
	cancel map[jsonrpc2.ID]context.CancelFunc
}

func (f *inFlight) start(ctx context.Context, id jsonrpc2.ID) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	f.mu.Lock()
	f.cancel[id] = cancel
	f.mu.Unlock()
	return ctx, func() {
		f.mu.Lock()
		delete(f.cancel, id)
		f.mu.Unlock()
		cancel()
	}
}

// full reports whether there are as many as an editor has reason to ask at once,
// and more.
func (f *inFlight) full() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.cancel) >= MaxUnread
}

func (f *inFlight) stop(id jsonrpc2.ID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if cancel := f.cancel[id]; cancel != nil {
		cancel()
	}
}
