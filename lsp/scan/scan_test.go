package scan_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"dmir/lsp/scan"
	"dmir/syntax/source"
)

// tree writes files, each holding a function of its name, and returns their folder.
func tree(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		text := fmt.Sprintf("module @m {\n  func.func private @%s()\n}\n", strings.TrimSuffix(filepath.Base(path), filepath.Ext(path)))
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func paths(dir string, files []scan.File) string {
	var out []string
	for _, f := range files {
		rel, _ := filepath.Rel(dir, f.Path)
		out = append(out, filepath.ToSlash(rel))
	}
	return strings.Join(out, " ")
}

func TestFiles(t *testing.T) {
	dir := tree(t, "b.dmir", "a/x.dmir", "a/y.mlir", ".git/z.dmir", "node_modules/n.dmir", "a/b/c/d.dmir", "a/.h.dmir")
	roots := []string{dir, filepath.Join(dir, "a"), filepath.Join(dir, "none")}
	if got, want := paths(dir, scan.Files(context.Background(), roots)), "a/.h.dmir a/b/c/d.dmir a/x.dmir b.dmir"; got != want {
		t.Errorf("files %s, want %s", got, want)
	}
	if got, want := paths(dir, scan.Files(context.Background(), []string{filepath.Join(dir, ".git")})), ".git/z.dmir"; got != want {
		t.Errorf("a hidden folder that was asked for: %s", got)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if got := scan.Files(ctx, roots); len(got) != 0 {
		t.Errorf("cancelled, and %d files", len(got))
	}
}

func TestEach(t *testing.T) {
	files := make([]scan.File, 100)
	ctx, cancel := context.WithCancel(context.Background())
	var mu sync.Mutex
	done := 0
	scan.Each(ctx, files, func(scan.File) {
		mu.Lock()
		defer mu.Unlock()
		if done++; done == 10 {
			cancel()
		}
	})
	if done < 10 || done == len(files) {
		t.Errorf("%d files after the end", done)
	}
}

// An outline is read again when its file changes, and only then.
func TestOutlines(t *testing.T) {
	dir := tree(t, "a.dmir", "b.dmir")
	var o scan.Outlines
	names := func() string {
		var out []string
		o.All(context.Background(), scan.Files(context.Background(), []string{dir}), source.UTF16, func(f scan.File, ss []scan.Symbol) bool {
			for _, s := range ss {
				out = append(out, fmt.Sprintf("%s %d:%d", s.Item.Name, s.Start.Line, s.Start.Col))
			}
			return true
		})
		return strings.Join(out, ", ")
	}
	if got, want := names(), "@m 0:0, @a 1:2, @m 0:0, @b 1:2"; got != want {
		t.Errorf("symbols %s, want %s", got, want)
	}
	a := filepath.Join(dir, "a.dmir")
	same, err := os.Stat(a)
	if err != nil {
		t.Fatal(err)
	}
	write := func(text string, at time.Time) {
		if err := os.WriteFile(a, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(a, at, at); err != nil {
			t.Fatal(err)
		}
	}
	write(strings.Repeat("x", int(same.Size())), same.ModTime())
	if got, want := names(), "@m 0:0, @a 1:2, @m 0:0, @b 1:2"; got != want {
		t.Errorf("a file that looks the same is read again: %s", got)
	}
	write("\nfunc.func private @c()\n", same.ModTime().Add(time.Second))
	if got, want := names(), "@c 1:0, @m 0:0, @b 1:2"; got != want {
		t.Errorf("symbols after a change %s, want %s", got, want)
	}
	if err := os.Remove(a); err != nil {
		t.Fatal(err)
	}
	if got, want := names(), "@m 0:0, @b 1:2"; got != want {
		t.Errorf("symbols after a removal %s, want %s", got, want)
	}
}
