package server

import (
	"sync"

	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"

	"dmir/lsp/workspace"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

func position(p protocol.Position) source.Pos {
	const most = 1<<31 - 1 // also on machines with 32-bit integers
	return source.Pos{Line: int(min(p.Line, most)), Col: int(min(p.Character, most))}
}

// place converts between bytes and the editor's positions for one snapshot, and
// knows what there is to know about it until letGo.
type place struct {
	*workspace.View
	letGo func() // may be called twice; to be called before anything that takes long
}

// held is the place of a snapshot, an error where newer text has been looked at.
func held(snap *workspace.Snapshot) (place, error) {
	v, release, ok := snap.Hold()
	if !ok {
		return place{}, errContentModified
	}
	return place{v, sync.OnceFunc(release)}, nil
}

// bare is a place of which only the text is known.
func bare(snap *workspace.Snapshot) place {
	return place{&workspace.View{Snapshot: snap}, func() {}}
}

func (p place) offset(pos protocol.Position) int { return p.Src.Offset(position(pos), p.Encoding) }

func (p place) at(off int) protocol.Position { return positionOf(p.Src.Encode(off, p.Encoding)) }

func positionOf(p source.Pos) protocol.Position {
	return protocol.Position{Line: uint32(p.Line), Character: uint32(p.Col)}
}

func (p place) span(s source.Span) protocol.Range {
	return protocol.Range{Start: p.at(s.Start), End: p.at(s.End)}
}

func (p place) bytes(r protocol.Range) source.Span {
	return source.Span{Start: p.offset(r.Start), End: p.offset(r.End)}
}

func (p place) location(s source.Span) protocol.Location {
	return protocol.Location{URI: uri.URI(p.URI), Range: p.span(s)}
}

func (p place) locations(spans []source.Span) []protocol.Location {
	out := make([]protocol.Location, 0, len(spans))
	for _, s := range spans {
		out = append(out, p.location(s))
	}
	return out
}

func (p place) edits(es []diag.Edit) []protocol.TextEdit {
	out := make([]protocol.TextEdit, 0, len(es))
	for _, e := range es {
		out = append(out, protocol.TextEdit{Range: p.span(e.Span), NewText: e.Text})
	}
	return out
}

// workspaceEdit ties edits to the version they were made for, where the editor
// checks that.
func (s *server) workspaceEdit(p place, es []diag.Edit) *protocol.WorkspaceEdit {
	edits := p.edits(es)
	if !s.features.versionedEdits {
		return &protocol.WorkspaceEdit{Changes: map[uri.URI][]protocol.TextEdit{uri.URI(p.URI): edits}}
	}
	elements := make([]protocol.TextDocumentEditElement, len(edits))
	for i := range edits {
		elements[i] = &edits[i]
	}
	version := p.Version
	return &protocol.WorkspaceEdit{DocumentChanges: []protocol.DocumentChange{&protocol.TextDocumentEdit{
		TextDocument: protocol.OptionalVersionedTextDocumentIdentifier{
			TextDocumentIdentifier: protocol.TextDocumentIdentifier{URI: uri.URI(p.URI)},
			Version:                &version,
		},
		Edits: elements,
	}}}
}
