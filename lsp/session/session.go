// Package session is what the packages of the language server share about one
// editor: the connection, what the editor can show, its folders and documents, and
// the conversions between the protocol's types and those of the analysis.
package session

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"go.lsp.dev/jsonrpc2"
	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"

	"dmir/lsp/connection"
	"dmir/lsp/scan"
	"dmir/lsp/workspace"
)

// Session is the session of one editor.
type Session struct {
	*connection.Conn
	Features Features // written by initialize, before any use
	Docs     *workspace.Workspace
	Folders  Folders
}

// Follow is how long after an edit what is shown beside the text is made again.
const Follow = 200 * time.Millisecond

// apartFrom is the size of a text, in bytes, from which what is asked of all of
// it takes long enough for edits to notice that they wait.
const apartFrom = 2 << 20

// Newest returns the place of a snapshot, or that of the newest version if a newer
// one has been analysed: a request about a whole document is answered all the same.
func (s *Session) Newest(snap *workspace.Snapshot) (Place, error) {
	if snap.Src.Len() > apartFrom {
		snap = s.Docs.Apart(snap)
	}
	for range 5 {
		if at, err := Hold(snap); err == nil {
			return at, nil
		}
		if snap = s.Docs.Snapshot(snap.Key); snap == nil {
			break
		}
	}
	return Place{}, ErrContentModified
}

// OnPlace returns work on a document that is open or on disk.
func (s *Session) OnPlace(document string, f func(context.Context, Place) (any, error)) connection.Work {
	where := AddressOf(uri.URI(document))
	snap := s.Docs.Snapshot(where.Key)
	return func(ctx context.Context) (any, error) {
		if snap == nil {
			var err error
			if snap, err = s.Docs.Read(where); err != nil {
				return nil, jsonrpc2.NewError(connection.RequestFailed, err.Error())
			}
		}
		at, err := s.Newest(snap)
		if err != nil {
			return nil, err
		}
		defer at.Release()
		return f(ctx, at)
	}
}

// Current calls f with the newest version of an open document, for work that no
// request asked for. It does nothing if the document is not open.
func (s *Session) Current(ctx context.Context, key string, f func(Place)) {
	if snap := s.Docs.Snapshot(key); snap != nil && ctx.Err() == nil {
		if at, err := s.Newest(snap); err == nil {
			defer at.Release()
			f(at)
		}
	}
}

// Programs returns the programs in the folders of the workspace that are not open.
func (s *Session) Programs(ctx context.Context) []scan.File {
	var dirs []string
	for _, a := range s.Folders.All() {
		dirs = append(dirs, a.Path)
	}
	return slices.DeleteFunc(scan.Files(ctx, dirs), func(f scan.File) bool {
		return s.Docs.Snapshot(AddressOf(uri.File(f.Path)).Key) != nil
	})
}

// Refresh makes the editor ask again for hints and lenses.
func (s *Session) Refresh() {
	go func() {
		if s.Features.HintRefresh {
			_ = s.Call(s.Context(), protocol.MethodWorkspaceInlayHintRefresh, nil, nil)
		}
		if s.Features.LensRefresh {
			_ = s.Call(s.Context(), protocol.MethodWorkspaceCodeLensRefresh, nil, nil)
		}
	}()
}

// RefreshLenses makes the editor ask again for lenses.
func (s *Session) RefreshLenses() {
	if s.Features.LensRefresh {
		go func() { _ = s.Call(s.Context(), protocol.MethodWorkspaceCodeLensRefresh, nil, nil) }()
	}
}

// ShowDocument has the editor show a document and select a part of it.
func (s *Session) ShowDocument(ctx context.Context, at string, selected *protocol.Range) error {
	yes := true
	var res protocol.ShowDocumentResult
	params := &protocol.ShowDocumentParams{URI: uri.URI(at), TakeFocus: &yes, Selection: selected}
	if err := s.Call(ctx, protocol.MethodWindowShowDocument, params, &res); err != nil {
		return err
	}
	if !res.Success {
		return jsonrpc2.NewError(connection.RequestFailed, "the editor did not show "+at)
	}
	return nil
}

// Answer encodes a result that is none of the protocol's types.
func Answer(v any) (any, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encoding the result: %w", err)
	}
	return jsonrpc2.RawMessage(b), nil
}
