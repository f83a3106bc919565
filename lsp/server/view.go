package server

import (
	"context"
	"encoding/json"
	"maps"
	"net/url"
	"path"
	"slices"
	"strings"

	"go.lsp.dev/jsonrpc2"
	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"

	"dmir/lsp/feature"
	"dmir/lsp/worker"
	"dmir/syntax/diag"
)

// viewScheme is that of virtual documents: dmir:/VIEW/NAME.EXT?DOCUMENT, the
// address of the document percent-encoded, with " @FUNCTION" behind it where the
// view is of one function; and dmir:/rule/CODE.md.
const viewScheme = "dmir"

// view is one way to show a program.
type view struct {
	ext string
	// One of these makes the text: of a program, or of a function that a worker
	// has compiled.
	text  func(context.Context, *server, place) (string, error)
	built func(*worker.Build) string
	code  bool // built needs machine code
}

const ruleView = "rule"

var views = allViews()

func allViews() map[string]view {
	all := maps.Clone(programViews)
	maps.Copy(all, builtViews())
	return all
}

var programViews = map[string]view{
	"generic":  {ext: ".mlir", text: func(_ context.Context, _ *server, p place) (string, error) { return feature.Generic(p.Program()), nil }},
	"expanded": {ext: ".dmir", text: func(_ context.Context, _ *server, p place) (string, error) { return feature.Expanded(p.Program()), nil }},
	"fixed":    {ext: ".dmir", text: func(ctx context.Context, _ *server, p place) (string, error) { return p.Fixed(ctx), ctx.Err() }},
	"cost": {ext: ".txt", text: func(_ context.Context, _ *server, p place) (string, error) {
		c, err := feature.CostOf(p.Program(), p.Measured, "")
		if err != nil {
			return "", err
		}
		return c.Title + "\n\n" + c.Text, nil
	}},
}

// viewOf is what an address of a view names.
type viewOf struct {
	Name     string
	File     string // the last part of the address's path
	Document string // "" for rules
	Func     string // without "@"; "" where the view is of the whole program, or of its only function
}

// viewAddress is the address of a view of a document, or of one of its functions.
func viewAddress(name, document, fn string) string {
	base := path.Base(document)
	if u, err := url.Parse(document); err == nil {
		base = path.Base(u.Path)
		if u.Opaque != "" {
			base = path.Base(u.Opaque)
		}
	}
	base = strings.TrimSuffix(base, path.Ext(base))
	query := document
	if fn != "" {
		query += funcMark + fn
		base = strings.Map(func(r rune) rune {
			if strings.ContainsRune("/\\?#% ", r) {
				return '_'
			}
			return r
		}, fn)
	}
	if strings.Trim(base, "/.") == "" {
		base = "program"
	}
	u := url.URL{Scheme: viewScheme, OmitHost: true, Path: "/" + name + "/" + base + views[name].ext, RawQuery: strings.ReplaceAll(url.QueryEscape(query), "+", "%20")}
	return u.String()
}

// funcMark stands between the address of a document, which holds no blank, and
// the name of a function.
const funcMark = " @"

// parseView takes an address of a view apart; ok is false for any other.
func parseView(address string) (v viewOf, ok bool) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != viewScheme {
		return viewOf{}, false
	}
	parts := strings.Split(strings.TrimPrefix(u.Path, "/"), "/")
	query, err := url.PathUnescape(u.RawQuery)
	if err != nil || len(parts) != 2 {
		return viewOf{}, false
	}
	v.Name, v.File, v.Document = parts[0], parts[1], query
	if views[v.Name].built != nil {
		v.Document, v.Func, _ = strings.Cut(query, funcMark)
	}
	return v, true
}

// textDocumentContent gives the text of a virtual document. Its address is read
// as the editor spells it: it comes back in refreshes.
func textDocumentContent(s *server, raw jsonrpc2.RawMessage) (work, error) {
	var params struct {
		URI string `json:"uri"`
	}
	if err := json.Unmarshal(raw, &params); err != nil {
		return nil, jsonrpc2.Errorf(jsonrpc2.InvalidParams, "malformed parameters: %v", err)
	}
	get, err := s.viewText(params.URI)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) (any, error) {
		text, err := get(ctx)
		if err != nil {
			return nil, err
		}
		return &protocol.TextDocumentContentResult{Text: text}, nil
	}, nil
}

// viewText finds what an address shows, on the reading loop, and gives what makes
// its text.
func (s *server) viewText(at string) (func(context.Context) (string, error), error) {
	of, ok := parseView(at)
	v, known := views[of.Name]
	switch {
	case ok && of.Name == ruleView:
		code := strings.TrimSuffix(of.File, path.Ext(of.File))
		c := diag.Find(code)
		if c.Code == "" {
			return nil, jsonrpc2.Errorf(requestFailed, "there is no rule %q", code)
		}
		return func(context.Context) (string, error) { return c.Markdown(), nil }, nil
	case !ok || !known || of.Document == "":
		return nil, jsonrpc2.Errorf(jsonrpc2.InvalidParams, "%q is no document of dmir", at)
	}
	s.live.watchView(at, address(uri.URI(of.Document)).Key)
	if v.built != nil {
		return func(ctx context.Context) (string, error) { return s.builtText(ctx, of, v) }, nil
	}
	do := s.onPlace(of.Document, func(ctx context.Context, p place) (any, error) { return v.text(ctx, s, p) })
	return func(ctx context.Context) (string, error) {
		text, err := do(ctx)
		if err != nil {
			return "", err
		}
		return text.(string), nil
	}, nil
}

// onPlace is work on a document that is open, or else on disk.
func (s *server) onPlace(document string, f func(context.Context, place) (any, error)) work {
	where := address(uri.URI(document))
	snap := s.docs.Snapshot(where.Key)
	return func(ctx context.Context) (any, error) {
		if snap == nil {
			var err error
			if snap, err = s.docs.Read(where); err != nil {
				return nil, jsonrpc2.NewError(requestFailed, err.Error())
			}
		}
		at, err := s.newest(snap)
		if err != nil {
			return nil, err
		}
		defer at.letGo()
		return f(ctx, at)
	}
}

// viewArgs are the arguments of dmir.view. URI may be a view's own address, and
// View is "" then.
type viewArgs struct {
	URI  string `json:"uri"`
	View string `json:"view"`
	Func string `json:"func"` // of views of one function
	Line *int   `json:"line"` // of the program, from 0: the kernel that it became is selected
}

// viewCommand has the editor show a view. One that knows no virtual documents
// gets the text, to show it in its own way.
func (s *server) viewCommand(args viewArgs, token protocol.ProgressToken) (work, error) {
	at := args.URI
	v, known := views[args.View]
	args.Func = strings.TrimPrefix(args.Func, "@")
	switch {
	case known && v.built == nil:
		at = viewAddress(args.View, args.URI, "")
	case known:
		return func(ctx context.Context) (any, error) { return s.showBuilt(ctx, args, token) }, nil
	default:
		if _, ok := parseView(args.URI); !ok || args.View != "" {
			return nil, jsonrpc2.Errorf(jsonrpc2.InvalidParams, "there is no view %q; there are %s", args.View, strings.Join(viewNames(), ", "))
		}
	}
	return func(ctx context.Context) (any, error) { return s.showView(ctx, at, nil) }, nil
}

// showView shows the view at an address, with a part of it selected where the
// editor does that; or answers with its text.
func (s *server) showView(ctx context.Context, at string, selected *protocol.Range) (any, error) {
	shown := struct {
		URI       string          `json:"uri"`
		Text      *string         `json:"text,omitempty"`
		Selection *protocol.Range `json:"selection,omitempty"`
	}{URI: at, Selection: selected}
	if s.features.virtualDocuments && s.features.showDocument {
		if err := s.showDocument(ctx, at, selected); err != nil {
			return nil, err
		}
		return answer(shown)
	}
	get, err := s.viewText(at)
	if err != nil {
		return nil, err
	}
	text, err := get(ctx)
	if err != nil {
		return nil, err
	}
	shown.Text = &text
	return answer(shown)
}

// showDocument has the editor show a document, and select a part of it.
func (s *server) showDocument(ctx context.Context, at string, selected *protocol.Range) error {
	yes := true
	var res protocol.ShowDocumentResult
	params := &protocol.ShowDocumentParams{URI: uri.URI(at), TakeFocus: &yes, Selection: selected}
	if err := s.client.call(ctx, protocol.MethodWindowShowDocument, params, &res); err != nil {
		return err
	}
	if !res.Success {
		return jsonrpc2.NewError(requestFailed, "the editor did not show "+at)
	}
	return nil
}

func viewNames() []string { return slices.Sorted(maps.Keys(views)) }
