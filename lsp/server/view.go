package server

import (
	"context"
	"encoding/json"

	"go.lsp.dev/jsonrpc2"
	"go.lsp.dev/protocol"

	"dmir/lsp/connection"
)

// textDocumentContent returns the text of a virtual document. Its address is read
// as the editor spells it: it comes back in refreshes.
func textDocumentContent(s *server, raw jsonrpc2.RawMessage) (connection.Work, error) {
	var params struct {
		URI string `json:"uri"`
	}
	if err := json.Unmarshal(raw, &params); err != nil {
		return nil, jsonrpc2.Errorf(jsonrpc2.InvalidParams, "malformed parameters: %v", err)
	}
	get, err := s.pages.Content(params.URI)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) (any, error) {
		text, err := get(ctx)
		if err != nil {
			return nil, err
		}
		return &protocol.TextDocumentContentResult{Text: text}, nil
	}, nil
}
