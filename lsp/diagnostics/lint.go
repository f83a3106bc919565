package diagnostics

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"go.lsp.dev/jsonrpc2"
	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"

	"dmir/lsp/connection"
	"dmir/lsp/scan"
	"dmir/lsp/session"
	"dmir/lsp/workspace"
	"dmir/syntax/diag"
)

// LintResult is the answer to dmir.lintWorkspace.
type LintResult struct {
	Files    int    `json:"files"`    // that were linted
	Findings int    `json:"findings"` // errors and warnings
	Errors   int    `json:"errors"`
	Message  string `json:"message"`
}

// Lint lints all programs of the workspace, a few at a time, open ones as they are in
// the editor. Editors that do not pull are sent what is found in files that are not
// open; others are asked to pull again.
func (rep *Reporter) Lint(ctx context.Context, token protocol.ProgressToken) (any, error) {
	ctx, done := rep.jobs.Start(ctx, token)
	if done == nil {
		return nil, jsonrpc2.NewError(connection.RequestFailed, "too many jobs are running already")
	}
	defer done()
	bar := rep.jobs.Begin(ctx, token, "Linting the workspace")
	defer bar.End()
	open, files := rep.s.Docs.Snapshots(), rep.s.Programs(ctx)
	total := len(open) + len(files)
	var mu sync.Mutex
	var res LintResult
	count := func(findings, errors int, path string) {
		mu.Lock()
		defer mu.Unlock()
		res.Files++
		res.Findings += findings
		res.Errors += errors
		bar.Step(res.Files, total, path)
	}
	for _, snap := range open {
		snap.With(func(v *workspace.View) {
			findings, errors := tally(append(v.Cheap(), v.Findings(ctx)...))
			count(findings, errors, v.Path)
		})
	}
	if rep.pushAll(ctx, files, count); ctx.Err() != nil {
		return nil, ctx.Err()
	}
	rep.asked.Store(true)
	rep.published.filesChanged()
	rep.refreshDiagnostics()
	res.Message = fmt.Sprintf("%s in %s, %s", diag.Count(res.Findings, "finding"), diag.Count(res.Files, "file"), diag.Count(res.Errors, "error"))
	return session.Answer(res)
}

// ClearLint takes back what Lint shows of files that are not open, where the settings
// do not ask for it.
func (rep *Reporter) ClearLint(ctx context.Context) (any, error) {
	rep.asked.Store(false)
	rep.showClosed(ctx)
	return session.Answer(LintResult{Message: "findings of files that are not open are no longer shown"})
}

// SettingsChanged shows or takes back the findings of files that are not open, as the
// settings are now.
func (rep *Reporter) SettingsChanged() { go rep.showClosed(rep.s.Context()) }

// showClosed shows what was found in those files that are not open and wanted, and
// nothing of the others.
func (rep *Reporter) showClosed(ctx context.Context) {
	if !rep.s.Features.Pulls {
		rep.pushAll(ctx, rep.wanted(ctx), func(int, int, string) {})
	}
	rep.published.filesChanged()
	rep.refreshDiagnostics()
}

// wanted returns the programs that are not open and whose diagnostics are shown: all
// if the user asked for them, else those in folders with the setting.
func (rep *Reporter) wanted(ctx context.Context) []scan.File {
	if !rep.asked.Load() && !rep.s.Docs.LintsClosed() {
		return nil
	}
	return slices.DeleteFunc(rep.s.Programs(ctx), func(f scan.File) bool { return !rep.wants(f.Path) })
}

func (rep *Reporter) wants(path string) bool {
	return rep.asked.Load() || rep.s.Docs.SettingsOf(workspace.Address{Key: path, URI: path, Path: path}).LintWorkspace
}

// pushAll analyses files that are not open and sends what is found in them, and no
// diagnostics of others, to an editor that does not pull. It calls count for each file.
func (rep *Reporter) pushAll(ctx context.Context, files []scan.File, count func(findings, errors int, path string)) {
	had := rep.closed.allPushed()
	var mu sync.Mutex
	pushed := map[string]bool{}
	under := &conditions{rep: rep}
	scan.Each(ctx, files, func(f scan.File) {
		a := session.AddressOf(uri.File(f.Path))
		snap, found, v, err := rep.inspect(ctx, a, under.of(f))
		if err != nil {
			return
		}
		count(v.findings, v.errors, f.Path)
		if rep.pushClosed(snap, found) {
			mu.Lock()
			pushed[a.URI] = true
			mu.Unlock()
		}
	})
	if ctx.Err() != nil {
		return
	}
	for _, spelt := range had { // of files that are sound now, gone, or not wanted
		if !pushed[spelt] && rep.closed.took(spelt, false) && rep.s.Docs.Snapshot(session.AddressOf(uri.URI(spelt)).Key) == nil {
			rep.clear(spelt)
		}
	}
}

// tally counts warnings and errors.
func tally(ds []diag.Diagnostic) (findings, errors int) {
	for _, d := range ds {
		if d.Severity >= diag.Warning {
			findings++
		}
		if d.Severity == diag.Error {
			errors++
		}
	}
	return findings, errors
}

// pushClosed shows what was found in a file that is not open to an editor that
// does not pull. It reports whether anything is shown.
func (rep *Reporter) pushClosed(snap *workspace.Snapshot, found []diag.Diagnostic) bool {
	if rep.s.Features.Pulls || rep.s.Docs.Snapshot(snap.Key) != nil {
		return false
	}
	if before := rep.closed.took(snap.URI, len(found) > 0); len(found) > 0 || before {
		rep.push(snap, protocol.Optional[int32]{}, found)
	}
	return len(found) > 0
}

// FilesChanged brings up to date what was pushed of programs that are not open and
// were written or removed.
func (rep *Reporter) FilesChanged(changed []workspace.Address) {
	rep.published.filesChanged()
	rep.refreshDiagnostics()
	go func() {
		for _, a := range changed {
			if before := rep.closed.took(a.URI, false); rep.s.Docs.Snapshot(a.Key) != nil || !before && (rep.s.Features.Pulls || !rep.wants(a.Path)) {
				continue
			}
			f := scan.File{Path: a.Path, Stamp: scan.StampOf(a.Path)}
			snap, found, _, err := rep.inspect(rep.s.Context(), a, (&conditions{rep: rep}).of(f))
			if err != nil {
				rep.clear(a.URI)
				continue
			}
			rep.closed.took(a.URI, true)
			rep.pushClosed(snap, found)
		}
	}()
}
