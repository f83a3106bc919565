package format_test

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dmir/syntax/ast"
	"dmir/syntax/diag"
	"dmir/syntax/format"
	"dmir/syntax/parse"
	"dmir/syntax/source"
	"dmir/testkit/need"
)

// corpus is the folder of MLIR files from twelve projects, seen from here. DMIR_CORPUS
// names another one; what MLIR refuses there is refused here as well.
const corpus = "../../../shared/conformance/mlir"

// corpusFiles are all of its files; a test that finds none is skipped, but in
// continuous integration it fails.
func corpusFiles(t testing.TB) []*source.File {
	t.Helper()
	corpus := cmp.Or(os.Getenv("DMIR_CORPUS"), corpus)
	var files []*source.File
	err := filepath.WalkDir(corpus, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".mlir" {
			return err
		}
		text, err := os.ReadFile(path)
		name, _ := filepath.Rel(corpus, path)
		files = append(files, source.New(filepath.ToSlash(name), string(text)))
		return err
	})
	if err == nil && len(files) > 0 {
		return files
	}
	need.OK(t, fmt.Errorf("the conformance files are missing at %s: %v", corpus, err))
	return nil
}

func TestCorpus(t *testing.T) {
	files := corpusFiles(t)
	parsed, idempotent, sameTokens, sameTree := 0, 0, 0, 0
	for _, src := range files {
		f := parse.File(src)
		errs := errorsOf(f)
		if len(errs) == 0 {
			parsed++
		} else {
			line, col := src.Human(errs[0].Span.Start)
			t.Errorf("%s:%d:%d: %s", src.Path, line, col, errs[0].Message)
		}
		once := format.File(f)
		again := parse.File(source.New(src.Path, once))
		if d := format.Diff(src.Path, once, format.File(again)); d == "" {
			idempotent++
		} else {
			t.Errorf("formatting twice differs from once:\n%s", d)
		}
		if d := tokenDiff(format.Tokens(src.Text()), format.Tokens(once)); d == "" {
			sameTokens++
		} else {
			t.Errorf("%s: formatting %s", src.Path, d)
		}
		if a, b := dump(f), dump(again); a == b {
			sameTree++
		} else {
			t.Errorf("formatting changes the tree:\n%s", format.Diff(src.Path, a, b))
		}
	}
	t.Logf("of %d files: %d parsed without error, %d formatted idempotently, %d with the same tokens, %d with the same tree",
		len(files), parsed, idempotent, sameTokens, sameTree)
}

func errorsOf(f *ast.File) []diag.Diagnostic {
	var errs []diag.Diagnostic
	for _, d := range f.Diags {
		if d.Severity == diag.Error {
			errs = append(errs, d)
		}
	}
	return errs
}

// tokenDiff returns where two token sequences differ, "" if nowhere.
func tokenDiff(a, b []string) string {
	for i := range max(len(a), len(b)) {
		switch {
		case i == len(a):
			return "adds the token " + b[i]
		case i == len(b):
			return "loses the token " + a[i]
		case a[i] != b[i]:
			return "turns the token " + a[i] + " into " + b[i] + " behind " + strings.Join(a[max(0, i-5):i], " ")
		}
	}
	return ""
}
