package stablehlo_test

import (
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"dmir/dialect/lower"
	"dmir/dialect/stablehlo"
	"dmir/dialect/verify"
	"dmir/syntax/diag"
	"dmir/syntax/format"
	"dmir/syntax/parse"
	"dmir/syntax/source"
)

var (
	update  = flag.Bool("update", false, "rewrite the golden files")
	mutants = flag.Int("mutants", 1000, "how many programs TestMutants makes")
)

var word = regexp.MustCompile(`[a-z_]+ = |%[a-z0-9_]+, |tensor<[^>]*>`)

// TestGolden imports the programs of testdata: each becomes the text beside it, or has
// the diagnostics beside it.
func TestGolden(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatal("no programs", err)
	}
	for _, path := range paths {
		ar, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var out []txtar.File
		for _, f := range ar.Files {
			name, input := strings.CutSuffix(f.Name, ".mlir")
			if !input {
				continue
			}
			got := imported(t, name, string(f.Data))
			out = append(out, f, txtar.File{Name: name + ".want", Data: []byte(got)})
			for _, want := range ar.Files {
				if want.Name == name+".want" && !*update {
					if d := cmp.Diff(string(want.Data), got); d != "" {
						t.Errorf("%s/%s (-want +got):\n%s", path, name, d)
					}
				}
			}
		}
		if *update {
			ar.Files = out
			if err := os.WriteFile(path, txtar.Format(ar), 0o644); err != nil {
				t.Fatal(err)
			}
		} else if len(out) != len(ar.Files) {
			t.Errorf("%s: run with -update", path)
		}
	}
}

// imported is the imported text, which must be valid and formatted, or the diagnostics.
func imported(t *testing.T, name, text string) string {
	src := source.New(name+".mlir", text)
	got, diags := stablehlo.Text(src)
	if len(diags) > 0 {
		var b strings.Builder
		for _, d := range diags {
			line, col := src.Human(d.Span.Start)
			fmt.Fprintf(&b, "%d:%d: %s: %s\n", line, col, d.Code, d.Message)
		}
		return b.String()
	}
	if got == text {
		return got // nothing was to be replaced
	}
	tree := parse.File(source.New(name+".dmir", got))
	if format.File(tree) != got {
		t.Errorf("%s: not formatted:\n%s", name, got)
	}
	for _, m := range lower.File(tree) {
		for _, d := range append(m.Diags, verify.Module(m)...) {
			if d.Severity >= diag.Warning {
				t.Errorf("%s: %s %s\n%s", name, d.Code, d.Message, got)
			}
		}
	}
	return got
}

// FuzzImport imports any text: it reports what it cannot import, and what it imports
// is valid.
func FuzzImport(f *testing.F) {
	paths, _ := filepath.Glob("testdata/*.txtar")
	for _, path := range paths {
		ar, err := txtar.ParseFile(path)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range ar.Files {
			if strings.HasSuffix(file.Name, ".mlir") {
				f.Add(string(file.Data))
			}
		}
	}
	root := filepath.Join("..", "..", "..", "shared", "conformance", "stablehlo")
	_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			if text, err := os.ReadFile(path); err == nil && len(text) < 4000 {
				f.Add(string(text))
			}
		}
		return nil
	})
	f.Fuzz(func(t *testing.T, text string) {
		if got := imported(t, "fuzz", text); strings.Contains(got, "internal error") && !strings.Contains(text, "internal error") {
			t.Error(got)
		}
	})
}

var number = regexp.MustCompile(`-?[0-9]+`)

// Programs in which numbers, and now and then a word, have become others are imported
// or have diagnostics.
func TestMutants(t *testing.T) {
	var texts []string
	paths, _ := filepath.Glob("testdata/*.txtar")
	for _, path := range paths {
		ar, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range ar.Files {
			if strings.HasSuffix(file.Name, ".mlir") {
				texts = append(texts, string(file.Data))
			}
		}
	}
	root := filepath.Join("..", "..", "..", "shared", "conformance", "stablehlo")
	_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			if text, err := os.ReadFile(path); err == nil && len(text) < 6000 {
				texts = append(texts, string(text))
			}
		}
		return nil
	})
	r := rand.New(rand.NewPCG(1, 2))
	others := []string{"0", "1", "2", "3", "5", "-1", "9", "1000", "9223372036854775807"}
	for range *mutants {
		text := texts[r.IntN(len(texts))]
		for range 1 + r.IntN(3) {
			at := number.FindAllStringIndex(text, -1)
			if r.IntN(6) == 0 {
				at = word.FindAllStringIndex(text, -1)
			}
			if len(at) == 0 {
				continue
			}
			span := at[r.IntN(len(at))]
			to := others[r.IntN(len(others))]
			if r.IntN(6) == 0 {
				to = ""
			}
			text = text[:span[0]] + to + text[span[1]:]
		}
		if got := imported(t, "mutant", text); strings.Contains(got, "internal error") {
			t.Fatalf("%s\n%s", got, text)
		}
		if t.Failed() {
			t.Fatal(text)
		}
	}
}
