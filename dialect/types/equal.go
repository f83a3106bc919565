package types

import (
	"bytes"
	"math"
	"slices"

	"dmir/dialect/dim"
)

// Equal reports whether a and b are the same type.
func Equal(a, b Type) bool { return match(a, b, dim.Dim.Equal) }

// Compatible reports whether a value of type a may stand where b is written:
// the types are equal, but a dimension without a name may be any, and nothing
// is known against the type of an unknown op's result.
func Compatible(a, b Type) bool {
	return a == Type(Unknown) || b == Type(Unknown) || match(a, b, func(d, e dim.Dim) bool {
		return d.Equal(e) || d.IsUnnamed() || e.IsUnnamed()
	})
}

// HasUnnamed reports whether t is or has a tensor with a dimension that has no name.
func HasUnnamed(t Type) bool {
	switch t := t.(type) {
	case *Tensor:
		return t.hasSize(dim.Dim.IsUnnamed)
	case *Tuple:
		return slices.ContainsFunc(t.Of, HasUnnamed)
	}
	return false
}

func match(a, b Type, same func(d, e dim.Dim) bool) bool {
	switch a := a.(type) {
	case *Tensor:
		t, ok := b.(*Tensor)
		return ok && (a == t || a.Elem == t.Elem && a.Enc == t.Enc && a.At.Equal(t.At) && slices.EqualFunc(a.Shape, t.Shape, same) && a.Format.match(t.Format, same))
	case *Tuple:
		t, ok := b.(*Tuple)
		return ok && (a == t || slices.EqualFunc(a.Of, t.Of, func(x, y Type) bool { return match(x, y, same) }))
	case *Func:
		f, ok := b.(*Func)
		return ok && slices.EqualFunc(a.In, f.In, func(x, y Type) bool { return match(x, y, same) }) &&
			slices.EqualFunc(a.Out, f.Out, func(x, y Type) bool { return match(x, y, same) })
	case Scalar:
		s, ok := b.(Scalar)
		return ok && a == s
	case Opaque:
		o, ok := b.(Opaque)
		return ok && a == o
	}
	return a == nil && b == nil
}

// EqualAttr reports whether a and b are the same value, however written: MLIR's
// default types (i64, f64) may be left out, a keyword is a string in generic
// form, and a splat equals the list it stands for.
func EqualAttr(a, b Attr) bool {
	switch a := a.(type) {
	case Int:
		i, ok := b.(Int)
		return ok && a.V == i.V && orElse(a.Elem, I64) == orElse(i.Elem, I64)
	case Float:
		f, ok := b.(Float)
		return ok && sameFloat(a.V, f.V) && orElse(a.Elem, F64) == orElse(f.Elem, F64)
	case Keyword:
		return equalText(string(a), b)
	case Str:
		return equalText(string(a), b)
	case Array:
		s, ok := b.(Array)
		return ok && slices.EqualFunc(a, s, EqualAttr)
	case Dict:
		d, ok := b.(Dict)
		return ok && EqualNamed(a, d)
	case *Dense:
		d, ok := b.(*Dense)
		return ok && a.equal(d)
	case *ArrayOf:
		d, ok := b.(*ArrayOf)
		return ok && a.equal(&d.Elements)
	case TypeAttr:
		t, ok := b.(TypeAttr)
		return ok && sameTypeText(a.T, t.T)
	case Place:
		p, ok := b.(Place)
		return ok && a.Equal(p.Placement)
	case nil:
		return b == nil
	}
	switch b.(type) { // the rest compares as Go values; these do not
	case Array, Dict, Place:
		return false
	}
	return a == b
}

// EqualNamed reports whether a and b have the same entries in any order.
func EqualNamed(a, b []Named) bool {
	if len(a) != len(b) {
		return false
	}
	values := make(map[string]Attr, len(b))
	for _, n := range b {
		values[n.Name] = n.Value
	}
	for _, n := range a {
		v, ok := values[n.Name]
		if !ok || !EqualAttr(n.Value, v) {
			return false
		}
	}
	return true
}

func orElse(e, otherwise Elem) Elem {
	if e == InvalidElem {
		return otherwise
	}
	return e
}

func equalText(s string, b Attr) bool {
	switch b := b.(type) {
	case Keyword:
		return s == string(b)
	case Str:
		return s == string(b)
	}
	return false
}

func sameTypeText(a, b Type) bool {
	return Equal(a, b) || a != nil && b != nil && a.String() == b.String()
}

func sameFloat(a, b float64) bool { return math.Float64bits(a) == math.Float64bits(b) }

func (d *Dense) equal(e *Dense) bool {
	if d == nil || e == nil {
		return d == e
	}
	if !sameTypeText(d.Type, e.Type) {
		return false
	}
	if d.file != nil || e.file != nil { // what is in a file is not looked at
		return d.file != nil && e.file != nil && *d.file == *e.file
	}
	if d.Splat == e.Splat || d.Type.Elements().IsZero() {
		return d.Type.Elements().IsZero() || d.Elements.equal(&e.Elements)
	}
	one, all := d, e
	if e.Splat {
		one, all = e, d
	}
	for i := range all.Len() {
		if !all.same(i, &one.Elements, 0) {
			return false
		}
	}
	return true
}

func (a *Elements) equal(b *Elements) bool {
	if a.Elem != b.Elem || len(a.data) != len(b.data) {
		return false
	}
	if bytes.Equal(a.data, b.data) {
		return true
	}
	for i := range a.Len() {
		if !a.same(i, b, i) {
			return false
		}
	}
	return true
}
