package page

import (
	"context"
	"maps"
	"path"
	"slices"
	"strings"

	"go.lsp.dev/jsonrpc2"
	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"

	"dmir/lsp/connection"
	"dmir/lsp/feature"
	"dmir/lsp/session"
	"dmir/lsp/worker"
	"dmir/syntax/diag"
)

// view is one way to show a program.
type view struct {
	// One of these makes the text: of a program, or of a function that a worker
	// has compiled.
	text  func(context.Context, session.Place) (string, error)
	built func(*worker.Build) string
	code  bool // built needs machine code
}

var views = allViews()

func allViews() map[string]view {
	all := maps.Clone(programViews)
	maps.Copy(all, builtViews())
	return all
}

var programViews = map[string]view{
	"generic":   {text: func(_ context.Context, p session.Place) (string, error) { return feature.Generic(p.Program()), nil }},
	"converted": {text: func(_ context.Context, p session.Place) (string, error) { return feature.Converted(p.Program()), nil }},
	"expanded":  {text: func(_ context.Context, p session.Place) (string, error) { return feature.Expanded(p.Program()), nil }},
	"fixed":     {text: func(ctx context.Context, p session.Place) (string, error) { return p.Fixed(ctx), ctx.Err() }},
	"cost": {text: func(_ context.Context, p session.Place) (string, error) {
		c, err := feature.CostOf(p.Program(), p.Measured, "")
		if err != nil {
			return "", err
		}
		return c.Title + "\n\n" + c.Text, nil
	}},
}

// Content finds what the address of a virtual document shows, on the reading loop,
// and returns the function that makes its text.
func (ps *Pages) Content(at string) (func(context.Context) (string, error), error) {
	of, ok := session.ParseView(at)
	v, known := views[of.Name]
	switch {
	case ok && of.Name == session.RuleView:
		code := strings.TrimSuffix(of.File, path.Ext(of.File))
		c := diag.Find(code)
		if c.Code == "" {
			return nil, jsonrpc2.Errorf(connection.RequestFailed, "there is no rule %q", code)
		}
		return func(context.Context) (string, error) { return c.Markdown(), nil }, nil
	case ok && of.Name == session.VersionView && of.Document != "":
		ps.shown.watchView(at, session.AddressOf(uri.URI(of.Document)).Key)
		return func(ctx context.Context) (string, error) { return ps.versionContent(ctx, of.Document, of.Func) }, nil
	case ok && of.Document != "" && (of.Name == session.PlansView || planNumber(of.Name) > 0):
		ps.shown.watchView(at, session.AddressOf(uri.URI(of.Document)).Key)
		return func(context.Context) (string, error) {
			return ps.planText(of.Document, of.Func, planNumber(of.Name)), nil
		}, nil
	case !ok || !known || of.Document == "":
		return nil, jsonrpc2.Errorf(jsonrpc2.InvalidParams, "%q is not a document of dmir", at)
	}
	ps.shown.watchView(at, session.AddressOf(uri.URI(of.Document)).Key)
	if v.built != nil {
		return func(ctx context.Context) (string, error) { return ps.builtText(ctx, of, v) }, nil
	}
	do := ps.s.OnPlace(of.Document, func(ctx context.Context, p session.Place) (any, error) { return v.text(ctx, p) })
	return func(ctx context.Context) (string, error) {
		text, err := do(ctx)
		if err != nil {
			return "", err
		}
		return text.(string), nil
	}, nil
}

// ViewArgs are the arguments of dmir.view. URI may be a view's own address, and
// View is "" then.
type ViewArgs struct {
	URI  string `json:"uri"`
	View string `json:"view"`
	Func string `json:"func"` // of views of one function
	Line *int   `json:"line"` // of the program, from 0: the kernel that it became is selected
}

// View has the editor show a view. An editor without virtual documents gets the
// text.
func (ps *Pages) View(args ViewArgs, token protocol.ProgressToken) (connection.Work, error) {
	at := args.URI
	v, known := views[args.View]
	args.Func = strings.TrimPrefix(args.Func, "@")
	switch {
	case args.View == session.PlansView || planNumber(args.View) > 0:
		at = session.ViewAddress(args.View, args.URI, args.Func)
	case known && v.built == nil:
		at = session.ViewAddress(args.View, args.URI, "")
	case known:
		return func(ctx context.Context) (any, error) { return ps.showBuilt(ctx, args, token) }, nil
	default:
		if _, ok := session.ParseView(args.URI); !ok || args.View != "" {
			return nil, jsonrpc2.Errorf(jsonrpc2.InvalidParams, "there is no view %q; there are %s", args.View, strings.Join(Views(), ", "))
		}
	}
	return func(ctx context.Context) (any, error) { return ps.showView(ctx, at, nil) }, nil
}

// showView shows the view at an address, with a part of it selected where the
// editor does that; or answers with its text.
func (ps *Pages) showView(ctx context.Context, at string, selected *protocol.Range) (any, error) {
	shown := struct {
		URI       string          `json:"uri"`
		Text      *string         `json:"text,omitempty"`
		Selection *protocol.Range `json:"selection,omitempty"`
	}{URI: at, Selection: selected}
	if ps.s.Features.VirtualDocuments && ps.s.Features.ShowDocument {
		if err := ps.s.ShowDocument(ctx, at, selected); err != nil {
			return nil, err
		}
		return session.Answer(shown)
	}
	get, err := ps.Content(at)
	if err != nil {
		return nil, err
	}
	text, err := get(ctx)
	if err != nil {
		return nil, err
	}
	shown.Text = &text
	return session.Answer(shown)
}

// Views returns the names of the views.
func Views() []string { return slices.Sorted(maps.Keys(views)) }
