package server

import (
	"context"

	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"

	"dmir/lsp/feature"
	"dmir/lsp/session"
)

var selectionRange = onDocument(
	func(p *protocol.SelectionRangeParams) uri.URI { return p.TextDocument.URI },
	func(ctx context.Context, _ *server, p session.Place, params *protocol.SelectionRangeParams) (any, error) {
		out := []protocol.SelectionRange{}
		for _, pos := range params.Positions {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			spans := feature.Selections(p.Program(), p.Offset(pos))
			var outer *protocol.SelectionRange
			for i := len(spans) - 1; i >= 0; i-- {
				outer = &protocol.SelectionRange{Range: p.Range(spans[i]), Parent: outer}
			}
			out = append(out, *outer)
		}
		return out, nil
	})
