package op

import (
	"cmp"
	"slices"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
)

// maxTaps is the size of a window up to which it is looked at tap by tap.
const maxTaps = 1 << 12

// touched is how many elements of dimension i, of n, the window reads: a stride
// beyond the window leaves gaps, and so may a dilation or a rest at the end.
// Dimensions of open size, those with zeros between elements and very large windows
// count whole.
func (w *window) touched(i int, n dim.Dim) dim.Dim {
	size, stride, dilation, low := w.Size[i], w.Stride[i], w.Dilation[i], w.Padding[i][0]
	in, ok := n.Int()
	out, known := w.Out[i].Int()
	if !ok || !known || size > maxTaps || out == 0 || w.spread(i) > 1 {
		return n
	}
	// Tap j of place p reads element (p + j·dilation / stride)·stride + rest - low,
	// so that the taps of one rest read stretches of every stride'th element.
	type stretch struct{ rest, from, to int64 }
	var all []stretch
	for j := range size {
		s := stretch{rest: j * dilation % stride, from: j * dilation / stride}
		s.to = min(s.from+out, (in-1+low-s.rest)/stride+1)
		if first := low - s.rest; first > 0 {
			s.from = max(s.from, (first+stride-1)/stride)
		}
		if in-1+low-s.rest >= 0 && s.from < s.to {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b stretch) int { return cmp.Or(cmp.Compare(a.rest, b.rest), cmp.Compare(a.from, b.from)) })
	var count, end int64
	for k, s := range all {
		if k == 0 || all[k-1].rest != s.rest {
			end = s.from
		}
		if s.to > end {
			count += s.to - max(s.from, end)
			end = s.to
		}
	}
	return dim.Const(count)
}

// windowTraffic is what an op moves whose window w slides over the last dimensions
// of operand 0.
func windowTraffic(o *ir.Op, w *window, p *Problem) (read []dim.Dim, written dim.Dim) {
	read, written = wholeTraffic(o)
	if p != nil || len(read) == 0 {
		return read, written
	}
	x := in(o, 0)
	first := x.Rank() - len(w.Size)
	elements := dim.Prod(x.Shape[:first]...)
	for i := range w.Size {
		elements = elements.Mul(w.touched(i, x.Shape[first+i]))
	}
	read[0] = elements.Scale(x.Elem.Bytes())
	return read, written
}
