package arch

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"dmir/testkit/sources"
)

// Each package has one package comment, where readers look for it: in doc.go,
// or in the file that has the package's name (main.go of a command). A package
// that consists of tests alone has it in NAME_test.go.
func TestPackageComments(t *testing.T) {
	type folder struct {
		names    []string // allowed for the file with the comment
		comments []string // files with a package comment
	}
	code, tests := map[string]*folder{}, map[string]*folder{}
	sources.Each(t, root, func(path string) {
		if filepath.Ext(path) != ".go" {
			return
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.PackageClauseOnly)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(f.Name.Name, "_test")
		all, names := code, []string{"doc.go", name + ".go"}
		if strings.HasSuffix(path, "_test.go") {
			all, names = tests, []string{name + "_test.go"}
		}
		dir := filepath.Dir(path)
		if all[dir] == nil {
			all[dir] = &folder{names: names}
		}
		if f.Doc != nil {
			all[dir].comments = append(all[dir].comments, filepath.Base(path))
		}
	})
	for dir, f := range tests {
		if code[dir] == nil {
			code[dir] = f
		} else if len(f.comments) > 0 {
			t.Errorf("%s: tests have a package comment: %v", dir, f.comments)
		}
	}
	for dir, f := range code {
		if len(f.comments) != 1 || !slices.Contains(f.names, f.comments[0]) {
			t.Errorf("%s: package comments in %v, want one, in %s", dir, f.comments, strings.Join(f.names, " or "))
		}
	}
}
