package workspace

import (
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"dmir/analysis/config"
	"dmir/analysis/lint"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

// ConfigFile is a dmir.toml and its problems.
type ConfigFile struct {
	Path  string // absolute
	Src   *source.File
	Diags []diag.Diagnostic
}

// configs remembers the configuration of each directory for a moment, so that
// typing does not read it again and again, and that a change is seen even in
// editors that do not report changes.
type configs struct {
	report func(ConfigFile)

	mu   sync.Mutex
	dirs map[string]cachedConfig
	bad  map[string]bool         // files that were reported with problems
	open map[string]*source.File // dmir.toml files open in the editor, by path: they win over disk
}

type cachedConfig struct {
	conf *config.Config
	read time.Time
}

const configAge = 2 * time.Second

// forFile is the configuration for the program at path. A document that is no
// file has none.
func (c *configs) forFile(path string) *config.Config {
	if !filepath.IsAbs(path) {
		return &config.Config{}
	}
	dir := filepath.Dir(path)
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.dirs[dir]; ok && time.Since(e.read) < configAge {
		return e.conf
	}
	conf, src, diags := lint.ConfigWith(path, func(name string) (string, bool) {
		if f := c.open[name]; f != nil {
			return f.Text(), true
		}
		return "", false
	})
	if c.dirs == nil {
		c.dirs, c.bad = map[string]cachedConfig{}, map[string]bool{}
	}
	c.dirs[dir] = cachedConfig{conf, time.Now()}
	if src != nil && conf.Path != "" && c.report != nil && (len(diags) > 0 || c.bad[conf.Path]) {
		c.bad[conf.Path] = len(diags) > 0
		c.report(ConfigFile{conf.Path, src, diags})
	}
	return conf
}

func (c *configs) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.dirs)
}

// set takes the text of a dmir.toml that the editor has open, nil when it is
// closed.
func (c *configs) set(path string, f *source.File) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open == nil {
		c.open = map[string]*source.File{}
	}
	if c.open[path] = f; f == nil {
		delete(c.open, path)
	}
	clear(c.dirs)
}

// check reports the problems of the files that are open in the editor, whether or
// not a program uses them, and clears the diagnostics of those that are
// gone.
func (c *configs) check() {
	c.mu.Lock()
	var paths []string
	for path := range c.open {
		paths = append(paths, path)
	}
	for path, bad := range c.bad {
		if bad && c.open[path] == nil {
			paths = append(paths, path)
		}
	}
	c.mu.Unlock()
	for _, path := range paths {
		conf := c.forFile(path)
		c.mu.Lock()
		if conf.Path != path && c.bad[path] && c.report != nil {
			c.bad[path] = false
			c.report(ConfigFile{path, source.New(path, ""), nil})
		}
		c.mu.Unlock()
	}
}

func (c *configs) opened(path string) *source.File {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open[path]
}

// IsConfig reports whether a document is a dmir.toml, and no program.
func IsConfig(a Address) bool {
	return filepath.IsAbs(a.Path) && filepath.Base(a.Path) == config.FileName
}

// OpenConfig takes in a dmir.toml; from now on its text in the editor counts,
// not the file's. The documents that it applies to are analysed again.
func (w *Workspace) OpenConfig(a Address, text string) {
	w.configs.set(a.Path, source.New(a.Path, text))
	w.ConfigChanged()
}

// ChangeConfig applies edits to an open dmir.toml. Documents are analysed again
// at the next call of ConfigChanged, which may wait until typing pauses.
func (w *Workspace) ChangeConfig(a Address, edits []Edit) error {
	f := w.configs.opened(a.Path)
	if f == nil {
		return fmt.Errorf("%s is not open", a.Key)
	}
	f, _ = apply(f, edits, w.Encoding())
	w.configs.set(a.Path, f)
	return nil
}

// Config returns the text of a dmir.toml that is open in the editor, nil where it
// is not.
func (w *Workspace) Config(a Address) *source.File { return w.configs.opened(a.Path) }

// CloseConfig goes back to the file on disk.
func (w *Workspace) CloseConfig(a Address) {
	w.configs.set(a.Path, nil)
	w.ConfigChanged()
}

// unknownTarget reports that the editor's settings name no machine.
func unknownTarget(name string, conf *config.Config, used string) diag.Diagnostic {
	d := diag.Diagnostic{
		Code: "DM904", Name: "config-value", Severity: diag.Warning,
		Message: fmt.Sprintf("the setting dmir.target is not a known machine: %q; times are for %s", name, used),
	}
	if near := diag.Suggest(name, conf.MachineNames()); near != "" {
		d.Help = fmt.Sprintf("did you mean %q?", near)
	}
	return d
}
