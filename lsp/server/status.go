package server

import (
	"context"

	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"

	"dmir/lsp/session"
	"dmir/lsp/workspace"
)

// methodStatus asks what the figures of a document depend on: whose target and which
// dmir.toml apply, for an editor's status line. An editor asks again after a refresh of
// inlay hints or code lenses.
const methodStatus = "dmir/status"

var status = onDocument(
	func(p *protocol.CodeLensParams) uri.URI { return p.TextDocument.URI },
	func(_ context.Context, s *server, p session.Place, _ *protocol.CodeLensParams) (any, error) {
		now := p.Status()
		answer := struct {
			Target string           `json:"target"`
			Title  string           `json:"title"`
			By     workspace.Choice `json:"by"`     // "settings", "dmir.toml" or "default"
			Config string           `json:"config"` // the dmir.toml that applies, relative to the folder; "" where there is none
			Doubt  string           `json:"doubt"`  // why the figures have the mark ≈, "" where they have none
		}{now.Target.Name, now.Target.Title, now.By, "", now.Doubt}
		if now.Config != "" {
			answer.Config = s.Folders.Relative(now.Config)
		}
		return session.Answer(answer)
	})
