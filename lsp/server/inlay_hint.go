package server

import (
	"context"

	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"

	"dmir/lsp/feature"
	"dmir/lsp/session"
)

var inlayHint = onDocument(
	func(p *protocol.InlayHintParams) uri.URI { return p.TextDocument.URI },
	func(_ context.Context, s *server, p session.Place, params *protocol.InlayHintParams) (any, error) {
		s.diagnostics.Look(p.Snapshot, params.Range)
		out := []protocol.InlayHint{}
		if !p.Settings.Hints {
			return out, nil
		}
		yes := true
		for _, h := range feature.Hints(p.Program(), p.Measured, p.Kept(), p.Span(params.Range)) {
			label := h.Text()
			if label == "" {
				continue
			}
			out = append(out, protocol.InlayHint{
				Position:    p.At(h.Offset),
				Label:       protocol.String(label),
				Tooltip:     s.markup(h.Tooltip),
				PaddingLeft: &yes,
			})
		}
		return out, nil
	})
