package local

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"dmir/base/atomicfile"
)

// Files that are executed are kept in a cache with their checksums. Only undamaged ones
// that this user alone can change are used, and the others are made again.

// SumName is the file beside a kept file that holds its checksum.
func SumName(path string) string { return path + sumSuffix }

const sumSuffix = ".sum"

// NewPattern is that of the names, as of os.CreateTemp, of files in a cache that are not
// kept yet. Trim deletes those that a killed process left.
const NewPattern = newPrefix + "*"

const newPrefix = "new-"

// sumOf is the checksum of a file.
func sumOf(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// Kept reports whether the file exists with its checksum, and updates its time of
// use. A damaged file, or one that another user can change, does not count.
func Kept(path string) bool {
	if !IsOwn(path) || !IsOwn(SumName(path)) {
		return false
	}
	want, err := os.ReadFile(SumName(path))
	if err != nil {
		return false
	}
	got, err := sumOf(path)
	if err != nil || got != string(want) {
		return false
	}
	now := time.Now()
	os.Chtimes(path, now, now) // if this fails the file leaves the cache earlier
	return true
}

// Keep moves the file made, which is in the same folder, to target, with its checksum.
// Anything at target is damaged or not a file.
func Keep(made, target string) error {
	info, err := os.Stat(made)
	if err != nil {
		return err
	}
	if err := os.Chmod(made, info.Mode().Perm()&^0o022); err != nil {
		return err
	}
	sum, err := sumOf(made)
	if err != nil {
		return err
	}
	// target may be a link, a folder, or a file that others may write to.
	if info, err := os.Lstat(target); err == nil && !info.Mode().IsRegular() {
		if err := os.RemoveAll(target); err != nil {
			return err
		}
	}
	if err := os.RemoveAll(SumName(target)); err != nil {
		return err
	}
	if err := os.Rename(made, target); err != nil {
		return err
	}
	return atomicfile.WriteFile(SumName(target), 0o644, func(w io.Writer) error {
		_, err := io.WriteString(w, sum)
		return err
	})
}

// Trim deletes the files of dir that were used longest ago, but for kept, which may be
// "", until at most limit bytes are left. Files that cannot be read or deleted belong to
// another user and stay.
func Trim(dir, kept string, limit int64) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	type file struct {
		path string
		used time.Time
		size int64
	}
	var files []file
	var total int64
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() || strings.HasSuffix(e.Name(), sumSuffix) {
			continue
		}
		path := filepath.Join(dir, e.Name())
		if strings.HasPrefix(e.Name(), newPrefix) || strings.HasPrefix(e.Name(), atomicfile.TempPrefix) {
			if time.Since(info.ModTime()) > time.Hour { // left by a process that was killed
				os.Remove(path)
			}
			continue
		}
		files = append(files, file{path, info.ModTime(), info.Size()})
		total += info.Size()
	}
	slices.SortFunc(files, func(a, b file) int { return a.used.Compare(b.used) })
	for _, f := range files {
		if total <= limit {
			return
		}
		if f.path != kept && os.Remove(f.path) == nil {
			os.Remove(SumName(f.path))
			total -= f.size
		}
	}
}

// making has a lock for each file that is being made.
var making sync.Map

// LockFor waits until no other goroutine makes the file, and returns the unlock function.
func LockFor(path string) (unlock func()) {
	lock, _ := making.LoadOrStore(path, &sync.Mutex{})
	lock.(*sync.Mutex).Lock()
	return lock.(*sync.Mutex).Unlock
}
