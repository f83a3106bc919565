//go:build unix

package local

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// TestMain is also the process that holds a folder and is killed.
func TestMain(m *testing.M) {
	if os.Getenv("DMIR_TEST_HOLD") != "" {
		w, err := NewWork()
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println(w.Dir)
		bufio.NewReader(os.Stdin).ReadString('\n')
		if os.Getenv("DMIR_TEST_HOLD") == "remove" {
			RemoveWork()
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// holder starts a process that holds a folder below tmp.
func holder(t *testing.T, tmp, how string) (dir string, kill, end func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "DMIR_TEST_HOLD="+how, "TMPDIR="+tmp)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	kill = func() { cmd.Process.Kill(); cmd.Wait() }
	end = func() { in.Close(); cmd.Wait() }
	t.Cleanup(kill)
	return strings.TrimSpace(line), kill, end
}

// TestSweep verifies that a folder exists as long as its process, and that the next
// process deletes it.
func TestSweep(t *testing.T) {
	tmp := t.TempDir()
	held, _, _ := holder(t, tmp, "keep")
	left, kill, _ := holder(t, tmp, "keep")
	if err := os.WriteFile(filepath.Join(left, "data"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	kill()
	other := filepath.Join(tmp, "dmir-other")
	if err := os.Mkdir(other, 0o755); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(tmp, workPrefix+"link")
	if err := os.Symlink(other, link); err != nil {
		t.Fatal(err)
	}
	sweep(tmp)
	for path, want := range map[string]bool{held: true, left: false, other: true, link: true} {
		if _, err := os.Lstat(path); (err == nil) != want {
			t.Errorf("%s is there: %v, want %v", path, err == nil, want)
		}
	}
	removed, _, end := holder(t, tmp, "remove")
	end()
	if _, err := os.Lstat(removed); err == nil {
		t.Error("a process that ends leaves its folder")
	}
}

func TestWorkAmongSweeps(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 25 {
				w, err := NewWork()
				if err != nil {
					t.Error(err)
					return
				}
				sweep(os.TempDir())
				if _, err := os.Stat(w.Dir); err != nil {
					t.Error("a folder in use was deleted")
				}
				w.Remove()
			}
		})
	}
	wg.Wait()
	if left, _ := os.ReadDir(os.TempDir()); len(left) > 0 {
		t.Errorf("%d folders are left", len(left))
	}
}

func TestKey(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("DMIR_CACHE", filepath.Join(dir, "cache"))
	if _, err := Key(false); !os.IsNotExist(err) {
		t.Errorf("a key that is not there: %v", err)
	}
	keys := make([][]byte, 8)
	var wg sync.WaitGroup
	for i := range keys {
		wg.Go(func() {
			var err error
			if keys[i], err = Key(true); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, k := range keys {
		if len(k) != keySize || !bytes.Equal(k, keys[0]) {
			t.Fatal("processes have different keys")
		}
	}
	path := filepath.Join(dir, "cache", "key")
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key's mode: %v %v", info.Mode(), err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "cache", ".key-*")); len(left) > 0 {
		t.Errorf("left over: %v", left)
	}

	for _, mode := range []os.FileMode{0o644, 0o640, 0o622} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		if _, err := Key(true); err == nil {
			t.Errorf("a key that others can use (%v) is taken", mode)
		}
	}
	if err := os.WriteFile(path, []byte("short"), 0o600); err != nil {
		t.Fatal(err)
	}
	os.Chmod(path, 0o600)
	if _, err := Key(false); err == nil {
		t.Error("a damaged key is taken")
	}
	if k, err := Key(true); err != nil || bytes.Equal(k, keys[0]) {
		t.Errorf("a damaged key is not replaced: %v", err)
	}
}

func TestMakeDir(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	os.Chmod(dir, 0o777)
	if err := MakeDir(dir); err != nil {
		t.Fatal(err)
	}
	if info, _ := os.Stat(dir); info.Mode().Perm() != 0o755 {
		t.Errorf("the folder stays open to others: %v", info.Mode())
	}
	if os.Geteuid() == 0 {
		if err := os.Chown(dir, 12345, -1); err != nil {
			t.Skip(err)
		}
		if MakeDir(dir) == nil {
			t.Error("another user's folder is taken")
		}
	}
}
