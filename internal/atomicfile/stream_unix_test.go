//go:build unix

package atomicfile

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
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
