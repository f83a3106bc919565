package page

import (
	"context"
	"strings"

	"go.lsp.dev/jsonrpc2"
	"go.lsp.dev/uri"

	"dmir/analysis/report"
	"dmir/lsp/connection"
	"dmir/lsp/session"
)

// ChangesArgs name two open documents: a text, and an older version of it.
type ChangesArgs struct {
	URI  string
	Base string
}

// Changes are how the costs of lines differ between two versions.
type Changes struct {
	Text []Change `json:"text"` // of the lines of the text
	Base []Change `json:"base"` // of the lines of the older version whose ops are gone
}

// Change is what a line costs more or less than before.
type Change struct {
	Line  int    `json:"line"`  // 0-based
	Label string `json:"label"` // "+12.3 µs · −33.6 MB"
	Sign  int    `json:"sign"`  // −1 where it takes less, 1 where it takes more
	Why   string `json:"why"`   // "changed", "added", "into kernel at line 8"
}

// Changes compares two open documents line by line.
func (ps *Pages) Changes(ctx context.Context, args ChangesArgs) (Changes, error) {
	out := Changes{Text: []Change{}, Base: []Change{}}
	base := ps.s.Docs.Snapshot(session.AddressOf(uri.URI(args.Base)).Key)
	if base == nil {
		return out, jsonrpc2.NewError(connection.RequestFailed, "the older version is not open")
	}
	at, err := ps.placeOf(ctx, args.URI, "", false)
	if err != nil {
		return out, failed(err)
	}
	old := ps.versions.program(base.Src.Text(), base.Path, at.opts)
	_, err = ps.s.OnPlace(args.URI, func(_ context.Context, p session.Place) (any, error) {
		data, err := report.Build(p.Program(), report.KindDiff, "", report.Options{Old: old})
		if err != nil {
			return nil, err
		}
		for _, f := range data.Diff.Functions {
			for _, o := range f.Ops {
				c, ok := changeOf(o)
				switch {
				case !ok || o.At() < 1:
				case o.Status == report.StatusRemoved || o.Status == report.StatusFused:
					out.Base = append(out.Base, c)
				default:
					out.Text = append(out.Text, c)
				}
			}
		}
		return nil, nil
	})(ctx)
	return out, failed(err)
}

// changeOf is the change of an op, by the time where it has one; ok is false if it costs the same.
func changeOf(o report.OpDiff) (c Change, ok bool) {
	c = Change{Line: o.At() - 1, Why: o.Note}
	if c.Why == "" {
		c.Why = o.Status
	}
	var parts []string
	for _, d := range []report.Delta{o.Time, o.Moved} {
		if d.ChangeLabel == "" || d.ChangeLabel == "0" {
			continue
		}
		parts = append(parts, d.ChangeLabel)
		if c.Sign == 0 && d.Change != nil && *d.Change != 0 {
			c.Sign = 1
			if *d.Change < 0 {
				c.Sign = -1
			}
		}
	}
	c.Label = strings.Join(parts, " · ")
	return c, c.Label != ""
}
