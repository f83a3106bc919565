package refactor_test

import (
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"dmir/analysis/refactor"
	"dmir/testkit/need"
)

// TestConformanceFiles tries selections in files of other projects, whatever
// their dialects: what is offered can be applied and leaves no error.
func TestConformanceFiles(t *testing.T) {
	root := filepath.Join("..", "..", "..", "shared", "conformance")
	_, missing := os.Stat(root)
	need.OK(t, missing)
	r := rand.New(rand.NewPCG(1, 9))
	done := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".mlir" || r.IntN(2) > 0 {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil || len(text) > 1<<16 {
			return err
		}
		p := load(t, string(text), nil)
		for _, span := range selections(p, r, 2) {
			for _, a := range refactor.Actions(p, span) {
				c, err := refactor.Apply(p, span, a.ID)
				if (err == nil) != (a.Disabled == "") {
					t.Errorf("%s %v: %q: %q, but %v", path, span, a.Title, a.Disabled, err)
				}
				if err != nil {
					continue
				}
				done++
				after := apply(t, string(text), c.Edits)
				if was, is := errorsIn(p), errorsIn(load(t, after, nil)); len(is) > len(was) {
					t.Errorf("%s %v: %q leaves an error: %s\n%s", path, span, a.Title, is[0].Message, format1(string(text), after))
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	t.Logf("%d actions applied", done)
}
