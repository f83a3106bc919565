// Package job does the work of a language server that takes long: it runs, profiles
// and compiles functions in worker processes, with progress, a time limit and
// cancellation, and bounds how much of it happens at a time.
package job

import (
	"context"
	"sync/atomic"
	"time"

	"go.lsp.dev/protocol"

	"dmir/lsp/session"
)

// Options adjust the jobs of a session.
type Options struct {
	Worker  []string      // command line of a worker process; this executable with "worker" if empty
	Timeout time.Duration // ends a run that takes longer
	Ran     func()        // called when a run has left measured times at a text
}

// Jobs are the jobs of one session.
type Jobs struct {
	s         *session.Session
	opts      Options
	untrusted atomic.Bool
	stated    atomic.Bool // the editor has said that the workspace is trusted
	runs      runs
	builds    builds
	plans     plans
}

// New returns the jobs of a session.
func New(s *session.Session, o Options) *Jobs { return &Jobs{s: s, opts: o} }

// Trust sets whether programs of the workspace may be compiled and run; what runs
// is stopped if they may not.
func (j *Jobs) Trust(trusted bool) {
	j.untrusted.Store(!trusted)
	j.stated.Store(trusted)
	if !trusted {
		j.Stop()
	}
}

// Trusted reports whether programs may be compiled and run.
func (j *Jobs) Trusted() bool { return !j.untrusted.Load() }

// Start admits a job that the editor may cancel by its token. done is nil if
// MaxJobs are under way.
func (j *Jobs) Start(ctx context.Context, token protocol.ProgressToken) (_ context.Context, done func()) {
	return j.runs.start(ctx, token, MaxJobs)
}

// Cancel cancels the jobs with a token.
func (j *Jobs) Cancel(token protocol.ProgressToken) { j.runs.cancel(token) }

// Stop cancels all jobs.
func (j *Jobs) Stop() { j.runs.stop() }

// Wait cancels all jobs, admits no more, and returns when their processes are gone.
func (j *Jobs) Wait() { j.runs.wait() }
