package server

import (
	"context"

	"go.lsp.dev/jsonrpc2"
	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"

	"dmir/lsp/connection"
	"dmir/lsp/session"
	"dmir/lsp/workspace"
)

// onDocument makes a callMethod of a function over a document: the snapshot is
// taken on the reading loop, so the answer is about the text as it was when the
// editor asked, or an error where newer text has been looked at meanwhile. For a
// document that is not open the answer is null.
func onDocument[P any](of func(*P) uri.URI, f func(context.Context, *server, session.Place, *P) (any, error)) callMethod {
	return func(s *server, raw jsonrpc2.RawMessage) (connection.Work, error) {
		p, err := connection.Decode[P](raw)
		if err != nil {
			return nil, err
		}
		snap := s.Docs.Snapshot(string(of(p)))
		return func(ctx context.Context) (any, error) {
			if snap == nil || ctx.Err() != nil {
				return nil, ctx.Err()
			}
			at, err := session.Hold(snap)
			if err != nil {
				return nil, err
			}
			defer at.Release()
			return f(ctx, s, at, p)
		}, nil
	}
}

// onPosition is onDocument for the many methods about a place in the text.
func onPosition[P any](of func(*P) *protocol.TextDocumentPositionParams, f func(s *server, p session.Place, off int, params *P) (any, error)) callMethod {
	return onDocument(func(p *P) uri.URI { return of(p).TextDocument.URI }, func(_ context.Context, s *server, p session.Place, params *P) (any, error) {
		return f(s, p, p.Offset(of(params).Position), params)
	})
}

// inConfig is f for a place in a dmir.toml that the editor has open, and program
// for any other document.
func inConfig[P any](of func(*P) *protocol.TextDocumentPositionParams, f func(s *server, p session.Place, off int) (any, error), program callMethod) callMethod {
	return func(s *server, raw jsonrpc2.RawMessage) (connection.Work, error) {
		p, err := connection.Decode[P](raw)
		if err != nil {
			return nil, err
		}
		a := session.AddressOf(of(p).TextDocument.URI)
		if !workspace.IsConfig(a) {
			return program(s, raw)
		}
		src := s.Docs.Config(a)
		return func(context.Context) (any, error) {
			if src == nil {
				return nil, nil
			}
			at := session.Bare(&workspace.Snapshot{Src: src, Encoding: s.Docs.Encoding()})
			return f(s, at, at.Offset(of(p).Position))
		}, nil
	}
}
