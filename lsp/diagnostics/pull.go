package diagnostics

import (
	"context"
	"strings"
	"sync"

	"go.lsp.dev/jsonrpc2"
	"go.lsp.dev/protocol"

	"dmir/lsp/connection"
	"dmir/lsp/session"
	"dmir/lsp/traced"
	"dmir/lsp/workspace"
)

// identifier identifies this server's diagnostics.
const identifier = "dmir"

// Options are the capabilities for diagnostics that editors pull.
func Options() *protocol.DiagnosticOptions {
	name, yes := identifier, true
	return &protocol.DiagnosticOptions{
		WorkDoneProgressOptions: protocol.WorkDoneProgressOptions{WorkDoneProgress: &yes},
		Identifier:              &name, WorkspaceDiagnostics: true,
	}
}

// Document answers textDocument/diagnostic with what is known of the editor's text:
// errors at once, findings of lint with the next pull. It holds no lock
// while it waits.
func (rep *Reporter) Document(raw jsonrpc2.RawMessage) (connection.Work, error) {
	p, err := connection.Decode[protocol.DocumentDiagnosticParams](raw)
	if err != nil {
		return nil, err
	}
	where := session.AddressOf(p.TextDocument.URI)
	if traced.Is(where.Path) { // is no program; editors ask all servers of a file where one has diagnostics to pull
		return func(context.Context) (any, error) { return documentReport([]protocol.Diagnostic{}, "python", ""), nil }, nil
	}
	snap, had := rep.s.Docs.Snapshot(where.Key), ""
	if p.PreviousResultID != nil {
		had = strings.Clone(*p.PreviousResultID)
	}
	return func(ctx context.Context) (any, error) {
		if snap == nil {
			return rep.closedReport(ctx, where, had)
		}
		found, err := rep.published.of(ctx, snap, func() *workspace.Snapshot { return rep.s.Docs.Snapshot(where.Key) })
		if err != nil {
			return nil, err
		}
		items := rep.convert(found.snap, found.diags)
		id, err := resultID(items)
		if err != nil {
			return nil, err
		}
		if rep.published.answer(found) {
			rep.refreshDiagnostics()
		}
		return documentReport(items, id, had), nil
	}, nil
}

func documentReport(items []protocol.Diagnostic, id, had string) protocol.DocumentDiagnosticReport {
	if id == had {
		return &protocol.RelatedUnchangedDocumentDiagnosticReport{UnchangedDocumentDiagnosticReport: unchanged(id)}
	}
	return &protocol.RelatedFullDocumentDiagnosticReport{FullDocumentDiagnosticReport: full(items, id)}
}

func full(items []protocol.Diagnostic, id string) protocol.FullDocumentDiagnosticReport {
	return protocol.FullDocumentDiagnosticReport{Kind: string(protocol.DocumentDiagnosticReportKindFull), ResultID: &id, Items: items}
}

func unchanged(id string) protocol.UnchangedDocumentDiagnosticReport {
	return protocol.UnchangedDocumentDiagnosticReport{Kind: string(protocol.DocumentDiagnosticReportKindUnchanged), ResultID: id}
}

// refresher asks an editor to pull again, once for all that happens before it
// has answered.
type refresher struct {
	mu          sync.Mutex
	busy, again bool
}

func (rep *Reporter) refreshDiagnostics() {
	r := &rep.pullAgain
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.busy || !rep.s.Features.Pulls {
		r.again = r.busy
		return
	}
	r.busy = true
	go func() {
		for {
			_ = rep.s.Call(rep.s.Context(), protocol.MethodWorkspaceDiagnosticRefresh, nil, nil)
			r.mu.Lock()
			if !r.again || rep.s.Context().Err() != nil {
				r.busy = false
				r.mu.Unlock()
				return
			}
			r.again = false
			r.mu.Unlock()
		}
	}()
}
