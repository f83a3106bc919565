package session

import (
	"sync"
	"unicode/utf8"

	"go.lsp.dev/jsonrpc2"
	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"

	"dmir/lsp/workspace"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

// Position is where the editor means, in its own unit of columns.
func Position(p protocol.Position) source.Pos {
	const most = 1<<31 - 1 // also on machines with 32-bit integers
	return source.Pos{Line: int(min(p.Line, most)), Col: int(min(p.Character, most))}
}

// Place is what is known about one snapshot until Release, and converts between
// bytes of its text and the editor's positions.
type Place struct {
	*workspace.View
	Release func() // may be called twice; to be called before anything that takes long
}

// Hold returns the place of a snapshot, or an error if newer text has been analysed.
func Hold(snap *workspace.Snapshot) (Place, error) {
	v, release, ok := snap.Hold()
	if !ok {
		return Place{}, ErrContentModified
	}
	return Place{v, sync.OnceFunc(release)}, nil
}

// ErrContentModified is the answer to a request about a text that has changed.
var ErrContentModified = jsonrpc2.Errorf(jsonrpc2.Code(protocol.LSPErrorCodesContentModified), "the document has changed")

// Bare returns a place of which only the text is known.
func Bare(snap *workspace.Snapshot) Place {
	return Place{&workspace.View{Snapshot: snap}, func() {}}
}

func (p Place) Offset(pos protocol.Position) int { return p.Src.Offset(Position(pos), p.Encoding) }

func (p Place) At(off int) protocol.Position { return PositionOf(p.Src.Encode(off, p.Encoding)) }

func PositionOf(p source.Pos) protocol.Position {
	return protocol.Position{Line: uint32(p.Line), Character: uint32(p.Col)}
}

func (p Place) Range(s source.Span) protocol.Range {
	return protocol.Range{Start: p.At(s.Start), End: p.At(s.End)}
}

// Span is the text of a range. Editors may send one whose end lies before its start.
func (p Place) Span(r protocol.Range) source.Span {
	a, b := p.Offset(r.Start), p.Offset(r.End)
	return source.Span{Start: min(a, b), End: max(a, b)}
}

func (p Place) Location(s source.Span) protocol.Location {
	return protocol.Location{URI: uri.URI(p.URI), Range: p.Range(s)}
}

func (p Place) Locations(spans []source.Span) []protocol.Location {
	out := make([]protocol.Location, 0, len(spans))
	for _, s := range spans {
		out = append(out, p.Location(s))
	}
	return out
}

func (p Place) Edits(es []diag.Edit) []protocol.TextEdit {
	out := make([]protocol.TextEdit, 0, len(es))
	for _, e := range es {
		out = append(out, protocol.TextEdit{Range: p.Range(e.Span), NewText: e.Text})
	}
	return out
}

// Characters is a range within one line given in characters from 1; what lies
// outside the text is moved to its edge.
func (p Place) Characters(line, column, endColumn int) *protocol.Range {
	line = min(max(line, 1), p.Src.Lines()) - 1
	text, start := p.Src.Line(line), p.Src.LineStart(line)
	offset := func(column int) int {
		off := 0
		for n := 1; n < column && off < len(text); n++ {
			_, size := utf8.DecodeRuneInString(text[off:])
			off += size
		}
		return start + off
	}
	return &protocol.Range{Start: p.At(offset(column)), End: p.At(offset(max(column, endColumn)))}
}

// WorkspaceEdit ties edits to the version they were made for, where the editor
// checks that.
func (f Features) WorkspaceEdit(p Place, es []diag.Edit) *protocol.WorkspaceEdit {
	edits := p.Edits(es)
	if !f.VersionedEdits {
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
