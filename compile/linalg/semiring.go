package linalg

import (
	"dmir/dialect/ir"
	"dmir/dialect/op"
)

// overStored reduces what x stores, and nothing else, into out.
func (b builder) overStored(kind string, x, out, identity *ir.Value, maps [][]string, reduces []bool) *ir.Value {
	e := out.Elem()
	return b.generic(values{x}, values{out}, maps, reduces, func(in builder, v values) values {
		return values{in.semiring("reduce", e, values{v[0], v[1], identity}, func(in builder, v values) *ir.Value { return in.combine(kind, e, v[0], v[1]) })}
	})[0]
}

// reducedStored is a product, a maximum or a minimum of what a tensor stores.
func reducedStored(c *call) (values, error) {
	e, kind := c.elem(0), op.Str(c.o, "kind")
	shape := sizes(c.in[0])
	dims, ok := op.Dims(c.o, "dims", len(shape))
	if !ok {
		return nil, refuse(c.o, "dm.reduce without its dimensions")
	}
	names, reduces := loops(len(shape))
	for _, d := range dims {
		reduces[d] = true
	}
	var kept []string
	var rest []int64
	for d, r := range reduces {
		if !r {
			kept, rest = append(kept, names[d]), append(rest, shape[d])
		}
	}
	x, acc := c.in[0], signless(e)
	if wide(e) != e { // rounded once
		acc = wide(e)
		x = c.mapStored(x, stored(c.o.Operands[0].Tensor(), acc), func(in builder, x *ir.Value) *ir.Value { return in.cast(x, e, acc) })
	}
	out := c.filled(tensorOf(acc, rest...), c.neutral(kind, e, acc))
	y := c.overStored(kind, x, out, c.neutral(kind, e, acc), [][]string{names, kept}, reduces)
	return values{c.reshape(c.as(y, acc, c.o.Results[0].Elem()), sizes(c.o.Results[0])...)}, nil
}

// aligned is dm.merge: each of its results is a sparse_tensor.binary of its own, whose regions say what it is of both operands, of
// the first and of the second.
func aligned(c *call) (values, error) {
	keeps := op.Merges(op.Str(c.o, "kind"))
	var out values
	for k, r := range c.o.Results {
		t := r.Tensor()
		e := signless(t.Elem)
		names, parallel := loops(t.Rank())
		number := func(v float64) func(in builder, x values) *ir.Value {
			return func(in builder, _ values) *ir.Value { return in.number(e, v) }
		}
		argument := func(i int) func(in builder, x values) *ir.Value {
			return func(_ builder, x values) *ir.Value { return x[i] }
		}
		of := [3][3]func(in builder, x values) *ir.Value{
			{argument(0), argument(0), number(0)}, {argument(1), number(0), argument(0)}, {number(op.MergeCodes[0]), number(op.MergeCodes[1]), number(op.MergeCodes[2])},
		}[k]
		for i := range of {
			if !keeps[i] {
				of[i] = nil
			}
		}
		out = append(out, c.generic(c.in, values{c.empty(stored(t, e))}, [][]string{names, names, names}, parallel, func(in builder, x values) values {
			return values{in.semiring("binary", e, x[:2], of[:]...)}
		})[0])
	}
	return out, nil
}
