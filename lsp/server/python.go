package server

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"

	"go.lsp.dev/jsonrpc2"
	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"

	"dmir/lsp/connection"
	"dmir/lsp/feature"
	"dmir/lsp/session"
	"dmir/lsp/traced"
	"dmir/lsp/workspace"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

// A pythonCall answers a request about a Python file.
type pythonCall func(s *server, v *traced.View, raw jsonrpc2.RawMessage) (any, error)

// pythonCalls are the requests that have an answer for Python files.
var pythonCalls = map[string]pythonCall{
	protocol.MethodTextDocumentHover:          pythonHover,
	protocol.MethodTextDocumentInlayHint:      pythonInlayHints,
	protocol.MethodTextDocumentCodeLens:       pythonLenses,
	protocol.MethodTextDocumentImplementation: pythonImplementation,
	methodHints: pythonColumn,
	methodHeat:  pythonHeat,
}

// orPython makes a callMethod of one for programs and one for Python files.
func orPython(python pythonCall, program callMethod) callMethod {
	return func(s *server, raw jsonrpc2.RawMessage) (connection.Work, error) {
		var p struct {
			TextDocument struct {
				URI string `json:"uri"`
			} `json:"textDocument"`
		}
		if json.Unmarshal(raw, &p) != nil || !traced.Is(session.AddressOf(uri.URI(p.TextDocument.URI)).Path) {
			return program(s, raw)
		}
		key := session.AddressOf(uri.URI(p.TextDocument.URI)).Key
		raw = slices.Clone(raw)
		return func(context.Context) (any, error) {
			v := s.python.View(key)
			if v == nil {
				return nil, nil
			}
			return python(s, v, raw)
		}, nil
	}
}

// pythonPlace converts between a Python file and the editor's positions.
func pythonPlace(s *server, v *traced.View) session.Place {
	return session.Bare(&workspace.Snapshot{Address: v.Address, Version: v.Version, Src: v.Src, Encoding: s.Docs.Encoding()})
}

// stale says why figures are not of this text, "" where they are.
func stale(v *traced.View) string {
	if !v.Older {
		return ""
	}
	return "the file has changed since it was traced; lines that changed show nothing"
}

func pythonHover(s *server, v *traced.View, raw jsonrpc2.RawMessage) (any, error) {
	p, err := connection.Decode[protocol.HoverParams](raw)
	if err != nil || v.Trace == nil {
		return nil, err
	}
	n := int(p.Position.Line)
	l := v.Line(n + 1)
	if l == nil || l.Written == nil {
		return nil, nil
	}
	h := feature.TracedHover{
		Written: l.Written, Compiled: l.Compiled, Trace: v.Trace.Trace, Sources: v.Trace.Sources, Program: v.Trace.Program,
		Total: v.Trace.Written.Total, Stale: stale(v),
	}
	side := v.Trace.Written
	if l.Compiled != nil {
		side = v.Trace.Compiled
	}
	h.Total = side.Total
	for _, f := range side.Functions {
		h.Peak = max(h.Peak, f.Peak)
	}
	at := pythonPlace(s, v)
	start := v.Src.LineStart(n)
	r := at.Range(source.Span{Start: start + len(indentOf(v.Src.Line(n))), End: start + len(v.Src.Line(n))})
	return &protocol.Hover{Contents: s.markup(h.Text()), Range: &r}, nil
}

func indentOf(line string) string {
	for i, r := range line {
		if r != ' ' && r != '\t' {
			return line[:i]
		}
	}
	return line
}

// within are the lines of v with a cost in a range of the editor, in the order of the text.
func within(v *traced.View, from, to uint32) []*traced.Line {
	var out []*traced.Line
	for _, l := range v.Lines() {
		if n := uint32(l.N - 1); from <= n && n <= to && l.Written != nil {
			out = append(out, l)
		}
	}
	slices.SortFunc(out, func(a, b *traced.Line) int { return a.N - b.N })
	return out
}

func pythonInlayHints(s *server, v *traced.View, raw jsonrpc2.RawMessage) (any, error) {
	p, err := connection.Decode[protocol.InlayHintParams](raw)
	out := []protocol.InlayHint{}
	if err != nil || v.Trace == nil || !s.Docs.Settings().Hints {
		return out, err
	}
	at, yes := pythonPlace(s, v), true
	for _, l := range within(v, p.Range.Start.Line, p.Range.End.Line) {
		end := v.Src.LineStart(l.N-1) + len(v.Src.Line(l.N-1))
		out = append(out, protocol.InlayHint{Position: at.At(end), Label: protocol.String(feature.TracedLabel(l.Written, l.Compiled).String()), PaddingLeft: &yes})
	}
	return out, nil
}

// pythonColumn is methodHints.
func pythonColumn(s *server, v *traced.View, raw jsonrpc2.RawMessage) (any, error) {
	out := []columnHint{}
	var p rangeParams
	if err := json.Unmarshal(raw, &p); err != nil {
		return nil, jsonrpc2.Errorf(jsonrpc2.InvalidParams, "malformed parameters: %v", err)
	}
	if v.Trace == nil {
		return nil, nil // there is no column
	}
	if !s.Docs.Settings().Hints {
		return session.Answer(out)
	}
	side := v.Trace.Written
	if v.Trace.Compiled != nil {
		side = v.Trace.Compiled
	}
	for _, l := range inRanges(v, p) {
		r := l.Written
		if l.Compiled != nil {
			r = l.Compiled
		}
		level := feature.TracedLevel(r.TimeNs, side.Total.TimeNs, len(side.Rows))
		out = append(out, columnHint{Line: l.N - 1, Label: feature.TracedLabel(l.Written, l.Compiled).Column(), Level: &level})
	}
	return session.Answer(out)
}

// inRanges are the lines that a request for ranges is about.
func inRanges(v *traced.View, p rangeParams) []*traced.Line {
	if p.Range != nil && len(p.Ranges) == 0 {
		p.Ranges = []protocol.Range{*p.Range}
	}
	if len(p.Ranges) == 0 {
		return within(v, 0, 1<<31)
	}
	seen := map[int]bool{}
	var out []*traced.Line
	for _, r := range p.Ranges {
		for _, l := range within(v, r.Start.Line, r.End.Line) {
			if !seen[l.N] {
				seen[l.N] = true
				out = append(out, l)
			}
		}
	}
	return out
}

// pythonHeat is methodHeat.
func pythonHeat(s *server, v *traced.View, raw jsonrpc2.RawMessage) (any, error) {
	out := []heatSpan{}
	var p rangeParams
	if err := json.Unmarshal(raw, &p); err != nil {
		return nil, jsonrpc2.Errorf(jsonrpc2.InvalidParams, "malformed parameters: %v", err)
	}
	by := p.By
	if by == "" {
		by = s.Docs.Settings().Heat
	}
	if v.Trace == nil || by == workspace.HeatOff {
		return session.Answer(out)
	}
	at := pythonPlace(s, v)
	side := v.Trace.Written
	for _, l := range inRanges(v, p) {
		part, whole := l.Written.TimeNs, side.Total.TimeNs
		if by != feature.HeatTime {
			part, whole = l.Written.Moved(), side.Total.Moved()
		}
		start := v.Src.LineStart(l.N - 1)
		span := source.Span{Start: start + len(indentOf(v.Src.Line(l.N-1))), End: start + len(v.Src.Line(l.N-1))}
		out = append(out, heatSpan{at.Range(span), feature.TracedLevel(part, whole, len(side.Rows)), feature.TracedLabel(l.Written, l.Compiled).String()})
	}
	return session.Answer(out)
}

// pythonLenses are the sums of functions and classes, and above the first line what the figures are of.
func pythonLenses(s *server, v *traced.View, _ jsonrpc2.RawMessage) (any, error) {
	out := []protocol.CodeLens{}
	add := func(line int, nth uint32, c protocol.Command) {
		at := protocol.Position{Line: uint32(line), Character: nth}
		out = append(out, protocol.CodeLens{Range: protocol.Range{Start: at, End: at}, Command: c})
	}
	if v.Problem != "" {
		add(0, 0, protocol.Command{Title: "dmir: " + v.Problem})
	}
	if v.Trace == nil {
		return out, nil
	}
	form, side := "as written", v.Trace.Written
	if v.Trace.Compiled != nil {
		form, side = "as compiled", v.Trace.Compiled
	}
	for _, x := range v.Scopes() {
		r := &x.Written
		if v.Trace.Compiled != nil {
			r = &x.Compiled
		}
		add(x.Line-1, 0, protocol.Command{Title: feature.TracedTitle(r.Amount, side.Total, form)})
	}
	title := fmt.Sprintf("%s: %s", v.Trace.Name, feature.TracedTitle(side.Total, side.Total, form))
	if v.Older {
		title = feature.MarkStale + " " + title + "; the file has changed since"
	}
	if len(v.Others) > 0 {
		title += fmt.Sprintf("; older traces of this file are not shown: %s", listOf(v.Others))
	}
	add(0, 1, protocol.Command{Title: title})
	if len(v.Trace.Command) > 0 {
		arg, err := json.Marshal(map[string]string{"uri": v.URI})
		if err != nil {
			return nil, err
		}
		add(0, 2, protocol.Command{Title: "Trace again", Command: commandTraceAgain, Arguments: []protocol.LSPAny{arg}})
	}
	return out, nil
}

func listOf(names []string) string {
	const most = 3
	text := ""
	for i, n := range names[:min(len(names), most)] {
		if i > 0 {
			text += ", "
		}
		text += n
	}
	if len(names) > most {
		text += ", …"
	}
	return text
}

// pythonImplementation leads from a line to the ops in the traced program that it became. It is no definition: that of a name is
// the person's own server's to tell.
func pythonImplementation(s *server, v *traced.View, raw jsonrpc2.RawMessage) (any, error) {
	p, err := connection.Decode[protocol.ImplementationParams](raw)
	if err != nil || v.Trace == nil {
		return nil, err
	}
	l := v.Line(int(p.Position.Line) + 1)
	if l == nil || l.Written == nil || v.Trace.Made() {
		return nil, nil
	}
	src := v.Trace.Program.Src
	var out []protocol.Location
	last := -1
	for _, x := range l.Written.Shares {
		if at := src.Pos(x.Op.Span.Start); x.Op.Span.Len() > 0 && at.Line != last {
			last = at.Line
			where := session.PositionOf(src.Encode(x.Op.Span.Start, s.Docs.Encoding()))
			out = append(out, protocol.Location{URI: uri.File(v.Trace.ProgramPath()), Range: protocol.Range{Start: where, End: where}})
		}
	}
	return protocol.LocationSlice(out), nil
}

// tracesChanged shows what has become known of traces.
func (s *server) tracesChanged() {
	for _, key := range s.python.Keys() {
		s.publishTraced(key)
	}
	s.Refresh()
}

// publishTraced publishes the findings at the lines of a Python file.
func (s *server) publishTraced(key string) {
	v := s.python.View(key)
	if v == nil {
		return
	}
	ds := []protocol.Diagnostic{}
	if v.Trace != nil && s.Docs.Settings().Lint {
		at := pythonPlace(s, v)
		rel, err := filepath.Rel(v.Trace.Dir, v.Path)
		for _, f := range v.Trace.Findings {
			if err != nil || f.Src.Path != filepath.ToSlash(rel) || f.Severity == diag.Hint && !s.Docs.Settings().LintHints {
				continue
			}
			from := f.Src.Pos(f.Span.Start)
			now := v.Now(from.Line + 1)
			if now == 0 {
				continue
			}
			d := f.Diagnostic
			start := v.Src.LineStart(now - 1)
			d.Span = source.Span{Start: start + from.Col, End: min(start+from.Col+f.Span.Len(), start+len(v.Src.Line(now-1)))}
			ds = append(ds, s.Features.Diagnostic(at, d))
		}
	}
	s.Notify(protocol.MethodTextDocumentPublishDiagnostics, &protocol.PublishDiagnosticsParams{URI: uri.URI(v.URI), Version: protocol.NewOptional(v.Version), Diagnostics: ds})
}

// traceAgain runs the command of the trace that is shown beside a Python file.
func traceAgain(s *server, args struct {
	URI string `json:"uri"`
}) (connection.Work, error) {
	key := session.AddressOf(uri.URI(args.URI)).Key
	return func(ctx context.Context) (any, error) {
		v := s.python.View(key)
		if v == nil || v.Trace == nil {
			return nil, jsonrpc2.NewError(connection.RequestFailed, "the file has no trace")
		}
		dir := v.Trace.Dir
		if d := filepath.FromSlash(v.Trace.Directory); filepath.IsLocal(d) {
			dir = filepath.Join(dir, d)
		}
		res, err := s.jobs.TraceAgain(ctx, v.Trace.Name, v.Trace.Command, dir, nil)
		s.python.Recheck()
		return res, err
	}, nil
}

// pythonCapabilities are those of a server for Python files alone, beside a person's own: it formats and renames nothing.
func pythonCapabilities(enc source.Encoding) protocol.ServerCapabilities {
	all := capabilities(enc)
	return protocol.ServerCapabilities{
		PositionEncoding: all.PositionEncoding, TextDocumentSync: all.TextDocumentSync, HoverProvider: all.HoverProvider,
		ImplementationProvider: protocol.Boolean(true), InlayHintProvider: all.InlayHintProvider, CodeLensProvider: &protocol.CodeLensOptions{},
		ExecuteCommandProvider: all.ExecuteCommandProvider, Workspace: all.Workspace,
	}
}

// registerPython asks the editor for its Python files, once there are traces in the workspace.
func (s *server) registerPython() {
	if s.pythonOnly || !s.Features.WatchBuffers || !s.Features.RegisterLenses || !s.hasTraces() || s.registered.Swap(true) {
		return
	}
	const selector = `{"documentSelector":[{"scheme":"file","language":"python"}]`
	var rs []protocol.Registration
	for method, more := range map[string]string{
		protocol.MethodTextDocumentDidOpen: "", protocol.MethodTextDocumentDidChange: `,"syncKind":2`, protocol.MethodTextDocumentDidClose: "",
		protocol.MethodTextDocumentDidSave: "", protocol.MethodTextDocumentHover: "", protocol.MethodTextDocumentInlayHint: "",
		protocol.MethodTextDocumentCodeLens: "", protocol.MethodTextDocumentImplementation: "",
	} {
		rs = append(rs, protocol.Registration{ID: "python " + method, Method: method, RegisterOptions: []byte(selector + more + `}`)})
	}
	_ = s.Call(s.Context(), protocol.MethodClientRegisterCapability, &protocol.RegistrationParams{Registrations: rs}, nil)
}

func (s *server) hasTraces() bool {
	for _, f := range s.Folders.All() {
		if traced.In(f.Path) {
			return true
		}
	}
	return false
}
