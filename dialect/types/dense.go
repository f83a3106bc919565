package types

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"dmir/dialect/dim"
	"dmir/syntax/ast"
)

// Dense is dense<…> : tensor type. A splat holds one element, which every
// element of its type is.
type Dense struct {
	Type *Tensor
	Elements
	Splat bool
	text  string // what stands in <…>; "" where the literal does not come from text
	file  *File  // that has the elements
}

// maxListed is how many elements Text lists; it writes more as bytes.
const maxListed = 1 << 10

// DenseOf is the literal of type t with the elements in data, row-major and as
// devices hold them, or, where its type is not packed, with the one element in data
// for all. The literal keeps data, which must not change afterwards.
func DenseOf(t *Tensor, data []byte) *Dense {
	if t.Elem.Packed() {
		n, _ := t.Elements().Int()
		data = UnpackHalves(data, int(n))
	}
	return denseOf(t, data)
}

// BlobOf is the literal of type t whose elements are in a resource: "0x", four bytes
// with its alignment, and the elements, all in hexadecimal. Errors are *Error.
func BlobOf(t *Tensor, text string) (*Dense, error) {
	digits, _ := strings.CutPrefix(text, "0x")
	n, known := t.Elements().Int()
	if want := 8 + 2*n*t.Elem.Bytes(); !known || int64(len(digits)) != want {
		return nil, badDense("the resource holds %d bytes, but %s with its alignment takes %d", len(digits)/2, t, want/2)
	}
	data := make([]byte, n*t.Elem.Bytes())
	if _, err := io.ReadFull(hex.NewDecoder(strings.NewReader(digits[8:])), data); err != nil {
		return nil, badDense("%.40q is not a string of hexadecimal bytes beginning with 0x", text)
	}
	if most := map[bool]byte{true: 1, false: 15}[t.Elem == I1]; t.Elem == I1 || t.Elem.Packed() {
		for i := range data {
			data[i] &= most
		}
	}
	return denseOf(t, data), nil
}

// denseOf is the literal with elements, which are a splat if all are equal.
func denseOf(t *Tensor, data []byte) *Dense {
	d := &Dense{Type: t, Elements: Elements{t.Elem, data}}
	if size := int(t.Elem.Bytes()); len(data) >= size && bytes.Equal(data[size:], data[:len(data)-size]) {
		d.Splat, d.data = true, bytes.Clone(data[:size])
	}
	return d
}

// SplatOf is the literal of type t whose elements are all v.
func SplatOf(t *Tensor, v float64) *Dense {
	d := &Dense{Type: t, Elements: Elements{Elem: t.Elem}, Splat: true}
	switch {
	case t.Elem.IsFloat():
		d.add(ToBits(v, t.Elem))
		d.text = FloatText(v, t.Elem)
	case t.Elem == I1:
		d.add(uint64(int64(v) & 1))
		d.text = Bool(v != 0).String()
	default:
		return IntOf(t, int64(v))
	}
	return d
}

// IntOf is the literal of type t, of integers, whose elements are all v.
func IntOf(t *Tensor, v int64) *Dense {
	text := strconv.FormatInt(v, 10)
	if t.Elem == I1 {
		text = strconv.FormatBool(v != 0)
	}
	d := &Dense{Type: t, Elements: Elements{Elem: t.Elem}, Splat: true, text: text}
	d.add(uint64(v))
	return d
}

// Of is the literal with another type of the same element type; d is a splat.
func (d *Dense) Of(t *Tensor) *Dense {
	e := *d
	e.Type = t
	return &e
}

// Text is what stands in <…>: what was written, otherwise the elements in lists
// or, where they are many, their bytes in hexadecimal.
func (d *Dense) Text() string {
	switch {
	case d.text != "" || d.Len() == 0:
		return d.text
	case d.Splat:
		return string(d.appendText(nil, 0))
	case d.Len() > maxListed && d.Elem != I1:
		return fmt.Sprintf(`"0x%X"`, d.data)
	}
	i := 0
	return string(d.appendLists(nil, d.Type.Shape, &i))
}

// Key is a text that differs between literals of different types or elements: what
// String gives, or of a long literal a digest of its bytes.
func (d *Dense) Key() string {
	if d.file != nil {
		return d.file.String() + " : " + d.Type.String()
	}
	if d.Len() > maxListed {
		return fmt.Sprintf("%x : %s", sha256.Sum256(d.data), d.Type)
	}
	return d.String()
}

// appendLists appends the elements from i on, in lists of lists by shape.
func (d *Dense) appendLists(out []byte, shape []dim.Dim, i *int) []byte {
	if len(shape) == 0 {
		*i++
		return d.appendText(out, *i-1)
	}
	out = append(out, '[')
	n, _ := shape[0].Int()
	for k := range n {
		if k > 0 {
			out = append(out, ", "...)
		}
		out = d.appendLists(out, shape[1:], i)
	}
	return append(out, ']')
}

func (d *Dense) String() string {
	if d.file != nil {
		return d.file.String()
	}
	return d.Bare() + " : " + d.Type.String()
}

// Bare is the literal without its type, as it stands before a result's.
func (d *Dense) Bare() string {
	if d.file != nil {
		return d.file.String()
	}
	return "dense<" + d.Text() + ">"
}

// All are all elements as devices hold them, a splat repeated, read where they are in
// a file. The bytes must not be changed.
func (d *Dense) All() ([]byte, error) {
	d, err := d.Inline()
	if err != nil {
		return nil, err
	}
	all := d.each()
	return all.Stored(), nil
}

// Mapped is All for kernels, whose faults are caught: elements in a file are mapped where that is possible,
// as Mapper.Map does.
func (d *Dense) Mapped() ([]byte, error) {
	if d.file != nil {
		if m, ok := d.file.Arrays.(Mapper); ok {
			if data, err := m.Map(d.file, d.Type); data != nil || err != nil {
				return data, err
			}
		}
	}
	return d.All()
}

// each are all elements, a splat repeated.
func (d *Dense) each() Elements {
	if n, ok := d.Type.Elements().Int(); ok && d.Splat {
		return Elements{d.Elem, bytes.Repeat(d.data, int(n))}
	}
	return d.Elements
}

// Spread is the integers of the literal one by one, a splat repeated for every
// element, which are at most a few; nil for floating-point literals.
func (d *Dense) Spread() []int64 {
	if !d.Elem.IsInt() {
		return nil
	}
	if n, ok := d.Type.Elements().Int(); !ok || n > 1<<16 {
		return d.Ints()
	}
	all := d.each()
	return all.Ints()
}

// DenseFromExpr is the value of the literal dense<…> as type t; the type
// written behind the literal, if any, is not looked at. Errors are *Error.
func DenseFromExpr(x *ast.AttrExpr, t *Tensor) (*Dense, error) {
	n, known := t.Elements().Int()
	if !known {
		return nil, badDense("a literal cannot have the type %s, whose size is not known", t)
	}
	d := &Dense{Type: t, Elements: Elements{Elem: t.Elem}, text: literalText(x.Text)}
	var lit *ast.AttrExpr
	switch {
	case len(x.Elems) == 1:
		lit = x.Elems[0]
	case len(x.Elems) > 1:
		lit = &ast.AttrExpr{Kind: ast.AArray, Elems: x.Elems}
	}
	switch {
	case lit == nil || lit.Kind == ast.AArray && len(lit.Elems) == 0:
		if n != 0 {
			return nil, badDense("the literal is empty, but %s has %d elements", t, n)
		}
		return d, nil
	case lit.Kind == ast.AString:
		return d, d.fromHex(lit.Str, n)
	case lit.Kind == ast.AArray:
		d.data = make([]byte, 0, min(n, int64(len(x.Text)))*t.Elem.Bytes()) // an element takes at least one character
		return d, d.fromList(lit, 0)
	}
	d.Splat = true
	return d, d.addValue(lit)
}

func badDense(format string, args ...any) *Error {
	return &Error{Code: "DM154", Msg: fmt.Sprintf(format, args...)}
}

// literalText is what stands in the brackets of dense<…>.
func literalText(text string) string {
	start := strings.IndexByte(text, '<')
	if start < 0 {
		return text
	}
	for i := start + 1; i < len(text); i++ {
		switch text[i] {
		case '"':
			i = stringEnd(text, i) - 1
		case '>':
			return strings.TrimSpace(text[start+1 : i])
		}
	}
	return text[start+1:]
}

// fromList reads nested lists and checks them against the shape.
func (d *Dense) fromList(x *ast.AttrExpr, depth int) error {
	if depth >= d.Type.Rank() {
		return badDense("the lists are nested deeper than the %d dimensions of %s", d.Type.Rank(), d.Type)
	}
	if n, _ := d.Type.Shape[depth].Int(); int64(len(x.Elems)) != n {
		return badDense("a list has %d entries where dimension %d of %s has %d", len(x.Elems), depth, d.Type, n)
	}
	for i, e := range x.Elems {
		var err error
		switch {
		case e.Kind == ast.AArray:
			err = d.fromList(e, depth+1)
		case depth != d.Type.Rank()-1:
			err = badDense("found %s where a list is expected: %s has %d dimensions", e.Text, d.Type, d.Type.Rank())
		default:
			err = d.addValue(e)
		}
		var at *Error
		if errors.As(err, &at) {
			at.Path = slices.Insert(at.Path, 0, i)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// addValue appends the value of one element.
func (d *Dense) addValue(x *ast.AttrExpr) error {
	e := d.Elem
	if x.Kind == ast.AKeyword && ast.NotFinite(x.Text) {
		f := *x
		f.Kind = ast.AFloat
		f.Float, _ = strconv.ParseFloat(x.Text, 64)
		x = &f
	}
	switch {
	case x.Kind != ast.ABool && x.Kind != ast.AInt && x.Kind != ast.AFloat:
		return badDense("%s is not a value of %s", x.Text, e)
	case e.IsFloat() && x.Kind == ast.ABool, e.IsInt() && x.Kind == ast.AFloat, e != I1 && x.Kind == ast.ABool:
		return badDense("%s is not a value of %s", x.Text, e)
	case e.IsFloat():
		v, err := floatValue(x, e)
		if err != nil {
			return err
		}
		d.add(ToBits(v, e))
		return nil
	case x.Kind == ast.ABool:
		n := uint64(0)
		if x.Bool {
			n = 1
		}
		d.add(n)
		return nil
	case x.Big:
		n, err := strconv.ParseUint(x.Text, 0, 64)
		if err != nil || e != UI64 {
			return outOfRange(x.Text, e)
		}
		d.add(n)
		return nil
	}
	if least, greatest := intRange(e); x.Int < least || x.Int > greatest {
		return outOfRange(x.Text, e)
	}
	d.add(uint64(wrapInt(x.Int, e)))
	return nil
}

// fromHex reads the bytes of all elements, or of one for a splat: little
// endian, i1 eight to a byte from the lowest bit, or a byte each.
func (d *Dense) fromHex(text string, n int64) error {
	digits, ok := strings.CutPrefix(text, "0x")
	data := make([]byte, len(digits)/2)
	if _, err := io.ReadFull(hex.NewDecoder(strings.NewReader(digits)), data); !ok || err != nil || len(digits)%2 != 0 {
		return badDense("%.40q is not a string of hexadecimal bytes beginning with 0x", text)
	}
	if d.Elem == I1 {
		return d.fromBits(data, n)
	}
	size := d.Elem.Bytes()
	switch int64(len(data)) {
	case size * n:
	case size:
		d.Splat = true
	default:
		return badDense("the literal holds %d bytes, but %s has %d elements of %d bytes", len(data), d.Type, n, size)
	}
	if d.Elem.Packed() {
		for i := range data {
			data[i] &= 15
		}
	}
	d.data = data
	return nil
}

// fromBits reads elements of i1: eight to a byte, or a byte each, as MLIR prints them since version 22.
func (d *Dense) fromBits(data []byte, n int64) error {
	if len(data) == 1 && (data[0] == 0xFF || data[0] == 0) {
		d.Splat = true
		d.data = []byte{data[0] & 1}
		return nil
	}
	if int64(len(data)) == n && n > 1 && !slices.ContainsFunc(data, func(b byte) bool { return b > 1 }) {
		d.data = data
		return nil
	}
	if int64(len(data)) != (n+7)/8 {
		return badDense("the literal holds %d bytes, but the %d elements of %s take %d bits, or a byte each that is 0 or 1", len(data), n, d.Type, n)
	}
	d.data = make([]byte, n)
	for i := range d.data {
		d.data[i] = data[i/8] >> (i % 8) & 1
	}
	return nil
}
