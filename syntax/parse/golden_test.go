package parse

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dmir/syntax/source"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestGolden compares the tree of each archive's file "in" with its file
// "tree". The directory tree holds what MLIR accepts, recover what is broken.
func TestGolden(t *testing.T) {
	paths, err := filepath.Glob("testdata/*/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatal("no golden files", err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			ar, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			in := string(ar.Files[0].Data)
			f := File(source.New("in", in))
			if msg := check(f); msg != "" {
				t.Error(msg)
			}
			if strings.Contains(path, "/tree/") && len(f.Diags) > 0 {
				t.Errorf("unexpected diagnostic: %+v", f.Diags[0])
			}
			got := dump(f)
			if *update {
				ar.Files = append(ar.Files[:1], txtar.File{Name: "tree", Data: []byte(got)})
				if err := os.WriteFile(path, txtar.Format(ar), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if len(ar.Files) < 2 {
				t.Fatal("no golden tree; run with -update")
			}
			if diff := cmp.Diff(string(ar.Files[1].Data), got); diff != "" {
				t.Errorf("tree differs (-want +got):\n%s", diff)
			}
		})
	}
}
