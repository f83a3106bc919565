package server

import (
	"context"
	"fmt"
	"sync"

	"go.lsp.dev/jsonrpc2"
	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"

	"dmir/lsp/scan"
	"dmir/lsp/workspace"
	"dmir/syntax/diag"
)

// commandLintWorkspace looks for errors and wasted movement in all programs of
// the workspace, open or not.
const commandLintWorkspace = "dmir.lintWorkspace"

// lintResult is the answer to it.
type lintResult struct {
	Files    int    `json:"files"`    // that were looked at
	Findings int    `json:"findings"` // errors and warnings
	Errors   int    `json:"errors"`
	Message  string `json:"message"`
}

// lintWorkspace works on a few files at a time. Texts that are open count as
// they are in the editor. What is found is shown: sent for the files that are
// not open to editors that do not pull, for others they are asked to pull.
func (s *server) lintWorkspace(ctx context.Context, token protocol.ProgressToken) (any, error) {
	ctx, done := s.runs.start(ctx, token, maxRuns)
	if done == nil {
		return nil, jsonrpc2.NewError(requestFailed, "too much is running already")
	}
	defer done()
	bar := s.beginProgress(ctx, token, "Linting the workspace")
	defer bar.end()
	open, files := s.docs.Snapshots(), s.programs(ctx)
	total := len(open) + len(files)
	var mu sync.Mutex
	var res lintResult
	count := func(findings, errors int, path string) {
		mu.Lock()
		defer mu.Unlock()
		res.Files++
		res.Findings += findings
		res.Errors += errors
		bar.step(res.Files, total, path)
	}
	for _, snap := range open {
		snap.With(func(v *workspace.View) {
			findings, errors := tally(append(v.Cheap(), v.Findings(ctx)...))
			count(findings, errors, v.Path)
		})
	}
	had := s.closed.allPushed()
	pushed := map[string]bool{}
	under := &conditions{s: s}
	scan.Each(ctx, files, func(f scan.File) {
		a := address(uri.File(f.Path))
		snap, found, v, err := s.inspect(ctx, a, under.of(f))
		if err != nil {
			return
		}
		count(v.findings, v.errors, f.Path)
		if s.pushClosed(snap, found) {
			mu.Lock()
			pushed[a.URI] = true
			mu.Unlock()
		}
	})
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	for _, spelt := range had { // of files that are sound now, or gone
		if !pushed[spelt] && s.closed.took(spelt, false) && s.docs.Snapshot(address(uri.URI(spelt)).Key) == nil {
			s.clear(spelt)
		}
	}
	s.published.filesChanged()
	s.refreshDiagnostics()
	res.Message = fmt.Sprintf("%s in %s, %s", diag.Count(res.Findings, "finding"), diag.Count(res.Files, "file"), diag.Count(res.Errors, "error"))
	return answer(res)
}

// tally counts the diagnostics that a person has to do something about.
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
func (s *server) pushClosed(snap *workspace.Snapshot, found []diag.Diagnostic) bool {
	if s.features.pulls || s.docs.Snapshot(snap.Key) != nil {
		return false
	}
	if before := s.closed.took(snap.URI, len(found) > 0); len(found) > 0 || before {
		s.push(snap, protocol.Optional[int32]{}, found)
	}
	return len(found) > 0
}

// filesOnDisk hears that programs that are not open were written or removed.
// What was pushed of them is brought up to date.
func (s *server) filesOnDisk(changed []workspace.Address) {
	s.published.filesChanged()
	s.refreshDiagnostics()
	for _, a := range changed {
		s.touched(a.Key) // one that is open may now differ from its file
	}
	s.refreshLenses()
	go func() {
		for _, a := range changed {
			if s.docs.Snapshot(a.Key) != nil || !s.closed.took(a.URI, false) {
				continue
			}
			f := scan.File{Path: a.Path, Stamp: scan.StampOf(a.Path)}
			snap, found, _, err := s.inspect(s.ctx, a, (&conditions{s: s}).of(f))
			if err != nil {
				s.clear(a.URI)
				continue
			}
			s.closed.took(a.URI, true)
			s.pushClosed(snap, found)
		}
	}()
}

// step shows how many of the files are done.
func (b *progressBar) step(done, total int, path string) {
	if b == nil || total == 0 {
		return
	}
	percent := uint32(100 * done / total)
	if percent == b.last && done < total {
		return
	}
	b.last = percent
	message := fmt.Sprintf("%d of %d: %s", done, total, path)
	b.send(&protocol.WorkDoneProgressReport{Kind: "report", Percentage: &percent, Message: &message}, true)
}
