// Package whole writes files that are there in full or not at all.
package whole

import (
	"bufio"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// WriteFile gives the file at path what fill writes, and the mode: to a
// temporary file beside it that is renamed when it is complete. After an error
// path is as it was and nothing is left beside it.
func WriteFile(path string, mode fs.FileMode, fill func(io.Writer) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), ".dmir-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
		}
	}()
	w := bufio.NewWriterSize(f, 1<<18)
	if err = fill(w); err != nil {
		return err
	}
	if err = w.Flush(); err != nil {
		return err
	}
	if err = f.Chmod(mode); err != nil { // os.CreateTemp makes files private
		return err
	}
	if err = f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
