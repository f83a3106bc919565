package server

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
	"time"

	"go.lsp.dev/jsonrpc2"
	"go.lsp.dev/protocol"

	"dmir/lsp/connection"
	"dmir/lsp/diagnostics"
	"dmir/lsp/job"
	"dmir/lsp/page"
	"dmir/lsp/scan"
	"dmir/lsp/session"
	"dmir/lsp/traced"
	"dmir/lsp/workspace"
)

// Options adjust a server; the zero value serves.
type Options struct {
	Version string // of dmir, sent to the editor
	// Worker is the command line of the process that runs functions; by default
	// this executable with the argument "worker".
	Worker []string
	// RunTimeout ends a run that takes longer; 10 minutes by default.
	RunTimeout time.Duration
	// Pause is how long after an edit lint begins; 250 ms by default.
	Pause time.Duration
}

// ErrNoShutdown reports that the connection ended without the shutdown that the
// protocol asks for.
var ErrNoShutdown = errors.New("the editor left without a shutdown request")

// Serve serves one editor until it sends exit, closes in, or its process ends,
// or until ctx ends. It returns nil after an orderly shutdown and ErrNoShutdown
// otherwise. Runs that are under way are killed.
func Serve(ctx context.Context, in io.Reader, out io.Writer, opts Options) error {
	s := newServer(ctx, in, out, opts)
	s.Conn.Serve(s.methods)
	return s.wait()
}

// server is the state of one session.
type server struct {
	*session.Session
	opts    Options
	methods connection.Methods
	state   atomic.Int32

	jobs        *job.Jobs
	pages       *page.Pages
	diagnostics *diagnostics.Reporter
	settings    settings
	outlines    scan.Outlines
	saved       saved
	tokens      tokenResults
	python      *traced.Docs
	pythonOnly  bool // the editor has this server for Python files alone
	registered  atomic.Bool
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
	s := &server{opts: opts, Session: &session.Session{Conn: connection.New(ctx, in, out)}}
	s.jobs = job.New(s.Session, job.Options{Worker: opts.Worker, Timeout: opts.RunTimeout, Ran: s.refresh})
	s.pages = page.New(s.Session, s.jobs)
	s.diagnostics = diagnostics.New(s.Session, s.jobs, opts.Pause)
	s.Docs = workspace.New(s.Context(), workspace.Options{
		Pause: opts.Pause, Publish: s.diagnostics.Publish, PublishConfig: s.diagnostics.PublishConfig, Failed: s.diagnostics.Failed,
		Costed: s.refresh,
	})
	s.python = traced.New(s.Context(), traced.Options{Work: s.Docs, Changed: s.tracesChanged})
	s.methods = methodsOf(s)
	return s
}

// wait returns when the connection has ended, after the work under way was
// cancelled. It does not wait for a reader that its input does not release, as
// a terminal's or a pipe's may not.
func (s *server) wait() error {
	s.Conn.Wait()
	if s.state.Load() == shutDown {
		s.flushFor(time.Second)
	}
	s.Cancel()
	s.pages.End()
	left := make(chan struct{})
	go func() {
		_ = s.Close()
		s.Docs.Wait()
		close(left)
	}()
	s.jobs.Wait() // workers are dead before the server is
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
	ctx, cancel := context.WithTimeout(s.Context(), d)
	defer cancel()
	s.Flush(ctx)
}

// admit reports whether the life cycle allows a method now.
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
