package server

import (
	"context"
	"unicode/utf8"

	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"

	"dmir/lsp/feature"
)

// maxHint is the length in characters of the longest label.
const maxHint = 29

var inlayHint = onDocument(
	func(p *protocol.InlayHintParams) uri.URI { return p.TextDocument.URI },
	func(_ context.Context, s *server, p place, params *protocol.InlayHintParams) (any, error) {
		out := []protocol.InlayHint{}
		if !p.Settings.Hints {
			return out, nil
		}
		yes := true
		hints := feature.Hints(p.Program(), times(p), p.bytes(params.Range))
		for i, h := range hints {
			label := h.Label
			// Editors put hardly any space between the hints of one line.
			if i+1 < len(hints) && hints[i+1].Offset == h.Offset && utf8.RuneCountInString(label) < maxHint-1 {
				label += " ·"
			}
			out = append(out, protocol.InlayHint{
				Position:    p.at(h.Offset),
				Label:       protocol.String(label),
				Tooltip:     s.markup(h.Tooltip),
				PaddingLeft: &yes,
			})
		}
		return out, nil
	})

// times are the measured times of the snapshot's text, nil where it has not run.
func times(p place) *feature.Times {
	m := p.Measured
	if m == nil {
		return nil
	}
	return &feature.Times{Func: m.Func, Device: m.Device, Ns: m.ElapsedNs, Ops: m.Ops}
}
