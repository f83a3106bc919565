package pipeline_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"dmir/compile/pass"
	"dmir/compile/pass/passtest"
	"dmir/compile/pipeline"
)

// After every pass the text of a program can be read again and computes what
// the program computed. An attention that was written out rounds half precision
// otherwise from then on; in f32 it is the same.
func TestStages(t *testing.T) {
	files, err := filepath.Glob("../../testdata/programs/*.dmir")
	if err != nil || len(files) == 0 {
		t.Fatal("no programs", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".dmir"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			want := string(text)
			u := passtest.Unit(t, want, "", nil)
			err = pass.Run(u, pipeline.Until("fuse"), func(s pass.Stage) error {
				after := passtest.Text(t, u)
				if s.Pass.Name == "attention" {
					want = after
					wide := strings.ReplaceAll(string(text), "f16", "f32")
					found, err := passtest.Apply(t, wide, u.Func.Name, nil, pipeline.Until("attention")...)
					if err != nil {
						return err
					}
					passtest.Same(t, wide, found, u.Func.Name, nil, 256)
				}
				if again := passtest.Text(t, passtest.Unit(t, after, u.Func.Name, nil)); again != after {
					t.Errorf("after %s the text does not say all", s.Pass.Name)
				}
				passtest.Same(t, want, after, u.Func.Name, nil, 256)
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestUntil(t *testing.T) {
	names := pipeline.Names()
	for i, name := range names {
		if got := pipeline.Until(name); len(got) != i+1 || got[i].Name != name {
			t.Errorf("Until(%s) gives %d passes", name, len(got))
		}
	}
	if got := pipeline.Until("nothing"); len(got) != len(names) {
		t.Errorf("a name that there is not gives %d of %d passes", len(got), len(names))
	}
	at := -1
	for _, name := range []string{"inline", "bind", "attention", "gradient", "simplify", "layout", "fuse", "schedule", "plan"} {
		i := slices.Index(names, name)
		if i <= at {
			t.Errorf("%s is number %d, behind number %d", name, i, at)
		}
		at = i
	}
}
