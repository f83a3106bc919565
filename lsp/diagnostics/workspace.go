package diagnostics

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"go.lsp.dev/jsonrpc2"
	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"

	"dmir/lsp/connection"
	"dmir/lsp/job"
	"dmir/lsp/scan"
	"dmir/lsp/session"
	"dmir/lsp/workspace"
)

// lookAgain is how often an open pull of the workspace reads the files again. A pull
// without news stays open, as the protocol recommends, until a document or a file
// changes; editors that watch no files do not report the latter.
const lookAgain = 30 * time.Second

// perPart is how many reports one partial result holds at most.
const perPart = 32

// Workspace answers workspace/diagnostic with the diagnostics of open documents and,
// where the user asked for them, of all programs below the workspace's folders. An editor that takes
// partial results gets them as they are found.
func (rep *Reporter) Workspace(raw jsonrpc2.RawMessage) (connection.Work, error) {
	p, err := connection.Decode[protocol.WorkspaceDiagnosticParams](raw)
	if err != nil {
		return nil, err
	}
	pull := &workspacePull{rep: rep, token: session.CloneToken(p.PartialResultToken), work: session.CloneToken(p.WorkDoneToken), had: map[string]string{}, spelt: map[string]uri.URI{}}
	for _, r := range p.PreviousResultIds {
		key := session.AddressOf(r.URI).Key
		pull.had[key], pull.spelt[key] = strings.Clone(r.Value), uri.URI(strings.Clone(string(r.URI)))
	}
	return func(ctx context.Context) (any, error) {
		for {
			changed, files := rep.published.changed(), rep.published.onDisk()
			if err := pull.run(ctx, files); err != nil {
				return nil, err
			}
			if pull.news || pull.token == nil {
				return pull.report(), nil
			}
			if err := rep.rest(ctx, changed); err != nil {
				return nil, err
			}
		}
	}, nil
}

// rest waits for a change, and then a moment for those that come with it.
func (rep *Reporter) rest(ctx context.Context, changed <-chan struct{}) error {
	again := time.NewTimer(lookAgain)
	defer again.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-again.C:
		rep.published.filesChanged()
		return nil
	case <-changed:
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(rep.pause):
		return nil
	}
}

// workspacePull is one pull under way.
type workspacePull struct {
	rep   *Reporter
	token protocol.ProgressToken // of partial results; nil where they are not wanted
	work  protocol.ProgressToken // of the progress of the first look, nil where none is wanted
	had   map[string]string      // names of what the editor has, by key
	spelt map[string]uri.URI     // the addresses that the editor used

	files []scan.File // those that are not open, as of seen
	seen  int
	swept bool

	mu   sync.Mutex // guards the maps above and what follows
	news bool       // something that the editor does not have was found
	out  []protocol.WorkspaceDocumentDiagnosticReport
}

// run reports all documents and files that may have changed.
func (w *workspacePull) run(ctx context.Context, onDisk int) error {
	w.mu.Lock()
	w.out = nil
	w.mu.Unlock()
	there := map[string]bool{}
	for _, snap := range w.rep.s.Docs.Snapshots() {
		there[snap.Key] = true
		found, err := w.rep.published.of(ctx, snap, func() *workspace.Snapshot { return w.rep.s.Docs.Snapshot(snap.Key) })
		if err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			continue // its text has changed and is analysed again, or its analysis failed
		}
		items := w.rep.convert(found.snap, found.diags)
		id, err := resultID(items)
		if err != nil {
			return err
		}
		version := found.snap.Version
		w.add(uri.URI(snap.URI), snap.Key, &version, items, id)
	}
	if !w.swept || w.seen != onDisk {
		w.files, w.seen, w.swept = w.rep.wanted(ctx), onDisk, true
		w.rep.closed.keepOnly(w.files)
	}
	under := &conditions{rep: w.rep}
	w.look(ctx, under)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	for _, f := range w.files {
		there[session.AddressOf(uri.File(f.Path)).Key] = true
	}
	for key, spelt := range w.spelt {
		if !there[key] && w.rep.s.Docs.Snapshot(key) == nil { // it is gone, and so are its diagnostics; one opened meanwhile has its own soon
			id, err := resultID(nil)
			if err != nil {
				return err
			}
			if w.had[key] != id {
				w.add(spelt, key, nil, []protocol.Diagnostic{}, id)
			}
		}
	}
	return nil
}

// look reports the files that are not open, the first time with progress.
func (w *workspacePull) look(ctx context.Context, under *conditions) {
	var bar *job.Bar
	if w.work != nil {
		bar = w.rep.jobs.Begin(ctx, w.work, "Scanning the workspace")
		w.work = nil
		defer bar.End()
	}
	done := 0
	scan.Each(ctx, w.files, func(f scan.File) {
		w.closed(ctx, f, under)
		w.mu.Lock()
		defer w.mu.Unlock()
		done++
		bar.Step(done, len(w.files), f.Path)
	})
}

// closed reports a file that is not open.
func (w *workspacePull) closed(ctx context.Context, f scan.File, under *conditions) {
	u := uri.File(f.Path)
	a := session.AddressOf(u)
	terms := under.of(f)
	v, ok := w.rep.closed.find(f.Path)
	if ok && v.under == terms && v.id == w.has(a.Key) {
		w.add(u, a.Key, nil, nil, v.id)
		return
	}
	snap, found, v, err := w.rep.inspect(ctx, a, terms)
	if err != nil || w.rep.s.Docs.Snapshot(a.Key) != nil {
		return // it cannot be read, or has been opened
	}
	w.add(u, a.Key, nil, w.rep.convert(snap, found), v.id)
}

// has returns the result ID that the editor has of a document.
func (w *workspacePull) has(key string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.had[key]
}

// add takes a report, and sends those collected when they are many.
func (w *workspacePull) add(u uri.URI, key string, version *int32, items []protocol.Diagnostic, id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.had[key] == id {
		w.out = append(w.out, &protocol.WorkspaceUnchangedDocumentDiagnosticReport{UnchangedDocumentDiagnosticReport: unchanged(id), URI: u, Version: version})
		return
	}
	w.news = true
	w.had[key], w.spelt[key] = id, u
	w.out = append(w.out, &protocol.WorkspaceFullDocumentDiagnosticReport{FullDocumentDiagnosticReport: full(items, id), URI: u, Version: version})
	if w.token != nil && len(w.out) >= perPart {
		w.send()
	}
}

func (w *workspacePull) send() {
	raw, err := protocol.Marshal(&protocol.WorkspaceDiagnosticReportPartialResult{Items: w.out})
	if err == nil {
		w.rep.s.Notify(protocol.MethodProgress, &protocol.ProgressParams{Token: w.token, Value: raw})
	}
	w.out = nil
}

// report is the answer: all of it, or, where parts were sent, nothing more than
// the last part.
func (w *workspacePull) report() *protocol.WorkspaceDiagnosticReport {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.token != nil {
		w.send()
		w.rep.s.Flush(w.rep.s.Context()) // the answer must not overtake them
	}
	return &protocol.WorkspaceDiagnosticReport{Items: slices.Concat([]protocol.WorkspaceDocumentDiagnosticReport{}, w.out)}
}
