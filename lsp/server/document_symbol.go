package server

import (
	"context"

	"go.lsp.dev/jsonrpc2"
	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"

	"dmir/lsp/connection"
	"dmir/lsp/feature"
	"dmir/lsp/scan"
	"dmir/lsp/session"
	"dmir/lsp/workspace"
	"dmir/syntax/scope"
)

var symbolKinds = map[scope.ItemKind]protocol.SymbolKind{
	scope.Module:   protocol.SymbolKindModule,
	scope.Function: protocol.SymbolKindFunction,
	scope.Kernel:   protocol.SymbolKindOperator,
	scope.Global:   protocol.SymbolKindConstant,
	scope.Other:    protocol.SymbolKindObject,
}

var documentSymbol = onDocument(
	func(p *protocol.DocumentSymbolParams) uri.URI { return p.TextDocument.URI },
	func(_ context.Context, s *server, p session.Place, _ *protocol.DocumentSymbolParams) (any, error) {
		items := scope.Outline(p.Program().Tree)
		if s.Features.FlatSymbols {
			return flatten(p, protocol.SymbolInformationSlice{}, items), nil
		}
		return protocol.DocumentSymbolSlice(symbols(p, items)), nil
	})

func symbols(p session.Place, items []scope.Item) []protocol.DocumentSymbol {
	out := make([]protocol.DocumentSymbol, 0, len(items))
	for _, it := range items {
		detail := it.Detail
		out = append(out, protocol.DocumentSymbol{
			Name: it.Name, Detail: &detail, Kind: symbolKinds[it.Kind],
			Range: p.Range(it.Span), SelectionRange: p.Range(it.Selection), Children: symbols(p, it.Children),
		})
	}
	return out
}

// flatten is for editors without support for hierarchies.
func flatten(p session.Place, out protocol.SymbolInformationSlice, items []scope.Item) protocol.SymbolInformationSlice {
	for _, it := range items {
		out = flatten(p, append(out, information(p, it)), it.Children)
	}
	return out
}

func information(p session.Place, it scope.Item) protocol.SymbolInformation {
	var info protocol.SymbolInformation
	info.Name, info.Kind, info.Location = it.Name, symbolKinds[it.Kind], p.Location(it.Span)
	return info
}

// maxSymbols bounds the answer to a query for symbols.
const maxSymbols = 1000

// workspaceSymbol looks through the open documents, and then through the other
// programs of the workspace, whose outlines are remembered.
func workspaceSymbol(s *server, raw jsonrpc2.RawMessage) (connection.Work, error) {
	params, err := connection.Decode[protocol.WorkspaceSymbolParams](raw)
	if err != nil {
		return nil, err
	}
	snaps := s.Docs.Snapshots()
	return func(ctx context.Context) (any, error) {
		out := protocol.SymbolInformationSlice{}
		for _, snap := range snaps {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			snap.With(func(v *workspace.View) {
				for _, it := range feature.FindSymbols(v.Program().Tree, params.Query) {
					if len(out) < maxSymbols {
						out = append(out, information(session.Bare(snap), it))
					}
				}
			})
		}
		s.outlines.All(ctx, s.Programs(ctx), s.Docs.Encoding(), func(f scan.File, symbols []scan.Symbol) bool {
			for _, it := range symbols {
				if feature.Matches(it.Item.Name, params.Query) && len(out) < maxSymbols {
					out = append(out, closedSymbol(f, it))
				}
			}
			return len(out) < maxSymbols
		})
		return out, ctx.Err()
	}, nil
}

func closedSymbol(f scan.File, s scan.Symbol) protocol.SymbolInformation {
	var info protocol.SymbolInformation
	info.Name, info.Kind = s.Item.Name, symbolKinds[s.Item.Kind]
	info.Location = protocol.Location{URI: uri.File(f.Path), Range: protocol.Range{Start: session.PositionOf(s.Start), End: session.PositionOf(s.End)}}
	return info
}
