package server

import (
	"encoding/json"
	"fmt"
	"strings"

	"go.lsp.dev/jsonrpc2"
	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"

	"dmir/lsp/workspace"
)

// largeText is the size of parameters from which their text is read apart.
const largeText = 64 << 10

// didOpen reads the address by hand as well: the protocol's type spells it in
// a way of its own, and an editor should hear of its documents as it calls them.
func didOpen(s *server, raw jsonrpc2.RawMessage) error {
	rest, text, large := []byte(nil), "", false
	if len(raw) > largeText {
		if rest, text, large = cutText(raw); large {
			raw = rest
		}
	}
	p, err := decode[protocol.DidOpenTextDocumentParams](raw)
	if err != nil {
		return err
	}
	if !large {
		text = strings.Clone(p.TextDocument.Text)
	}
	a := address(p.TextDocument.URI)
	var spelt struct {
		TextDocument struct {
			URI string `json:"uri"`
		} `json:"textDocument"`
	}
	if err := json.Unmarshal(raw, &spelt); err == nil {
		a.URI = spelt.TextDocument.URI
	}
	if noProgram(a.Key) {
		return nil
	}
	if workspace.IsConfig(a) {
		s.docs.OpenConfig(a, text)
		s.published.configChanged()
		s.refresh()
		return nil
	}
	s.closed.took(a.URI, false) // it is looked at as a document from now on
	s.docs.Open(a, p.TextDocument.Version, text)
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
	a := address(p.TextDocument.URI)
	if noProgram(a.Key) {
		return nil
	}
	if workspace.IsConfig(a) {
		s.live.later(a.Key, func() {
			s.docs.ConfigChanged()
			s.published.configChanged()
			s.refresh()
		})
		return s.docs.ChangeConfig(a, edits)
	}
	defer s.touched(a.Key)
	return s.docs.Change(a.Key, p.TextDocument.Version, edits)
}

func didClose(s *server, p *protocol.DidCloseTextDocumentParams) error {
	a := address(p.TextDocument.URI)
	if noProgram(a.Key) {
		return nil
	}
	if workspace.IsConfig(a) {
		s.docs.CloseConfig(a)
		s.published.configChanged()
		s.refresh()
		return nil
	}
	key := a.Key
	spelt := key
	if snap := s.docs.Snapshot(key); snap != nil {
		spelt = snap.URI
	}
	s.tokens.forget(key)
	s.live.closed(key)
	s.saved.forget(a.Path)
	return s.docs.Close(key, func() {
		s.published.forget(key)
		if !s.features.pulls {
			s.clear(spelt)
		}
	})
}

// didSave hears that a file holds what its document holds, which is what lenses
// and comparisons look at.
func didSave(s *server, p *protocol.DidSaveTextDocumentParams) error {
	s.touched(address(p.TextDocument.URI).Key)
	s.refreshLenses()
	return nil
}

// noProgram reports whether an address is that of a virtual document which holds
// no program: code, a table, an article.
func noProgram(at string) bool {
	v, ok := parseView(at)
	return ok && views[v.Name].ext != ".dmir" && views[v.Name].ext != ".mlir"
}

// address is a document's, detached from the message that brought it. The path
// of one that is no file is its address.
func address(u uri.URI) workspace.Address {
	key := strings.Clone(string(u))
	if v, err := uri.Parse(key); err == nil {
		key = string(v)
		if v.IsFile() {
			return workspace.Address{Key: key, URI: key, Path: v.FsPath()}
		}
	}
	a := workspace.Address{Key: key, URI: key, Path: key}
	if v, ok := parseView(key); ok && v.Document != "" {
		a.Base = address(uri.URI(v.Document)).Path // it is seen as what it shows
	}
	return a
}
