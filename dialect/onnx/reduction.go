package onnx

import (
	"math"
	"slices"

	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// Reductions, running ones, softmax, and positions of extremes.

func init() {
	for name, f := range map[string]func(n *node, x *ir.Value, at []int, keep bool) *ir.Value{
		"ReduceSum":  by("add"),
		"ReduceProd": by("mul"),
		"ReduceMax":  by("max"),
		"ReduceMin":  by("min"),
		"ReduceMean": (*node).mean,
		"ReduceL1": func(n *node, x *ir.Value, at []int, keep bool) *ir.Value {
			return n.reduce("add", n.signed("abs", x), at, keep)
		},
		"ReduceL2": func(n *node, x *ir.Value, at []int, keep bool) *ir.Value {
			w := n.floating(x)
			return n.convertTo(n.unary("sqrt", n.reduce("add", n.binary("mul", w, w), at, keep)), x.Elem())
		},
		"ReduceLogSum": func(n *node, x *ir.Value, at []int, keep bool) *ir.Value {
			return n.convertTo(n.unary("log", n.reduce("add", n.floating(x), at, keep)), x.Elem())
		},
		"ReduceLogSumExp": func(n *node, x *ir.Value, at []int, keep bool) *ir.Value {
			if len(at) == 0 {
				return x
			}
			return n.convertTo(n.make("logsumexp", []*ir.Value{n.floating(x)}, named("dims", at, "keep_dims", keep)), x.Elem())
		},
		"ReduceSumSquare": func(n *node, x *ir.Value, at []int, keep bool) *ir.Value {
			return n.reduce("add", n.binary("mul", x, x), at, keep)
		},
	} {
		conversions[name] = func(n *node) []*ir.Value { return n.reduction(f) }
	}
	register(map[string]conversion{
		"ArgMax": convertArg, "ArgMin": convertArg, "CumProd": convertRunning("cumprod"), "CumSum": convertRunning("cumsum"),
		"Hardmax": convertSoftmax(hardmax), "LogSoftmax": convertSoftmax(soft("log_softmax")), "Softmax": convertSoftmax(soft("softmax")),
		"TopK": convertTopK,
	})
}

// by is a named reduction. Truth values are reduced as numbers.
func by(kind string) func(n *node, x *ir.Value, at []int, keep bool) *ir.Value {
	return func(n *node, x *ir.Value, at []int, keep bool) *ir.Value {
		if x.Elem() == types.I1 {
			return n.convertTo(n.reduce(kind, n.convertTo(x, types.UI8), at, keep), types.I1)
		}
		return n.reduce(kind, x, at, keep)
	}
}

func (n *node) mean(x *ir.Value, at []int, keep bool) *ir.Value {
	if len(at) == 0 {
		return x
	}
	if x.Elem().IsFloat() {
		return n.make("mean", []*ir.Value{x}, named("dims", at, "keep_dims", keep))
	}
	count := 1
	for _, d := range at {
		count *= n.shape(x)[d]
	}
	return n.with("div", n.reduce("add", x, at, keep), float64(count))
}

// floating is x in a type for formulas; integers become f64.
func (n *node) floating(x *ir.Value) *ir.Value {
	if !x.Elem().IsFloat() {
		return n.convertTo(x, types.F64)
	}
	return n.wide(x)
}

func (n *node) reduction(f func(n *node, x *ir.Value, at []int, keep bool) *ir.Value) []*ir.Value {
	x := n.in(0)
	rank := n.rank(x)
	at := axes(n.list("axes", 1), rank)
	if len(at) == 0 {
		if n.int("noop_with_empty_axes", 0) == 0 {
			at = axesFrom(rank)
		}
	}
	slices.Sort(at)
	return one(f(n, x, at, n.int("keepdims", 1) != 0))
}

// convertArg is the position of an extreme, the first of equal ones or, as the node
// says, the last.
func convertArg(n *node) []*ir.Value {
	x := n.in(0)
	d := axis(n.int("axis", 0), n.rank(x))
	size := n.shape(x)[d]
	if n.p.op == "ArgMin" {
		if x.Elem().IsFloat() {
			x = n.unary("neg", x)
		} else {
			x = n.unary("not", x) // turns the order of integers round
		}
	}
	last := n.int("select_last_index", 0) != 0
	if last {
		x = n.make("reverse", []*ir.Value{x}, named("dims", []int{d}))
	}
	v := n.make("argmax", []*ir.Value{x}, named("dim", d, "keep_dims", n.int("keepdims", 1) != 0))
	if last {
		v = n.binary("sub", n.scalar(v.Elem(), float64(size-1)), v)
	}
	return one(v)
}

func convertRunning(name string) conversion {
	return func(n *node) []*ir.Value {
		at := n.list("", 1)
		if len(at) != 1 {
			fail("the axis is one number")
		}
		attrs := named("dim", axis(at[0], n.rank(n.in(0))))
		for _, flag := range []string{"exclusive", "reverse"} {
			if n.int(flag, 0) != 0 {
				attrs = append(attrs, named(flag, true)...)
			}
		}
		return one(n.make(name, []*ir.Value{n.in(0)}, attrs))
	}
}

func soft(name string) func(n *node, x *ir.Value, d int) *ir.Value {
	return func(n *node, x *ir.Value, d int) *ir.Value { return n.make(name, []*ir.Value{x}, named("dim", d)) }
}

// hardmax is 1 at the first of the largest elements.
func hardmax(n *node, x *ir.Value, d int) *ir.Value {
	at := n.make("argmax", []*ir.Value{x}, named("dim", d))
	return n.make("one_hot", []*ir.Value{at}, named("classes", n.shape(x)[d], "dim", d), x.Type)
}

// convertSoftmax works along an axis or, before version 13, on all dimensions from it
// on together.
func convertSoftmax(f func(n *node, x *ir.Value, d int) *ir.Value) conversion {
	return func(n *node) []*ir.Value {
		x := n.in(0)
		shape := n.shape(x)
		if n.opset >= 13 {
			return one(f(n, x, axis(n.int("axis", -1), len(shape))))
		}
		d := n.int("axis", 1)
		if d < 0 {
			d += len(shape)
		}
		if d < 0 || d > len(shape) {
			fail("axis %d of %d dimensions", d, len(shape))
		}
		if d == len(shape)-1 {
			return one(f(n, x, d))
		}
		return one(n.reshape(f(n, n.reshape(x, product(shape[:d]), product(shape[d:])), 1), shape...))
	}
}

func convertTopK(n *node) []*ir.Value {
	x := n.in(0)
	d := axis(n.int("axis", -1), n.rank(x))
	k := []int{n.int("k", 0)}
	if n.opset >= 10 {
		k = n.list("", 1)
	}
	shape := n.shape(x)
	if len(k) != 1 || k[0] < 0 || k[0] > shape[d] {
		fail("the %d largest of %d elements", k, shape[d])
	}
	shape[d] = k[0]
	attrs := named("k", k[0], "dim", d)
	if n.int("largest", 1) == 0 {
		attrs = append(attrs, named("largest", false)...)
	}
	return n.makeAll("top_k", []*ir.Value{x}, attrs, tensorOf(x.Elem(), shape), tensorOf(types.I64, shape))
}

// root is Σ|x|^p to the power 1/p over dimensions.
func (n *node) root(sum *ir.Value, p float64) *ir.Value {
	switch p {
	case 1:
		return sum
	case 2:
		return n.unary("sqrt", sum)
	}
	return n.with("pow", sum, 1/p)
}

// powers is |x|^p.
func (n *node) powers(x *ir.Value, p float64) *ir.Value {
	switch p {
	case 1:
		return n.unary("abs", x)
	case 2:
		return n.binary("mul", x, x)
	}
	if p <= 0 || math.IsInf(p, 0) || math.IsNaN(p) {
		fail("p is %v", p)
	}
	return n.with("pow", n.unary("abs", x), p)
}
