package workspace

import (
	"maps"
	"path/filepath"
	"strings"
)

// choices are the settings of the editor and, where it has several folders
// open, those of each folder. The Workspace's lock guards them.
type choices struct {
	general Settings
	folders map[string]Settings // by the folder's path on disk
}

// of are the settings for a document: those of the innermost folder that holds
// it, the general ones for a document outside all folders and for one that is
// no file. What dmir itself has made is not linted: it cannot be edited there.
func (c *choices) of(a Address) Settings {
	best, set := -1, c.general
	path := a.base()
	for dir, s := range c.folders {
		if len(dir) > best && inside(path, dir) {
			best, set = len(dir), s
		}
	}
	set.Lint = set.Lint && a.Base == ""
	return set
}

// inside reports whether path is dir or lies in it.
func inside(path, dir string) bool {
	if !filepath.IsAbs(path) {
		return false
	}
	rest, ok := strings.CutPrefix(path, strings.TrimRight(dir, `/\`))
	return ok && (rest == "" || rest[0] == filepath.Separator)
}

func (c *choices) equal(d choices) bool {
	return c.general.Equal(d.general) && maps.EqualFunc(c.folders, d.folders, Settings.Equal)
}

// SetSettings changes the choices, of the editor and of the folders, by their
// paths, that have their own; every open document whose choices differ is
// looked at again. It reports whether anything changed.
func (w *Workspace) SetSettings(general Settings, folders map[string]Settings) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	next := choices{general, maps.Clone(folders)}
	if w.choices.equal(next) {
		return false
	}
	w.choices = next
	for _, d := range w.docs {
		if set := next.of(d.snap.Address); !set.Equal(d.snap.Settings) {
			w.renew(d)
		}
	}
	return true
}

// Settings are the choices that hold for documents outside all folders.
func (w *Workspace) Settings() Settings {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.choices.general
}

// LintsClosed reports whether files that are not open are to be linted anywhere.
func (w *Workspace) LintsClosed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.choices.folders {
		if s.LintWorkspace {
			return true
		}
	}
	return w.choices.general.LintWorkspace
}

// SettingsOf are the choices for a document, open or not.
func (w *Workspace) SettingsOf(a Address) Settings {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.choices.of(a)
}
