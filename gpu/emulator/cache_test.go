package emulator

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"dmir/base/local"
	"dmir/gpu/artifact/artifacttest"
	"dmir/testkit/need"
)

// quickRuntime has caches of t filled with a runtime that compiles in a third of the time.
func quickRuntime(t *testing.T) {
	t.Helper()
	of := runtimeLevel
	runtimeLevel = "-O0"
	t.Cleanup(func() { runtimeLevel = of })
}

// TestCacheEntries verifies that only undamaged files of the cache run: every other
// entry is compiled again, with the same results.
func TestCacheEntries(t *testing.T) {
	need.Long(t)
	needCompiler(t)
	quickRuntime(t)
	t.Setenv("TMPDIR", t.TempDir())
	dir := t.TempDir()
	p := artifacttest.Program()
	run := func() bool {
		t.Helper()
		r, err := Run(t.Context(), p, [][]byte{make([]byte, 4*artifacttest.N)}, Options{Cache: dir})
		if err != nil {
			t.Fatal(err)
		}
		return r.Compile > 0
	}
	if !run() || run() {
		t.Fatal("the cache does not keep the program")
	}
	var exe, object string
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		switch {
		case strings.HasSuffix(e.Name(), ".o"):
			object = filepath.Join(dir, e.Name())
		case !strings.HasSuffix(e.Name(), ".sum"):
			exe = filepath.Join(dir, e.Name())
		}
	}
	if exe == "" || object == "" || len(entries) != 4 {
		t.Fatalf("the cache holds %v", entries)
	}
	flip := func(path string) {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		b[len(b)/2] ^= 1
		must(t, os.WriteFile(path, b, 0o755))
	}
	for _, c := range []struct {
		name   string
		damage func()
	}{
		{"a changed byte", func() { flip(exe) }},
		{"a changed byte in both", func() { flip(exe); flip(object) }},
		{"cut", func() { must(t, os.Truncate(exe, 100)) }},
		{"empty", func() { must(t, os.Truncate(exe, 0)) }},
		{"another program", func() { must(t, os.WriteFile(exe, []byte("#!/bin/sh\necho '{}'\n"), 0o755)) }},
		{"no checksum", func() { must(t, os.Remove(local.SumName(exe))) }},
		{"a wrong checksum", func() { must(t, os.WriteFile(local.SumName(exe), []byte("0"), 0o644)) }},
		{"open to others", func() { must(t, os.Chmod(exe, 0o777)) }},
		{"a checksum open to others", func() { must(t, os.Chmod(local.SumName(exe), 0o666)) }},
		{"a link", func() { must(t, os.Rename(exe, exe+"-")); must(t, os.Symlink(exe+"-", exe)) }},
		{"a folder", func() { must(t, os.Remove(exe)); must(t, os.MkdirAll(filepath.Join(exe, "x"), 0o755)) }},
	} {
		c.damage()
		if !run() {
			t.Errorf("%s: the entry was run", c.name)
		}
		if run() {
			t.Errorf("%s: the entry was not made again", c.name)
		}
	}
	if os.Geteuid() == 0 {
		must(t, os.Chown(exe, 12345, -1))
		if !run() {
			t.Error("another user's entry was run")
		}
	}
	if left, _ := filepath.Glob(filepath.Join(os.TempDir(), "*")); len(left) > 0 {
		t.Errorf("left in the temporary folder: %v", left)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "new-*")); len(left) > 0 {
		t.Errorf("left in the cache: %v", left)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Programs of clang share a precompiled header. Texts that it is not of are written again; where those of the system are others, it is
// made again.
func TestPrecompiled(t *testing.T) {
	need.Long(t)
	need.Tool(t, "clang++", "apt-get install clang")
	quickRuntime(t)
	dir := t.TempDir()
	number := 0
	run := func() {
		t.Helper()
		number++
		job := copier(fmt.Sprintf("  y.store(dm::thread(), x[dm::thread()] * %d.0f);", number))
		r, err := Run(t.Context(), job.Program, job.Inputs, Options{Cache: dir, Compiler: "clang++"})
		if err != nil {
			t.Fatal(err)
		}
		if y := toFloats(r.Outputs[0]); y[3] != float32(4*number) || r.Compile == 0 {
			t.Errorf("program %d gives %v, compiled in %v", number, y, r.Compile)
		}
	}
	made := func() []string {
		files, err := filepath.Glob(filepath.Join(dir, "*.pch"))
		must(t, err)
		return files
	}
	if run(); len(made()) != 0 {
		t.Error("the first program waits for a header")
	}
	if run(); len(made()) != 1 {
		t.Fatalf("precompiled: %v", made())
	}
	folders, err := filepath.Glob(filepath.Join(dir, "prelude-*"))
	if must(t, err); len(folders) != 1 {
		t.Fatalf("folders of texts: %v", folders)
	}
	text := filepath.Join(folders[0], kernelHeader)
	for name, damage := range map[string]func() error{
		"another text": func() error { return os.WriteFile(text, []byte("nonsense"), 0o600) },
		"another time": func() error { return os.Chtimes(text, time.Now(), time.Now()) },
		"none":         func() error { return os.RemoveAll(folders[0]) },
		"no header":    func() error { return os.Truncate(made()[0], 100) },
	} {
		must(t, damage())
		if run(); len(made()) != 1 {
			t.Errorf("%s: %v", name, made())
		}
	}
	// A header of the system that is another by now.
	system := filepath.Join(t.TempDir(), "system")
	must(t, os.MkdirAll(system, 0o755))
	if err := os.WriteFile(filepath.Join(system, "cmath"), []byte("#include_next <cmath>\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("CPLUS_INCLUDE_PATH", system)
	must(t, os.Remove(made()[0]))
	run()
	must(t, os.WriteFile(filepath.Join(system, "cmath"), []byte("// changed\n#include_next <cmath>\n"), 0o600))
	if run(); len(made()) != 0 {
		t.Error("a header of other texts is kept")
	}
	run()
}
