package server

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"go.lsp.dev/jsonrpc2"
	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"

	"dmir/lsp/connection"
	"dmir/lsp/feature"
	"dmir/lsp/session"
	"dmir/lsp/workspace"
	"dmir/syntax/source"
)

// methodHeat asks how hot lines are, for editors that colour them.
const methodHeat = "dmir/heat"

// rangeParams are of methodHeat and methodHints. By is the setting dmir.heat where it
// is "".
type rangeParams struct {
	TextDocument protocol.TextDocumentIdentifier `json:"textDocument"`
	By           string                          `json:"by"`
	Range        *protocol.Range                 `json:"range"`  // the whole file where it is absent
	Ranges       []protocol.Range                `json:"ranges"` // several parts, instead of Range
}

// parts are the parts of a document that a request is about, in the order of the text
// and apart.
func (params rangeParams) parts(p session.Place) []source.Span {
	if len(params.Ranges) == 0 {
		return []source.Span{{End: p.Src.Len()}}
	}
	var all, out []source.Span
	for _, r := range params.Ranges {
		all = append(all, p.Span(r))
	}
	slices.SortFunc(all, func(a, b source.Span) int { return cmp.Compare(a.Start, b.Start) })
	for _, s := range all {
		// What is on one line is one part: answers are by line.
		if n := len(out) - 1; n >= 0 && p.Src.Pos(s.Start).Line <= p.Src.Pos(out[n].End).Line {
			out[n].End = max(out[n].End, s.End)
		} else {
			out = append(out, s)
		}
	}
	return out
}

// heatSpan is one line of the answer.
type heatSpan struct {
	Range protocol.Range `json:"range"`
	Level int            `json:"level"` // 0 to 9
	Text  string         `json:"text"`
}

// onRange makes a callMethod of a function on parts of a document, for parameters
// that are none of the protocol's.
func onRange(f func(*server, session.Place, []source.Span, rangeParams) (any, error)) callMethod {
	return func(s *server, raw jsonrpc2.RawMessage) (connection.Work, error) {
		var params rangeParams
		if err := json.Unmarshal(raw, &params); err != nil {
			return nil, jsonrpc2.Errorf(jsonrpc2.InvalidParams, "malformed parameters: %v", err)
		}
		return onDocument(
			func(p *protocol.CodeLensParams) uri.URI { return p.TextDocument.URI },
			func(_ context.Context, s *server, p session.Place, _ *protocol.CodeLensParams) (any, error) {
				if params.Range != nil && len(params.Ranges) == 0 {
					params.Ranges = []protocol.Range{*params.Range}
				}
				if params.By == "" {
					params.By = p.Settings.Heat
				}
				return f(s, p, params.parts(p), params)
			},
		)(s, raw)
	}
}

var heat = onRange(func(_ *server, p session.Place, parts []source.Span, params rangeParams) (any, error) {
	out := []heatSpan{}
	if params.By == workspace.HeatOff {
		return session.Answer(out)
	}
	for _, span := range parts {
		heats, err := feature.Heats(p.Program(), params.By, span)
		if err != nil {
			return nil, jsonrpc2.NewError(jsonrpc2.InvalidParams, err.Error())
		}
		for _, h := range heats {
			out = append(out, heatSpan{p.Range(h.Span), h.Level, p.Kept().Doubted(h.Text)})
		}
	}
	return session.Answer(out)
})
