package stablehlo

import (
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// unsigned is the unsigned type of as many bits.
var unsigned = map[types.Elem]types.Elem{
	types.I64: types.UI64, types.I32: types.UI32, types.I16: types.UI16, types.I8: types.UI8,
	types.UI64: types.UI64, types.UI32: types.UI32, types.UI16: types.UI16, types.UI8: types.UI8,
}

// power is the constant 2ⁿ of an integer type.
func (c *call) power(e types.Elem, n int) *ir.Value {
	t := &types.Tensor{Elem: e}
	return c.make("constant", nil, named("value", types.Attr(types.IntOf(t, 1<<n))), t)
}

// shiftBy is x shifted by a number of bits that is less than its own: to the left a
// product, which wraps, to the right a quotient of unsigned numbers.
func (c *call) shiftBy(x *ir.Value, n int, left bool) *ir.Value {
	switch {
	case n == 0:
		return x
	case left:
		return c.b.Binary("mul", x, c.power(x.Elem(), n))
	}
	u := c.b.Convert(x, unsigned[x.Elem()])
	return c.b.Convert(c.b.Binary("div", u, c.power(u.Elem(), n)), x.Elem())
}

// constantOf is the number that all elements of v are, if it is a constant.
func constantOf(v *ir.Value) (int64, bool) {
	for v.Op != nil && v.Op.Name == op.Prefix+"broadcast" {
		v = v.Op.Operands[0]
	}
	if v.Op == nil || v.Op.Name != op.Prefix+"constant" {
		return 0, false
	}
	d, ok := v.Op.Attr("value").(*types.Dense)
	if !ok || !d.Splat && d.Len() != 1 {
		return 0, false
	}
	return d.Int(0), true
}

// convertShift shifts by a constant, or by numbers that a table turns into powers of
// two. A shift by all bits or more leaves zeros, or the sign.
func convertShift(c *call) ([]*ir.Value, error) {
	if err := c.need(2); err != nil {
		return nil, err
	}
	x, n := c.unpacked(c.in(0)), c.unpacked(c.in(1))
	own := c.in(0).Elem()
	e := x.Elem()
	if unsigned[e] == types.InvalidElem {
		return nil, unsupported("%s of %s", c.name, own)
	}
	bits := int(own.Bits())
	arithmetic := c.name == "shift_right_arithmetic"
	if arithmetic && e.IsUnsigned() { // the first bit is the sign all the same
		for s, u := range unsigned {
			if u == e && s != e {
				x, e = c.b.Convert(x, s), s
			}
		}
	}
	if c.name == "shift_right_logical" && own == types.I4 {
		x, e = c.b.Binary("and", c.b.Convert(x, types.UI8), c.scalar(types.UI8, 15)), types.UI8
	}
	negative := func() *ir.Value { return c.compare("lt", x, c.scalar(e, 0)) }
	// The shift to the right of a negative number rounds down: ¬(¬x >> n).
	magnitude := x
	if arithmetic {
		magnitude = c.make("select", []*ir.Value{negative(), c.b.Unary("not", x), x}, nil)
	}
	var v *ir.Value
	if k, ok := constantOf(n); ok {
		if k < 0 || k >= int64(bits) {
			v = c.b.Binary("mul", magnitude, c.scalar(e, 0))
		} else {
			v = c.shiftBy(magnitude, int(k), c.name == "shift_left")
		}
	} else {
		u := unsigned[e]
		t := &types.Tensor{Elem: u, Shape: dims([]int{bits})}
		table := make([]byte, 0, bits*int(u.Bytes()))
		for k := range bits {
			for b := range int(u.Bytes()) {
				table = append(table, byte(uint64(1)<<k>>(8*b)))
			}
		}
		at := c.b.Convert(n, types.I64)
		powers := c.make("gather", []*ir.Value{c.make("constant", nil, named("value", types.Attr(types.DenseOf(t, table))), t), at}, named("dim", 0))
		m := c.b.Convert(magnitude, u)
		if c.name == "shift_left" {
			m = c.b.Binary("mul", m, powers)
		} else {
			m = c.b.Binary("div", m, powers)
		}
		inside := c.b.Binary("and", c.compare("ge", at, c.scalar(types.I64, 0)), c.compare("lt", at, c.scalar(types.I64, float64(bits))))
		v = c.b.Convert(c.make("select", []*ir.Value{inside, m, c.scalar(u, 0)}, nil), e)
	}
	if arithmetic {
		v = c.make("select", []*ir.Value{negative(), c.b.Unary("not", v), v}, nil)
	}
	return one(c.b.Convert(v, own))
}

// ones is the number of bits of x, an ui64, that are set (Warren, Hacker's Delight, §5-1).
func (c *call) ones(x *ir.Value) *ir.Value {
	mask := func(b byte) *ir.Value {
		t := &types.Tensor{Elem: types.UI64}
		data := make([]byte, 8)
		for i := range data {
			data[i] = b
		}
		return c.make("constant", nil, named("value", types.Attr(types.DenseOf(t, data))), t)
	}
	and := func(v *ir.Value, b byte) *ir.Value { return c.b.Binary("and", v, mask(b)) }
	x = c.b.Binary("sub", x, and(c.shiftBy(x, 1, false), 0x55))
	x = c.b.Binary("add", and(x, 0x33), and(c.shiftBy(x, 2, false), 0x33))
	x = and(c.b.Binary("add", x, c.shiftBy(x, 4, false)), 0x0f)
	return c.shiftBy(c.b.Binary("mul", x, mask(1)), 56, false)
}

// word64 is x as an ui64 without the bits that its sign would fill.
func (c *call) word64(x *ir.Value) (*ir.Value, error) {
	u := unsigned[x.Elem()]
	if u == types.InvalidElem {
		return nil, unsupported("%s of %s", c.name, x.Elem())
	}
	return c.b.Convert(c.b.Convert(x, u), types.UI64), nil
}

func convertPopcnt(c *call) ([]*ir.Value, error) {
	x, err := c.word64(c.in(0))
	if err != nil {
		return nil, err
	}
	return one(c.b.Convert(c.ones(x), c.in(0).Elem()))
}

// convertLeadingZeros counts the bits above the first one that is set: all bits less
// those of the number with that bit and all below set.
func convertLeadingZeros(c *call) ([]*ir.Value, error) {
	x, err := c.word64(c.in(0))
	if err != nil {
		return nil, err
	}
	for n := 1; n < 64; n *= 2 {
		x = c.b.Binary("or", x, c.shiftBy(x, n, false))
	}
	e := c.in(0).Elem()
	return one(c.b.Convert(c.b.Binary("sub", c.scalar(types.UI64, float64(e.Bits())), c.ones(x)), e))
}
