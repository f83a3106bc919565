package server

import (
	"strings"

	"go.lsp.dev/protocol"

	"dmir/lsp/feature"
	"dmir/lsp/session"
)

func hoverPlace(p *protocol.HoverParams) *protocol.TextDocumentPositionParams {
	return &p.TextDocumentPositionParams
}

var hover = inConfig(hoverPlace,
	func(s *server, p session.Place, off int) (any, error) {
		return s.hover(p, feature.HoverConfig(p.Src, off))
	},
	onPosition(hoverPlace, func(s *server, p session.Place, off int, _ *protocol.HoverParams) (any, error) {
		h := feature.HoverAt(p.Program(), p.Names(), off, s.Features.Pictures && !s.Features.PlainHover)
		if why := p.Kept().Doubt; h != nil && why != "" {
			h.Text += "\n\n" + feature.MarkStale + " " + why
		}
		return s.hover(p, h)
	}))

func (s *server) hover(p session.Place, h *feature.Hover) (any, error) {
	if h == nil {
		return nil, nil
	}
	r := p.Range(h.Span)
	return &protocol.Hover{Contents: s.markup(h.Text), Range: &r}, nil
}

// markup is Markdown, or the same text bare for an editor that shows none.
func (s *server) markup(text string) *protocol.MarkupContent {
	return markup(text, s.Features.PlainHover)
}

func markup(text string, plain bool) *protocol.MarkupContent {
	if plain {
		text = strings.NewReplacer("```mlir\n", "", "```text\n", "", "```\n", "", "`", "", "**", "", `\`, "").Replace(text)
		return &protocol.MarkupContent{Kind: protocol.MarkupKindPlainText, Value: text}
	}
	return &protocol.MarkupContent{Kind: protocol.MarkupKindMarkdown, Value: text}
}
