package server

import (
	"go.lsp.dev/protocol"

	"dmir/lsp/feature"
	"dmir/lsp/session"
)

// namePattern is what the name of a value may become while its places are
// edited together.
const namePattern = `%[-a-zA-Z0-9$._]*`

var linkedEditingRange = onPosition(
	func(p *protocol.LinkedEditingRangeParams) *protocol.TextDocumentPositionParams {
		return &p.TextDocumentPositionParams
	},
	func(_ *server, p session.Place, off int, _ *protocol.LinkedEditingRangeParams) (any, error) {
		spans := feature.EditedTogether(p.Names(), off)
		if len(spans) == 0 {
			return nil, nil
		}
		pattern := namePattern
		return &protocol.LinkedEditingRanges{Ranges: ranges(p, spans), WordPattern: &pattern}, nil
	})
