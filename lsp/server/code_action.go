package server

import (
	"context"
	"strings"

	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"

	"dmir/lsp/feature"
)

// fixAll is the kind of the action that applies every safe fix; editors can
// run it on saving.
const fixAll protocol.CodeActionKind = "source.fixAll.dmir"

var codeAction = onDocument(
	func(p *protocol.CodeActionParams) uri.URI { return p.TextDocument.URI },
	func(ctx context.Context, s *server, p place, params *protocol.CodeActionParams) (any, error) {
		out := []protocol.CommandOrCodeAction{}
		only := params.Context.Only
		quick, all := wants(only, protocol.CodeActionKindQuickFix), len(only) > 0 && wants(only, fixAll)
		if !quick && !all {
			return out, nil
		}
		found := append(p.Cheap(), p.Findings(ctx)...)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if quick {
			for _, f := range feature.FixesAt(found, p.bytes(params.Range)) {
				out = append(out, s.quickFix(p, f))
			}
		}
		if all {
			if text, ok := p.FixAll(ctx); ok && ctx.Err() == nil {
				kind := fixAll
				edits := feature.Replace(p.Src.Text(), text)
				out = append(out, &protocol.CodeAction{Title: "Apply all safe fixes", Kind: &kind, Edit: s.workspaceEdit(p, edits)})
			}
		}
		return out, nil
	})

// wants reports whether an editor that asks for only those kinds wants kind.
func wants(only []protocol.CodeActionKind, kind protocol.CodeActionKind) bool {
	for _, o := range only {
		if o == "" || o == kind || strings.HasPrefix(string(kind), string(o)+".") {
			return true
		}
	}
	return len(only) == 0
}

func (s *server) quickFix(p place, f feature.Fix) *protocol.CodeAction {
	kind, safe := protocol.CodeActionKindQuickFix, f.Fix.Safe
	return &protocol.CodeAction{
		Title:       f.Title,
		Kind:        &kind,
		Diagnostics: []protocol.Diagnostic{s.diagnostic(p, f.Diagnostic)},
		IsPreferred: &safe,
		Edit:        s.workspaceEdit(p, f.Fix.Edits),
	}
}
