// Package sparse is the data of sparse tensors in host memory: elements with their
// coordinates (COO), the components in which a format stores them (Tensor), what is
// wrong with components that are given, patterns that are drawn, and files. Time and
// memory are proportional to what is stored.
package sparse

import (
	"fmt"
	"math"
	"slices"

	"dmir/compile/tensor"
	"dmir/dialect/dim"
	"dmir/dialect/types"
)

// COO is the elements of a tensor with their coordinates, in any order. The others are 0.
type COO struct {
	Shape  []int
	At     [][]int64      // by dimension, the coordinate of each element
	Values *tensor.Tensor // [elements]
}

// Len is the number of elements.
func (c *COO) Len() int { return c.Values.Len() }

// Place is the coordinates of element k as text: (3, 5).
func (c *COO) Place(k int) string {
	at := make([]int64, len(c.At))
	for d := range at {
		at[d] = c.At[d][k]
	}
	return Place(at)
}

// Place is coordinates as text: (3, 5).
func Place(at []int64) string {
	s := "("
	for i, x := range at {
		if i > 0 {
			s += ", "
		}
		s += fmt.Sprint(x)
	}
	return s + ")"
}

// Tensor is a sparse tensor as its format stores it.
type Tensor struct {
	Type  *types.Tensor    // its sizes are numbers
	Parts []*tensor.Tensor // as Type.Components
}

// Held is t's type with room for as many entries as its components have; nil where these are none of
// it, or a dimension is no number.
func (t *Tensor) Held() *types.Tensor {
	cs := t.Type.Components()
	shape, ok := Numbers(t.Type.Shape)
	if len(t.Parts) != len(cs) || !ok {
		return nil
	}
	var stored []int64
	for i, c := range cs {
		if c.Kind == types.Coordinates && t.Type.Format.Levels[c.Level].HasPositions() {
			stored = append(stored, int64(t.Parts[i].Len()))
		}
	}
	sizes := make([]int, len(shape))
	for d, n := range shape {
		sizes[d] = int(n)
	}
	return Shaped(t.Type, sizes, stored)
}

// Values are the elements that are stored, and behind them padding.
func (t *Tensor) Values() *tensor.Tensor { return t.Parts[len(t.Parts)-1] }

// Error is what keeps a tensor from being stored, or what is wrong with its components.
type Error struct {
	Part     string // the component and the entry, "coordinates[7]"; "" where it is about none
	Element  int    // of a COO, -1 where it is about none
	Other    int    // another element of the COO that it is about, -1: none
	Msg      string // what follows Part, or stands alone
	Help     string
	Capacity bool // the type has no room for what is stored
}

func (e *Error) Error() string {
	if e.Part != "" {
		return e.Part + " " + e.Msg
	}
	return e.Msg
}

func problem(help, format string, args ...any) *Error {
	return &Error{Element: -1, Other: -1, Msg: fmt.Sprintf(format, args...), Help: help}
}

// Shaped is t with the shape given and, for each compressed level, room for as many entries as
// stored says.
func Shaped(t *types.Tensor, shape []int, stored []int64) *types.Tensor {
	r, f := *t, *t.Format
	r.Shape, f.Stored = make([]dim.Dim, len(shape)), make([]dim.Dim, len(stored))
	for i, n := range shape {
		r.Shape[i] = dim.Const(int64(n))
	}
	for i, n := range stored {
		f.Stored[i] = dim.Const(n)
	}
	r.Format = &f
	return &r
}

// Numbers are sizes; ok is false where one of them is no number.
func Numbers(ds []dim.Dim) (ns []int64, ok bool) {
	ns, ok = make([]int64, len(ds)), true
	for i, d := range ds {
		n, is := d.Int()
		ns[i], ok = n, ok && is && n >= 0
	}
	return ns, ok
}

// layout is the levels of a format for tensors of one shape.
type layout struct {
	t      *types.Tensor
	levels []types.Level
	size   []int64 // how many coordinates there are along each
}

// layoutOf is the layout of t, whose shape is of numbers.
func layoutOf(t *types.Tensor) (*layout, *Error) {
	l := &layout{t: t, levels: t.Format.Levels}
	for i, level := range l.levels {
		whole, known := t.Shape[level.Dim].Int()
		switch {
		case !known || whole < 0:
			return nil, problem("bind it", "the size %s of %s is no number", t.Shape[level.Dim], t)
		case level.Div > 0 && whole%level.Div != 0:
			return nil, problem("bind a multiple, or store smaller blocks", "blocks of %d do not divide dimension %d, which is %d", level.Div, level.Dim, whole)
		}
		n, _ := level.Size(t.Shape).Int()
		if level.Kind == types.StructuredLevel && n%level.M != 0 {
			return nil, problem("bind a multiple of "+fmt.Sprint(level.M), "level %d stores %d of each %d, which do not divide its size %d", i, level.N, level.M, n)
		}
		l.size = append(l.size, n)
	}
	return l, nil
}

// chain is the last of the levels that store, with level i, one coordinate each of the same entries.
func (l *layout) chain(i int) int {
	for i+1 < len(l.levels) && l.levels[i+1].Kind == types.SingletonLevel {
		i++
	}
	return i
}

// along is the coordinate along a level of an element whose coordinate along the dimension is x.
func along(l types.Level, x int64) int64 {
	switch {
	case l.Div > 0:
		return x / l.Div
	case l.Mod > 0:
		return x % l.Mod
	}
	return x
}

// part is the number and the name of the component of level i of that kind; -1 where it has none.
func (l *layout) part(i int, kind types.ComponentKind) (n int, name string) {
	if n = l.t.Component(i, kind); n >= 0 {
		name = l.t.Components()[n].Name
	}
	return n, name
}

// counts are how many entries each level of t has, without padding.
func (t *Tensor) counts(l *layout) []int64 {
	out := make([]int64, len(l.levels))
	n := int64(1)
	for i, level := range l.levels {
		switch level.Kind {
		case types.DenseLevel:
			n *= l.size[i]
		case types.StructuredLevel:
			n *= l.size[i] / level.M * level.N
		case types.CompressedLevel, types.LooseCompressedLevel:
			at, _ := l.part(i, types.Positions)
			p := t.Parts[at].Int
			n = p[len(p)-1]
		}
		out[i] = n
	}
	return out
}

// Stored is how many elements t stores; its components must be right (Check).
func (t *Tensor) Stored() int64 {
	l, err := layoutOf(t.Type)
	if err != nil {
		return 0
	}
	n := t.counts(l)
	return n[len(n)-1]
}

// largest is the largest number that an index of type e holds.
func largest(e types.Elem) int64 {
	switch e {
	case types.UI8:
		return math.MaxUint8
	case types.UI16:
		return math.MaxUint16
	case types.I32:
		return math.MaxInt32
	}
	return math.MaxInt64
}

// vector is a tensor of integers, which are its storage.
func vector(e types.Elem, x []int64) *tensor.Tensor {
	return &tensor.Tensor{Elem: e, Shape: []int{len(x)}, Int: x}
}

// Dense is c as a dense tensor.
func (c *COO) Dense() (*tensor.Tensor, *Error) {
	if _, ok := tensor.Count(c.Shape); !ok {
		return nil, problem("give a sparse argument", "a dense tensor of its shape does not fit into memory")
	}
	if err := c.inside(); err != nil {
		return nil, err
	}
	if err := c.distinct(); err != nil {
		return nil, err
	}
	t := tensor.New(c.Values.Elem, c.Shape...)
	strides := tensor.Strides(c.Shape)
	for k := range c.Len() {
		to := 0
		for d, s := range strides {
			to += int(c.At[d][k]) * s
		}
		move(t, to, c.Values, k)
	}
	return t, nil
}

// OfDense is the elements of x that are not 0.
func OfDense(x *tensor.Tensor) *COO {
	c := &COO{Shape: x.Shape, At: make([][]int64, len(x.Shape))}
	var kept []int
	for i := range x.Len() {
		if x.Float(i) != 0 {
			kept = append(kept, i)
		}
	}
	for d, s := range tensor.Strides(x.Shape) {
		c.At[d] = make([]int64, len(kept))
		for k, i := range kept {
			c.At[d][k] = int64(i / s % x.Shape[d])
		}
	}
	c.Values = Take(x, kept)
	return c
}

// Take are the elements of x given by their numbers.
func Take(x *tensor.Tensor, at []int) *tensor.Tensor {
	out := tensor.New(x.Elem, len(at))
	for k, i := range at {
		move(out, k, x, i)
	}
	return out
}

// move copies element j of from, which has the same element type, to element i.
func move(to *tensor.Tensor, i int, from *tensor.Tensor, j int) {
	switch to.Kind() {
	case tensor.KindF32:
		to.F32[i] = from.F32[j]
	case tensor.KindF64:
		to.F64[i] = from.F64[j]
	case tensor.KindInt:
		to.Int[i] = from.Int[j]
	case tensor.KindBool:
		to.Bool[i] = from.Bool[j]
	}
}

// inside is an error where an element is outside of the shape.
func (c *COO) inside() *Error {
	for d, at := range c.At {
		for k, x := range at {
			if x < 0 || x >= int64(c.Shape[d]) {
				e := problem("coordinates count from 0", "%s is outside of the shape %v", c.Place(k), c.Shape)
				e.Element = k
				return e
			}
		}
	}
	return nil
}

// distinct is an error where two elements have the same coordinates.
func (c *COO) distinct() *Error {
	p := ordered(c.At, c.Shape)
	for k := 1; k < c.Len(); k++ {
		i, j := k-1, k
		if p != nil {
			i, j = p[k-1], p[k]
		}
		if !slices.ContainsFunc(c.At, func(at []int64) bool { return at[i] != at[j] }) {
			return c.twice(i, j)
		}
	}
	return nil
}

func (c *COO) twice(i, j int) *Error {
	e := problem("add them up, and write one", "%s is there twice", c.Place(i))
	e.Element, e.Other = max(i, j), min(i, j)
	return e
}
