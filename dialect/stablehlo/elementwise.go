package stablehlo

import (
	"math"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// unary are the ops of one operand that have an equivalent by name.
var unary = map[string]string{
	"abs": "abs", "cbrt": "cbrt", "ceil": "ceil", "cosine": "cos", "erf": "erf", "erf_inv": "erfinv", "exponential": "exp",
	"exponential_minus_one": "expm1", "floor": "floor", "log": "log", "log_plus_one": "log1p", "logistic": "logistic",
	"negate": "neg", "not": "not", "round_nearest_even": "round", "rsqrt": "rsqrt", "sign": "sign", "sine": "sin",
	"sqrt": "sqrt", "tanh": "tanh",
}

// binary are the ops of two operands that have an equivalent by name.
var binary = map[string]string{
	"add": "add", "and": "and", "atan2": "atan2", "divide": "div", "maximum": "max", "minimum": "min", "multiply": "mul",
	"or": "or", "power": "pow", "remainder": "rem", "subtract": "sub", "xor": "xor",
}

// logical are the ops that do to truth values what an op of another name does.
var logical = map[string]string{"add": "or", "mul": "and", "max": "or", "min": "and", "sub": "xor"}

func convertUnary(c *call) ([]*ir.Value, error) {
	if err := c.need(1); err != nil {
		return nil, err
	}
	x := c.unpacked(c.in(0))
	name := unary[c.name]
	v := x
	switch e := x.Elem(); {
	case !e.IsUnsigned() || e == types.I1 || name == "not":
		v = c.b.Unary(name, x)
	case name == "sign":
		v = c.b.Binary("min", x, c.scalar(e, 1))
	case name == "neg":
		v = c.b.Binary("sub", c.scalar(e, 0), x)
	case name != "abs":
		v = c.b.Unary(name, x)
	}
	return one(c.b.Convert(v, c.in(0).Elem()))
}

// unpacked is x in a type of whole bytes: arithmetic has no types of half a byte, and
// its results wrap when they are converted back.
func (c *call) unpacked(x *ir.Value) *ir.Value {
	switch x.Elem() {
	case types.I4:
		return c.b.Convert(x, types.I8)
	case types.UI4:
		return c.b.Convert(x, types.UI8)
	}
	return x
}

func convertBinary(c *call) ([]*ir.Value, error) {
	if err := c.need(2); err != nil {
		return nil, err
	}
	name := binary[c.name]
	if c.in(0).Elem() == types.I1 && logical[name] != "" {
		name = logical[name]
	}
	v := c.b.Binary(name, c.unpacked(c.in(0)), c.unpacked(c.in(1)))
	return one(c.b.Convert(v, c.in(0).Elem()))
}

// scalar is the constant v of an element type, which broadcasts.
func (c *call) scalar(e types.Elem, v float64) *ir.Value {
	return c.b.Splat(&types.Tensor{Elem: e}, v)
}

// splat is the constant v of an element type and a shape.
func (c *call) splat(e types.Elem, v float64, shape []int) *ir.Value {
	return c.b.Splat(&types.Tensor{Elem: e, Shape: dims(shape)}, v)
}

func dims(shape []int) []dim.Dim {
	out := make([]dim.Dim, len(shape))
	for i, n := range shape {
		out[i] = dim.Const(int64(n))
	}
	return out
}

func named(pairs ...any) []types.Named {
	var out []types.Named
	for i := 0; i < len(pairs); i += 2 {
		var v types.Attr
		switch x := pairs[i+1].(type) {
		case []int:
			v = op.IntList(x...)
		case int:
			v = types.Int{V: int64(x)}
		case bool:
			v = types.Bool(x)
		case string:
			v = types.Keyword(x)
		case types.Attr:
			v = x
		}
		out = append(out, types.Named{Name: pairs[i].(string), Value: v})
	}
	return out
}

func (c *call) make(name string, operands []*ir.Value, attrs []types.Named, results ...types.Type) *ir.Value {
	return c.b.Value(name, operands, attrs, results...)
}

// compare is dm.compare of x and y.
func (c *call) compare(direction string, x, y *ir.Value) *ir.Value {
	return c.make("compare", []*ir.Value{x, y}, named("direction", direction))
}

var directions = map[string]string{"EQ": "eq", "NE": "ne", "LT": "lt", "LE": "le", "GT": "gt", "GE": "ge"}

func convertCompare(c *call) ([]*ir.Value, error) {
	if err := c.need(2); err != nil {
		return nil, err
	}
	direction := directions[c.word("comparison_direction")]
	if direction == "" {
		return nil, invalid("no comparison direction")
	}
	x, y := c.unpacked(c.in(0)), c.unpacked(c.in(1))
	total := c.word("compare_type") == "TOTALORDER" || len(c.words) > 3 && c.words[3] == "TOTALORDER"
	if total && x.Elem().IsFloat() {
		return nil, unsupported("comparison in total order of floats")
	}
	return one(c.compare(direction, x, y))
}

func convertSelect(c *call) ([]*ir.Value, error) {
	if err := c.need(3); err != nil {
		return nil, err
	}
	return one(c.make("select", c.o.Operands, nil))
}

func convertClamp(c *call) ([]*ir.Value, error) {
	if err := c.need(3); err != nil {
		return nil, err
	}
	return one(c.make("clamp", c.o.Operands, nil))
}

func convertConvert(c *call) ([]*ir.Value, error) {
	if err := c.need(1); err != nil {
		return nil, err
	}
	e := types.ElemOf(c.outs[0])
	return one(c.b.Convert(c.in(0), e))
}

// convertFinite is whether a value is neither infinite nor NaN: |x| < inf.
func convertFinite(c *call) ([]*ir.Value, error) {
	x := c.in(0)
	return one(c.compare("lt", c.b.Unary("abs", x), c.scalar(x.Elem(), math.Inf(1))))
}

func convertTan(c *call) ([]*ir.Value, error) {
	x := c.in(0)
	return one(c.b.Binary("div", c.b.Unary("sin", x), c.b.Unary("cos", x)))
}

func convertSquare(c *call) ([]*ir.Value, error) {
	if e := c.in(0).Elem(); !e.IsFloat() {
		return nil, unsupported("the square of %s", e)
	}
	return one(c.b.Binary("mul", c.in(0), c.in(0)))
}

// convertErfc is 1 - erf x, in f64, so that little of its tail is lost for the types
// that are narrower.
func convertErfc(c *call) ([]*ir.Value, error) {
	e := c.in(0).Elem()
	if !e.IsFloat() {
		return nil, unsupported("the error function of %s", e)
	}
	y := c.b.Unary("erf", c.b.Convert(c.in(0), types.F64))
	return one(c.b.Convert(c.b.Binary("sub", c.scalar(types.F64, 1), y), e))
}

// convertRoundAway rounds to the nearest whole number, halves away from zero: the
// whole part of |x|, one more where at least a half is left, which is exact.
func convertRoundAway(c *call) ([]*ir.Value, error) {
	x := c.in(0)
	e := x.Elem()
	a := c.b.Unary("abs", x)
	whole := c.b.Unary("floor", a)
	up := c.compare("ge", c.b.Binary("sub", a, whole), c.scalar(e, 0.5))
	r := c.b.Binary("add", whole, c.b.Convert(up, e))
	negative := c.compare("lt", x, c.scalar(e, 0))
	r = c.make("select", []*ir.Value{negative, c.b.Unary("neg", r), r}, nil)
	// Zero keeps its sign, NaN stays.
	small := c.compare("gt", a, c.scalar(e, 0))
	return one(c.make("select", []*ir.Value{small, r, x}, nil))
}

func convertBitcast(c *call) ([]*ir.Value, error) {
	x, t := c.in(0), c.out(0)
	if t == nil {
		return nil, invalid("no type")
	}
	if x.Elem() == t.Elem {
		return one(x)
	}
	if x.Elem().IsInt() && t.Elem.IsInt() && x.Elem().Bits() == t.Elem.Bits() && x.Elem() != types.I1 && t.Elem != types.I1 {
		return one(c.b.Convert(x, t.Elem)) // which keeps the bits
	}
	return nil, unsupported("bitcast_convert from %s to %s", x.Elem(), t.Elem)
}

// mantissa of the floating-point types: the bits behind the point.
var mantissa = map[types.Elem][2]int{types.F64: {11, 52}, types.F32: {8, 23}, types.F16: {5, 10}, types.BF16: {8, 7}}

// convertReducePrecision rounds to a type with fewer bits and back, where there is one.
func convertReducePrecision(c *call) ([]*ir.Value, error) {
	x := c.in(0)
	var exp, man int
	if format := c.attrs["format"]; format != "" {
		var ok bool
		if exp, man, ok = parseFormat(format); !ok {
			return nil, invalid("format %s", format)
		}
	} else {
		var err error
		if exp, err = c.int("exponent_bits", 0); err != nil {
			return nil, err
		}
		if man, err = c.int("mantissa_bits", 0); err != nil {
			return nil, err
		}
	}
	own := mantissa[x.Elem()]
	if own[0] <= exp && own[1] <= man {
		return one(x)
	}
	for e, bits := range mantissa {
		if bits == [2]int{exp, man} {
			return one(c.b.Convert(c.b.Convert(x, e), x.Elem()))
		}
	}
	return nil, unsupported("reduce_precision to e%dm%d", exp, man)
}

func parseFormat(s string) (exp, man int, ok bool) {
	i := 0
	number := func(letter byte) int {
		if i >= len(s) || s[i] != letter {
			return -1
		}
		n := 0
		for i++; i < len(s) && s[i] >= '0' && s[i] <= '9'; i++ {
			n = 10*n + int(s[i]-'0')
		}
		return n
	}
	exp, man = number('e'), number('m')
	return exp, man, exp > 0 && man >= 0 && i == len(s)
}

func convertConstant(c *call) ([]*ir.Value, error) {
	d, err := c.dense()
	if err != nil {
		return nil, err
	}
	return one(c.make("constant", nil, named("value", types.Attr(d)), d.Type))
}

// dense is the value of a constant.
func (c *call) dense() (*types.Dense, error) {
	text := c.attrs["value"]
	if text == "" && len(c.words) > 0 {
		text = c.words[0]
	}
	if text == "" || len(c.outs) != 1 {
		return nil, invalid("no value")
	}
	t, ok := c.outs[0].(*types.Tensor)
	if !ok || t.Elem == types.InvalidElem {
		return nil, unsupported("%s has no equivalent", c.outs[0])
	}
	return denseOf(text, t)
}

func convertIota(c *call) ([]*ir.Value, error) {
	d, err := c.int("iota_dimension", -1)
	if err == nil && d < 0 {
		d, err = c.int("dim", 0)
	}
	t := c.out(0)
	if err != nil || t == nil {
		return nil, err
	}
	return one(c.make("iota", nil, named("dim", d), t))
}

// convertSame is for ops that return their operands.
func convertSame(c *call) ([]*ir.Value, error) { return c.o.Operands, nil }
