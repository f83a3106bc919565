package stablehlo

import (
	"math"

	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// specials are chlo's functions of numbers that are series.
func specials() map[string]conversion {
	return map[string]conversion{"chlo.bessel_i1e": besselI1e, "chlo.zeta": zeta, "chlo.polygamma": polygamma, "chlo.next_after": nextAfter, "chlo.broadcast_next_after": implicit(nextAfter), "chlo.broadcast_zeta": implicit(zeta), "chlo.broadcast_polygamma": implicit(polygamma)}
}

// floats are the operands, in f64, or in f32 for narrower ones, and a function that rounds the result.
func (n *node) floats(count int) (in []*ir.Value, result func(*ir.Value) []*ir.Value) {
	n.takes(count)
	n.sameElems(n.in)
	e := n.in[0].Elem()
	n.must(e.IsFloat(), "DM142", "%s takes floating-point numbers, not %s", n.name, e)
	for _, x := range n.in {
		in = append(in, n.convert(x, wideFloat(e)))
	}
	return in, func(y *ir.Value) []*ir.Value { return []*ir.Value{n.convert(y, e)} }
}

// zeta is Hurwitz' zeta function Σ (q+k)^-s.
func zeta(n *node) []*ir.Value {
	in, result := n.floats(2)
	return result(n.zeta(in[0], in[1]))
}

// bernoulli are the coefficients B₂ⱼ / (2j)! of the Euler-Maclaurin formula.
var bernoulli = []float64{
	1.0 / 12, -1.0 / 720, 1.0 / 30240, -1.0 / 1209600, 1.0 / 47900160, -691.0 / 1307674368000, 1.0 / 74724249600,
	-3617.0 / 10670622842880000, 43867.0 / 5109094217170944000, -174611.0 / 802857662698291200000,
}

// zeta adds ten terms, and the others by the Euler-Maclaurin formula (NIST's handbook of functions, 25.11.43).
// At the poles q = 0, -1, … it is infinite, and NaN for s < 1 and for a negative q with an s that is no integer.
func (n *node) zeta(s, q *ir.Value) *ir.Value {
	const terms = 10
	e := s.Elem()
	number := func(v float64) *ir.Value { return n.fill(e, v) }
	negative := n.unary("neg", s)
	var sum *ir.Value
	for k := range terms {
		sum = n.plus(sum, n.binary("pow", n.binary("add", q, number(float64(k))), negative))
	}
	w := n.binary("add", q, number(terms))
	power := n.binary("pow", w, negative) // w^-s
	sum = n.binary("add", sum, n.binary("div", n.binary("mul", power, w), n.binary("sub", s, number(1))))
	sum = n.binary("add", sum, n.binary("mul", power, number(0.5)))
	rising := s // s (s+1) … (s+2j-2)
	factor := n.binary("div", power, w)
	square := n.binary("mul", w, w)
	for j, c := range bernoulli {
		sum = n.binary("add", sum, n.binary("mul", number(c), n.binary("mul", rising, factor)))
		if j+1 < len(bernoulli) {
			rising = n.binary("mul", rising, n.binary("mul", n.binary("add", s, number(float64(2*j+1))), n.binary("add", s, number(float64(2*j+2)))))
			factor = n.binary("div", factor, square)
		}
	}
	whole := func(v *ir.Value) *ir.Value { return n.compare("eq", v, n.unary("floor", v)) }
	low := n.compare("le", q, number(0))
	sum = n.choose(n.binary("and", low, n.unary("not", whole(s))), number(math.NaN()), sum)
	sum = n.choose(n.binary("and", low, whole(q)), number(math.Inf(1)), sum)
	sum = n.choose(n.compare("eq", s, number(1)), number(math.Inf(1)), sum)
	return n.choose(n.compare("lt", s, number(1)), number(math.NaN()), sum)
}

// polygamma is the n-th derivative of digamma, (-1)^(n+1) n! ζ(n+1, x).
func polygamma(n *node) []*ir.Value {
	in, result := n.floats(2)
	order, x := in[0], in[1]
	e := x.Elem()
	one := n.fill(e, 1)
	next := n.binary("add", order, one)
	factorial := n.unary("exp", n.lgamma(next))
	half := n.binary("mul", next, n.fill(e, 0.5))
	even := n.compare("eq", half, n.unary("floor", half))
	y := n.binary("mul", n.binary("mul", n.choose(even, one, n.fill(e, -1)), factorial), n.zeta(next, x))
	y = n.choose(n.compare("eq", order, n.fill(e, 0)), n.digamma(x), y)
	valid := n.binary("and", n.compare("ge", order, n.fill(e, 0)), n.compare("eq", order, n.unary("floor", order)))
	return result(n.choose(valid, y, n.fill(e, math.NaN())))
}

// besselI1e is e^-|x| I₁(x), by a Chebyshev series up to 8 and one beyond, on the intervals of Cephes.
func besselI1e(n *node) []*ir.Value {
	in, result := n.floats(1)
	x := in[0]
	e := x.Elem()
	number := func(v float64) *ir.Value { return n.fill(e, v) }
	a := n.unary("abs", x)
	// The arguments are limited to the interval of each series, so that neither overflows.
	low := n.binary("mul", n.chebyshev(n.binary("sub", n.binary("mul", n.binary("min", a, number(8)), number(0.5)), number(2)), besselLow), a)
	far := n.binary("max", a, number(8))
	high := n.binary("div", n.chebyshev(n.binary("sub", n.binary("div", number(32), far), number(2)), besselHigh), n.unary("sqrt", far))
	y := n.choose(n.compare("le", a, number(8)), low, high)
	return result(n.choose(n.compare("lt", x, number(0)), n.unary("neg", y), y))
}

// chebyshev is the sum of a Chebyshev series at x/2, by Clenshaw's recurrence.
func (n *node) chebyshev(x *ir.Value, series []float64) *ir.Value {
	e := x.Elem()
	b0, b1, b2 := n.fill(e, series[0]), n.fill(e, 0), n.fill(e, 0)
	for _, c := range series[1:] {
		b2, b1 = b1, b0
		b0 = n.binary("add", n.binary("sub", n.binary("mul", x, b1), b2), n.fill(e, c))
	}
	return n.binary("mul", n.fill(e, 0.5), n.binary("sub", b0, b2))
}

// nextAfter is the number of the type that follows x in the direction of y.
func nextAfter(n *node) []*ir.Value {
	n.takes(2)
	n.sameElems(n.in)
	x, y := n.in[0], n.in[1]
	e := x.Elem()
	n.must(e.IsFloat() && formats[e] != [2]int{}, "DM142", "%s takes floating-point numbers, not %s", n.name, e)
	ie := intOfSize(e.Bytes(), false)
	number := func(v int64) *ir.Value { return n.constant(types.IntOf(tensorOf(ie), v)) }
	bits := n.bitcast(x, ie)
	zero := n.fill(e, 0)
	// The bits of a number grow with its size; from zero the next is the least number with the sign of y.
	away := n.compare("eq", n.compare("gt", x, zero), n.compare("gt", y, x))
	moved := n.choose(away, n.binary("add", bits, number(1)), n.binary("sub", bits, number(1)))
	sign := n.binary("and", n.bitcast(y, ie), number(int64(uint64(1)<<(8*uint(e.Bytes())-1))))
	moved = n.choose(n.compare("eq", x, zero), n.binary("or", sign, number(1)), moved)
	to := n.bitcast(moved, e)
	to = n.choose(n.compare("eq", x, y), y, to)
	odd := n.binary("or", n.compare("ne", x, x), n.compare("ne", y, y))
	return []*ir.Value{n.choose(odd, n.fill(e, math.NaN()), to)}
}

// besselLow are the coefficients for e^-a I₁(a) / a, 0 ≤ a ≤ 8, by a/2 - 2, the last term first.
var besselLow = []float64{
	2.7779141127610463705e-18, -2.1114212143581660782e-17, 1.5536319577362004689e-16, -1.105596947735386308e-15,
	7.6006842947354069341e-15, -5.0421855047279116871e-14, 3.2237933659455747098e-13, -1.9839743977649437152e-12,
	1.1736186298890901631e-11, -6.6634897235020277422e-11, 3.625590281552117037e-10, -1.8872497517228292879e-9,
	9.3815373864957717839e-9, -4.4450591287963280807e-8, 2.0032947535521352623e-7, -8.5687202646954547407e-7,
	3.4702513081376784767e-6, -0.000013273163656039435828, 0.000047815651075500542264, -0.00016176081582589674559,
	0.0005122859561685757729, -0.001513572450631253149, 0.0041564229443128881567, -0.010564084894626198156,
	0.024726449030626516828, -0.052945981208094991427, 0.10264365868984709538, -0.17641651835783405515,
	0.25258718644363365482,
}

// besselHigh are those for √a e^-a I₁(a), a ≥ 8, by 32/a - 2.
var besselHigh = []float64{
	7.5172963108421048054e-18, 4.4143483230717079499e-18, -4.6503053684893583256e-17, -3.2095259219934239588e-17,
	2.9626289976459501391e-16, 3.3082023109209282827e-16, -1.8803547755107824485e-15, -3.8144030724370078048e-15,
	1.0420276984128802764e-14, 4.2724400167119513543e-14, -2.101541842772664313e-14, -4.0835511110921973182e-13,
	-7.1985517762459085121e-13, 2.0356285441470895072e-12, 1.4125807436613781332e-11, 3.2526035830154882386e-11,
	-1.8974958123505412345e-11, -5.5897434621965838069e-10, -3.835380385964237022e-9, -2.6314688468895195068e-8,
	-2.5122362378702089253e-7, -3.8825648088776903935e-6, -0.00011058893876262371629, -0.0097610974913614684078,
	0.77857623501828012047,
}
