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
// Dimensions of open size and very large windows count whole.
func (w *window) touched(i int, n dim.Dim) dim.Dim {
	size := w.Size[i]
	in, ok := n.Int()
	out, known := w.Out[i].Int()
	spread := w.spread(i)
	every := GCD(w.Stride[i], spread)
	period := spread / every
	if !ok || !known || size > maxTaps || period > maxTaps/size || out == 0 {
		return n
	}
	var all []stretch // which overlap where the rests are the same
	for j := range size {
		all = append(all, w.stretches(i, j, in, out)...)
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

// stretch is the elements rest, rest + step, … of a dimension, counted from number from to before number to.
type stretch struct{ rest, from, to int64 }

// stretches are the elements of dimension i, of in, that tap j is at, for out places of the window: of these every period'th is
// at one, and the elements are step apart.
func (w *window) stretches(i int, j, in, out int64) (all []stretch) {
	stride, spread := w.Stride[i], w.spread(i)
	every := GCD(stride, spread)
	step, period := stride/every, spread/every
	for p := range min(period, out) {
		at := p*stride + j*w.Dilation[i] - w.Padding[i][0]
		if at%spread != 0 {
			continue
		}
		rest := (at/spread%step + step) % step
		from := (at/spread - rest) / step
		s := stretch{rest, max(from, 0), min(from+(out-1-p)/period+1, (in-1-rest)/step+1)}
		if rest < in && s.from < s.to {
			all = append(all, s)
		}
	}
	return all
}

// TapsMeet reports whether each tap of the window of o, a convolution of known sizes, is at an element of the image at some
// place. One that is not meets padding alone, or zeros between elements.
func TapsMeet(o *ir.Op) bool {
	w, p := convolutionWindow(o)
	if p != nil {
		return false
	}
	for i, size := range w.Size {
		n, ok := in(o, 0).Shape[2+i].Int()
		out, known := w.Out[i].Int()
		if !ok || !known {
			return false
		}
		for j := range size {
			if len(w.stretches(i, j, n, out)) == 0 {
				return false
			}
		}
	}
	return true
}

// GCD is the greatest common divisor of a and b.
func GCD(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
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
	read[0] = x.Elem.Size(elements)
	return read, written
}
