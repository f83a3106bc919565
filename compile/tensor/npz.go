package tensor

import (
	"archive/zip"
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"dmir/base/atomicfile"
	"dmir/base/regular"
	"dmir/dialect/types"
)

// Archive is an open .npz file: a zip archive of .npy files.
type Archive struct {
	path string
	file *os.File
	zip  *zip.Reader
}

// OpenNPZ opens a .npz file.
func OpenNPZ(path string) (*Archive, error) {
	file, err := regular.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	info, err := file.Stat()
	var z *zip.Reader
	if err == nil {
		z, err = zip.NewReader(file, info.Size())
	}
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &Archive{path, file, z}, nil
}

// Close closes the file.
func (a *Archive) Close() error { return a.file.Close() }

// Names is the names of the arrays, without ".npy", sorted.
func (a *Archive) Names() []string {
	var names []string
	for _, f := range a.zip.File {
		if name, ok := strings.CutSuffix(f.Name, ".npy"); ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// quoted lists names, quoted where they are no plain words: they are the file's.
func quoted(names []string) string {
	out := make([]string, len(names))
	for i, n := range names {
		if out[i] = n; strconv.Quote(n) != `"`+n+`"` {
			out[i] = strconv.Quote(n)
		}
	}
	return strings.Join(out, ", ")
}

// Read reads the array called name; see ReadNPY.
func (a *Archive) Read(name string, elem types.Elem, shape []int) (*Tensor, error) {
	r, err := a.zip.Open(name + ".npy")
	if err != nil {
		return nil, fmt.Errorf("%s: no array %q; there are %s", a.path, name, quoted(a.Names()))
	}
	defer r.Close()
	size := int64(0)
	for _, f := range a.zip.File {
		if f.Name == name+".npy" {
			size = int64(f.UncompressedSize64)
		}
	}
	in := bufio.NewReaderSize(r, 1<<18)
	t, err := readNPY(in, elem, shape, size)
	if err == nil {
		if _, err = in.ReadByte(); err == nil || err == io.EOF { // the end is where the sum of the bytes is checked
			return t, nil
		}
	}
	return nil, fmt.Errorf("%s: %s: %w", a.path, name, err)
}

// Bytes is the content of the file called name in the archive, which is no array,
// of at most limit bytes.
func (a *Archive) Bytes(name string, limit int64) ([]byte, error) {
	r, err := a.zip.Open(name)
	if err != nil {
		return nil, fmt.Errorf("%s: it has no %s", a.path, name)
	}
	defer r.Close()
	b, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(b)) > limit {
		err = fmt.Errorf("more than %d bytes", limit)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %s: %w", a.path, name, err)
	}
	return b, nil
}

// Describe is the shape and the dtype's name of the array called name.
func (a *Archive) Describe(name string) (shape []int, dtype string, err error) {
	r, err := a.zip.Open(name + ".npy")
	if err != nil {
		return nil, "", fmt.Errorf("%s: no array %q", a.path, name)
	}
	defer r.Close()
	h, err := readHeader(r)
	if err != nil {
		return nil, "", fmt.Errorf("%s: %s: %w", a.path, name, err)
	}
	return h.Shape, dtypeName(h.Type), nil
}

// Has reports whether the archive has an array called name.
func (a *Archive) Has(name string) bool { return slices.Contains(a.Names(), name) }

// elemOf is the element type by NumPy's name.
var elemOf = map[string]types.Elem{
	"float64": types.F64, "float32": types.F32, "float16": types.F16,
	"int64": types.I64, "int32": types.I32, "int16": types.I16, "int8": types.I8, "bool": types.I1,
	"uint64": types.UI64, "uint32": types.UI32, "uint16": types.UI16, "uint8": types.UI8,
}

// Any reads the array called name, of real numbers of any type and of any shape.
func (a *Archive) Any(name string) (*Tensor, error) {
	shape, dtype, err := a.Describe(name)
	if err != nil {
		return nil, err
	}
	elem, ok := elemOf[dtype]
	if !ok {
		return nil, fmt.Errorf("%s: %s has elements of %s", a.path, name, dtype)
	}
	return a.Read(name, elem, shape)
}

// mostText bounds the text that Text reads.
const mostText = 1 << 12

// Text is the array called name, which is one string: of bytes, or of code points.
func (a *Archive) Text(name string) (string, error) {
	b, err := a.Bytes(name+".npy", mostText)
	if err != nil {
		return "", err
	}
	h, err := readHeader(bytes.NewReader(b))
	if err != nil {
		return "", fmt.Errorf("%s: %s: %w", a.path, name, err)
	}
	kind := strings.TrimLeft(h.Type, "<>|=")
	data := b[min(h.Size, int64(len(b))):]
	switch {
	case len(h.Shape) == 0 && strings.HasPrefix(kind, "S"):
	case len(h.Shape) == 0 && strings.HasPrefix(kind, "U"):
		data = bytes.ReplaceAll(data, []byte{0}, nil) // of what is within ASCII
	default:
		return "", fmt.Errorf("%s: %s is no text", a.path, name)
	}
	return strings.TrimRight(string(data), "\x00"), nil
}

// Writer writes a .npz file, which is complete after Close. Nothing is compressed.
type Writer struct{ zip *zip.Writer }

// NewWriter writes to w.
func NewWriter(w io.Writer) *Writer { return &Writer{zip.NewWriter(w)} }

// Array adds an array.
func (w *Writer) Array(name string, t *Tensor) error {
	to, err := w.create(name + ".npy")
	if err != nil {
		return err
	}
	return WriteNPY(to, t)
}

// Text adds an array that is one string, of bytes.
func (w *Writer) Text(name, text string) error {
	return w.File(name+".npy", append(head("|S"+strconv.Itoa(len(text)), "()"), text...))
}

// File adds a file that is no array.
func (w *Writer) File(name string, data []byte) error {
	to, err := w.create(name)
	if err != nil {
		return err
	}
	_, err = to.Write(data)
	return err
}

func (w *Writer) create(name string) (io.Writer, error) {
	return w.zip.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Store})
}

// Close ends the file.
func (w *Writer) Close() error { return w.zip.Close() }

// SaveNPY writes t to path atomically.
func SaveNPY(path string, t *Tensor) error {
	return atomicfile.WriteFile(path, 0o644, func(w io.Writer) error { return WriteNPY(w, t) })
}
