package stablehlo

import (
	"math"

	"dmir/dialect/ir"
)

// complexUnaries are the functions of one complex number, by StableHLO's names.
var complexUnaries = map[string]func(n *node, z complexNumber) complexNumber{
	"negate":                func(n *node, z complexNumber) complexNumber { return n.negated(z) },
	"sign":                  func(n *node, z complexNumber) complexNumber { return n.signOf(z) },
	"exponential":           func(n *node, z complexNumber) complexNumber { return n.expOf(z) },
	"exponential_minus_one": func(n *node, z complexNumber) complexNumber { return n.expm1Of(z) },
	"log":                   func(n *node, z complexNumber) complexNumber { return n.logOf(z) },
	"log_plus_one":          func(n *node, z complexNumber) complexNumber { return n.log1pOf(z) },
	"sqrt":                  func(n *node, z complexNumber) complexNumber { return n.sqrtOf(z) },
	"rsqrt":                 func(n *node, z complexNumber) complexNumber { return n.reciprocal(n.sqrtOf(z)) },
	"cbrt": func(n *node, z complexNumber) complexNumber {
		return n.powerOf(z, complexNumber{n.fill(z.re.Elem(), 1.0/3), n.fill(z.re.Elem(), 0)})
	},
	"logistic": func(n *node, z complexNumber) complexNumber { // 1 / (1 + e^-z)
		e := n.expOf(n.negated(z))
		return n.reciprocal(complexNumber{n.binary("add", n.fill(z.re.Elem(), 1), e.re), e.im})
	},
	"sine": func(n *node, z complexNumber) complexNumber {
		return complexNumber{n.binary("mul", n.unary("sin", z.re), n.unary("cosh", z.im)), n.binary("mul", n.unary("cos", z.re), n.unary("sinh", z.im))}
	},
	"cosine":      func(n *node, z complexNumber) complexNumber { return n.coshOf(n.timesI(z)) }, // cosh(iz)
	"tan":         func(n *node, z complexNumber) complexNumber { return n.timesMinusI(n.tanhOf(n.timesI(z))) },
	"chlo.tan":    func(n *node, z complexNumber) complexNumber { return n.timesMinusI(n.tanhOf(n.timesI(z))) },
	"tanh":        func(n *node, z complexNumber) complexNumber { return n.tanhOf(z) },
	"chlo.sinh":   func(n *node, z complexNumber) complexNumber { return n.sinhOf(z) },
	"chlo.cosh":   func(n *node, z complexNumber) complexNumber { return n.coshOf(z) },
	"chlo.asinh":  func(n *node, z complexNumber) complexNumber { return n.timesMinusI(n.asinOf(n.timesI(z))) },
	"chlo.asin":   func(n *node, z complexNumber) complexNumber { return n.asinOf(z) },
	"chlo.acos":   func(n *node, z complexNumber) complexNumber { return n.acosOf(z) },
	"chlo.acosh":  func(n *node, z complexNumber) complexNumber { return n.acoshOf(z) },
	"chlo.atanh":  func(n *node, z complexNumber) complexNumber { return n.atanhOf(z) },
	"chlo.atan":   func(n *node, z complexNumber) complexNumber { return n.timesMinusI(n.atanhOf(n.timesI(z))) },
	"chlo.square": func(n *node, z complexNumber) complexNumber { return n.times(z, z) },
	"chlo.conj":   conjugate,
}

// complexBinaries are the functions of two complex numbers.
var complexBinaries = map[string]func(n *node, x, y complexNumber) complexNumber{
	"add": func(n *node, x, y complexNumber) complexNumber {
		return complexNumber{n.binary("add", x.re, y.re), n.binary("add", x.im, y.im)}
	},
	"subtract": func(n *node, x, y complexNumber) complexNumber {
		return complexNumber{n.binary("sub", x.re, y.re), n.binary("sub", x.im, y.im)}
	},
	"multiply": func(n *node, x, y complexNumber) complexNumber { return n.times(x, y) },
	"divide":   func(n *node, x, y complexNumber) complexNumber { return n.over(x, y) },
	"power":    func(n *node, x, y complexNumber) complexNumber { return n.powerOf(x, y) },
	"atan2": func(n *node, y, x complexNumber) complexNumber { // -i log ((x + iy) / √(x² + y²))
		s, t, u := n.times(x, x), n.times(y, y), n.timesI(y)
		root := n.sqrtOf(complexNumber{n.binary("add", s.re, t.re), n.binary("add", s.im, t.im)})
		return n.timesMinusI(n.logOf(n.over(complexNumber{n.binary("add", x.re, u.re), n.binary("add", x.im, u.im)}, root)))
	},
	"maximum": extreme("gt"),
	"minimum": extreme("lt"),
}

func (n *node) negated(z complexNumber) complexNumber {
	return complexNumber{n.unary("neg", z.re), n.unary("neg", z.im)}
}

// timesI is iz.
func (n *node) timesI(z complexNumber) complexNumber {
	return complexNumber{n.unary("neg", z.im), z.re}
}

// timesMinusI is -iz.
func (n *node) timesMinusI(z complexNumber) complexNumber {
	return complexNumber{z.im, n.unary("neg", z.re)}
}

func (n *node) times(x, y complexNumber) complexNumber {
	return complexNumber{
		n.binary("sub", n.binary("mul", x.re, y.re), n.binary("mul", x.im, y.im)),
		n.binary("add", n.binary("mul", x.re, y.im), n.binary("mul", x.im, y.re)),
	}
}

// scaled is z times a real number.
func (n *node) scaled(z complexNumber, by *ir.Value) complexNumber {
	return complexNumber{n.binary("mul", z.re, by), n.binary("mul", z.im, by)}
}

// largest is the larger of |re| and |im|, or 1 where that is no number to divide by.
func (n *node) largest(z complexNumber) (m, safe *ir.Value) {
	e := z.re.Elem()
	m = n.binary("max", n.unary("abs", z.re), n.unary("abs", z.im))
	usable := n.binary("and", n.compare("gt", m, n.fill(e, 0)), n.compare("lt", m, n.fill(e, math.Inf(1))))
	return m, n.choose(usable, m, n.fill(e, 1))
}

// over is x / y, with y scaled so that its square neither overflows nor vanishes; 0 of an
// infinite y.
func (n *node) over(x, y complexNumber) complexNumber {
	e := x.re.Elem()
	m, s := n.largest(y)
	by := n.binary("div", n.fill(e, 1), s)
	re, im := n.binary("div", y.re, s), n.binary("div", y.im, s)
	square := n.binary("add", n.binary("mul", re, re), n.binary("mul", im, im))
	z := n.times(x, complexNumber{re, n.unary("neg", im)})
	z = n.scaled(complexNumber{n.binary("div", z.re, square), n.binary("div", z.im, square)}, by)
	infinite := n.compare("eq", m, n.fill(e, math.Inf(1)))
	none := n.scaled(x, n.fill(e, 0))
	return complexNumber{n.choose(infinite, none.re, z.re), n.choose(infinite, none.im, z.im)}
}

func (n *node) reciprocal(z complexNumber) complexNumber {
	e := z.re.Elem()
	return n.over(complexNumber{n.fill(e, 1), n.fill(e, 0)}, z)
}

// modulus is |z| = m √((re/m)² + (im/m)²), for the larger m of |re| and |im|.
func (n *node) modulus(z complexNumber) *ir.Value {
	m, s := n.largest(z)
	re, im := n.binary("div", z.re, s), n.binary("div", z.im, s)
	r := n.binary("mul", s, n.unary("sqrt", n.binary("add", n.binary("mul", re, re), n.binary("mul", im, im))))
	e := m.Elem()
	return n.choose(n.compare("eq", m, n.fill(e, 0)), n.fill(e, 0), r)
}

// signOf is z / |z|, and 0 of 0.
func (n *node) signOf(z complexNumber) complexNumber {
	r := n.modulus(z)
	e := r.Elem()
	zero := n.compare("eq", r, n.fill(e, 0))
	by := n.choose(zero, n.fill(e, 1), r)
	return complexNumber{n.binary("div", z.re, by), n.binary("div", z.im, by)}
}

// expOf is e^re (cos im + i sin im), real where im is 0.
func (n *node) expOf(z complexNumber) complexNumber {
	r := n.unary("exp", z.re)
	im := n.binary("mul", r, n.unary("sin", z.im))
	straight := n.compare("eq", z.im, n.fill(z.im.Elem(), 0))
	return complexNumber{n.binary("mul", r, n.choose(straight, n.fill(r.Elem(), 1), n.unary("cos", z.im))), n.choose(straight, z.im, im)}
}

// expm1Of is e^z - 1: with cos im = 1 - 2 sin²(im/2).
func (n *node) expm1Of(z complexNumber) complexNumber {
	e := z.re.Elem()
	half := n.unary("sin", n.binary("mul", z.im, n.fill(e, 0.5)))
	r := n.unary("expm1", z.re)
	re := n.binary("sub", n.binary("mul", r, n.unary("cos", z.im)), n.twice(n.binary("mul", half, half)))
	return complexNumber{re, n.expOf(z).im}
}

// logOf is log |z| + i arg z. Near 1 |z|² - 1 is computed, of which little is lost.
func (n *node) logOf(z complexNumber) complexNumber {
	e := z.re.Elem()
	one := n.fill(e, 1)
	a, b := n.unary("abs", z.re), n.unary("abs", z.im)
	m, l := n.binary("max", a, b), n.binary("min", a, b)
	excess := n.binary("add", n.binary("mul", n.binary("sub", m, one), n.binary("add", m, one)), n.binary("mul", l, l))
	near := n.binary("mul", n.fill(e, 0.5), n.unary("log1p", excess))
	close := n.compare("lt", n.unary("abs", excess), n.fill(e, 0.5))
	re := n.choose(close, near, n.unary("log", n.modulus(z)))
	return complexNumber{re, n.binary("atan2", z.im, z.re)}
}

// log1pOf is log (1 + z): |1 + z|² - 1 = re (2 + re) + im².
func (n *node) log1pOf(z complexNumber) complexNumber {
	e := z.re.Elem()
	one := n.fill(e, 1)
	whole := complexNumber{n.binary("add", one, z.re), z.im}
	excess := n.binary("add", n.binary("mul", z.re, n.binary("add", n.fill(e, 2), z.re)), n.binary("mul", z.im, z.im))
	near := n.binary("mul", n.fill(e, 0.5), n.unary("log1p", excess))
	close := n.compare("lt", n.unary("abs", excess), n.fill(e, 0.5))
	return complexNumber{n.choose(close, near, n.unary("log", n.modulus(whole))), n.binary("atan2", z.im, whole.re)}
}

// sqrtOf is t + i im/2t for t = √((|z| + |re|)/2), turned by a quarter where re is
// negative: nothing cancels.
func (n *node) sqrtOf(z complexNumber) complexNumber {
	e := z.re.Elem()
	zero := n.fill(e, 0)
	t := n.unary("sqrt", n.binary("mul", n.fill(e, 0.5), n.binary("add", n.modulus(z), n.unary("abs", z.re))))
	nothing := n.compare("eq", t, zero)
	u := n.binary("div", z.im, n.twice(n.choose(nothing, n.fill(e, 1), t)))
	left := n.compare("lt", z.re, zero)
	sign := n.bitcast(z.im, intOfSize(e.Bytes(), true)) // that of -0 too, on the other side of the cut
	below := n.compare("lt", sign, n.whole(sign.Elem(), 0))
	re := n.choose(left, n.unary("abs", u), t)
	im := n.choose(left, n.choose(below, n.unary("neg", t), t), u)
	return complexNumber{n.choose(nothing, zero, re), n.choose(nothing, z.im, im)}
}

// powerOf is e^(y log x), with 0^y = 0 and x^0 = 1.
func (n *node) powerOf(x, y complexNumber) complexNumber {
	e := x.re.Elem()
	zero, one := n.fill(e, 0), n.fill(e, 1)
	none := func(z complexNumber) *ir.Value {
		return n.binary("and", n.compare("eq", z.re, zero), n.compare("eq", z.im, zero))
	}
	nothing := none(x)
	z := n.expOf(n.times(y, n.logOf(complexNumber{n.choose(nothing, one, x.re), x.im})))
	z = complexNumber{n.choose(nothing, zero, z.re), n.choose(nothing, zero, z.im)}
	to := none(y)
	return complexNumber{n.choose(to, one, z.re), n.choose(to, zero, z.im)}
}

func (n *node) sinhOf(z complexNumber) complexNumber {
	return complexNumber{n.binary("mul", n.unary("sinh", z.re), n.unary("cos", z.im)), n.binary("mul", n.unary("cosh", z.re), n.unary("sin", z.im))}
}

func (n *node) coshOf(z complexNumber) complexNumber {
	return complexNumber{n.binary("mul", n.unary("cosh", z.re), n.unary("cos", z.im)), n.binary("mul", n.unary("sinh", z.re), n.unary("sin", z.im))}
}

// tanhOf is (t (1+u²) + i u (1-t²)) / (1 + t²u²) for t = tanh re, u = tan im, where
// 1-t² = 1/cosh² re.
func (n *node) tanhOf(z complexNumber) complexNumber {
	one := n.fill(z.re.Elem(), 1)
	t, u, c := n.unary("tanh", z.re), n.unary("tan", z.im), n.unary("cosh", z.re)
	t2, u2 := n.binary("mul", t, t), n.binary("mul", u, u)
	below := n.binary("add", one, n.binary("mul", t2, u2))
	re := n.binary("div", n.binary("mul", t, n.binary("add", one, u2)), below)
	im := n.binary("div", n.binary("div", n.binary("div", u, c), c), below)
	return complexNumber{re, im}
}

// roots are √(1 - z) and √(1 + z), of which Kahan's forms of the inverse functions are made:
// nothing in them cancels or overflows.
func (n *node) roots(z complexNumber) (below, above complexNumber) {
	one := n.fill(z.re.Elem(), 1)
	return n.sqrtOf(complexNumber{n.binary("sub", one, z.re), n.unary("neg", z.im)}), n.sqrtOf(complexNumber{n.binary("add", one, z.re), z.im})
}

func conjugate(n *node, z complexNumber) complexNumber {
	return complexNumber{z.re, n.unary("neg", z.im)}
}

func (n *node) asinOf(z complexNumber) complexNumber {
	below, above := n.roots(z)
	re := n.binary("atan2", z.re, n.times(below, above).re)
	return complexNumber{re, n.unary("asinh", n.times(conjugate(n, below), above).im)}
}

func (n *node) acosOf(z complexNumber) complexNumber {
	below, above := n.roots(z)
	re := n.twice(n.binary("atan2", below.re, above.re))
	return complexNumber{re, n.unary("asinh", n.times(conjugate(n, above), below).im)}
}

func (n *node) acoshOf(z complexNumber) complexNumber {
	one := n.fill(z.re.Elem(), 1)
	below, above := n.sqrtOf(complexNumber{n.binary("sub", z.re, one), z.im}), n.sqrtOf(complexNumber{n.binary("add", z.re, one), z.im})
	re := n.unary("asinh", n.times(conjugate(n, below), above).re)
	return complexNumber{re, n.twice(n.binary("atan2", below.im, above.re))}
}

// atanhOf is (log (1 + z) - log (1 - z)) / 2.
func (n *node) atanhOf(z complexNumber) complexNumber {
	e := z.re.Elem()
	a, b := n.log1pOf(z), n.log1pOf(n.negated(z))
	return n.scaled(complexNumber{n.binary("sub", a.re, b.re), n.binary("sub", a.im, b.im)}, n.fill(e, 0.5))
}
