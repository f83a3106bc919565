package server

import (
	"context"
	"encoding/json"

	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"

	"dmir/lsp/feature"
	"dmir/lsp/session"
	"dmir/syntax/source"
)

var prepareCallHierarchy = onPosition(
	func(p *protocol.CallHierarchyPrepareParams) *protocol.TextDocumentPositionParams {
		return &p.TextDocumentPositionParams
	},
	func(_ *server, p session.Place, off int, _ *protocol.CallHierarchyPrepareParams) (any, error) {
		f := feature.FunctionAt(p.Program(), off)
		if f == nil {
			return nil, nil
		}
		item, err := callItem(p, *f)
		return []protocol.CallHierarchyItem{item}, err
	})

var incomingCalls = onDocument(
	func(p *protocol.CallHierarchyIncomingCallsParams) uri.URI { return p.Item.URI },
	func(_ context.Context, _ *server, p session.Place, params *protocol.CallHierarchyIncomingCallsParams) (any, error) {
		out := []protocol.CallHierarchyIncomingCall{}
		for _, c := range feature.Callers(p.Program(), called(p, &params.Item)) {
			item, err := callItem(p, c.Function)
			if err != nil {
				return nil, err
			}
			out = append(out, protocol.CallHierarchyIncomingCall{From: item, FromRanges: ranges(p, c.Places)})
		}
		return out, nil
	})

var outgoingCalls = onDocument(
	func(p *protocol.CallHierarchyOutgoingCallsParams) uri.URI { return p.Item.URI },
	func(_ context.Context, _ *server, p session.Place, params *protocol.CallHierarchyOutgoingCallsParams) (any, error) {
		out := []protocol.CallHierarchyOutgoingCall{}
		for _, c := range feature.Callees(p.Program(), called(p, &params.Item)) {
			item, err := callItem(p, c.Function)
			if err != nil {
				return nil, err
			}
			out = append(out, protocol.CallHierarchyOutgoingCall{To: item, FromRanges: ranges(p, c.Places)})
		}
		return out, nil
	})

// callItem is a function as the editor shows it. It carries its name, by which
// it is found again after the text above it has changed.
func callItem(p session.Place, f feature.Function) (protocol.CallHierarchyItem, error) {
	data, err := json.Marshal(f.Name)
	return protocol.CallHierarchyItem{
		Name: f.Name, Kind: protocol.SymbolKindFunction, Detail: &f.Detail,
		URI: uri.URI(p.URI), Range: p.Range(f.Span), SelectionRange: p.Range(f.Head), Data: data,
	}, err
}

// called is where the function of an item is named now.
func called(p session.Place, item *protocol.CallHierarchyItem) int {
	off := p.Offset(item.SelectionRange.Start)
	var name string
	if json.Unmarshal(item.Data, &name) != nil {
		return off
	}
	return feature.FunctionNamed(p.Program(), name, off)
}

func ranges(p session.Place, spans []source.Span) []protocol.Range {
	out := make([]protocol.Range, 0, len(spans))
	for _, s := range spans {
		out = append(out, p.Range(s))
	}
	return out
}
