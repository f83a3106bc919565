package server

import (
	"context"

	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"

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
	func(_ context.Context, s *server, p place, _ *protocol.DocumentSymbolParams) (any, error) {
		items := scope.Outline(p.Program().Tree)
		if s.features.flatSymbols {
			return flatten(p, protocol.SymbolInformationSlice{}, items), nil
		}
		return protocol.DocumentSymbolSlice(symbols(p, items)), nil
	})

func symbols(p place, items []scope.Item) []protocol.DocumentSymbol {
	out := make([]protocol.DocumentSymbol, 0, len(items))
	for _, it := range items {
		detail := it.Detail
		out = append(out, protocol.DocumentSymbol{
			Name: it.Name, Detail: &detail, Kind: symbolKinds[it.Kind],
			Range: p.span(it.Span), SelectionRange: p.span(it.Selection), Children: symbols(p, it.Children),
		})
	}
	return out
}

// flatten is for editors that know no hierarchy.
func flatten(p place, out protocol.SymbolInformationSlice, items []scope.Item) protocol.SymbolInformationSlice {
	for _, it := range items {
		var info protocol.SymbolInformation
		info.Name, info.Kind, info.Location = it.Name, symbolKinds[it.Kind], p.location(it.Span)
		out = flatten(p, append(out, info), it.Children)
	}
	return out
}
