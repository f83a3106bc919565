// Package diagnostics brings diagnostics to an editor: of open documents and of the
// programs below the workspace's folders, sent to editors that wait for them and
// returned to those that pull.
package diagnostics

import (
	"sync/atomic"
	"time"

	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"

	"dmir/lsp/job"
	"dmir/lsp/session"
	"dmir/lsp/workspace"
)

// Reporter brings the diagnostics of one session to its editor.
type Reporter struct {
	s         *session.Session
	jobs      *job.Jobs
	pause     time.Duration
	published published
	pullAgain refresher
	closed    closedFiles
	asked     atomic.Bool // the user asked for the findings of files that are not open
}

// New returns the reporter of a session. pause is how long a pull of the workspace
// waits for further changes after one.
func New(s *session.Session, jobs *job.Jobs, pause time.Duration) *Reporter {
	return &Reporter{s: s, jobs: jobs, pause: pause}
}

// PublishConfig sends the diagnostics of a dmir.toml.
func (rep *Reporter) PublishConfig(c workspace.ConfigFile) {
	rep.push(&workspace.Snapshot{Address: session.AddressOf(uri.File(c.Path)), Src: c.Src, Encoding: rep.s.Docs.Encoding()}, protocol.Optional[int32]{}, c.Diags)
}

// Failed logs that the analysis of a document panicked; pulls are answered with an
// error.
func (rep *Reporter) Failed(spelt string, problem any) {
	rep.s.Panicked("analysis of "+spelt, problem)
	rep.published.fail(session.AddressOf(uri.URI(spelt)).Key)
}

// Opened drops what was pushed of a file, which is a document now.
func (rep *Reporter) Opened(spelt string) { rep.closed.took(spelt, false) }

// Closed drops a closed document's diagnostics.
func (rep *Reporter) Closed(key, spelt string) {
	rep.published.forget(key)
	if !rep.s.Features.Pulls {
		rep.clear(spelt)
	}
}

// ConfigChanged notes that a dmir.toml was opened, edited or closed.
func (rep *Reporter) ConfigChanged() { rep.published.configChanged() }
