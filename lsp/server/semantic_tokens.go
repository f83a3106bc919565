package server

import (
	"context"
	"runtime"
	"strings"
	"sync/atomic"
	"unicode/utf16"
	"unicode/utf8"

	"go.lsp.dev/jsonrpc2"
	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"

	"dmir/base/parallel"
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
	feature.AxisToken:      "enumMember",
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

// semanticTokensDelta returns the difference from the tokens that the editor has,
// or all tokens if the server no longer keeps those.
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
		edits := tokenEdits(before, now)
		id := strings.Clone(params.PreviousResultID)
		if len(edits) > 0 {
			id = s.tokens.keep(p.Key, now)
		}
		return &protocol.SemanticTokensDelta{ResultID: &id, Edits: edits}, nil
	})

// wholeTokens is the response with all tokens, with a result ID for editors that
// request deltas.
func (s *server) wholeTokens(p session.Place, now packed) jsonrpc2.RawMessage {
	id := ""
	if s.Features.TokenDelta {
		id = s.tokens.keep(p.Key, now)
	}
	return now.message(id)
}

var semanticTokensRange = onDocument(
	func(p *protocol.SemanticTokensRangeParams) uri.URI { return p.TextDocument.URI },
	func(_ context.Context, _ *server, p session.Place, params *protocol.SemanticTokensRangeParams) (any, error) {
		found := tokensIn(p, p.Span(params.Range))
		p.Release() // what follows takes the tokens alone
		return found.message(""), nil
	})

// atOnce is how many lines are coloured between checks for cancellation: an
// edit waits for as long.
const atOnce = 1000

// allTokens are those of the whole text, unless that changes meanwhile. They are
// found on all cores, a stretch of lines at a time.
func allTokens(ctx context.Context, p session.Place) (packed, error) {
	parts := make([]packed, (p.Src.Lines()+atOnce-1)/atOnce)
	var superseded atomic.Bool
	parallel.Each(runtime.GOMAXPROCS(0), len(parts), func(i int) {
		if ctx.Err() != nil || superseded.Load() {
			return
		}
		if p.Superseded() {
			superseded.Store(true)
			return
		}
		in := source.Span{Start: p.Src.LineStart(i * atOnce), End: p.Src.Len()}
		if i+1 < len(parts) {
			in.End = p.Src.LineStart((i+1)*atOnce) - 1
		}
		parts[i] = tokensIn(p, in)
	})
	p.Release() // what follows takes the tokens alone
	if err := ctx.Err(); err != nil {
		return packed{}, err
	}
	if superseded.Load() {
		return packed{}, session.ErrContentModified
	}
	return joined(parts), nil
}

// tokensIn are those of the lines that in touches.
func tokensIn(p session.Place, in source.Span) packed {
	var out packed
	line := p.Src.Pos(in.Start).Line
	base, next := p.Src.LineStart(line), p.Src.LineStart(line+1)
	text := p.Src.Slice(source.Span{Start: base, End: p.Src.LineStart(p.Src.Pos(in.End).Line + 1)})
	last := base // where the token before begins, or the line
	for t := range feature.Tokens(p.Program(), in) {
		for t.Span.Start >= next {
			line++
			last, next = next, p.Src.LineStart(line+1)
		}
		var modifiers uint32
		if t.Def {
			modifiers = 1
		}
		out.add(line, width(p, text[last-base:t.Span.Start-base]), width(p, text[t.Span.Start-base:t.Span.End-base]), uint32(t.Kind), modifiers)
		last = t.Span.Start
	}
	return out
}

// width is the number of columns of a stretch of one line.
func width(p session.Place, text string) uint32 {
	n := len(text)
	if p.Encoding == source.UTF8 {
		return uint32(n)
	}
	for i := 0; i < len(text); i++ {
		if text[i] >= utf8.RuneSelf {
			for _, r := range text[i:] {
				n += max(1, utf16.RuneLen(r)) - max(1, utf8.RuneLen(r))
			}
			break
		}
	}
	return uint32(n)
}
