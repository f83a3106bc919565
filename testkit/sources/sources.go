// Package sources visits the files of a repository that people write, for tests of what they say.
package sources

import (
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Each calls do with each file below root. It leaves out testdata, hidden folders, and what other tests may be installing or building meanwhile.
func Each(t testing.TB, root string, do func(path string)) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case !d.IsDir():
			do(path)
		case path != root && (strings.HasPrefix(d.Name(), ".") || slices.Contains([]string{"build", "node_modules", "testdata"}, d.Name())):
			return filepath.SkipDir
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
