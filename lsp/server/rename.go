package server

import (
	"strings"

	"go.lsp.dev/jsonrpc2"
	"go.lsp.dev/protocol"

	"dmir/lsp/connection"
	"dmir/lsp/feature"
	"dmir/lsp/session"
)

var prepareRename = onPosition(
	func(p *protocol.PrepareRenameParams) *protocol.TextDocumentPositionParams {
		return &p.TextDocumentPositionParams
	},
	func(_ *server, p session.Place, off int, _ *protocol.PrepareRenameParams) (any, error) {
		span, name, ok := feature.Renameable(p.Names(), off)
		if !ok {
			return nil, nil
		}
		return &protocol.PrepareRenamePlaceholder{Range: p.Range(span), Placeholder: name}, nil
	})

var rename = onPosition(
	func(p *protocol.RenameParams) *protocol.TextDocumentPositionParams {
		return &p.TextDocumentPositionParams
	},
	func(s *server, p session.Place, off int, params *protocol.RenameParams) (any, error) {
		edits, err := feature.Rename(p.Names(), off, strings.Clone(params.NewName))
		if err != nil {
			return nil, jsonrpc2.NewError(connection.RequestFailed, err.Error())
		}
		return s.Features.WorkspaceEdit(p, edits), nil
	})
