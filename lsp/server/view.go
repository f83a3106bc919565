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
	"dmir/lsp/workspace"
)

// viewScheme is that of virtual documents: dmir:/VIEW/NAME.EXT?DOCUMENT, the
// address of the document percent-encoded, and dmir:/rule/CODE.md.
const viewScheme = "dmir"

// view is one way to show a program.
type view struct {
	ext  string
	text func(context.Context, *server, place) (string, error)
}

const ruleView = "rule"

var views = map[string]view{
	"generic":  {".mlir", func(_ context.Context, _ *server, p place) (string, error) { return feature.Generic(p.Program()), nil }},
	"expanded": {".dmir", func(_ context.Context, _ *server, p place) (string, error) { return feature.Expanded(p.Program()), nil }},
	"fixed":    {".dmir", func(ctx context.Context, _ *server, p place) (string, error) { return p.Fixed(ctx), ctx.Err() }},
	"cost": {".txt", func(_ context.Context, _ *server, p place) (string, error) {
		c, err := feature.CostOf(p.Program(), p.Measured, "")
		if err != nil {
			return "", err
		}
		return c.Title + "\n\n" + c.Text, nil
	}},
}

// viewAddress is the address of a view of a document.
func viewAddress(name, document string) string {
	base := path.Base(document)
	if u, err := url.Parse(document); err == nil {
		base = path.Base(u.Path)
		if u.Opaque != "" {
			base = path.Base(u.Opaque)
		}
	}
	base = strings.TrimSuffix(base, path.Ext(base))
	if strings.Trim(base, "/.") == "" {
		base = "program"
	}
	u := url.URL{Scheme: viewScheme, OmitHost: true, Path: "/" + name + "/" + base + views[name].ext, RawQuery: strings.ReplaceAll(url.QueryEscape(document), "+", "%20")}
	return u.String()
}

// parseView takes an address of a view apart; ok is false for any other.
func parseView(address string) (name, file, document string, ok bool) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != viewScheme {
		return "", "", "", false
	}
	parts := strings.Split(strings.TrimPrefix(u.Path, "/"), "/")
	document, err = url.PathUnescape(u.RawQuery)
	if err != nil || len(parts) != 2 {
		return "", "", "", false
	}
	return parts[0], parts[1], document, true
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
	name, file, document, ok := parseView(at)
	v, known := views[name]
	switch {
	case ok && name == ruleView:
		code := strings.TrimSuffix(file, path.Ext(file))
		a, found := feature.ArticleOf(feature.Articles(worker.Codes, workspace.Codes), code)
		if !found {
			return nil, jsonrpc2.Errorf(requestFailed, "there is no rule %q", code)
		}
		return func(context.Context) (string, error) { return a.Markdown(), nil }, nil
	case !ok || !known || document == "":
		return nil, jsonrpc2.Errorf(jsonrpc2.InvalidParams, "%q is no document of dmir", at)
	}
	where := address(uri.URI(document))
	s.live.watchView(at, where.Key)
	do := s.onPlace(document, func(ctx context.Context, p place) (any, error) { return v.text(ctx, s, p) })
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
}

// viewCommand has the editor show a view. One that knows no virtual documents
// gets the text, to show it in its own way.
func (s *server) viewCommand(args viewArgs) (work, error) {
	at := args.URI
	if _, known := views[args.View]; known {
		at = viewAddress(args.View, args.URI)
	} else if _, _, _, ok := parseView(args.URI); !ok || args.View != "" {
		return nil, jsonrpc2.Errorf(jsonrpc2.InvalidParams, "there is no view %q; there are %s", args.View, strings.Join(viewNames(), ", "))
	}
	shown := struct {
		URI  string  `json:"uri"`
		Text *string `json:"text,omitempty"`
	}{URI: at}
	if s.features.virtualDocuments && s.features.showDocument {
		return func(ctx context.Context) (any, error) {
			yes := true
			var res protocol.ShowDocumentResult
			err := s.client.call(ctx, protocol.MethodWindowShowDocument, &protocol.ShowDocumentParams{URI: uri.URI(at), TakeFocus: &yes}, &res)
			if err != nil {
				return nil, err
			}
			if !res.Success {
				return nil, jsonrpc2.NewError(requestFailed, "the editor did not show "+at)
			}
			return answer(shown)
		}, nil
	}
	get, err := s.viewText(at)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) (any, error) {
		text, err := get(ctx)
		if err != nil {
			return nil, err
		}
		shown.Text = &text
		return answer(shown)
	}, nil
}

func viewNames() []string { return slices.Sorted(maps.Keys(views)) }
