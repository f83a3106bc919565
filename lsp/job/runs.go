package job

import (
	"context"
	"sync"

	"go.lsp.dev/protocol"

	"dmir/lsp/session"
)

// runs are the runs under way.
type runs struct {
	mu     sync.Mutex
	active map[*oneRun]bool
	all    sync.WaitGroup
	closed bool
}

type oneRun struct {
	token  protocol.ProgressToken
	cancel context.CancelFunc
}

type runKey struct{}

// start admits a run; done is nil if most are under way.
func (r *runs) start(ctx context.Context, token protocol.ProgressToken, most int) (_ context.Context, done func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.active) >= most || r.closed {
		return ctx, nil
	}
	if r.active == nil {
		r.active = map[*oneRun]bool{}
	}
	one := &oneRun{token: session.CloneToken(token)}
	ctx, one.cancel = context.WithCancel(context.WithValue(ctx, runKey{}, one))
	r.active[one] = true
	r.all.Add(1)
	return ctx, func() {
		one.cancel()
		r.mu.Lock()
		delete(r.active, one)
		r.mu.Unlock()
		r.all.Done()
	}
}

// name sets the token of the run of ctx, under which the editor may cancel it.
func (r *runs) name(ctx context.Context, token protocol.ProgressToken) {
	if one, ok := ctx.Value(runKey{}).(*oneRun); ok {
		r.mu.Lock()
		one.token = token
		r.mu.Unlock()
	}
}

// stop cancels all runs.
func (r *runs) stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for one := range r.active {
		one.cancel()
	}
}

// wait cancels all runs, admits no more, and returns when they are gone.
func (r *runs) wait() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.stop()
	r.all.Wait()
}

// cancel cancels the runs with a token.
func (r *runs) cancel(token protocol.ProgressToken) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for one := range r.active {
		if one.token != nil && one.token == token {
			one.cancel()
		}
	}
}
