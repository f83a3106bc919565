package linalg

import (
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// without are the loops' names but for one.
func without(names []string, d int) []string {
	return append(append([]string{}, names[:d]...), names[d+1:]...)
}

func cut(shape []int64, d int) []int64 {
	return append(append([]int64{}, shape[:d]...), shape[d+1:]...)
}

// argmax carries the largest value and its place, -1 at first.
func argmax(c *call) (values, error) {
	e, shape, to := c.elem(0), sizes(c.in[0]), c.o.Results[0].Elem()
	d, ok := op.Dim(c.o, "dim", len(shape))
	if !ok {
		return nil, nil
	}
	names, reduces := loops(len(shape))
	reduces[d] = true
	rest := cut(shape, d)
	t := signless(e)
	outs := values{c.filled(tensorOf(t, rest...), c.number(t, 0)), c.filled(tensorOf(to, rest...), c.whole(to, -1))}
	y := c.generic(c.in, outs, [][]string{names, without(names, d), without(names, d)}, reduces, func(b builder, x values) values {
		better := b.two("arith.ori", b.is("gt", x[0], x[1], e.IsUnsigned()), b.is("eq", x[2], b.whole(to, -1), false))
		if e.IsFloat() {
			better = b.two("arith.ori", better, b.first(x[0], x[1]))
		}
		at := b.make("arith.index_cast", types.Scalar{Elem: to}, values{b.place(len(shape))[d]})
		return values{b.choose(better, x[0], x[1]), b.choose(better, at, x[2])}
	})
	return values{c.reshape(y[1], sizes(c.o.Results[0])...)}, nil
}

// sorted counts for each element those before it, and then finds the one that each
// place of the result has.
func sorted(c *call) (values, error) {
	e, shape := c.elem(0), sizes(c.in[0])
	d, ok := op.Dim(c.o, "dim", len(shape))
	if !ok {
		return nil, nil
	}
	down, topK := op.Bool(c.o, "descending"), c.o.Attr("k") != nil
	if topK {
		down = op.Bool(c.o, "largest")
	}
	// before is whether x stands before y, which is not equal.
	before := func(b builder, x, y *ir.Value) *ir.Value {
		kind := map[bool]string{false: "lt", true: "gt"}[down]
		v := b.is(kind, x, y, e.IsUnsigned())
		switch {
		case e.IsFloat() && topK && down: // a NaN is the largest
			v = b.two("arith.ori", v, b.first(x, y))
		case e.IsFloat():
			v = b.two("arith.ori", v, b.first(y, x))
		}
		return v
	}
	n := len(shape)
	names, reduces := loops(n + 1)
	reduces[n] = true
	other := append([]string{}, names[:n]...)
	other[d] = names[n]
	index := types.Index
	rank := c.generic(values{c.in[0], c.in[0]}, values{c.filled(tensorOf(types.I64, shape...), c.whole(types.I64, 0))}, [][]string{names[:n], other, names[:n]}, reduces, func(b builder, x values) values {
		at := b.place(n + 1)
		tie := b.two("arith.andi", b.is("lt", at[n], at[d], false), b.two("arith.xori", before(b, x[0], x[1]), b.whole(types.I1, -1)))
		ahead := b.two("arith.ori", before(b, x[1], x[0]), tie)
		return values{b.two("arith.addi", x[2], b.make("arith.extui", types.Scalar{Elem: types.I64}, values{ahead}))}
	})[0]
	outs := values{c.empty(c.result(0))}
	maps := [][]string{other, other, names[:n]}
	if len(c.o.Results) > 1 {
		outs, maps = append(outs, c.empty(c.result(1))), append(maps, names[:n])
	}
	return c.generic(values{c.in[0], rank}, outs, maps, reduces, func(b builder, x values) values {
		at := b.place(n + 1)
		here := b.is("eq", b.make("arith.index_cast", types.Scalar{Elem: index}, values{x[1]}), at[d], false)
		next := values{b.choose(here, x[0], x[2])}
		if len(x) > 3 {
			i := b.make("arith.index_cast", types.Scalar{Elem: x[3].Elem()}, values{at[n]})
			next = append(next, b.choose(here, i, x[3]))
		}
		return next
	}), nil
}

// kinds are the functions of running reductions.
var kinds = map[string]string{"cumsum": "add", "cumprod": "mul", "cummax": "max"}

// running carries the value so far along the innermost loop, that of the dimension.
func running(c *call) (values, error) {
	e, shape := c.elem(0), sizes(c.in[0])
	d, ok := op.Dim(c.o, "dim", len(shape))
	if !ok {
		return nil, nil
	}
	kind, acc := kinds[op.Of(c.o).Name], sum(c.o, e)
	y := c.nest(cut(shape, d), values{c.empty(c.result(0))}, func(b builder, at, carried values) values {
		start := b.neutral(kind, e, acc)
		return b.nest(shape[d:d+1], values{carried[0], start}, func(b builder, i, carried values) values {
			k := i[0]
			if op.Bool(c.o, "reverse") {
				k = b.two("arith.subi", b.index(shape[d]-1), k)
			}
			place := append(append(append(values{}, at[:d]...), k), at[d:]...)
			next := b.combine(kind, e, carried[1], b.cast(b.extract(c.in[0], place...), e, acc))
			v := next
			if op.Bool(c.o, "exclusive") {
				v = carried[1]
			}
			return values{b.insert(b.cast(v, acc, e), carried[0], place...), next}
		})[:1]
	})
	return y, nil
}

// scatter combines each update with the element that it replaces, in their order.
func scatter(c *call) (values, error) {
	e, shape, kind := c.elem(0), sizes(c.in[0]), op.Str(c.o, "kind")
	d, ok := op.Dim(c.o, "dim", len(shape))
	batch := int(op.Int(c.o, "batch_dims"))
	if !ok {
		return nil, nil
	}
	if !some(shape) {
		return c.in[:1], nil
	}
	acc := signless(e)
	if kind != "set" {
		acc = wide(e)
	}
	count := len(sizes(c.in[1])) - batch
	y := c.nest(sizes(c.in[2]), values{c.as(c.in[0], e, acc)}, func(b builder, at, carried values) values {
		where := append(append(values{}, at[:batch]...), at[d:d+count]...)
		i := b.long(b.extract(c.in[1], where...), c.elem(1))
		n := b.whole(types.I64, shape[d])
		inside := b.is("lt", i, n, true) // a negative one is large without its sign
		safe := b.make("arith.index_cast", types.Scalar{Elem: types.Index}, values{b.choose(inside, i, b.whole(types.I64, 0))})
		place := append(append(append(values{}, at[:d]...), safe), at[d+count:]...)
		old := b.extract(carried[0], place...)
		v := b.cast(b.extract(c.in[2], at...), e, acc)
		if kind != "set" {
			v = b.combine(kind, e, old, v)
		}
		return values{b.insert(b.choose(inside, v, old), carried[0], place...)}
	})[0]
	return values{c.as(y, acc, e)}, nil
}
