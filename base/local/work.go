package local

import (
	"os"
	"path/filepath"
	"strings"
	"sync"

	"dmir/base/filelock"
)

// workPrefix begins the names of all folders to work in.
const workPrefix = "dmir-work-"

// Work is a temporary folder that is locked by this process.
type Work struct {
	Dir  string
	held *os.File // nil if folders cannot be locked
}

var work struct {
	sync.Mutex
	swept bool
	open  map[*Work]bool
}

// NewWork creates a temporary folder. The first call of a process also deletes the
// folders of processes that were killed.
func NewWork() (*Work, error) {
	work.Lock()
	first := !work.swept
	work.swept = true
	work.Unlock()
	if first {
		sweep(os.TempDir())
	}
	for {
		dir, err := os.MkdirTemp("", workPrefix)
		if err != nil {
			return nil, err
		}
		w := &Work{Dir: dir}
		if filelock.Supported && !w.hold() {
			continue // another process took it for an abandoned one
		}
		work.Lock()
		if work.open == nil {
			work.open = map[*Work]bool{}
		}
		work.open[w] = true
		work.Unlock()
		return w, nil
	}
}

// hold locks the folder against sweeps. On a file system without locks no process
// sweeps.
func (w *Work) hold() bool {
	f, err := os.Open(w.Dir)
	if err != nil {
		return false
	}
	if filelock.Lock(f, true) != nil {
		f.Close()
		return true
	}
	mine, err1 := f.Stat()
	there, err2 := os.Lstat(w.Dir)
	if err1 != nil || err2 != nil || !os.SameFile(mine, there) {
		f.Close()
		return false
	}
	w.held = f
	return true
}

// Remove deletes the folder with all that is in it.
func (w *Work) Remove() {
	work.Lock()
	delete(work.open, w)
	work.Unlock()
	os.RemoveAll(w.Dir) // a later sweep deletes what could not be removed
	if w.held != nil {
		w.held.Close()
	}
}

// RemoveWork deletes the folders that this process still holds, before it ends.
func RemoveWork() {
	work.Lock()
	var left []*Work
	for w := range work.open {
		left = append(left, w)
	}
	work.Unlock()
	for _, w := range left {
		w.Remove()
	}
}

// sweep deletes this user's folders in dir that no process holds.
func sweep(dir string) {
	if !filelock.Supported {
		return
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if !e.IsDir() || !strings.HasPrefix(e.Name(), workPrefix) {
			continue
		}
		path := filepath.Join(dir, e.Name())
		f, err := os.Open(path)
		if err != nil {
			continue
		}
		info, err := f.Stat()
		if err == nil && info.IsDir() && owned(info) && filelock.Lock(f, false) == nil {
			os.RemoveAll(path)
		}
		f.Close()
	}
}
