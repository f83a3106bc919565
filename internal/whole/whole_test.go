package whole

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// A file is replaced in full with its mode, or stays as it was; nothing else is
// left in the folder either way.
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
