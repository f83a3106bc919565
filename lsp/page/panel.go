package page

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"

	"go.lsp.dev/jsonrpc2"
	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"

	"dmir/analysis/report"
	"dmir/analysis/report/page"
	"dmir/lsp/connection"
	"dmir/lsp/loopback"
	"dmir/lsp/session"
	"dmir/lsp/workspace"
)

// PanelArgs name a panel. Function is the one that the panel chooses where it
// is "".
type PanelArgs struct {
	URI      string `json:"uri"`
	Kind     string `json:"kind"`
	Function string `json:"function"`
}

// Data returns the data of a panel; a diff compares with the file on disk.
func (ps *Pages) Data(p session.Place, kind, function string) (report.Data, error) {
	var o report.Options
	if kind == report.KindDiff {
		var err error
		if o, err = ps.withSaved(p); err != nil {
			return report.Data{}, err
		}
	}
	data, err := report.Build(p.Program(), kind, function, o)
	if err != nil {
		return report.Data{}, jsonrpc2.NewError(connection.RequestFailed, err.Error())
	}
	data.File = ps.s.Folders.Relative(p.Path)
	if data.Diff != nil {
		data.Diff.New = data.File
	}
	return data, nil
}

// withSaved are the options of a comparison with the file on disk.
func (ps *Pages) withSaved(p session.Place) (report.Options, error) {
	if p.Path == p.Key {
		return report.Options{}, jsonrpc2.NewError(connection.RequestFailed, "the document was never saved, so there is no version to compare it with")
	}
	snap, err := ps.s.Docs.Read(p.Address)
	if err != nil {
		return report.Options{}, jsonrpc2.NewError(connection.RequestFailed, err.Error())
	}
	saved, err := session.Hold(snap) // no other code has it: it need not be released
	if err != nil {
		return report.Options{}, err
	}
	return report.Options{Old: saved.Program(), OldName: "saved"}, nil
}

// Panel draws a panel: the page itself for an editor that shows it, else
// in a browser.
func (ps *Pages) Panel(ctx context.Context, p session.Place, args PanelArgs) (any, error) {
	data, err := ps.Data(p, args.Kind, args.Function)
	if err != nil {
		return nil, err
	}
	p.Release()
	shown := struct {
		URI      string `json:"uri"`
		Kind     string `json:"kind"`
		Function string `json:"function"`
		Title    string `json:"title"`
		HTML     string `json:"html,omitempty"`
		URL      string `json:"url,omitempty"`
	}{URI: p.URI, Kind: args.Kind, Function: data.Function, Title: data.Title}
	if ps.s.Features.Panels {
		html, err := report.HTML(data)
		if err != nil {
			return nil, err
		}
		shown.HTML = string(html)
		return session.Answer(shown)
	}
	if ps.s.Docs.Snapshot(p.Key) == nil {
		return nil, jsonrpc2.NewError(connection.RequestFailed, "a panel in the browser needs an open document")
	}
	if shown.URL, err = ps.openPage(p, args.Kind, data); err != nil {
		return nil, jsonrpc2.NewError(connection.RequestFailed, err.Error())
	}
	ps.browse(ctx, shown.URL, data.Title)
	return session.Answer(shown)
}

// panelPage is a panel in a browser.
type panelPage struct {
	key, kind string
	function  atomic.Value // string: the one that is shown
	handle    *loopback.Handle
}

func (p *panelPage) shows() string {
	name, _ := p.function.Load().(string)
	return name
}

// openPage serves a panel and returns its address.
func (ps *Pages) openPage(p session.Place, kind string, data report.Data) (string, error) {
	one := &panelPage{key: p.Key, kind: kind}
	one.function.Store(data.Function)
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
func (ps *Pages) pageData(ctx context.Context, one *panelPage) (data report.Data, err error) {
	err = fmt.Errorf("the document is closed")
	ps.s.Current(ctx, one.key, func(p session.Place) { data, err = ps.Data(p, one.kind, one.shows()) })
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
	}
	if err := json.Unmarshal(body, &args); err != nil {
		return fmt.Errorf("invalid content of the message %q", name)
	}
	switch name {
	case "reveal":
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
		was := one.shows()
		one.function.Store(args.Name)
		if _, err := ps.pageData(ctx, one); err != nil {
			one.function.Store(was)
			return err
		}
		ps.refreshPage(ctx, one)
		return nil
	}
	return fmt.Errorf("there is no message %q", name)
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
