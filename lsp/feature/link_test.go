package feature_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dmir/compile/tensor"
	"dmir/dialect/types"
	"dmir/lsp/feature"
	"dmir/syntax/source"
)

// Names of files in strings and comments; "‹…›" is what becomes a link.
func TestLinks(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"// see ‹layers/attention.dmir›, and nothing else", "/w/layers/attention.dmir"},
		{"// see ‹../a.mlir:12›", "/a.mlir 12"},
		{"// see ‹a.dmir:12:3›: there", "/w/a.dmir 12"},
		{"%x = dm.constant {file = \"‹w/q.npy›\"} : tensor<4xf32> // from ‹/abs/q.npz›", "/w/w/q.npy, /abs/q.npz"},
		{"// run --input x=‹x.npy›.", "/w/x.npy"},
		{"// (‹a.dmir›) [‹b.dmir›] `‹c.dmir›`", "/w/a.dmir, /w/b.dmir, /w/c.dmir"},
		{"// \"‹é/ü.dmir›\"", "/w/é/ü.dmir"},
		{"// ‹./dmir.toml›", "/w/dmir.toml"},
		{"// https://example.com/a.dmir, ~/a.dmir, //host/a.dmir, \\\\host\\a.dmir", ""},
		{"// .dmir files, a.dmirs, a.dmir/b, a.npy_", ""},
		{"%a = d.dmir %npy.npy", ""},
		{"\"not closed ‹a.dmir›", "/w/a.dmir"},
		{"\"a\" // ‹b.dmir› \"c", "/w/b.dmir"},
	} {
		var want strings.Builder
		text := c.text
		for {
			open := strings.Index(text, "‹")
			if open < 0 {
				break
			}
			text = strings.Replace(text, "‹", "", 1)
			end := strings.Index(text, "›")
			text = strings.Replace(text, "›", "", 1)
			fmt.Fprintf(&want, "%d-%d ", open, end)
		}
		var got strings.Builder
		var paths []string
		for _, l := range feature.Links(source.New("/w/in.dmir", text)) {
			fmt.Fprintf(&got, "%d-%d ", l.Span.Start, l.Span.End)
			path := filepath.ToSlash(l.Path)
			if l.Line > 0 {
				path += fmt.Sprint(" ", l.Line)
			}
			paths = append(paths, path)
		}
		if got.String() != want.String() || strings.Join(paths, ", ") != c.want {
			t.Errorf("%s: links at %sto %q", c.text, got.String(), paths)
		}
		for _, l := range feature.Links(source.New("untitled:1", text)) {
			if !filepath.IsAbs(l.Path) || !strings.Contains(text, filepath.ToSlash(l.Path)) {
				t.Errorf("a text that is no file links to %s", l.Path)
			}
		}
	}
}

// Hovers over links to files.
func TestLinkTooltip(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var array strings.Builder
	if err := tensor.WriteNPY(&array, tensor.New(types.F32, 4, 8)); err != nil {
		t.Fatal(err)
	}
	write("x.npy", array.String())
	write("y.npy", "no array")
	write("a.dmir", strings.Repeat("\n", 1500))
	for name, want := range map[string]string{
		"x.npy":    "tensor<4x8xfloat32>, 256 B",
		"y.npy":    "not an array in NumPy's format, 8 B",
		"a.dmir":   "a.dmir, 1.50 kB",
		"a.dmir:7": "line 7 of a.dmir, 1.50 kB",
		"b.dmir":   "there is no such file: " + filepath.Join(dir, "b.dmir"),
	} {
		links := feature.Links(source.New(filepath.Join(dir, "in.dmir"), "// "+name))
		if len(links) != 1 {
			t.Fatalf("%s: links %v", name, links)
		}
		if got := links[0].Tooltip(); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}
