// Package atomicfile replaces files atomically: they are complete or unchanged.
package atomicfile

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"

	"dmir/base/filelock"
)

// WriteFile replaces the content of the file at path by what fill writes. It writes
// to a temporary file beside it, which it renames when it is complete. After an error path is as it was and
// nothing is left beside it. An existing file keeps its mode; a new one gets
// mode as the process's umask allows.
//
// A link is followed: the file that it names is replaced, and the link stays. A file with
// several names (hard links) is overwritten, so that they stay names of one file.
// Terminals, pipes and character devices are written to directly. Folders, block
// devices and write-protected files are errors.
func WriteFile(path string, mode fs.FileMode, fill func(io.Writer) error) error {
	to, err := resolve(path)
	if err != nil {
		return err
	}
	if to.stream {
		return stream(to.path, fill)
	}
	return replace(to, mode, fill)
}

// Move moves the file at from to path with the rules of WriteFile.
func Move(from, path string) error {
	to, err := resolve(path)
	if err != nil {
		return err
	}
	if !to.stream && to.old == nil && filepath.Dir(to.path) == filepath.Dir(path) {
		return os.Rename(from, to.path)
	}
	f, err := os.Open(from)
	if err != nil {
		return err
	}
	copied := func(w io.Writer) error {
		_, err := io.Copy(w, f)
		return err
	}
	if to.stream {
		err = stream(to.path, copied)
	} else {
		err = replace(to, 0o644, copied)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Remove(from)
}

// Check returns an error if it is known that path cannot be written.
func Check(path string) error {
	to, err := resolve(path)
	if err == nil && !to.stream {
		_, err = os.Stat(filepath.Dir(to.path))
	}
	return err
}

// IsStream reports whether path names something that is written to directly, not a
// regular file.
func IsStream(path string) bool {
	to, err := resolve(path)
	return err == nil && to.stream
}

// target is the file or stream that is written.
type target struct {
	path   string
	old    fs.FileInfo // of the file that is there; nil: none is
	stream bool
}

const maxLinks = 40

// Refused is why what is at a path is not written to, and what to do.
type Refused struct{ Reason, Help string }

func (r *Refused) Error() string { return r.Reason }

// resolve follows the links from path on. Those of open files (/dev/stdout) have
// no path and are streams, even if they refer to a file.
func resolve(path string) (target, error) {
	refuse := func(reason, help string) (target, error) {
		return target{}, &fs.PathError{Op: "write", Path: path, Err: &Refused{reason, help}}
	}
	at := path
	for range maxLinks {
		if IsDescriptor(at) {
			return target{path: at, stream: true}, nil
		}
		info, err := os.Lstat(at)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			if _, err := os.Stat(filepath.Dir(at)); err != nil && at != path {
				return refuse(fmt.Sprintf("it is a link to %s, whose folder is not there", at), "make that folder, or remove the link")
			}
			return target{path: at}, nil
		case err != nil:
			return target{}, err
		}
		switch mode := info.Mode(); {
		case mode&fs.ModeSymlink != 0:
			next, err := os.Readlink(at)
			if err != nil {
				return target{}, err
			}
			if !filepath.IsAbs(next) {
				dir, err := filepath.EvalSymlinks(filepath.Dir(at)) // ".." is relative to the folder of the link
				if err != nil {
					return target{}, err
				}
				next = filepath.Join(dir, next)
			}
			at = next
		case mode.IsDir():
			return refuse("is a directory", "name a file in it")
		case mode&fs.ModeDevice != 0 && mode&fs.ModeCharDevice == 0:
			return refuse("is a block device", "name a file")
		case !mode.IsRegular():
			return target{path: at, stream: true}, nil
		case mode.Perm()&0o200 == 0:
			return target{}, &fs.PathError{Op: "write", Path: path, Err: fs.ErrPermission}
		default:
			return target{path: at, old: info}, nil
		}
	}
	return refuse("links without end", "remove the link, or name another file")
}

func replace(to target, mode fs.FileMode, fill func(io.Writer) error) (err error) {
	f, err := temporary(filepath.Dir(to.path), mode)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
		}
	}()
	_ = filelock.Lock(f, false) // for Sweep; a file system without locks is not swept
	w := bufio.NewWriterSize(f, 1<<18)
	if err = fill(w); err != nil {
		return err
	}
	if err = w.Flush(); err != nil {
		return err
	}
	if to.old != nil {
		if err = f.Chmod(to.old.Mode().Perm()); err != nil {
			return err
		}
	}
	if to.old != nil && linked(to.old) {
		if err = overwrite(to, f); err != nil {
			return err
		}
		return errors.Join(f.Close(), os.Remove(f.Name()))
	}
	if err = f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), to.path)
}

// overwrite copies the complete file f over a file with several names, all of which get the
// new content. What lies beyond the old end is written first: where there is no room for it, the
// file is as it was. Of a process that is killed meanwhile, f is left.
func overwrite(to target, f *os.File) error {
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	out, err := os.OpenFile(to.path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	part := func(from, end int64) error {
		_, err := io.Copy(io.NewOffsetWriter(out, from), io.NewSectionReader(f, from, end-from))
		return err
	}
	old := to.old.Size()
	if size > old {
		if err := part(old, size); err != nil {
			return errors.Join(err, out.Truncate(old), out.Close())
		}
	}
	return errors.Join(part(0, min(old, size)), out.Truncate(size), out.Close())
}

// TempPrefix begins the names of files that are not complete yet; a process that was
// killed leaves them.
const TempPrefix = ".dmir-"

// Sweep removes from dir the files that processes which were killed had not completed.
func Sweep(dir string) {
	if !filelock.Supported {
		return
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, file := range files {
		if !file.Type().IsRegular() || !temporaries.MatchString(file.Name()) {
			continue
		}
		path := filepath.Join(dir, file.Name())
		f, err := os.Open(path)
		if err != nil {
			continue
		}
		if filelock.Lock(f, false) == nil {
			os.Remove(path)
		}
		f.Close()
	}
}

var temporaries = regexp.MustCompile("^" + regexp.QuoteMeta(TempPrefix) + "[0-9a-f]{8}$")

// temporary creates a file in dir with a mode that the umask applies to.
func temporary(dir string, mode fs.FileMode) (*os.File, error) {
	for range 1000 {
		f, err := os.OpenFile(filepath.Join(dir, fmt.Sprintf("%s%08x", TempPrefix, rand.Uint32())), os.O_RDWR|os.O_CREATE|os.O_EXCL, mode)
		if !errors.Is(err, fs.ErrExist) {
			return f, err
		}
	}
	return nil, &fs.PathError{Op: "create", Path: dir, Err: fs.ErrExist}
}

func stream(path string, fill func(io.Writer) error) error {
	f, err := openStream(path)
	if err != nil {
		return err
	}
	return errors.Join(fill(f), f.Close())
}
