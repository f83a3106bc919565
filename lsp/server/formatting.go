package server

import (
	"context"

	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"

	"dmir/lsp/feature"
	"dmir/lsp/session"
)

var formatting = onDocument(
	func(p *protocol.DocumentFormattingParams) uri.URI { return p.TextDocument.URI },
	func(_ context.Context, _ *server, p session.Place, _ *protocol.DocumentFormattingParams) (any, error) {
		return p.Edits(feature.Format(p.Program().Tree)), nil
	})

var rangeFormatting = onDocument(
	func(p *protocol.DocumentRangeFormattingParams) uri.URI { return p.TextDocument.URI },
	func(_ context.Context, _ *server, p session.Place, params *protocol.DocumentRangeFormattingParams) (any, error) {
		return p.Edits(feature.FormatRange(p.Program().Tree, p.Span(params.Range))), nil
	})
