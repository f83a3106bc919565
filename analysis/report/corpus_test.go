package report_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"dmir/analysis/program"
	"dmir/analysis/report"
	"dmir/syntax/source"
	"dmir/testkit/need"
)

const corpus = "../../../shared/conformance/mlir"

// The functions of MLIR's own tests, of every dialect and with every control
// flow, have panels: nodes and steps for what dmir does not know, groups for
// its regions, and no difference from themselves.
func TestCorpus(t *testing.T) {
	files, functions, plans, edges := 0, 0, 0, 0
	err := filepath.WalkDir(corpus, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".mlir" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		files++
		old := program.Load(source.New(path, string(text)), program.Options{})
		p := program.Load(source.New(path, string(text)), program.Options{})
		for _, f := range p.Funcs {
			functions++
			for _, kind := range report.KindsOf(p, f.Func.Name) {
				d, err := report.Build(p, kind, f.Func.Name, report.Options{})
				if err != nil {
					t.Fatalf("%s: %v", path, err)
				}
				if _, err := report.JSON(d); err != nil {
					t.Fatalf("%s: @%s: %v", path, f.Func.Name, err)
				}
				if d.Memory != nil && d.Memory.Reason == "" {
					plans++
				}
				if d.Graph != nil {
					edges += len(d.Graph.Edges)
				}
			}
		}
		d, err := report.Build(p, report.KindDiff, "", report.Options{Old: old, Gate: true})
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if !d.Diff.Same {
			t.Errorf("%s differs from itself", path)
		}
		for _, b := range d.Diff.Breaches {
			if b.Grown {
				t.Errorf("%s: %s", path, b.Message)
			}
		}
		return nil
	})
	if err != nil || files == 0 {
		need.OK(t, fmt.Errorf("the conformance files are missing at %s: %v", corpus, err))
	}
	t.Logf("%d files, %d functions, %d with a plan, %d edges", files, functions, plans, edges)
	if functions == 0 || edges == 0 || plans == 0 {
		t.Error("nothing was drawn")
	}
}
