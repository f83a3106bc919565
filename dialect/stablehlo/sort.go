package stablehlo

import (
	"math"
	"slices"

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
	if last == nil || len(last.Operands) != 1 {
		return 0, false, false
	}
	inner := c.peek(last.Operands[0], "compare")
	if inner == nil || len(inner.o.Operands) != 2 {
		return 0, false, false
	}
	x, y := c.canonical(inner.in(0)), c.canonical(inner.in(1))
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
// bits of NaN, nil where it is something else. JAX writes this as two choices: 0 where
// the argument equals 0, NaN where it differs from itself.
func (c *converter) canonical(v *ir.Value) *ir.Value {
	var tested []*ir.Value
	for v.Op != nil {
		o := v.Op
		if foreign(o) != "select" || len(o.Operands) != 3 {
			return nil
		}
		test, chosen := c.peek(o.Operands[0], "compare"), c.number(o.Operands[1])
		if test == nil || len(test.o.Operands) != 2 || chosen == nil {
			return nil
		}
		x, y := test.in(0), test.in(1)
		switch test.word("comparison_direction") {
		case "EQ":
			if zero := c.number(y); zero == nil || *zero != 0 || *chosen != 0 {
				return nil
			}
		case "NE":
			if x != y || !math.IsNaN(*chosen) {
				return nil
			}
		default:
			return nil
		}
		tested = append(tested, x)
		v = o.Operands[2]
	}
	if slices.ContainsFunc(tested, func(x *ir.Value) bool { return x != v }) {
		return nil
	}
	return v
}

// peek reads the op of some name that makes v, nil where another one does.
func (c *converter) peek(v *ir.Value, name string) *call {
	if v.Op == nil || foreign(v.Op) != name {
		return nil
	}
	x := &call{converter: c, o: v.Op, name: name}
	if x.read() != nil {
		return nil
	}
	return x
}

// number is the number that the constant v is, nil for other values.
func (c *converter) number(v *ir.Value) *float64 {
	x := c.peek(v, "constant")
	if x == nil {
		return nil
	}
	d, err := x.dense()
	if err != nil || d.Len() == 0 || !d.Type.Elem.IsFloat() {
		return nil
	}
	n := d.Float(0)
	return &n
}
