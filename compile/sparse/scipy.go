package sparse

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"dmir/compile/tensor"
	"dmir/dialect/dim"
	"dmir/dialect/types"
	"dmir/syntax/parse"
)

// ReadNPZ reads a sparse matrix or array that SciPy's save_npz has written, in one of its
// formats csr, csc, bsr and coo, as one with elements of a type (COO.As). An error is a
// *FileError, or of reading the archive.
func ReadNPZ(z *tensor.Archive, elem types.Elem) (*COO, error) {
	if !z.Has("format") {
		return nil, &FileError{0, fmt.Sprintf("it has no array format, as scipy.sparse.save_npz writes one; there are %s", strings.Join(z.Names(), ", ")), "save it with scipy.sparse.save_npz, or give each component by its name"}
	}
	format, err := z.Text("format")
	if err != nil {
		return nil, err
	}
	if strings.HasPrefix(format, "tensor<") {
		c, err := components(z, format)
		return retyped(c, err, elem)
	}
	r := &scipy{z: z, arrays: map[string]*tensor.Tensor{}}
	if err := r.shape(); err != nil {
		return nil, err
	}
	if r.data, err = z.Any("data"); err != nil {
		return nil, err
	}
	switch format {
	case "csr":
		err = r.compressed(0)
	case "csc":
		err = r.compressed(1)
	case "bsr":
		err = r.blocks()
	case "coo":
		err = r.coordinates()
	default:
		err = &FileError{0, fmt.Sprintf("its format is %q", format), "save it as csr, csc, bsr or coo: scipy.sparse.save_npz(file, a.tocsr())"}
	}
	if err != nil {
		return nil, err
	}
	if err := r.c.inside(); err != nil {
		return nil, &FileError{0, err.Msg, err.Help}
	}
	if err := r.c.distinct(); err != nil {
		return nil, &FileError{0, "element " + err.Msg, "add them up before saving: a.sum_duplicates()"}
	}
	return retyped(r.c, nil, elem)
}

// retyped is c, if there is no error, with elements of a type.
func retyped(c *COO, err error, elem types.Elem) (*COO, error) {
	var bad *Error
	switch {
	case errors.As(err, &bad):
	case err != nil:
		return nil, err
	default:
		if c, bad = c.As(elem); bad == nil {
			return c, nil
		}
	}
	return nil, &FileError{0, bad.Error(), bad.Help}
}

// scipy reads the arrays of one file.
type scipy struct {
	z      *tensor.Archive
	arrays map[string]*tensor.Tensor
	data   *tensor.Tensor
	c      *COO
}

// ints is an array of integers of that rank.
func (r *scipy) ints(name string, rank int) ([]int64, error) {
	if !r.z.Has(name) {
		return nil, &FileError{0, "it has no array " + name + ": it may be cut off", "save it again with scipy.sparse.save_npz"}
	}
	x, err := r.z.Any(name)
	if err != nil {
		return nil, err
	}
	if x.Kind() != tensor.KindInt || len(x.Shape) != rank {
		return nil, &FileError{0, fmt.Sprintf("its array %s is %s, no list of integers", name, x.Type()), "save it again with scipy.sparse.save_npz"}
	}
	r.arrays[name] = x
	return x.Int, nil
}

func (r *scipy) shape() error {
	sizes, err := r.ints("shape", 1)
	if err != nil {
		return err
	}
	r.c = &COO{At: make([][]int64, len(sizes))}
	for _, n := range sizes {
		if n < 0 || n > 1<<48 {
			return &FileError{0, fmt.Sprintf("its shape is %v", sizes), ""}
		}
		r.c.Shape = append(r.c.Shape, int(n))
	}
	if len(sizes) == 0 {
		return &FileError{0, "its shape has no dimensions", ""}
	}
	return nil
}

func (r *scipy) wrong(help, format string, args ...any) error {
	return &FileError{0, fmt.Sprintf(format, args...), help}
}

// segments are the parents of count entries by indptr, which has a segment for each of n parents;
// those behind the last segment are none's.
func (r *scipy) segments(n int, has int) ([]int64, error) {
	ptr, err := r.ints("indptr", 1)
	if err != nil {
		return nil, err
	}
	if len(ptr) != n+1 {
		return nil, r.wrong("", "indptr has %d positions for %d segments, which is not one more", len(ptr), n)
	}
	for i, p := range ptr {
		switch {
		case i == 0 && p != 0:
			return nil, r.wrong("", "indptr[0] is %d, not 0", p)
		case i > 0 && p < ptr[i-1]:
			return nil, r.wrong("", "indptr[%d] is %d, behind %d: positions never fall", i, p, ptr[i-1])
		case p > int64(has):
			return nil, r.wrong("it may be cut off: save it again", "indptr[%d] is %d, but there are %d indices", i, p, has)
		}
	}
	parents := make([]int64, ptr[n])
	for i := range n {
		for k := ptr[i]; k < ptr[i+1]; k++ {
			parents[k] = int64(i)
		}
	}
	return parents, nil
}

// compressed reads csr, whose segments are those of dimension 0, or csc.
func (r *scipy) compressed(outer int) error {
	indices, err := r.ints("indices", 1)
	if err != nil {
		return err
	}
	rank := len(r.c.Shape)
	if rank > 2 || rank == 1 && outer == 1 {
		return r.wrong("save it as coo", "a compressed matrix has no shape %v", r.c.Shape)
	}
	n := 1
	if rank == 2 {
		n = r.c.Shape[outer]
	}
	parents, err := r.segments(n, len(indices))
	if err != nil {
		return err
	}
	if len(r.data.Shape) != 1 || r.data.Len() < len(parents) {
		return r.wrong("it may be cut off: save it again", "data is %s, and indptr ends at %d", r.data.Type(), len(parents))
	}
	r.c.Values = r.data
	if r.data.Len() > len(parents) {
		r.c.Values = Take(r.data, upTo(len(parents)))
	}
	indices = indices[:len(parents)]
	if rank == 1 {
		r.c.At[0] = indices
		return nil
	}
	r.c.At[outer], r.c.At[1-outer] = parents, indices
	return nil
}

func upTo(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// blocks reads bsr: data is the blocks, [blocks, height, width].
func (r *scipy) blocks() error {
	indices, err := r.ints("indices", 1)
	if err != nil {
		return err
	}
	s := r.data.Shape
	if len(s) != 3 || len(r.c.Shape) != 2 || s[1] <= 0 || s[2] <= 0 || r.c.Shape[0]%s[1] != 0 || r.c.Shape[1]%s[2] != 0 {
		return r.wrong("", "data is %s, which are no blocks of a matrix of the shape %v", r.data.Type(), r.c.Shape)
	}
	parents, err := r.segments(r.c.Shape[0]/s[1], len(indices))
	if err != nil {
		return err
	}
	if s[0] < len(parents) {
		return r.wrong("it may be cut off: save it again", "data is %s, and indptr ends at %d", r.data.Type(), len(parents))
	}
	n := len(parents) * s[1] * s[2]
	row, col := make([]int64, 0, n), make([]int64, 0, n)
	across := int64(r.c.Shape[1] / s[2])
	for k, p := range parents {
		if indices[k] < 0 || indices[k] >= across {
			return r.wrong("", "indices[%d] is %d, outside of the %d blocks of a row", k, indices[k], across)
		}
		for i := range int64(s[1]) {
			for j := range int64(s[2]) {
				row, col = append(row, p*int64(s[1])+i), append(col, indices[k]*int64(s[2])+j)
			}
		}
	}
	r.c.At[0], r.c.At[1] = row, col
	r.c.Values = Take(r.data, upTo(n))
	return nil
}

// coordinates reads coo, of a matrix as row and col, of other arrays as coords, a row for each dimension.
func (r *scipy) coordinates() error {
	if r.z.Has("coords") {
		at, err := r.ints("coords", 2)
		if err != nil {
			return err
		}
		s := r.arrays["coords"].Shape
		if s[0] != len(r.c.Shape) {
			return r.wrong("", "coords has %d rows, and the shape is %v", s[0], r.c.Shape)
		}
		for d := range r.c.At {
			r.c.At[d] = at[d*s[1] : (d+1)*s[1]]
		}
	} else {
		if len(r.c.Shape) != 2 {
			return r.wrong("", "row and col are of a matrix, and the shape is %v", r.c.Shape)
		}
		for d, name := range []string{"row", "col"} {
			at, err := r.ints(name, 1)
			if err != nil {
				return err
			}
			r.c.At[d] = at
		}
	}
	for _, at := range r.c.At {
		if len(r.data.Shape) != 1 || len(at) != r.data.Len() {
			return r.wrong("it may be cut off: save it again", "there are %d coordinates along a dimension, and data is %s", len(at), r.data.Type())
		}
	}
	r.c.Values = r.data
	return nil
}

// WriteNPZ writes t as save_npz does where SciPy has its format, and otherwise its components by
// their names. Padding is left out.
func (t *Tensor) WriteNPZ(w io.Writer) error {
	c, err := t.Unpack()
	if err != nil {
		return err
	}
	z := tensor.NewWriter(w)
	f := &writer{Writer: z}
	kind := t.Type.Format.ShortName(len(c.Shape))
	switch {
	case kind == "csr" || kind == "csc" || kind == "bsr":
		pos := t.Parts[0].Int
		stored := pos[len(pos)-1]
		f.ints("indices", t.Parts[1].Int[:stored])
		f.ints("indptr", t.Parts[0].Int)
		each := 1
		shape := []int{int(stored)}
		if kind == "bsr" {
			l := t.Type.Format.Levels
			shape = append(shape, int(l[0].Div), int(l[1].Div))
			each = shape[1] * shape[2]
		}
		f.array("data", widened(Take(t.Values(), upTo(int(stored)*each))).Reshape(shape...))
	case kind == "coo" && len(c.Shape) == 2:
		f.ints("row", c.At[0])
		f.ints("col", c.At[1])
		f.array("data", widened(c.Values))
	case kind == "coo" || kind == "sparse_vector":
		kind = "coo"
		at := vector(types.I64, slices.Concat(c.At...))
		f.array("coords", at.Reshape(len(c.Shape), c.Len()))
		f.array("data", widened(c.Values))
	default:
		trimmed, err := Pack(Open(t.Type), c)
		if err != nil {
			return err
		}
		kind = trimmed.Type.String()
		for i, of := range trimmed.Type.Components() {
			f.array(of.Name, trimmed.Parts[i])
		}
	}
	f.text("format", kind)
	shape := make([]int64, len(c.Shape))
	for d, n := range c.Shape {
		shape[d] = int64(n)
	}
	f.ints("shape", shape)
	f.array("_is_array", &tensor.Tensor{Elem: types.I1, Shape: []int{}, Bool: []uint8{1}})
	if f.err != nil {
		return f.err
	}
	return z.Close()
}

// Open is t with room for as many entries as there are.
func Open(t *types.Tensor) *types.Tensor {
	r, f := *t, *t.Format
	f.Stored = make([]dim.Dim, len(f.Stored))
	for i := range f.Stored {
		f.Stored[i] = dim.Unnamed(strconv.Itoa(i))
	}
	r.Format = &f
	return &r
}

// ParseType reads the type of a sparse tensor whose sizes are numbers.
func ParseType(text string) (*types.Tensor, error) {
	x, err := parse.Type(text)
	if err != nil {
		return nil, err
	}
	read, err := types.FromExpr(x, nil)
	if err != nil {
		return nil, err
	}
	t, ok := read.(*types.Tensor)
	if !ok || t.Format == nil {
		return nil, fmt.Errorf("%s is no sparse tensor", text)
	}
	if _, ok := Numbers(t.Sizes()); !ok {
		return nil, fmt.Errorf("%s has sizes that are no numbers", text)
	}
	return t, nil
}

// components reads the tensor of that type, each component by its name.
func components(z *tensor.Archive, text string) (*COO, error) {
	t, err := ParseType(text)
	if err != nil {
		return nil, &FileError{0, fmt.Sprintf("its format is %q: %v", text, err), "save it as csr, csc, bsr or coo with scipy.sparse.save_npz"}
	}
	x := &Tensor{Type: t}
	for _, c := range t.Components() {
		n, _ := c.Tensor.Shape[0].Int()
		part, err := z.Read(c.Name, c.Tensor.Elem, []int{int(n)})
		if err != nil {
			return nil, err
		}
		x.Parts = append(x.Parts, part)
	}
	return x.Unpack()
}

// widened is x with elements that SciPy computes with: it has no float16.
func widened(x *tensor.Tensor) *tensor.Tensor {
	if x.Elem != types.F16 {
		return x
	}
	y := *x
	y.Elem = types.F32
	return &y
}

// writer writes arrays until one fails.
type writer struct {
	*tensor.Writer
	err error
}

func (w *writer) array(name string, x *tensor.Tensor) {
	if w.err == nil {
		w.err = w.Array(name, x)
	}
}

// ints writes integers of 32 bits where they fit, as SciPy does.
func (w *writer) ints(name string, x []int64) {
	elem := types.I32
	if name == "shape" || slices.ContainsFunc(x, func(n int64) bool { return n > largest(types.I32) }) {
		elem = types.I64
	}
	w.array(name, vector(elem, x))
}

func (w *writer) text(name, s string) {
	if w.err == nil {
		w.err = w.Text(name, s)
	}
}
