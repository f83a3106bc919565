package feature_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/txtar"

	"dmir/analysis/lint"
	"dmir/analysis/program"
	"dmir/compile/kernel"
	"dmir/dialect/ir"
	"dmir/lsp/feature"
	"dmir/syntax/source"
)

// maxTitle is the number of characters that a menu shows of a title.
const maxTitle = 90

// No two actions offered for an op, or for the ops of a function together, have
// one title, and each title fits into a menu.
func TestTitles(t *testing.T) {
	for name, text := range programs(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := program.Load(source.New(name, text), program.Options{OneKernel: kernel.Unfit})
			found := slices.Concat(p.Diags, lint.Run(context.Background(), p, lint.Options{}))
			var ops []*ir.Op
			for _, m := range p.Modules {
				ops = append(ops, m.Ops...)
			}
			ir.Walk(ops, func(o *ir.Op) bool {
				spans := []source.Span{{Start: o.Span.Start, End: o.Span.Start}}
				if len(o.Regions) > 0 {
					spans = append(spans, o.Span)
				}
				for _, span := range spans {
					seen := map[string]bool{}
					for _, a := range feature.Actions(p, found, span, func(string) bool { return true }) {
						at := fmt.Sprintf("line %d: %q", p.Src.Pos(span.Start).Line+1, a.Title)
						if seen[a.Title] {
							t.Errorf("%s twice", at)
						}
						if utf8.RuneCountInString(a.Title) > maxTitle {
							t.Errorf("%s is long", at)
						}
						seen[a.Title] = true
					}
				}
				return !t.Failed()
			})
		})
	}
}

// programs are the examples, and the programs in lint's tests, by name.
func programs(t *testing.T) map[string]string {
	out := map[string]string{}
	for _, root := range []string{"../../examples", "../../analysis/lint/testdata"} {
		err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			switch filepath.Ext(path) {
			case ".dmir":
				text, err := os.ReadFile(path)
				out[filepath.Base(path)] = string(text)
				return err
			case ".txtar":
				a, err := txtar.ParseFile(path)
				if err != nil {
					return err
				}
				for _, f := range a.Files {
					if strings.HasSuffix(f.Name, ".dmir") {
						out[filepath.Base(path)+"/"+f.Name] = string(f.Data)
					}
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return out
}
