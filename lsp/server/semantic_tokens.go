package server

import (
	"context"
	"strings"
	"unicode/utf16"

	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"

	"dmir/lsp/feature"
	"dmir/syntax/source"
)

// tokenTypes are the names of the kinds of tokens, by [feature.TokenKind].
var tokenTypes = []string{
	feature.NamespaceToken: "namespace",
	feature.FunctionToken:  "function",
	feature.VariableToken:  "variable",
	feature.ParameterToken: "parameter",
	feature.TypeToken:      "type",
	feature.PropertyToken:  "property",
	feature.KeywordToken:   "keyword",
	feature.StringToken:    "string",
	feature.NumberToken:    "number",
	feature.CommentToken:   "comment",
	feature.MacroToken:     "macro",
	feature.LabelToken:     "label",
}

func tokenLegend() protocol.SemanticTokensLegend {
	return protocol.SemanticTokensLegend{TokenTypes: tokenTypes, TokenModifiers: []string{"definition"}}
}

var semanticTokens = onDocument(
	func(p *protocol.SemanticTokensParams) uri.URI { return p.TextDocument.URI },
	func(_ context.Context, s *server, p place, _ *protocol.SemanticTokensParams) (any, error) {
		return s.wholeTokens(p, p.tokens(source.Span{End: p.Src.Len()})), nil
	})

// semanticTokensDelta says what is different from the tokens that the editor
// has, or all where the server no longer knows those.
var semanticTokensDelta = onDocument(
	func(p *protocol.SemanticTokensDeltaParams) uri.URI { return p.TextDocument.URI },
	func(_ context.Context, s *server, p place, params *protocol.SemanticTokensDeltaParams) (any, error) {
		now := p.tokens(source.Span{End: p.Src.Len()})
		before, ok := s.tokens.find(p.Key, params.PreviousResultID)
		if !ok {
			return s.wholeTokens(p, now), nil
		}
		edits := tokenEdits(before, now.Data)
		id := strings.Clone(params.PreviousResultID)
		if len(edits) > 0 {
			id = s.tokens.keep(p.Key, now.Data)
		}
		return &protocol.SemanticTokensDelta{ResultID: &id, Edits: edits}, nil
	})

// wholeTokens gives tokens a name, for editors that ask for differences.
func (s *server) wholeTokens(p place, t *protocol.SemanticTokens) *protocol.SemanticTokens {
	if s.features.tokenDelta {
		id := s.tokens.keep(p.Key, t.Data)
		t.ResultID = &id
	}
	return t
}

var semanticTokensRange = onDocument(
	func(p *protocol.SemanticTokensRangeParams) uri.URI { return p.TextDocument.URI },
	func(_ context.Context, _ *server, p place, params *protocol.SemanticTokensRangeParams) (any, error) {
		return p.tokens(p.bytes(params.Range)), nil
	})

// tokens writes each token as five numbers: lines and columns counted from the
// one before, its length, its type, its modifiers.
func (p place) tokens(span source.Span) *protocol.SemanticTokens {
	found := feature.Tokens(p.Program(), span)
	p.letGo() // what follows takes the text alone
	out := &protocol.SemanticTokens{Data: make([]uint32, 0, 5*len(found))}
	line, last := 0, 0 // of the token before: its line, its offset
	for _, t := range found {
		to := p.Src.Pos(t.Span.Start).Line
		if to != line {
			last = p.Src.LineStart(to)
		}
		var modifiers uint32
		if t.Def {
			modifiers = 1
		}
		out.Data = append(out.Data, uint32(to-line), p.width(source.Span{Start: last, End: t.Span.Start}), p.width(t.Span), uint32(t.Kind), modifiers)
		line, last = to, t.Span.Start
	}
	return out
}

// width is the number of columns of a stretch of one line.
func (p place) width(s source.Span) uint32 {
	if p.Encoding == source.UTF8 {
		return uint32(s.Len())
	}
	n := uint32(0)
	for _, r := range p.Src.Slice(s) {
		n += uint32(max(1, utf16.RuneLen(r)))
	}
	return n
}
