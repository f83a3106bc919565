package stablehlo

import (
	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// convertSort sorts by the first operand, along with it the others, where the
// comparator compares two elements of one operand.
func convertSort(c *call) ([]*ir.Value, error) {
	d, err := c.int("dimension", -1)
	if err != nil {
		return nil, err
	}
	b, err := c.body()
	if err != nil {
		return nil, err
	}
	xs := c.o.Operands
	shape, err := shapeOf(xs[0])
	if err != nil {
		return nil, err
	}
	if d < 0 {
		d += len(shape)
	}
	if d < 0 || d >= len(shape) {
		return nil, invalid("dimension %d of %d", d, len(shape))
	}
	key, descending, ok := c.comparator(b)
	if !ok || key >= len(xs) {
		return nil, unsupported("a sort by this comparator")
	}
	x := xs[key]
	if x.Elem() == types.I1 {
		x = c.b.Convert(x, types.I8)
	}
	attrs := named("dim", d)
	if descending {
		attrs = append(attrs, named("descending", true)...)
	}
	if len(xs) == 1 {
		return one(c.b.Convert(c.make("sort", []*ir.Value{x}, attrs, x.Type), xs[key].Elem()))
	}
	at := &types.Tensor{Elem: types.I64, Shape: dims(shape)}
	o := c.b.Make("sort", []*ir.Value{x}, attrs, x.Type, at)
	if o == nil {
		return nil, unsupported("a sort of %s", x.Type)
	}
	out := make([]*ir.Value, len(xs))
	for i, v := range xs {
		if i == key {
			out[i] = c.b.Convert(o.Results[0], v.Elem())
		} else {
			out[i] = c.along(v, o.Results[1], d)
		}
	}
	return out, nil
}

// along takes the elements of x along dimension d at the positions in at, of x's shape.
func (c *call) along(x, at *ir.Value, d int) *ir.Value {
	shape, _ := shapeOf(x)
	flat := at
	stride := product(shape)
	var sum *ir.Value
	for i, n := range shape {
		if n > 0 {
			stride /= n
		}
		p := flat
		if i != d {
			if n == 1 {
				continue
			}
			p = c.iota(types.I64, shape, i)
		}
		if stride != 1 {
			p = c.b.Binary("mul", p, c.scalar(types.I64, float64(stride)))
		}
		if sum == nil {
			sum = p
		} else {
			sum = c.b.Binary("add", sum, p)
		}
	}
	return c.make("gather", []*ir.Value{c.b.Reshape(x, dims([]int{product(shape)})...), sum}, named("dim", 0))
}

// comparator recognizes a region that compares its first two arguments, or two later
// ones: the number of the operand that they are of, and the order.
func (c *call) comparator(b *ir.Block) (key int, descending, ok bool) {
	last := b.Terminator()
	if last == nil || len(last.Operands) != 1 || last.Operands[0].Op == nil {
		return 0, false, false
	}
	o := last.Operands[0].Op
	inner := &call{converter: c.converter, o: o, name: foreign(o)}
	if inner.name != "compare" || len(o.Operands) != 2 || inner.read() != nil {
		return 0, false, false
	}
	x, y := canonical(o.Operands[0]), canonical(o.Operands[1])
	if x == nil || y == nil || x.Block != b || y.Block != b || x == y || x.Index/2 != y.Index/2 {
		return 0, false, false
	}
	direction := inner.word("comparison_direction")
	less := direction == "LT" || direction == "LE"
	greater := direction == "GT" || direction == "GE"
	if !less && !greater {
		return 0, false, false
	}
	if x.Index > y.Index {
		less = !less
	}
	return x.Index / 2, !less, true
}

// canonical is the argument of a region that v is, but for the sign of zero and the
// bits of NaN, nil where it is something else.
func canonical(v *ir.Value) *ir.Value {
	for range 4 { // as JAX writes it: two choices, one for zero and one for NaN
		o := v.Op
		if o == nil {
			return v
		}
		if foreign(o) != "select" || len(o.Operands) != 3 {
			return nil
		}
		test, chosen := o.Operands[0].Op, o.Operands[1].Op
		if test == nil || foreign(test) != "compare" || chosen == nil || foreign(chosen) != "constant" {
			return nil
		}
		v = o.Operands[2]
	}
	return nil
}
