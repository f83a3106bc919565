package stablehlo

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"dmir/dialect/ir"
	"dmir/dialect/types"
	"dmir/syntax/ast"
)

// narrowType is a tensor of numbers of a format that the dialect lacks, in a wider one.
type narrowType struct {
	single
	f *narrowFormat
}

func (t narrowType) with(parts []types.Type) compound { return narrowType{single{parts[0]}, t.f} }

func (t narrowType) elem() string { return t.f.name }

func (t narrowType) String() string { return textOf(t.part, t.f.name) }

func (t narrowType) real() types.Type { return t.part }

func (narrowType) decoded(_ *node, x *ir.Value) *ir.Value { return x }

// textOf is the text of t, a tensor or a number, with another element type.
func textOf(t types.Type, elem string) string {
	if x, ok := t.(*types.Tensor); ok {
		return strings.Replace(x.String(), x.Elem.String(), elem, 1)
	}
	return elem
}

// narrowFormat is a format of a few bits.
type narrowFormat struct {
	name      string
	wide      types.Elem // in which it is computed
	bits      int        // of an integer
	exp, mant int        // bits of a floating-point number
	bias      int
	special   special
}

// special is which patterns of bits are no finite numbers.
type special uint8

const (
	ieee     special = 0 // the highest exponent is infinity and NaN
	finite   special = 1 // none
	zeroNaN  special = 2 // that of -0 is NaN: there is no infinity
	exponent special = 3 // there is no sign and no 0; all ones are NaN
)

var narrowFormats = []*narrowFormat{
	{name: "i2", wide: types.I8, bits: 2},
	{name: "ui2", wide: types.UI8, bits: 2},
	{name: "f4E2M1FN", wide: types.F32, exp: 2, mant: 1, bias: 1, special: finite},
	{name: "f6E2M3FN", wide: types.F32, exp: 2, mant: 3, bias: 1, special: finite},
	{name: "f6E3M2FN", wide: types.F32, exp: 3, mant: 2, bias: 3, special: finite},
	{name: "f8E3M4", wide: types.F32, exp: 3, mant: 4, bias: 3},
	{name: "f8E4M3", wide: types.F32, exp: 4, mant: 3, bias: 7},
	{name: "f8E4M3B11FNUZ", wide: types.F32, exp: 4, mant: 3, bias: 11, special: zeroNaN},
	{name: "f8E4M3FNUZ", wide: types.F32, exp: 4, mant: 3, bias: 8, special: zeroNaN},
	{name: "f8E5M2FNUZ", wide: types.F32, exp: 5, mant: 2, bias: 16, special: zeroNaN},
	{name: "f8E8M0FNU", wide: types.F32, exp: 8, bias: 127, special: exponent},
}

// narrowByName is the format of an element type, nil where there is none.
func narrowByName(name string) *narrowFormat {
	if i := slices.IndexFunc(narrowFormats, func(f *narrowFormat) bool { return f.name == name }); i >= 0 {
		return narrowFormats[i]
	}
	return nil
}

// least is the exponent of the least normal number; below it the numbers have one distance.
func (f *narrowFormat) least() int {
	if f.special == exponent {
		return -126 // of f32
	}
	return 1 - f.bias
}

// max is the greatest number.
func (f *narrowFormat) max() float64 {
	top := 1<<f.exp - 1 - f.bias
	switch f.special {
	case ieee:
		return math.Ldexp(2-math.Ldexp(1, -f.mant), top-1)
	case exponent:
		return math.Ldexp(1, top-1)
	}
	return math.Ldexp(2-math.Ldexp(1, -f.mant), top)
}

// overflow is what numbers beyond the greatest become.
func (f *narrowFormat) overflow() float64 {
	switch f.special {
	case ieee:
		return math.Inf(1)
	case finite:
		return f.max()
	}
	return math.NaN()
}

// round is v as the nearest number of the format, of two the one with an even last bit.
func (f *narrowFormat) round(v float64) float64 {
	if v == 0 || math.IsNaN(v) {
		return f.zero(v)
	}
	_, exp := math.Frexp(v)
	quantum := max(exp-1, f.least()) - f.mant
	r := v
	if !math.IsInf(v, 0) {
		r = math.Ldexp(math.RoundToEven(math.Ldexp(v, -quantum)), quantum)
	}
	if math.Abs(r) > f.max() {
		return math.Copysign(f.overflow(), v)
	}
	return f.zero(r)
}

// zero is v, without its sign where it is a 0 that has none.
func (f *narrowFormat) zero(v float64) float64 {
	if v == 0 && f.special >= zeroNaN {
		return 0
	}
	return v
}

// number is what a pattern of bits stands for.
func (f *narrowFormat) number(bits uint64) float64 {
	mant, exp := bits&(1<<f.mant-1), int(bits>>f.mant&(1<<f.exp-1))
	sign := either(bits>>(f.exp+f.mant)&1 == 1, -1.0, 1.0)
	top := exp == 1<<f.exp-1
	switch {
	case f.special == exponent && top, f.special == zeroNaN && sign < 0 && mant == 0 && exp == 0, f.special == ieee && top && mant != 0:
		return math.NaN()
	case f.special == exponent:
		return math.Ldexp(1, exp-f.bias)
	case f.special == ieee && top:
		return math.Inf(int(sign))
	case exp == 0:
		return math.Copysign(math.Ldexp(float64(mant), 1-f.bias-f.mant), sign)
	}
	return sign * math.Ldexp(1+math.Ldexp(float64(mant), -f.mant), exp-f.bias)
}

// literal has numbers, or bits in hexadecimal.
func (t narrowType) literal(n *node, part *types.Tensor) *types.Dense {
	f := t.f
	a, ok := n.attrs["value"]
	n.must(ok && a.x.Kind == ast.ADense, "DM141", "%s needs a dense<…> literal", n.name)
	x := *a.x
	x.Type = nil
	if f.bits > 0 {
		least, most := -1<<(f.bits-1), 1<<f.bits-1
		d, err := types.DenseFromExpr(&x, part)
		if err != nil {
			n.failError(a.at, err)
		}
		for _, v := range d.Ints() {
			if v < int64(least) || v > int64(most) {
				n.failAt("DM154", a.at, "%d is out of the range of %s", v, f.name)
			}
		}
		return d
	}
	var rounded func(e *ast.AttrExpr) *ast.AttrExpr
	rounded = func(e *ast.AttrExpr) *ast.AttrExpr {
		y := *e
		v := e.Float
		switch digits, hex := strings.CutPrefix(e.Text, "0x"); {
		case e.Kind == ast.AArray:
			y.Elems = make([]*ast.AttrExpr, len(e.Elems))
			for i, inner := range e.Elems {
				y.Elems[i] = rounded(inner)
			}
			return &y
		case e.Kind == ast.AString:
			n.unsupported("a literal of %s in bytes is not supported", f.name)
		case hex:
			bits, err := strconv.ParseUint(digits, 16, 8)
			if err != nil {
				n.failAt("DM154", a.at, "%s has more bits than %s", e.Text, f.name)
			}
			v = f.number(bits)
		case e.Kind == ast.AInt:
			v = f.round(float64(e.Int))
		default:
			v = f.round(v)
		}
		y.Kind, y.Float, y.Text = ast.AFloat, v, types.FloatText(v, f.wide)
		return &y
	}
	x.Elems = nil
	for _, e := range a.x.Elems {
		x.Elems = append(x.Elems, rounded(e))
	}
	x.Text = ""
	d, err := types.DenseFromExpr(&x, part)
	if err != nil {
		n.failError(a.at, err)
	}
	return d
}

// encoded is x rounded to the format; integers wrap around.
func (t narrowType) encoded(n *node, x *ir.Value) *ir.Value {
	f := t.f
	e := f.wide
	if f.bits > 0 {
		by := n.whole(e, int(e.Bits())-f.bits)
		back := either(e.IsUnsigned(), "shift_right_logical", "shift_right_arithmetic")
		return n.binary(back, n.binary("shift_left", x, by), by)
	}
	// The exponent of a f32 is in its bits 23 to 30: numbers of one exponent have the distance 2^(exponent-mant).
	size := n.unary("abs", x)
	bits := n.bitcast(size, types.I32)
	exp := n.binary("max", n.binary("shift_right_arithmetic", bits, n.whole(types.I32, 23)), n.whole(types.I32, max(f.least()+127, f.mant+1)))
	quantum := n.bitcast(n.binary("shift_left", n.binary("sub", exp, n.whole(types.I32, f.mant)), n.whole(types.I32, 23)), e)
	r := n.binary("mul", n.unary("round", n.binary("div", size, quantum)), quantum)
	r = n.choose(n.compare("gt", size, n.fill(e, f.beyond())), n.fill(e, f.overflow()), r)
	signed := n.binary("or", n.bitcast(r, types.I32), n.binary("and", n.bitcast(x, types.I32), n.constant(types.IntOf(tensorOf(types.I32), math.MinInt32))))
	y := n.bitcast(signed, e)
	if f.special >= zeroNaN {
		y = n.choose(n.compare("eq", y, n.fill(e, 0)), n.fill(e, 0), y)
	}
	return n.choose(n.compare("ne", x, x), x, y)
}

// beyond is the greatest number that is still rounded to max: half a distance above, which
// has an odd last bit.
func (f *narrowFormat) beyond() float64 {
	_, exp := math.Frexp(f.max())
	half := math.Ldexp(1, exp-1-f.mant-1)
	limit := f.max() + half
	if f.round(limit) != f.max() { // a tie goes up
		limit = float64(math.Nextafter32(float32(limit), 0))
	}
	return limit
}
