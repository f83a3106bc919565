package workspace

import (
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"dmir/analysis/config"
	"dmir/analysis/lint"
	"dmir/analysis/machine"
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
	good map[string]*config.Config // the last ones without a problem, by the path of the file
	bad  map[string]bool           // files that were reported with problems
	open map[string]*source.File   // dmir.toml files open in the editor, by path: they win over disk
}

type cachedConfig struct {
	applied
	read time.Time
}

// applied is the configuration by which a program is analysed.
type applied struct {
	conf  *config.Config
	doubt string // why it is not what the file says, "" where it is
}

const configAge = 2 * time.Second

// forFile is the configuration for the program at path: while its dmir.toml has a
// problem, the last one that it gave without. A document that is no file has none.
func (c *configs) forFile(path string) applied {
	if !filepath.IsAbs(path) {
		return applied{conf: &config.Config{}}
	}
	dir := filepath.Dir(path)
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.dirs[dir]; ok && time.Since(e.read) < configAge {
		return e.applied
	}
	conf, src, diags := lint.ConfigWith(path, func(name string) (string, bool) {
		if f := c.open[name]; f != nil {
			return f.Text(), true
		}
		return "", false
	})
	if c.dirs == nil {
		c.dirs, c.bad, c.good = map[string]cachedConfig{}, map[string]bool{}, map[string]*config.Config{}
	}
	now := applied{conf: conf}
	switch last := c.good[conf.Path]; {
	case src == nil:
	case len(diags) == 0:
		c.good[conf.Path] = conf
	case last != nil:
		now = applied{last, fmt.Sprintf("by %s before the error in line %d", config.FileName, src.Pos(diags[0].Span.Start).Line+1)}
	default:
		now.doubt = fmt.Sprintf("%s has an error in line %d", config.FileName, src.Pos(diags[0].Span.Start).Line+1)
	}
	c.dirs[dir] = cachedConfig{now, time.Now()}
	if src != nil && conf.Path != "" && c.report != nil && (len(diags) > 0 || c.bad[conf.Path]) {
		c.bad[conf.Path] = len(diags) > 0
		c.report(ConfigFile{conf.Path, src, diags})
	}
	return now
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
		now := c.forFile(path)
		c.mu.Lock()
		if now.conf.Path != path && c.bad[path] && c.report != nil {
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

// Choice is whose choice a target is.
type Choice string

// Who chooses a target.
const (
	BySettings Choice = "settings" // of the editor
	ByConfig   Choice = "dmir.toml"
	ByDefault  Choice = "default"
)

// Status is what the figures of a document depend on besides its text.
type Status struct {
	Target *machine.Machine
	By     Choice
	Config string // the path of the dmir.toml that applies, "" where there is none
	Doubt  string // why the figures may not be those that are asked for, "" where they are
}

// Status is what the figures of v depend on.
func (v *View) Status() Status {
	s := Status{Target: v.Program().Target, By: ByDefault, Config: v.Config().Path, Doubt: v.l.doubt}
	switch {
	case v.Settings.Target != "" && len(v.l.choices) == 0:
		s.By = BySettings
	case v.Config().Target != "":
		s.By = ByConfig
	}
	return s
}

// unknownTarget reports that the editor's settings name no machine.
func unknownTarget(name string, conf *config.Config, used string) diag.Diagnostic {
	d := diag.Diagnostic{
		Code: "DM904", Name: "config-value", Severity: diag.Warning,
		Message: fmt.Sprintf("the setting dmir.target is not a known machine: %q; times are for %s", name, used),
		Help:    conf.Meant(name),
	}
	return d
}
