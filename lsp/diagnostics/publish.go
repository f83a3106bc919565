package diagnostics

import (
	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"

	"dmir/lsp/workspace"
	"dmir/syntax/diag"
)

// Publish takes the diagnostics of an open document. An editor that pulls them
// is asked to pull again if it has others; any other is sent them.
func (rep *Reporter) Publish(snap *workspace.Snapshot, ds []diag.Diagnostic) {
	snap = textOf(snap)
	stale := rep.published.put(snap, ds)
	switch {
	case !rep.s.Features.Pulls:
		rep.push(snap, protocol.NewOptional(snap.Version), ds)
	case stale:
		rep.refreshDiagnostics()
	}
}

// textOf returns a snapshot with its text alone, which is enough to convert
// positions.
func textOf(s *workspace.Snapshot) *workspace.Snapshot {
	return &workspace.Snapshot{Address: s.Address, Version: s.Version, Src: s.Src, Encoding: s.Encoding}
}

// push sends the diagnostics of a text; one that is not open has no version.
func (rep *Reporter) push(snap *workspace.Snapshot, version protocol.Optional[int32], ds []diag.Diagnostic) {
	rep.send(snap.URI, func() any {
		return &protocol.PublishDiagnosticsParams{URI: uri.URI(snap.URI), Version: version, Diagnostics: rep.convert(snap, ds)}
	})
}

// pushAgain sends what is known of an open document by the time that it is sent.
func (rep *Reporter) pushAgain(key string) {
	f, ok := rep.published.newest(key)
	if !ok {
		return
	}
	rep.send(f.snap.URI, func() any {
		if newer, ok := rep.published.newest(key); ok {
			f = newer
		}
		return &protocol.PublishDiagnosticsParams{
			URI: uri.URI(f.snap.URI), Version: protocol.NewOptional(f.snap.Version), Diagnostics: rep.convert(f.snap, f.diags),
		}
	})
}

// convert returns the diagnostics of a text that are shown, as the protocol has them.
func (rep *Reporter) convert(snap *workspace.Snapshot, ds []diag.Diagnostic) []protocol.Diagnostic {
	return rep.s.Features.Diagnostics(snap, pick(snap.Src, ds, rep.published.near(snap.Key)))
}

// clear removes what was pushed for a document.
func (rep *Reporter) clear(spelt string) {
	rep.send(spelt, func() any {
		return &protocol.PublishDiagnosticsParams{URI: uri.URI(spelt), Diagnostics: []protocol.Diagnostic{}}
	})
}

// send queues diagnostics in the place of older ones of the document that wait.
func (rep *Reporter) send(spelt string, params func() any) {
	rep.s.Supersede(pushed(spelt), protocol.MethodTextDocumentPublishDiagnostics, params)
}

// pushed is the key of the diagnostics of a document in the queue.
type pushed string
