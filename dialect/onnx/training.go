package onnx

import (
	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// Steps of optimizers, and what draws random numbers.

const preview = "ai.onnx.preview.training."

func init() {
	register(map[string]conversion{
		preview + "Adagrad": steps(1, adagrad), preview + "Adam": steps(2, adam), preview + "Momentum": steps(1, momentum),
		"SGD":     convertSGD,
		"Dropout": convertDropout, "RandomNormal": convertRandom, "RandomUniform": convertRandom,
		"RandomNormalLike": convertRandom, "RandomUniformLike": convertRandom,
		"Bernoulli": convertBernoulli, "Multinomial": convertMultinomial,
	})
}

// optimizer is a step: of the learning rate, the number of the update, a parameter, its
// gradient and its state to the new parameter and state.
type optimizer func(n *node, rate, update, x, g *ir.Value, state []*ir.Value) []*ir.Value

// steps does a step for each of the parameters: after the rate and the number of the
// update the node has all parameters, all gradients, and as often all of a state.
func steps(states int, f optimizer) conversion {
	return func(n *node) []*ir.Value {
		count := (len(n.ins) - 2) / (2 + states)
		if count < 1 || len(n.ins) != 2+count*(2+states) {
			fail("%d inputs", len(n.ins))
		}
		out := make([]*ir.Value, count*(1+states))
		for i := range count {
			var state []*ir.Value
			for k := range states {
				state = append(state, n.in(2+(2+k)*count+i))
			}
			for k, v := range f(n, n.single(n.in(0)), n.single(n.in(1)), n.in(2+i), n.in(2+count+i), state) {
				out[k*count+i] = v
			}
		}
		return out
	}
}

// regularized is the gradient with that of the norm of x.
func (n *node) regularized(x, g *ir.Value) *ir.Value {
	if c := n.float("norm_coefficient", 0); c != 0 {
		return n.binary("add", n.with("mul", x, c), g)
	}
	return g
}

func adagrad(n *node, rate, update, x, g *ir.Value, state []*ir.Value) []*ir.Value {
	e := x.Elem()
	if decay := n.float("decay_factor", 0); decay != 0 {
		rate = n.binary("div", rate, n.with("add", n.with("mul", n.convertTo(update, rate.Elem()), decay), 1))
	}
	g = n.regularized(x, g)
	sum := n.binary("add", state[0], n.binary("mul", g, g))
	step := n.binary("div", n.binary("mul", n.convertTo(rate, e), g), n.with("add", n.unary("sqrt", sum), n.float("epsilon", 0)))
	return []*ir.Value{n.binary("sub", x, step), sum}
}

// adam counts updates from 0; with 0 moments are not corrected.
func adam(n *node, rate, update, x, g *ir.Value, state []*ir.Value) []*ir.Value {
	e := x.Elem()
	a, b := n.float("alpha", 0.9), n.float("beta", 0.999)
	g = n.regularized(x, g)
	mean := n.binary("add", n.with("mul", state[0], a), n.with("mul", g, 1-a))
	square := n.binary("add", n.with("mul", state[1], b), n.with("mul", n.binary("mul", g, g), 1-b))
	t := n.convertTo(update, e)
	power := func(v float64) *ir.Value {
		return n.binary("sub", n.scalar(e, 1), n.binary("pow", n.scalar(e, v), t))
	}
	rate = n.convertTo(rate, e)
	corrected := n.binary("div", n.binary("mul", rate, n.unary("sqrt", power(b))), power(a))
	rate = n.choose(n.compare("gt", t, n.scalar(e, 0)), corrected, rate)
	next := n.binary("sub", x, n.binary("div", n.binary("mul", rate, mean), n.with("add", n.unary("sqrt", square), n.float("epsilon", 0))))
	if c := n.float("norm_coefficient_post", 0); c != 0 {
		next = n.with("mul", next, 1-c)
	}
	return []*ir.Value{next, mean, square}
}

func momentum(n *node, rate, update, x, g *ir.Value, state []*ir.Value) []*ir.Value {
	e := x.Elem()
	a, b := n.float("alpha", 0), n.float("beta", 0)
	g = n.regularized(x, g)
	factor := n.choose(n.compare("gt", update, n.scalar(update.Elem(), 0)), n.scalar(e, b), n.scalar(e, 1))
	v := n.binary("add", n.with("mul", state[0], a), n.binary("mul", g, factor))
	step := v
	switch mode := n.str("mode", ""); mode {
	case "standard":
	case "nesterov":
		step = n.binary("add", g, n.with("mul", v, a))
	default:
		fail("mode %q", mode)
	}
	return []*ir.Value{n.binary("sub", x, n.binary("mul", n.convertTo(rate, e), step)), v}
}

// convertSGD is Deeploy's step: a parameter, its gradient and an attribute for the rate.
func convertSGD(n *node) []*ir.Value {
	return one(n.make("sgd", []*ir.Value{n.in(0), n.in(1)}, named("lr", n.float("lr", 0.01))))
}

// seed starts the random sequence of the node.
func (n *node) seed() int {
	n.seeds++
	return int(n.float("seed", float64(n.int("seed", n.seeds))))
}

// convertDropout draws zeros in training, which an input states since version 12.
func convertDropout(n *node) []*ir.Value {
	x := n.in(0)
	rate := n.float("ratio", 0.5)
	training := n.opset < 7 && n.int("is_test", 0) == 0
	if n.opset >= 12 {
		if d := n.value(1); d != nil {
			rate = first(d)
			training = n.opts.trained != nil // that of attention has no input 2: torch.onnx leaves it out where it is true
		}
		if d := n.value(2); d != nil {
			training = first(d) != 0
		}
	}
	if !training || rate == 0 {
		return []*ir.Value{x, n.splat(types.I1, 1, n.shape(x)...)}
	}
	if !(rate > 0 && rate < 1) {
		fail("ratio %v", rate)
	}
	return n.makeAll("dropout", append(one(x), n.counter()...), named("rate", rate, "seed", n.seed()), x.Type, tensorOf(types.I1, n.shape(x)))
}

func convertRandom(n *node) []*ir.Value {
	e := types.F32
	shape := n.ints("shape")
	if len(n.ins) > 0 {
		e, shape = n.in(0).Elem(), n.shape(n.in(0))
	}
	if a := n.attr("dtype"); a != nil {
		e = elemOf("", a.i)
	}
	attrs := named("distribution", "uniform", "low", n.float("low", 0), "high", n.float("high", 1))
	if n.p.op == "RandomNormal" || n.p.op == "RandomNormalLike" {
		attrs = named("distribution", "normal", "mean", n.float("mean", 0), "stddev", n.float("scale", 1))
	}
	var dims []int64
	for _, d := range shape {
		dims = append(dims, int64(d))
	}
	return one(n.make("rng", n.counter(), append(attrs, named("seed", n.seed())...), tensorOf(e, shapeOf("the result", dims))))
}

// uniform are random numbers from 0 up to 1, without it.
func (n *node) uniform(e types.Elem, shape ...int) *ir.Value {
	return n.make("rng", n.counter(), named("distribution", "uniform", "seed", n.seed()), tensorOf(e, shape))
}

// convertBernoulli draws 1 with the probability that each element is.
func convertBernoulli(n *node) []*ir.Value {
	p, e := n.wide(n.in(0)), n.in(0).Elem()
	if a := n.attr("dtype"); a != nil {
		e = elemOf("", a.i)
	}
	return one(n.convertTo(n.compare("lt", n.uniform(p.Elem(), n.shape(p)...), p), e))
}

// convertMultinomial draws classes, of which each row has the logarithms of the probabilities: the number of classes
// up to which the probabilities sum to no more than a uniform number.
func convertMultinomial(n *node) []*ir.Value {
	x := n.in(0)
	s, count := n.shape(x), n.int("sample_size", 1)
	if len(s) != 2 || s[1] == 0 || count < 0 {
		fail("%d samples of shape %v", count, s)
	}
	x = n.wide(x)
	sums := n.make("cumsum", one(n.make("softmax", one(x), named("dim", 1))), named("dim", 1))
	passed := n.compare("le", n.reshape(sums, s[0], 1, s[1]), n.uniform(x.Elem(), s[0], count, 1))
	class := n.reduce("add", n.convertTo(passed, types.I32), []int{2}, false)
	class = n.binary("min", class, n.scalar(types.I32, float64(s[1]-1))) // rounding may leave the last sum below 1
	return one(n.convertTo(class, elemOf("", int64(n.int("dtype", 6)))))
}
