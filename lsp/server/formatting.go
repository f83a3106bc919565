package server

import (
	"context"

	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"

	"dmir/lsp/feature"
)

var formatting = onDocument(
	func(p *protocol.DocumentFormattingParams) uri.URI { return p.TextDocument.URI },
	func(_ context.Context, _ *server, p place, _ *protocol.DocumentFormattingParams) (any, error) {
		return p.edits(feature.Format(p.Program().Tree)), nil
	})

var rangeFormatting = onDocument(
	func(p *protocol.DocumentRangeFormattingParams) uri.URI { return p.TextDocument.URI },
	func(_ context.Context, _ *server, p place, params *protocol.DocumentRangeFormattingParams) (any, error) {
		return p.edits(feature.FormatRange(p.Program().Tree, p.bytes(params.Range))), nil
	})
