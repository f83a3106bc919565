package kernel

import (
	"dmir/dialect/op"
)

// Image is the operand B of a convolution as what a window moves over: padded images, of
// which every channel is divided into planes. In those each row of B, the elements that one
// tap of the window meets, is a run of neighbours, so that B is read where it is instead of
// being copied once for each tap.
//
// A plane has lines of Line elements: of the image's lines it has one of several if the
// window moves by several, and of their elements one of Step. The column of an output is
// Line·(its line) + its place in the line; between the outputs of two lines are columns that
// mean nothing.
type Image struct {
	Images   int64 // for each value of z
	Channels int64 // the depth is Channels·len(Taps), taps fastest
	Lines    int64 // of outputs
	Outputs  int64 // of a line
	Line     int64 // elements of a line of a plane
	Step     int64 // of the window along a line
	Planes   int64 // of a channel; the Shared ones that have the same lines follow each other
	Shared   int64
	Taps     []Tap

	t      *Tiled
	stride []int64 // of each spatial dimension
}

// Tap is where the window's tap reads the element of column 0: the plane of a channel, and
// the element of it. Further columns are further elements.
type Tap struct{ Plane, Shift int64 }

// ImageFlat are the variables of an element of an image.
type ImageFlat struct{ Z, Image, Channel, Line, At *Atom }

// mostPlanes bounds the planes of a channel with other lines, which are code of their own.
const mostPlanes = 8

// Image describes B as an image; false where it is none, or has no window.
func (t *Tiled) Image() (*Image, bool) {
	o := t.c.Op
	dims := len(shapeOf(o.Operands[1])) - 2
	if !op.Of(o).Is(op.Windowed) || dims > 2 || t.Products > 1 || t.left != 1 || t.Half {
		return nil, false
	}
	m := &Image{t: t, Images: 1, Channels: 1, Lines: 1, Planes: 1, Shared: 1}
	// The letters of n and k are in the order that columns and depth are numbered in.
	n, k := t.groups["n"], t.groups["k"]
	if len(n) > 0 && n[0].letter == convImage {
		m.Images, n = n[0].size, n[1:]
	}
	if len(k) > 0 && k[0].letter == convIn {
		m.Channels, k = k[0].size, k[1:]
	}
	if !t.ordered(n, convSpace[:dims]) || !t.ordered(k, convWindow[:dims]) || len(k) == 0 || !t.ordered(t.groups["z"], string(convGroup)) {
		return nil, false
	}
	extent := make([]int64, dims) // of a plane
	for d := range dims {
		stride, dilation, _ := steps(o, d, "window_strides", "rhs_dilation")
		taps := t.c.Sizes[convWindow[d]]
		if stride > 1 && dilation > 1 && taps > 1 {
			return nil, false
		}
		m.stride = append(m.stride, stride)
		if m.Step, m.Shared = stride, min(stride, taps); taps == 1 {
			m.Step = 1 // only elements that outputs meet are in the plane
		}
		m.Planes *= m.Shared
		extent[d] = t.c.Sizes[convSpace[d]] + (taps-1)*dilation/stride
	}
	m.Outputs, m.Line = t.c.Sizes[convSpace[dims-1]], extent[dims-1]
	if dims > 1 {
		m.Lines = t.c.Sizes[convSpace[0]]
	}
	if m.Planes/m.Shared > mostPlanes || m.Outputs == 1 {
		return nil, false
	}
	m.Taps = make([]Tap, Product(t.windowSizes()))
	for i := range m.Taps {
		m.Taps[i] = m.tap(int64(i))
	}
	return m, true
}

func (t *Tiled) windowSizes() (sizes []int64) {
	for d := range len(shapeOf(t.c.Op.Operands[1])) - 2 {
		sizes = append(sizes, t.c.Sizes[convWindow[d]])
	}
	return sizes
}

// ordered reports whether a group is the letters of want that have several values, in this
// order.
func (t *Tiled) ordered(group []letterUse, want string) bool {
	var have, wanted []byte
	for _, l := range group {
		have = append(have, l.letter)
	}
	for _, l := range []byte(want) {
		if t.c.Sizes[l] > 1 {
			wanted = append(wanted, l)
		}
	}
	return string(have) == string(wanted)
}

// tap is the i-th tap of the window.
func (m *Image) tap(i int64) (tap Tap) {
	sizes := m.t.windowSizes()
	at := make([]int64, len(sizes))
	for d := len(sizes) - 1; d >= 0; d-- {
		at[d], i = i%sizes[d], i/sizes[d]
	}
	for d, n := range at {
		_, dilation, _ := steps(m.t.c.Op, d, "window_strides", "rhs_dilation")
		phases, line := min(m.stride[d], sizes[d]), int64(1)
		if d < len(at)-1 {
			line = m.Line
		}
		tap.Plane = tap.Plane*phases + n%phases
		tap.Shift += n * dilation / m.stride[d] * line
	}
	return tap
}

// Columns is the columns of an image.
func (m *Image) Columns() int64 { return (m.Lines-1)*m.Line + m.Outputs }

// Element is an element of the image: that at place At of line Line of the planes from the
// given one on, of which each has every Step-th element. Places and lines go on beyond what
// the image has, where B is padding.
func (m *Image) Element(plane int64) (*Expr, ImageFlat) {
	t := m.t
	e := newEvaluator(newSpace(), t.form.Ops)
	of := map[byte]Index{}
	var flat ImageFlat
	loop := func(a **Atom, name string, n int64) Index {
		if n == 1 {
			return Index{}
		}
		*a = e.Loop(name, n)
		return IndexOf(*a)
	}
	for i, x := range e.Unlinear(loop(&flat.Z, "z", t.Batch), t.sizes("z")) {
		of[t.groups["z"][i].letter] = x
	}
	of[convImage] = loop(&flat.Image, "image", m.Images)
	of[convIn] = loop(&flat.Channel, "channel", m.Channels)
	sizes := t.windowSizes()
	last := len(sizes) - 1
	if last > 0 {
		_, dilation, _ := steps(t.c.Op, 0, "window_strides", "rhs_dilation")
		of[convSpace[0]] = loop(&flat.Line, "y", m.Lines+(sizes[0]-1)*dilation/m.stride[0])
		of[convWindow[0]] = Const(plane / m.Shared)
	}
	// The first output's tap moves along the line where outputs are several elements apart.
	along := convSpace[last]
	if m.Step > 1 {
		along = convWindow[last]
	}
	of[along] = loop(&flat.At, "x", m.Line*m.Step)
	return t.c.operand(e, 0, of), flat
}
