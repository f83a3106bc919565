package server

import (
	"context"
	"strings"

	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"

	"dmir/lsp/feature"
	"dmir/lsp/session"
)

var definition = onPosition(
	func(p *protocol.DefinitionParams) *protocol.TextDocumentPositionParams {
		return &p.TextDocumentPositionParams
	},
	func(_ *server, p session.Place, off int, _ *protocol.DefinitionParams) (any, error) {
		return protocol.LocationSlice(p.Locations(feature.Definition(p.Names(), off))), nil
	})

// declaration is the definition: MLIR declares nothing that it does not define.
var declaration = onPosition(
	func(p *protocol.DeclarationParams) *protocol.TextDocumentPositionParams {
		return &p.TextDocumentPositionParams
	},
	func(_ *server, p session.Place, off int, _ *protocol.DeclarationParams) (any, error) {
		return protocol.LocationSlice(p.Locations(feature.Definition(p.Names(), off))), nil
	})

var typeDefinition = onPosition(
	func(p *protocol.TypeDefinitionParams) *protocol.TextDocumentPositionParams {
		return &p.TextDocumentPositionParams
	},
	func(_ *server, p session.Place, off int, _ *protocol.TypeDefinitionParams) (any, error) {
		return protocol.LocationSlice(p.Locations(feature.TypeDefinition(p.Program(), off))), nil
	})

var references = onPosition(
	func(p *protocol.ReferenceParams) *protocol.TextDocumentPositionParams {
		return &p.TextDocumentPositionParams
	},
	func(_ *server, p session.Place, off int, params *protocol.ReferenceParams) (any, error) {
		return protocol.LocationSlice(p.Locations(feature.References(p.Names(), off, params.Context.IncludeDeclaration))), nil
	})

var highlight = onPosition(
	func(p *protocol.DocumentHighlightParams) *protocol.TextDocumentPositionParams {
		return &p.TextDocumentPositionParams
	},
	func(s *server, p session.Place, off int, _ *protocol.DocumentHighlightParams) (any, error) {
		s.pages.Selected(p.Snapshot, p.Src.Pos(off).Line) // editors ask this where the cursor rests
		out := []protocol.DocumentHighlight{}
		for _, h := range feature.Highlights(p.Names(), off) {
			kind := protocol.DocumentHighlightKindRead
			if h.Write {
				kind = protocol.DocumentHighlightKindWrite
			}
			out = append(out, protocol.DocumentHighlight{Range: p.Range(h.Span), Kind: kind})
		}
		return out, nil
	})

// foldTypes is the kind of folds of signatures and of ops of several lines.
const foldTypes protocol.FoldingRangeKind = "types"

var foldingRange = onDocument(
	func(p *protocol.FoldingRangeParams) uri.URI { return p.TextDocument.URI },
	func(_ context.Context, _ *server, p session.Place, _ *protocol.FoldingRangeParams) (any, error) {
		out := []protocol.FoldingRange{}
		for _, f := range feature.Folds(p.Program().Tree) {
			r := protocol.FoldingRange{StartLine: uint32(f.First), EndLine: uint32(f.Last)}
			switch {
			case f.Comment:
				r.Kind = protocol.FoldingRangeKindComment
			case f.Types:
				text := strings.TrimRight(p.Src.Line(f.First), " \t\r") + " …"
				r.Kind, r.CollapsedText = foldTypes, &text
			}
			out = append(out, r)
		}
		return out, nil
	})
