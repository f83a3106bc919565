package scope_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"dmir/syntax/parse"
	"dmir/syntax/scope"
	"dmir/syntax/source"
	"dmir/testkit/need"
)

const corpus = "../../../shared/conformance/mlir"

// sigiled finds the values, labels and symbols of a text, besides its strings
// and comments.
var sigiled = regexp.MustCompile(`"(?:[^"\\\n]|\\.)*"|//[^\n]*|[%^@](?:[0-9]+|[A-Za-z$._-][A-Za-z0-9$._-]*)`)

// Every file of the corpus is valid MLIR: all of its names resolve, and
// none is overlooked.
func TestCorpus(t *testing.T) {
	files, names, uses, findings := 0, 0, 0, 0
	err := filepath.WalkDir(corpus, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".mlir" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		files++
		src := source.New(path, string(text))
		x := scope.Build(parse.File(src), calls)
		for _, dg := range x.Diags {
			findings++
			line, col := src.Human(dg.Span.Start)
			t.Errorf("%s:%d:%d: %s: %s: %s", path, line, col, dg.Severity, dg.Code, dg.Message)
		}
		for _, n := range x.Names() {
			names++
			if n.Kind == scope.Value && !n.Defined() {
				findings++
				t.Errorf("%s: %s is not defined", path, n.Text)
			}
			uses += len(n.Uses())
		}
		for _, at := range sigiled.FindAllStringIndex(src.Text(), -1) {
			if c := src.Text()[at[0]]; c != '%' && c != '^' && c != '@' {
				continue // a string or a comment
			}
			if _, span, ok := x.At(at[0]); !ok || span.Start != at[0] {
				line, col := src.Human(at[0])
				t.Errorf("%s:%d:%d: %s is not in the index", path, line, col, src.Text()[at[0]:at[1]])
			}
		}
		return nil
	})
	if err != nil || files == 0 {
		need.OK(t, fmt.Errorf("the conformance files are missing at %s: %v", corpus, err))
	}
	t.Logf("%d files: %d names with %d uses; %d findings", files, names, uses, findings)
}
