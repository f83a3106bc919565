package stablehlo_test

import (
	"flag"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"dmir/dialect/ir"
	"dmir/dialect/ir/irtest"
	"dmir/dialect/lower"
	"dmir/dialect/print"
	"dmir/dialect/stablehlo"
	"dmir/dialect/verify"
	"dmir/syntax/diag"
	"dmir/syntax/parse"
	"dmir/syntax/source"
)

var (
	update  = flag.Bool("update", false, "rewrite the expected outputs")
	mutants = flag.Int("mutants", 1000, "how many programs TestMutants makes")
)

var token = regexp.MustCompile(`[%@^#!]?[A-Za-z_0-9.]+|[^ \n]`)

var word = regexp.MustCompile(`[a-z_]+ = |%[a-z0-9_]+, |tensor<[^>]*>`)

// TestImport imports the files NAME.mlir of each archive and compares the text, or the
// diagnostics, with NAME.want. What is written is formatted and valid in the dialect.
func TestImport(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no cases: ", err)
	}
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]*txtar.File{}
		for i := range archive.Files {
			want[archive.Files[i].Name] = &archive.Files[i]
		}
		var out []txtar.File
		for _, f := range archive.Files {
			name, ok := strings.CutSuffix(f.Name, ".mlir")
			if !ok {
				continue
			}
			t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar")+"/"+name, func(t *testing.T) {
				got := imported(t, f.Name, string(f.Data))
				out = append(out, f, txtar.File{Name: name + ".want", Data: []byte(got)})
				if w := want[name+".want"]; !*update && (w == nil || string(w.Data) != got) {
					t.Errorf("got\n%s", got)
				}
			})
		}
		if *update {
			archive.Files = out
			if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// imported is the text of all sections, or the diagnostics of those with errors.
func imported(t *testing.T, name, text string) string {
	t.Helper()
	src := source.New(name, text)
	var out []string
	bind := map[string]int64{} // its first line may be "// bind b=3 t=2"
	if first, _, _ := strings.Cut(text, "\n"); strings.HasPrefix(first, "// bind ") {
		for _, f := range strings.Fields(first)[2:] {
			name, n, _ := strings.Cut(f, "=")
			bind[name], _ = strconv.ParseInt(n, 10, 64)
		}
	}
	for _, m := range stablehlo.ImportBound(parse.File(src), bind, nil) {
		var b strings.Builder
		for _, d := range m.Diags {
			diag.Text(&b, src, d, diag.Style{})
		}
		if !slices.ContainsFunc(m.Diags, func(d diag.Diagnostic) bool { return d.Severity == diag.Error }) {
			b.WriteString(written(t, m))
		}
		out = append(out, b.String())
	}
	return strings.Join(out, "// -----\n")
}

// written is the text of m, which has no errors and is read as the same program.
func written(t testing.TB, m *ir.Module) string {
	t.Helper()
	for _, d := range verify.Module(m) {
		t.Fatalf("the imported program is not valid: %s", d.Message)
	}
	irtest.InOrder(t, m)
	text, err := print.Source(m, print.Locations)
	if err != nil {
		t.Fatal(err)
	}
	for _, again := range lower.File(parse.File(source.New("again.dmir", text))) {
		for _, d := range append(again.Diags, verify.Module(again)...) {
			if d.Severity == diag.Error {
				t.Fatalf("%s\nin\n%s", d.Message, text)
			}
		}
		if d := print.Diff(m, again); d != "" {
			t.Fatalf("the text is another program: %s\n%s", d, text)
		}
	}
	return text
}

// FuzzImport: no text makes the importer panic or hang; every diagnostic has a place
// in the text; a program without diagnostics is valid.
func FuzzImport(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.txtar")
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for _, x := range archive.Files {
			if strings.HasSuffix(x.Name, ".mlir") {
				for _, section := range strings.Split(string(x.Data), "// -----\n") {
					f.Add(section)
				}
			}
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		src := source.New("fuzz.mlir", text)
		tree := parse.File(src)
		for _, m := range stablehlo.Import(tree) {
			for _, d := range m.Diags {
				if d.Span.Start < 0 || d.Span.End > src.Len() || d.Span.Start > d.Span.End {
					t.Fatalf("%s is at %v of %d", d.Message, d.Span, src.Len())
				}
				if d.Message == "" || strings.ContainsAny(d.Message, "\n") || strings.Contains(d.Message, "internal error") && !strings.Contains(text, "internal error") {
					t.Fatalf("message %q", d.Message)
				}
			}
			if len(m.Diags) > 0 {
				continue
			}
			for _, d := range verify.Module(m) {
				if !slices.Contains(stated, d.Code) {
					t.Fatalf("the imported program is not valid: %s %s", d.Code, d.Message)
				}
			}
			if _, err := print.Source(m); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// stated are the codes of attributes of the dialect itself, which arguments and results keep as the program states
// them: the verifier reports their mistakes.
var stated = []string{"DM131", "DM132", "DM133", "DM192"}

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
			if r.IntN(4) == 0 {
				at = token.FindAllStringIndex(text, -1)
			}
			if len(at) == 0 {
				continue
			}
			span := at[r.IntN(len(at))]
			to := others[r.IntN(len(others))]
			switch r.IntN(12) {
			case 0, 1:
				to = ""
			case 2: // what stands elsewhere
				from := at[r.IntN(len(at))]
				to = text[from[0]:from[1]]
			case 3: // the end is missing
				span[1] = len(text)
			}
			text = text[:span[0]] + to + text[span[1]:]
		}
		t.Run("", func(t *testing.T) {
			defer func() {
				if r := recover(); r != nil || t.Failed() {
					t.Fatalf("%v in\n%s", r, text)
				}
			}()
			if got := imported(t, "mutant", text); strings.Contains(got, "internal error") {
				t.Errorf("%s", got)
			}
		})
		if t.Failed() {
			return
		}
	}
}
