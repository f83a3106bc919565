package server

import (
	"go.lsp.dev/jsonrpc2"

	"dmir/lsp/feature"
	"dmir/lsp/session"
	"dmir/lsp/workspace"
	"dmir/syntax/source"
)

// methodHints asks for the hints of parts of a document as a column: for editors
// that show them beside the text. Inlay hints are the same in other words.
const methodHints = "dmir/hints"

// columnHint is the hint of one line.
type columnHint struct {
	Line     int    `json:"line"`            // 0-based
	Label    string `json:"label"`           // feature.LabelWidth characters
	Level    *int   `json:"level,omitempty"` // of heat, 0 to 9, by time where dmir.heat is off; absent where it has none
	Measured bool   `json:"measured"`        // or counted, rather than predicted
	Stale    bool   `json:"stale"`           // of the text, or by the dmir.toml, without the error that it has now
	Tooltip  string `json:"tooltip"`         // Markdown

	// Sharding is how the values that the line defines are divided over a mesh, absent where every
	// device has them whole.
	Sharding string `json:"sharding,omitempty"`
}

var hints = onRange(func(s *server, p session.Place, parts []source.Span, params rangeParams) (any, error) {
	s.diagnostics.Look(p.Snapshot, params.Ranges...)
	out := []columnHint{}
	if !p.Settings.Hints {
		return session.Answer(out)
	}
	if params.By == workspace.HeatOff {
		params.By = feature.HeatTime
	}
	for _, span := range parts {
		more, err := columnOf(p, span, params.By)
		if err != nil {
			return nil, jsonrpc2.NewError(jsonrpc2.InvalidParams, err.Error())
		}
		out = append(out, more...)
	}
	return session.Answer(out)
})

// columnOf is the column of one part.
func columnOf(p session.Place, span source.Span, by string) ([]columnHint, error) {
	heats, err := feature.Heats(p.Program(), by, span)
	if err != nil {
		return nil, err
	}
	levels := map[int]int{}
	for _, h := range heats {
		levels[p.Src.Pos(h.Span.Start).Line] = h.Level
	}
	var out []columnHint
	for _, h := range feature.Hints(p.Program(), p.Measured, p.Kept(), span) {
		line := p.Src.Pos(h.Offset).Line
		stale := h.Label.Mark == feature.MarkStale
		c := columnHint{Line: line, Label: h.Label.Column(), Measured: h.Label.Mark != "" && !stale, Stale: stale, Tooltip: h.Tooltip, Sharding: h.Sharding}
		if level, ok := levels[line]; ok {
			c.Level = &level
		}
		out = append(out, c)
	}
	return out, nil
}
