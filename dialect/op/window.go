package op

import (
	"dmir/dialect/dim"
	"dmir/dialect/ir"
)

// WindowProducts is the most elements of a window, or products of a convolution's output, that a kernel's threads
// add up in code without a loop.
const WindowProducts = 64

// window is how a window moves over the spatial dimensions of a convolution or
// over all dimensions of a reduce_window; every list has one entry for each.
type window struct {
	Size, Stride, Dilation []int64
	Spread                 []int64 // distance of the elements that it moves over; nil: 1
	Padding                [][2]int64
	Out                    []dim.Dim // sizes of the result
}

// convolutionWindow is the window of a dm.convolution over dimensions 2 and up.
func convolutionWindow(o *ir.Op) (*window, *Problem) {
	var size []int64
	for i, d := range in(o, 1).Shape {
		n, ok := d.Int()
		if i < 2 {
			continue
		}
		if !ok {
			return nil, problem("DM116", 1, "the filter's window %s is not known in numbers", shapeText(in(o, 1).Shape[2:])).
				help("bind its symbols, or write numbers")
		}
		size = append(size, n)
	}
	shape := append([]dim.Dim{}, in(o, 0).Shape[2:]...)
	spread, p := listOf(o, "lhs_dilation", len(shape), 1, 1)
	if p != nil {
		return nil, p
	}
	for i, d := range shape {
		if n, ok := d.Int(); !ok || n > 0 {
			shape[i] = d.Sub(dim.Const(1)).Scale(spread[i]).Add(dim.Const(1))
		}
	}
	w, p := windowOf(o, shape, size, "window_strides", "rhs_dilation")
	if w != nil {
		w.Spread = spread
	}
	return w, p
}

// reduceWindow is the window of a dm.reduce_window over all dimensions.
func reduceWindow(o *ir.Op) (*window, *Problem) {
	shape := in(o, 0).Shape
	size, p := listOf(o, "window_dimensions", len(shape), 1, 1)
	if p != nil {
		return nil, p
	}
	return windowOf(o, shape, size, "window_strides", "window_dilations")
}

func windowOf(o *ir.Op, shape []dim.Dim, size []int64, strides, dilations string) (*window, *Problem) {
	w := &window{Size: size, Out: make([]dim.Dim, len(shape))}
	var p *Problem
	if w.Stride, p = listOf(o, strides, len(shape), 1, 1); p != nil {
		return nil, p
	}
	if w.Dilation, p = listOf(o, dilations, len(shape), 1, 1); p != nil {
		return nil, p
	}
	if w.Padding, p = pairsOf(o, "padding", len(shape)); p != nil {
		return nil, p
	}
	for i, d := range shape {
		reach := dim.Const(w.Size[i] - 1).Scale(w.Dilation[i]).Add(dim.Const(1))
		padded := dim.Sum(d, dim.Const(w.Padding[i][0]), dim.Const(w.Padding[i][1]))
		free := padded.Sub(reach)
		if n, ok := free.Int(); ok && n < 0 && d.IsZero() && w.Size[i] > 0 { // without elements there are no windows
			w.Out[i] = dim.Dim{}
			continue
		}
		if n, ok := free.Int(); (ok && n < 0) || size[i] < 1 {
			return nil, problem("DM116", 0, "a window of extent %s does not fit dimension %d of %s, padded to %s", reach, i+in(o, 0).Rank()-len(shape), shapeText(in(o, 0).Shape), dimText(padded)).
				help("pad more or take a smaller window")
		}
		w.Out[i] = strided(free, w.Stride[i]).Add(dim.Const(1))
	}
	return w, nil
}

// spread is the distance of the elements of dimension i.
func (w *window) spread(i int) int64 {
	if w.Spread == nil {
		return 1
	}
	return w.Spread[i]
}

// products is how many pairs of a place and a tap dimension i has, but for those at
// the zeros between elements; for places of open number about as many.
func (w *window) products(i int) dim.Dim {
	spread, stride := w.spread(i), w.Stride[i]
	out, known := w.Out[i].Int()
	switch all := w.Out[i].Scale(w.Size[i]); {
	case spread == 1:
		return all
	case !known || spread > maxTaps || w.Size[i] > maxTaps/spread:
		return dim.Quotient(all, spread)
	}
	// Place p and tap q are at an element, or in the padding, where p·stride + q·dilation
	// is low modulo spread, which recurs with p.
	var count int64
	for p := range min(out, spread) {
		places := (out-1-p)/spread + 1
		for q := range w.Size[i] {
			if (p*stride+q*w.Dilation[i]-w.Padding[i][0])%spread == 0 {
				count += places
			}
		}
	}
	return dim.Const(count)
}

// strided is free / stride rounded down; where that is no formula the size is
// unknown until its symbols are bound.
func strided(free dim.Dim, stride int64) dim.Dim {
	if n, ok := free.Int(); ok {
		return dim.Const(n / stride)
	}
	if q, ok := free.Div(dim.Const(stride)); ok {
		return q
	}
	return dim.Unnamed("(" + free.String() + ")/" + dim.Const(stride).String())
}
