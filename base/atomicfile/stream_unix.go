//go:build unix

package atomicfile

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
)

var (
	descriptors = regexp.MustCompile(`^(/dev/fd|/proc/(self|thread-self|[0-9]+)(/task/[0-9]+)?/fd)$`)
	standard    = map[string]int{"/dev/stdin": 0, "/dev/stdout": 1, "/dev/stderr": 2}
)

// IsDescriptor reports whether path refers to an open file of a process.
func IsDescriptor(path string) bool {
	if _, ok := standard[path]; ok {
		return true
	}
	_, err := strconv.Atoi(filepath.Base(path))
	return err == nil && descriptors.MatchString(filepath.Dir(path))
}

// linked reports whether the file has further names.
func linked(info fs.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && s.Nlink > 1
}

// openStream opens what WriteFile does not replace. A descriptor of this process
// is written at its current offset: a file opened by its path would be written from
// the beginning.
func openStream(path string) (*os.File, error) {
	n, ok := standard[path]
	if dir := filepath.Dir(path); !ok && (dir == "/dev/fd" || dir == "/proc/self/fd") {
		var err error
		n, err = strconv.Atoi(filepath.Base(path))
		ok = err == nil
	}
	if !ok {
		return os.OpenFile(path, os.O_WRONLY, 0)
	}
	own, err := syscall.Dup(n)
	if err != nil {
		return nil, &os.PathError{Op: "write", Path: path, Err: err}
	}
	return os.NewFile(uintptr(own), path), nil
}
