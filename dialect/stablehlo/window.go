package stablehlo

import (
	"slices"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// window is how a reduction moves over a tensor.
type window struct {
	size, strides, base, dilations []int
	padding                        [][2]int
}

func (n *node) windowOf(rank int) window {
	w := window{
		n.intsOr("window_dimensions", rank, 1), n.intsOr("window_strides", rank, 1), n.intsOr("base_dilations", rank, 1),
		n.intsOr("window_dilations", rank, 1), n.pairs("padding", rank),
	}
	for i := range rank {
		n.must(w.size[i] > 0 && w.strides[i] > 0 && w.base[i] > 0 && w.dilations[i] > 0, "DM141", "windows, strides and dilations of %s are positive", n.name)
	}
	return w
}

// outer is the shape of the result for operands of shape.
func (n *node) outer(w window, shape []int) []int {
	out := make([]int, len(shape))
	for i, d := range shape {
		if d > 0 {
			d = (d-1)*w.base[i] + 1
		}
		span := d + w.padding[i][0] + w.padding[i][1] - (w.size[i]-1)*w.dilations[i] - 1
		if span >= 0 {
			out[i] = span/w.strides[i] + 1
		}
	}
	n.sizesAre(out)
	return out
}

// attrs are those of dm.reduce_window.
func (w window) attrs(kind string) []types.Named {
	attrs := []types.Named{named("kind", types.Keyword(kind)), intsAttr("window_dimensions", w.size)}
	if !slices.Equal(w.strides, ones(len(w.size))) {
		attrs = append(attrs, intsAttr("window_strides", w.strides))
	}
	if !slices.Equal(w.dilations, ones(len(w.size))) {
		attrs = append(attrs, intsAttr("window_dilations", w.dilations))
	}
	if !slices.Equal(w.padding, make([][2]int, len(w.size))) {
		p := make(types.Array, len(w.padding))
		for i, e := range w.padding {
			p[i] = op.IntList(e[:]...)
		}
		attrs = append(attrs, named("padding", p))
	}
	return attrs
}

func reduceWindow(n *node) []*ir.Value {
	xs, inits, shape := n.inputs()
	w := n.windowOf(len(shape))
	out := n.outer(w, shape)
	if len(xs) == 1 {
		e := xs[0].Elem()
		combiner := n.combiner(0, e)
		if reduction(combiner, e) != "" && !n.rounded(combiner, e) {
			return n.pool(combiner, xs[0], inits[0], w, out)
		}
	}
	return n.windows(xs, inits, w, out)
}

// rounded reports whether results by a combiner of numbers of type e are rounded one after the other, as
// StableHLO's interpreter does, since the program compares them to the last place.
func (n *node) rounded(combiner string, e types.Elem) bool {
	return n.exact && e.IsFloat() && (combiner == "add" || combiner == "mul")
}

// maxInOrder is of how many numbers that is done where each takes a step of a loop.
const maxInOrder = 1 << 14

// pool is a reduction of windows that has a name.
func (n *node) pool(combiner string, x, init *ir.Value, w window, out []int) []*ir.Value {
	e := x.Elem()
	kind := reduction(combiner, e)
	wide := either(e == types.I1, types.UI8, widened(e))
	start, _ := neutral(combiner, e)
	y := n.convert(x, wide)
	if !slices.Equal(w.base, ones(len(w.base))) || slices.ContainsFunc(w.padding, func(p [2]int) bool { return p[0] < 0 || p[1] < 0 }) {
		y = n.convert(n.spread(x, n.constant(start), &w), wide)
	}
	switch name, dim, reverse := n.running(kind, w, n.shape(y)); {
	case name != "":
		attrs := []types.Named{intAttr("dim", dim)}
		if reverse {
			attrs = append(attrs, named("reverse", types.Bool(true)))
		}
		y = n.op(name, []*ir.Value{y}, attrs...)
	case product(out) == 0:
		y = n.trailing(n.convert(n.constant(start), wide), out)
	default:
		y = n.op("reduce_window", []*ir.Value{y}, w.attrs(kind)...)
	}
	y = n.convert(y, e)
	if isNeutral(combiner, init) {
		return []*ir.Value{y}
	}
	return n.computed([]*ir.Value{y, init}, func(in []*ir.Value) *ir.Value { return n.arithmetic(combiner, in[0], in[1]) })
}

// spread pads x by all that w asks for.
func (n *node) spread(x, value *ir.Value, w *window) *ir.Value {
	k := len(w.size)
	low, high, interior := make([]int, k), make([]int, k), make([]int, k)
	for i := range k {
		low[i], high[i], interior[i] = w.padding[i][0], w.padding[i][1], w.base[i]-1
	}
	w.padding, w.base = make([][2]int, k), ones(k)
	return n.padded(x, value, low, high, interior)
}

// running is the name of the op that reduces all elements up to each one, or from each
// one on: a window as long as the dimension. It is "" for other windows.
func (n *node) running(kind string, w window, shape []int) (name string, dim int, reverse bool) {
	names := map[string]string{"add": "cumsum", "max": "cummax", "mul": "cumprod"}
	dim = -1
	for i, size := range w.size {
		switch {
		case size == 1 && w.padding[i] == [2]int{} && w.strides[i] == 1:
		case dim < 0 && size > 1 && size == shape[i] && w.strides[i] == 1 && w.dilations[i] == 1:
			switch w.padding[i] {
			case [2]int{size - 1, 0}:
			case [2]int{0, size - 1}:
				reverse = true
			default:
				return "", 0, false
			}
			dim = i
		default:
			return "", 0, false
		}
	}
	if dim < 0 {
		return "", 0, false
	}
	return names[kind], dim, reverse
}

// windows is a reduction of windows by any function of any number of operands: the
// elements of all windows are gathered and reduced in order.
func (n *node) windows(xs, inits []*ir.Value, w window, out []int) []*ir.Value {
	positions := product(w.size)
	n.must(product(append(slices.Clone(out), positions)) < 1<<31, Unsupported, "%s of %d windows with %d elements by a function without a name is too large", n.name, product(out), positions)
	var carried, stacks []*ir.Value
	var at *ir.Value
	for i, x := range xs {
		v := w
		x = n.spread(x, inits[i], &v)
		if at == nil {
			at = n.windowIndex(v, n.shape(x), out)
		}
		carried = append(carried, n.trailing(inits[i], out))
		stack := n.gather(n.reshape(x, product(n.shape(x))), at, 0, 0)
		stacks = append(stacks, n.reshape(stack, append([]int{positions}, out...)...))
	}
	return n.scan(out, carried, stacks, func(now, next []*ir.Value) []*ir.Value {
		return n.runFor(0, out, slices.Concat(now, next))
	})
}

// windowIndex is the place in row-major order of each element of each window: the
// window's dimensions first, then those of the result.
func (n *node) windowIndex(w window, shape, out []int) *ir.Value {
	k := len(shape)
	var sum *ir.Value
	stride := 1
	for i := k - 1; i >= 0; i-- {
		for _, part := range []struct{ d, size, step int }{{i, w.size[i], w.dilations[i] * stride}, {k + i, out[i], w.strides[i] * stride}} {
			if part.size <= 1 && sum != nil {
				continue
			}
			at := n.stepped(types.I64, part.size, part.step)
			dims := ones(2 * k)
			dims[part.d] = part.size
			sum = n.plus(sum, n.reshape(at, dims...))
		}
		stride *= shape[i]
	}
	if sum == nil {
		sum = n.stepped(types.I64, 1, 1)
	}
	return n.trailing(sum, slices.Concat(w.size, out))
}

// stepped is 0, step, 2·step and so on.
func (n *node) stepped(e types.Elem, size, step int) *ir.Value {
	var attrs []types.Named
	if step != 1 {
		attrs = []types.Named{named("step", types.Float{V: float64(step)})}
	}
	return n.make("iota", nil, attrs, tensorOf(e, size)).Results[0]
}

// plus is the sum of two values, of which the first may be missing.
func (n *node) plus(x, y *ir.Value) *ir.Value {
	if x == nil {
		return y
	}
	return n.binary("add", x, y)
}

// selectAndScatter combines values with those where windows have the element that a comparison
// selects.
func selectAndScatter(n *node) []*ir.Value {
	n.takes(3)
	x, source, init := n.in[0], n.in[1], n.in[2]
	n.sameElems(n.in)
	w := n.windowOf(len(n.shape(x)))
	results, args := n.body(0, x.Elem(), x.Elem())
	kind := ""
	if len(results) == 1 {
		for direction, k := range map[string]string{"ge": "max", "gt": "max", "le": "min", "lt": "min"} {
			if isCompare(results[0], direction, args[0], args[1]) {
				kind = k
			}
		}
	}
	negative := slices.ContainsFunc(w.padding, func(p [2]int) bool { return p[0] < 0 || p[1] < 0 })
	rounded := n.rounded("add", x.Elem()) && product(n.shape(source)) <= maxInOrder
	if kind == "" || negative || rounded || n.combiner(1, x.Elem()) != "add" || !x.Elem().IsFloat() || widened(x.Elem()) != x.Elem() {
		return []*ir.Value{n.selectInOrder(x, source, init, w)}
	}
	y := n.op("select_and_scatter", []*ir.Value{x, source}, w.attrs(kind)...)
	if !isNeutral("add", init) {
		y = n.binary("add", y, init)
	}
	return []*ir.Value{y}
}

// selectInOrder is selectAndScatter by any two functions: it looks at the elements of all windows
// in order, passing over those in the padding, and then combines the values in order.
func (n *node) selectInOrder(x, source, init *ir.Value, w window) *ir.Value {
	shape := n.shape(x)
	out, positions := n.shape(source), product(w.size)
	n.must(product(append(slices.Clone(out), positions)) < 1<<31, Unsupported, "%s of %d windows with %d elements is too large", n.name, product(out), positions)
	if product(out) == 0 || product(shape) == 0 {
		return n.trailing(init, shape)
	}
	place := n.reshape(n.stepped(types.I64, product(shape), 1), shape...)
	outside := n.whole(types.I64, -1)
	padded := w
	place = n.spread(place, outside, &padded)
	values := n.spread(x, n.fill(x.Elem(), 0), &w)
	at := n.windowIndex(w, n.shape(values), out)
	stack := func(v *ir.Value) *ir.Value {
		return n.reshape(n.gather(n.reshape(v, product(n.shape(v))), at, 0, 0), append([]int{positions}, out...)...)
	}
	best := n.scan(out, []*ir.Value{n.trailing(n.fill(x.Elem(), 0), out), n.trailing(outside, out)}, []*ir.Value{stack(values), stack(place)},
		func(now, next []*ir.Value) []*ir.Value {
			none := func(v *ir.Value) *ir.Value { return n.compare("lt", v, n.whole(types.I64, 0)) }
			keep := n.oneFor(0, out, []*ir.Value{now[0], next[0]})
			keep = n.binary("or", none(next[1]), n.binary("and", keep, n.unary("not", none(now[1]))))
			return []*ir.Value{n.choose(keep, now[0], next[0]), n.choose(keep, now[1], next[1])}
		})
	steps := product(out)
	target, start := n.reshape(best[1], steps), n.reshape(n.trailing(init, shape), product(shape))
	y := n.scan(nil, []*ir.Value{start}, []*ir.Value{target, n.reshape(source, steps)}, func(now, next []*ir.Value) []*ir.Value {
		old := n.gather(now[0], n.binary("max", next[0], n.whole(types.I64, 0)), 0, 0)
		return []*ir.Value{n.op("scatter", []*ir.Value{now[0], next[0], n.oneFor(1, nil, []*ir.Value{old, next[1]})})}
	})
	return n.reshape(y[0], shape...)
}
