package onnx

import (
	"slices"
	"strings"

	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// Recurrent networks: a dm.scan over the time for each direction.

func init() {
	register(map[string]conversion{
		"GRU":  recurrent(3, 1, []string{"Sigmoid", "Tanh"}, (*cell).gru),
		"LSTM": recurrent(4, 2, []string{"Sigmoid", "Tanh", "Tanh"}, (*cell).lstm),
		"RNN":  recurrent(1, 1, []string{"Tanh"}, (*cell).rnn),
	})
}

// cell is one direction of a network, in the region that is built.
type cell struct {
	*node
	hidden      int
	activations []func(n *node, x *ir.Value) *ir.Value
	w           *ir.Value // for the state, [gates · hidden, hidden]
	rb          *ir.Value // its bias, [gates · hidden]; nil where there is none
	peepholes   *ir.Value // [3 · hidden], nil where there are none
}

// recurrent is a network with so many gates, whose state is so many values. The step
// computes the next state from what a time's input gives to the gates.
func recurrent(gates, states int, activations []string, step func(c *cell, x *ir.Value, state []*ir.Value) []*ir.Value) conversion {
	return func(n *node) []*ir.Value {
		x, w, r := n.in(0), n.in(1), n.in(2)
		batchFirst := n.int("layout", 0) != 0
		if n.rank(x) != 3 || n.rank(w) != 3 || n.rank(r) != 3 {
			fail("inputs of %d, %d and %d dimensions", n.rank(x), n.rank(w), n.rank(r))
		}
		if batchFirst {
			x = n.transpose(x, 1, 0, 2)
		}
		s, hidden := n.shape(x), n.shape(r)[2]
		backward, ok := map[string][]bool{"forward": {false}, "reverse": {true}, "bidirectional": {false, true}}[n.str("direction", "forward")]
		if !ok || len(backward) != n.shape(w)[0] || len(backward) != n.shape(r)[0] || n.shape(r)[1] != gates*hidden {
			fail("weights of shapes %v and %v", n.shape(w), n.shape(r))
		}
		length := n.opt(4)
		if length != nil {
			if d := n.constant(length); d != nil && !slices.ContainsFunc(integers(d), func(k int) bool { return k != s[0] }) {
				length = nil // all of the time
			}
		}
		names := activations
		if a := n.attr("activations"); a != nil {
			names = a.strings
		}
		if len(names) < len(activations) {
			fail("%d activations", len(names))
		}
		var ys, last [][]*ir.Value
		for d, back := range backward {
			c := &cell{node: n, hidden: hidden}
			for k := range activations {
				c.activations = append(c.activations, n.activation(names, (d*len(activations)+k)%len(names)))
			}
			of := func(v *ir.Value) *ir.Value { return n.reshape(n.part(v, 0, d, d+1), n.shape(v)[1:]...) }
			c.w = of(r)
			in := n.make("matmul", []*ir.Value{x, of(w)}, named("transpose_b", true))
			if b := n.opt(3); b != nil {
				both := of(b)
				in = n.binary("add", in, n.part(both, 0, 0, gates*hidden))
				c.rb = n.part(both, 0, gates*hidden, 2*gates*hidden)
			}
			if states == 2 && n.opt(7) != nil {
				c.peepholes = of(n.in(7))
			}
			var state []*ir.Value
			for k := range states {
				v := n.opt(5 + k)
				switch {
				case v == nil:
					v = n.splat(x.Elem(), 0, s[1], hidden)
				case batchFirst:
					v = of(n.transpose(v, 1, 0, 2))
				default:
					v = of(v)
				}
				state = append(state, v)
			}
			y, end := c.run(in, state, length, back, step)
			ys, last = append(ys, []*ir.Value{y}), append(last, end)
		}
		// join puts the directions of value k at dimension at.
		join := func(of [][]*ir.Value, k, at int) *ir.Value {
			var parts []*ir.Value
			for _, vs := range of {
				shape := slices.Insert(n.shape(vs[k]), at, 1)
				parts = append(parts, n.reshape(vs[k], shape...))
			}
			return n.concatenate(at, parts...)
		}
		out := []*ir.Value{join(ys, 0, 1)}
		for k := range states {
			out = append(out, join(last, k, 0))
		}
		if batchFirst {
			out[0] = n.transpose(out[0], 2, 0, 1, 3)
			for k := range states {
				out[1+k] = n.transpose(out[1+k], 1, 0, 2)
			}
		}
		return out
	}
}

// run runs the steps: y is what each gives, end the state after the last. Rows that
// are shorter than the time keep their state after their length, and give 0.
func (c *cell) run(in *ir.Value, state []*ir.Value, length *ir.Value, back bool, step func(c *cell, x *ir.Value, state []*ir.Value) []*ir.Value) (y *ir.Value, end []*ir.Value) {
	n := c.node
	s := n.shape(in)
	if length != nil && back {
		in = n.reversed(in, length)
	}
	var attrs []types.Named
	if back && length == nil {
		attrs = named("reverse", true)
	}
	end, out := n.scan(append(one(n.scalar(types.I64, 0)), state...), one(in), attrs, func(m *node, carried, in []*ir.Value) (next, out []*ir.Value) {
		c.node = m
		defer func() { c.node = n }()
		time, old := carried[0], carried[1:]
		next = step(c, in[0], old)
		y := next[0]
		if length != nil {
			on := m.compare("lt", time, m.reshape(m.convertTo(length, types.I64), s[1], 1))
			y = m.choose(on, y, m.scalar(y.Elem(), 0))
			for k := range next {
				next[k] = m.choose(on, next[k], old[k])
			}
		}
		return append(one(m.with("add", time, 1)), next...), one(y)
	})
	y = out[0]
	if length != nil && back {
		y = n.reversed(y, length)
	}
	return y, end[1:]
}

// activation is the function of number i of a list.
func (n *node) activation(names []string, i int) func(m *node, x *ir.Value) *ir.Value {
	at := func(name string, otherwise float64) float64 {
		if a := n.attr(name); a != nil && i < len(a.floats) {
			return float64(a.floats[i])
		}
		return otherwise
	}
	switch strings.ToLower(names[i]) {
	case "sigmoid":
		return func(m *node, x *ir.Value) *ir.Value { return m.unary("logistic", x) }
	case "tanh":
		return func(m *node, x *ir.Value) *ir.Value { return m.unary("tanh", x) }
	case "relu":
		return func(m *node, x *ir.Value) *ir.Value { return m.unary("relu", x) }
	case "affine":
		return func(m *node, x *ir.Value) *ir.Value {
			return m.with("add", m.with("mul", x, at("activation_alpha", 1)), at("activation_beta", 0))
		}
	case "leakyrelu":
		return func(m *node, x *ir.Value) *ir.Value {
			return m.choose(m.compare("lt", x, m.scalar(x.Elem(), 0)), m.with("mul", x, at("activation_alpha", 0.01)), x)
		}
	case "thresholdedrelu":
		return func(m *node, x *ir.Value) *ir.Value {
			return m.choose(m.compare("gt", x, m.scalar(x.Elem(), at("activation_alpha", 1))), x, m.scalar(x.Elem(), 0))
		}
	case "scaledtanh":
		return func(m *node, x *ir.Value) *ir.Value {
			return m.with("mul", m.unary("tanh", m.with("mul", x, at("activation_beta", 1))), at("activation_alpha", 1))
		}
	case "hardsigmoid":
		return func(m *node, x *ir.Value) *ir.Value {
			return m.hardSigmoid(x, at("activation_alpha", 0.2), at("activation_beta", 0.5))
		}
	case "elu":
		return func(m *node, x *ir.Value) *ir.Value { return m.elu(x, at("activation_alpha", 1), 1) }
	case "softsign":
		return func(m *node, x *ir.Value) *ir.Value { return m.binary("div", x, m.with("add", m.unary("abs", x), 1)) }
	case "softplus":
		return func(m *node, x *ir.Value) *ir.Value { return m.softplus(x) }
	}
	unsupported("the activation %s", names[i])
	return nil
}

// gate is an activation of gate i of all, cut to the range of clip.
func (c *cell) gate(f int, x *ir.Value) *ir.Value {
	if limit := c.float("clip", 0); limit > 0 {
		e := x.Elem()
		x = c.make("clamp", []*ir.Value{c.scalar(e, -limit), x, c.scalar(e, limit)}, nil)
	}
	return c.activations[f](c.node, x)
}

// pick is gate i of a list of gates in the last dimension.
func (c *cell) pick(x *ir.Value, i int) *ir.Value {
	return c.part(x, c.rank(x)-1, i*c.hidden, (i+1)*c.hidden)
}

// recur is a state times the weights, with their bias.
func (c *cell) recur(h, w, b *ir.Value) *ir.Value {
	v := c.make("matmul", []*ir.Value{h, w}, named("transpose_b", true))
	if b != nil {
		v = c.binary("add", v, b)
	}
	return v
}

func (c *cell) rnn(x *ir.Value, state []*ir.Value) []*ir.Value {
	return one(c.gate(0, c.binary("add", x, c.recur(state[0], c.w, c.rb))))
}

// lstm has the gates input, output, forget, cell.
func (c *cell) lstm(x *ir.Value, state []*ir.Value) []*ir.Value {
	all := c.binary("add", x, c.recur(state[0], c.w, c.rb))
	peep := func(v, from *ir.Value, k int) *ir.Value {
		if c.peepholes == nil {
			return v
		}
		return c.binary("add", v, c.binary("mul", from, c.pick(c.peepholes, k)))
	}
	old := state[1]
	i := c.gate(0, peep(c.pick(all, 0), old, 0))
	var f *ir.Value
	if c.int("input_forget", 0) != 0 {
		f = c.binary("sub", c.scalar(i.Elem(), 1), i)
	} else {
		f = c.gate(0, peep(c.pick(all, 2), old, 2))
	}
	next := c.binary("add", c.binary("mul", f, old), c.binary("mul", i, c.gate(1, c.pick(all, 3))))
	o := c.gate(0, peep(c.pick(all, 1), next, 1))
	return []*ir.Value{c.binary("mul", o, c.activations[2](c.node, next)), next}
}

// gru has the gates update, reset, hidden.
func (c *cell) gru(x *ir.Value, state []*ir.Value) []*ir.Value {
	h := state[0]
	rows := func(v *ir.Value, from, to int) *ir.Value {
		if v == nil {
			return nil
		}
		return c.part(v, 0, from*c.hidden, to*c.hidden)
	}
	all := c.recur(h, rows(c.w, 0, 2), rows(c.rb, 0, 2))
	z := c.gate(0, c.binary("add", c.pick(x, 0), c.pick(all, 0)))
	r := c.gate(0, c.binary("add", c.pick(x, 1), c.pick(all, 1)))
	var rest *ir.Value
	if c.int("linear_before_reset", 0) != 0 {
		rest = c.binary("mul", r, c.recur(h, rows(c.w, 2, 3), rows(c.rb, 2, 3)))
	} else {
		rest = c.recur(c.binary("mul", r, h), rows(c.w, 2, 3), rows(c.rb, 2, 3))
	}
	g := c.gate(1, c.binary("add", c.pick(x, 2), rest))
	left := c.binary("mul", c.binary("sub", c.scalar(z.Elem(), 1), z), g)
	return one(c.binary("add", left, c.binary("mul", z, h)))
}
