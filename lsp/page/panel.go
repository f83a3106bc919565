package page

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"

	"go.lsp.dev/jsonrpc2"
	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"

	"dmir/analysis/attribution"
	"dmir/analysis/report"
	"dmir/analysis/report/page"
	"dmir/lsp/connection"
	"dmir/lsp/feature"
	"dmir/lsp/loopback"
	"dmir/lsp/session"
	"dmir/lsp/workspace"
	"dmir/syntax/source"
)

// PanelArgs name a panel. Function is the one that the panel chooses where it
// is "".
type PanelArgs struct {
	URI      string `json:"uri"`
	Kind     string `json:"kind"`
	Function string `json:"function"`
	Base     string `json:"base,omitempty"`    // of a diff: the old version; the saved file where it is ""
	Version  string `json:"version,omitempty"` // of a diff: the new version; the text where it is ""
}

// Data returns the data of a panel, and the version of the document that it is of.
// While the function has an error, they are those that it had before, as hints and
// lenses are.
func (ps *Pages) Data(ctx context.Context, args PanelArgs) (version int32, data report.Data, err error) {
	switch args.Kind {
	case report.KindDiff:
		return ps.diff(ctx, args)
	case report.KindHistory:
		return ps.history(ctx, args.URI)
	case report.KindPlans:
		return ps.plans(args)
	}
	_, err = ps.s.OnPlace(args.URI, func(_ context.Context, p session.Place) (_ any, err error) {
		version = p.Version
		panel := shownPanel{p.Key, args.Kind, args.Function}
		if data, err = report.Build(p.Program(), args.Kind, args.Function, report.Options{Both: true, Patterns: feature.Pictures(p.Program()), Sources: &attribution.Sources{Root: attribution.RootOf(p.Path)}}); err == nil {
			data.File = ps.s.Folders.Relative(p.Path)
		}
		span := source.Span{End: p.Src.Len()}
		if f := p.Program().Func(data.Function); err == nil && f != nil {
			span = f.Func.Op.Span
		}
		if d := p.Program().FirstError(span); d != nil {
			if good, ok := ps.shown.lastGood(panel); ok {
				data, err = good, nil
				data.Stale = "of the text " + feature.Before(p.Program(), d)
			}
		} else if err == nil {
			ps.shown.keepGood(panel, data)
		}
		data.Stale = cmp.Or(data.Stale, p.Kept().Doubt)
		return nil, err
	})(ctx)
	return version, data, failed(err)
}

// Panel draws a panel: the page itself for an editor that shows it, else
// in a browser.
func (ps *Pages) Panel(ctx context.Context, args PanelArgs) (any, error) {
	_, data, err := ps.Data(ctx, args)
	if err != nil {
		return nil, err
	}
	shown := struct {
		URI      string `json:"uri"`
		Kind     string `json:"kind"`
		Function string `json:"function"`
		Title    string `json:"title"`
		HTML     string `json:"html,omitempty"`
		URL      string `json:"url,omitempty"`
	}{URI: args.URI, Kind: args.Kind, Function: data.Function, Title: data.Title}
	if ps.s.Features.Panels {
		html, err := report.HTML(data)
		if err != nil {
			return nil, err
		}
		shown.HTML = string(html)
		return session.Answer(shown)
	}
	key := session.AddressOf(uri.URI(args.URI)).Key
	if ps.s.Docs.Snapshot(key) == nil {
		return nil, jsonrpc2.NewError(connection.RequestFailed, "a panel in the browser needs an open document")
	}
	args.Function = data.Function
	if shown.URL, err = ps.openPage(key, args); err != nil {
		return nil, jsonrpc2.NewError(connection.RequestFailed, err.Error())
	}
	ps.browse(ctx, shown.URL, data.Title)
	return session.Answer(shown)
}

// panelPage is a panel in a browser.
type panelPage struct {
	key    string
	args   atomic.Pointer[PanelArgs] // what it shows
	handle *loopback.Handle
}

// openPage serves a panel and returns its address.
func (ps *Pages) openPage(key string, args PanelArgs) (string, error) {
	one := &panelPage{key: key}
	one.args.Store(&args)
	h, err := ps.shown.browser.Add(loopback.Page{
		HTML: func(ctx context.Context, nonce string) ([]byte, error) {
			data, err := ps.pageData(ctx, one)
			if err != nil {
				return nil, err
			}
			html, err := report.HTML(data)
			return bytes.ReplaceAll(html, []byte(page.Nonce), []byte(nonce)), err
		},
		Post: func(ctx context.Context, name string, body []byte) error { return ps.fromPage(ctx, one, name, body) },
	})
	if err != nil {
		return "", err
	}
	one.handle = h
	ps.shown.addPage(one)
	return h.URL, nil
}

// pageData is what a page shows now.
func (ps *Pages) pageData(ctx context.Context, one *panelPage) (report.Data, error) {
	if ps.s.Docs.Snapshot(one.key) == nil {
		return report.Data{}, fmt.Errorf("the document is closed")
	}
	_, data, err := ps.Data(ctx, *one.args.Load())
	return data, err
}

// refreshPage sends a page its data. Where there are none, as while a function's
// name is being typed, it keeps what it shows.
func (ps *Pages) refreshPage(ctx context.Context, one *panelPage) {
	if !one.handle.Open() {
		return
	}
	data, err := ps.pageData(ctx, one)
	if err != nil {
		return
	}
	message, err := json.Marshal(map[string]any{"type": "data", "data": data})
	if err == nil {
		one.handle.Send("data", message)
	}
}

// fromPage handles a message of a page: to show a place in the editor, or to switch
// the page to another function.
func (ps *Pages) fromPage(ctx context.Context, one *panelPage, name string, body []byte) error {
	defer ps.recovered("a panel")
	var args struct {
		Line      int    `json:"line"` // numbers from 1, in characters, as the page has them
		Column    int    `json:"column"`
		EndColumn int    `json:"endColumn"`
		Name      string `json:"name"`
		ID        int    `json:"id"`      // of an entry of the history
		Base      string `json:"base"`    // of a comparison
		Version   string `json:"version"` // the same; of a place to show: the version that it is in
	}
	if err := json.Unmarshal(body, &args); err != nil {
		return fmt.Errorf("invalid content of the message %q", name)
	}
	switch name {
	case "reveal":
		if args.Version != "" && args.Version != versionText {
			at := protocol.Position{Line: uint32(min(max(args.Line, 1), 1<<31-1) - 1)}
			shown := one.args.Load()
			return ps.showVersion(ctx, shown.URI, versionOf(args.Version, versionText), shown.Function, &protocol.Range{Start: at, End: at})
		}
		var where *protocol.ShowDocumentParams
		ps.s.Current(ctx, one.key, func(p session.Place) {
			yes := true
			where = &protocol.ShowDocumentParams{URI: uri.URI(p.URI), TakeFocus: &yes, Selection: p.Characters(args.Line, args.Column, args.EndColumn)}
		})
		if where == nil {
			return fmt.Errorf("the document is closed")
		}
		if !ps.s.Features.ShowDocument {
			return fmt.Errorf("the editor cannot open locations on request of a page")
		}
		return ps.s.Call(ctx, protocol.MethodWindowShowDocument, where, nil)
	case "function":
		return ps.reshow(ctx, one, func(shown *PanelArgs) { shown.Function = args.Name })
	case "revert":
		_, err := ps.revert(ctx, one.args.Load().URI, args.ID)
		return err
	case "compare":
		return ps.reshow(ctx, one, func(shown *PanelArgs) { shown.Base, shown.Version = args.Base, args.Version })
	}
	return fmt.Errorf("there is no message %q", name)
}

// reshow has a page show something else, unless there is nothing to show then.
func (ps *Pages) reshow(ctx context.Context, one *panelPage, change func(*PanelArgs)) error {
	was := one.args.Load()
	now := *was
	change(&now)
	one.args.Store(&now)
	if _, err := ps.pageData(ctx, one); err != nil {
		one.args.Store(was)
		return err
	}
	ps.refreshPage(ctx, one)
	return nil
}

// browse has the editor open an address in a browser, or shows the address.
func (ps *Pages) browse(ctx context.Context, address, title string) {
	if ps.s.Features.ShowDocument {
		yes := true
		var res protocol.ShowDocumentResult
		err := ps.s.Call(ctx, protocol.MethodWindowShowDocument, &protocol.ShowDocumentParams{URI: uri.URI(address), External: &yes}, &res)
		if err == nil && res.Success {
			return
		}
	}
	ps.s.Show(protocol.MessageTypeInfo, title+": "+address)
}

// Selected sends the pages of a document the line of the editor's cursor.
func (ps *Pages) Selected(snap *workspace.Snapshot, line int) {
	if snap == nil {
		return
	}
	for _, one := range ps.shown.pagesOf(snap.Key) {
		one.handle.Send("select", fmt.Appendf(nil, `{"type":"select","line":%d}`, line+1))
	}
}
