package server

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"go.lsp.dev/jsonrpc2"
	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"

	"dmir/lsp/scan"
	"dmir/lsp/workspace"
)

// Options adjust a server; the zero value serves.
type Options struct {
	Version string // of dmir, told to the editor
	// Worker is the command line of the process that runs functions; by default
	// this executable with the argument "worker".
	Worker []string
	// RunTimeout ends a run that takes longer; 10 minutes by default.
	RunTimeout time.Duration
	// Pause is how long after an edit lint begins; 250 ms by default.
	Pause time.Duration
}

// ErrNoShutdown says that the connection ended without the shutdown that the
// protocol asks for.
var ErrNoShutdown = errors.New("the editor left without a shutdown request")

// Serve serves one editor until it says exit, closes in, or its process ends,
// or until ctx ends. It returns nil after an orderly shutdown and ErrNoShutdown
// otherwise. Runs that are under way are killed.
func Serve(ctx context.Context, in io.Reader, out io.Writer, opts Options) error {
	s := newServer(ctx, in, out, opts)
	s.conn.Go(s.ctx, s.dispatch.handle)
	return s.wait()
}

// server is the state of one connection.
type server struct {
	opts     Options
	ctx      context.Context // ends with the connection
	cancel   context.CancelFunc
	conn     jsonrpc2.Conn
	client   *client
	dispatch *dispatcher
	docs     *workspace.Workspace
	exit     chan struct{} // closed when the connection is to end
	once     sync.Once

	state    atomic.Int32
	trusted  atomic.Bool
	features features // of the editor; written by initialize, before any use

	settings    settings
	folders     folders
	runs        runs
	builds      builds
	diagnostics outbox
	published   published
	pullAgain   refresher
	closed      closedFiles
	outlines    scan.Outlines
	saved       saved
	live        live
	tokens      tokenResults
}

// The states of the protocol's life cycle.
const (
	fresh int32 = iota
	serving
	shutDown
)

func newServer(ctx context.Context, in io.Reader, out io.Writer, opts Options) *server {
	if opts.RunTimeout <= 0 {
		opts.RunTimeout = 10 * time.Minute
	}
	if opts.Pause <= 0 {
		opts.Pause = 250 * time.Millisecond
	}
	s := &server{opts: opts, exit: make(chan struct{})}
	s.ctx, s.cancel = context.WithCancel(ctx)
	s.trusted.Store(true)
	str := &stream{in: bufio.NewReader(in), out: out, ended: func(error) { s.end() }}
	str.close = func() error {
		s.end()
		if c, ok := in.(io.Closer); ok && in != io.Reader(os.Stdin) {
			return c.Close()
		}
		return nil
	}
	s.conn = jsonrpc2.NewConn(str, jsonrpc2.WithCodec(codec{}))
	s.client = &client{conn: s.conn, ctx: s.ctx, overflow: str.giveUp}
	str.refuse = func(bad *jsonrpc2.Error) {
		s.client.post(func() {
			_, _ = str.WriteFrame(s.ctx, jsonrpc2.AppendResponse(nil, jsonrpc2.ID{}, nil, bad))
		})
	}
	s.dispatch = newDispatcher(s)
	s.docs = workspace.New(s.ctx, workspace.Options{
		Pause:   opts.Pause,
		Publish: s.publish,
		PublishConfig: func(c workspace.ConfigFile) {
			s.push(&workspace.Snapshot{Address: address(uri.File(c.Path)), Src: c.Src, Encoding: s.docs.Encoding()}, protocol.Optional[int32]{}, c.Diags)
		},
		Failed: func(spelt string, problem any) {
			s.logPanic("analysis of "+spelt, problem)
			s.published.fail(address(uri.URI(spelt)).Key)
		},
	})
	return s
}

// end makes wait return; it may be called from anywhere, any number of times.
func (s *server) end() { s.once.Do(func() { close(s.exit) }) }

// wait returns when the connection has ended, after the work under way was
// cancelled. It does not wait for a reader that its input does not release, as
// a terminal's or a pipe's may not.
func (s *server) wait() error {
	select {
	case <-s.exit:
	case <-s.conn.Done():
	case <-s.ctx.Done():
	}
	if s.state.Load() == shutDown {
		s.flushFor(time.Second)
	}
	s.cancel()
	s.live.end()
	left := make(chan struct{})
	go func() {
		_ = s.conn.Close()
		s.docs.Wait()
		close(left)
	}()
	s.runs.wait() // workers are dead before the server is
	select {
	case <-left:
	case <-time.After(time.Second):
	}
	if s.state.Load() != shutDown {
		return ErrNoShutdown
	}
	return nil
}

func (s *server) flushFor(d time.Duration) {
	ctx, cancel := context.WithTimeout(s.ctx, d)
	defer cancel()
	s.client.flush(ctx)
}

// admit says whether the life cycle allows a method now.
func (s *server) admit(method string) error {
	switch state := s.state.Load(); {
	case method == protocol.MethodExit:
		return nil
	case state == fresh && method != protocol.MethodInitialize:
		return jsonrpc2.NewError(jsonrpc2.ServerNotInitialized, "the server is not initialized")
	case state == serving && method == protocol.MethodInitialize:
		return jsonrpc2.NewError(jsonrpc2.InvalidRequest, "the server is initialized already")
	case state == shutDown:
		return jsonrpc2.NewError(jsonrpc2.InvalidRequest, "the server has been shut down")
	}
	return nil
}
