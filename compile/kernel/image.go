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

	t    *Tiled
	axes []imageAxis // of each spatial dimension
}

// imageAxis is a spatial dimension of an image: the taps of the window along it, how far
// these and the outputs are apart, and the elements of a plane.
type imageAxis struct{ taps, stride, dilation, extent int64 }

// planes is how many planes divide what the taps along the axis read.
func (a imageAxis) planes() int64 { return min(a.stride, a.taps) }

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
	m := &Image{t: t, Images: 1, Channels: 1, Outputs: 1, Planes: 1}
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
	m.Taps = []Tap{{}}
	for d := range dims {
		stride, dilation, _ := steps(o, d, "window_strides", "rhs_dilation")
		outputs, taps := t.c.Sizes[convSpace[d]], t.c.Sizes[convWindow[d]]
		if stride > 1 && dilation > 1 && taps > 1 {
			return nil, false
		}
		a := imageAxis{taps, stride, dilation, outputs + (taps-1)*dilation/stride}
		m.axes = append(m.axes, a)
		m.Lines, m.Outputs = m.Outputs, outputs
		m.Line, m.Shared, m.Step = a.extent, a.planes(), stride
		if taps == 1 {
			m.Step = 1 // only elements that outputs meet are in the plane
		}
		m.Planes *= a.planes()
		m.Taps = a.each(m.Taps)
	}
	if m.Planes/m.Shared > mostPlanes || m.Outputs == 1 {
		return nil, false
	}
	return m, true
}

// each is the taps along the axis for each of those along the axes before.
func (a imageAxis) each(before []Tap) (all []Tap) {
	for _, t := range before {
		for n := range a.taps {
			all = append(all, Tap{t.Plane*a.planes() + n%a.planes(), t.Shift*a.extent + n*a.dilation/a.stride})
		}
	}
	return all
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
	last := len(m.axes) - 1
	if last > 0 {
		of[convSpace[0]] = loop(&flat.Line, "y", m.axes[0].extent)
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
