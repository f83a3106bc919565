package native

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"dmir/base/local"
	"dmir/gpu/artifact"
	"dmir/gpu/device"
)

// Only undamaged files of the cache are used: any other is made again.
func TestCache(t *testing.T) {
	needClang(t)
	t.Setenv("TMPDIR", t.TempDir())
	dir := filepath.Join(cached(t), "native")
	arch, _ := Host()
	compile := func() *Result {
		t.Helper()
		r, err := Compile(t.Context(), doubled(3), arch)
		must(t, err)
		return r
	}
	first := compile()
	if again := compile(); first.Cached || !again.Cached || !bytes.Equal(again.Code, first.Code) {
		t.Fatal("the cache does not keep the program")
	}
	entries, _ := filepath.Glob(filepath.Join(dir, "*"+suffix))
	if len(entries) != 1 {
		t.Fatalf("the cache holds %v", entries)
	}
	path := entries[0]
	for _, c := range []struct {
		name   string
		damage func()
	}{
		{"a changed byte", func() {
			b, err := os.ReadFile(path)
			must(t, err)
			b[len(b)/2] ^= 1
			must(t, os.WriteFile(path, b, 0o755))
		}},
		{"cut", func() { must(t, os.Truncate(path, 100)) }},
		{"empty", func() { must(t, os.Truncate(path, 0)) }},
		{"no checksum", func() { must(t, os.Remove(local.SumName(path))) }},
		{"a wrong checksum", func() { must(t, os.WriteFile(local.SumName(path), []byte("0"), 0o644)) }},
		{"open to others", func() { must(t, os.Chmod(path, 0o777)) }},
		{"a link", func() { must(t, os.Rename(path, path+"-")); must(t, os.Symlink(path+"-", path)) }},
		{"a folder", func() { must(t, os.Remove(path)); must(t, os.MkdirAll(filepath.Join(path, "x"), 0o755)) }},
	} {
		c.damage()
		if r := compile(); r.Cached || !bytes.Equal(r.Code, first.Code) {
			t.Errorf("%s: the entry was used", c.name)
		}
		if !compile().Cached {
			t.Errorf("%s: the entry was not made again", c.name)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(os.TempDir(), "*")); len(left) > 0 {
		t.Errorf("left in the temporary folder: %v", left)
	}
	for _, unfinished := range []string{".dmir-*", local.NewPattern} {
		if left, _ := filepath.Glob(filepath.Join(dir, unfinished)); len(left) > 0 {
			t.Errorf("left in the cache: %v", left)
		}
	}
}

// Programs run without a cache, and without one whose files may be executed.
func TestNoCache(t *testing.T) {
	needClang(t)
	t.Setenv("TMPDIR", t.TempDir())
	run := func(n int64) {
		t.Helper()
		r, err := processor{}.Run(t.Context(), doubled(n), [][]byte{floats(ramp(n)...)}, device.Options{})
		must(t, err)
		if err := equal(scaled(ramp(n), 2))(r.Outputs); err != nil {
			t.Error(err)
		}
		if left, _ := filepath.Glob(filepath.Join(os.TempDir(), "*")); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	}
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o600))
	t.Setenv("DMIR_CACHE", file)
	run(17) // sizes that no other test has loaded
	dir := filepath.Join(t.TempDir(), "closed")
	must(t, os.MkdirAll(filepath.Join(dir, "native"), 0o755))
	must(t, os.Chmod(filepath.Join(dir, "native"), 0o555))
	t.Setenv("DMIR_CACHE", dir)
	run(18)
	must(t, os.Chmod(filepath.Join(dir, "native"), 0o755))

	cached(t)
	arch, _ := Host()
	u, err := newUnit(t.Context(), doubled(19), arch, false)
	must(t, err)
	must(t, os.MkdirAll(cacheDir(), 0o755))
	other := filepath.Join(t.TempDir(), "other")
	must(t, os.WriteFile(other, []byte("is no library"), 0o600))
	must(t, intoCache(other, filepath.Join(cacheDir(), u.key()+suffix)))
	run(19)
}

// A program with machine code runs without a compiler.
func TestImages(t *testing.T) {
	needClang(t)
	cached(t)
	arch, _ := Host()
	image := func(p *artifact.Program) artifact.Image {
		r, err := Compile(t.Context(), p, arch)
		must(t, err)
		return r.Image
	}
	right, other := image(doubled(23)), image(step(23))
	toolless(t)
	for _, c := range []struct {
		name   string
		images []artifact.Image
		want   string // of the error
	}{
		{"right", []artifact.Image{{Arch: "other", Code: []byte("x")}, right}, ""},
		{"again", []artifact.Image{right}, ""},
		{"none", nil, "clang is not installed"},
		{"for another machine", []artifact.Image{{Arch: "sm_90a", Code: right.Code}}, "clang is not installed"},
		{"another program", []artifact.Image{other}, "has machine code of another program"},
		{"damaged", []artifact.Image{{Arch: arch, Code: []byte("x")}}, "cannot open"},
	} {
		p := doubled(23)
		p.Images = c.images
		r, err := processor{}.Run(t.Context(), p, [][]byte{floats(ramp(23)...)}, device.Options{})
		if c.want != "" {
			if err == nil || !bytes.Contains([]byte(err.Error()), []byte(c.want)) {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		must(t, err)
		if err := equal(scaled(ramp(23), 2))(r.Outputs); err != nil {
			t.Error(err)
		}
		foreign := *p
		foreign.Foreign = true
		if _, err := (processor{}).Run(t.Context(), &foreign, [][]byte{floats(ramp(23)...)}, device.Options{}); err != ErrForeign {
			t.Errorf("a foreign program: %v", err)
		}
	}
}
