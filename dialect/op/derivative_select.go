package op

var compareDerivative = flat("The result is i1: no gradient flows.")

var selectDerivative = &Derivative{
	Doc: "The cotangent goes to the operand that was chosen, summed over what broadcasting repeats; none to the predicate.",
	rule: func(g *backward) {
		dz := g.dy[0]
		if g.want[1] {
			g.give(1, g.when(g.x(0), dz))
		}
		if g.want[2] {
			g.give(2, g.choose(g.x(0), g.number(dz, 0), dz))
		}
	},
}

var clampDerivative = &Derivative{
	Doc: "`dx = dy` where `low ≤ x ≤ high`, else 0; the cotangent goes to low where `x < low`, to high where `x > high`. Where low is above high, all of it goes to high.",
	rule: func(g *backward) {
		low, x, high, dy := g.x(0), g.x(1), g.x(2), g.dy[0]
		below, above := g.compare("lt", x, low), g.compare("gt", g.Binary("max", x, low), high)
		if g.want[0] {
			g.give(0, g.choose(above, g.number(dy, 0), g.when(below, dy)))
		}
		if g.want[1] {
			g.give(1, g.choose(above, g.number(dy, 0), g.choose(below, g.number(dy, 0), dy)))
		}
		if g.want[2] {
			g.give(2, g.when(above, dy))
		}
	},
}

var convertDerivative = &Derivative{
	Doc:  "`dx = dy`, converted back; none between integers and floating-point numbers.",
	rule: func(g *backward) { g.give(0, g.dy[0]) },
}

var dropoutDerivative = &Derivative{
	Doc: "`dx = dy · mask / (1 - rate)`: dropout of dy with the same seed and step, which draws the same mask again, so that it need not be stored.",
	rule: func(g *backward) {
		if g.dy[0] == nil {
			return // the mask is a constant
		}
		g.give(0, g.dropoutAs(g.o, "rate", g.dy[0]))
	},
}
