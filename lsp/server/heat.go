package server

import (
	"context"
	"encoding/json"

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
	Range        *protocol.Range                 `json:"range"` // the whole file where it is absent
}

// heatSpan is one line of the answer.
type heatSpan struct {
	Range protocol.Range `json:"range"`
	Level int            `json:"level"` // 0 to 9
	Text  string         `json:"text"`
}

// onRange makes a callMethod of a function on a part of a document, for parameters
// that are none of the protocol's.
func onRange(f func(*server, session.Place, source.Span, rangeParams) (any, error)) callMethod {
	return func(s *server, raw jsonrpc2.RawMessage) (connection.Work, error) {
		var params rangeParams
		if err := json.Unmarshal(raw, &params); err != nil {
			return nil, jsonrpc2.Errorf(jsonrpc2.InvalidParams, "malformed parameters: %v", err)
		}
		return onDocument(
			func(p *protocol.CodeLensParams) uri.URI { return p.TextDocument.URI },
			func(_ context.Context, s *server, p session.Place, _ *protocol.CodeLensParams) (any, error) {
				span := source.Span{End: p.Src.Len()}
				if params.Range != nil {
					span = p.Span(*params.Range)
				}
				if params.By == "" {
					params.By = p.Settings.Heat
				}
				return f(s, p, span, params)
			},
		)(s, raw)
	}
}

var heat = onRange(func(_ *server, p session.Place, span source.Span, params rangeParams) (any, error) {
	out := []heatSpan{}
	if params.By == workspace.HeatOff {
		return session.Answer(out)
	}
	heats, err := feature.Heats(p.Program(), params.By, span)
	if err != nil {
		return nil, jsonrpc2.NewError(jsonrpc2.InvalidParams, err.Error())
	}
	for _, h := range heats {
		out = append(out, heatSpan{p.Range(h.Span), h.Level, h.Text})
	}
	return session.Answer(out)
})
