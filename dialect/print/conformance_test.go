package print_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dmir/dialect/lower"
	"dmir/dialect/print"
	"dmir/dialect/verify"
	"dmir/syntax/diag"
	"dmir/syntax/parse"
	"dmir/syntax/source"
	"dmir/testkit/need"
)

// TestForeign lowers MLIR files of many projects, whose ops dmir mostly does
// not know: nothing is wrong with them, and their pretty form lowers to equal
// modules.
func TestForeign(t *testing.T) {
	const root = "../../../shared/conformance/mlir"
	_, missing := os.Stat(root)
	need.OK(t, missing)
	files, sections, unprintable := 0, 0, 0
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".mlir") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		files++
		for _, m := range lower.File(parse.File(source.New(path, string(text)))) {
			sections++
			for _, d := range append(m.Diags, verify.Module(m)...) {
				if d.Severity == diag.Error {
					line, col := m.Src.Human(d.Span.Start)
					t.Errorf("%s:%d:%d: [%s] %s", path, line, col, d.Code, d.Message)
				}
			}
			out, err := print.Pretty(m)
			if err != nil {
				unprintable++
				t.Errorf("%s: %v", path, err)
				continue
			}
			back := lower.File(parse.File(source.New(path, out)))[0]
			if d := print.Diff(m, back); d != "" {
				t.Errorf("%s: %s", path, d)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d files, %d sections, %d of them cannot be printed", files, sections, unprintable)
}
