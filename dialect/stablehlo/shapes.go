package stablehlo

import (
	"slices"
	"strconv"
	"strings"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

func shapes() map[string]conversion {
	return map[string]conversion{
		"broadcast": broadcast, "iota": iota,
		"transpose": transpose, "reverse": reverse, "slice": slice, "concatenate": concatenate, "pad": pad,
		"dynamic_slice": dynamicSlice, "dynamic_update_slice": dynamicUpdateSlice,
		"get_dimension_size": dimensionSize, "bitcast_convert": bitcastConvert,
		"copy": same, "chlo.constant_like": constantLike,
	}
}

func broadcastInDim(n *node) []*ir.Value {
	n.takes(1)
	to, from := n.sizes(n.result(0)), n.shape(n.in[0])
	dims := n.dims("broadcast_dimensions", len(to))
	n.must(len(dims) == len(from), "DM141", "broadcast_dimensions of %s has %d entries for %d dimensions", n.name, len(dims), len(from))
	for i, d := range dims {
		n.must(from[i] == 1 || from[i] == to[d], "DM143", "%s repeats dimension %d of %s, which has not the size 1, to %d", n.name, i, n.in[0].Type, to[d])
	}
	return []*ir.Value{n.broadcast(n.in[0], dims, to)}
}

// broadcast adds dimensions in front.
func broadcast(n *node) []*ir.Value {
	n.takes(1)
	from := n.shape(n.in[0])
	to := append(slices.Clone(n.ints("broadcast_sizes")), from...)
	n.sizesAre(to)
	return []*ir.Value{n.trailing(n.in[0], to)}
}

// sizesAre fails for sizes that no tensor has.
func (n *node) sizesAre(shape []int) {
	for _, d := range shape {
		n.must(d >= 0, "DM141", "%s: %d is no size", n.name, d)
	}
	n.must(product(shape) < 1<<50, "DM141", "%s: the result would be too large", n.name)
}

func reshape(n *node) []*ir.Value {
	n.takes(1)
	to := n.sizes(n.result(0))
	n.must(product(to) == product(n.shape(n.in[0])), "DM143", "%s: a %s has not as many elements as a %s", n.name, n.in[0].Type, n.result(0))
	return []*ir.Value{n.reshape(n.in[0], to...)}
}

func transpose(n *node) []*ir.Value {
	n.takes(1)
	rank := len(n.shape(n.in[0]))
	dims := n.dims("permutation", rank)
	n.must(len(dims) == rank, "DM141", "permutation of %s has %d entries for %d dimensions", n.name, len(dims), rank)
	return []*ir.Value{n.transpose(n.in[0], dims)}
}

func reverse(n *node) []*ir.Value {
	n.takes(1)
	dims := n.dims("dimensions", len(n.shape(n.in[0])))
	return []*ir.Value{n.reversed(n.in[0], dims)}
}

func (n *node) reversed(x *ir.Value, dims []int) *ir.Value {
	if len(dims) == 0 {
		return x
	}
	return n.op("reverse", []*ir.Value{x}, intsAttr("dims", dims))
}

// slice has the form [0:4, 1:8:2], or lists.
func slice(n *node) []*ir.Value {
	n.takes(1)
	shape := n.shape(n.in[0])
	var start, limit, strides []int
	if n.has("start_indices") {
		start, limit = n.intsOr("start_indices", len(shape), 0), n.intsOr("limit_indices", len(shape), 0)
		strides = n.intsOr("strides", len(shape), 1)
	} else {
		n.must(len(n.words) == 1, "DM141", "%s needs its bounds: [start:limit:stride, …]", n.name)
		start, limit, strides = n.bounds(n.words[0])
		n.must(len(start) == len(shape), "DM141", "%s has bounds of %d dimensions, but the operand has %d", n.name, len(start), len(shape))
	}
	return []*ir.Value{n.within(start, limit, strides)}
}

// within is a part of the operand that must lie inside of it.
func (n *node) within(start, limit, strides []int) *ir.Value {
	shape := n.shape(n.in[0])
	n.must(len(start) == len(shape) && len(limit) == len(shape) && len(strides) == len(shape), "DM142", "%s has another number of bounds than %s has dimensions", n.name, n.in[0].Type)
	for i := range shape {
		n.must(0 <= start[i] && start[i] <= limit[i] && limit[i] <= shape[i] && strides[i] > 0, "DM141",
			"%s takes %d:%d:%d of dimension %d, which has the size %d", n.name, start[i], limit[i], strides[i], i, shape[i])
	}
	return n.part(n.in[0], start, limit, strides)
}

// part is a regular part of every dimension.
func (n *node) part(x *ir.Value, start, limit, strides []int) *ir.Value {
	shape := n.shape(x)
	if slices.Equal(start, make([]int, len(shape))) && slices.Equal(limit, shape) && slices.Equal(strides, ones(len(shape))) {
		return x
	}
	attrs := []types.Named{intsAttr("start_indices", start), intsAttr("limit_indices", limit)}
	if !slices.Equal(strides, ones(len(shape))) {
		attrs = append(attrs, intsAttr("strides", strides))
	}
	return n.op("slice", []*ir.Value{x}, attrs...)
}

// bounds reads [start:limit:stride, …].
func (n *node) bounds(text string) (start, limit, strides []int) {
	text = strings.TrimSuffix(strings.TrimPrefix(text, "["), "]")
	for _, part := range strings.Split(text, ",") {
		if strings.TrimSpace(text) == "" {
			break
		}
		row := []int{0, 0, 1}
		fields := strings.Split(part, ":")
		ok := len(fields) == 2 || len(fields) == 3
		for i, f := range fields {
			v, err := strconv.Atoi(strings.TrimSpace(f))
			if ok = ok && err == nil && v < maxSize; ok {
				row[i] = v
			}
		}
		n.must(ok, "DM141", "%s: %s are no bounds of the form start:limit:stride", n.name, strings.TrimSpace(part))
		start, limit, strides = append(start, row[0]), append(limit, row[1]), append(strides, row[2])
	}
	return start, limit, strides
}

func concatenate(n *node) []*ir.Value {
	n.must(len(n.in) > 0, "DM142", "%s needs an operand", n.name)
	n.sameElems(n.in)
	d := n.int("dimension")
	n.must(d >= 0 && d < len(n.shape(n.in[0])), "DM141", "dimension = %d of %s is no dimension of %s", d, n.name, n.in[0].Type)
	return []*ir.Value{n.concatenated(n.in, d)}
}

func (n *node) concatenated(vs []*ir.Value, d int) *ir.Value {
	if len(vs) == 1 {
		return vs[0]
	}
	return n.op("concatenate", vs, intAttr("dim", d))
}

func pad(n *node) []*ir.Value {
	n.takes(2)
	n.sameElems(n.in)
	rank := len(n.shape(n.in[0]))
	low, high := n.intsOr("edge_padding_low", rank, 0), n.intsOr("edge_padding_high", rank, 0)
	interior := n.intsOr("interior_padding", rank, 0)
	n.must(len(n.shape(n.in[1])) == 0, "DM142", "the padding value of %s is a %s, not a scalar", n.name, n.in[1].Type)
	return []*ir.Value{n.padded(n.in[0], n.in[1], low, high, interior)}
}

// padded is x with the value around and between its elements. Negative padding cuts
// what is between the elements as well.
func (n *node) padded(x, value *ir.Value, low, high, interior []int) *ir.Value {
	shape := n.shape(x)
	l, h, size := slices.Clone(low), slices.Clone(high), make([]int, len(shape))
	start, limit := make([]int, len(shape)), make([]int, len(shape))
	for i, d := range shape {
		n.must(interior[i] >= 0, "DM141", "interior padding of %s contains %d", n.name, interior[i])
		l[i], h[i] = max(0, low[i]), max(0, high[i])
		size[i] = l[i] + d + max(0, d-1)*interior[i] + h[i]
		start[i], limit[i] = max(0, -low[i]), size[i]-max(0, -high[i])
		n.must(start[i] <= limit[i], "DM141", "%s cuts more than dimension %d of %s has", n.name, i, x.Type)
	}
	n.sizesAre(size)
	var attrs []types.Named
	zeros := make([]int, len(shape))
	for _, a := range []struct {
		name string
		list []int
	}{{"low", l}, {"high", h}, {"interior", interior}} {
		if !slices.Equal(a.list, zeros) {
			attrs = append(attrs, intsAttr(a.name, a.list))
		}
	}
	if attrs != nil {
		x = n.op("pad", []*ir.Value{x, value}, attrs...)
	}
	return n.part(x, start, limit, ones(len(shape)))
}

func iota(n *node) []*ir.Value {
	t := n.result(0)
	d, shape := n.int("iota_dimension"), n.sizes(t)
	n.must(d >= 0 && d < len(shape), "DM141", "iota_dimension = %d is no dimension of %s", d, t)
	return []*ir.Value{n.convert(n.iota(widened(t.Elem), d, shape...), t.Elem)}
}

// positions are start indices in a type that the dialect takes.
func (n *node) positions(vs []*ir.Value) []*ir.Value {
	out := make([]*ir.Value, len(vs))
	for i, v := range vs {
		n.must(v.Elem().IsInt() && v.Elem() != types.I1, "DM142", "the indices of %s are %s, not integers", n.name, v.Elem())
		out[i] = v
		switch v.Elem() {
		case types.I64, types.I32, types.UI64, types.UI32:
		default:
			out[i] = n.convert(v, types.I32)
		}
	}
	return out
}

func dynamicSlice(n *node) []*ir.Value {
	n.must(len(n.in) > 0, "DM142", "%s needs an operand", n.name)
	shape := n.shape(n.in[0])
	n.takes(1 + len(shape))
	sizes := n.intsOr("slice_sizes", len(shape), 0)
	for i, s := range sizes {
		n.must(s >= 0 && s <= shape[i], "DM141", "slice_sizes of %s takes %d of dimension %d, which has the size %d", n.name, s, i, shape[i])
	}
	if len(shape) == 0 || slices.Equal(sizes, shape) {
		return n.in[:1]
	}
	return []*ir.Value{n.op("dynamic_slice", append([]*ir.Value{n.in[0]}, n.positions(n.in[1:])...), intsAttr("slice_sizes", sizes))}
}

func dynamicUpdateSlice(n *node) []*ir.Value {
	n.must(len(n.in) > 1, "DM142", "%s needs two operands", n.name)
	shape, part := n.shape(n.in[0]), n.shape(n.in[1])
	n.takes(2 + len(shape))
	n.sameElems(n.in[:2])
	if slices.Equal(shape, part) {
		return n.in[1:2]
	}
	return []*ir.Value{n.op("dynamic_update_slice", append(slices.Clone(n.in[:2]), n.positions(n.in[2:])...))}
}

func dimensionSize(n *node) []*ir.Value {
	n.takes(1)
	d, shape := n.int("dimension"), n.shape(n.in[0])
	n.must(d >= 0 && d < len(shape), "DM141", "dimension = %d of %s is no dimension of %s", d, n.name, n.in[0].Type)
	return []*ir.Value{n.whole(types.I32, shape[d])}
}

func constantLike(n *node) []*ir.Value {
	t := n.result(0)
	x := n.dense("value", tensorOf(t.Elem))
	return []*ir.Value{n.constant(types.SplatOf(t, x.Float(0)))}
}

// bitcastConvert keeps the bits. Between types of different sizes the last dimension
// holds the parts of a number, the lowest first.
func bitcastConvert(n *node) []*ir.Value {
	n.takes(1)
	x, to := n.in[0], n.result(0)
	from, e := x.Elem(), to.Elem
	switch shape := n.shape(x); {
	case from == types.I1 && e != types.I1 && !e.Packed():
		wide, bits := intOfSize(e.Bytes(), false), int(e.Bits())
		n.must(len(shape) > 0 && shape[len(shape)-1] == bits, "DM142", "%s: the last dimension of %s must have the %d bits of a %s", n.name, x.Type, bits, e)
		return []*ir.Value{n.bitcast(n.reduced("add", n.binary("shift_left", n.convert(x, wide), n.shifts(wide, bits, 1)), []int{len(shape) - 1}), e)}
	case e == types.I1 && from != types.I1 && !from.Packed():
		wide, bits := intOfSize(from.Bytes(), false), int(from.Bits())
		x = n.reshape(n.bitcast(x, wide), append(slices.Clone(shape), 1)...)
		one := n.binary("and", n.binary("shift_right_logical", x, n.shifts(wide, bits, 1)), n.whole(wide, 1))
		return []*ir.Value{n.compare("ne", one, n.whole(wide, 0))}
	case from.Packed() && e.Packed():
		wide := n.bitcast(n.convert(x, widened(from)), widened(e))
		return []*ir.Value{n.convert(wide, e)}
	case from.Packed() || e.Packed():
		n.unsupported("%s between %s and %s is not supported", n.name, from, e)
	case from.Bytes() == e.Bytes():
		return []*ir.Value{n.bitcast(x, e)}
	case from.Bytes() > e.Bytes():
		parts := int(from.Bytes() / e.Bytes())
		wide, small := intOfSize(from.Bytes(), false), intOfSize(e.Bytes(), false)
		shifts := n.shifts(wide, parts, int(8*e.Bytes()))
		x = n.reshape(n.bitcast(x, wide), append(slices.Clone(shape), 1)...)
		return []*ir.Value{n.bitcast(n.convert(n.binary("shift_right_logical", x, shifts), small), e)}
	default:
		parts := int(e.Bytes() / from.Bytes())
		n.must(len(shape) > 0 && shape[len(shape)-1] == parts, "DM142", "%s: the last dimension of %s must have the %d parts of a %s", n.name, x.Type, parts, e)
		wide, small := intOfSize(e.Bytes(), false), intOfSize(from.Bytes(), false)
		shifts := n.shifts(wide, parts, int(8*from.Bytes()))
		y := n.binary("shift_left", n.convert(n.bitcast(x, small), wide), shifts)
		sum := n.op("reduce", []*ir.Value{y}, named("kind", types.Keyword("add")), named("dims", op.IntList(len(shape)-1)))
		return []*ir.Value{n.bitcast(sum, e)}
	}
	return nil
}

// bitcastScalar is bitcastConvert in the region of a reduction: between types of the same size.
func bitcastScalar(n *node) []*ir.Value {
	n.takes(1)
	x, e := n.in[0], n.result(0).Elem
	n.must(x.Elem().Bits() == e.Bits() && !e.Packed() && e != types.I1, Unsupported, "%s between %s and %s in the region of a reduction is not supported", n.name, x.Elem(), e)
	return []*ir.Value{n.bitcast(x, e)}
}

// shifts are how far each of the parts of a number is from its lowest bit.
func (n *node) shifts(e types.Elem, parts, bits int) *ir.Value {
	return n.make("iota", nil, []types.Named{named("step", types.Float{V: float64(bits)})}, tensorOf(e, parts)).Results[0]
}
