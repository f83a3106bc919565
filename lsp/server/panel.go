package server

import (
	"context"
	"encoding/json"

	"go.lsp.dev/jsonrpc2"
	"go.lsp.dev/protocol"

	"dmir/analysis/report"
	"dmir/lsp/connection"
	"dmir/lsp/page"
	"dmir/lsp/session"
)

// methodPanelData asks for what a panel shows now, for editors that draw panels
// themselves.
const methodPanelData = "dmir/panelData"

// panelData answers methodPanelData with the data and the version of the text
// that they are of.
func panelData(s *server, raw jsonrpc2.RawMessage) (connection.Work, error) {
	var args page.PanelArgs
	if err := json.Unmarshal(raw, &args); err != nil || args.URI == "" {
		return nil, jsonrpc2.Errorf(jsonrpc2.InvalidParams, `%s takes {"uri": …, "kind": …, "function": …}`, methodPanelData)
	}
	return func(ctx context.Context) (any, error) {
		version, data, err := s.pages.Data(ctx, args)
		if err != nil {
			return nil, err
		}
		return session.Answer(struct {
			Version int32       `json:"version"`
			Data    report.Data `json:"data"`
		}{version, data})
	}, nil
}

// selectParams are of the notification dmir/select: where the cursor is.
type selectParams struct {
	TextDocument protocol.TextDocumentIdentifier `json:"textDocument"`
	Position     protocol.Position               `json:"position"`
}

// selectPlace reads its parameters by hand: they are none of the protocol's.
func selectPlace(s *server, raw jsonrpc2.RawMessage) error {
	var p selectParams
	if err := json.Unmarshal(raw, &p); err != nil {
		return err
	}
	s.pages.Selected(s.Docs.Snapshot(session.AddressOf(p.TextDocument.URI).Key), session.Position(p.Position).Line)
	return nil
}
