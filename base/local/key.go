package local

import (
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"dmir/base/regular"
)

// keySize is the length of the key in bytes.
const keySize = 32

// Key is the secret that authenticates this user's programs. It is a file of the
// cache that no other user can read; without one it is created if make is set, and
// otherwise missing. A file that another user owns or may read is an error.
func Key(make bool) ([]byte, error) {
	path, err := CacheDir("key")
	if err != nil {
		return nil, err
	}
	key, err := readKey(path)
	if err == nil || !make || !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errNoKey) {
		return key, err
	}
	if err := makeKey(path, errors.Is(err, errNoKey)); err != nil {
		return nil, err
	}
	return readKey(path)
}

// errNoKey reports that the key file is damaged.
var errNoKey = errors.New("is no key")

func readKey(path string) ([]byte, error) {
	f, err := regular.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !Own(info) || !secret(info) {
		return nil, &fs.PathError{Op: "use", Path: path, Err: errors.New("others may read or write it, or it is another user's")}
	}
	key, err := io.ReadAll(io.LimitReader(f, keySize+1))
	if err != nil {
		return nil, err
	}
	if len(key) != keySize {
		return nil, &fs.PathError{Op: "use", Path: path, Err: errNoKey}
	}
	return key, nil
}

// makeKey writes a new key to path. Of two concurrent processes the first wins;
// replace is for a damaged file.
func makeKey(path string, replace bool) error {
	dir := filepath.Dir(path)
	if err := MakeDir(dir); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".key-*") // with permissions for this user alone
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	key := make([]byte, keySize)
	rand.Read(key)
	_, err = f.Write(key)
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if replace {
		return os.Rename(f.Name(), path)
	}
	if err := os.Link(f.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return os.Rename(f.Name(), path) // for file systems without links
	}
	return nil
}
