package op

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// unary describes one operand and one result of the same type.
type unary struct {
	name, summary, formula string
	elems                  []types.Elem
	flop                   int64 // an element, for floating-point operands
	note                   string
	foreign                []Foreign
	attrs                  []AttrDef
	flopOf                 func(o *ir.Op) int64 // where it depends on an attribute
	expand                 func(b *ir.Builder, o *ir.Op) []*ir.Value
	steps                  int // instructions; 0: one
	scalar                 Scalar
	linear                 func(o *ir.Op) [][]int
	derivative             *Derivative
	zero                   bool // of 0 it is 0
	steep                  bool // its derivative at 0 is infinite
}

// binary describes two broadcast operands and one result of their element type.
type binary struct {
	name, summary, formula string
	elems                  []types.Elem
	flop                   int64
	traits                 Trait
	note                   string
	foreign                []Foreign
	steps                  int
	linear                 func(o *ir.Op) [][]int
	derivative             *Derivative
	sparse                 *Sparse
	scalar                 Scalar
}

func elementwise() []*Def {
	var defs []*Def
	for _, u := range unaries {
		defs = append(defs, u.def())
	}
	for _, b := range binaries {
		defs = append(defs, b.def())
	}
	return append(append(defs, selections()...), ropeDef)
}

var unaries = []unary{
	{
		name: "abs", zero: true, summary: "absolute value", formula: "|x|", foreign: []Foreign{{Names: "absolute fabs absf"}}, elems: signedNum,
		scalar:     Scalar{Kinks: true, Exact: true, Range: absolute},
		derivative: direct("`dx = dy · sign(x)`, 0 at 0.", func(w *Builder, x, _, dy *ir.Value) *ir.Value { return w.mul(dy, w.Unary("sign", x)) }),
	},
	{
		name: "neg", zero: true, summary: "negation", formula: "-x", foreign: []Foreign{{Names: "negative negate negf"}}, elems: signedNum,
		scalar:     Scalar{Exact: true, Range: monotone(func(x float64) float64 { return -x })},
		linear:     linearIn([]int{0}),
		derivative: direct("`dx = -dy`.", func(w *Builder, _, _, dy *ir.Value) *ir.Value { return w.neg(dy) }),
	},
	{
		name: "exp", summary: "exponential", formula: "e^x", foreign: []Foreign{{Names: "exponential"}}, elems: floats, flop: 1,
		steps: 8, scalar: Scalar{Tame: within(7), Range: monotone(math.Exp)},
		derivative: direct("`dx = dy · y`.", func(w *Builder, _, y, dy *ir.Value) *ir.Value { return w.mul(dy, y) }),
	},
	{
		name: "log", summary: "natural logarithm", formula: "ln x", foreign: []Foreign{{Names: "ln"}}, elems: floats, flop: 1,
		steps: 8, scalar: Scalar{Tame: positive, Range: monotone(math.Log)},
		derivative: direct("`dx = dy / x`.", func(w *Builder, x, _, dy *ir.Value) *ir.Value { return w.div(dy, x) }),
	},
	{
		name: "log1p", zero: true, summary: "natural logarithm of 1 + x, exact near 0", formula: "ln(1 + x)", foreign: []Foreign{{Names: "log_plus_one"}}, elems: floats, flop: 1,
		steps: 8, scalar: Scalar{Tame: positive, Range: monotone(math.Log1p)},
		derivative: ofX("`dx = dy / (1 + x)`.", func(w *Builder, x, dy *ir.Value) *ir.Value { return w.div(dy, w.plus(x, 1)) }),
	},
	{
		name: "expm1", zero: true, summary: "exponential minus 1, exact near 0", formula: "e^x - 1", foreign: []Foreign{{Names: "exponential_minus_one"}}, elems: floats, flop: 1,
		steps: 8, scalar: Scalar{Tame: within(7), Range: monotone(math.Expm1)},
		derivative: ofY("`dx = dy · (y + 1)`.", func(w *Builder, y, dy *ir.Value) *ir.Value { return w.mul(dy, w.plus(y, 1)) }),
	},
	{
		name: "sqrt", zero: true, steep: true, summary: "square root", formula: "x^(1/2)", elems: floats, flop: 1,
		scalar:     Scalar{Tame: positive, Range: monotone(math.Sqrt)},
		derivative: ofY("`dx = dy / (2 y)`.", func(w *Builder, y, dy *ir.Value) *ir.Value { return w.div(w.scale(dy, 0.5), y) }),
	},
	{
		name: "rsqrt", summary: "reciprocal square root", formula: "x^(-1/2)", foreign: []Foreign{{Names: "reciprocal_sqrt"}}, elems: floats, flop: 1,
		scalar: Scalar{Tame: positive, Range: monotone(func(x float64) float64 { return 1 / math.Sqrt(x) })},
		derivative: ofY("`dx = -dy · y³ / 2`.", func(w *Builder, y, dy *ir.Value) *ir.Value {
			return w.mul(w.scale(dy, -0.5), w.mul(y, w.mul(y, y)))
		}),
	},
	{
		name: "cbrt", zero: true, steep: true, summary: "cube root", formula: "x^(1/3)", elems: floats, flop: 1, note: "The root of a negative value is negative.",
		steps: 8, scalar: Scalar{Tame: positive, Range: monotone(math.Cbrt)},
		derivative: ofY("`dx = dy / (3 y²)`.", func(w *Builder, y, dy *ir.Value) *ir.Value {
			return w.div(dy, w.scale(w.mul(y, y), 3))
		}),
	},
	{
		name: "tanh", zero: true, summary: "hyperbolic tangent", formula: "tanh x", elems: floats, flop: 1,
		steps: 8, scalar: Scalar{Range: between(-1, 1)},
		derivative: ofY("`dx = dy · (1 - y²)`.", func(w *Builder, y, dy *ir.Value) *ir.Value {
			return w.mul(dy, w.sub(w.number(y, 1), w.mul(y, y)))
		}),
	},
	{
		name: "erf", zero: true, summary: "error function", formula: "2/√π ∫₀ˣ e^(-t²) dt", elems: floats, flop: 1,
		steps: 8, scalar: Scalar{Range: between(-1, 1)},
		derivative: ofX("`dx = dy · 2/√π · e^(-x²)`.", func(w *Builder, x, dy *ir.Value) *ir.Value {
			return w.mul(w.scale(dy, 2/math.Sqrt(math.Pi)), w.Unary("exp", w.neg(w.mul(x, x))))
		}),
	},
	{
		name: "erfc", summary: "complementary error function", formula: "1 - erf x", elems: floats, flop: 1,
		note:  "It keeps its digits where erf is close to 1.",
		steps: 16, scalar: Scalar{Tame: within(3), Range: between(0, 2)},
		derivative: ofX("`dx = -dy · 2/√π · e^(-x²)`.", func(w *Builder, x, dy *ir.Value) *ir.Value {
			return w.mul(w.scale(dy, -2/math.Sqrt(math.Pi)), w.Unary("exp", w.neg(w.mul(x, x))))
		}),
	},
	{
		name: "erfinv", zero: true, summary: "inverse error function", formula: "erf⁻¹ x", elems: floats, flop: 1,
		note:   "It is ±∞ at ±1 and NaN beyond.",
		steps:  16,
		scalar: Scalar{Tame: within(0.75), Range: monotone(math.Erfinv)},
		derivative: ofY("`dx = dy · √π/2 · e^(y²)`.", func(w *Builder, y, dy *ir.Value) *ir.Value {
			return w.mul(w.scale(dy, math.Sqrt(math.Pi)/2), w.Unary("exp", w.mul(y, y)))
		}),
	},
	{
		name: "logistic", summary: "logistic function (sigmoid)", formula: "1 / (1 + e^(-x))", foreign: []Foreign{{Names: "sigmoid expit"}}, elems: floats, flop: 3,
		note: "The 3 FLOP are the exponential, the addition and the division.", expand: expandLogistic,
		steps: 8, scalar: Scalar{Tame: within(30), Range: between(0, 1)},
		derivative: ofY("`dx = dy · y · (1 - y)`.", func(w *Builder, y, dy *ir.Value) *ir.Value {
			return w.mul(w.mul(dy, y), w.sub(w.number(y, 1), y))
		}),
	},
	{
		name: "relu", zero: true, summary: "rectified linear unit", formula: "max(x, 0)", foreign: []Foreign{{Names: "rectified_linear"}}, elems: signedNum,
		scalar: Scalar{Kinks: true, Exact: true, Range: monotone(func(x float64) float64 { return max(x, 0) })},
		derivative: direct("`dx = dy` where `y > 0`, else 0, also at 0.", func(w *Builder, _, y, dy *ir.Value) *ir.Value {
			return w.when(w.compare("gt", y, w.number(y, 0)), dy)
		}),
	},
	{
		name: "gelu", zero: true, summary: "Gaussian error linear unit", formula: "x/2 · (1 + erf(x / √2))", foreign: []Foreign{{Names: "gelu_new gelu_fast gelu_tanh gelu_pytorch_tanh", Form: "approximate = tanh"}, {Names: "geglu", Rest: "of one half, and dm.mul by the other"}}, elems: floats,
		note: "With `approximate = tanh` the function is `x/2 · (1 + tanh(√(2/π) · (x + 0.044715 x³)))`. " +
			"Counted by the formula's operations: 5 FLOP an element, 9 with `tanh`. " +
			"Source: Hendrycks and Gimpel, *Gaussian Error Linear Units*, arXiv 1606.08415.",
		attrs: []AttrDef{{
			Name: "approximate", Kind: KindKeyword, Enum: []string{"none", "tanh"}, Default: types.Keyword("none"),
			Doc: "`tanh` takes the paper's approximation instead of the error function",
		}},
		flopOf: func(o *ir.Op) int64 {
			if Str(o, "approximate") == "tanh" {
				return 9
			}
			return 5
		},
		expand: expandGelu,
		steps:  8, scalar: Scalar{Form: "approximate", Tame: within(50), Range: monotone(func(x float64) float64 { return max(x, -0.2) })},
		derivative: &Derivative{
			Doc: "`dx = dy · (Φ(x) + x · Φ'(x))` with `Φ(x) = (1 + erf(x/√2)) / 2`, or the tanh form's `Φ` with `approximate = tanh`; recomputed from x.",
			rule: func(g *backward) {
				x, dy := g.wide(g.x(0)), g.wide(g.dy[0])
				g.give(0, g.mul(dy, g.geluSlope(x, Str(g.o, "approximate") == "tanh")))
			},
		},
	},
	{
		name: "silu", zero: true, summary: "sigmoid linear unit (swish)", formula: "x / (1 + e^(-x))", foreign: []Foreign{{Names: "swish"}, {Names: "swiglu", Rest: "of one half, and dm.mul by the other"}}, elems: floats, flop: 4,
		note: "The 4 FLOP are those of `dm.logistic` and one multiplication. " +
			"Source: Elfwing, Uchibe and Doya, arXiv 1702.03118.", expand: expandSilu,
		steps: 8, scalar: Scalar{Tame: within(50), Range: monotone(func(x float64) float64 { return max(x, -0.3) })},
		derivative: ofX("`dx = dy · s · (1 + x · (1 - s))` with the logistic `s` of x, recomputed.", func(w *Builder, x, dy *ir.Value) *ir.Value {
			s := w.Unary("logistic", x)
			return w.mul(w.mul(dy, s), w.plus(w.mul(x, w.sub(w.number(s, 1), s)), 1))
		}),
	},
	{
		name: "sign", zero: true, summary: "sign: -1, 0 or 1", formula: "sign x", foreign: []Foreign{{Names: "sgn signum"}}, elems: signedNum, note: "The sign of NaN is NaN.",
		scalar:     Scalar{Jumps: true, Exact: true, Range: between(-1, 1)},
		derivative: flat(constantDoc),
	},
	{
		name: "floor", zero: true, summary: "largest integral value not above x", formula: "⌊x⌋", elems: floats,
		scalar:     Scalar{Jumps: true, Exact: true, Range: monotone(math.Floor)},
		derivative: flat(constantDoc),
	},
	{
		name: "ceil", zero: true, summary: "smallest integral value not below x", formula: "⌈x⌉", foreign: []Foreign{{Names: "ceiling"}}, elems: floats,
		scalar:     Scalar{Jumps: true, Exact: true, Range: monotone(math.Ceil)},
		derivative: flat(constantDoc),
	},
	{
		name: "round", zero: true, summary: "nearest integral value, halves to even", formula: "round x", foreign: []Foreign{{Names: "rint round_nearest_even"}}, elems: floats,
		scalar:     Scalar{Jumps: true, Exact: true, Range: monotone(math.RoundToEven)},
		derivative: flat(constantDoc),
	},
	{
		name: "round_half_away", zero: true, summary: "nearest integral value, halves away from zero", formula: "sign(x) · ⌊|x| + 1/2⌋", foreign: []Foreign{{Names: "round_nearest_afz"}}, elems: floats,
		scalar:     Scalar{Jumps: true, Exact: true, Range: monotone(math.Round)},
		derivative: flat(constantDoc),
	},
	{
		name: "cos", summary: "cosine", formula: "cos x", foreign: []Foreign{{Names: "cosine"}}, elems: floats, flop: 1,
		steps: 8, scalar: Scalar{Tame: within(20), Range: between(-1, 1)},
		derivative: ofX("`dx = -dy · sin x`.", func(w *Builder, x, dy *ir.Value) *ir.Value { return w.neg(w.mul(dy, w.Unary("sin", x))) }),
	},
	{
		name: "sin", zero: true, summary: "sine", formula: "sin x", foreign: []Foreign{{Names: "sine"}}, elems: floats, flop: 1,
		steps: 8, scalar: Scalar{Tame: within(20), Range: between(-1, 1)},
		derivative: ofX("`dx = dy · cos x`.", func(w *Builder, x, dy *ir.Value) *ir.Value { return w.mul(dy, w.Unary("cos", x)) }),
	},
	{
		name: "tan", zero: true, summary: "tangent", formula: "tan x", foreign: []Foreign{{Names: "tangent"}}, elems: floats, flop: 1,
		steps: 12, scalar: Scalar{Tame: within(1.2), Range: tangents},
		derivative: ofY("`dx = dy · (1 + y²)`.", func(w *Builder, y, dy *ir.Value) *ir.Value {
			return w.mul(dy, w.plus(w.mul(y, y), 1))
		}),
	},
	{
		name: "sinh", zero: true, summary: "hyperbolic sine", formula: "(e^x - e^(-x)) / 2", elems: floats, flop: 1,
		steps: 12, scalar: Scalar{Tame: within(7), Range: monotone(math.Sinh)},
		derivative: ofX("`dx = dy · cosh x`.", func(w *Builder, x, dy *ir.Value) *ir.Value { return w.mul(dy, w.Unary("cosh", x)) }),
	},
	{
		name: "cosh", summary: "hyperbolic cosine", formula: "(e^x + e^(-x)) / 2", elems: floats, flop: 1,
		steps: 12, scalar: Scalar{Tame: within(7), Range: func(x Interval) Interval {
			return Interval{1, max(math.Cosh(x.Lo), math.Cosh(x.Hi))}
		}},
		derivative: ofX("`dx = dy · sinh x`.", func(w *Builder, x, dy *ir.Value) *ir.Value { return w.mul(dy, w.Unary("sinh", x)) }),
	},
	{
		name: "asinh", zero: true, summary: "inverse hyperbolic sine", formula: "ln(x + √(x² + 1))", foreign: []Foreign{{Names: "arcsinh"}}, elems: floats, flop: 1,
		steps: 12, scalar: Scalar{Range: monotone(math.Asinh)},
		derivative: ofX("`dx = dy / √(x² + 1)`, whose squares do not overflow.", func(w *Builder, x, dy *ir.Value) *ir.Value {
			inverse := w.div(w.number(x, 1), w.Binary("max", w.Unary("abs", x), w.number(x, 1)))
			part := w.mul(x, inverse)
			return w.mul(w.mul(dy, inverse), w.Unary("rsqrt", w.add(w.mul(part, part), w.mul(inverse, inverse))))
		}),
	},
	{
		name: "acosh", summary: "inverse hyperbolic cosine", formula: "ln(x + √(x² - 1))", foreign: []Foreign{{Names: "arccosh"}}, elems: floats, flop: 1,
		note:  "It is NaN below 1.",
		steps: 12, scalar: Scalar{Tame: Interval{1, math.Inf(1)}, Range: monotone(math.Acosh)},
		derivative: ofX("`dx = dy / (√(x - 1) · √(x + 1))`.", func(w *Builder, x, dy *ir.Value) *ir.Value {
			return w.mul(dy, w.mul(w.Unary("rsqrt", w.plus(x, -1)), w.Unary("rsqrt", w.plus(x, 1))))
		}),
	},
	{
		name: "atanh", zero: true, summary: "inverse hyperbolic tangent", formula: "ln((1 + x) / (1 - x)) / 2", foreign: []Foreign{{Names: "arctanh"}}, elems: floats, flop: 1,
		note:  "It is ±∞ at ±1 and NaN beyond.",
		steps: 12, scalar: Scalar{Tame: within(0.9), Range: monotone(math.Atanh)},
		derivative: ofX("`dx = dy / ((1 - x) · (1 + x))`.", func(w *Builder, x, dy *ir.Value) *ir.Value {
			return w.div(dy, w.mul(w.sub(w.number(x, 1), x), w.plus(x, 1)))
		}),
	},
	{
		name: "popcnt", summary: "number of bits that are set", formula: "popcnt x", foreign: []Foreign{{Names: "population_count bit_count bitwise_count ctpop"}}, elems: integers,
		derivative: flat(notFloat),
	},
	{
		name: "count_leading_zeros", summary: "number of zero bits before the highest bit that is set", formula: "clz x", foreign: []Foreign{{Names: "clz ctlz"}}, elems: integers,
		note:       "It is the number of bits of the element type for 0.",
		derivative: flat(notFloat),
	},
	{
		name: "not", summary: "logical complement of i1, bitwise of integers", formula: "¬x", foreign: []Foreign{{Names: "logical_not bitwise_not invert"}}, elems: logical,
		derivative: flat(notFloat),
	},
}

// shiftNote is what shifts by too much are.
const shiftNote = "A shift by at least the number of bits, or by a negative one, moves all bits out."

var binaries = []binary{
	{
		name: "add", sparse: merging(false), summary: "sum", formula: "x + y", foreign: []Foreign{{Names: "plus addf addi"}}, elems: numeric, flop: 1, traits: Commutative,
		linear: linearInAll,
		derivative: ofBoth("`dx = dz`, `dy = dz`.", func(g *backward, _, _, dz *ir.Value) {
			g.give(0, dz)
			g.give(1, dz)
		}),
	},
	{
		name: "sub", sparse: merging(false), summary: "difference", formula: "x - y", foreign: []Foreign{{Names: "subtract minus subf subi"}}, elems: numeric, flop: 1,
		linear: linearInAll,
		derivative: ofBoth("`dx = dz`, `dy = -dz`.", func(g *backward, _, _, dz *ir.Value) {
			g.give(0, dz)
			if g.want[1] {
				g.give(1, g.neg(g.sumTo(dz, in(g.o, 1).Shape)))
			}
		}),
	},
	{
		name: "mul", sparse: merging(true), summary: "product", formula: "x · y", foreign: []Foreign{{Names: "multiply times mulf muli"}}, elems: numeric, flop: 1, traits: Commutative,
		linear: linearInEach,
		derivative: ofBoth("`dx = dz · y`, `dy = dz · x`.", func(g *backward, x, y, dz *ir.Value) {
			if g.want[0] {
				g.give(0, g.mul(dz, y))
			}
			if g.want[1] {
				g.give(1, g.mul(dz, x))
			}
		}),
	},
	{
		name: "div", sparse: quotients, summary: "quotient", formula: "x / y", foreign: []Foreign{{Names: "divide true_divide divf"}}, elems: numeric, flop: 1, note: "Integer quotients are cut towards zero.",
		linear: linearFloat,
		derivative: ofBoth("`dx = dz / y`, `dy = -dz · z / y`.", func(g *backward, _, y, dz *ir.Value) {
			q := g.div(g.wide(dz), g.wide(y))
			g.give(0, q)
			if g.want[1] {
				g.give(1, g.neg(g.mul(q, g.wide(g.y(0)))))
			}
		}),
	},
	{
		name: "max", sparse: merging(false), summary: "larger of two", formula: "max(x, y)", foreign: []Foreign{{Names: "maximum maximumf"}}, elems: numeric, traits: Commutative, note: "NaN if one of them is.",
		derivative: ofBoth("The cotangent goes to the larger operand; equal ones share it half and half.", extremum("gt")),
	},
	{
		name: "min", sparse: merging(false), summary: "smaller of two", formula: "min(x, y)", foreign: []Foreign{{Names: "minimum minimumf"}}, elems: numeric, traits: Commutative, note: "NaN if one of them is.",
		derivative: ofBoth("The cotangent goes to the smaller operand; equal ones share it half and half.", extremum("lt")),
	},
	{
		name: "pow", summary: "power powf", formula: "x^y", foreign: []Foreign{{Names: "power powf"}}, elems: numeric, flop: 1,
		steps: 8,
		derivative: ofBoth("`dx = dz · y · x^(y-1)`; `dy = dz · z · ln x`, and 0 where x is not positive.", func(g *backward, x, y, dz *ir.Value) {
			x, y, dz = g.wide(x), g.wide(y), g.wide(dz)
			if g.want[0] {
				g.give(0, g.mul(dz, g.mul(y, g.Binary("pow", x, g.plus(y, -1)))))
			}
			if g.want[1] {
				positive := g.compare("gt", x, g.number(x, 0))
				log := g.Unary("log", g.choose(positive, x, g.number(x, 1)))
				g.give(1, g.mul(g.mul(dz, g.wide(g.y(0))), log))
			}
		}),
	},
	{
		name: "rem", summary: "remainder with the sign of x", formula: "x - y · trunc(x / y)", foreign: []Foreign{{Names: "fmod remf"}, {Names: "remainder", Rest: "where its sign is that of the dividend"}}, elems: numeric, flop: 1,
		note: "As C's `fmod` and `%`.", scalar: Scalar{Jumps: true},
		derivative: ofBoth("`dx = dz`, `dy = -dz · trunc(x / y)`.", func(g *backward, x, y, dz *ir.Value) {
			g.give(0, dz)
			if g.want[1] {
				whole := g.Unary("round", g.div(g.sub(g.wide(x), g.wide(g.y(0))), g.wide(y)))
				g.give(1, g.neg(g.mul(g.wide(dz), whole)))
			}
		}),
	},
	{
		name: "atan2", summary: "angle of the point (y, x)", formula: "atan2(x, y)", foreign: []Foreign{{Names: "arctan2"}}, elems: floats, flop: 1, note: "The first operand is the ordinate.",
		steps: 8,
		derivative: ofBoth("`dx = dz · y / (x² + y²)`, `dy = -dz · x / (x² + y²)`.", func(g *backward, x, y, dz *ir.Value) {
			x, y = g.wide(x), g.wide(y)
			q := g.div(g.wide(dz), g.add(g.mul(x, x), g.mul(y, y)))
			if g.want[0] {
				g.give(0, g.mul(q, y))
			}
			if g.want[1] {
				g.give(1, g.neg(g.mul(q, x)))
			}
		}),
	},
	{
		name: "and", summary: "logical and of i1, bitwise of integers", formula: "x ∧ y", foreign: []Foreign{{Names: "logical_and bitwise_and"}}, elems: logical, traits: Commutative,
		derivative: flat(notFloat),
	},
	{
		name: "or", summary: "logical or of i1, bitwise of integers", formula: "x ∨ y", foreign: []Foreign{{Names: "logical_or bitwise_or"}}, elems: logical, traits: Commutative,
		derivative: flat(notFloat),
	},
	{
		name: "xor", summary: "logical exclusive or of i1, bitwise of integers", formula: "x ⊕ y", foreign: []Foreign{{Names: "logical_xor bitwise_xor"}}, elems: logical, traits: Commutative,
		derivative: flat(notFloat),
	},
	{
		name: "shift_left", summary: "bits moved up", formula: "x · 2^y", foreign: []Foreign{{Names: "shli bitwise_left_shift left_shift"}}, elems: integers,
		note:       shiftNote + " The bits that come in are 0.",
		derivative: flat(notFloat),
	},
	{
		name: "shift_right_logical", summary: "bits moved down, zeros coming in", formula: "x >> y", foreign: []Foreign{{Names: "shrui logical_right_shift"}}, elems: integers,
		note:       shiftNote + " The bits that come in are 0, also for negative x.",
		derivative: flat(notFloat),
	},
	{
		name: "shift_right_arithmetic", summary: "bits moved down, the sign coming in", formula: "⌊x / 2^y⌋", foreign: []Foreign{{Names: "shrsi bitwise_right_shift right_shift arithmetic_right_shift"}}, elems: integers,
		note:       shiftNote + " The bits that come in are the highest one of x, of unsigned types too.",
		derivative: flat(notFloat),
	},
}

func (u unary) def() *Def {
	d := &Def{
		Name: u.name, Family: Elementwise, Class: ClassElementwise,
		Summary: u.summary, Foreign: u.foreign,
		Doc: paragraphs(fmt.Sprintf("Every element of the result is `%s` of the operand's element; shape and element type stay.", u.formula), u.note),
		Operands: []Param{
			{Name: "x", Elems: u.elems, Doc: "any shape"},
		},
		Results:    []Param{{Name: "y", Elems: u.elems, Doc: "the operand's type"}},
		Attrs:      u.attrs,
		Traits:     Pure | Pointwise | Memberwise,
		Infer:      inferPointwise,
		Maps:       pointwiseMaps,
		Linear:     u.linear,
		Expand:     u.expand,
		Scalar:     &u.scalar,
		Steps:      u.steps,
		Derivative: u.derivative,
	}
	switch {
	case u.zero && u.steep:
		d.Sparse = steepStored
	case u.zero:
		d.Sparse = eachStored
	}
	perElement := func(*ir.Op) int64 { return u.flop }
	if u.flopOf != nil {
		perElement = u.flopOf
	}
	d.FLOP = func(o *ir.Op) dim.Dim { return floatElements(out(o, 0)).Scale(perElement(o)) }
	if u.flopOf == nil {
		d.Doc = paragraphs(d.Doc, counted(u.flop))
	}
	t := "tensor<2x3x" + exampleElem(u.elems) + ">"
	d.Example = fmt.Sprintf("func.func @example(%%x: %[1]s) -> %[1]s {\n  %%y = dm.%[2]s %%x : %[1]s\n  return %%y : %[1]s\n}", t, u.name)
	return d
}

func (b binary) def() *Def {
	t, v := "tensor<2x3x"+exampleElem(b.elems)+">", "tensor<3x"+exampleElem(b.elems)+">"
	return &Def{
		Name: b.name, Family: Elementwise, Class: ClassElementwise,
		Summary: b.summary, Foreign: b.foreign,
		Doc: paragraphs(fmt.Sprintf("Every element of the result is `%s`. The operands broadcast as in NumPy, which moves no bytes of its own, and have the same element type.", b.formula),
			b.note, counted(b.flop)),
		Operands: []Param{
			{Name: "x", Elems: b.elems, Doc: "any shape"},
			{Name: "y", Elems: b.elems, Doc: "a shape that broadcasts with x's"},
		},
		Results:    []Param{{Name: "z", Elems: b.elems, Doc: "the broadcast shape, the operands' element type"}},
		Traits:     Pure | Pointwise | Memberwise | b.traits,
		Infer:      inferPointwise,
		FLOP:       func(o *ir.Op) dim.Dim { return floatElements(out(o, 0)).Scale(b.flop) },
		Maps:       pointwiseMaps,
		Linear:     b.linear,
		Scalar:     &b.scalar,
		Steps:      b.steps,
		Derivative: b.derivative,
		Sparse:     b.sparse,
		Example:    fmt.Sprintf("func.func @example(%%x: %[1]s, %%y: %[3]s) -> %[1]s {\n  %%z = dm.%[2]s %%x, %%y : (%[1]s, %[3]s) -> %[1]s\n  return %%z : %[1]s\n}", t, b.name, v),
	}
}

func exampleElem(elems []types.Elem) string {
	if elems[0].IsFloat() {
		return "f32"
	}
	return "i32"
}

func counted(flop int64) string {
	if flop == 0 {
		return "Counts no FLOP."
	}
	return fmt.Sprintf("Counts %d FLOP for each element of the result; none for integers.", flop)
}

func paragraphs(ps ...string) string {
	var kept []string
	for _, p := range ps {
		if p != "" {
			kept = append(kept, p)
		}
	}
	return strings.Join(kept, "\n\n")
}

// floatElements is the number of elements of t, 0 for integers: their
// arithmetic is not floating-point.
func floatElements(t *types.Tensor) dim.Dim {
	if !t.Elem.IsFloat() {
		return dim.Dim{}
	}
	return t.Elements()
}

func inferPointwise(o *ir.Op) ([]types.Type, *Problem) {
	if t := shared(o); t != nil {
		return one(t), nil
	}
	if p := sameElems(o, 0); p != nil {
		return nil, p
	}
	shape, p := broadcastAll(o, 0)
	if p != nil {
		return nil, p
	}
	return one(like(o, tensor(in(o, 0), in(o, 0).Elem, shape...))), nil
}

// shared is the type that all operands have, or one has and the others broadcast to by their rank alone,
// as a bias does; nil where they differ otherwise or are no tensors in row-major order. Mostly it is the
// result's as well.
func shared(o *ir.Op) *types.Tensor {
	var t *types.Tensor
	equal := true
	for i, v := range o.Operands {
		u, ok := v.Type.(*types.Tensor)
		if !ok || u.At.Order != nil {
			return nil
		}
		if i == 0 || u == t {
			t = u
			continue
		}
		if u.Elem != t.Elem || u.At.Space != t.At.Space {
			return nil
		}
		long, short := t, u
		if len(short.Shape) > len(long.Shape) {
			long, short = short, long
		}
		if !slices.EqualFunc(short.Shape, long.Shape[len(long.Shape)-len(short.Shape):], dim.Dim.Equal) {
			return nil
		}
		equal = equal && len(short.Shape) == len(long.Shape)
		t = long
	}
	if !equal && t.At.Shard != nil { // a result that is broadcast has no sharding of its own
		return nil
	}
	return t
}

// pointwiseMaps: one loop for each dimension of the first result.
func pointwiseMaps(o *ir.Op) *Iteration {
	shape := out(o, 0).Shape
	it := &Iteration{Loops: shape, Names: loopNames(len(shape)), Reduces: make([]bool, len(shape))}
	for i := range o.Operands {
		it.Operands = append(it.Operands, broadcastMap(in(o, i).Shape, shape))
	}
	for range o.Results {
		it.Results = append(it.Results, identity(len(shape)))
	}
	return it
}

func broadcastMap(from, to []dim.Dim) []int {
	m := make([]int, len(from))
	off := len(to) - len(from)
	for i, d := range from {
		if m[i] = off + i; m[i] < 0 || isOne(d) && !isOne(to[m[i]]) {
			m[i] = -1
		}
	}
	return m
}

func loopNames(n int) []string {
	s := make([]string, n)
	for i := range s {
		s[i] = fmt.Sprintf("d%d", i)
	}
	return s
}

func identity(n int) []int {
	m := make([]int, n)
	for i := range m {
		m[i] = i
	}
	return m
}
