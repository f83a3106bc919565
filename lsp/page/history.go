package page

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"go.lsp.dev/jsonrpc2"
	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"

	"dmir/analysis/program"
	"dmir/analysis/report"
	"dmir/lsp/connection"
	"dmir/lsp/feature"
	"dmir/lsp/history"
	"dmir/lsp/session"
	"dmir/lsp/workspace"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

// gains remembers what the applied actions of each document changed. They are
// computed once, when a history is first shown.
type gains struct {
	mu   sync.Mutex
	docs map[string]map[int][]report.Gain // by key of the document and number of the entry
}

func (g *gains) of(key string, id int) ([]report.Gain, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	list, ok := g.docs[key][id]
	return list, ok
}

func (g *gains) set(key string, id int, list []report.Gain) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.docs == nil {
		g.docs = map[string]map[int][]report.Gain{}
	}
	if g.docs[key] == nil {
		g.docs[key] = map[int][]report.Gain{}
	}
	g.docs[key][id] = list
}

func (g *gains) forget(key string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.docs, key)
}

// history returns the data of the history of an open document.
func (ps *Pages) history(ctx context.Context, document string) (int32, report.Data, error) {
	key := session.AddressOf(uri.URI(document)).Key
	var now *workspace.Snapshot
	var list []report.Applied
	var texts [][2]*source.File // before and after each
	open := ps.s.Docs.History(key, func(s *workspace.Snapshot, log *history.Log) {
		now = s
		for _, e := range slices.Backward(log.Entries()) {
			list = append(list, applied(s.Src, log, e))
			texts = append(texts, [2]*source.File{e.Before, e.After})
		}
	})
	if !open {
		return 0, report.Data{}, jsonrpc2.NewError(connection.RequestFailed, "the document is not open, so there is no history of it")
	}
	at, err := ps.placeOf(ctx, document, "", false)
	if err != nil {
		return 0, report.Data{}, failed(err)
	}
	for i := range list {
		known, ok := ps.gains.of(key, list[i].ID)
		if !ok && texts[i][0] != nil {
			if ctx.Err() != nil {
				return 0, report.Data{}, ctx.Err()
			}
			load := func(src *source.File) *program.Program { return ps.versions.program(src.Text(), at.Path, at.opts) }
			known = report.Gains(load(texts[i][0]), load(texts[i][1]))
			ps.gains.set(key, list[i].ID, known)
		}
		list[i].Saved = known
	}
	file := ps.s.Folders.Relative(at.Path)
	data := report.Data{
		Kind: report.KindHistory, Title: "Applied fixes and refactorings", File: file, Functions: []report.Function{},
		Target: report.TargetOf(at.opts.Target), History: &report.History{Applied: list},
	}
	if list == nil {
		data.History.Applied = []report.Applied{}
	}
	return now.Version, data, nil
}

// maxListed bounds the lines that are listed of one action.
const maxListed = 1000

// applied describes an entry in the text of now.
func applied(now *source.File, log *history.Log, e *history.Entry) report.Applied {
	out := report.Applied{ID: e.ID, Title: e.Title, At: e.At.Format("15:04:05"), State: report.StateApplied}
	var lines []int
	for i, s := range e.Spans() {
		first, last := now.Pos(s.Start).Line+1, now.Pos(max(s.Start, s.End-1)).Line+1
		if i == 0 {
			_, col := now.Human(s.Start)
			out.Place = report.Place{Line: first, Column: col, EndColumn: col}
		}
		for n := first; n <= last && len(lines) < maxListed; n++ {
			if len(lines) == 0 || lines[len(lines)-1] < n {
				lines = append(lines, n)
			}
		}
	}
	out.Lines = feature.LineList(lines)
	switch e.State(now) {
	case history.Reverted:
		out.State = report.StateReverted
	case history.Edited:
		out.State, out.Note = report.StateEdited, out.Lines+" edited since"
		for _, other := range slices.Backward(log.Entries()) {
			if other.ID > e.ID && other.State(now) == history.Applied && e.Touches(other) {
				out.Note = fmt.Sprintf("revert “%s” first", other.Title)
				break
			}
		}
	}
	return out
}

// CommandRevert takes an applied code action back.
const CommandRevert = "dmir.revert"

// RevertArgs are the arguments of dmir.revert: a document and a number of its history.
type RevertArgs struct {
	URI string `json:"uri"`
	ID  int    `json:"id"`
}

// Revert has the editor take an applied code action back.
func (ps *Pages) Revert(ctx context.Context, args RevertArgs) (any, error) {
	title, err := ps.revert(ctx, args.URI, args.ID)
	if err != nil {
		return nil, err
	}
	return session.Answer(map[string]string{"title": title})
}

func (ps *Pages) revert(ctx context.Context, document string, id int) (title string, err error) {
	if !ps.s.Features.ApplyEdit {
		return "", jsonrpc2.NewError(connection.RequestFailed, "the editor does not support workspace/applyEdit")
	}
	var now *workspace.Snapshot
	var edits []diag.Edit
	problem := "the document is not open"
	ps.s.Docs.History(session.AddressOf(uri.URI(document)).Key, func(s *workspace.Snapshot, log *history.Log) {
		problem = "the history has no such entry"
		e := log.Find(id)
		if e == nil {
			return
		}
		now, title = s, e.Title
		var ok bool
		if edits, ok = e.Revert(s.Src); ok {
			problem = ""
		} else if problem = applied(s.Src, log, e).Note; problem == "" {
			problem = "it is reverted already"
		}
	})
	if problem != "" {
		return "", jsonrpc2.NewError(connection.RequestFailed, "cannot revert: "+problem)
	}
	label := "Revert: " + title
	var res protocol.ApplyWorkspaceEditResult
	params := &protocol.ApplyWorkspaceEditParams{Label: &label, Edit: *ps.s.Features.WorkspaceEdit(session.Bare(now), edits)}
	if err := ps.s.Call(ctx, protocol.MethodWorkspaceApplyEdit, params, &res); err != nil {
		return "", err
	}
	if !res.Applied {
		return "", jsonrpc2.NewError(connection.RequestFailed, "the editor has not applied the edit; the text may have changed meanwhile")
	}
	return title, nil
}
