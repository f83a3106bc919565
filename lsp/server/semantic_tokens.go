package server

import (
	"context"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"

	"dmir/lsp/feature"
	"dmir/lsp/session"
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
	func(ctx context.Context, s *server, p session.Place, _ *protocol.SemanticTokensParams) (any, error) {
		now, err := allTokens(ctx, p)
		if err != nil {
			return nil, err
		}
		return s.wholeTokens(p, now), nil
	})

// semanticTokensDelta says what is different from the tokens that the editor
// has, or all where the server no longer knows those.
var semanticTokensDelta = onDocument(
	func(p *protocol.SemanticTokensDeltaParams) uri.URI { return p.TextDocument.URI },
	func(ctx context.Context, s *server, p session.Place, params *protocol.SemanticTokensDeltaParams) (any, error) {
		now, err := allTokens(ctx, p)
		if err != nil {
			return nil, err
		}
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
func (s *server) wholeTokens(p session.Place, t *protocol.SemanticTokens) *protocol.SemanticTokens {
	if s.Features.TokenDelta {
		id := s.tokens.keep(p.Key, t.Data)
		t.ResultID = &id
	}
	return t
}

var semanticTokensRange = onDocument(
	func(p *protocol.SemanticTokensRangeParams) uri.URI { return p.TextDocument.URI },
	func(_ context.Context, _ *server, p session.Place, params *protocol.SemanticTokensRangeParams) (any, error) {
		found := feature.Tokens(p.Program(), p.Span(params.Range))
		p.Release() // what follows takes the text alone
		return tokens(p, found), nil
	})

// perTokenBytes is how many bytes of text there are to a token, about.
const perTokenBytes = 6

// atOnce is how many lines are coloured between looks for whether the answer is
// still wanted: a change waits for as long.
const atOnce = 1000

// allTokens are those of the whole text, unless that changes meanwhile.
func allTokens(ctx context.Context, p session.Place) (*protocol.SemanticTokens, error) {
	all := make([]feature.Token, 0, p.Src.Len()/perTokenBytes)
	for line := 0; line < p.Src.Lines(); line += atOnce {
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case p.Superseded():
			return nil, session.ErrContentModified
		}
		part := source.Span{Start: p.Src.LineStart(line), End: p.Src.LineStart(line + atOnce)}
		for _, t := range feature.Tokens(p.Program(), part) {
			if t.Span.Start >= part.Start && (t.Span.Start < part.End || part.End == p.Src.Len()) {
				all = append(all, t)
			}
		}
	}
	p.Release() // what follows takes the text alone
	return tokens(p, all), nil
}

// tokens writes each token as five numbers: lines and columns counted from the
// one before, its length, its type, its modifiers.
func tokens(p session.Place, found []feature.Token) *protocol.SemanticTokens {
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
		out.Data = append(out.Data, uint32(to-line), width(p, source.Span{Start: last, End: t.Span.Start}), width(p, t.Span), uint32(t.Kind), modifiers)
		line, last = to, t.Span.Start
	}
	return out
}

// width is the number of columns of a stretch of one line.
func width(p session.Place, s source.Span) uint32 {
	if p.Encoding == source.UTF8 {
		return uint32(s.Len())
	}
	text := p.Src.Slice(s)
	n := uint32(0)
	for int(n) < len(text) && text[n] < utf8.RuneSelf {
		n++
	}
	for _, r := range text[n:] {
		n += uint32(max(1, utf16.RuneLen(r)))
	}
	return n
}
