package server

import (
	"context"
	"encoding/json"

	"go.lsp.dev/jsonrpc2"
	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"

	"dmir/lsp/connection"
	"dmir/lsp/feature"
	"dmir/lsp/job"
	"dmir/lsp/session"
	"dmir/lsp/workspace"
)

// lensData identifies a lens whose title is requested later.
type lensData struct {
	URI  string `json:"uri"`
	Func string `json:"func"`
}

// codeLens answers for programs and for the kernels of a view of CUDA text. The
// devices are looked for before the document is held: it may take a while.
func codeLens(s *server, raw jsonrpc2.RawMessage) (connection.Work, error) {
	p, err := connection.Decode[protocol.CodeLensParams](raw)
	if err != nil {
		return nil, err
	}
	if v, ok := session.ParseView(string(p.TextDocument.URI)); ok && v.Name == session.CUDAView {
		lenses, err := s.pages.KernelLenses(v)
		return func(context.Context) (any, error) { return lenses, err }, nil
	}
	look, err := programLenses(s, raw)
	if err != nil {
		return nil, err
	}
	setting := s.Docs.Settings().Device
	return func(ctx context.Context) (any, error) {
		feature.DevicesFor(setting)
		return look(ctx)
	}, nil
}

var programLenses = onDocument(
	func(p *protocol.CodeLensParams) uri.URI { return p.TextDocument.URI },
	func(_ context.Context, s *server, p session.Place, _ *protocol.CodeLensParams) (any, error) {
		out := []protocol.CodeLens{}
		var line, nth uint32
		for _, l := range feature.Lenses(p.Program(), s.lensOptions(p)) {
			lens := protocol.CodeLens{Range: p.Range(l.Span)}
			// Neovim puts the lenses of a line in the order of their columns, in any order where these are equal.
			if nth++; len(out) == 0 || lens.Range.Start.Line != line {
				line, nth = lens.Range.Start.Line, 0
			}
			lens.Range.Start.Character = min(lens.Range.Start.Character+nth, lens.Range.End.Character)
			var err error
			if l.Title == "" {
				lens.Data, err = json.Marshal(lensData{p.URI, l.Func})
			} else {
				lens.Command, err = lensCommand(p.URI, l)
			}
			if err != nil {
				return nil, err
			}
			out = append(out, lens)
		}
		return out, nil
	})

func (s *server) lensOptions(p session.Place) feature.LensOptions {
	return feature.LensOptions{
		Devices: feature.DevicesFor(p.Settings.Device), Kept: p.Kept(), Saved: s.saved.differs(p), Plan: job.PlanChoiceOf(p),
		Planned: func(fn string) bool {
			made := s.jobs.Planned(p.Key, fn)
			return made != nil && made.Src.Text() == p.Src.Text()
		},
	}
}

// lensCommand is what a lens does, with its argument.
func lensCommand(uri string, l feature.Lens) (protocol.Command, error) {
	c := protocol.Command{Title: l.Title, Command: l.Command}
	if l.Command == "" {
		return c, nil
	}
	var items []protocol.Command
	for _, m := range l.More {
		item, err := lensCommand(uri, m)
		if err != nil {
			return c, err
		}
		items = append(items, item)
	}
	arg, err := json.Marshal(struct {
		URI      string             `json:"uri"`
		Func     string             `json:"func,omitempty"`
		Kind     string             `json:"kind,omitempty"`
		Function string             `json:"function,omitempty"`
		View     string             `json:"view,omitempty"`
		Items    []protocol.Command `json:"items,omitempty"` // for editors that show the choice themselves
	}{URI: uri, View: l.View, Func: onlyIf(l.Panel == "", l.Func), Kind: l.Panel, Function: onlyIf(l.Panel != "", l.Func), Items: items})
	c.Arguments = []protocol.LSPAny{arg}
	return c, err
}

func onlyIf(ok bool, s string) string {
	if ok {
		return s
	}
	return ""
}

// resolveCodeLens gives a lens its totals once it is in view. One of a function
// that is gone keeps an empty title until the editor asks for lenses again.
func resolveCodeLens(s *server, raw jsonrpc2.RawMessage) (connection.Work, error) {
	lens, err := connection.Decode[protocol.CodeLens](raw)
	if err != nil {
		return nil, err
	}
	var data lensData
	if len(lens.Data) > 0 && json.Unmarshal(lens.Data, &data) != nil {
		return nil, jsonrpc2.NewError(jsonrpc2.InvalidParams, "not a code lens of this server")
	}
	snap := s.Docs.Snapshot(session.AddressOf(uri.URI(data.URI)).Key)
	return func(context.Context) (any, error) {
		if snap != nil && data.Func != "" {
			snap.With(func(v *workspace.View) {
				lens.Command = protocol.Command{Title: feature.Totals(v.Program(), v.Kept(), data.Func)}
			})
		}
		return lens, nil
	}, nil
}
