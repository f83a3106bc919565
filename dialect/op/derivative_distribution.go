package op

import (
	"slices"

	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// Every device runs the gradient of a function that one device runs. What is
// differentiated is the sum of the losses of all of them, so that the cotangent of a
// collective is its transpose as a linear map on the values of all devices together.
const devicesSum = " What is differentiated is the sum of the losses of all devices."

var reshardDerivative = &Derivative{
	Doc: "`dx` is dy, divided as x is; where x is partial, whole along these axes.",
	rule: func(g *backward) {
		x := *in(g.o, 0)
		x.Elem = asTensor(g.dy[0].Type).Elem
		s := StatedSharding(g.x(0))
		if s != nil && len(s.Partial) > 0 {
			s = &types.Sharding{Mesh: s.Mesh, Dims: s.Dims}
		}
		if x.At.Shard != nil {
			x.At.Shard = s
		}
		dx := g.Value("reshard", g.dy[:1], nil, &x)
		if s != nil && x.At.Shard == nil && !g.failed {
			StateSharding(dx, s)
		}
		g.give(0, dx)
	},
}

const onlyAdd = " Other reductions than add have no derivative here."

var allReduceDerivative = &Derivative{
	Doc: "`dx` is `all_reduce add` of dy over the same axes." + devicesSum + onlyAdd,
	rule: func(g *backward) {
		if g.adds() {
			g.give(0, g.Value("all_reduce", g.dy[:1], g.same("reduction", "axes")))
		}
	},
}

var reduceScatterDerivative = &Derivative{
	Doc: "`dx` is `all_gather` of dy along `dim`." + devicesSum + onlyAdd,
	rule: func(g *backward) {
		if g.adds() {
			g.give(0, g.Value("all_gather", g.dy[:1], g.same("dim", "axes"), g.like(g.dy[0])))
		}
	},
}

var allGatherDerivative = &Derivative{
	Doc: "`dx` is `reduce_scatter add` of dy along `dim`, of f8 in f32." + devicesSum,
	rule: func(g *backward) {
		dy := g.dy[0]
		if !slices.Contains(ordered, asTensor(dy.Type).Elem) {
			dy = g.Convert(dy, types.F32)
		}
		attrs := append(named("reduction", types.Keyword(types.Add.Word())), g.same("dim", "axes")...)
		g.give(0, g.Value("reduce_scatter", []*ir.Value{dy}, attrs, g.like(dy)))
	},
}

var allToAllDerivative = &Derivative{
	Doc: "`dx` is `all_to_all` of dy with `split` and `concat` exchanged." + devicesSum,
	rule: func(g *backward) {
		attrs := []types.Named{{Name: "split", Value: Attr(g.o, "concat")}, {Name: "concat", Value: Attr(g.o, "split")}}
		g.give(0, g.Value("all_to_all", g.dy[:1], append(attrs, g.same("axes")...), g.like(g.dy[0])))
	},
}

var collectivePermuteDerivative = &Derivative{
	Doc: "`dx` is `collective_permute` of dy with the pairs reversed." + devicesSum,
	rule: func(g *backward) {
		pairs := types.Array{}
		for _, p := range Pairs(g.o, "pairs") {
			pairs = append(pairs, IntList(int(p[1]), int(p[0])))
		}
		g.give(0, g.Value("collective_permute", g.dy[:1], append(named("pairs", pairs), g.same("axes")...)))
	},
}

var sendDerivative = &Derivative{
	Doc: "`dx` is what `recv` of the same channel gets, from `to` to `from`: the cotangent of what was received." + devicesSum,
	rule: func(g *backward) {
		g.give(0, g.Value("recv", nil, g.reversed(), in(g.o, 0)))
	},
}

var recvDerivative = &Derivative{
	Doc: "dy is sent back by `send` of the same channel, from `to` to `from`." + devicesSum,
	rule: func(g *backward) {
		g.Make("send", g.dy[:1], g.reversed())
	},
}

// adds reports whether the op's reduction is add; of others it refuses the derivative.
func (g *backward) adds() bool {
	word := Str(g.o, "reduction")
	if word == types.Add.Word() {
		return true
	}
	g.refuse("which device gave the result of a reduction by %s is not known", word).
		help("stop the gradient with dm.stop_gradient, or reduce by add")
	return false
}

// same are attributes of the op under their own names.
func (g *backward) same(names ...string) []types.Named {
	var attrs []types.Named
	for _, n := range names {
		attrs = append(attrs, types.Named{Name: n, Value: Attr(g.o, n)})
	}
	return attrs
}

// like is the type of operand 0 with the element type of dy.
func (g *backward) like(dy *ir.Value) *types.Tensor {
	x := in(g.o, 0)
	return tensor(x, asTensor(dy.Type).Elem, x.Shape...)
}

// reversed are the attributes of what goes the other way on the op's channel.
func (g *backward) reversed() []types.Named {
	attrs := []types.Named{{Name: "from", Value: Attr(g.o, "to")}, {Name: "to", Value: Attr(g.o, "from")}}
	return append(attrs, g.same("channel", "axes")...)
}

// Receives reports whether the dm.recv r, of the same block, gets what the dm.send s makes
// ready.
func Receives(r, s *ir.Op) bool {
	for _, name := range []string{"from", "to", "channel"} {
		if Int(r, name) != Int(s, name) {
			return false
		}
	}
	return r.Name == Recv && s.Name == Send && slices.Equal(Strings(r, "axes"), Strings(s, "axes"))
}
