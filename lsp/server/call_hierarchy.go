package server

import (
	"context"
	"encoding/json"

	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"

	"dmir/lsp/feature"
	"dmir/syntax/source"
)

var prepareCallHierarchy = onPosition(
	func(p *protocol.CallHierarchyPrepareParams) *protocol.TextDocumentPositionParams {
		return &p.TextDocumentPositionParams
	},
	func(_ *server, p place, off int, _ *protocol.CallHierarchyPrepareParams) (any, error) {
		f := feature.FunctionAt(p.Program(), off)
		if f == nil {
			return nil, nil
		}
		item, err := p.callItem(*f)
		return []protocol.CallHierarchyItem{item}, err
	})

var incomingCalls = onDocument(
	func(p *protocol.CallHierarchyIncomingCallsParams) uri.URI { return p.Item.URI },
	func(_ context.Context, _ *server, p place, params *protocol.CallHierarchyIncomingCallsParams) (any, error) {
		out := []protocol.CallHierarchyIncomingCall{}
		for _, c := range feature.Callers(p.Program(), p.called(&params.Item)) {
			item, err := p.callItem(c.Function)
			if err != nil {
				return nil, err
			}
			out = append(out, protocol.CallHierarchyIncomingCall{From: item, FromRanges: p.ranges(c.Places)})
		}
		return out, nil
	})

var outgoingCalls = onDocument(
	func(p *protocol.CallHierarchyOutgoingCallsParams) uri.URI { return p.Item.URI },
	func(_ context.Context, _ *server, p place, params *protocol.CallHierarchyOutgoingCallsParams) (any, error) {
		out := []protocol.CallHierarchyOutgoingCall{}
		for _, c := range feature.Callees(p.Program(), p.called(&params.Item)) {
			item, err := p.callItem(c.Function)
			if err != nil {
				return nil, err
			}
			out = append(out, protocol.CallHierarchyOutgoingCall{To: item, FromRanges: p.ranges(c.Places)})
		}
		return out, nil
	})

// callItem is a function as the editor shows it. It carries its name, by which
// it is found again after the text above it has changed.
func (p place) callItem(f feature.Function) (protocol.CallHierarchyItem, error) {
	data, err := json.Marshal(f.Name)
	return protocol.CallHierarchyItem{
		Name: f.Name, Kind: protocol.SymbolKindFunction, Detail: &f.Detail,
		URI: uri.URI(p.URI), Range: p.span(f.Span), SelectionRange: p.span(f.Head), Data: data,
	}, err
}

// called is where the function of an item is named now.
func (p place) called(item *protocol.CallHierarchyItem) int {
	off := p.offset(item.SelectionRange.Start)
	var name string
	if json.Unmarshal(item.Data, &name) != nil {
		return off
	}
	return feature.FunctionNamed(p.Program(), name, off)
}

func (p place) ranges(spans []source.Span) []protocol.Range {
	out := make([]protocol.Range, 0, len(spans))
	for _, s := range spans {
		out = append(out, p.span(s))
	}
	return out
}
