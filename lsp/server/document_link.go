package server

import (
	"context"
	"encoding/json"
	"fmt"

	"go.lsp.dev/jsonrpc2"
	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"

	"dmir/lsp/connection"
	"dmir/lsp/feature"
	"dmir/lsp/session"
)

// eagerLinks is how many links come with the description of their files. Editors
// show that without asking, so the rest, which they may resolve, is for texts
// that name more files than one would look at.
const eagerLinks = 100

// documentLink answers for programs and for views of CUDA text.
func documentLink(s *server, raw jsonrpc2.RawMessage) (connection.Work, error) {
	p, err := connection.Decode[protocol.DocumentLinkParams](raw)
	if err != nil {
		return nil, err
	}
	if v, ok := session.ParseView(string(p.TextDocument.URI)); ok && v.Name == session.CUDAView {
		links := s.pages.KernelLinks(v)
		return func(context.Context) (any, error) { return links, nil }, nil
	}
	return programLinks(s, raw)
}

var programLinks = onDocument(
	func(p *protocol.DocumentLinkParams) uri.URI { return p.TextDocument.URI },
	func(ctx context.Context, _ *server, p session.Place, _ *protocol.DocumentLinkParams) (any, error) {
		out := []protocol.DocumentLink{}
		for i, l := range feature.Links(p.Src) {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			link := protocol.DocumentLink{Range: p.Range(l.Span)}
			if i < eagerLinks {
				resolved(&link, l)
			} else {
				data, err := json.Marshal(linkData{l.Path, l.Line})
				if err != nil {
					return nil, err
				}
				link.Data = data
			}
			out = append(out, link)
		}
		return out, nil
	})

// linkData is what a link needs to be resolved.
type linkData struct {
	Path string `json:"path"`
	Line int    `json:"line,omitzero"`
}

var resolveDocumentLink = onCall(func(_ context.Context, _ *server, link *protocol.DocumentLink) (any, error) {
	var d linkData
	if len(link.Data) > 0 && json.Unmarshal(link.Data, &d) == nil && d.Path != "" {
		resolved(link, feature.Link{Path: d.Path, Line: d.Line})
	}
	return link, nil
})

func resolved(link *protocol.DocumentLink, l feature.Link) {
	target, tip := uri.File(l.Path), l.Tooltip()
	if l.Line > 0 {
		target += uri.URI(fmt.Sprintf("#L%d", l.Line))
	}
	link.Target, link.Tooltip = &target, &tip
}
