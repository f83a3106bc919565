package tensor

import (
	"archive/zip"
	"bufio"
	"compress/flate"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"dmir/base/regular"
	"dmir/dialect/types"
	"dmir/syntax/diag"
)

// Folder gives constants their elements from .npy and .npz files in a folder and below
// it; symbolic links do not lead out of it. It is safe for concurrent use, and sees
// files that have changed.
type Folder struct {
	dir string

	mu    sync.Mutex
	files map[string]*arrayFile // by path
}

// In is the folder at dir.
func In(dir string) *Folder { return &Folder{dir: dir, files: map[string]*arrayFile{}} }

// arrayFile is what a file has, without the data.
type arrayFile struct {
	changed time.Time
	size    int64
	arrays  map[string]storedArray // by name; of a .npy file one, called ""
}

// storedArray is where an array is in a file.
type storedArray struct {
	header header
	err    error // why the header cannot be read
	method uint16
	at     int64 // of the array with its header
	packed int64 // bytes from there on
	size   int64 // of the array with its header
}

// Find is an error unless f is an array of type t, an *types.Error where its type is
// another one. It reads no data.
func (d *Folder) Find(f *types.File, t *types.Tensor) error {
	file, a, err := d.open(f)
	if err != nil {
		return err
	}
	defer file.Close()
	if _, err := a.header.typed(t.Elem, sizes(t), a.size); err != nil {
		return other(f, err)
	}
	return nil
}

// Bytes are the elements of f as devices hold them.
func (d *Folder) Bytes(f *types.File, t *types.Tensor) ([]byte, error) {
	file, a, err := d.open(f)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var in io.Reader = io.NewSectionReader(file, a.at, a.packed)
	if a.method == zip.Deflate {
		in = flate.NewReader(in)
	}
	if _, err := a.header.typed(t.Elem, sizes(t), a.size); err == nil && a.header.stored(t.Elem) {
		n, _ := Count(a.header.Shape)
		data := make([]byte, int64(n)*t.Elem.Bytes())
		if _, err = io.CopyN(io.Discard, in, a.header.Size); err == nil {
			_, err = io.ReadFull(in, data)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f, err)
		}
		return data, nil
	}
	x, err := readNPY(bufio.NewReaderSize(in, 1<<18), t.Elem, sizes(t), a.size)
	if err != nil {
		return nil, other(f, err)
	}
	return Pack(x), nil
}

// Map is Bytes where they are in the file: nil where it is packed or holds them in another way.
func (d *Folder) Map(f *types.File, t *types.Tensor) ([]byte, error) {
	file, a, err := d.open(f)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if _, err := a.header.typed(t.Elem, sizes(t), a.size); err != nil || a.method != zip.Store || !a.header.stored(t.Elem) {
		return nil, nil
	}
	n, _ := Count(a.header.Shape)
	size := int64(n) * t.Elem.Bytes()
	if size > a.packed-a.header.Size {
		return nil, nil
	}
	return regular.Part(file, a.at+a.header.Size, size), nil
}

// sizes are those of t, -1 for one that is not known.
func sizes(t *types.Tensor) []int {
	out := make([]int, t.Rank())
	for i, d := range t.Shape {
		n, ok := d.Int()
		if out[i] = int(n); !ok {
			out[i] = -1
		}
	}
	return out
}

func other(f *types.File, err error) error {
	var mismatch *MismatchError
	if errors.As(err, &mismatch) {
		return &types.Error{Code: types.OtherArray, Msg: fmt.Sprintf("%s: %v", f, mismatch)}
	}
	return fmt.Errorf("%s: %w", f, err)
}

// open opens the file of f and finds the array in it.
func (d *Folder) open(f *types.File) (*os.File, storedArray, error) {
	root, err := os.OpenRoot(d.dir)
	if err != nil {
		return nil, storedArray{}, fmt.Errorf("%s cannot be read: %w", f, err)
	}
	defer root.Close()
	file, err := regular.OpenIn(root, filepath.FromSlash(f.Path))
	if err != nil {
		var other *regular.Error
		switch {
		case errors.Is(err, fs.ErrNotExist):
			err = fmt.Errorf("there is no file %s in the program's folder", f.Path)
		case errors.As(err, &other):
			err = fmt.Errorf("%s %w", f.Path, other)
		}
		return nil, storedArray{}, err
	}
	a, err := d.array(file, f)
	if err != nil {
		file.Close()
		return nil, a, err
	}
	return file, a, nil
}

func (d *Folder) array(file *os.File, f *types.File) (storedArray, error) {
	info, err := file.Stat()
	if err != nil {
		return storedArray{}, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	known := d.files[f.Path]
	if known == nil || known.size != info.Size() || !known.changed.Equal(info.ModTime()) {
		known = &arrayFile{changed: info.ModTime(), size: info.Size()}
		if known.arrays, err = arraysOf(file, path.Ext(f.Path), info.Size()); err != nil {
			return storedArray{}, fmt.Errorf("%s: %w", f.Path, err)
		}
		d.files[f.Path] = known
	}
	a, ok := known.arrays[f.Name]
	switch {
	case !ok:
		names := slices.Sorted(maps.Keys(known.arrays))
		if s := diag.Suggest(f.Name, names); s != "" {
			return a, fmt.Errorf("%s has no array %q; did you mean %q?", f.Path, f.Name, s)
		}
		return a, fmt.Errorf("%s has no array %q", f.Path, f.Name)
	case a.err != nil:
		return a, fmt.Errorf("%s: %w", f, a.err)
	}
	return a, nil
}

// arraysOf reads the headers of a file's arrays.
func arraysOf(file *os.File, ext string, size int64) (map[string]storedArray, error) {
	out := map[string]storedArray{}
	if ext == ".npy" {
		a := storedArray{packed: size, size: size}
		a.header, a.err = readHeader(io.NewSectionReader(file, 0, size))
		out[""] = a
		return out, nil
	}
	z, err := zip.NewReader(file, size)
	if err != nil {
		return nil, err
	}
	for _, entry := range z.File {
		name, ok := strings.CutSuffix(entry.Name, ".npy")
		if !ok {
			continue
		}
		a := storedArray{method: entry.Method, packed: int64(entry.CompressedSize64), size: int64(min(entry.UncompressedSize64, math.MaxInt64))}
		var in io.ReadCloser
		if a.at, a.err = entry.DataOffset(); a.err == nil {
			in, a.err = entry.Open()
		}
		if a.err == nil {
			a.header, a.err = readHeader(in)
			in.Close()
		}
		out[name] = a
	}
	return out, nil
}
