package tensor

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/sbinet/npyio/npy"
	"github.com/x448/float16"

	"dmir/base/regular"
	"dmir/dialect/types"
)

// Element types that NumPy lacks are written, exactly, in its next wider one,
// and read from it: bf16 and f8 as float32, i4 and ui4 as int8 and uint8.
var dtypes = [...]string{
	types.F64: "<f8", types.F32: "<f4", types.F16: "<f2", types.BF16: "<f4",
	types.F8E4M3FN: "<f4", types.F8E5M2: "<f4",
	types.I64: "<i8", types.I32: "<i4", types.I16: "<i2", types.I8: "|i1", types.I4: "|i1", types.I1: "|b1",
	types.UI64: "<u8", types.UI32: "<u4", types.UI16: "<u2", types.UI8: "|u1", types.UI4: "|u1", types.Index: "<i8",
}

var dtypeNames = map[string]string{
	"f8": "float64", "f4": "float32", "f2": "float16",
	"i8": "int64", "i4": "int32", "i2": "int16", "i1": "int8", "b1": "bool",
	"u8": "uint64", "u4": "uint32", "u2": "uint16", "u1": "uint8",
	"c8": "complex64", "c16": "complex128",
}

func dtypeName(descr string) string {
	if name, ok := dtypeNames[strings.TrimLeft(descr, "<>|=")]; ok {
		return name
	}
	return "dtype " + strconv.Quote(descr)
}

// MismatchError reports that a file has an array of another type than expected.
type MismatchError struct {
	Want, Got string // types as tensor<…>; Got with NumPy's dtype name
}

func (e *MismatchError) Error() string {
	return "expected " + e.Want + ", got " + e.Got
}

// ReadNPY reads one array in NumPy's .npy format, version 1 or 2, of exactly
// the given element type and shape, in which -1 stands for any size; C and
// Fortran order, both byte orders. An array of another dtype or shape is a
// *MismatchError, found before any data is read. The header is read by npyio;
// the data are decoded here because npyio reads neither float16 nor more than
// two dimensions.
func ReadNPY(r io.Reader, elem types.Elem, shape []int) (*Tensor, error) {
	return readNPY(r, elem, shape, math.MaxInt64)
}

// readNPY rejects an array of more bytes than the file has, before it allocates
// memory.
func readNPY(r io.Reader, elem types.Elem, shape []int, bytes int64) (*Tensor, error) {
	h, err := readHeader(r)
	if err != nil {
		return nil, err
	}
	return h.read(r, elem, shape, bytes)
}

// read reads the data of an array behind its header.
func (h header) read(r io.Reader, elem types.Elem, shape []int, bytes int64) (*Tensor, error) {
	order, err := h.typed(elem, shape, bytes)
	if err != nil {
		return nil, err
	}
	t := New(elem, h.Shape...)
	if err := readData(r, t, order); err != nil {
		return nil, err
	}
	if h.Fortran && len(h.Shape) > 1 {
		t = fromFortran(t)
	}
	return t, nil
}

// typed is the order of an element's bytes; the error is why the array is none of elem
// and shape, or does not fit into as many bytes.
func (h header) typed(elem types.Elem, shape []int, bytes int64) (binary.ByteOrder, error) {
	width, order, ok := h.layout(elem)
	if !ok || !matches(h.Shape, shape) {
		return nil, &MismatchError{
			Want: typeText(shape, elem.String()) + " (" + dtypeName(dtypes[elem]) + ")",
			Got:  typeText(h.Shape, dtypeName(h.Type)),
		}
	}
	if n, ok := Count(h.Shape); !ok || int64(n)*int64(width) > bytes {
		return nil, fmt.Errorf("the .npy data end early: %s does not fit into %d bytes", typeText(h.Shape, dtypeName(h.Type)), bytes)
	}
	return order, nil
}

// DescribeNPY is the type of the array in a .npy file, with NumPy's name of its
// elements, as in "tensor<4x8xfloat32>". It reads the header only.
func DescribeNPY(r io.Reader) (string, error) {
	h, err := readHeader(r)
	if err != nil {
		return "", err
	}
	return typeText(h.Shape, dtypeName(h.Type)), nil
}

func matches(shape, want []int) bool {
	return slices.EqualFunc(shape, want, func(n, w int) bool { return w < 0 || n == w })
}

type header struct {
	Type    string
	Fortran bool
	Shape   []int
	Size    int64 // of the header itself: the data follow
}

// layout is how the elements of type elem lie in the data; ok is false where they are
// of another type.
func (h header) layout(elem types.Elem) (width int, order binary.ByteOrder, ok bool) {
	want := dtypes[elem]
	order = binary.LittleEndian
	if strings.HasPrefix(h.Type, ">") {
		order = binary.BigEndian
	}
	return int(want[2] - '0'), order, strings.TrimLeft(h.Type, "<>|=") == want[1:]
}

// stored reports whether the data are bytes as devices hold elements of type elem, which are as wide.
func (h header) stored(elem types.Elem) bool {
	width, order, _ := h.layout(elem)
	kind := dtypes[elem][1]
	return order == binary.LittleEndian && int64(width) == elem.Bytes() && !elem.Packed() && elem != types.I1 && (kind == 'f' || kind == 'i' || kind == 'u') && (!h.Fortran || len(h.Shape) < 2)
}

// readHeader guards npyio's reader, which indexes into malformed headers.
func readHeader(r io.Reader) (h header, err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("not a .npy file: malformed header")
		}
	}()
	// npyio allocates the length that the header states.
	var start [12]byte
	if _, err := io.ReadFull(r, start[:]); err != nil {
		return h, errors.New("not a .npy file: too short")
	}
	if start[6] == 2 && binary.LittleEndian.Uint32(start[8:]) > 1<<20 {
		return h, errors.New("not a .npy file: header too long")
	}
	rd, err := npy.NewReader(io.MultiReader(bytes.NewReader(start[:]), r))
	if err != nil {
		return h, fmt.Errorf("not a .npy file: %w", err)
	}
	d := rd.Header.Descr
	h = header{Type: d.Type, Fortran: d.Fortran, Shape: d.Shape, Size: 10 + int64(binary.LittleEndian.Uint16(start[8:]))}
	if start[6] > 1 {
		h.Size = 12 + int64(binary.LittleEndian.Uint32(start[8:]))
	}
	if h.Shape == nil {
		h.Shape = []int{}
	}
	return h, nil
}

func readData(r io.Reader, t *Tensor, order binary.ByteOrder) error {
	const block = 1 << 16
	n, width := t.Len(), int(dtypes[t.Elem][2]-'0')
	buf := make([]byte, block*width)
	for lo := 0; lo < n; lo += block {
		hi := min(lo+block, n)
		b := buf[:(hi-lo)*width]
		if _, err := io.ReadFull(r, b); err != nil {
			return fmt.Errorf("the .npy data end early, after %d of %d elements", lo, n)
		}
		decode(t, lo, hi, b, order)
		if err := inRange(t, lo, b); err != nil {
			return err
		}
	}
	return nil
}

// inRange is an error where an element, of those from lo on that b holds, is not one
// of t's packed type.
func inRange(t *Tensor, lo int, b []byte) error {
	if !t.Elem.Packed() {
		return nil
	}
	for i, v := range b {
		if byte(t.Int[lo+i]) != v {
			return fmt.Errorf("element %d does not fit into %s", lo+i, t.Elem)
		}
	}
	return nil
}

func decode(t *Tensor, lo, hi int, b []byte, order binary.ByteOrder) {
	switch dtypes[t.Elem][1:] {
	case "f8":
		for i := lo; i < hi; i, b = i+1, b[8:] {
			t.F64[i] = math.Float64frombits(order.Uint64(b))
		}
	case "f4":
		for i := lo; i < hi; i, b = i+1, b[4:] {
			t.F32[i] = math.Float32frombits(order.Uint32(b))
		}
		RoundSlice(t.Elem, t.F32[lo:hi])
	case "f2":
		for i := lo; i < hi; i, b = i+1, b[2:] {
			t.F32[i] = float16.Frombits(order.Uint16(b)).Float32()
		}
	case "b1":
		for i := lo; i < hi; i++ {
			t.Bool[i] = min(b[i-lo], 1)
		}
	case "i1", "u1":
		for i := lo; i < hi; i++ {
			t.Int[i] = Wrap(t.Elem, int64(b[i-lo]))
		}
	case "i2", "u2":
		for i := lo; i < hi; i, b = i+1, b[2:] {
			t.Int[i] = Wrap(t.Elem, int64(order.Uint16(b)))
		}
	case "i4", "u4":
		for i := lo; i < hi; i, b = i+1, b[4:] {
			t.Int[i] = Wrap(t.Elem, int64(order.Uint32(b)))
		}
	default:
		for i := lo; i < hi; i, b = i+1, b[8:] {
			t.Int[i] = int64(order.Uint64(b))
		}
	}
}

// fromFortran reorders elements that were read in column-major order.
func fromFortran(t *Tensor) *Tensor {
	out := New(t.Elem, t.Shape...)
	strides := make([]int, len(t.Shape)) // of the file's order
	n := 1
	for i, d := range t.Shape {
		strides[i] = n
		n *= d
	}
	idx := make([]int, len(t.Shape))
	for i, from := 0, 0; i < n; i++ {
		switch t.Kind() {
		case KindF32:
			out.F32[i] = t.F32[from]
		case KindF64:
			out.F64[i] = t.F64[from]
		case KindInt:
			out.Int[i] = t.Int[from]
		case KindBool:
			out.Bool[i] = t.Bool[from]
		}
		for d := len(idx) - 1; d >= 0; d-- {
			idx[d]++
			from += strides[d]
			if idx[d] < t.Shape[d] {
				break
			}
			from -= idx[d] * strides[d]
			idx[d] = 0
		}
	}
	return out
}

// WriteNPY writes t in NumPy's .npy format, version 1, little-endian, C order.
// bf16 and the f8 types, which NumPy lacks, are written as float32.
func WriteNPY(w io.Writer, t *Tensor) error {
	shape := make([]string, len(t.Shape))
	for i, d := range t.Shape {
		shape[i] = strconv.Itoa(d)
	}
	tuple := "(" + strings.Join(shape, ", ")
	if len(shape) == 1 {
		tuple += ","
	}
	if _, err := w.Write(head(dtypes[t.Elem], tuple+")")); err != nil {
		return err
	}
	const block = 1 << 14
	n := t.Len()
	buf := make([]byte, 0, block*8)
	for lo := 0; lo < n; lo += block {
		if _, err := w.Write(encode(buf[:0], t, lo, min(lo+block, n))); err != nil {
			return err
		}
	}
	return nil
}

// head is what stands before the data of an array in C order.
func head(descr, shape string) []byte {
	dict := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': %s, }", descr, shape)
	pad := 63 - (10+len(dict))%64
	b := append([]byte("\x93NUMPY\x01\x00"), 0, 0)
	binary.LittleEndian.PutUint16(b[8:], uint16(len(dict)+pad+1))
	b = append(b, dict...)
	b = append(b, strings.Repeat(" ", pad)...)
	return append(b, '\n')
}

func encode(b []byte, t *Tensor, lo, hi int) []byte {
	order := binary.LittleEndian
	switch dtypes[t.Elem][1:] {
	case "f8":
		for _, v := range t.F64[lo:hi] {
			b = order.AppendUint64(b, math.Float64bits(v))
		}
	case "f4":
		for _, v := range t.F32[lo:hi] {
			b = order.AppendUint32(b, math.Float32bits(v))
		}
	case "f2":
		for _, v := range t.F32[lo:hi] {
			b = order.AppendUint16(b, float16.Fromfloat32(v).Bits())
		}
	case "b1":
		b = append(b, t.Bool[lo:hi]...)
	case "i1", "u1":
		for _, v := range t.Int[lo:hi] {
			b = append(b, byte(v))
		}
	case "i2", "u2":
		for _, v := range t.Int[lo:hi] {
			b = order.AppendUint16(b, uint16(v))
		}
	case "i4", "u4":
		for _, v := range t.Int[lo:hi] {
			b = order.AppendUint32(b, uint32(v))
		}
	default:
		for _, v := range t.Int[lo:hi] {
			b = order.AppendUint64(b, uint64(v))
		}
	}
	return b
}

// LoadNPY is ReadNPY from a file.
func LoadNPY(path string, elem types.Elem, shape []int) (*Tensor, error) {
	return loadNPY(path, func(r io.Reader, size int64) (*Tensor, error) { return readNPY(r, elem, shape, size) })
}

func loadNPY(path string, read func(r io.Reader, size int64) (*Tensor, error)) (*Tensor, error) {
	f, err := regular.OpenNamed(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size := int64(math.MaxInt64) // of a file that is not regular
	if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
		size = info.Size()
	}
	t, err := read(bufio.NewReaderSize(f, 1<<18), size)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return t, nil
}
