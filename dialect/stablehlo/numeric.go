package stablehlo

import (
	"math"
	"slices"

	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// numeric are the functions that are written by several ops.
func numeric() map[string]conversion {
	m := map[string]conversion{
		"chlo.mulhi": highHalf, "reduce_precision": reducePrecision,
	}
	for name, f := range formulas {
		g := func(n *node) []*ir.Value {
			n.takes(1)
			n.must(n.in[0].Elem().IsFloat(), "DM142", "%s takes floating-point numbers, not %s", n.name, n.in[0].Elem())
			return n.inFloat(n.in[0], f)
		}
		m["chlo."+name], m[name] = g, g
	}
	return m
}

// formulas are chlo's functions of one number by those that the dialect has.
var formulas = map[string]func(n *node, x *ir.Value) *ir.Value{
	"square": func(n *node, x *ir.Value) *ir.Value { return n.binary("mul", x, x) },
	"asin": func(n *node, x *ir.Value) *ir.Value { // 2 atan2(x, 1 + √(1 - x²))
		one := n.fill(x.Elem(), 1)
		return n.twice(n.binary("atan2", x, n.binary("add", one, n.leg(x, one))))
	},
	"acos": func(n *node, x *ir.Value) *ir.Value { // 2 atan2(√(1 - x²), 1 + x), π at -1
		one := n.fill(x.Elem(), 1)
		angle := n.twice(n.binary("atan2", n.leg(x, one), n.binary("add", one, x)))
		return n.choose(n.compare("ne", x, n.fill(x.Elem(), -1)), angle, n.fill(x.Elem(), math.Pi))
	},
	"atan": func(n *node, x *ir.Value) *ir.Value { return n.binary("atan2", x, n.fill(x.Elem(), 1)) },
	"is_inf": func(n *node, x *ir.Value) *ir.Value {
		return n.compare("eq", n.unary("abs", x), n.fill(x.Elem(), math.Inf(1)))
	},
	"is_pos_inf": func(n *node, x *ir.Value) *ir.Value { return n.compare("eq", x, n.fill(x.Elem(), math.Inf(1))) },
	"is_neg_inf": func(n *node, x *ir.Value) *ir.Value { return n.compare("eq", x, n.fill(x.Elem(), math.Inf(-1))) },
	"lgamma":     func(n *node, x *ir.Value) *ir.Value { return n.lgamma(x) },
	"digamma":    func(n *node, x *ir.Value) *ir.Value { return n.digamma(x) },
}

// wideFloat is the type in which functions of numbers of type e are computed: f32 for narrower ones.
func wideFloat(e types.Elem) types.Elem { return either(e.Bytes() < 4, types.F32, e) }

// inFloat computes f in f64, or in f32 for types narrower than it, and rounds once.
func (n *node) inFloat(x *ir.Value, f func(n *node, x *ir.Value) *ir.Value) []*ir.Value {
	e := x.Elem()
	y := f(n, n.convert(x, wideFloat(e)))
	if y.Elem().IsFloat() {
		y = n.convert(y, e)
	}
	return []*ir.Value{y}
}

func (n *node) twice(x *ir.Value) *ir.Value { return n.binary("mul", n.fill(x.Elem(), 2), x) }

// leg is √(1 - x²).
func (n *node) leg(x, one *ir.Value) *ir.Value {
	return n.unary("sqrt", n.binary("mul", n.binary("sub", one, x), n.binary("add", one, x)))
}

// The coefficients of Lanczos' approximation of the gamma function with g = 7 and 9
// terms, the error of which is below 1e-15.
const lanczosG = 7

var lanczos = []float64{
	0.99999999999980993227684700473478, 676.520368121885098567009190444019, -1259.13921672240287047156078755283, 771.3234287776530788486528258894,
	-176.61502916214059906584551354, 12.507343278686904814458936853, -0.13857109526572011689554707, 9.984369578019570859563e-6, 1.50563273514931155834e-7,
}

// series are Σ c / (z + i) and its derivative, for z = x - 1, with the first
// coefficient in front of the sum.
func (n *node) series(z *ir.Value) (sum, slope *ir.Value) {
	e := z.Elem()
	sum, slope = n.fill(e, lanczos[0]), n.fill(e, 0)
	for i, c := range lanczos[1:] {
		d := n.binary("add", z, n.fill(e, float64(i+1)))
		q := n.binary("div", n.fill(e, c), d)
		sum = n.binary("add", sum, q)
		slope = n.binary("sub", slope, n.binary("div", q, d))
	}
	return sum, slope
}

// reflected is whether x is below 1/2, and z = x - 1 or, there, -x.
func (n *node) reflected(x *ir.Value) (low, z *ir.Value) {
	e := x.Elem()
	low = n.compare("lt", x, n.fill(e, 0.5))
	return low, n.choose(low, n.unary("neg", x), n.binary("sub", x, n.fill(e, 1)))
}

// lgamma is log |Γ(x)|; below 1/2 by Euler's reflection.
func (n *node) lgamma(x *ir.Value) *ir.Value {
	e := x.Elem()
	low, z := n.reflected(x)
	t := n.binary("add", z, n.fill(e, lanczosG+0.5))
	sum, _ := n.series(z)
	power := n.binary("sub", n.binary("mul", n.binary("add", z, n.fill(e, 0.5)), n.unary("log", t)), t)
	y := n.binary("add", n.binary("add", n.fill(e, math.Log(2*math.Pi)/2), power), n.unary("log", sum))
	a := n.unary("abs", x)
	part := n.binary("sub", a, n.unary("floor", a))
	sine := n.unary("log", n.unary("sin", n.binary("mul", n.fill(e, math.Pi), part)))
	y = n.choose(low, n.binary("sub", n.binary("sub", n.fill(e, math.Log(math.Pi)), sine), y), y)
	infinite := n.compare("eq", a, n.fill(e, math.Inf(1)))
	return n.choose(infinite, n.fill(e, math.Inf(1)), y)
}

// digamma is the derivative of log Γ.
func (n *node) digamma(x *ir.Value) *ir.Value {
	e := x.Elem()
	low, z := n.reflected(x)
	t := n.binary("add", z, n.fill(e, lanczosG+0.5))
	sum, slope := n.series(z)
	y := n.binary("sub", n.binary("add", n.unary("log", t), n.binary("div", slope, sum)), n.binary("div", n.fill(e, lanczosG), t))
	part := n.binary("add", x, n.unary("abs", n.unary("floor", n.binary("add", x, n.fill(e, 0.5)))))
	angle := n.binary("mul", n.fill(e, math.Pi), part)
	cotangent := n.binary("div", n.binary("mul", n.fill(e, math.Pi), n.unary("cos", angle)), n.unary("sin", angle))
	y = n.choose(low, n.binary("sub", y, cotangent), y)
	pole := n.binary("and", n.compare("le", x, n.fill(e, 0)), n.compare("eq", x, n.unary("floor", x)))
	return n.choose(pole, n.fill(e, math.NaN()), y)
}

// significand and exponent bits of the floating-point types.
var formats = map[types.Elem][2]int{types.F64: {11, 52}, types.F32: {8, 23}, types.F16: {5, 10}, types.BF16: {8, 7}, types.F8E5M2: {5, 2}, types.F8E4M3FN: {4, 3}}

// reducePrecision rounds to the nearest number with so many bits, halves to even:
// overflow is infinite, and numbers below the least normal one become 0.
func reducePrecision(n *node) []*ir.Value {
	n.takes(1)
	x := n.in[0]
	e := x.Elem()
	f, ok := formats[e]
	n.must(ok, "DM142", "%s takes floating-point numbers, not %s", n.name, e)
	exponent, mantissa := n.int("exponent_bits"), n.int("mantissa_bits")
	n.must(exponent >= 1 && mantissa >= 0, "DM141", "%s to e%dm%d: at least one bit of exponent is needed", n.name, exponent, mantissa)
	if exponent >= f[0] && mantissa >= f[1] {
		return n.in
	}
	ie := intOfSize(e.Bytes(), false)
	number := func(v uint64) *ir.Value { return n.constant(types.IntOf(tensorOf(ie), int64(v))) }
	bits := n.bitcast(x, ie)
	total := uint(8 * e.Bytes())
	sign := uint64(1) << (total - 1)
	if mantissa < f[1] {
		cut := uint(f[1] - mantissa)
		odd := n.binary("and", n.binary("shift_right_logical", bits, number(uint64(cut))), number(1))
		bits = n.binary("add", bits, n.binary("add", odd, number(1<<(cut-1)-1)))
		bits = n.binary("and", bits, number(^uint64(0)>>(64-total)&^(1<<cut-1)))
	}
	if exponent < f[0] {
		bias, small := 1<<(f[0]-1)-1, 1<<(exponent-1)-1
		most, least := uint64(bias+small), uint64(bias-small)
		inf := (uint64(1)<<f[0] - 1) << f[1]
		size := n.binary("and", bits, number(inf))
		signed := n.binary("and", bits, number(sign))
		bits = n.choose(n.compare("gt", size, number(most<<f[1])), n.binary("or", signed, number(inf)), bits)
		bits = n.choose(n.compare("le", size, number(least<<f[1])), signed, bits)
	}
	nan := x
	if mantissa == 0 { // there is no NaN without a bit of mantissa
		nan = n.fill(e, math.Inf(1))
	}
	return []*ir.Value{n.choose(n.compare("ne", x, x), nan, n.bitcast(bits, e))}
}

// normalizations are the ops that normalize channels.
func normalizations() map[string]conversion {
	return map[string]conversion{"batch_norm_inference": batchNorm(5, 1), "batch_norm_training": batchNorm(3, 3), "batch_norm_grad": batchNormGrad}
}

// highHalf is the upper half of the bits of a product: chlo.mulhi.
func highHalf(n *node) []*ir.Value {
	n.takes(2)
	n.sameElems(n.in)
	e := n.in[0].Elem()
	n.must(e.IsInt() && e != types.I1 && !e.Packed(), Unsupported, "%s of %s is not supported", n.name, e)
	return n.computed(n.in, func(in []*ir.Value) *ir.Value {
		bits := int(e.Bits())
		if bits < 64 {
			wide := either(e.IsUnsigned(), types.UI64, types.I64)
			product := n.binary("mul", n.convert(in[0], wide), n.convert(in[1], wide))
			return n.convert(n.binary("shift_right_arithmetic", product, n.whole(wide, bits)), e)
		}
		x, y := n.bitcast(in[0], types.UI64), n.bitcast(in[1], types.UI64)
		half, mask := n.whole(types.UI64, 32), n.constant(types.IntOf(tensorOf(types.UI64), 1<<32-1))
		low := func(v *ir.Value) *ir.Value { return n.binary("and", v, mask) }
		up := func(v *ir.Value) *ir.Value { return n.binary("shift_right_logical", v, half) }
		crossed := n.binary("add", n.binary("mul", up(x), low(y)), up(n.binary("mul", low(x), low(y))))
		other := n.binary("add", n.binary("mul", low(x), up(y)), low(crossed))
		high := n.binary("add", n.binary("add", n.binary("mul", up(x), up(y)), up(crossed)), up(other))
		if e.IsUnsigned() {
			return high
		}
		zero := n.whole(types.I64, 0)
		less := func(sign, v *ir.Value) *ir.Value { return n.choose(n.compare("lt", sign, zero), v, zero) }
		y64 := n.binary("sub", n.bitcast(high, types.I64), less(in[0], in[1]))
		return n.binary("sub", y64, less(in[1], in[0]))
	})
}

func batchNorm(operands, results int) conversion {
	return func(n *node) []*ir.Value {
		n.takes(operands)
		n.must(len(n.out) == results, "DM142", "%s has %d results", n.name, results)
		attrs := []types.Named{named("epsilon", types.Float{V: n.floatOr("epsilon", 0)})}
		if d := n.int("feature_index"); d != 1 {
			attrs = append(attrs, intAttr("dim", d))
		}
		return n.make("batch_norm", n.in, attrs, n.out...).Results
	}
}

// batchNormGrad is the derivative of batch_norm_training by its operands.
func batchNormGrad(n *node) []*ir.Value {
	n.takes(5)
	x, scale, mean, variance, dy := n.in[0], n.in[1], n.in[2], n.in[3], n.in[4]
	shape, d, e := n.shape(x), n.int("feature_index"), x.Elem()
	n.must(d >= 0 && d < len(shape), "DM141", "feature_index = %d is no dimension of %s", d, x.Type)
	channel := slices.Clone(ones(len(shape) - d))
	channel[0] = shape[d]
	wide := func(v *ir.Value) *ir.Value { return n.reshape(v, channel...) }
	rest := others(len(shape), []int{d})
	count := n.fill(e, float64(product(pick(shape, rest))))
	rstd := wide(n.unary("rsqrt", n.binary("add", variance, n.fill(e, n.floatOr("epsilon", 0)))))
	centered := n.binary("sub", x, wide(mean))
	hat := n.binary("mul", centered, rstd)
	dscale := n.reduced("add", n.binary("mul", dy, hat), rest)
	doffset := n.reduced("add", dy, rest)
	inner := n.binary("sub", n.binary("sub", n.binary("mul", dy, count), wide(doffset)), n.binary("mul", hat, wide(dscale)))
	dx := n.binary("mul", n.binary("div", n.binary("mul", wide(scale), rstd), count), inner)
	return []*ir.Value{dx, dscale, doffset}
}
