package scalar

import (
	"math"

	"github.com/llir/llvm/ir/enum"
	lltypes "github.com/llir/llvm/ir/types"
	"github.com/llir/llvm/ir/value"
)

func init() {
	register(map[string]scalar{
		"erf":    {forms("dm_erf_f32", fastErf, library("erf")), nil, nil},
		"erfc":   {forms("dm_erfc_f32", fastErfc, library("erfc")), nil, nil},
		"gelu":   {forms("dm_gelu_f32", fastGelu, gelu), nil, nil},
		"erfinv": {forms("dm_erfinv_f32", fastErfinv, erfinv), nil, nil},
	})
}

// erfNear is erf x / x - 1 for |x| up to erfFar: minimax, with a relative error of erf x
// of 2^-31.
func (b builder) erfNear(x value.Value) value.Value {
	return b.polynomial(b.fmul(x, x), 0.12837916612625122, -0.3761262893676758, 0.11283625662326813, -0.02685573138296604,
		0.005192405078560114, -0.0008049769676290452, 7.996649947017431e-05)
}

const erfFar = 0.92

// fastErf is, up to erfFar, by erfNear, and beyond 1 - e^-(|x| + |x|·q(|x|)), minimax with
// an absolute error of 2^-30.
func fastErf(b builder, x value.Value) value.Value {
	a := b.intrinsic("fabs", x)
	near := b.fma(b.erfNear(x), x, x)
	c := b.choose(b.NewFCmp(enum.FPredOGT, a, f32(3.95)), f32(3.95), a) // where it is 1
	q := b.polynomial(c, 0.1286521703004837, 0.6351358890533447, 0.106263168156147, -0.02378535084426403,
		0.003653758205473423, -0.00032564933644607663, 1.15217580969329e-05)
	e := b.exponential(b.NewFNeg(b.fma(q, c, c))).value(b)
	far := b.withSign(b.NewFSub(f32(1), e), x)
	return b.choose(b.NewFCmp(enum.FPredOLT, a, f32(erfFar)), near, far)
}

func gelu(b builder, a []value.Value) value.Value {
	x := a[0]
	erf := b.library("erf", b.fmul(x, like(x, math.Sqrt2/2)))
	return b.fmul(b.fmul(like(x, 0.5), x), b.fadd(like(x, 1), erf))
}

// fastErfc is 1 - erf x up to erfFar, and beyond e^-a²·w·p(w - 5/16) for a = |x| and
// w = 1/(a+1): minimax, with a relative error of 2^-27 up to 10.26. a² is in two parts, so
// that the error stays small until the result is 0, and what a+1, w and the product lose is
// added to it later.
func fastErfc(b builder, x value.Value) value.Value {
	most := 10.25 // beyond, the result is 0 or 2
	near := b.fma(b.NewFNeg(x), b.erfNear(x), b.NewFSub(f32(1), x))
	size := b.intrinsic("fabs", x)
	a := b.choose(b.NewFCmp(enum.FPredOGT, size, f32(most)), f32(most), size)
	square := b.NewFMul(b.NewFNeg(a), a)
	rest, e := b.exponentialRest(square, b.fma(b.NewFNeg(a), a, b.NewFNeg(square)))
	under := b.NewFAdd(a, f32(1))
	w := b.NewFDiv(f32(1), under)
	minus := b.NewFNeg(w)
	lost := b.fma(minus, b.NewFSub(a, b.NewFSub(under, f32(1))), b.fma(minus, under, f32(1)))
	p := b.polynomial(b.NewFSub(w, f32(0.3125)), 0.753897488117218, 0.5946515798568726, -0.2182813137769699, -0.48487916588783264,
		0.4922701418399811, 0.3352542221546173, -1.1681342124938965, 0.6787059307098389, 1.6930408477783203, -2.8344950675964355)
	whole := b.NewFMul(p, w)
	rounded := b.fma(p, w, b.NewFNeg(whole))
	e.m = b.NewFAdd(whole, b.fma(whole, b.NewFAdd(rest, lost), rounded))
	far := e.value(b)
	far = b.choose(b.NewFCmp(enum.FPredOLT, x, f32(0)), b.NewFSub(f32(2), far), far)
	return b.choose(b.NewFCmp(enum.FPredOLT, size, f32(erfFar)), near, far)
}

// fastGelu is x/2·erfc(-x/√2), where erfc a = e^-a²·p((a-2)/(a+2)) / (1+2a) for a from
// 0 to 10.5: minimax, with a relative error of 2^-25. a² is x²/2, in two parts.
func fastGelu(b builder, x value.Value) value.Value {
	most := 14.5 // beyond, the result is x or 0
	size := b.intrinsic("fabs", x)
	size = b.choose(b.NewFCmp(enum.FPredOGT, size, f32(most)), f32(most), size)
	square := b.NewFMul(b.NewFMul(size, f32(-0.5)), size)
	tail := b.fma(b.NewFMul(size, f32(-0.5)), size, b.NewFNeg(square))
	e := b.exponentialOfSum(square, tail)
	a := b.fmul(size, f32(math.Sqrt2/2))
	// The quotients by a+2 and by 1+2a are of one division.
	shifted, double := b.NewFAdd(a, f32(2)), b.fma(a, f32(2), f32(1))
	inverse := b.NewFDiv(f32(1), b.fmul(shifted, double))
	t := b.fmul(b.NewFSub(a, f32(2)), b.fmul(inverse, double))
	p := b.polynomial(t, 1.2769783735275269, -0.09276393055915833, -0.16603106260299683, 0.16405491530895233,
		-0.05420601740479469, -0.008059126324951649, 0.00863430555909872, 0.0013134677428752184,
		-0.0012305545387789607, -0.00040026428177952766)
	half := b.fmul(b.choose(b.NewFCmp(enum.FPredOGT, x, f32(most)), f32(most), x), f32(0.5))
	m := b.fmul(e.m, b.fmul(p, b.fmul(inverse, shifted)))
	m = b.choose(b.NewFCmp(enum.FPredOGE, size, f32(most)), f32(0), m)
	below := scaled{b.NewFMul(m, half), e.low, e.high}.value(b)
	return b.choose(b.NewFCmp(enum.FPredOLE, x, f32(0)), below, b.NewFSub(x, below))
}

// fastErfinv is by Giles, Approximating the erfinv function (GPU Computing Gems, Jade
// Edition, 2011).
func fastErfinv(b builder, x value.Value) value.Value {
	one := f32(1)
	log := b.inlined("dm_log_f32", lltypes.Float, 1, func(b builder, a []value.Value) value.Value { return fastLog(b, a[0]) })
	w := b.NewFNeg(b.Call(log, b.fmul(b.fsub(one, x), b.fadd(one, x))))
	near := b.polynomial(b.fsub(w, f32(2.5)), 1.50140941, 0.246640727, -0.00417768164, -0.00125372503, 0.00021858087,
		-4.39150654e-06, -3.5233877e-06, 3.43273939e-07, 2.81022636e-08)
	far := b.polynomial(b.fsub(b.intrinsic("sqrt", w), f32(3)), 2.83297682, 1.00167406, 0.00943887047, -0.0076224613, 0.00573950773,
		-0.00367342844, 0.00134934322, 0.000100950558, -0.000200214257)
	return b.inverseEnds(x, b.fmul(b.choose(b.NewFCmp(enum.FPredOLT, w, f32(5)), near, far), x))
}

// inverseEnds is the inverse of erf: ±∞ at ±1, else v.
func (b builder) inverseEnds(x, v value.Value) value.Value {
	end := b.NewFCmp(enum.FPredOEQ, b.intrinsic("fabs", x), like(x, 1))
	return b.choose(end, b.withSign(like(x, inf), x), v)
}

// erfinv is by Wichura, Algorithm AS 241 (Applied Statistics 37, 1988).
func erfinv(b builder, args []value.Value) value.Value {
	x := args[0]
	a := b.intrinsic("fabs", x)
	near := b.fmul(x, b.quotient(b.fsub(f64(0.180625), b.fmul(b.fmul(f64(0.25), x), x)),
		[]float64{1.1975323115670912564578e0, 4.7072688112383978012285e1, 6.9706266534389598238465e2, 4.8548868893843886794648e3, 1.6235862515167575384252e4, 2.3782041382114385731252e4, 1.1819493347062294404278e4, 8.8709406962545514830200e2},
		[]float64{1, 4.2313330701600911252e1, 6.8718700749205790830e2, 5.3941960214247511077e3, 2.1213794301586595867e4, 3.9307895800092710610e4, 2.8729085735721942674e4, 5.2264952788528545610e3}))
	r := b.intrinsic("sqrt", b.fsub(f64(math.Ln2), b.library("log", b.fsub(f64(1), a))))
	mid := b.quotient(b.fsub(r, f64(1.6)),
		[]float64{1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0, 3.64784832476320460504e0, 1.27045825245236838258e0, 2.41780725177450611770e-1, 2.27238449892691845833e-2, 7.74545014278341407640e-4},
		[]float64{1.4142135623730950488016887e0, 2.9036514445419946173133295e0, 2.3707661626024532365971225e0, 9.7547832001787427186894837e-1, 2.0945065210512749128288442e-1, 2.1494160384252876777097297e-2, 7.7441459065157709165577218e-4, 1.4859850019840355905497876e-9})
	far := b.quotient(b.fsub(r, f64(5)),
		[]float64{6.65790464350110377720e0, 5.46378491116411436990e0, 1.78482653991729133580e0, 2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3, 2.71155556874348757815e-5, 2.01033439929228813265e-7},
		[]float64{1.414213562373095048801689e0, 8.482908416595164588112026e-1, 1.936480946950659106176712e-1, 2.103693768272068968719679e-2, 1.112800997078859844711555e-3, 2.611088405080593625138020e-5, 2.010321207683943062279931e-7, 2.891024605872965461538222e-15})
	tail := b.withSign(b.choose(b.NewFCmp(enum.FPredOLE, r, f64(5)), mid, far), x)
	return b.inverseEnds(x, b.choose(b.NewFCmp(enum.FPredOLE, a, f64(0.85)), near, tail))
}

// quotient is the quotient of two polynomials.
func (b builder) quotient(x value.Value, over, under []float64) value.Value {
	return b.NewFDiv(b.polynomial(x, over...), b.polynomial(x, under...))
}
