package op

import (
	"math"

	"dmir/dialect/ir"
)

// direct is the rule of a unary op whose formula is one exact or one rounded
// operation: it needs no wider type.
func direct(doc string, f func(w *writer, x, y, dy *ir.Value) *ir.Value) *Derivative {
	return &Derivative{Doc: doc, rule: func(g *backward) { g.give(0, f(g.writer, g.x(0), g.y(0), g.dy[0])) }}
}

const constantDoc = "Constant almost everywhere: no gradient flows."

func unaryDerivatives() map[string]*Derivative {
	return map[string]*Derivative{
		"abs":   direct("`dx = dy · sign(x)`, 0 at 0.", func(w *writer, x, _, dy *ir.Value) *ir.Value { return w.mul(dy, w.unary("sign", x)) }),
		"neg":   direct("`dx = -dy`.", func(w *writer, _, _, dy *ir.Value) *ir.Value { return w.neg(dy) }),
		"exp":   direct("`dx = dy · y`.", func(w *writer, _, y, dy *ir.Value) *ir.Value { return w.mul(dy, y) }),
		"log":   direct("`dx = dy / x`.", func(w *writer, x, _, dy *ir.Value) *ir.Value { return w.div(dy, x) }),
		"log1p": ofX("`dx = dy / (1 + x)`.", func(w *writer, x, dy *ir.Value) *ir.Value { return w.div(dy, w.plus(x, 1)) }),
		"expm1": ofY("`dx = dy · (y + 1)`.", func(w *writer, y, dy *ir.Value) *ir.Value { return w.mul(dy, w.plus(y, 1)) }),
		"sqrt":  ofY("`dx = dy / (2 y)`.", func(w *writer, y, dy *ir.Value) *ir.Value { return w.div(w.scale(dy, 0.5), y) }),
		"rsqrt": ofY("`dx = -dy · y³ / 2`.", func(w *writer, y, dy *ir.Value) *ir.Value {
			return w.mul(w.scale(dy, -0.5), w.mul(y, w.mul(y, y)))
		}),
		"cbrt": ofY("`dx = dy / (3 y²)`.", func(w *writer, y, dy *ir.Value) *ir.Value {
			return w.div(dy, w.scale(w.mul(y, y), 3))
		}),
		"tanh": ofY("`dx = dy · (1 - y²)`.", func(w *writer, y, dy *ir.Value) *ir.Value {
			return w.mul(dy, w.sub(w.number(y, 1), w.mul(y, y)))
		}),
		"erf": ofX("`dx = dy · 2/√π · e^(-x²)`.", func(w *writer, x, dy *ir.Value) *ir.Value {
			return w.mul(w.scale(dy, 2/math.Sqrt(math.Pi)), w.unary("exp", w.neg(w.mul(x, x))))
		}),
		"logistic": ofY("`dx = dy · y · (1 - y)`.", func(w *writer, y, dy *ir.Value) *ir.Value {
			return w.mul(w.mul(dy, y), w.sub(w.number(y, 1), y))
		}),
		"relu": direct("`dx = dy` where `y > 0`, else 0, also at 0.", func(w *writer, _, y, dy *ir.Value) *ir.Value {
			return w.when(w.compare("gt", y, w.number(y, 0)), dy)
		}),
		"gelu": {
			Doc: "`dx = dy · (Φ(x) + x · Φ'(x))` with `Φ(x) = (1 + erf(x/√2)) / 2`, or what `approximate = tanh` puts in its place; recomputed from x.",
			rule: func(g *backward) {
				x, dy := g.wide(g.x(0)), g.wide(g.dy[0])
				g.give(0, g.mul(dy, g.geluSlope(x, Str(g.o, "approximate") == "tanh")))
			},
		},
		"silu": ofX("`dx = dy · s · (1 + x · (1 - s))` with the logistic `s` of x, recomputed.", func(w *writer, x, dy *ir.Value) *ir.Value {
			s := w.unary("logistic", x)
			return w.mul(w.mul(dy, s), w.plus(w.mul(x, w.sub(w.number(s, 1), s)), 1))
		}),
		"cos":   ofX("`dx = -dy · sin x`.", func(w *writer, x, dy *ir.Value) *ir.Value { return w.neg(w.mul(dy, w.unary("sin", x))) }),
		"sin":   ofX("`dx = dy · cos x`.", func(w *writer, x, dy *ir.Value) *ir.Value { return w.mul(dy, w.unary("cos", x)) }),
		"sign":  flat(constantDoc),
		"floor": flat(constantDoc),
		"ceil":  flat(constantDoc),
		"round": flat(constantDoc),
		"not":   flat("Not of floating-point numbers: no gradient flows."),
	}
}

// ofX and ofY are rules of the operand, or of the result, and dy alone, in at
// least f32 and rounded once.
func ofX(doc string, f func(w *writer, x, dy *ir.Value) *ir.Value) *Derivative {
	return &Derivative{Doc: doc, rule: func(g *backward) { g.give(0, f(g.writer, g.wide(g.x(0)), g.wide(g.dy[0]))) }}
}

func ofY(doc string, f func(w *writer, y, dy *ir.Value) *ir.Value) *Derivative {
	return &Derivative{Doc: doc, rule: func(g *backward) { g.give(0, f(g.writer, g.wide(g.y(0)), g.wide(g.dy[0]))) }}
}

// geluSlope is Φ(x) + x·Φ'(x), and the same of the tanh form.
func (w *writer) geluSlope(x *ir.Value, tanh bool) *ir.Value {
	if tanh {
		// u = k (x + c x³), t = tanh u; (1 + t)/2 + x/2 · (1 - t²) · k (1 + 3c x²)
		const c = 0.044715
		k := math.Sqrt(2 / math.Pi)
		square := w.mul(x, x)
		t := w.unary("tanh", w.scale(w.mul(x, w.plus(w.scale(square, c), 1)), k))
		slope := w.scale(w.plus(w.scale(square, 3*c), 1), k/2)
		return w.add(w.scale(w.plus(t, 1), 0.5), w.mul(w.mul(x, slope), w.sub(w.number(t, 1), w.mul(t, t))))
	}
	phi := w.scale(w.plus(w.unary("erf", w.scale(x, math.Sqrt(0.5))), 1), 0.5)
	bell := w.scale(w.unary("exp", w.scale(w.mul(x, x), -0.5)), 1/math.Sqrt(2*math.Pi))
	return w.add(phi, w.mul(x, bell))
}

func binaryDerivatives() map[string]*Derivative {
	of := func(doc string, rule func(g *backward, x, y, dz *ir.Value)) *Derivative {
		return &Derivative{Doc: doc + " Summed over what broadcasting repeats.", rule: func(g *backward) { rule(g, g.x(0), g.x(1), g.dy[0]) }}
	}
	logicalDoc := flat("Not of floating-point numbers: no gradient flows.")
	return map[string]*Derivative{
		"add": of("`dx = dz`, `dy = dz`.", func(g *backward, _, _, dz *ir.Value) {
			g.give(0, dz)
			g.give(1, dz)
		}),
		"sub": of("`dx = dz`, `dy = -dz`.", func(g *backward, _, _, dz *ir.Value) {
			g.give(0, dz)
			if g.want[1] {
				g.give(1, g.neg(g.sumTo(dz, in(g.o, 1).Shape)))
			}
		}),
		"mul": of("`dx = dz · y`, `dy = dz · x`.", func(g *backward, x, y, dz *ir.Value) {
			if g.want[0] {
				g.give(0, g.mul(dz, y))
			}
			if g.want[1] {
				g.give(1, g.mul(dz, x))
			}
		}),
		"div": of("`dx = dz / y`, `dy = -dz · z / y`.", func(g *backward, _, y, dz *ir.Value) {
			q := g.div(g.wide(dz), g.wide(y))
			g.give(0, q)
			if g.want[1] {
				g.give(1, g.neg(g.mul(q, g.wide(g.y(0)))))
			}
		}),
		"max": of("The cotangent goes to the larger operand; equal ones share it half and half.", extremum("gt")),
		"min": of("The cotangent goes to the smaller operand; equal ones share it half and half.", extremum("lt")),
		"pow": of("`dx = dz · y · x^(y-1)`; `dy = dz · z · ln x`, and 0 where x is not positive.", func(g *backward, x, y, dz *ir.Value) {
			x, y, dz = g.wide(x), g.wide(y), g.wide(dz)
			if g.want[0] {
				g.give(0, g.mul(dz, g.mul(y, g.binary("pow", x, g.plus(y, -1)))))
			}
			if g.want[1] {
				positive := g.compare("gt", x, g.number(x, 0))
				log := g.unary("log", g.choose(positive, x, g.number(x, 1)))
				g.give(1, g.mul(g.mul(dz, g.wide(g.y(0))), log))
			}
		}),
		"rem": of("`dx = dz`, `dy = -dz · trunc(x / y)`.", func(g *backward, x, y, dz *ir.Value) {
			g.give(0, dz)
			if g.want[1] {
				whole := g.unary("round", g.div(g.sub(g.wide(x), g.wide(g.y(0))), g.wide(y)))
				g.give(1, g.neg(g.mul(g.wide(dz), whole)))
			}
		}),
		"atan2": of("`dx = dz · y / (x² + y²)`, `dy = -dz · x / (x² + y²)`.", func(g *backward, x, y, dz *ir.Value) {
			x, y = g.wide(x), g.wide(y)
			q := g.div(g.wide(dz), g.add(g.mul(x, x), g.mul(y, y)))
			if g.want[0] {
				g.give(0, g.mul(q, y))
			}
			if g.want[1] {
				g.give(1, g.neg(g.mul(q, x)))
			}
		}),
		"and": logicalDoc,
		"or":  logicalDoc,
		"xor": logicalDoc,
	}
}

func extremum(direction string) func(g *backward, x, y, dz *ir.Value) {
	return func(g *backward, x, y, dz *ir.Value) {
		half := g.when(g.compare("eq", x, y), g.scale(dz, 0.5))
		if g.want[0] {
			g.give(0, g.choose(g.compare(direction, x, y), dz, half))
		}
		if g.want[1] {
			g.give(1, g.choose(g.compare(direction, y, x), dz, half))
		}
	}
}
