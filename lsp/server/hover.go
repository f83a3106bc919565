package server

import (
	"strings"

	"go.lsp.dev/protocol"

	"dmir/lsp/feature"
	"dmir/lsp/session"
)

var hover = onPosition(
	func(p *protocol.HoverParams) *protocol.TextDocumentPositionParams {
		return &p.TextDocumentPositionParams
	},
	func(s *server, p session.Place, off int, _ *protocol.HoverParams) (any, error) {
		h := feature.HoverAt(p.Program(), p.Names(), off, s.Features.Pictures && !s.Features.PlainHover)
		if h == nil {
			return nil, nil
		}
		r := p.Range(h.Span)
		return &protocol.Hover{Contents: s.markup(h.Text), Range: &r}, nil
	})

// markup is Markdown, or the same text bare for an editor that shows none.
func (s *server) markup(text string) *protocol.MarkupContent {
	return markup(text, s.Features.PlainHover)
}

func markup(text string, plain bool) *protocol.MarkupContent {
	if plain {
		text = strings.NewReplacer("```mlir\n", "", "```text\n", "", "```\n", "", "`", "", "**", "", "| | |\n|:--|--:|\n", "", `\`, "").Replace(text)
		return &protocol.MarkupContent{Kind: protocol.MarkupKindPlainText, Value: text}
	}
	return &protocol.MarkupContent{Kind: protocol.MarkupKindMarkdown, Value: text}
}
