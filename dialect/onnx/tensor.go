package onnx

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"

	"dmir/base/regular"
	"dmir/dialect/dim"
	"dmir/dialect/types"
)

// elems are the element types by their numbers.
var elems = map[int64]types.Elem{
	1: types.F32, 2: types.UI8, 3: types.I8, 4: types.UI16, 5: types.I16, 6: types.I32, 7: types.I64, 9: types.I1,
	10: types.F16, 11: types.F64, 12: types.UI32, 13: types.UI64, 16: types.BF16, 17: types.F8E4M3FN, 19: types.F8E5M2,
	21: types.UI4, 22: types.I4,
}

// foreign are the names of the element types that the dialect lacks.
var foreign = map[int64]string{
	8: "string", 14: "complex64", 15: "complex128", 18: "float8e4m3fnuz", 20: "float8e5m2fnuz", 23: "float4e2m1",
	24: "float8e8m0", 25: "uint2", 26: "int2",
}

// elemOf is the element type of a number. what has it, "" for a node.
func elemOf(what string, n int64) types.Elem {
	e, ok := elems[n]
	if !ok {
		if name := foreign[n]; name != "" {
			unsupported("%selements of type %s", what, name)
		}
		fail("%s%d is no element type", what, n)
	}
	return e
}

// maxElements is how many elements a tensor has at most.
const maxElements = 1 << 36

// shapeOf checks the sizes of a tensor.
func shapeOf(what string, dims []int64) []int {
	shape, n, empty := make([]int, len(dims)), int64(1), false
	for i, d := range dims {
		switch {
		case d < 0:
			fail("%s: size %d is negative", what, d)
		case d == 0:
			empty = true
		case n > maxElements/d:
			fail("%s: %v are more than %d elements", what, dims, int64(maxElements))
		default:
			n *= d
		}
		shape[i] = int(d)
	}
	if empty || len(dims) <= 64 {
		return shape
	}
	fail("%s has %d dimensions", what, len(dims))
	return nil
}

func sizes(shape []int) []dim.Dim {
	out := make([]dim.Dim, len(shape))
	for i, n := range shape {
		out[i] = dim.Const(int64(n))
	}
	return out
}

func tensorOf(e types.Elem, shape []int) *types.Tensor {
	return &types.Tensor{Elem: e, Shape: sizes(shape)}
}

func product(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

// dense is the literal of t, whose elements may be in a file of the model's folder.
func (t *tensorProto) dense(opts Options) *types.Dense {
	what := "tensor " + strconv.Quote(t.name)
	e := elemOf(what+": ", t.elem)
	if t.segment {
		unsupported("%s is in segments", what)
	}
	shape := shapeOf(what, t.dims)
	n := product(shape)
	size := int(e.Size(dim.Const(int64(n))).Largest())
	data := t.raw
	switch {
	case t.remote:
		r := t.place(what, opts, size)
		if e.IsFloat() && n > maxRead {
			return types.InFile(tensorOf(e, shape), &types.File{Path: r.file, Name: strconv.FormatInt(r.at, 10), Arrays: r})
		}
		var err error
		if data, err = r.read(); err != nil {
			fail("%s: %v", what, err)
		}
	case !t.hasRaw:
		data = t.typed(what, e, n)
	}
	if len(data) != size {
		fail("%s has %d bytes, its type %s takes %d", what, len(data), tensorOf(e, shape), size)
	}
	if opts.File != "" && !t.remote {
		if r := opts.within(data); e.IsFloat() && t.hasRaw && n > maxRead && varied(data, int(e.Bytes())) {
			return types.InFile(tensorOf(e, shape), &types.File{Path: r.file, Name: strconv.FormatInt(r.at, 10), Arrays: r})
		}
		data = bytes.Clone(data)
	}
	if e == types.I1 {
		for _, b := range data {
			if b > 1 {
				fail("%s: %d is no truth value", what, b)
			}
		}
	}
	return types.DenseOf(tensorOf(e, shape), data)
}

// typed is what the typed fields hold, as stored elements.
func (t *tensorProto) typed(what string, e types.Elem, n int) []byte {
	have := len(t.ints)
	switch e {
	case types.F32:
		return t.floats
	case types.F64:
		return t.doubles
	}
	if e.Packed() && have == n/2+n%2 || have == n { // a number for each byte or element
		width := int(e.Bytes())
		out := make([]byte, 0, have*width)
		var buf [8]byte
		for _, v := range t.ints {
			binary.LittleEndian.PutUint64(buf[:], uint64(v))
			out = append(out, buf[:width]...)
		}
		return out
	}
	fail("%s has %d numbers for %d elements", what, have, n)
	return nil
}

// maxRead is how many numbers in another file are read at import. More are weights,
// which are read when the program runs.
const maxRead = 1 << 10

// manyValues is how many values there are, at the least, at the start of what are weights, and no mask
// or other pattern that the import looks for.
const manyValues = 16

// varied reports whether data begins with elements, of size bytes each, of many values.
func varied(data []byte, size int) bool {
	seen := map[string]bool{}
	for i := 0; i+size <= min(len(data), maxRead*size) && len(seen) < manyValues; i += size {
		seen[string(data[i:i+size])] = true
	}
	return len(seen) >= manyValues
}

// within is where data, which are a part of the model's, are in its file.
func (o *Options) within(data []byte) remote {
	return remote{dir: filepath.Dir(o.File), file: filepath.Base(o.File), at: int64(cap(o.data) - cap(data)), size: len(data), own: true}
}

// remote are bytes of a file in a folder. They are the elements of a literal.
type remote struct {
	dir, file string
	at        int64
	size      int
	own       bool // the file is the model, which a link may lead to
}

// place is where t's elements, of size bytes, are in a file in the folder dir.
func (t *tensorProto) place(what string, opts Options, size int) remote {
	name := t.external["location"]
	if opts.Dir == "" {
		fail("%s is in the file %q, and the model is in no folder", what, name)
	}
	if !filepath.IsLocal(filepath.FromSlash(name)) {
		fail("%s is in %q, which is outside the model's folder", what, name)
	}
	number := func(key string, otherwise int64) int64 {
		text := t.external[key]
		if text == "" {
			return otherwise
		}
		v, err := strconv.ParseInt(text, 10, 64)
		if err != nil || v < 0 {
			fail("%s: the %s %q is no size", what, key, text)
		}
		return v
	}
	at, length := number("offset", 0), number("length", int64(size))
	if length != int64(size) {
		fail("%s has %d bytes in %q, its elements take %d", what, length, name, size)
	}
	r := remote{dir: opts.Dir, file: filepath.FromSlash(name), at: at, size: size}
	if have, known := opts.sizes[r.file]; known && r.fits(have) == nil {
		return r
	}
	f, have, err := r.open()
	if err != nil {
		fail("%s: %v", what, err)
	}
	if f.Close(); opts.sizes != nil {
		opts.sizes[r.file] = have
	}
	return r
}

// fits is an error unless a file of so many bytes has these.
func (r remote) fits(have int64) error {
	if r.at > have || int64(r.size) > have-r.at {
		return fmt.Errorf("%s has %d bytes, not %d from %d on", r.file, have, r.size, r.at)
	}
	return nil
}

// open opens the file, which has the bytes among its own, have in number.
func (r remote) open() (f *os.File, have int64, err error) {
	if r.own {
		f, err = regular.Open(filepath.Join(r.dir, r.file))
	} else if root, failed := os.OpenRoot(r.dir); failed != nil { // symbolic links do not lead out of it either
		err = failed
	} else {
		f, err = regular.OpenIn(root, r.file)
		root.Close()
	}
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err == nil {
		have = info.Size()
		err = r.fits(have)
	}
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, have, nil
}

func (r remote) read() ([]byte, error) {
	f, _, err := r.open()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data := make([]byte, r.size)
	_, err = f.ReadAt(data, r.at)
	return data, err
}

// Find is an error unless the file has the bytes.
func (r remote) Find(*types.File, *types.Tensor) error {
	f, _, err := r.open()
	if err != nil {
		return err
	}
	return f.Close()
}

// Bytes are the bytes.
func (r remote) Bytes(*types.File, *types.Tensor) ([]byte, error) { return r.read() }

// Map are the bytes where they are in the file.
func (r remote) Map(*types.File, *types.Tensor) ([]byte, error) {
	f, _, err := r.open()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return regular.Part(f, r.at, int64(r.size)), nil
}

// Tensor reads a tensor in a file of its own, as test data is kept, and its name.
func Tensor(data []byte) (d *types.Dense, name string, err error) {
	defer caught(&err)
	t := readTensor(data)
	return t.dense(Options{}), t.name, nil
}

// integers are the elements of d, of integers.
func integers(d *types.Dense) []int {
	n, _ := d.Type.Elements().Int()
	out := make([]int, n)
	for i := range out {
		if d.Splat {
			out[i] = int(d.Int(0))
		} else {
			out[i] = int(d.Int(i))
		}
	}
	return out
}

// first is the first element of d as a number, NaN where there is none.
func first(d *types.Dense) float64 {
	if d.Len() == 0 {
		return math.NaN()
	}
	return d.Float(0)
}
