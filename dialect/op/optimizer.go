package op

import (
	"math"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/types"
)

const masterDoc = "Computes in at least f32 and rounds what it stores once. w and the state are best kept in f32 also where the network computes in half precision: `half`, an optional last result, " +
	"is the new w in the floating-point type written, for the next forward pass (mixed precision with master weights: Micikevicius et al., arXiv 1710.03740). " +
	"`lr` may be given as the last operand, a scalar, which overrides the attribute, as for a learning-rate schedule. " +
	"w, g and the state may be tuples of the same structure: each parameter takes its step, all with the same scalars."

var (
	weightParam = Param{Name: "w", Elems: floats, Doc: "the parameters, any shape"}
	slopeParam  = Param{Name: "g", Elems: floats, Doc: "their gradient: w's shape, any floating-point type"}
	rateParam   = Param{Name: "lr", Elems: floats, Optional: true, Doc: "the learning rate, a scalar"}
	newParam    = Param{Name: "w_new", Elems: floats, Doc: "w's type"}
	halfParam   = Param{Name: "half", Elems: join(floats, float8s), Optional: true, Doc: "w_new in another element type"}
	rateAttr    = AttrDef{Name: "lr", Kind: KindFloat, Default: types.Float{V: 0.001}, Doc: "learning rate"}
	decayDoc    = "factor of w that is added to the gradient"
)

var sgdDef = &Def{
	Name: "sgd", Family: Training, Class: ClassElementwise,
	Summary: "a step of stochastic gradient descent",
	Doc: "`w_new = w - lr · (g + weight_decay · w)`. " + masterDoc + "\n\nCounts 2 FLOP an element, 4 with weight decay. " +
		"Source: Robbins and Monro, *A stochastic approximation method*, 1951.",
	Example: `func.func @example(%w: tensor<4xf32>, %g: tensor<4xf32>) -> tensor<4xf32> {
  %next = dm.sgd %w, %g, lr = 0.1 : tensor<4xf32>
  return %next : tensor<4xf32>
}`,
	Operands: []Param{weightParam, slopeParam, rateParam},
	Results:  []Param{newParam, halfParam},
	Attrs: []AttrDef{
		rateAttr,
		{Name: "weight_decay", Kind: KindFloat, Default: types.Float{}, Doc: decayDoc},
	},
	Traits: Pure | Pointwise | Memberwise,
	Infer:  func(o *ir.Op) ([]types.Type, *Problem) { return inferOptimizer(o, 1, 2) },
	FLOP: func(o *ir.Op) dim.Dim {
		n := int64(2)
		if Float(o, "weight_decay") != 0 {
			n = 4
		}
		return in(o, 0).Elements().Scale(n)
	},
	Maps: pointwiseMaps,
	Expand: func(b *ir.Builder, o *ir.Op) []*ir.Value {
		s := optimizer(b, o, 2)
		return s.results(s.sub(s.w, s.mul(s.slope(Float(o, "weight_decay")), s.lr)))
	},
}

var momentumDef = &Def{
	Name: "momentum", Family: Training, Class: ClassElementwise,
	Summary: "a step of gradient descent with momentum",
	Doc: "`m_new = momentum · m + g + weight_decay · w`, `w_new = w - lr · m_new`; with `nesterov` `w_new = w - lr · (g + weight_decay · w + momentum · m_new)`. " + masterDoc +
		"\n\nCounts 4 FLOP an element, 2 more with weight decay and 2 more with `nesterov`. Sources: Polyak 1964; Sutskever et al., *On the importance of initialization and momentum*, ICML 2013.",
	Example: `func.func @example(%w: tensor<4xf32>, %g: tensor<4xf32>, %m: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %next, %moment = dm.momentum %w, %g, %m, lr = 0.1, nesterov = true : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %next, %moment : tensor<4xf32>, tensor<4xf32>
}`,
	Operands: []Param{weightParam, slopeParam, {Name: "m", Elems: floats, Doc: "the momentum: w's shape; zeros before the first step"}, rateParam},
	Results:  []Param{newParam, {Name: "m_new", Elems: floats, Doc: "m's type"}, halfParam},
	Attrs: []AttrDef{
		rateAttr,
		{Name: "momentum", Kind: KindFloat, Default: types.Float{V: 0.9}, Doc: "how much of the old momentum stays"},
		{Name: "nesterov", Kind: KindBool, Default: types.Bool(false), Doc: "look one step ahead"},
		{Name: "weight_decay", Kind: KindFloat, Default: types.Float{}, Doc: decayDoc},
	},
	Traits: Pure | Pointwise | Memberwise,
	Infer:  func(o *ir.Op) ([]types.Type, *Problem) { return inferOptimizer(o, 2, 3) },
	FLOP: func(o *ir.Op) dim.Dim {
		n := int64(4)
		if Float(o, "weight_decay") != 0 {
			n += 2
		}
		if Bool(o, "nesterov") {
			n += 2
		}
		return in(o, 0).Elements().Scale(n)
	},
	Maps: pointwiseMaps,
	Expand: func(b *ir.Builder, o *ir.Op) []*ir.Value {
		s := optimizer(b, o, 3)
		g := s.slope(Float(o, "weight_decay"))
		m := s.add(s.scale(s.operand(2), Float(o, "momentum")), g)
		step := m
		if Bool(o, "nesterov") {
			step = s.add(g, s.scale(m, Float(o, "momentum")))
		}
		return s.results(s.sub(s.w, s.mul(step, s.lr)), m)
	},
}

var adamDef = &Def{
	Name: "adam", Family: Training, Class: ClassElementwise,
	Summary: "a step of Adam, or of AdamW with weight decay",
	Foreign: []Foreign{{Names: "adamw"}},
	Doc: "`m_new = beta1 · m + (1 - beta1) · g`, `v_new = beta2 · v + (1 - beta2) · g²`, and with `a = m_new / (1 - beta1^step)` and `b = v_new / (1 - beta2^step)` " +
		"`w_new = w - lr · (a / (√b + epsilon) + weight_decay · w)`. The decay does not pass through the moments (AdamW). step counts from 1. " + masterDoc +
		"\n\nCounts 14 FLOP an element, 2 more with weight decay; what is computed once a tensor is not counted. " +
		"Sources: Kingma and Ba, arXiv 1412.6980 (2015); Loshchilov and Hutter, arXiv 1711.05101 (2019).",
	Example: `func.func @example(%w: tensor<4xf32>, %g: tensor<4xf32>, %m: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %v = dm.mul %m, %m : tensor<4xf32>
  %step = dm.constant dense<3> : tensor<i64>
  %next, %m1, %v1 = dm.adam %w, %g, %m, %v, %step, lr = 0.01 : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<i64>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  return %next, %m1, %v1 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}`,
	Operands: []Param{
		weightParam, slopeParam,
		{Name: "m", Elems: floats, Doc: "running mean of the gradient: w's shape; zeros before the first step"},
		{Name: "v", Elems: floats, Doc: "running mean of its square: w's shape; zeros before the first step"},
		{Name: "step", Elems: join(signed, floats), Doc: "the number of this step, a scalar: 1 for the first"},
		rateParam,
	},
	Results: []Param{newParam, {Name: "m_new", Elems: floats, Doc: "m's type"}, {Name: "v_new", Elems: floats, Doc: "v's type"}, halfParam},
	Attrs: []AttrDef{
		rateAttr,
		{Name: "beta1", Kind: KindFloat, Default: types.Float{V: 0.9}, Doc: "how much of the old mean stays"},
		{Name: "beta2", Kind: KindFloat, Default: types.Float{V: 0.999}, Doc: "how much of the old mean of squares stays"},
		{Name: "epsilon", Kind: KindFloat, Default: types.Float{V: 1e-8}, Doc: "keeps the division from a denominator of 0"},
		{Name: "weight_decay", Kind: KindFloat, Default: types.Float{}, Doc: "factor of w that is subtracted beside the step, times lr"},
	},
	Traits: Pure | Pointwise | Memberwise,
	Infer: func(o *ir.Op) ([]types.Type, *Problem) {
		if p := rankIs(o, 4, 0, "the number of the step"); p != nil {
			return nil, p
		}
		return inferOptimizer(o, 3, 5)
	},
	Verify: func(o *ir.Op) *Problem {
		for _, name := range []string{"beta1", "beta2"} {
			if b := Float(o, name); !(b >= 0 && b < 1) {
				return attrProblem("DM115", name, "%s = %g is not in [0, 1)", name, b)
			}
		}
		return nil
	},
	FLOP: func(o *ir.Op) dim.Dim {
		n := int64(14)
		if Float(o, "weight_decay") != 0 {
			n = 16
		}
		return in(o, 0).Elements().Scale(n)
	},
	Maps:   pointwiseMaps,
	Expand: expandAdam,
}

func expandAdam(b *ir.Builder, o *ir.Op) []*ir.Value {
	s := optimizer(b, o, 5)
	g := s.operand(1)
	average := func(old, now *ir.Value, beta float64) *ir.Value {
		return s.add(s.scale(old, beta), s.scale(now, 1-beta))
	}
	m := average(s.operand(2), g, Float(o, "beta1"))
	v := average(s.operand(3), s.mul(g, g), Float(o, "beta2"))
	// 1 - beta^step, exact where beta^step is near 1.
	correction := func(beta float64) *ir.Value {
		if beta == 0 {
			return s.number(s.w, 1)
		}
		t := s.Convert(o.Operands[4], asTensor(s.w.Type).Elem)
		return s.neg(s.Unary("expm1", s.scale(t, math.Log(beta))))
	}
	a, root := s.div(m, correction(Float(o, "beta1"))), s.Unary("sqrt", s.div(v, correction(Float(o, "beta2"))))
	step := s.div(a, s.plus(root, Float(o, "epsilon")))
	if d := Float(o, "weight_decay"); d != 0 {
		step = s.add(step, s.scale(s.w, d))
	}
	return s.results(s.sub(s.w, s.mul(step, s.lr)), m, v)
}

// stepper writes the expansion of an optimizer: everything in at least f32.
type stepper struct {
	*Builder
	o     *ir.Op
	w, lr *ir.Value
	elem  types.Elem
}

// optimizer begins the expansion; the learning rate is operand number rate.
func optimizer(b *ir.Builder, o *ir.Op, rate int) *stepper {
	s := &stepper{Builder: NewBuilder(b, nil), o: o, elem: wide(in(o, 0).Elem)}
	s.w = s.operand(0)
	if len(o.Operands) > rate {
		s.lr = s.operand(rate)
	} else {
		s.lr = s.number(s.w, Float(o, "lr"))
	}
	return s
}

func (s *stepper) operand(i int) *ir.Value { return s.Convert(s.o.Operands[i], s.elem) }

// slope is g + decay · w.
func (s *stepper) slope(decay float64) *ir.Value {
	g := s.operand(1)
	if decay == 0 {
		return g
	}
	return s.add(g, s.scale(s.w, decay))
}

// results rounds the new values to the types of o's results; half, where o has
// it, is a copy of the first.
func (s *stepper) results(vs ...*ir.Value) []*ir.Value {
	if len(s.o.Results) > len(vs) {
		vs = append(vs, vs[0])
	}
	for i, v := range vs {
		vs[i] = s.Convert(v, out(s.o, i).Elem)
	}
	return s.done(vs...)
}

// inferOptimizer: operands 0 to states of w's shape, beside the gradient, give
// results of their own types; rate is the number of the optional learning rate.
func inferOptimizer(o *ir.Op, states, rate int) ([]types.Type, *Problem) {
	w := in(o, 0)
	var ts []types.Type
	for i := range states + 1 {
		if !sameShape(in(o, i).Shape, w.Shape) {
			return nil, problem("DM122", i, "the parameters have shape %s, this operand %s", shapeText(w.Shape), shapeText(in(o, i).Shape)).
				help("gradient and state have the shape of the parameters")
		}
		if i != 1 {
			ts = append(ts, tensor(in(o, i), in(o, i).Elem, w.Shape...))
		}
	}
	if len(o.Operands) > rate {
		if p := rankIs(o, rate, 0, "the learning rate"); p != nil {
			return nil, p
		}
	}
	if len(o.Results) > len(ts) {
		elem := out(o, len(ts)).Elem
		if elem == types.InvalidElem {
			elem = w.Elem
		}
		ts = append(ts, tensor(w, elem, w.Shape...))
	}
	return ts, nil
}
