package server

import (
	"slices"
	"strings"
	"sync"

	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"

	"dmir/lsp/workspace"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

func position(p protocol.Position) source.Pos {
	const most = 1<<31 - 1 // also on machines with 32-bit integers
	return source.Pos{Line: int(min(p.Line, most)), Col: int(min(p.Character, most))}
}

// place converts between bytes and the editor's positions for one snapshot.
type place struct{ *workspace.Snapshot }

func (p place) offset(pos protocol.Position) int { return p.Src.Offset(position(pos), p.Encoding) }

func (p place) at(off int) protocol.Position {
	q := p.Src.Encode(off, p.Encoding)
	return protocol.Position{Line: uint32(q.Line), Character: uint32(q.Col)}
}

func (p place) span(s source.Span) protocol.Range {
	return protocol.Range{Start: p.at(s.Start), End: p.at(s.End)}
}

func (p place) bytes(r protocol.Range) source.Span {
	return source.Span{Start: p.offset(r.Start), End: p.offset(r.End)}
}

func (p place) location(s source.Span) protocol.Location {
	return protocol.Location{URI: uri.URI(p.URI), Range: p.span(s)}
}

func (p place) locations(spans []source.Span) []protocol.Location {
	out := make([]protocol.Location, 0, len(spans))
	for _, s := range spans {
		out = append(out, p.location(s))
	}
	return out
}

func (p place) edits(es []diag.Edit) []protocol.TextEdit {
	out := make([]protocol.TextEdit, 0, len(es))
	for _, e := range es {
		out = append(out, protocol.TextEdit{Range: p.span(e.Span), NewText: e.Text})
	}
	return out
}

// workspaceEdit ties edits to the version they were made for, where the editor
// checks that.
func (s *server) workspaceEdit(p place, es []diag.Edit) *protocol.WorkspaceEdit {
	edits := p.edits(es)
	if !s.features.versionedEdits {
		return &protocol.WorkspaceEdit{Changes: map[uri.URI][]protocol.TextEdit{uri.URI(p.URI): edits}}
	}
	elements := make([]protocol.TextDocumentEditElement, len(edits))
	for i := range edits {
		elements[i] = &edits[i]
	}
	version := p.Version
	return &protocol.WorkspaceEdit{DocumentChanges: []protocol.DocumentChange{&protocol.TextDocumentEdit{
		TextDocument: protocol.OptionalVersionedTextDocumentIdentifier{
			TextDocumentIdentifier: protocol.TextDocumentIdentifier{URI: uri.URI(p.URI)},
			Version:                &version,
		},
		Edits: elements,
	}}}
}

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
	return out
}

// maxDiagnostics bounds what is sent for one file; nobody reads more.
const maxDiagnostics = 1000

// publish sends the diagnostics of a snapshot; the worst where there are too many.
func (s *server) publish(snap *workspace.Snapshot, ds []diag.Diagnostic) {
	s.diagnostics.send(s.client, snap.URI, func() *protocol.PublishDiagnosticsParams {
		if len(ds) > maxDiagnostics {
			ds = slices.Clone(ds)
			slices.SortStableFunc(ds, func(a, b diag.Diagnostic) int { return int(b.Severity) - int(a.Severity) })
			ds = ds[:maxDiagnostics]
		}
		out := make([]protocol.Diagnostic, 0, len(ds))
		for _, d := range ds {
			out = append(out, s.diagnostic(place{snap}, d))
		}
		return &protocol.PublishDiagnosticsParams{URI: uri.URI(snap.URI), Version: protocol.NewOptional(snap.Version), Diagnostics: out}
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
