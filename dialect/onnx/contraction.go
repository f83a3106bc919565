package onnx

import (
	"slices"
	"strings"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// Products of matrices and convolutions.

func init() {
	register(map[string]conversion{
		"CausalConvWithState": convertCausalConv,
		"Conv":                convertConv, "ConvTranspose": convertConvTranspose, "Einsum": convertEinsum, "Gemm": convertGemm, "MatMul": convertMatMul,
		"dmir.GroupedMatmul": convertGroupedMatmul,
	})
}

// convertGroupedMatmul is an operator of the Python module's own, for the grouped_mm of PyTorch: groups are given by where they end.
func convertGroupedMatmul(n *node) []*ir.Value {
	ends := n.in(2)
	if len(n.shape(ends)) != 1 {
		fail("ends of groups of shape %s, not a vector", n.in(2).Type)
	}
	positions := n.make("concatenate", []*ir.Value{n.splat(ends.Elem(), 0, 1), ends}, named("dim", 0))
	return one(n.make("grouped_matmul", []*ir.Value{n.in(0), n.in(1), positions}, nil))
}

func convertMatMul(n *node) []*ir.Value { return one(n.matmul(n.in(0), n.in(1))) }

// matmul is NumPy's: a list is a row on the left and a column on the right.
func (n *node) matmul(x, y *ir.Value) *ir.Value {
	xs, ys := n.shape(x), n.shape(y)
	if len(xs) == 0 || len(ys) == 0 {
		fail("a product of scalars")
	}
	row, column := len(xs) == 1, len(ys) == 1
	if row {
		x = n.reshape(x, 1, xs[0])
	}
	if column {
		y = n.reshape(y, ys[0], 1)
	}
	v := n.binary("matmul", x, y)
	out := n.shape(v)
	if column {
		out = slices.Delete(out, len(out)-1, len(out))
	}
	if row {
		at := len(n.shape(v)) - 2
		out = slices.Delete(out, at, at+1)
	}
	return n.reshape(v, out...)
}

func convertGemm(n *node) []*ir.Value {
	var attrs []types.Named
	if n.int("transA", 0) != 0 {
		attrs = append(attrs, named("transpose_a", true)...)
	}
	if n.int("transB", 0) != 0 {
		attrs = append(attrs, named("transpose_b", true)...)
	}
	v := n.make("matmul", []*ir.Value{n.in(0), n.in(1)}, attrs)
	if a := n.float("alpha", 1); a != 1 {
		v = n.with("mul", v, a)
	}
	if c, b := n.opt(2), n.float("beta", 1); c != nil && b != 0 {
		if b != 1 {
			c = n.with("mul", c, b)
		}
		v = n.binary("add", v, c)
	}
	return one(v)
}

func convertEinsum(n *node) []*ir.Value {
	text := strings.ReplaceAll(n.str("equation", ""), " ", "")
	left, right, written := strings.Cut(text, "->")
	if !written { // letters that stand once, in the order of the alphabet
		if strings.Contains(left, "...") {
			right = "..."
		}
		letters := []byte(strings.ReplaceAll(strings.ReplaceAll(left, "...", ""), ",", ""))
		slices.Sort(letters)
		for i, c := range letters {
			if (i == 0 || letters[i-1] != c) && (i+1 == len(letters) || letters[i+1] != c) {
				right += string(c)
			}
		}
	}
	for i := range n.ins {
		n.in(i)
	}
	return one(n.make("einsum", n.ins, named("equation", types.Attr(types.Str(left+"->"+right)))))
}

// window is what moves over the spatial dimensions.
type window struct {
	size, stride, dilation []int
	low, high              []int
	before                 []int // high as the node says, before it was rounded up
}

// window reads the attributes of a convolution or a pool of x, whose window has the
// size of kernel unless the node states it.
func (n *node) window(x *ir.Value, kernel []int) window {
	shape := n.shape(x)
	if len(shape) < 3 {
		fail("%d dimensions", len(shape))
	}
	space := shape[2:]
	ones := slices.Repeat([]int{1}, len(space))
	read := func(name string, otherwise []int, length, least int) []int {
		list := n.ints(name)
		if list == nil {
			list = otherwise
		}
		if len(list) != length {
			fail("%s has %d entries for %d dimensions", name, len(list), len(space))
		}
		for _, v := range list {
			if v < least || v > 1<<31 {
				fail("%s are %v", name, list)
			}
		}
		return slices.Clone(list)
	}
	w := window{
		size:     read("kernel_shape", kernel, len(space), 1),
		stride:   read("strides", ones, len(space), 1),
		dilation: read("dilations", ones, len(space), 1),
	}
	pads := read("pads", make([]int, 2*len(space)), 2*len(space), -1<<31)
	w.low, w.high = pads[:len(space)], pads[len(space):]
	auto := n.str("auto_pad", "NOTSET")
	for i, d := range space {
		span := (w.size[i]-1)*w.dilation[i] + 1
		switch auto {
		case "NOTSET", "":
		case "VALID":
			w.low[i], w.high[i] = 0, 0
		case "SAME_UPPER", "SAME_LOWER":
			total := max(0, ((d+w.stride[i]-1)/w.stride[i]-1)*w.stride[i]+span-d)
			w.low[i], w.high[i] = total/2, total-total/2
			if auto == "SAME_LOWER" {
				w.low[i], w.high[i] = w.high[i], w.low[i]
			}
		default:
			fail("auto_pad %q", auto)
		}
	}
	w.before = slices.Clone(w.high)
	if n.int("ceil_mode", 0) != 0 {
		for i, d := range space {
			span := (w.size[i]-1)*w.dilation[i] + 1
			out := max(0, d+w.low[i]+w.high[i]-span+w.stride[i]-1)/w.stride[i] + 1
			if (out-1)*w.stride[i] >= d+w.low[i] {
				out-- // it would begin in the padding
			}
			w.high[i] = max(0, (out-1)*w.stride[i]+span-d-w.low[i])
		}
	}
	n.note(w.low...)
	n.note(w.high...)
	return w
}

func pairs(low, high []int) types.Attr {
	out := types.Array{}
	for i := range low {
		out = append(out, op.IntList(low[i], high[i]))
	}
	return out
}

func convertConv(n *node) []*ir.Value {
	return one(n.biased(n.convolution(n.in(0), n.in(1)), n.opt(2)))
}

// convolution is that of x with the filter w, by the node's attributes.
func (n *node) convolution(x, w *ir.Value) *ir.Value {
	kernel := n.shape(w)
	if len(kernel) < 3 {
		fail("a filter of %d dimensions", len(kernel))
	}
	at := n.window(x, kernel[2:])
	if len(at.size) > 3 {
		unsupported("a convolution over %d dimensions", len(at.size))
	}
	attrs := named("window_strides", at.stride, "padding", pairs(at.low, at.high), "rhs_dilation", at.dilation)
	if g := n.int("group", 1); g != 1 {
		attrs = append(attrs, named("feature_group_count", g)...)
	}
	return n.make("convolution", []*ir.Value{x, w}, attrs)
}

// biased adds a number for each channel, but no zeros, which torch.onnx writes where a layer has no bias.
func (n *node) biased(y, bias *ir.Value) *ir.Value {
	if bias == nil {
		return y
	}
	if bias.Op != nil {
		if d := n.constant(bias); d != nil && d.Splat && d.Float(0) == 0 {
			return y
		}
	}
	return n.binary("add", y, n.channels(bias, n.rank(y)))
}

// convertConvTranspose is a convolution of x with zeros between its elements, with the
// reversed filter, whose channels are exchanged.
func convertConvTranspose(n *node) []*ir.Value {
	x, w := n.in(0), n.in(1)
	kernel := n.shape(w)
	if len(kernel) < 3 {
		fail("a filter of %d dimensions", len(kernel))
	}
	at := n.window(x, kernel[2:])
	rank, g := len(at.size), n.int("group", 1)
	if rank > 3 {
		unsupported("a convolution over %d dimensions", rank)
	}
	if g < 1 || kernel[0]%g != 0 {
		fail("%d groups of %d channels", g, kernel[0])
	}
	more := n.ints("output_padding")
	if more == nil {
		more = make([]int, rank)
	}
	want := n.ints("output_shape")
	if len(more) != rank || want != nil && len(want) != rank && len(want) != rank+2 {
		fail("output_padding and output_shape have not %d entries", rank)
	}
	auto := n.str("auto_pad", "NOTSET")
	start, limit := make([]int, rank+2), []int{n.shape(x)[0], kernel[1] * g}
	for i, d := range n.shape(x)[2:] {
		span := (at.size[i]-1)*at.dilation[i] + 1
		full := (d-1)*at.stride[i] + span + more[i] // without padding
		out := full - at.low[i] - at.high[i]
		switch {
		case want != nil:
			out = want[len(want)-rank+i]
		case strings.HasPrefix(auto, "SAME"):
			out = d * at.stride[i]
		}
		low := at.low[i]
		if want != nil || strings.HasPrefix(auto, "SAME") {
			total := full - out
			low = total >> 1
			if auto != "SAME_UPPER" {
				low = total - total>>1
			}
			if -at.stride[i] < total && total < 0 {
				low = 0 // a larger result ends in zeros, as with output_padding
			}
		}
		if out < 0 || full < 0 || d == 0 {
			fail("the result has no elements")
		}
		// The convolution gives elements from max(0, low) on, padding where it is negative.
		at.low[i] = span - 1 - low
		at.high[i] = out + span - 1 - at.low[i] - ((d-1)*at.stride[i] + 1)
		limit = append(limit, out)
		if at.low[i] < 0 {
			start[i+2], limit[i+2] = -at.low[i], out-at.low[i]
			at.low[i] = 0
		}
		if at.high[i] < 0 {
			at.high[i] = 0
		}
	}
	w = n.reshape(w, append([]int{g, kernel[0] / g, kernel[1]}, kernel[2:]...)...)
	order := axesFrom(rank + 3)
	order[1], order[2] = 2, 1
	w = n.reshape(n.transpose(w, order...), append([]int{g * kernel[1], kernel[0] / g}, kernel[2:]...)...)
	w = n.make("reverse", []*ir.Value{w}, named("dims", axesFrom(rank + 2)[2:]))
	attrs := named("padding", pairs(at.low, at.high), "lhs_dilation", at.stride, "rhs_dilation", at.dilation)
	if g > 1 {
		attrs = append(attrs, named("feature_group_count", g)...)
	}
	v := n.slice(n.make("convolution", []*ir.Value{x, w}, attrs), start, limit, nil)
	return one(n.biased(v, n.opt(2)))
}

// convertCausalConv is a convolution of each channel of [batch, channels, time] that
// sees what came before: its state, which the last inputs become.
func convertCausalConv(n *node) []*ir.Value {
	x, w := n.in(0), n.in(1)
	s, k := n.shape(x), n.shape(w)
	if len(s) != 3 || len(k) != 3 || k[2] < 1 || k[0] != s[1] {
		fail("a filter of shape %v for %v", k, s)
	}
	past := n.opt(3)
	if past == nil {
		past = n.splat(x.Elem(), 0, s[0], s[1], k[2]-1)
	}
	all := x
	if k[2] > 1 {
		all = n.concatenate(2, past, x)
	}
	y := n.make("convolution", []*ir.Value{n.wide(all), n.wide(w)}, named("feature_group_count", s[1]))
	if b := n.opt(2); b != nil {
		y = n.biased(y, n.wide(b))
	}
	switch a := n.str("activation", "none"); a {
	case "none", "":
	case "silu", "swish":
		y = n.unary("silu", y)
	default:
		unsupported("the activation %s", a)
	}
	size := n.shape(all)[2]
	return []*ir.Value{n.convertTo(y, x.Elem()), n.part(all, 2, size-k[2]+1, size)}
}
