package server

import (
	"context"
	"encoding/json"

	"go.lsp.dev/jsonrpc2"
	"go.lsp.dev/protocol"

	"dmir/lsp/connection"
	"dmir/lsp/page"
	"dmir/lsp/session"
)

// methodChanges asks how the costs of lines differ between two open documents, for an editor
// that shows them side by side.
const methodChanges = "dmir/changes"

func changes(s *server, raw jsonrpc2.RawMessage) (connection.Work, error) {
	var params struct {
		TextDocument protocol.TextDocumentIdentifier `json:"textDocument"`
		Base         protocol.TextDocumentIdentifier `json:"base"`
	}
	if err := json.Unmarshal(raw, &params); err != nil {
		return nil, jsonrpc2.Errorf(jsonrpc2.InvalidParams, "malformed parameters: %v", err)
	}
	args := page.ChangesArgs{URI: string(params.TextDocument.URI), Base: string(params.Base.URI)}
	return func(ctx context.Context) (any, error) {
		out, err := s.pages.Changes(ctx, args)
		if err != nil {
			return nil, err
		}
		return session.Answer(out)
	}, nil
}
