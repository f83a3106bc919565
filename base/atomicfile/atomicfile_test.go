package atomicfile

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A file is replaced completely with its mode, or unchanged; no other file is left in
// the folder.
func TestWriteFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.txt")
	write := func(text string, fail error) error {
		return WriteFile(path, 0o640, func(w io.Writer) error {
			if _, err := io.WriteString(w, text); err != nil {
				return err
			}
			return fail
		})
	}
	broken := errors.New("half way")
	for _, step := range []struct {
		text string
		fail error
		want string
	}{{"one", nil, "one"}, {"two", broken, "one"}, {"three", nil, "three"}} {
		if err := write(step.text, step.fail); !errors.Is(err, step.fail) {
			t.Fatalf("%q: error %v, want %v", step.text, err, step.fail)
		}
		got, err := os.ReadFile(path)
		if err != nil || string(got) != step.want {
			t.Errorf("after %q: %q, %v; want %q", step.text, got, err, step.want)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("the folder holds %v", entries)
	}
	if err := WriteFile(filepath.Join(path, "b"), 0o644, func(io.Writer) error { return nil }); err == nil {
		t.Error("wrote below a file")
	}
}

// Links and streams are written to, not replaced by a file.
func TestOtherThanFiles(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	write := func(name, text string) error {
		return WriteFile(in(name), 0o644, func(w io.Writer) error { _, err := io.WriteString(w, text); return err })
	}
	read := func(name string) string {
		t.Helper()
		b, err := os.ReadFile(in(name))
		must(err)
		return string(b)
	}
	isLink := func(name string) {
		t.Helper()
		if info, err := os.Lstat(in(name)); err != nil || info.Mode()&os.ModeSymlink == 0 {
			t.Errorf("%s is a link no more: %v", name, err)
		}
	}
	must(os.MkdirAll(in("a/b"), 0o755))
	must(os.WriteFile(in("a/file"), []byte("old"), 0o600))
	must(os.Symlink("a/file", in("link")))
	must(os.Symlink("../link", in("a/chain")))
	must(os.Symlink("a/new", in("dangling")))
	must(os.Symlink("nowhere/new", in("lost")))
	must(os.Symlink("loop", in("loop")))
	must(os.Symlink("a/b", in("folder")))
	must(os.WriteFile(in("protected"), []byte("old"), 0o444))

	must(write("link", "one"))
	must(write("a/chain", "two"))
	must(write("dangling", "three"))
	for name, want := range map[string]string{"a/file": "two", "a/new": "three"} {
		if got := read(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	for _, name := range []string{"link", "a/chain", "dangling"} {
		isLink(name)
	}
	if info, err := os.Stat(in("a/file")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("its mode became %v", info.Mode())
	}
	for name, want := range map[string]string{
		"lost": "whose folder is not there", "loop": "links without end", "folder": "is a directory", "a": "is a directory", "protected": "permission denied",
	} {
		if err := write(name, "x"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
		if err := Check(in(name)); err == nil {
			t.Errorf("%s: no objection before", name)
		}
	}
	if read("protected") != "old" {
		t.Error("a protected file was written")
	}
	must(os.WriteFile(in("from"), []byte("moved"), 0o644))
	must(Move(in("from"), in("link")))
	if isLink("link"); read("a/file") != "moved" {
		t.Errorf("moved over a link: %q", read("a/file"))
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 7 {
		t.Errorf("the folder holds %v, %v", entries, err)
	}
}
