package server

import (
	"fmt"
	"strings"

	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"

	"dmir/lsp/workspace"
)

func didOpen(s *server, p *protocol.DidOpenTextDocumentParams) error {
	d := p.TextDocument
	u := key(d.URI)
	s.docs.Open(u, pathOf(u), d.Version, strings.Clone(d.Text))
	return nil
}

func didChange(s *server, p *protocol.DidChangeTextDocumentParams) error {
	edits := make([]workspace.Edit, 0, len(p.ContentChanges))
	for _, c := range p.ContentChanges {
		switch c := c.(type) {
		case *protocol.TextDocumentContentChangePartial:
			edits = append(edits, workspace.Edit{Start: position(c.Range.Start), End: position(c.Range.End), Text: c.Text})
		case *protocol.TextDocumentContentChangeWholeDocument:
			edits = append(edits, workspace.Edit{Whole: true, Text: strings.Clone(c.Text)})
		default:
			return fmt.Errorf("a content change of unknown form %T", c)
		}
	}
	return s.docs.Change(key(p.TextDocument.URI), p.TextDocument.Version, edits)
}

func didClose(s *server, p *protocol.DidCloseTextDocumentParams) error {
	u := key(p.TextDocument.URI)
	return s.docs.Close(u, func() {
		s.client.notify(protocol.MethodTextDocumentPublishDiagnostics, &protocol.PublishDiagnosticsParams{
			URI: uri.URI(u), Diagnostics: []protocol.Diagnostic{},
		})
	})
}

// key is a document's name: its address as the editor writes it, detached from
// the message that brought it.
func key(u uri.URI) string { return strings.Clone(string(u)) }

// pathOf is the file of a document; of one that has none, its address.
func pathOf(u string) string {
	if v, err := uri.Parse(u); err == nil && v.IsFile() {
		return v.FsPath()
	}
	return u
}
