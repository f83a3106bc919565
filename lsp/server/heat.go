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

// heatParams are of methodHeat. By is the setting dmir.heat where it is "".
type heatParams struct {
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

// heat reads its parameters by hand: they are none of the protocol's.
func heat(s *server, raw jsonrpc2.RawMessage) (connection.Work, error) {
	var params heatParams
	if err := json.Unmarshal(raw, &params); err != nil {
		return nil, jsonrpc2.Errorf(jsonrpc2.InvalidParams, "malformed parameters: %v", err)
	}
	return onDocument(
		func(p *protocol.CodeLensParams) uri.URI { return p.TextDocument.URI },
		func(_ context.Context, s *server, p session.Place, _ *protocol.CodeLensParams) (any, error) {
			return s.heats(p, params)
		},
	)(s, raw)
}

func (s *server) heats(p session.Place, params heatParams) (any, error) {
	if params.By == "" {
		params.By = p.Settings.Heat
	}
	out := []heatSpan{}
	if params.By == workspace.HeatOff {
		return session.Answer(out)
	}
	span := source.Span{End: p.Src.Len()}
	if params.Range != nil {
		span = p.Span(*params.Range)
	}
	heats, err := feature.Heats(p.Program(), params.By, span)
	if err != nil {
		return nil, jsonrpc2.NewError(jsonrpc2.InvalidParams, err.Error())
	}
	for _, h := range heats {
		out = append(out, heatSpan{p.Range(h.Span), h.Level, h.Text})
	}
	return session.Answer(out)
}
