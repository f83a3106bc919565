package server

import (
	"context"
	"encoding/json"

	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"

	"dmir/lsp/feature"
)

var codeLens = onDocument(
	func(p *protocol.CodeLensParams) uri.URI { return p.TextDocument.URI },
	func(_ context.Context, s *server, p place, _ *protocol.CodeLensParams) (any, error) {
		out := []protocol.CodeLens{}
		for _, l := range feature.Lenses(p.Program()) {
			c := protocol.Command{Title: l.Title, Command: l.Command}
			if l.Command != "" {
				arg, err := json.Marshal(map[string]string{"uri": p.URI, "func": l.Func})
				if err != nil {
					return nil, err
				}
				c.Arguments = []protocol.LSPAny{arg}
			}
			out = append(out, protocol.CodeLens{Range: p.span(l.Span), Command: c})
		}
		return out, nil
	})
