package server

import (
	"context"
	"strings"

	"go.lsp.dev/jsonrpc2"
	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"

	"dmir/lsp/connection"
	"dmir/lsp/feature"
	"dmir/lsp/session"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

// fixAll is the kind of the action that applies every safe fix; editors can
// run it on saving.
const fixAll protocol.CodeActionKind = "source.fixAll.dmir"

// actionKinds are those of the actions that the server offers.
var actionKinds = []protocol.CodeActionKind{
	protocol.CodeActionKindQuickFix, protocol.CodeActionKindRefactorExtract, protocol.CodeActionKindRefactorInline,
	protocol.CodeActionKindRefactorRewrite, fixAll,
}

// actionData is what an action carries from the list to its resolution.
type actionData struct {
	URI     string               `json:"uri"`
	Version int32                `json:"version"`
	Start   int                  `json:"start"` // of the selection, in bytes
	End     int                  `json:"end"`
	Source  feature.ActionSource `json:"source"`
	ID      string               `json:"id"`
	Short   string               `json:"short"` // its title in the history
}

var codeAction = onDocument(
	func(p *protocol.CodeActionParams) uri.URI { return p.TextDocument.URI },
	func(ctx context.Context, s *server, p session.Place, params *protocol.CodeActionParams) (any, error) {
		only, span := params.Context.Only, p.Span(params.Range)
		wanted := func(kind string) bool {
			if k := protocol.CodeActionKind(kind); k == fixAll {
				return len(only) > 0 && wants(only, k)
			}
			return wants(only, protocol.CodeActionKind(kind))
		}
		var found []diag.Diagnostic
		if wanted(string(protocol.CodeActionKindQuickFix)) || wanted(string(fixAll)) {
			found = p.Cheap()
			if params.Context.TriggerKind == protocol.CodeActionTriggerKindAutomatic {
				found = append(found, p.KnownFindings()...) // the editor asks wherever the cursor goes
			} else {
				found = append(found, p.Findings(ctx)...)
			}
		}
		out := []protocol.CommandOrCodeAction{}
		for _, a := range feature.Actions(p.Program(), found, span, wanted) {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			if a.Disabled != "" && !s.Features.DisabledActions {
				continue
			}
			if item := s.action(ctx, p, span, a); item != nil {
				out = append(out, item)
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

// action is a as editors take it: with its edits where they are known or cannot
// be asked for later. It is nil where there turn out to be none.
func (s *server) action(ctx context.Context, p session.Place, span source.Span, a feature.Action) *protocol.CodeAction {
	kind := protocol.CodeActionKind(a.Kind)
	out := &protocol.CodeAction{Title: a.Title, Kind: &kind}
	if a.Preferred || a.Kind == string(protocol.CodeActionKindQuickFix) {
		out.IsPreferred = &a.Preferred
	}
	if a.Diagnostic != nil {
		out.Diagnostics = []protocol.Diagnostic{s.Features.Diagnostic(p, *a.Diagnostic)}
	}
	data := actionData{URI: p.URI, Version: p.Version, Start: span.Start, End: span.End, Source: a.Source, ID: a.ID, Short: a.Short}
	switch {
	case a.Disabled != "":
		out.Disabled.Reason = a.Disabled
		return out
	case a.Source == feature.Known:
		s.Docs.Offer(p.Snapshot, a.Short, a.Edits)
		out.Edit = s.Features.WorkspaceEdit(p, a.Edits)
		return out
	case s.Features.ResolveActions:
		raw, err := protocol.Marshal(data)
		if err != nil {
			return nil
		}
		out.Data = raw
		return out
	}
	edits, err := actionEdits(ctx, p, data)
	if err != nil || len(edits) == 0 {
		return nil
	}
	s.Docs.Offer(p.Snapshot, a.Short, edits)
	out.Edit = s.Features.WorkspaceEdit(p, edits)
	return out
}

// actionEdits makes the edits of an action; the error explains why there are none.
func actionEdits(ctx context.Context, p session.Place, data actionData) ([]diag.Edit, error) {
	var text string
	var ok bool
	switch data.Source {
	case feature.Refactor:
		return feature.RefactorEdits(p.Program(), source.Span{Start: data.Start, End: data.End}, data.ID)
	case feature.FixAllOf:
		text, ok = p.FixAllOf(ctx, data.ID)
	default:
		text, ok = p.FixAll(ctx)
	}
	if ctx.Err() != nil || !ok {
		return nil, ctx.Err()
	}
	return feature.Replace(p.Src.Text(), text), nil
}

// resolveAction makes the edits of the action that was chosen. Where the text
// has changed since the list was made, the answer is an error.
func resolveAction(s *server, raw jsonrpc2.RawMessage) (connection.Work, error) {
	item, err := connection.Decode[protocol.CodeAction](raw)
	if err != nil {
		return nil, err
	}
	var data actionData
	if len(item.Data) == 0 || item.Edit != nil {
		return func(context.Context) (any, error) { return item, nil }, nil
	}
	if err := protocol.Unmarshal(item.Data, &data); err != nil {
		return nil, jsonrpc2.Errorf(jsonrpc2.InvalidParams, "malformed data of a code action: %v", err)
	}
	snap := s.Docs.Snapshot(session.AddressOf(uri.URI(strings.Clone(data.URI))).Key)
	return func(ctx context.Context) (any, error) {
		if snap == nil || snap.Version != data.Version {
			return nil, jsonrpc2.NewError(jsonrpc2.Code(protocol.LSPErrorCodesContentModified), "the text has changed since the action was offered")
		}
		p, err := session.Hold(snap)
		if err != nil {
			return nil, err
		}
		defer p.Release()
		edits, err := actionEdits(ctx, p, data)
		if err != nil {
			return nil, jsonrpc2.NewError(connection.RequestFailed, err.Error())
		}
		s.Docs.Offer(p.Snapshot, data.Short, edits)
		item.Edit = s.Features.WorkspaceEdit(p, edits)
		return item, nil
	}, nil
}
