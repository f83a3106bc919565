package onnx

import (
	"math"
	"slices"

	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// Windows put back into images, boxes of images, and spectra.

func init() {
	register(map[string]conversion{
		"BitCast": func(n *node) []*ir.Value {
			a := n.attr("to")
			if a == nil {
				fail("no type")
			}
			return one(n.make("bitcast", one(n.in(0)), nil, tensorOf(elemOf("", a.i), n.shape(n.in(0)))))
		},
		"Col2Im": convertCol2Im, "DFT": convertDFT, "MaxRoiPool": convertMaxRoiPool, "MaxUnpool": convertMaxUnpool,
		"MelWeightMatrix": convertMelWeightMatrix, "STFT": convertSTFT,
	})
}

// convertMaxUnpool puts each element at the place of its image that an index names.
func convertMaxUnpool(n *node) []*ir.Value {
	x, at := n.in(0), n.in(1)
	s := n.shape(x)
	w := n.window(x, nil)
	full := slices.Clone(s[:2])
	for i, d := range s[2:] {
		full = append(full, (d-1)*w.stride[i]+w.size[i]-w.low[i]-w.high[i])
	}
	if !slices.Equal(n.shape(at), s) || slices.Min(full) < 1 {
		fail("indices of shape %v for %v, which becomes %v", n.shape(at), s, full)
	}
	zeros := n.splat(x.Elem(), 0, product(full))
	v := n.make("scatter", []*ir.Value{zeros, n.reshape(at, product(s)), n.reshape(x, product(s))}, named("kind", "set", "dim", 0))
	v = n.reshape(v, full...)
	if n.opt(2) == nil {
		return one(v)
	}
	want, high := n.target(2), make([]int, len(s))
	if len(want) != len(full) {
		fail("the shape %v for %v", want, full)
	}
	for i := range want {
		if high[i] = want[i] - full[i]; high[i] < 0 {
			fail("the shape %v for %v", want, full)
		}
	}
	return one(n.pad(v, n.scalar(x.Elem(), 0), make([]int, len(s)), high))
}

// convertCol2Im adds up columns, each a block of the image around one place.
func convertCol2Im(n *node) []*ir.Value {
	x, image, block := n.in(0), n.target(1), n.target(2)
	rank, s := len(image), n.shape(x)
	list := func(name string, otherwise, length int) []int {
		v := n.ints(name)
		if v == nil {
			v = slices.Repeat([]int{otherwise}, length)
		}
		if len(v) != length {
			fail("%s has %d entries, not %d", name, len(v), length)
		}
		return v
	}
	dilations, strides, pads := list("dilations", 1, rank), list("strides", 1, rank), list("pads", 0, 2*rank)
	canvas, counts := make([]int, rank), make([]int, rank)
	if len(block) != rank || len(s) != 3 {
		fail("columns of shape %v in blocks of %v for an image of %v", s, block, image)
	}
	for i := range canvas {
		canvas[i] = image[i] + pads[i] + pads[rank+i]
		if counts[i] = (canvas[i]-dilations[i]*(block[i]-1)-1)/strides[i] + 1; counts[i] < 1 {
			fail("an image of %v has no block of %v", image, block)
		}
	}
	taken := product(block)
	if taken == 0 || s[1]%taken != 0 || s[2] != product(counts) || taken*s[2] > maxCounted {
		fail("columns of shape %v in blocks of %v for an image of %v", s, block, image)
	}
	var at []int
	for k := range taken {
		for p := range s[2] {
			place, stride, a, b := 0, 1, k, p
			for i := rank - 1; i >= 0; i-- {
				place += (a%block[i]*dilations[i] + b%counts[i]*strides[i]) * stride
				a, b, stride = a/block[i], b/counts[i], stride*canvas[i]
			}
			at = append(at, place)
		}
	}
	c := s[1] / taken
	v := n.transpose(n.reshape(x, s[0]*c, taken*s[2]), 1, 0)
	v = n.make("scatter", []*ir.Value{n.splat(x.Elem(), 0, product(canvas), s[0]*c), n.numbers(at...), v}, named("kind", "add", "dim", 0))
	v = n.reshape(n.transpose(v, 1, 0), append([]int{s[0], c}, canvas...)...)
	start, limit := []int{0, 0}, []int{s[0], c}
	for i := range image {
		start, limit = append(start, pads[i]), append(limit, pads[i]+image[i])
	}
	return one(n.slice(v, start, limit, nil))
}

// convertMaxRoiPool is the largest element of each part of each of some boxes.
func convertMaxRoiPool(n *node) []*ir.Value {
	x, rois := n.in(0), n.in(1)
	s, r, out := n.shape(x), n.shape(rois), n.ints("pooled_shape")
	if len(s) != 4 || len(r) != 2 || r[1] != 5 || len(out) != 2 || out[0] < 1 || out[1] < 1 {
		fail("boxes of shape %v for %v", r, s)
	}
	w, scale := n.wide(rois), n.float("spatial_scale", 1)
	e := w.Elem()
	corner := func(i int) *ir.Value { return n.unary("round_half_away", n.with("mul", n.part(w, 1, i, i+1), scale)) }
	v := n.gather(x, n.reshape(n.convertTo(n.part(w, 1, 0, 1), types.I64), r[0]), 0)
	least := n.scalar(x.Elem(), math.Inf(-1))
	var seen [2]*ir.Value // [boxes, parts, elements] of each dimension
	for d := range 2 {
		size := s[2+d]
		first := corner(2 - d)
		length := n.with("max", n.with("add", n.binary("sub", corner(4-d), first), 1), 1)
		each := n.with("div", length, float64(out[d]))
		bound := func(round string, more float64) *ir.Value {
			part := n.with("add", n.iota(e, 1, 1, out[d]), more)
			v := n.binary("add", n.unary(round, n.binary("mul", each, part)), first)
			return n.reshape(v, r[0], out[d], 1)
		}
		place := n.iota(e, 0, size)
		seen[d] = n.binary("and", n.compare("le", bound("floor", 0), place), n.compare("gt", bound("ceil", 1), place))
	}
	column := n.reshape(seen[1], r[0], 1, 1, out[1], s[3])
	v = n.reduce("max", n.choose(column, n.reshape(v, r[0], s[1], s[2], 1, s[3]), least), []int{4}, false)
	v = n.transpose(v, 0, 1, 3, 2) // [boxes, channels, columns, height]
	row := n.reshape(seen[0], r[0], 1, out[0], 1, s[2])
	v = n.reduce("max", n.choose(row, n.reshape(v, r[0], s[1], 1, out[1], s[2]), least), []int{4}, false)
	return one(n.choose(n.compare("eq", v, least), n.scalar(x.Elem(), 0), v))
}

// transform is the discrete Fourier transform of dimension d of x, whose last dimension is
// one or two numbers, with as many elements as size.
func (n *node) transform(x *ir.Value, d, size int, inverse, onesided bool) *ir.Value {
	s := n.shape(x)
	last := len(s) - 1
	if size < 1 || d >= last || s[last] < 1 || s[last] > 2 || size*size > maxCounted {
		unsupported("a transform of %d elements of %v", size, s)
	}
	if have := s[d]; have < size {
		high := make([]int, len(s))
		high[d] = size - have
		x = n.pad(x, n.scalar(x.Elem(), 0), make([]int, len(s)), high)
	} else {
		x = n.part(x, d, 0, size)
	}
	count := size
	if onesided {
		count = size/2 + 1
		if inverse {
			unsupported("an inverse transform of one side")
		}
	}
	e := n.wide(x).Elem()
	cos, sin := make([]float64, count*size), make([]float64, count*size)
	scale, sign := 1.0, -1.0
	if inverse {
		scale, sign = 1/float64(size), 1
	}
	for k := range count {
		for i := range size {
			y, c := math.Sincos(2 * math.Pi * float64(k*i%size) / float64(size))
			cos[k*size+i], sin[k*size+i] = c*scale, sign*y*scale
		}
	}
	table := func(vs []float64) *ir.Value { return n.convertTo(n.floats(vs, count, size), e) }
	c, i := table(cos), table(sin)
	parts := func(k int) *ir.Value { return n.convertTo(n.part(x, last, k, k+1), e) }
	along := func(v, w *ir.Value) *ir.Value {
		t := n.shape(v)
		y := n.make("einsum", []*ir.Value{w, n.reshape(v, product(t[:d]), size, product(t[d+1:]))}, named("equation", types.Attr(types.Str("oi,aib->aob"))))
		t[d] = count
		return n.reshape(y, t...)
	}
	re, im := along(parts(0), c), along(parts(0), i)
	if s[last] == 2 {
		re = n.binary("sub", re, along(parts(1), i))
		im = n.binary("add", im, along(parts(1), c))
	}
	return n.convertTo(n.concatenate(last, re, im), x.Elem())
}

func convertDFT(n *node) []*ir.Value {
	x := n.in(0)
	rank := n.rank(x)
	at := n.int("axis", 1)
	if n.opset >= 20 {
		at = -2
		if d := n.value(2); d != nil && d.Len() == 1 {
			at = int(d.Int(0))
		}
	}
	d := axis(at, rank)
	size := n.shape(x)[d]
	if l := n.value(1); l != nil && l.Len() == 1 {
		size = int(l.Int(0))
	}
	return one(n.transform(x, d, size, n.int("inverse", 0) != 0, n.int("onesided", 0) != 0))
}

// convertSTFT transforms parts of a signal [batch, length, 1 or 2], one after the other.
func convertSTFT(n *node) []*ir.Value {
	x := n.in(0)
	s := n.shape(x)
	step := n.value(1)
	if len(s) == 2 {
		x, s = n.reshape(x, s[0], s[1], 1), append(s, 1)
	}
	window := n.opt(2)
	size := 0
	if l := n.value(3); l != nil && l.Len() == 1 {
		size = int(l.Int(0))
	} else if window != nil {
		size = n.shape(window)[0]
	}
	if len(s) != 3 || step == nil || step.Len() != 1 || step.Int(0) < 1 || size < 1 || size > s[1] || window != nil && product(n.shape(window)) != size {
		fail("frames of %d elements of %v", size, s)
	}
	by := int(step.Int(0))
	frames := (s[1]-size)/by + 1
	if frames*size > maxCounted {
		unsupported("%d frames of %d elements", frames, size)
	}
	places := n.binary("add", n.with("mul", n.iota(types.I64, 0, frames, 1), float64(by)), n.iota(types.I64, 0, size))
	v := n.gather(x, places, 1) // [batch, frames, size, 1 or 2]
	if window != nil {
		v = n.binary("mul", v, n.reshape(window, size, 1))
	}
	return one(n.transform(v, 2, size, false, n.int("onesided", 1) != 0))
}

// convertMelWeightMatrix are triangles over the bins of a spectrum whose corners lie evenly
// on the mel scale.
func convertMelWeightMatrix(n *node) []*ir.Value {
	var in [5]float64
	for i := range in {
		d := n.value(i)
		if d == nil || d.Len() != 1 {
			fail("input %d is no number", i)
		}
		in[i] = first(d)
	}
	bands, size, rate, low, high := int(in[0]), int(in[1]), in[2], in[3], in[4]
	bins := size/2 + 1
	if bands < 1 || size < 1 || bands > maxCounted || bins > maxCounted/bands {
		fail("%d bands of %d elements", bands, size)
	}
	mel := func(f float64) float64 { return 2595 * math.Log10(1+f/700) }
	from, to := mel(low), mel(high)
	step := (to - from) / float64(bands+2)
	corners := make([]int, bands+2)
	for i := range corners {
		f := 700 * (math.Pow(10, (from+float64(i)*step)/2595) - 1)
		corners[i] = int(math.Floor(float64(size+1) * f / rate))
	}
	out := make([]float64, bins*bands)
	for b := range bands {
		l, c, r := corners[b], corners[b+1], corners[b+2]
		set := func(i int, v float64) {
			if i >= 0 && i < bins {
				out[i*bands+b] = v
			}
		}
		if c == l {
			set(c, 1)
		} else {
			for i := l; i <= c; i++ {
				set(i, float64(i-l)/float64(c-l))
			}
		}
		if r > c {
			for i := c; i < r; i++ {
				set(i, float64(r-i)/float64(r-c))
			}
		}
	}
	return one(n.convertTo(n.floats(out, bins, bands), elemOf("", int64(n.int("output_datatype", 1)))))
}
