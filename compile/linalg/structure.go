package linalg

import (
	"math"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// call is one op that is exported.
type call struct {
	*exporter
	builder
	o  *ir.Op
	in values // its operands
}

// structures are the ops that need more than the registry says, by name. A result of
// nil is for what can only be written as what the op expands to.
var structures map[string]func(c *call) (values, error)

func init() {
	structures = map[string]func(c *call) (values, error){
		"constant": constant, "empty": empty, "iota": counting, "copy": same, "reshard": whole,
		"einsum": contraction, "matmul": contraction, "convolution": convolution,
		"reduce": reduction, "reduce_window": pooling, "select_and_scatter": unpooling,
		"argmax": argmax, "sort": sorted, "top_k": sorted,
		"cumsum": running, "cumprod": running, "cummax": running,
		"scatter": scatter, "map": mapped, "kernel": inlined, "if": branch, "while": loop,
	}
}

func (c *call) elem(i int) types.Elem { return c.o.Operands[i].Elem() }

// result is the type of result i.
func (c *call) result(i int) *types.Tensor {
	return tensorOf(signless(c.o.Results[i].Elem()), sizes(c.o.Results[i])...)
}

func same(c *call) (values, error) {
	return values{c.view(c.in[0], c.result(0), all(c.result(0).Rank()))}, nil
}

// whole is the operand: MLIR's own dialects are for one device.
func whole(c *call) (values, error) { return values{c.in[0]}, nil }

func all(n int) []op.Place {
	at := make([]op.Place, n)
	for d := range at {
		at[d] = op.Place{Dim: d, Scale: 1}
	}
	return at
}

func constant(c *call) (values, error) {
	e := c.o.Results[0].Elem()
	v := c.o.Attr("value")
	if _, scalar := c.o.Results[0].Type.(types.Scalar); scalar {
		if n, ok := v.(types.Int); ok && !e.IsFloat() {
			return values{c.whole(signless(e), n.V)}, nil
		}
		if t, ok := v.(types.Bool); ok {
			return values{c.whole(e, map[bool]int64{true: 1}[bool(t)])}, nil
		}
		n, _ := types.NumberOf(v)
		return values{c.number(signless(e), n)}, nil
	}
	d, ok := v.(*types.Dense)
	if !ok {
		return nil, refuse(c.o, "a constant without a list of elements")
	}
	d, err := d.Inline()
	if err != nil {
		return nil, refuse(c.o, "%v", err)
	}
	t := c.result(0)
	if t.Elem != e {
		data := d.Bytes()
		if e.Packed() {
			if data, err = d.All(); err != nil {
				return nil, refuse(c.o, "%v", err)
			}
		}
		d = types.DenseOf(t, data)
	}
	return values{c.make("arith.constant", t, nil, attr("value", d))}, nil
}

func empty(c *call) (values, error) { return values{c.empty(c.result(0))}, nil }

func counting(c *call) (values, error) {
	t, e := c.result(0), c.o.Results[0].Elem()
	d, ok := op.Dim(c.o, "dim", t.Rank())
	if !ok {
		return nil, nil
	}
	start, step := op.Float(c.o, "start"), op.Float(c.o, "step")
	return values{c.each(t, func(b builder, at values) *ir.Value {
		i := b.make("arith.index_cast", types.Scalar{Elem: types.I64}, values{at[d]})
		if !e.IsFloat() {
			i = b.two("arith.addi", b.two("arith.muli", i, b.whole(types.I64, int64(step))), b.whole(types.I64, int64(start)))
			return b.cast(i, types.I64, e)
		}
		w := wide(e)
		v := b.two("arith.mulf", b.cast(i, types.I64, w), b.number(w, step))
		return b.cast(b.two("arith.addf", v, b.number(w, start)), w, e)
	})}, nil
}

// sum is the element type in which sums of elements of e are kept.
func sum(o *ir.Op, e types.Elem) types.Elem {
	if op.Str(o, "accumulate") == "f16" {
		return signless(e)
	}
	return wide(e)
}

// contraction is a linalg.generic over the op's iteration space.
func contraction(c *call) (values, error) {
	it := op.Of(c.o).Maps(c.o)
	if it == nil {
		return nil, nil
	}
	maps := affine(it.Operands, it.Results)
	return c.contract(c.in, maps, it.Reduces, sizes(c.o.Results[0]))
}

// contract sums the products of ins.
func (c *call) contract(ins values, maps [][]string, reduces []bool, shape []int64) (values, error) {
	e, to := c.elem(0), c.o.Results[0].Elem()
	acc := sum(c.o, to)
	y := c.filled(tensorOf(acc, shape...), c.number(acc, 0))
	y = c.generic(ins, values{y}, maps, reduces, func(b builder, x values) values {
		product := b.cast(x[0], e, acc)
		for _, v := range x[1 : len(x)-1] {
			product = b.combine("mul", e, product, b.cast(v, e, acc))
		}
		return values{b.combine("add", e, x[len(x)-1], product)}
	})[0]
	return values{c.as(y, acc, to)}, nil
}

// neutral is the neutral element of a kind of reduction in type t for elements of e.
func (b builder) neutral(kind string, e, t types.Elem) *ir.Value {
	bits := e.Bits()
	if e == types.I1 {
		bits = 1
	}
	switch {
	case kind == "add":
		return b.number(t, 0)
	case kind == "mul":
		return b.number(t, 1)
	case e.IsFloat():
		return b.number(t, math.Inf(map[string]int{"max": -1, "min": 1}[kind]))
	case e.IsUnsigned():
		return b.whole(t, map[string]int64{"max": 0, "min": -1}[kind])
	case kind == "max":
		return b.whole(t, -1<<(bits-1))
	}
	return b.whole(t, 1<<(bits-1)-1)
}

// reduction reduces whole dimensions, by a kind or by its region.
func reduction(c *call) (values, error) {
	e, kind := c.elem(0), op.Str(c.o, "kind")
	shape := sizes(c.in[0])
	dims, ok := op.Dims(c.o, "dims", len(shape))
	if !ok {
		return nil, nil
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
	acc, first := sum(c.o, e), (*ir.Value)(nil)
	if kind == "" {
		acc, first = signless(e), c.extract(c.in[1])
	} else {
		first = c.neutral(kind, e, acc)
	}
	var err error
	y := c.generic(c.in[:1], values{c.filled(tensorOf(acc, rest...), first)}, [][]string{names, kept}, reduces, func(b builder, x values) values {
		if kind != "" {
			return values{b.combine(kind, e, x[1], b.cast(x[0], e, acc))}
		}
		var out values
		out, err = c.region(b, c.o.Body(0), values{x[1], x[0]})
		return out
	})[0]
	if err != nil {
		return nil, err
	}
	return values{c.reshape(c.as(y, acc, c.o.Results[0].Elem()), sizes(c.o.Results[0])...)}, nil
}

// region writes the ops of a block in place, with args for its arguments, and returns
// what it yields.
func (c *call) region(b builder, from *ir.Block, args values) (values, error) {
	for i, a := range from.Args {
		c.env[a] = args[i]
	}
	if err := c.block(b, from, "scf.yield"); err != nil {
		return make(values, len(from.Terminator().Operands)), err
	}
	last := b.Block.Terminator()
	out := last.Operands
	ir.Erase(last)
	b.Index--
	return out, nil
}

func mapped(c *call) (values, error) {
	it := op.Of(c.o).Maps(c.o)
	var outs values
	for i := range c.o.Results {
		outs = append(outs, c.empty(c.result(i)))
	}
	var err error
	y := c.generic(c.in, outs, affine(it.Operands, it.Results), it.Reduces, func(b builder, x values) values {
		var out values
		out, err = c.region(b, c.o.Body(0), x)
		return out
	})
	return y, err
}

func inlined(c *call) (values, error) { return c.region(c.builder, c.o.Body(0), nil) }

func branch(c *call) (values, error) {
	o := c.Op("scf.if", values{c.extract(c.in[0])}, nil, c.types()...)
	for i := range 2 {
		block := o.AddRegion()
		if c.o.Body(i) == nil {
			(builder{&ir.Builder{Block: block}}).Op("scf.yield", nil, nil)
			continue
		}
		if err := c.block(builder{&ir.Builder{Block: block}}, c.o.Body(i), "scf.yield"); err != nil {
			return nil, err
		}
	}
	return o.Results, nil
}

func (c *call) types() (out []types.Type) {
	for i := range c.o.Results {
		out = append(out, c.result(i))
	}
	return out
}

func loop(c *call) (values, error) {
	o := c.Op("scf.while", c.in, nil, c.types()...)
	for i, from := range []*ir.Block{c.o.Body(0), c.o.Body(1)} {
		block := o.AddRegion(o.Results...)
		b := builder{&ir.Builder{Block: block}}
		out, err := c.region(b, from, block.Args)
		if err != nil {
			return nil, err
		}
		if i == 0 {
			b.Op("scf.condition", append(values{b.extract(out[0])}, block.Args...), nil)
		} else {
			b.Op("scf.yield", out, nil)
		}
	}
	return o.Results, nil
}
