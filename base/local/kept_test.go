package local

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// The files that were used longest ago leave the cache first, but never the new one.
func TestTrim(t *testing.T) {
	dir := t.TempDir()
	for i, name := range []string{"new", "b", "a", "kept"} {
		path := filepath.Join(dir, name)
		must(t, os.WriteFile(path, make([]byte, 100), 0o600))
		must(t, os.WriteFile(SumName(path), nil, 0o600))
		used := time.Now().Add(-time.Duration(i+1) * time.Hour)
		must(t, os.Chtimes(path, used, used))
	}
	for _, name := range []string{".dmir-1", "new-1"} {
		stale := filepath.Join(dir, name)
		must(t, os.WriteFile(stale, nil, 0o600))
		must(t, os.Chtimes(stale, time.Time{}, time.Now().Add(-2*time.Hour)))
	}
	Trim(dir, filepath.Join(dir, "kept"), 250)
	left, err := os.ReadDir(dir)
	must(t, err)
	var names []string
	for _, e := range left {
		names = append(names, e.Name())
	}
	if got := len(names); got != 4 || names[0] != "kept" || names[2] != "new" {
		t.Errorf("left: %v", names)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
