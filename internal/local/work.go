package local

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// workPrefix begins the names of all folders to work in.
const workPrefix = "dmir-work-"

// Work is a folder in the system's temporary one that is held by this process.
type Work struct {
	Dir  string
	held *os.File // nil where folders cannot be held
}

var work struct {
	sync.Mutex
	swept bool
	open  map[*Work]bool
}

// NewWork makes a folder to work in. The first one of a process also deletes
// those that others have left behind because they were killed.
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
		if canLock && !w.hold() {
			continue // another process took it for one that was left
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

// hold takes the folder before a sweep does. A file system without locks is
// swept by none.
func (w *Work) hold() bool {
	f, err := os.Open(w.Dir)
	if err != nil {
		return false
	}
	if lock(f, true) != nil {
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
	os.RemoveAll(w.Dir) // what stays is swept later
	if w.held != nil {
		w.held.Close()
	}
}

// RemoveWork deletes the folders that are still held: for the end of a process.
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
	if !canLock {
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
		if err == nil && info.IsDir() && owned(info) && lock(f, false) == nil {
			os.RemoveAll(path)
		}
		f.Close()
	}
}
