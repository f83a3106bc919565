package simplify

import (
	"math"

	"dmir/compile/pass"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

func arithmeticRules() []Rule {
	return []Rule{
		{
			Name: "neutral", Doc: "x·1, x/1, x-0, x+(-0), pow(x, 1), and of all ones, or and xor of zeros become x; for integers and with dm.relaxed x+0 too.",
			Ops: []string{"add", "sub", "mul", "div", "pow", "and", "or", "xor"}, apply: neutral,
		},
		{
			Name: "absorbing", Doc: "Integer x·0 and x∧0 become 0, x∨1…1 becomes 1…1; with dm.relaxed x·0 of floats too.",
			Ops: []string{"mul", "and", "or"}, apply: absorbing,
		},
		{
			Name: "same-operands", Doc: "max, min, and, or of x and x become x; x xor x becomes 0; integer x-x becomes 0 and integer comparisons of x with x a constant; with dm.relaxed x-x of floats too.",
			Ops: []string{"sub", "max", "min", "and", "or", "xor", "compare"}, apply: sameOperands,
		},
		{
			Name: "double", Doc: "neg of neg and not of not become x; abs of neg or abs, relu of relu lose one.",
			Ops: []string{"neg", "not", "abs", "relu", "floor", "ceil", "round", "sign"}, apply: double,
		},
		{
			Name: "signs", Doc: "x+(-y) becomes x-y, x-(-y) becomes x+y, (-x)·(-y) and (-x)/(-y) lose both signs, x·(-1) becomes -x: exact, as rounding is symmetric.",
			Ops: []string{"add", "sub", "mul", "div"}, apply: signs,
		},
		{
			Name: "cheaper", Doc: "Division by a power of two becomes multiplication by its inverse where that is a normal number; pow(x, 2) of up to 32 bits becomes x·x.",
			Ops: []string{"div", "pow"}, apply: cheaper,
		},
		{
			Name: "select", Doc: "A choice between equals, or by a constant, becomes the value chosen; one by not p is one by p the other way round.",
			Ops: []string{"select"}, apply: choose,
		},
	}
}

func neutral(r *rewriter, o *ir.Op) bool {
	x, n, ok := sided(o)
	if !ok {
		return false
	}
	float := n.elem.IsFloat()
	switch o.Name {
	case "dm.mul", "dm.div", "dm.pow":
		ok = n.is(1)
	case "dm.add":
		ok = n.isZero() && (!float || math.Signbit(n.f) || r.lax(o))
	case "dm.sub":
		ok = n.isZero() && (!float || !math.Signbit(n.f) || r.lax(o))
	case "dm.and":
		ok = n.allOnes()
	default:
		ok = n.isZero()
	}
	return ok && use(o, x)
}

func absorbing(r *rewriter, o *ir.Op) bool {
	_, n, ok := sided(o)
	if !ok {
		return false
	}
	switch {
	case o.Name == "dm.or":
		if !n.allOnes() {
			return false
		}
		if n.elem == types.I1 {
			return becomes(o, 1)
		}
		return n.i == -1 && becomes(o, -1)
	case !n.isZero() || n.elem.IsFloat() && !r.lax(o):
		return false
	}
	return becomes(o, 0)
}

func sameOperands(r *rewriter, o *ir.Op) bool {
	x := o.Operands[0]
	if x != o.Operands[1] {
		return false
	}
	exact := !x.Elem().IsFloat() || r.lax(o)
	switch o.Name {
	case "dm.sub":
		return exact && becomes(o, 0)
	case "dm.xor":
		return becomes(o, 0)
	case "dm.compare":
		holds := 0.0
		if d := op.Str(o, "direction"); d == "eq" || d == "le" || d == "ge" {
			holds = 1
		}
		return exact && becomes(o, holds)
	}
	return use(o, x)
}

func double(_ *rewriter, o *ir.Op) bool {
	inner := o.Operands[0].Op
	if inner == nil || len(inner.Operands) != 1 {
		return false
	}
	switch {
	case o.Name == inner.Name && (o.Name == "dm.neg" || o.Name == "dm.not"):
		return use(o, inner.Operands[0])
	case o.Name == inner.Name: // floor, round … of what is so already
		return use(o, o.Operands[0])
	case o.Name == "dm.abs" && inner.Name == "dm.neg":
		o.SetOperand(0, inner.Operands[0])
		return true
	}
	return false
}

// negated is the operand of the negation that v is.
func negated(v *ir.Value) *ir.Value {
	if o := from(v, "neg"); o != nil {
		return o.Operands[0]
	}
	return nil
}

func signs(_ *rewriter, o *ir.Op) bool {
	x, y := o.Operands[0], o.Operands[1]
	nx, ny := negated(x), negated(y)
	b := pass.Before(o)
	switch o.Name {
	case "dm.add":
		switch {
		case ny != nil:
			return built(b, o, b.Binary("sub", x, ny))
		case nx != nil:
			return built(b, o, b.Binary("sub", y, nx))
		}
	case "dm.sub":
		if ny != nil {
			return built(b, o, b.Binary("add", x, ny))
		}
	default:
		if nx != nil && ny != nil {
			o.SetOperands(nx, ny)
			return true
		}
		if z, n, ok := sided(o); ok && n.elem.IsFloat() && n.is(-1) && types.Equal(z.Type, o.Results[0].Type) {
			return built(b, o, b.Unary("neg", z))
		}
	}
	return false
}

func cheaper(_ *rewriter, o *ir.Op) bool {
	x, n, ok := sided(o)
	if !ok || !n.elem.IsFloat() {
		return false
	}
	b := pass.Before(o)
	if o.Name == "dm.pow" {
		return n.is(2) && n.elem != types.F64 && types.Equal(x.Type, o.Results[0].Type) && built(b, o, b.Binary("mul", x, x))
	}
	mantissa, _ := math.Frexp(n.f)
	if math.Abs(mantissa) != 0.5 || math.IsInf(n.f, 0) || !normal(1/n.f, n.elem) {
		return false
	}
	return built(b, o, b.Binary("mul", x, constant(b, o.Operands[1].Type, 1/n.f)))
}

// normal reports whether v, a power of two, is a normal number of elem.
func normal(v float64, elem types.Elem) bool {
	least := map[types.Elem]int{types.F64: -1022, types.F32: -126, types.BF16: -126, types.F16: -14}
	e, known := least[elem]
	return known && math.Abs(v) >= math.Ldexp(1, e) && !math.IsInf(types.Round(v, elem), 0)
}

func choose(_ *rewriter, o *ir.Op) bool {
	p, x, y := o.Operands[0], o.Operands[1], o.Operands[2]
	if x == y {
		return use(o, x)
	}
	if n, ok := numberOf(p); ok {
		if n.i&1 == 1 {
			return use(o, x)
		}
		return use(o, y)
	}
	if not := from(p, "not"); not != nil {
		o.SetOperands(not.Operands[0], y, x)
		return true
	}
	return false
}
