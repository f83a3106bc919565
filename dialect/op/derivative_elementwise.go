package op

import (
	"math"

	"dmir/dialect/ir"
)

// direct is the rule of a unary op whose formula is one exact or one rounded
// operation: it needs no wider type.
func direct(doc string, f func(w *Builder, x, y, dy *ir.Value) *ir.Value) *Derivative {
	return &Derivative{Doc: doc, rule: func(g *backward) { g.give(0, f(g.Builder, g.x(0), g.y(0), g.dy[0])) }}
}

// Why nothing flows through an op.
const (
	constantDoc = "Constant almost everywhere: no gradient flows."
	notFloat    = "Not defined on floating-point numbers: no gradient flows."
)

// ofBoth is the rule of an op of two operands, which broadcast.
func ofBoth(doc string, rule func(g *backward, x, y, dz *ir.Value)) *Derivative {
	return &Derivative{Doc: doc + " Summed over what broadcasting repeats.", rule: func(g *backward) { rule(g, g.x(0), g.x(1), g.dy[0]) }}
}

// ofX and ofY are rules of the operand, or of the result, and dy alone, in at
// least f32 and rounded once.
func ofX(doc string, f func(w *Builder, x, dy *ir.Value) *ir.Value) *Derivative {
	return &Derivative{Doc: doc, rule: func(g *backward) { g.give(0, f(g.Builder, g.wide(g.x(0)), g.wide(g.dy[0]))) }}
}

func ofY(doc string, f func(w *Builder, y, dy *ir.Value) *ir.Value) *Derivative {
	return &Derivative{Doc: doc, rule: func(g *backward) { g.give(0, f(g.Builder, g.wide(g.y(0)), g.wide(g.dy[0]))) }}
}

// geluSlope is Φ(x) + x·Φ'(x), and the same of the tanh form.
func (w *Builder) geluSlope(x *ir.Value, tanh bool) *ir.Value {
	if tanh {
		// u = k (x + c x³), t = tanh u; (1 + t)/2 + x/2 · (1 - t²) · k (1 + 3c x²)
		const c = 0.044715
		k := math.Sqrt(2 / math.Pi)
		square := w.mul(x, x)
		t := w.Unary("tanh", w.scale(w.mul(x, w.plus(w.scale(square, c), 1)), k))
		slope := w.scale(w.plus(w.scale(square, 3*c), 1), k/2)
		return w.add(w.scale(w.plus(t, 1), 0.5), w.mul(w.mul(x, slope), w.sub(w.number(t, 1), w.mul(t, t))))
	}
	phi := w.scale(w.plus(w.Unary("erf", w.scale(x, math.Sqrt(0.5))), 1), 0.5)
	bell := w.scale(w.Unary("exp", w.scale(w.mul(x, x), -0.5)), 1/math.Sqrt(2*math.Pi))
	return w.add(phi, w.mul(x, bell))
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
