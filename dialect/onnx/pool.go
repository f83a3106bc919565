package onnx

import (
	"slices"

	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// Pools: reductions of moving windows.

func init() {
	register(map[string]conversion{
		"AveragePool": convertAveragePool, "LpPool": convertLpPool, "MaxPool": convertMaxPool,
		"GlobalAveragePool": func(n *node) []*ir.Value { return one(n.mean(n.in(0), n.space(), true)) },
		"GlobalMaxPool":     func(n *node) []*ir.Value { return one(n.reduce("max", n.in(0), n.space(), true)) },
		"GlobalLpPool": func(n *node) []*ir.Value {
			p := float64(n.int("p", 2))
			return one(n.root(n.reduce("add", n.powers(n.in(0), p), n.space(), true), p))
		},
	})
}

// space are the spatial dimensions of the first input.
func (n *node) space() []int {
	rank := n.rank(n.in(0))
	if rank < 2 {
		fail("%d dimensions", rank)
	}
	return axesFrom(rank)[2:]
}

// pool reduces the windows of x.
func (n *node) pool(kind string, x *ir.Value, w window) *ir.Value {
	ones, zeros := []int{1, 1}, []int{0, 0}
	return n.make("reduce_window", []*ir.Value{x}, named(
		"kind", kind, "window_dimensions", append(ones, w.size...), "window_strides", append(ones, w.stride...),
		"window_dilations", append(ones, w.dilation...), "padding", pairs(append(zeros, w.low...), append(zeros, w.high...)),
	))
}

// maxCounted is how many numbers a constant has at most that an import makes up, such
// as the counts of windows or positions.
const maxCounted = 1 << 20

func convertAveragePool(n *node) []*ir.Value { return one(n.averaged(n.in(0))) }

// averaged is the means of the node's windows of x.
func (n *node) averaged(x *ir.Value) *ir.Value {
	w := n.window(x, nil)
	sum := n.pool("add", x, w)
	rank := n.rank(x)
	same, factor := 1, []*ir.Value(nil)
	for i, out := range n.shape(sum)[2:] {
		d := n.shape(x)[i+2]
		if out > maxCounted {
			unsupported("an average over %d windows", out)
		}
		counts := make([]int, out)
		for k := range counts {
			limit := d
			start := k*w.stride[i] - w.low[i]
			least := max(0, -start) // the first place of the window that counts
			if n.int("count_include_pad", 0) != 0 {
				limit, least = d+w.before[i], 0
			}
			first := (least + w.dilation[i] - 1) / w.dilation[i]
			end := min(w.size[i], max(0, limit-start+w.dilation[i]-1)/w.dilation[i])
			counts[k] = max(0, end-first)
		}
		if len(slices.Compact(slices.Clone(counts))) <= 1 {
			if out > 0 {
				same *= counts[0]
			}
			continue
		}
		shape := slices.Repeat([]int{1}, rank)
		shape[i+2] = out
		factor = append(factor, n.convertTo(n.reshape(n.numbers(counts...), shape...), x.Elem()))
	}
	v := n.with("div", sum, float64(same))
	for _, f := range factor {
		v = n.binary("div", v, f)
	}
	return v
}

func convertLpPool(n *node) []*ir.Value {
	x, p := n.in(0), float64(n.int("p", 2))
	return one(n.root(n.pool("add", n.powers(x, p), n.window(x, nil)), p))
}

func convertMaxPool(n *node) []*ir.Value {
	x := n.in(0)
	w := n.window(x, nil)
	v := n.pool("max", x, w)
	if !n.has(1) {
		return one(v)
	}
	return []*ir.Value{v, n.positions(x, v, w)}
}

// maxTaps is the number of elements of a window up to which it is written out.
const maxTaps = 256

// positions are the places in x of the first elements of the windows that are y, the
// largest.
func (n *node) positions(x, y *ir.Value, w window) *ir.Value {
	if product(w.size) > maxTaps || slices.Max(w.size) > maxTaps {
		unsupported("the positions in windows of %v", w.size)
	}
	shape := n.shape(x)
	at := n.iota(types.I64, 0, product(shape))
	if n.int("storage_order", 0) != 0 { // the first spatial dimension is the fastest
		order := axesFrom(len(shape))
		slices.Reverse(order[2:])
		back := slices.Clone(shape)
		slices.Reverse(back[2:])
		at = n.transpose(n.reshape(at, back...), order...)
	} else {
		at = n.reshape(at, shape...)
	}
	low, high := append([]int{0, 0}, w.low...), append([]int{0, 0}, w.high...)
	x, at = n.pad(x, n.least(x.Elem()), low, high), n.pad(at, n.scalar(types.I64, -1), low, high)
	out := n.shape(y)
	step := append([]int{1, 1}, w.stride...)
	found := n.splat(types.I64, -1, out...)
	pos := make([]int, len(w.size))
	for range product(w.size) {
		start, limit := make([]int, len(shape)), slices.Clone(shape)
		for i, p := range pos {
			start[i+2] = p * w.dilation[i]
			limit[i+2] = start[i+2] + max(0, out[i+2]-1)*w.stride[i] + 1
		}
		here, place := n.slice(x, start, limit, step), n.slice(at, start, limit, step)
		take := n.binary("and", n.compare("lt", found, n.scalar(types.I64, 0)), n.compare("eq", here, y))
		found = n.choose(take, place, found)
		for i := len(pos) - 1; i >= 0; i-- {
			if pos[i]++; pos[i] < w.size[i] {
				break
			}
			pos[i] = 0
		}
	}
	return found
}

// least is the neutral element of a maximum.
func (n *node) least(e types.Elem) *ir.Value {
	empty := n.splat(e, 0, 0)
	return n.reduce("max", empty, []int{0}, false)
}
