package server

import (
	"encoding/json"
	"fmt"
	"strings"

	"go.lsp.dev/jsonrpc2"
	"go.lsp.dev/protocol"

	"dmir/lsp/connection"
	"dmir/lsp/session"
	"dmir/lsp/traced"
	"dmir/lsp/workspace"
)

// largeText is the size of parameters from which their text is read apart.
const largeText = 64 << 10

// didOpen reads the address by hand as well: the protocol's type spells it in
// a way of its own, and diagnostics should carry the address that the editor uses.
func didOpen(s *server, raw jsonrpc2.RawMessage) error {
	rest, text, large := []byte(nil), "", false
	if len(raw) > largeText {
		if rest, text, large = cutText(raw); large {
			raw = rest
		}
	}
	p, err := connection.Decode[protocol.DidOpenTextDocumentParams](raw)
	if err != nil {
		return err
	}
	if !large {
		text = strings.Clone(p.TextDocument.Text)
	}
	a := session.AddressOf(p.TextDocument.URI)
	var spelt struct {
		TextDocument struct {
			URI string `json:"uri"`
		} `json:"textDocument"`
	}
	if err := json.Unmarshal(raw, &spelt); err == nil {
		a.URI = spelt.TextDocument.URI
	}
	if session.NoProgram(a.Key) {
		return nil
	}
	if traced.Is(a.Path) {
		s.python.Open(a, p.TextDocument.Version, text)
		s.publishTraced(a.Key)
		return nil
	}
	if workspace.IsConfig(a) {
		s.Docs.OpenConfig(a, text)
		s.diagnostics.ConfigChanged()
		s.refresh()
		return nil
	}
	s.diagnostics.Opened(a.URI) // it is a document from now on
	s.Docs.Open(a, p.TextDocument.Version, text)
	return nil
}

func didChange(s *server, p *protocol.DidChangeTextDocumentParams) error {
	edits := make([]workspace.Edit, 0, len(p.ContentChanges))
	for _, c := range p.ContentChanges {
		switch c := c.(type) {
		case *protocol.TextDocumentContentChangePartial:
			edits = append(edits, workspace.Edit{Start: session.Position(c.Range.Start), End: session.Position(c.Range.End), Text: c.Text})
		case *protocol.TextDocumentContentChangeWholeDocument:
			edits = append(edits, workspace.Edit{Whole: true, Text: strings.Clone(c.Text)})
		default:
			return fmt.Errorf("a content change of unknown form %T", c)
		}
	}
	a := session.AddressOf(p.TextDocument.URI)
	if session.NoProgram(a.Key) {
		return nil
	}
	if traced.Is(a.Path) {
		s.python.Change(a.Key, p.TextDocument.Version, edits)
		s.pages.Later(a.Key, func() { s.publishTraced(a.Key) })
		return nil
	}
	if workspace.IsConfig(a) {
		s.pages.Later(a.Key, func() {
			s.Docs.ConfigChanged()
			s.diagnostics.ConfigChanged()
			s.refresh()
		})
		return s.Docs.ChangeConfig(a, edits)
	}
	defer s.pages.Changed(a.Key)
	return s.Docs.Change(a.Key, p.TextDocument.Version, edits)
}

func didClose(s *server, p *protocol.DidCloseTextDocumentParams) error {
	a := session.AddressOf(p.TextDocument.URI)
	if session.NoProgram(a.Key) {
		return nil
	}
	if traced.Is(a.Path) {
		s.python.Close(a.Key)
		return nil
	}
	if workspace.IsConfig(a) {
		s.Docs.CloseConfig(a)
		s.diagnostics.ConfigChanged()
		s.refresh()
		return nil
	}
	key := a.Key
	spelt := key
	if snap := s.Docs.Snapshot(key); snap != nil {
		spelt = snap.URI
	}
	s.tokens.forget(key)
	s.pages.Closed(key)
	s.saved.forget(a.Path)
	return s.Docs.Close(key, func() {
		s.diagnostics.Closed(key, spelt)
	})
}

// didSave updates what depends on the file on disk: lenses and comparisons.
func didSave(s *server, p *protocol.DidSaveTextDocumentParams) error {
	a := session.AddressOf(p.TextDocument.URI)
	if traced.Is(a.Path) {
		s.python.Recheck()
		return nil
	}
	s.pages.Changed(a.Key)
	s.RefreshLenses()
	return nil
}
