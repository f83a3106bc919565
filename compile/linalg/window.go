package linalg

import (
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// window is how a window moves over some dimensions; each list has an entry for each.
type window struct {
	size, stride, dilation []int64
	low                    []int64 // padding before
	padded                 []int64 // the dimensions' sizes with padding
}

// list is a list of integers of o, ones where absent.
func list(o *ir.Op, name string, n int) []int64 {
	if v := op.Ints(o, name); len(v) == n {
		return v
	}
	out := make([]int64, n)
	for i := range out {
		out[i] = 1
	}
	return out
}

// windowOf is a window over dimensions of the given sizes, whose elements are spread.
func windowOf(o *ir.Op, size, shape, spread []int64, dilations string) window {
	n := len(shape)
	w := window{size: size, stride: list(o, "window_strides", n), dilation: list(o, dilations, n)}
	pads := op.Pairs(o, "padding")
	for i, s := range shape {
		pad := [2]int64{}
		if pads != nil {
			pad = pads[i]
		}
		w.low = append(w.low, pad[0])
		w.padded = append(w.padded, max((s-1)*spread[i]+1, 0)+pad[0]+pad[1])
	}
	return w
}

// tap is the affine expression of the place that loops at and q read along dimension i.
func (w window) tap(i, at, q int) string {
	return expr(at, w.stride[i], 0) + " + " + expr(q, w.dilation[i], 0)
}

// padded is x with another element around and between its own along its last
// dimensions.
func (c *call) padded(x *ir.Value, e types.Elem, w window, spread []int64, value func(b builder) *ir.Value) *ir.Value {
	shape := sizes(x)
	first := len(shape) - len(w.padded)
	p, plain := op.Piece{At: all(len(shape))}, true
	to := append([]int64{}, shape...)
	for i := range w.padded {
		to[first+i] = w.padded[i]
		p.At[first+i] = op.Place{Dim: first + i, Scale: 1, Offset: -w.low[i], Div: spread[i], Open: true}
		plain = plain && to[first+i] == shape[first+i]
	}
	if plain {
		return x
	}
	return c.each(tensorOf(x.Elem(), to...), func(b builder, at values) *ir.Value {
		if !some(shape) {
			return value(b)
		}
		places, inside := b.places(c.o, nil, p, shape, at)
		return b.choose(inside, b.extract(x, places...), value(b))
	})
}

// convolution has loops n, g, o, p…, c, q… : batch, group, channel of the group's
// results, place, channel of the group's operands, tap.
func convolution(c *call) (values, error) {
	xs, ws, ys := sizes(c.in[0]), sizes(c.in[1]), sizes(c.o.Results[0])
	n, groups := len(xs)-2, op.Int(c.o, "feature_group_count")
	spread := list(c.o, "lhs_dilation", n)
	w := windowOf(c.o, ws[2:], xs[2:], spread, "rhs_dilation")
	x := c.padded(c.in[0], c.elem(0), w, spread, func(b builder) *ir.Value { return b.number(signless(c.elem(0)), 0) })
	shape := append([]int64{xs[0], groups, xs[1] / groups}, w.padded...)
	x = c.reshape(x, shape...)
	f := c.reshape(c.in[1], append([]int64{groups, ws[0] / groups, ws[1]}, ws[2:]...)...)
	names, reduces := loops(4 + 2*n)
	in, filter, result := []string{"d0", "d1", names[3+n]}, []string{"d1", "d2", names[3+n]}, []string{"d0", "d1", "d2"}
	reduces[3+n] = true
	for i := range n {
		at, q := 3+i, 4+n+i
		reduces[q] = true
		in, filter, result = append(in, w.tap(i, at, q)), append(filter, names[q]), append(result, names[at])
	}
	y, err := c.contract(values{x, f}, [][]string{in, filter, result}, reduces, append([]int64{ys[0], groups, ys[1] / groups}, ys[2:]...))
	if err != nil {
		return nil, err
	}
	return values{c.reshape(y[0], ys...)}, nil
}

// moving is the window of a reduce_window and its operand, padded with the neutral
// element.
func (c *call) moving() (window, *ir.Value) {
	shape := sizes(c.in[0])
	ones := list(c.o, "", len(shape))
	w := windowOf(c.o, op.Ints(c.o, "window_dimensions"), shape, ones, "window_dilations")
	e := c.elem(0)
	return w, c.padded(c.in[0], e, w, ones, func(b builder) *ir.Value { return b.neutral(op.Str(c.o, "kind"), e, signless(e)) })
}

// pooling has a loop for each dimension of the result and then one for each of the
// window, whose sizes come from an operand that nothing reads.
func pooling(c *call) (values, error) {
	w, x := c.moving()
	e, kind, n := c.elem(0), op.Str(c.o, "kind"), len(w.size)
	acc := wide(e)
	names, reduces := loops(2 * n)
	var in []string
	for i := range n {
		reduces[n+i] = true
		in = append(in, w.tap(i, i, n+i))
	}
	y := c.filled(tensorOf(acc, sizes(c.o.Results[0])...), c.neutral(kind, e, acc))
	y = c.generic(values{x, c.empty(tensorOf(signless(e), w.size...))}, values{y}, [][]string{in, names[n:], names[:n]}, reduces, func(b builder, x values) values {
		return values{b.combine(kind, e, x[2], b.cast(x[0], e, acc))}
	})[0]
	return values{c.as(y, acc, e)}, nil
}

// unpooling adds each value of the source where its window has its extreme element.
func unpooling(c *call) (values, error) {
	e := c.elem(0)
	acc, shape := wide(e), sizes(c.in[0])
	w := windowOf(c.o, op.Ints(c.o, "window_dimensions"), shape, list(c.o, "", len(shape)), "window_dilations")
	beats := map[string]string{"max": "gt", "min": "lt"}[op.Str(c.o, "kind")]
	y := c.filled(tensorOf(acc, shape...), c.number(acc, 0))
	if !some(shape) {
		return values{c.as(y, acc, e)}, nil
	}
	y = c.nest(sizes(c.in[1]), values{y}, func(b builder, at, carried values) values {
		best := values{b.whole(types.I1, 0), b.number(signless(e), 0)}
		for range shape {
			best = append(best, b.index(0))
		}
		best = b.nest(w.size, best, func(b builder, tap, best values) values {
			p := op.Piece{}
			var all values
			for i := range shape { // at·stride + tap·dilation - low
				all = append(all, b.two("arith.addi", b.two("arith.muli", at[i], b.index(w.stride[i])), b.two("arith.muli", tap[i], b.index(w.dilation[i]))))
				p.At = append(p.At, op.Place{Dim: i, Scale: 1, Offset: -w.low[i], Open: true})
			}
			places, inside := b.places(c.o, nil, p, shape, all)
			v := b.extract(c.in[0], places...)
			better := b.two("arith.ori", b.is(beats, v, best[1], false), b.first(v, best[1]))
			better = b.two("arith.ori", better, b.is("eq", best[0], b.whole(types.I1, 0), false))
			better = b.two("arith.andi", better, inside)
			next := values{b.two("arith.ori", best[0], better), b.choose(better, v, best[1])}
			for i := range shape {
				next = append(next, b.choose(better, places[i], best[2+i]))
			}
			return next
		})
		add := b.choose(best[0], b.cast(b.extract(c.in[1], at...), e, acc), b.number(acc, 0))
		place := best[2:]
		return values{b.insert(b.two("arith.addf", b.extract(carried[0], place...), add), carried[0], place...)}
	})[0]
	return values{c.as(y, acc, e)}, nil
}

// first is whether x is NaN and y is not.
func (b builder) first(x, y *ir.Value) *ir.Value {
	not := b.two("arith.xori", b.is("unordered", y, y, false), b.whole(types.I1, -1))
	return b.two("arith.andi", b.is("unordered", x, x, false), not)
}
