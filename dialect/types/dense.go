package types

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"dmir/syntax/ast"
)

// DenseFromExpr is the value of the literal dense<…> as type t; the type
// written behind the literal, if any, is not looked at. Errors are *Error.
func DenseFromExpr(x *ast.AttrExpr, t *Tensor) (*Dense, error) {
	n, known := t.Elements().Int()
	if !known {
		return nil, badDense("a literal cannot have the type %s, whose size is not known", t)
	}
	d := &Dense{Type: t, Text: literalText(x.Text)}
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
		return d, d.fromList(lit, 0)
	}
	d.Splat = true
	return d, d.add(lit)
}

// SplatOf is the literal of type t whose elements are all v.
func SplatOf(t *Tensor, v float64) *Dense {
	d := &Dense{Type: t, Splat: true}
	switch {
	case t.Elem.IsFloat():
		d.Floats, d.Text = []float64{v}, FloatText(v, t.Elem)
	case t.Elem == I1:
		d.Ints, d.Text = []int64{int64(v)}, Bool(v != 0).String()
	default:
		d.Ints, d.Text = []int64{int64(v)}, strconv.FormatInt(int64(v), 10)
	}
	return d
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
	for _, e := range x.Elems {
		var err error
		switch {
		case e.Kind == ast.AArray:
			err = d.fromList(e, depth+1)
		case depth != d.Type.Rank()-1:
			err = badDense("found %s where a list is expected: %s has %d dimensions", e.Text, d.Type, d.Type.Rank())
		default:
			err = d.add(e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// add appends the value of one element.
func (d *Dense) add(x *ast.AttrExpr) error {
	e := d.Type.Elem
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
		d.Floats = append(d.Floats, v)
		return nil
	case x.Kind == ast.ABool:
		n := int64(0)
		if x.Bool {
			n = 1
		}
		d.Ints = append(d.Ints, n)
		return nil
	case x.Big:
		n, err := strconv.ParseUint(x.Text, 0, 64)
		if err != nil || e != UI64 {
			return outOfRange(x.Text, e)
		}
		d.Ints = append(d.Ints, int64(n))
		return nil
	}
	if least, greatest := intRange(e); x.Int < least || x.Int > greatest {
		return outOfRange(x.Text, e)
	}
	d.Ints = append(d.Ints, wrapInt(x.Int, e))
	return nil
}

// fromHex reads the bytes of all elements, or of one for a splat: little
// endian, i1 eight to a byte from the lowest bit.
func (d *Dense) fromHex(text string, n int64) error {
	digits, ok := strings.CutPrefix(text, "0x")
	data, err := hex.DecodeString(digits)
	if !ok || err != nil {
		return badDense("%.40q is not a string of hexadecimal bytes beginning with 0x", text)
	}
	e := d.Type.Elem
	if e == I1 {
		return d.fromBits(data, n)
	}
	size := e.Bytes()
	switch int64(len(data)) {
	case size * n:
	case size:
		d.Splat = true
	default:
		return badDense("the literal holds %d bytes, but %s has %d elements of %d bytes", len(data), d.Type, n, size)
	}
	for ; len(data) > 0; data = data[size:] {
		var word [8]byte
		copy(word[:], data[:size])
		bits := binary.LittleEndian.Uint64(word[:])
		if e.IsFloat() {
			d.Floats = append(d.Floats, FromBits(bits, e))
		} else {
			d.Ints = append(d.Ints, wrapInt(int64(bits), e))
		}
	}
	return nil
}

func (d *Dense) fromBits(data []byte, n int64) error {
	if len(data) == 1 && (data[0] == 0xFF || data[0] == 0) {
		d.Splat = true
		d.Ints = []int64{int64(data[0] & 1)}
		return nil
	}
	if int64(len(data)) != (n+7)/8 {
		return badDense("the literal holds %d bytes, but the %d elements of %s take %d bits", len(data), n, d.Type, n)
	}
	for i := range n {
		d.Ints = append(d.Ints, int64(data[i/8]>>(i%8)&1))
	}
	return nil
}
