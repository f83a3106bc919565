package server

import (
	"context"
	"strings"

	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"

	"dmir/lsp/feature"
	"dmir/lsp/session"
)

// onTypeFormatting moves white space after a line end, a closing brace, or the
// colon of a label.
var onTypeFormatting = onDocument(
	func(p *protocol.DocumentOnTypeFormattingParams) uri.URI { return p.TextDocument.URI },
	func(_ context.Context, _ *server, p session.Place, params *protocol.DocumentOnTypeFormattingParams) (any, error) {
		return p.Edits(feature.FormatTyped(p.Program().Tree, p.Offset(params.Position), params.Ch)), nil
	})

func onTypeOptions() protocol.DocumentOnTypeFormattingOptions {
	return protocol.DocumentOnTypeFormattingOptions{FirstTriggerCharacter: "\n", MoreTriggerCharacter: strings.Split(feature.FormatTriggers, "")}
}
