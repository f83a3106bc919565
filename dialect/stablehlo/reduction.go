package stablehlo

import (
	"slices"
	"strings"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
	"dmir/syntax/ast"
)

// body is the block of the op's only region, with its arguments in the order of the
// generic form: all first ones, then all second ones.
func (c *call) body() (*ir.Block, error) {
	if len(c.o.Regions) != 1 || len(c.o.Regions[0].Blocks) != 1 {
		return nil, invalid("%s has no region of one block", c.o.Name)
	}
	b := c.o.Regions[0].Blocks[0]
	if t := c.tree(); t != nil && t.Form == ast.Custom && len(b.Args)%2 == 0 && len(b.Args) > 2 {
		// reducer(%a: T, %b: T) (%c: U, %d: U): the two of each input stand together.
		n := len(b.Args) / 2
		args := make([]*ir.Value, 2*n)
		for i, a := range b.Args {
			a.Index = i/2 + i%2*n
			args[a.Index] = a
		}
		b.Args = args
	}
	return b, nil
}

// reducers splits the operands into inputs and initial values.
func (c *call) reducers() (xs, inits []*ir.Value, err error) {
	n := len(c.o.Operands) / 2
	if n == 0 || 2*n != len(c.o.Operands) {
		return nil, nil, invalid("%s needs an initial value for each input", c.o.Name)
	}
	xs, inits = c.o.Operands[:n], c.o.Operands[n:]
	if len(c.words) > 0 && strings.Contains(c.words[0], "init:") { // (%x init: %a), (%y init: %b)
		xs, inits = nil, nil
		for i := 0; i < 2*n; i += 2 {
			xs, inits = append(xs, c.in(i)), append(inits, c.in(i+1))
		}
	}
	want, err := shapeOf(xs[0])
	for i, x := range xs {
		shape, err1 := shapeOf(x)
		none, err2 := shapeOf(inits[i])
		if err = join(err, err1, err2); err == nil && (!slices.Equal(shape, want) || len(none) > 0) {
			err = invalid("the inputs of %s differ in shape, or an initial value is no scalar", c.o.Name)
		}
	}
	return xs, inits, err
}

func convertReduce(c *call) ([]*ir.Value, error) {
	xs, inits, err := c.reducers()
	if err != nil {
		return nil, err
	}
	at, err := c.ints("dimensions", nil)
	text := c.m.Src.Slice(c.o.Span)
	if at == nil && err == nil {
		// … applies stablehlo.add across dimensions = [0]
		_, list, _ := strings.Cut(text, "dimensions = ")
		if end := strings.IndexByte(list, ']'); end >= 0 {
			at, err = c.numbers(list[:end+1])
		}
	}
	if err != nil {
		return nil, err
	}
	shape, err := shapeOf(xs[0])
	if err != nil {
		return nil, err
	}
	for _, d := range at {
		if d < 0 || d >= len(shape) {
			return nil, invalid("dimension %d of %d", d, len(shape))
		}
	}
	if _, name, found := strings.Cut(text, " applies "); found && len(c.o.Regions) == 0 {
		return c.reduceNamed(name, xs, inits, at)
	}
	b, err := c.body()
	if err != nil {
		return nil, err
	}
	if kind := combiner(b); len(xs) == 1 && kind != "" && kind != "set" {
		v, err := c.reduceBy(kind, xs[0], inits[0], at)
		return []*ir.Value{v}, err
	}
	return c.reduceTree(b, xs, inits, at)
}

func (c *call) reduceNamed(text string, xs, inits []*ir.Value, at []int) ([]*ir.Value, error) {
	name, _, _ := strings.Cut(strings.TrimSpace(text), " ")
	_, name, _ = strings.Cut(name, ".")
	kind := binary[name]
	if to := logical[kind]; xs[0].Elem() == types.I1 && to != "" {
		kind = to
	}
	if !slices.Contains([]string{"add", "mul", "max", "min", "and", "or"}, kind) || len(xs) != 1 {
		return nil, unsupported("a reduction by %s", name)
	}
	v, err := c.reduceBy(kind, xs[0], inits[0], at)
	return []*ir.Value{v}, err
}

// boolean is the reduction that stands for and, or of truth values.
var boolean = map[string]string{"and": "min", "or": "max"}

// reduceBy reduces x by a named function.
func (c *call) reduceBy(kind string, x, init *ir.Value, at []int) (*ir.Value, error) {
	e := x.Elem()
	named1 := kind
	if to := boolean[kind]; to != "" {
		if e != types.I1 {
			return nil, unsupported("a reduction by %s of %s", kind, e)
		}
		named1 = to
		x = c.b.Convert(x, types.I8)
	}
	v := x
	if len(at) > 0 {
		v = c.make("reduce", []*ir.Value{x}, named("kind", named1, "dims", at))
	}
	if v.Elem() != e {
		v = c.b.Convert(v, e)
	}
	if isNeutral(init, kind) {
		return v, nil
	}
	return c.b.Binary(kind, init, v), nil
}

// reduceTree reduces by any associative function: it combines neighbours until one
// element is left in each reduced dimension.
func (c *call) reduceTree(b *ir.Block, xs, inits []*ir.Value, at []int) ([]*ir.Value, error) {
	xs = slices.Clone(xs)
	for _, d := range at {
		for {
			shape, err := shapeOf(xs[0])
			if err != nil {
				return nil, err
			}
			n := shape[d]
			if n <= 1 {
				if n == 0 {
					return nil, unsupported("a reduction of nothing by a region")
				}
				break
			}
			part := func(x *ir.Value, from, to, by int) *ir.Value {
				start, limit, step := make([]int, len(shape)), slices.Clone(shape), make([]int, len(shape))
				for i := range step {
					step[i] = 1
				}
				start[d], limit[d], step[d] = from, to, by
				return c.slice(x, start, limit, step)
			}
			var left, right []*ir.Value
			for _, x := range xs {
				left, right = append(left, part(x, 0, n&^1, 2)), append(right, part(x, 1, n&^1, 2))
			}
			next, err := c.inline(b, append(left, right...))
			if err != nil {
				return nil, err
			}
			if n%2 == 1 {
				for i, x := range xs {
					next[i] = c.concatenate(d, next[i], part(x, n-1, n, 1))
				}
			}
			if c.b.Err() != nil {
				return nil, c.b.Err()
			}
			for i := range next {
				if s, err := shapeOf(next[i]); err != nil || len(s) != len(shape) || s[d] != (n+1)/2 {
					return nil, invalid("the region does not combine element by element")
				}
			}
			xs = next
		}
	}
	shape, _ := shapeOf(xs[0])
	var rest []int
	for i, n := range shape {
		if !slices.Contains(at, i) {
			rest = append(rest, n)
		}
	}
	var args []*ir.Value
	for i := range xs {
		xs[i] = c.b.Reshape(xs[i], dims(rest)...)
	}
	for _, v := range inits {
		args = append(args, c.broadcast(v, nil, rest))
	}
	return c.inline(b, append(args, xs...))
}

// window is what a moving window looks at.
type window struct {
	size, stride, dilation []int
	low, high              []int
}

func (c *call) window(rank int) (w window, base []int, err error) {
	ones := slices.Repeat([]int{1}, rank)
	var e1, e2, e3, e4, e5 error
	w.size, e1 = c.ints("window_dimensions", nil)
	if w.size == nil && e1 == nil {
		w.size = ones
	}
	w.stride, e2 = c.ints("window_strides", ones)
	w.dilation, e3 = c.ints("window_dilations", ones)
	base, e4 = c.ints("base_dilations", ones)
	pads, e5 := c.ints("padding", make([]int, 2*rank))
	if err = join(e1, e2, e3, e4, e5); err != nil {
		return w, nil, err
	}
	if len(w.size) != rank || len(w.stride) != rank || len(w.dilation) != rank || len(base) != rank || len(pads) != 2*rank {
		return w, nil, invalid("the window has not %d dimensions", rank)
	}
	for i := range rank {
		w.low, w.high = append(w.low, pads[2*i]), append(w.high, pads[2*i+1])
		if w.size[i] < 1 || w.stride[i] < 1 || w.dilation[i] < 1 || base[i] < 1 {
			return w, nil, invalid("a number of the window is not positive")
		}
	}
	return w, base, nil
}

func (w window) attrs() []types.Named {
	attrs := named("window_dimensions", w.size)
	plain := func(ns []int) bool { return !slices.ContainsFunc(ns, func(n int) bool { return n != 1 }) }
	if !plain(w.stride) {
		attrs = append(attrs, named("window_strides", w.stride)...)
	}
	if !plain(w.dilation) {
		attrs = append(attrs, named("window_dilations", w.dilation)...)
	}
	if nonzero(w.low) || nonzero(w.high) {
		pairs := types.Array{}
		for i := range w.low {
			pairs = append(pairs, op.IntList(w.low[i], w.high[i]))
		}
		attrs = append(attrs, types.Named{Name: "padding", Value: pairs})
	}
	return attrs
}

func convertReduceWindow(c *call) ([]*ir.Value, error) {
	xs, inits, err := c.reducers()
	if err != nil {
		return nil, err
	}
	shape, err := shapeOf(xs[0])
	if err != nil {
		return nil, err
	}
	w, base, err := c.window(len(shape))
	if err != nil {
		return nil, err
	}
	b, err := c.body()
	if err != nil {
		return nil, err
	}
	kind := combiner(b)
	plain := len(xs) == 1 && slices.Contains([]string{"add", "mul", "max", "min"}, kind) && isNeutral(inits[0], kind) && xs[0].Elem() != types.I1
	padded := slices.Clone(xs)
	interior := make([]int, len(base))
	for i, d := range base {
		interior[i] = d - 1
	}
	if !plain || nonzero(interior) || slices.Min(append(slices.Clone(w.low), 0)) < 0 || slices.Min(append(slices.Clone(w.high), 0)) < 0 {
		for i, x := range xs {
			v, err := c.padded(x, inits[i], w.low, w.high, interior)
			if err != nil {
				return nil, err
			}
			padded[i] = v[0]
		}
		w.low, w.high = make([]int, len(base)), make([]int, len(base))
	}
	if plain {
		if v := c.running(kind, padded[0], w); v != nil {
			return one(v)
		}
		return one(c.make("reduce_window", padded, append(named("kind", kind), w.attrs()...)))
	}
	return c.reduceTaps(b, padded, inits, w)
}

// runs are the running reductions that the dialect has.
var runs = map[string]string{"add": "cumsum", "mul": "cumprod", "max": "cummax"}

// running recognizes a running reduction: a window as long as the dimension that
// ends, or begins, at each element.
func (c *call) running(kind string, x *ir.Value, w window) *ir.Value {
	shape, _ := shapeOf(x)
	at, back := -1, false
	for i, n := range shape {
		switch {
		case w.size[i] == 1 && w.stride[i] == 1 && w.low[i] == 0 && w.high[i] == 0:
		case at < 0 && n > 1 && w.size[i] == n && w.stride[i] == 1 && w.dilation[i] == 1 && w.low[i]+w.high[i] == n-1 && w.low[i]*w.high[i] == 0:
			at, back = i, w.high[i] > 0
		default:
			return nil
		}
	}
	if at < 0 || runs[kind] == "" {
		return nil
	}
	attrs := named("dim", at)
	if back {
		attrs = append(attrs, named("reverse", true)...)
	}
	return c.make(runs[kind], []*ir.Value{x}, attrs)
}

// maxTaps is the number of elements of a window up to which it is written out.
const maxTaps = 256

// reduceTaps reduces a moving window by any function: the elements at each place of
// the window are a slice, and slices are combined in order.
func (c *call) reduceTaps(b *ir.Block, xs, inits []*ir.Value, w window) ([]*ir.Value, error) {
	shape, err := shapeOf(xs[0])
	if err != nil {
		return nil, err
	}
	taps := 1
	out := make([]int, len(shape))
	for i, n := range shape {
		taps *= w.size[i]
		if span := (w.size[i]-1)*w.dilation[i] + 1; n >= span {
			out[i] = (n-span)/w.stride[i] + 1
		}
	}
	if taps > maxTaps {
		return nil, unsupported("a window of %d elements that is reduced by a region", taps)
	}
	acc := make([]*ir.Value, len(xs))
	for i, v := range inits {
		acc[i] = c.broadcast(v, nil, out)
	}
	pos := make([]int, len(shape))
	for range taps {
		start, limit := make([]int, len(shape)), make([]int, len(shape))
		for i := range shape {
			start[i] = pos[i] * w.dilation[i]
			limit[i] = min(shape[i], start[i]+(out[i]-1)*w.stride[i]+1)
		}
		args := slices.Clone(acc)
		for _, x := range xs {
			args = append(args, c.slice(x, start, limit, w.stride))
		}
		if acc, err = c.inline(b, args); err != nil {
			return nil, err
		}
		if c.b.Err() != nil || len(acc) != len(inits) {
			return nil, invalid("the region does not combine element by element")
		}
		for i := len(pos) - 1; i >= 0; i-- {
			if pos[i]++; pos[i] < w.size[i] {
				break
			}
			pos[i] = 0
		}
	}
	return acc, nil
}

func convertSelectAndScatter(c *call) ([]*ir.Value, error) {
	if err := c.need(3); err != nil {
		return nil, err
	}
	if len(c.o.Regions) != 2 || len(c.o.Regions[0].Blocks) != 1 || len(c.o.Regions[1].Blocks) != 1 {
		return nil, invalid("%s needs two regions", c.o.Name)
	}
	x, source, init := c.in(0), c.in(1), c.in(2)
	shape, err := shapeOf(x)
	if err != nil {
		return nil, err
	}
	w, _, err := c.window(len(shape))
	if err != nil {
		return nil, err
	}
	kind := ""
	sel := c.o.Regions[0].Blocks[0]
	if last := sel.Terminator(); last != nil && len(last.Operands) == 1 && len(sel.Args) == 2 {
		if inner := c.peek(last.Operands[0], "compare"); inner != nil && slices.Equal(inner.o.Operands, sel.Args) {
			kind = map[string]string{"GE": "max", "GT": "max", "LE": "min", "LT": "min"}[inner.word("comparison_direction")]
		}
	}
	if kind == "" || combiner(c.o.Regions[1].Blocks[0]) != "add" {
		return nil, unsupported("select_and_scatter with these regions")
	}
	v := c.make("select_and_scatter", []*ir.Value{x, source}, append(named("kind", kind), w.attrs()...))
	if !isNeutral(init, "add") {
		v = c.b.Binary("add", v, init)
	}
	return one(v)
}
