package format_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"dmir/syntax/ast"
	"dmir/syntax/parse"
	"dmir/syntax/scope"
	"dmir/syntax/source"
)

// accepted are the files in the archives of testdata/accepted.
func accepted(t testing.TB) []*source.File {
	t.Helper()
	paths, err := filepath.Glob("testdata/accepted/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no table of what is accepted: %v", err)
	}
	var files []*source.File
	for _, path := range paths {
		a, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range a.Files {
			files = append(files, source.New(f.Name, string(f.Data)))
		}
	}
	return files
}

// TestAccepted reads each kind of syntax in the table: without an error, as many
// ops as its first line states, with every name defined in its scope.
func TestAccepted(t *testing.T) {
	for _, src := range accepted(t) {
		t.Run(src.Path, func(t *testing.T) {
			f := parse.File(src)
			x := scope.Build(f, func(op string) bool { return op == "call" || op == "func.call" })
			for _, d := range append(errorsOf(f), x.Diags...) {
				line, col := src.Human(d.Span.Start)
				t.Errorf("%d:%d: %s", line, col, d.Message)
			}
			for _, n := range x.Names() {
				if n.Kind == scope.Value && !n.Defined() {
					t.Errorf("%s is not defined", n.Text)
				}
			}
			n := 0
			ast.Walk(f.Items, func(*ast.Op) bool { n++; return true })
			first, _, _ := strings.Cut(src.Text(), "\n")
			if got := fmt.Sprint("// ops: ", n); got != first {
				t.Errorf("read %s, want %s:\n%s", got, first, dump(f))
			}
			hold(t, src.Text())
		})
	}
}
