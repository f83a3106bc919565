//go:build unix

package atomicfile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
)

// A pipe and a device are written to, and an open file at its offset.
func TestStreams(t *testing.T) {
	dir := t.TempDir()
	write := func(path, text string) error {
		return WriteFile(path, 0o644, func(w io.Writer) error { _, err := io.WriteString(w, text); return err })
	}
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o644); err != nil {
		t.Skip(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink("fifo", link); err != nil {
		t.Fatal(err)
	}
	got := make(chan string)
	go func() {
		b, err := os.ReadFile(fifo)
		got <- fmt.Sprint(string(b), err)
	}()
	if err := write(link, "text"); err != nil {
		t.Fatal(err)
	}
	if text := <-got; text != "text<nil>" {
		t.Errorf("the pipe gave %s", text)
	}
	if info, err := os.Lstat(fifo); err != nil || info.Mode()&os.ModeNamedPipe == 0 {
		t.Errorf("the pipe is one no more: %v", err)
	}
	if err := write(os.DevNull, "text"); err != nil {
		t.Error(err)
	}
	if info, err := os.Stat(os.DevNull); err != nil || info.Mode().IsRegular() {
		t.Error("the device is one no more")
	}
	f, err := os.Create(filepath.Join(dir, "open"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for i, path := range []string{"/proc/self/fd/%d", "/dev/fd/%d"} {
		if path = fmt.Sprintf(path, f.Fd()); !IsStream(path) {
			t.Errorf("%s is no stream", path)
		}
		if _, err := os.Stat(path); err != nil {
			continue // this system has none
		}
		fmt.Fprint(f, i)
		if err := write(path, "text"); err != nil {
			t.Error(err)
		}
	}
	fmt.Fprint(f, "end")
	if b, _ := os.ReadFile(f.Name()); string(b) != "0text1textend" {
		t.Errorf("the open file holds %q", b)
	}
}

// A file with two names stays one file, with the whole new content, longer or shorter.
func TestHardLinks(t *testing.T) {
	dir := t.TempDir()
	one, two := filepath.Join(dir, "one"), filepath.Join(dir, "two")
	if err := os.WriteFile(one, []byte("first"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(one, two); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"longer than the first", "short", ""} {
		if err := WriteFile(one, 0o644, func(w io.Writer) error { _, err := io.WriteString(w, text); return err }); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(two); err != nil || string(got) != text {
			t.Errorf("the other name has %q, %v; want %q", got, err, text)
		}
	}
	broken := errors.New("half way")
	if err := WriteFile(one, 0o644, func(w io.Writer) error { io.WriteString(w, "x"); return broken }); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
	if files, _ := os.ReadDir(dir); len(files) != 2 {
		t.Errorf("the folder holds %v", files)
	}
}

// Sweep removes what a killed process left, and no file that is being written or has another name.
func TestSweep(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{TempPrefix + "0123abcd", TempPrefix + "notes", "mine"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	err := WriteFile(filepath.Join(dir, "new"), 0o644, func(w io.Writer) error { Sweep(dir); _, err := io.WriteString(w, "text"); return err })
	if err != nil {
		t.Fatal(err)
	}
	files, _ := os.ReadDir(dir)
	var names []string
	for _, f := range files {
		names = append(names, f.Name())
	}
	if want := []string{TempPrefix + "notes", "mine", "new"}; !slices.Equal(names, want) {
		t.Errorf("the folder holds %q, want %q", names, want)
	}
}
