package diagnostics

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"sync"

	"go.lsp.dev/protocol"

	"dmir/analysis/config"
	"dmir/lsp/scan"
	"dmir/lsp/workspace"
	"dmir/syntax/diag"
)

// closedFiles caches what was found in the files of the workspace that are not open,
// so that unchanged files are not analysed again.
type closedFiles struct {
	mu     sync.Mutex
	known  map[string]verdict  // by path
	pushed map[string]struct{} // addresses of files whose diagnostics were pushed
	tomls  map[string]string   // the dmir.toml that last applied, by folder
}

// verdict is what was found in a file under one configuration.
type verdict struct {
	under    string // names the text, its configuration and the settings
	id       string // of the diagnostics
	findings int
	errors   int
}

func (c *closedFiles) find(path string) (verdict, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	v, ok := c.known[path]
	return v, ok
}

func (c *closedFiles) keep(path string, v verdict) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known == nil {
		c.known = map[string]verdict{}
	}
	c.known[path] = v
}

// keepOnly forgets the files that are not among these.
func (c *closedFiles) keepOnly(files []scan.File) {
	there := map[string]bool{}
	for _, f := range files {
		there[f.Path] = true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for path := range c.known {
		if !there[path] {
			delete(c.known, path)
		}
	}
}

// took records whether diagnostics of a file are pushed, and reports whether there
// were any before.
func (c *closedFiles) took(spelt string, some bool) (before bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, before = c.pushed[spelt]
	switch {
	case !some:
		delete(c.pushed, spelt)
	case c.pushed == nil:
		c.pushed = map[string]struct{}{spelt: {}}
	default:
		c.pushed[spelt] = struct{}{}
	}
	return before
}

// allPushed are the addresses of the files whose diagnostics were pushed.
func (c *closedFiles) allPushed() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []string
	for spelt := range c.pushed {
		out = append(out, spelt)
	}
	slices.Sort(out)
	return out
}

// sawConfig records which dmir.toml applies in a folder, and reports whether it has
// changed.
func (c *closedFiles) sawConfig(dir, toml string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	was, ok := c.tomls[dir]
	if c.tomls == nil {
		c.tomls = map[string]string{}
	}
	c.tomls[dir] = toml
	return ok && was != toml
}

// conditions is the key of what the diagnostics of a file depend on: its text, the
// nearest dmir.toml and the settings. It reads each folder once.
type conditions struct {
	rep   *Reporter
	mu    sync.Mutex
	tomls map[string]string // by folder
}

func (c *conditions) of(f scan.File) string {
	set := c.rep.s.Docs.SettingsOf(workspace.Address{Key: f.Path, URI: f.Path, Path: f.Path})
	c.mu.Lock()
	defer c.mu.Unlock()
	dir := filepath.Dir(f.Path)
	toml := c.toml(dir)
	if c.rep.closed.sawConfig(dir, toml) { // in an editor that does not report it
		c.rep.s.Docs.ConfigChanged()
	}
	return fmt.Sprintf("%d %d %v %s %d", f.Stamp.Size, f.Stamp.Modified.UnixNano(), set, toml, c.rep.published.configVersion())
}

func (c *conditions) toml(dir string) string {
	if c.tomls == nil {
		c.tomls = map[string]string{}
	}
	if is, ok := c.tomls[dir]; ok {
		return is
	}
	is := ""
	path := filepath.Join(dir, config.FileName)
	if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
		is = fmt.Sprintf("%s %d %d", path, info.Size(), info.ModTime().UnixNano())
	} else if up := filepath.Dir(dir); up != dir {
		is = c.toml(up)
	}
	c.tomls[dir] = is
	return is
}

// inspect analyses a file that is not open, under the given conditions.
func (rep *Reporter) inspect(ctx context.Context, a workspace.Address, under string) (_ *workspace.Snapshot, found []diag.Diagnostic, v verdict, err error) {
	defer func() {
		if r := recover(); r != nil {
			rep.s.Log(protocol.MessageTypeError, fmt.Sprintf("analysis of %s: internal error: %v\n%s", a.Path, r, debug.Stack()))
			err = fmt.Errorf("the analysis of %s failed", a.Path)
		}
	}()
	snap, err := rep.s.Docs.Read(a)
	if err != nil {
		return nil, nil, v, err
	}
	snap.With(func(v *workspace.View) { found = slices.Concat(v.Cheap(), v.Findings(ctx)) })
	if ctx.Err() != nil {
		return nil, nil, v, ctx.Err()
	}
	snap = textOf(snap)
	v = verdict{under: under}
	v.findings, v.errors = tally(found)
	if v.id, err = resultID(rep.convert(snap, found)); err != nil {
		return nil, nil, v, err
	}
	rep.closed.keep(a.Path, v)
	return snap, found, v, nil
}

// closedReport answers a pull for a document that is not open; had is the result ID
// that the editor has. A file that does not exist has no diagnostics.
func (rep *Reporter) closedReport(ctx context.Context, a workspace.Address, had string) (any, error) {
	f := scan.File{Path: a.Path, Stamp: scan.StampOf(a.Path)}
	none := []protocol.Diagnostic{}
	if a.Path == a.Key || workspace.IsConfig(a) || f.Stamp == (scan.Stamp{}) {
		id, err := resultID(none)
		return documentReport(none, id, had), err
	}
	under := (&conditions{rep: rep}).of(f)
	if v, ok := rep.closed.find(f.Path); ok && v.under == under && v.id == had {
		return documentReport(nil, v.id, had), nil
	}
	snap, found, v, err := rep.inspect(ctx, a, under)
	if err != nil {
		return nil, err
	}
	return documentReport(rep.convert(snap, found), v.id, had), nil
}
