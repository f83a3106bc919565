package workspace

import (
	"cmp"
	"context"
	"slices"
	"time"

	"dmir/analysis/lint"
	"dmir/analysis/program"
	"dmir/lsp/feature"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

// diagnose follows one document until ctx ends: cheap diagnostics of the
// newest text after every edit (edits that arrive meanwhile are taken
// together), deep ones after a pause, given up at the next edit.
func (w *Workspace) diagnose(ctx context.Context, d *document) {
	defer w.running.Done()
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.kick:
		}
		for again := true; again; {
			again = false
			if !w.cheap(d) {
				break
			}
			pause.Reset(w.pause)
			select {
			case <-ctx.Done():
				return
			case <-d.kick:
				again = true
			case <-pause.C:
				w.deep(ctx, d)
			}
		}
	}
}

// cheap publishes the cheap diagnostics together with the last deep ones,
// which have moved along with the text. It reports whether more may follow: lint, and the cost of
// functions that are divided over devices.
func (w *Workspace) cheap(d *document) (ok bool) {
	w.mu.Lock()
	snap, deep := d.snap, d.deep
	w.mu.Unlock()
	defer w.guard(snap, &ok)
	w.relieve(d)
	if !snap.Settings.Lint {
		deep = nil
	}
	var found []diag.Diagnostic
	more := snap.Settings.Lint
	if !snap.With(func(v *View) { found, more = v.Cheap(), more || feature.Undivided(v.Program().Funcs) }) {
		return snap.Settings.Lint // the newer version is diagnosed by itself
	}
	w.publishCurrent(d, snap, join(found, deep), deep)
	return more
}

func (w *Workspace) deep(ctx context.Context, d *document) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w.mu.Lock()
	snap, last := d.snap, d.deep
	d.cancel = cancel
	w.mu.Unlock()
	ok := true
	defer w.guard(snap, &ok)
	defer w.watch(d, cancel)()
	var cheap, found []diag.Diagnostic
	var l *loaded
	if snap.With(func(v *View) { ok = feature.Divide(ctx, v.Program().Funcs) }) && ok && w.costed != nil {
		w.costed()
	}
	ok = true
	looked := snap.With(func(v *View) { cheap, found, l = v.Cheap(), keep(v.Program(), v.Findings(ctx), last), v.l })
	if !looked || ctx.Err() != nil {
		return
	}
	w.publishCurrent(d, snap, join(cheap, found), found)
	l.tidy(snap.Src.Len())
}

// keep adds to the findings in p the last ones that stand where p has errors, which
// lint does not check: a half-typed op takes no finding of another line away.
func keep(p *program.Program, found, last []diag.Diagnostic) []diag.Diagnostic {
	if !p.HasErrors() || len(last) == 0 {
		return found
	}
	checked := lint.Checked(p)
	type place struct {
		code string
		span source.Span
	}
	have := map[place]bool{}
	for _, d := range found {
		have[place{d.Code, d.Span}] = true
	}
	var kept []diag.Diagnostic
	for _, d := range last {
		if !checked(d.Span) && !have[place{d.Code, d.Span}] {
			kept = append(kept, d)
		}
	}
	all := slices.Concat(found, kept)
	slices.SortStableFunc(all, func(a, b diag.Diagnostic) int {
		return cmp.Or(cmp.Compare(a.Span.Start, b.Span.Start), cmp.Compare(a.Code, b.Code))
	})
	return all
}

// publishCurrent publishes unless the document has moved on or was closed.
func (w *Workspace) publishCurrent(d *document, snap *Snapshot, all, deep []diag.Diagnostic) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.docs[snap.Key] != d || d.snap.Src != snap.Src || !d.snap.Settings.Equal(snap.Settings) {
		return
	}
	d.deep = deep
	w.publish(snap, all)
}

// guard turns a panic in the analysis into a report, so that one file cannot
// take the server down.
func (w *Workspace) guard(snap *Snapshot, ok *bool) {
	if r := recover(); r != nil {
		*ok = false
		w.failed(snap.URI, r)
	}
}

func join(a, b []diag.Diagnostic) []diag.Diagnostic {
	return append(a[:len(a):len(a)], b...)
}
