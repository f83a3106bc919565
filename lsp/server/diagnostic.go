package server

import (
	"encoding/json"
	"strings"
	"sync"

	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"

	"dmir/lsp/workspace"
	"dmir/syntax/diag"
)

var severities = map[diag.Severity]protocol.DiagnosticSeverity{
	diag.Hint:    protocol.DiagnosticSeverityHint,
	diag.Info:    protocol.DiagnosticSeverityInformation,
	diag.Warning: protocol.DiagnosticSeverityWarning,
	diag.Error:   protocol.DiagnosticSeverityError,
}

// diagnostic says in the editor what the command line says in the terminal:
// the sentence, what it costs, what to do.
func (s *server) diagnostic(p place, d diag.Diagnostic) protocol.Diagnostic {
	lines := []string{d.Message}
	lines = append(lines, d.Notes...)
	if d.Help != "" {
		lines = append(lines, "help: "+d.Help)
	}
	out := protocol.Diagnostic{
		Range:    p.span(d.Span),
		Severity: severities[d.Severity],
		Source:   protocol.NewOptional("dmir"),
		Message:  protocol.String(strings.Join(lines, "\n")),
	}
	if d.Code != "" {
		out.Code = protocol.String(d.Code)
		if s.features.codeLinks && s.features.virtualDocuments {
			out.CodeDescription.Href = uri.URI(viewScheme + ":/" + ruleView + "/" + d.Code + ".md")
		}
	}
	if s.features.linkDiagnostics {
		for _, r := range d.Related {
			out.RelatedInformation = append(out.RelatedInformation, protocol.DiagnosticRelatedInformation{Location: p.location(r.Span), Message: r.Message})
		}
	}
	if s.features.tags && len(d.Tags) > 0 {
		var tags []protocol.DiagnosticTag
		for _, t := range d.Tags {
			tags = append(tags, protocol.DiagnosticTag(t))
		}
		out.Tags = protocol.NewDiagnosticTags(tags...)
	}
	if s.features.diagnosticData && len(d.Fixes) > 0 {
		out.Data = fixData(d.Fixes)
	}
	return out
}

// fixData is what the fixes of a diagnostic promise, for editors that show it
// beside the diagnostic or choose by it.
func fixData(fixes []diag.Fix) protocol.LSPAny {
	type fix struct {
		Title      string  `json:"title"`
		Safe       bool    `json:"safe"`
		SavesBytes int64   `json:"saves_bytes,omitzero"`
		SavesNs    float64 `json:"saves_ns,omitzero"`
	}
	data := struct {
		Fixes []fix `json:"fixes"`
	}{}
	for _, f := range fixes {
		data.Fixes = append(data.Fixes, fix{f.Title, f.Safe, f.SavesBytes, f.SavesNs})
	}
	raw, err := json.Marshal(data)
	if err != nil { // a saving that is no number
		return nil
	}
	return raw
}

// wireAll are the diagnostics of a snapshot as they are sent.
func (s *server) wireAll(snap *workspace.Snapshot, ds []diag.Diagnostic) []protocol.Diagnostic {
	out := make([]protocol.Diagnostic, 0, len(ds))
	for _, d := range ds {
		out = append(out, s.diagnostic(bare(snap), d))
	}
	return out
}

// publish hears the diagnostics of an open document. An editor that pulls them
// is told that there are others, where it could not know; any other is sent them.
func (s *server) publish(snap *workspace.Snapshot, ds []diag.Diagnostic) {
	snap = textOf(snap)
	stale := s.published.put(snap, ds)
	switch {
	case !s.features.pulls:
		s.push(snap, protocol.NewOptional(snap.Version), ds)
	case stale:
		s.refreshDiagnostics()
	}
}

// textOf is a snapshot with its text alone, which is all that placing a
// diagnostic takes.
func textOf(s *workspace.Snapshot) *workspace.Snapshot {
	return &workspace.Snapshot{Address: s.Address, Version: s.Version, Src: s.Src, Encoding: s.Encoding}
}

// push sends the diagnostics of a text; one that is not open has no version.
func (s *server) push(snap *workspace.Snapshot, version protocol.Optional[int32], ds []diag.Diagnostic) {
	s.diagnostics.send(s.client, snap.URI, func() *protocol.PublishDiagnosticsParams {
		return &protocol.PublishDiagnosticsParams{URI: uri.URI(snap.URI), Version: version, Diagnostics: s.wireAll(snap, ds)}
	})
}

// clear takes back what was pushed for a document.
func (s *server) clear(spelt string) {
	s.diagnostics.send(s.client, spelt, func() *protocol.PublishDiagnosticsParams {
		return &protocol.PublishDiagnosticsParams{URI: uri.URI(spelt), Diagnostics: []protocol.Diagnostic{}}
	})
}

// outbox holds the diagnostics that wait to be sent: of each document only the
// newest, so that an editor that does not read makes no versions pile up.
type outbox struct {
	mu     sync.Mutex
	newest map[string]func() *protocol.PublishDiagnosticsParams // by the document's address
}

func (o *outbox) send(c *client, uri string, params func() *protocol.PublishDiagnosticsParams) {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, waits := o.newest[uri]
	if o.newest == nil {
		o.newest = map[string]func() *protocol.PublishDiagnosticsParams{}
	}
	o.newest[uri] = params
	if waits {
		return
	}
	c.post(func() {
		o.mu.Lock()
		params := o.newest[uri]
		delete(o.newest, uri)
		o.mu.Unlock()
		_ = c.conn.Notify(c.ctx, protocol.MethodTextDocumentPublishDiagnostics, params())
	})
}
