package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"strings"
	"sync"

	"go.lsp.dev/jsonrpc2"
	"go.lsp.dev/protocol"
)

// codec is the wire format of parameters and results: the protocol package's
// own, which knows the unions of the LSP.
type codec struct{}

func (codec) Marshal(v any) ([]byte, error) {
	if raw, ok := v.(jsonrpc2.RawMessage); ok {
		return raw, nil
	}
	return protocol.Marshal(v)
}

func (codec) Unmarshal(data []byte, v any) error {
	if raw, ok := v.(*jsonrpc2.RawMessage); ok {
		*raw = append((*raw)[:0], data...)
		return nil
	}
	return protocol.Unmarshal(data, v)
}

// work is the part of a call that runs beside the reading loop.
type work func(context.Context) (any, error)

// A callMethod runs on the reading loop: it decodes the parameters and takes
// the snapshot that the call is about, and nothing else. What it returns runs
// concurrently.
type callMethod func(s *server, params jsonrpc2.RawMessage) (work, error)

// A notifyMethod runs on the reading loop, in the order of arrival. Its error
// is logged; it never ends the connection.
type notifyMethod func(s *server, params jsonrpc2.RawMessage) error

// decode reads parameters; what it returns may alias a copy of the message, so
// strings that are kept must be cloned.
func decode[P any](raw jsonrpc2.RawMessage) (*P, error) {
	p := new(P)
	if len(raw) == 0 {
		return p, nil
	}
	if err := protocol.Unmarshal(raw, p); err != nil {
		return nil, jsonrpc2.Errorf(jsonrpc2.InvalidParams, "malformed parameters: %v", err)
	}
	return p, nil
}

// onCall makes a callMethod of a function that needs no document.
func onCall[P any](f func(context.Context, *server, *P) (any, error)) callMethod {
	return func(s *server, raw jsonrpc2.RawMessage) (work, error) {
		p, err := decode[P](raw)
		if err != nil {
			return nil, err
		}
		return func(ctx context.Context) (any, error) { return f(ctx, s, p) }, nil
	}
}

// onNotify makes a notifyMethod of a function.
func onNotify[P any](f func(*server, *P) error) notifyMethod {
	return func(s *server, raw jsonrpc2.RawMessage) error {
		p, err := decode[P](raw)
		if err != nil {
			return err
		}
		return f(s, p)
	}
}

// dispatcher routes messages. It is the handler of the connection.
type dispatcher struct {
	s      *server
	calls  map[string]callMethod
	notes  map[string]notifyMethod
	flight inFlight
}

func newDispatcher(s *server) *dispatcher {
	return &dispatcher{s: s, calls: maps.Clone(calls), notes: maps.Clone(notifications), flight: inFlight{cancel: map[jsonrpc2.ID]context.CancelFunc{}}}
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
			d.s.logPanic(method, r)
			result, err = nil, jsonrpc2.Errorf(jsonrpc2.InternalError, "%s: internal error: %v", method, r)
		}
		release() // before a response is written: the editor may not be reading
	}()

	if err := d.s.admit(method); err != nil {
		return nil, err
	}
	begin, known := d.calls[method]
	if !known {
		return nil, fmt.Errorf("%q: %w", method, jsonrpc2.ErrMethodNotFound)
	}
	if d.flight.full() {
		return nil, jsonrpc2.Errorf(requestFailed, "%d requests are being answered; wait for some of them", maxUnread)
	}
	do, err := begin(d.s, req.Params())
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
			d.s.logPanic(method, r)
		}
	}()
	if method == protocol.MethodCancelRequest {
		d.cancelRequest(req.Params())
		return
	}
	f, known := d.notes[method]
	switch {
	case !known && strings.HasPrefix(method, "$/"):
		return // optional by the specification
	case !known:
		d.s.client.log(protocol.MessageTypeInfo, fmt.Sprintf("notification %q is not known", method))
		return
	case d.s.admit(method) != nil:
		return
	}
	if err := f(d.s, req.Params()); err != nil {
		d.s.client.log(protocol.MessageTypeWarning, fmt.Sprintf("%s: %v", method, err))
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

func (s *server) logPanic(method string, r any) {
	s.client.log(protocol.MessageTypeError, fmt.Sprintf("%s: internal error: %v\n%s", method, r, debug.Stack()))
}

// inFlight knows how to cancel the calls that are being answered.
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
	return len(f.cancel) >= maxUnread
}

func (f *inFlight) stop(id jsonrpc2.ID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if cancel := f.cancel[id]; cancel != nil {
		cancel()
	}
}

// requestFailed is the LSP's code for a well-formed request that cannot be met.
const requestFailed = jsonrpc2.Code(protocol.LSPErrorCodesRequestFailed)
