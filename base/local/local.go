// Package local manages dmir's files of one user on this machine: caches, temporary
// folders that are deleted with their process, and the key that signs programs
// compiled here.
package local

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// CacheDir is the folder called name in the folder that the environment variable
// DMIR_CACHE names, else in dmir's part of the user's cache. Its files may be
// deleted at any time.
func CacheDir(name string) (string, error) {
	if dir := os.Getenv("DMIR_CACHE"); dir != "" {
		return filepath.Join(dir, name), nil
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "dmir", name), nil
}

// errShared reports that other users can change a file or folder.
var errShared = errors.New("belongs to another user, or others may write to it")

// MakeDir creates the folder dir if it does not exist, and verifies that only this
// user can write to it.
func MakeDir(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if mode := info.Mode().Perm(); mode&0o022 != 0 && owned(info) {
		if err := os.Chmod(dir, mode&^0o022); err != nil {
			return err
		}
		if info, err = os.Stat(dir); err != nil {
			return err
		}
	}
	if !info.IsDir() || !Own(info) {
		return &fs.PathError{Op: "use", Path: dir, Err: errShared}
	}
	return nil
}

// Own reports whether a file or folder is this user's, and others cannot write
// to it.
func Own(info fs.FileInfo) bool {
	return owned(info) && info.Mode()&fs.ModeSymlink == 0 && writableByOwner(info)
}

// IsOwn reports whether path is a file, and not a link to one, that Own accepts.
func IsOwn(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode().IsRegular() && Own(info)
}
