package server

import (
	"context"
	"strings"
	"sync"

	"go.lsp.dev/jsonrpc2"
	"go.lsp.dev/protocol"

	"dmir/lsp/workspace"
)

// diagnosticsIdentifier tells this server's diagnostics from others'.
const diagnosticsIdentifier = "dmir"

func diagnosticOptions() *protocol.DiagnosticOptions {
	identifier, yes := diagnosticsIdentifier, true
	return &protocol.DiagnosticOptions{
		WorkDoneProgressOptions: protocol.WorkDoneProgressOptions{WorkDoneProgress: &yes},
		Identifier:              &identifier, WorkspaceDiagnostics: true,
	}
}

// documentDiagnostic answers with what is known of the text that the editor
// has: errors at once, wasted movement when it has been looked for, which
// another pull brings, after a refresh. It holds nothing while it waits.
func documentDiagnostic(s *server, raw jsonrpc2.RawMessage) (work, error) {
	p, err := decode[protocol.DocumentDiagnosticParams](raw)
	if err != nil {
		return nil, err
	}
	where := address(p.TextDocument.URI)
	snap, had := s.docs.Snapshot(where.Key), ""
	if p.PreviousResultID != nil {
		had = strings.Clone(*p.PreviousResultID)
	}
	return func(ctx context.Context) (any, error) {
		if snap == nil {
			return s.closedReport(ctx, where, had)
		}
		found, err := s.published.of(ctx, snap, func() *workspace.Snapshot { return s.docs.Snapshot(where.Key) })
		if err != nil {
			return nil, err
		}
		items := s.wireAll(found.snap, found.diags)
		id, err := resultID(items)
		if err != nil {
			return nil, err
		}
		if s.published.answer(found) {
			s.refreshDiagnostics()
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

func (s *server) refreshDiagnostics() {
	r := &s.pullAgain
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.busy || !s.features.pulls {
		r.again = r.busy
		return
	}
	r.busy = true
	go func() {
		for {
			_ = s.client.call(s.ctx, protocol.MethodWorkspaceDiagnosticRefresh, nil, nil)
			r.mu.Lock()
			if !r.again || s.ctx.Err() != nil {
				r.busy = false
				r.mu.Unlock()
				return
			}
			r.again = false
			r.mu.Unlock()
		}
	}()
}
