package onnx

import (
	"slices"

	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// Ops that read images between their elements, at places that other tensors give.

func init() {
	register(map[string]conversion{
		"AffineGrid": convertAffineGrid, "DeformConv": convertDeformConv, "GridSample": convertGridSample, "RoiAlign": convertRoiAlign,
	})
}

// tap is an element along a dimension for each of some places, and its weight.
type tap struct{ at, weight *ir.Value }

// sampled are, of x [batch, elements, channels] whose elements have the sizes of space, the
// weighted sums of the elements that taps name in each dimension, [batch, places, channels].
// combine joins the terms.
func (n *node) sampled(x *ir.Value, space []int, taps [][]tap, combine string) *ir.Value {
	var sum *ir.Value
	pos := make([]int, len(taps))
	for {
		var at, weight *ir.Value
		for d, p := range pos {
			t := taps[d][p]
			if at == nil {
				at, weight = t.at, t.weight
				continue
			}
			at = n.binary("add", n.with("mul", at, float64(space[d])), t.at)
			weight = n.binary("mul", weight, t.weight)
		}
		s := n.shape(at)
		v := n.make("gather", []*ir.Value{x, at}, named("dim", 1, "batch_dims", 1))
		v = n.binary("mul", v, n.reshape(weight, s[0], s[1], 1))
		if sum == nil {
			sum = v
		} else {
			sum = n.binary(combine, sum, v)
		}
		d := len(pos) - 1
		for ; d >= 0; d-- {
			if pos[d]++; pos[d] < len(taps[d]) {
				break
			}
			pos[d] = 0
		}
		if d < 0 {
			return sum
		}
	}
}

// channelsLast is [N, C, …] as [N, elements, C].
func (n *node) channelsLast(x *ir.Value) *ir.Value {
	s := n.shape(x)
	return n.transpose(n.reshape(x, s[0], s[1], product(s[2:])), 0, 2, 1)
}

// inside are the elements of a dimension of a size at whole places x, as indices, with the
// weight w; of weight 0 where there are none.
func (n *node) inside(x, w *ir.Value, size int) tap {
	e := x.Elem()
	in := n.binary("and", n.compare("ge", x, n.scalar(e, 0)), n.compare("le", x, n.scalar(e, float64(size-1))))
	return tap{n.clamped(x, size), n.choose(in, w, n.scalar(e, 0))}
}

// clamped are the indices in a dimension of a size that are the nearest to whole places x.
func (n *node) clamped(x *ir.Value, size int) *ir.Value {
	e := x.Elem()
	return n.convertTo(n.make("clamp", []*ir.Value{n.scalar(e, 0), x, n.scalar(e, float64(size-1))}, nil), types.I64)
}

// mirror reflects x at low and high until it is between them.
func (n *node) mirror(x *ir.Value, low, high float64) *ir.Value {
	span := high - low
	if span <= 0 {
		return n.binary("mul", x, n.scalar(x.Elem(), 0))
	}
	t := n.unary("abs", n.with("sub", x, low))
	turns := n.unary("floor", n.with("div", t, span))
	rest := n.binary("sub", t, n.with("mul", turns, span))
	odd := n.compare("ne", n.with("mul", n.unary("floor", n.with("mul", turns, 0.5)), 2), turns)
	return n.with("add", n.choose(odd, n.binary("sub", n.scalar(x.Elem(), span), rest), rest), low)
}

// convertGridSample reads x [N, C, …] at the places of a grid from -1 to 1, which names
// the last dimension first.
func convertGridSample(n *node) []*ir.Value {
	x, grid := n.in(0), n.in(1)
	s, g := n.shape(x), n.shape(grid)
	rank := len(s) - 2
	if rank < 1 || len(g) != len(s) || g[len(g)-1] != rank || g[0] != s[0] || product(s[2:]) == 0 {
		fail("a grid of shape %v for %v", g, s)
	}
	mode, padding, aligned := n.str("mode", "linear"), n.str("padding_mode", "zeros"), n.int("align_corners", 0) != 0
	places := product(g[1 : len(g)-1])
	w := n.wide(grid)
	e := w.Elem()
	taps := make([][]tap, rank)
	for d, size := range s[2:] {
		at := n.reshape(n.part(w, rank+1, rank-1-d, rank-d), s[0], places)
		low, high := -0.5, float64(size)-0.5
		if aligned {
			low, high = 0, float64(size-1)
			at = n.with("mul", n.with("add", at, 1), float64(size-1)/2)
		} else {
			at = n.with("sub", n.with("mul", n.with("add", at, 1), float64(size)/2), 0.5)
		}
		if mode == "nearest" {
			at = n.unary("round", at)
		}
		one := n.scalar(e, 1)
		pick := func(p, weight *ir.Value) tap { // the element at a whole place
			switch padding {
			case "zeros":
				return n.inside(p, weight, size)
			case "reflection":
				p = n.mirror(p, low, high)
			}
			return tap{n.clamped(p, size), weight}
		}
		switch padding {
		case "zeros":
		case "border":
			if mode != "cubic" && mode != "bicubic" {
				at = n.make("clamp", []*ir.Value{n.scalar(e, 0), at, n.scalar(e, float64(size-1))}, nil)
			}
		case "reflection":
			if mode != "cubic" && mode != "bicubic" {
				at = n.mirror(at, low, high)
			}
		default:
			fail("padding_mode %q", padding)
		}
		switch mode {
		case "nearest":
			taps[d] = []tap{pick(at, n.splat(e, 1, s[0], places))}
		case "linear", "bilinear":
			floor := n.unary("floor", at)
			t := n.binary("sub", at, floor)
			taps[d] = []tap{pick(floor, n.binary("sub", one, t)), pick(n.with("add", floor, 1), t)}
		case "cubic", "bicubic":
			floor := n.unary("floor", at)
			t := n.binary("sub", at, floor)
			for k, weight := range n.cubic(t) {
				taps[d] = append(taps[d], pick(n.with("add", floor, float64(k-1)), weight))
			}
		default:
			fail("mode %q", mode)
		}
	}
	v := n.sampled(n.convertTo(n.channelsLast(x), e), s[2:], taps, "add")
	v = n.reshape(n.transpose(v, 0, 2, 1), slices.Concat(s[:2], g[1:len(g)-1])...)
	return one(n.convertTo(v, x.Elem()))
}

// cubic are the weights of the four elements around a place, t from the second one.
func (n *node) cubic(t *ir.Value) (out []*ir.Value) {
	const a = -0.75
	poly := func(x *ir.Value, c3, c2, c1, c0 float64) *ir.Value {
		v := n.with("add", n.with("mul", x, c3), c2)
		v = n.with("add", n.binary("mul", v, x), c1)
		return n.with("add", n.binary("mul", v, x), c0)
	}
	far := func(x *ir.Value) *ir.Value { return poly(x, a, -5*a, 8*a, -4*a) }
	near := func(x *ir.Value) *ir.Value { return poly(x, a+2, -(a + 3), 0, 1) }
	rest := n.binary("sub", n.scalar(t.Elem(), 1), t)
	return []*ir.Value{far(n.with("add", t, 1)), near(t), near(rest), far(n.with("add", rest, 1))}
}

// convertAffineGrid is the grid of GridSample that a matrix makes of the places of an image.
func convertAffineGrid(n *node) []*ir.Value {
	theta, size := n.in(0), n.target(1)
	rank := len(size) - 2
	if t := n.shape(theta); rank < 2 || len(t) != 3 || t[1] != rank || t[2] != rank+1 || t[0] != size[0] {
		fail("matrices of shape %v for images of %v", t, size)
	}
	space := size[2:]
	e := n.wide(theta).Elem()
	var columns []*ir.Value
	for d := rank - 1; d >= 0; d-- {
		step, from := 2/float64(space[d]), 1/float64(space[d])-1
		if n.int("align_corners", 0) != 0 {
			step, from = 2/float64(max(space[d]-1, 1)), -1
		}
		at := n.with("add", n.with("mul", n.iota(e, d, space...), step), from)
		columns = append(columns, n.reshape(at, product(space), 1))
	}
	columns = append(columns, n.splat(e, 1, product(space), 1))
	v := n.make("einsum", []*ir.Value{n.concatenate(1, columns...), n.convertTo(theta, e)}, named("equation", types.Attr(types.Str("pk,ndk->npd"))))
	return one(n.convertTo(n.reshape(v, slices.Concat(size[:1], space, []int{rank})...), theta.Elem()))
}

// convertRoiAlign reads each of some boxes as an image of a given size: each element is the
// mean, or the largest, of samples between the elements of x.
func convertRoiAlign(n *node) []*ir.Value {
	x, rois, batch := n.in(0), n.in(1), n.in(2)
	s, r := n.shape(x), n.shape(rois)
	if len(s) != 4 || len(r) != 2 || r[1] != 4 || s[2]*s[3] == 0 {
		fail("boxes of shape %v for %v", r, s)
	}
	count := n.int("sampling_ratio", 0)
	if count < 1 {
		unsupported("a number of samples that depends on the size of each box (sampling_ratio = 0)")
	}
	half, scale := 0.5, n.float("spatial_scale", 1)
	if n.opset < 16 || n.str("coordinate_transformation_mode", "half_pixel") == "output_half_pixel" {
		half = 0
	}
	out := []int{n.int("output_height", 1), n.int("output_width", 1)}
	w := n.wide(rois)
	e := w.Elem()
	corner := func(i int) *ir.Value { return n.with("sub", n.with("mul", n.part(w, 1, i, i+1), scale), half) }
	var taps [2][]tap
	for d := range 2 {
		size := s[2+d]
		start := corner(1 - d)
		length := n.binary("sub", corner(3-d), start)
		if half == 0 {
			length = n.with("max", length, 1)
		}
		steps := n.with("mul", n.with("add", n.iota(e, 1, 1, out[d]*count), 0.5), 1/float64(out[d]*count))
		at := n.binary("add", start, n.binary("mul", length, steps))
		in := n.binary("and", n.compare("ge", at, n.scalar(e, -1)), n.compare("le", at, n.scalar(e, float64(size))))
		at = n.make("clamp", []*ir.Value{n.scalar(e, 0), at, n.scalar(e, float64(size-1))}, nil)
		floor := n.unary("floor", at)
		t := n.binary("sub", at, floor)
		none := n.scalar(e, 0)
		taps[d] = []tap{
			{n.clamped(floor, size), n.choose(in, n.binary("sub", n.scalar(e, 1), t), none)},
			{n.clamped(n.with("add", floor, 1), size), n.choose(in, t, none)},
		}
	}
	rows, columns := out[0]*count, out[1]*count
	first := n.with("mul", n.reshape(n.convertTo(batch, types.I64), r[0], 1), float64(s[2]))
	spread := func(v *ir.Value, d int) *ir.Value { // over both dimensions
		if d == 0 {
			v = n.reshape(v, r[0], rows, 1)
		} else {
			v = n.reshape(v, r[0], 1, columns)
		}
		return n.reshape(n.broadcast(v, r[0], rows, columns), 1, r[0]*rows*columns)
	}
	both := make([][]tap, 2)
	for d, ts := range taps {
		for _, t := range ts {
			if d == 0 { // rows of all images, one after the other
				t.at = n.binary("add", t.at, first)
			}
			both[d] = append(both[d], tap{spread(t.at, d), spread(t.weight, d)})
		}
	}
	images := n.reshape(n.transpose(n.convertTo(x, e), 0, 2, 3, 1), 1, s[0]*s[2]*s[3], s[1])
	combine := map[string]string{"avg": "add", "max": "max"}[n.str("mode", "avg")]
	if combine == "" {
		fail("mode %q", n.str("mode", ""))
	}
	v := n.sampled(images, []int{s[0] * s[2], s[3]}, both, combine)
	v = n.reshape(v, r[0], out[0], count, out[1], count, s[1])
	if combine == "max" {
		v = n.reduce("max", v, []int{2, 4}, false)
	} else {
		v = n.mean(v, []int{2, 4}, false)
	}
	return one(n.convertTo(n.transpose(v, 0, 3, 1, 2), x.Elem()))
}

// convertDeformConv is a convolution whose windows have each element moved by an offset,
// and weighted by a mask.
func convertDeformConv(n *node) []*ir.Value {
	x, w, offset := n.in(0), n.in(1), n.in(2)
	s, k := n.shape(x), n.shape(w)
	if len(s) != 4 || len(k) != 4 {
		unsupported("a deformable convolution of %d dimensions", len(s)-2)
	}
	at := n.window(x, k[2:])
	groups, parts := n.int("group", 1), n.int("offset_group", 1)
	if groups < 1 || parts < 1 || s[1]%groups != 0 || k[0]%groups != 0 || s[1]%parts != 0 || k[1]*groups != s[1] {
		fail("%d groups and %d of offsets of %d channels", groups, parts, s[1])
	}
	taken := k[2] * k[3]
	o := n.shape(offset)
	if len(o) != 4 || o[0] != s[0] || o[1] != parts*taken*2 {
		fail("offsets of shape %v", o)
	}
	places := o[2] * o[3]
	e := n.wide(offset).Elem()
	moves := n.reshape(n.convertTo(offset, e), s[0]*parts, taken, 2, places)
	taps := make([][]tap, 2)
	for d, size := range s[2:] {
		grid := []int{k[2], k[3], o[2], o[3]}
		p := n.with("mul", n.iota(e, d, grid...), float64(at.dilation[d]))
		q := n.with("mul", n.iota(e, 2+d, grid...), float64(at.stride[d]))
		base := n.with("sub", n.binary("add", p, q), float64(at.low[d]))
		move := n.reshape(n.part(moves, 2, d, d+1), s[0]*parts, taken*places)
		place := n.binary("add", n.reshape(base, 1, taken*places), move)
		floor := n.unary("floor", place)
		t := n.binary("sub", place, floor)
		taps[d] = []tap{n.inside(floor, n.binary("sub", n.scalar(e, 1), t), size), n.inside(n.with("add", floor, 1), t, size)}
	}
	images := n.channelsLast(n.reshape(n.convertTo(x, e), s[0]*parts, s[1]/parts, s[2], s[3]))
	v := n.sampled(images, s[2:], taps, "add") // [N · parts, taken · places, C / parts]
	if mask := n.opt(4); mask != nil {
		v = n.binary("mul", v, n.reshape(n.convertTo(mask, e), s[0]*parts, taken*places, 1))
	}
	v = n.reshape(n.transpose(v, 0, 2, 1), s[0], groups, s[1]/groups, taken, places)
	f := n.reshape(n.convertTo(w, e), groups, k[0]/groups, k[1], taken)
	v = n.make("einsum", []*ir.Value{v, f}, named("equation", types.Attr(types.Str("ngckp,gmck->ngmp"))))
	v = n.convertTo(n.reshape(v, s[0], k[0], o[2], o[3]), x.Elem())
	return one(n.biased(v, n.opt(3)))
}
