package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"unicode/utf8"

	"go.lsp.dev/jsonrpc2"
	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"

	"dmir/analysis/report"
	"dmir/analysis/report/page"
	"dmir/lsp/loopback"
	"dmir/lsp/workspace"
)

// methodPanelData asks for what a panel shows now, for editors that draw panels
// themselves.
const methodPanelData = "dmir/panelData"

// panelArgs name a panel. Function is the one that the panel chooses where it
// is "".
type panelArgs struct {
	URI      string `json:"uri"`
	Kind     string `json:"kind"`
	Function string `json:"function"`
}

// panelData answers methodPanelData with the data and the version of the text
// that they are of.
func panelData(s *server, raw jsonrpc2.RawMessage) (work, error) {
	var args panelArgs
	if err := json.Unmarshal(raw, &args); err != nil || args.URI == "" {
		return nil, jsonrpc2.Errorf(jsonrpc2.InvalidParams, `%s takes {"uri": …, "kind": …, "function": …}`, methodPanelData)
	}
	return s.onPlace(args.URI, func(ctx context.Context, p place) (any, error) {
		data, err := s.panel(p, args.Kind, args.Function)
		if err != nil {
			return nil, err
		}
		return answer(struct {
			Version int32       `json:"version"`
			Data    report.Data `json:"data"`
		}{p.Version, data})
	}), nil
}

// panel is the data of a panel; a diff compares with the file on disk.
func (s *server) panel(p place, kind, function string) (report.Data, error) {
	var o report.Options
	if kind == report.KindDiff {
		var err error
		if o, err = s.withSaved(p); err != nil {
			return report.Data{}, err
		}
	}
	data, err := report.Build(p.Program(), kind, function, o)
	if err != nil {
		return report.Data{}, jsonrpc2.NewError(requestFailed, err.Error())
	}
	data.File = s.folders.relative(p.Path)
	if data.Diff != nil {
		data.Diff.New = data.File
	}
	return data, nil
}

// withSaved are the options of a comparison with the file on disk.
func (s *server) withSaved(p place) (report.Options, error) {
	if p.Path == p.Key {
		return report.Options{}, jsonrpc2.NewError(requestFailed, "the document was never saved: there is nothing to compare it with")
	}
	snap, err := s.docs.Read(p.Address)
	if err != nil {
		return report.Options{}, jsonrpc2.NewError(requestFailed, err.Error())
	}
	saved, err := held(snap) // nobody else has it: it need not be given back
	if err != nil {
		return report.Options{}, err
	}
	return report.Options{Old: saved.Program(), OldName: "saved"}, nil
}

// panelCommand draws a panel: the page itself for an editor that shows it, else
// in a browser.
func (s *server) panelCommand(ctx context.Context, p place, args panelArgs) (any, error) {
	data, err := s.panel(p, args.Kind, args.Function)
	if err != nil {
		return nil, err
	}
	p.letGo()
	shown := struct {
		URI      string `json:"uri"`
		Kind     string `json:"kind"`
		Function string `json:"function"`
		Title    string `json:"title"`
		HTML     string `json:"html,omitempty"`
		URL      string `json:"url,omitempty"`
	}{URI: p.URI, Kind: args.Kind, Function: data.Function, Title: data.Title}
	if s.features.panels {
		html, err := report.HTML(data)
		if err != nil {
			return nil, err
		}
		shown.HTML = string(html)
		return answer(shown)
	}
	if s.docs.Snapshot(p.Key) == nil {
		return nil, jsonrpc2.NewError(requestFailed, "a panel in the browser is of an open document")
	}
	if shown.URL, err = s.openPage(p, args.Kind, data); err != nil {
		return nil, jsonrpc2.NewError(requestFailed, err.Error())
	}
	s.browse(ctx, shown.URL, data.Title)
	return answer(shown)
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

// openPage serves a panel and gives its address.
func (s *server) openPage(p place, kind string, data report.Data) (string, error) {
	one := &panelPage{key: p.Key, kind: kind}
	one.function.Store(data.Function)
	h, err := s.live.browser.Add(loopback.Page{
		HTML: func(ctx context.Context, nonce string) ([]byte, error) {
			data, err := s.pageData(ctx, one)
			if err != nil {
				return nil, err
			}
			html, err := report.HTML(data)
			return bytes.ReplaceAll(html, []byte(page.Nonce), []byte(nonce)), err
		},
		Post: func(ctx context.Context, name string, body []byte) error { return s.fromPage(ctx, one, name, body) },
	})
	if err != nil {
		return "", err
	}
	one.handle = h
	s.live.addPage(one)
	return h.URL, nil
}

// pageData is what a page shows now.
func (s *server) pageData(ctx context.Context, one *panelPage) (data report.Data, err error) {
	err = fmt.Errorf("the document is closed")
	s.current(ctx, one.key, func(p place) { data, err = s.panel(p, one.kind, one.shows()) })
	return data, err
}

// refreshPage sends a page its data. Where there are none, as while a function's
// name is being typed, it keeps what it shows.
func (s *server) refreshPage(ctx context.Context, one *panelPage) {
	if !one.handle.Open() {
		return
	}
	data, err := s.pageData(ctx, one)
	if err != nil {
		return
	}
	message, err := json.Marshal(map[string]any{"type": "data", "data": data})
	if err == nil {
		one.handle.Send("data", message)
	}
}

// fromPage takes what a page says: that a place is to be shown in the editor, or
// that it is to show another function.
func (s *server) fromPage(ctx context.Context, one *panelPage, name string, body []byte) error {
	defer s.recovered("a panel")
	var said struct {
		Line      int    `json:"line"` // numbers from 1, in characters, as the page has them
		Column    int    `json:"column"`
		EndColumn int    `json:"endColumn"`
		Name      string `json:"name"`
	}
	if err := json.Unmarshal(body, &said); err != nil {
		return fmt.Errorf("the message is not what %q takes", name)
	}
	switch name {
	case "reveal":
		var where *protocol.ShowDocumentParams
		s.current(ctx, one.key, func(p place) {
			yes := true
			where = &protocol.ShowDocumentParams{URI: uri.URI(p.URI), TakeFocus: &yes, Selection: p.characters(said.Line, said.Column, said.EndColumn)}
		})
		if where == nil {
			return fmt.Errorf("the document is closed")
		}
		if !s.features.showDocument {
			return fmt.Errorf("the editor shows no place that a page asks for")
		}
		return s.client.call(ctx, protocol.MethodWindowShowDocument, where, nil)
	case "function":
		was := one.shows()
		one.function.Store(said.Name)
		if _, err := s.pageData(ctx, one); err != nil {
			one.function.Store(was)
			return err
		}
		s.refreshPage(ctx, one)
		return nil
	}
	return fmt.Errorf("there is no message %q", name)
}

// characters is a range within one line given in characters from 1; what lies
// outside the text is moved to its edge.
func (p place) characters(line, column, endColumn int) *protocol.Range {
	line = min(max(line, 1), p.Src.Lines()) - 1
	text, start := p.Src.Line(line), p.Src.LineStart(line)
	offset := func(column int) int {
		off := 0
		for n := 1; n < column && off < len(text); n++ {
			_, size := utf8.DecodeRuneInString(text[off:])
			off += size
		}
		return start + off
	}
	return &protocol.Range{Start: p.at(offset(column)), End: p.at(offset(max(column, endColumn)))}
}

// browse has the editor open an address in a browser, or says it.
func (s *server) browse(ctx context.Context, address, title string) {
	if s.features.showDocument {
		yes := true
		var res protocol.ShowDocumentResult
		err := s.client.call(ctx, protocol.MethodWindowShowDocument, &protocol.ShowDocumentParams{URI: uri.URI(address), External: &yes}, &res)
		if err == nil && res.Success {
			return
		}
	}
	s.client.show(protocol.MessageTypeInfo, title+": "+address)
}

// selected tells the pages of a document where the editor's cursor is.
func (s *server) selected(snap *workspace.Snapshot, line int) {
	if snap == nil {
		return
	}
	for _, one := range s.live.pagesOf(snap.Key) {
		one.handle.Send("select", fmt.Appendf(nil, `{"type":"select","line":%d}`, line+1))
	}
}

// selectParams are of the notification dmir/select: where the cursor is.
type selectParams struct {
	TextDocument protocol.TextDocumentIdentifier `json:"textDocument"`
	Position     protocol.Position               `json:"position"`
}

// selectPlace reads its parameters by hand: they are none of the protocol's.
func selectPlace(s *server, raw jsonrpc2.RawMessage) error {
	var p selectParams
	if err := json.Unmarshal(raw, &p); err != nil {
		return err
	}
	s.selected(s.docs.Snapshot(address(p.TextDocument.URI).Key), position(p.Position).Line)
	return nil
}
