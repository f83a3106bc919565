// Package regular opens files whose paths come from data: from a program's text, a model, a
// folder that is searched. A named pipe or a device in the place of such a file would block
// the process, in which case not even a signal ends it, so files are opened without waiting, and only
// regular ones are read.
package regular

import (
	"fmt"
	"io"
	"io/fs"
	"os"

	"dmir/base/atomicfile"
)

// Error reports that a path names something other than a regular file.
type Error struct {
	Mode fs.FileMode // of what is there
}

func (e *Error) Error() string {
	switch {
	case e.Mode.IsDir():
		return "is a directory"
	case e.Mode&fs.ModeNamedPipe != 0:
		return "is a named pipe, not a regular file"
	case e.Mode&fs.ModeSocket != 0:
		return "is a socket, not a regular file"
	case e.Mode&fs.ModeDevice != 0:
		return "is a device, not a regular file"
	}
	return "is not a regular file"
}

// Open opens the regular file at path for reading.
func Open(path string) (*os.File, error) {
	return open(path, func(flag int) (*os.File, error) { return os.OpenFile(path, flag, 0) })
}

// OpenIn is Open for a path inside root.
func OpenIn(root *os.Root, path string) (*os.File, error) {
	return open(path, func(flag int) (*os.File, error) { return root.OpenFile(path, flag, 0) })
}

func open(path string, by func(flag int) (*os.File, error)) (*os.File, error) {
	f, err := by(os.O_RDONLY | noWait)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "read", Path: path, Err: &Error{info.Mode()}}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// OpenNamed is Open for a path that a person names: that may also be an open file of this
// process, of any kind, as a shell passes for <(COMMAND).
func OpenNamed(path string) (*os.File, error) {
	if atomicfile.IsDescriptor(path) {
		return os.Open(path)
	}
	return Open(path)
}

// ReadFile is the content of the regular file at path, of at most limit bytes.
func ReadFile(path string, limit int64) ([]byte, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return ReadAll(f, limit)
}

// ReadAll is the content of an open regular file, of at most limit bytes.
func ReadAll(f *os.File, limit int64) ([]byte, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	data := make([]byte, 0, min(info.Size(), limit)+1) // one more, so that the end is seen without growing
	for {
		n, err := f.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		switch {
		case int64(len(data)) > limit:
			return nil, &fs.PathError{Op: "read", Path: f.Name(), Err: fmt.Errorf("is larger than %d bytes", limit)}
		case err == io.EOF:
			return data, nil
		case err != nil:
			return nil, err
		}
		if len(data) == cap(data) {
			data = append(data, 0)[:len(data)]
		}
	}
}
