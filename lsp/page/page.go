// Package page shows programs beside their text: virtual documents in the editor,
// with the stages and the code of compiled functions, and panels in the editor or in
// a browser. What is shown follows the text.
package page

import (
	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"

	"dmir/lsp/job"
	"dmir/lsp/session"
)

// Pages are the views and panels of one session.
type Pages struct {
	s     *session.Session
	jobs  *job.Jobs
	shown followers

	versions loaded
	logs     logs
	gains    gains
}

// New returns the pages of a session; jobs compile what they show.
func New(s *session.Session, jobs *job.Jobs) *Pages { return &Pages{s: s, jobs: jobs} }

// Later runs f when key was not requested for a while.
func (ps *Pages) Later(key string, f func()) { ps.shown.later(key, f) }

// Changed brings what shows a document up to date, a moment after the document or
// the settings for it have changed.
func (ps *Pages) Changed(key string) {
	if ps.shown.shows(key) {
		ps.shown.later(key, func() { ps.followUp(key) })
	}
}

// AllChanged brings all views up to date.
func (ps *Pages) AllChanged() { ps.shown.everything(ps.Changed) }

// Closed closes the pages of a document that was closed.
func (ps *Pages) Closed(key string) {
	ps.shown.closed(key)
	ps.gains.forget(key)
}

// End closes all pages and frees the port.
func (ps *Pages) End() { ps.shown.end() }

// followUp brings what shows a document up to date.
func (ps *Pages) followUp(key string) {
	defer ps.recovered("following " + key)
	for _, view := range ps.shown.viewsOf(key) {
		_ = ps.s.Call(ps.s.Context(), protocol.MethodWorkspaceTextDocumentContentRefresh, &protocol.TextDocumentContentRefreshParams{URI: uri.URI(view)}, nil)
	}
	for _, p := range ps.shown.pagesOf(key) {
		ps.refreshPage(ps.s.Context(), p)
	}
}

// recovered logs a panic of work outside requests.
func (ps *Pages) recovered(what string) {
	if r := recover(); r != nil {
		ps.s.Panicked(what, r)
	}
}
