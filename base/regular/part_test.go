package regular

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"dmir/testkit/need"
)

// Parts of a file are its bytes, those of a changed file the new ones, and none lie beyond its end.
func TestPart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	part := func(at, size int64) []byte {
		f, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		return Part(f, at, size)
	}
	write := func(text string, second int64) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, time.Time{}, time.Unix(second, 0)); err != nil {
			t.Fatal(err)
		}
	}
	write("abcdef", 1)
	if part(0, 6) == nil {
		need.OK(t, errors.New("files are not mapped on this system"))
	}
	if a, b := part(1, 3), part(3, 3); string(a) != "bcd" || string(b) != "def" || &a[2] != &b[0] {
		t.Errorf("%q, %q of one mapping", a, b)
	}
	for _, outside := range [][2]int64{{4, 3}, {7, 0}, {-1, 2}, {1, 1 << 62}, {1 << 62, 1}} {
		if got := part(outside[0], outside[1]); got != nil {
			t.Errorf("%v: %q", outside, got)
		}
	}
	write("ABCDEFG", 2)
	if got := part(1, 6); string(got) != "BCDEFG" {
		t.Errorf("of the changed file: %q", got)
	}
}
