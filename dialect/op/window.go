package op

import (
	"dmir/dialect/dim"
	"dmir/dialect/ir"
)

// window is how a window moves over the spatial dimensions of a convolution or
// over all dimensions of a reduce_window; every list has one entry for each.
type window struct {
	Size, Stride, Dilation []int64
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
	return windowOf(o, in(o, 0).Shape[2:], size, "window_strides", "rhs_dilation")
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
		if n, ok := free.Int(); (ok && n < 0) || size[i] < 1 {
			return nil, problem("DM116", 0, "a window of extent %s does not fit dimension %d of %s, padded to %s", reach, i+in(o, 0).Rank()-len(shape), shapeText(in(o, 0).Shape), dimText(padded)).
				help("pad more or take a smaller window")
		}
		w.Out[i] = strided(free, w.Stride[i]).Add(dim.Const(1))
	}
	return w, nil
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
