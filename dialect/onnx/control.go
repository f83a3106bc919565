package onnx

import (
	"slices"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
	"dmir/dialect/verify"
)

// Branches and loops: graphs in attributes.

func init() {
	register(map[string]conversion{"If": convertIf, "Loop": convertLoop, "Scan": convertScan})
}

// graph is the graph in the attribute called name.
func (n *node) graph(name string) *graphProto {
	a := n.attr(name)
	if a == nil || a.g == nil {
		fail("no graph %s", name)
	}
	return a.g
}

// body converts a graph at b, its inputs being args.
func (n *node) body(g *graphProto, b *op.Builder, args []*ir.Value) []*ir.Value {
	if len(args) != len(g.inputs) {
		fail("graph %q has %d inputs, not %d", g.name, len(g.inputs), len(args))
	}
	s := &scope{importer: n.importer, outer: n.scope, values: map[string]*ir.Value{}, opsets: n.opsets, b: b}
	for i, in := range g.inputs {
		s.define(in.name, args[i])
	}
	s.constants(g)
	around := b.At
	b.At = nil // the graph's nodes have their own places
	s.nodes(g.nodes)
	b.At = around
	var outs []*ir.Value
	for _, out := range g.outputs {
		outs = append(outs, s.read(out.name))
	}
	if err := b.Err(); err != nil {
		fail("%v", err)
	}
	return outs
}

// region is a new region of o with arguments of types ts. Ops that are built in it have the place of o.
func (n *node) region(o *ir.Op, ts ...types.Type) (*ir.Block, *op.Builder) {
	block := o.AddRegion()
	for _, t := range ts {
		block.AddArg(n.fresh("arg"), t)
	}
	return block, op.NewBuilder(&ir.Builder{Block: block, At: o}, verify.Op)
}

// results gives o, which was built without, results.
func results(o *ir.Op, ts []types.Type) []*ir.Value {
	for i, t := range ts {
		o.Results = append(o.Results, &ir.Value{Type: t, Op: o, Index: i})
	}
	return o.Results
}

// convertIf is a branch alone where the condition is known.
func convertIf(n *node) []*ir.Value {
	names := []string{"else_branch", "then_branch"}
	if d := n.constant(n.in(0)); d != nil && d.Len() > 0 {
		n.note(int(d.Int(0) & 1))
		return n.body(n.graph(names[d.Int(0)&1]), n.b, nil)
	}
	o := n.b.Op(op.Prefix+"if", one(n.single(n.in(0))), nil)
	var ts []types.Type
	for i, name := range []string{names[1], names[0]} {
		_, b := n.region(o)
		outs := n.body(n.graph(name), b, nil)
		b.Op(op.Yield, outs, nil)
		if i == 0 {
			ts = ir.Types(outs)
		} else if !slices.EqualFunc(ts, ir.Types(outs), types.Equal) {
			unsupported("branches with results of types %s and %s", types.List(ts), types.List(ir.Types(outs)))
		}
	}
	return results(o, ts)
}

// convertLoop is dm.scan where the number of iterations is known, otherwise dm.while.
func convertLoop(n *node) []*ir.Value {
	g := n.graph("body")
	if len(g.inputs) != len(n.ins) || len(n.ins) < 2 || len(g.outputs) < len(n.ins)-1 {
		fail("%d inputs, its graph has %d inputs and %d outputs", len(n.ins), len(g.inputs), len(g.outputs))
	}
	inits := []*ir.Value{n.scalar(types.I64, 0)}
	for i := range n.ins[2:] {
		inits = append(inits, n.in(i+2))
	}
	var limit *ir.Value
	count := -1
	if n.opt(0) != nil {
		limit = n.single(n.convertTo(n.in(0), types.I64))
		if d := n.constant(limit); d != nil {
			count = int(max(0, d.Int(0)))
			n.note(count)
		}
	}
	start := n.splat(types.I1, 1)
	if c := n.opt(1); c != nil {
		start = n.single(c)
	}
	o := n.b.Op(op.Prefix+"scan", nil, nil)
	block, b := n.region(o, ir.Types(inits)...)
	inner := *n
	inner.scope = &scope{importer: n.importer, outer: n.scope, values: map[string]*ir.Value{}, opsets: n.opsets, attrs: n.attrs, b: b}
	yes := inner.splat(types.I1, 1) // the body runs only then
	outs := n.body(g, b, append([]*ir.Value{block.Args[0], yes}, block.Args[1:]...))
	again, carried, stacked := inner.single(outs[0]), outs[1:len(inits)], outs[len(inits):]
	if !slices.EqualFunc(ir.Types(inits[1:]), ir.Types(carried), types.Equal) {
		unsupported("carried values of types %s that become %s", types.List(ir.Types(inits[1:])), types.List(ir.Types(carried)))
	}
	next := append(one(inner.with("add", block.Args[0], 1)), carried...)
	isTrue := func(v *ir.Value) bool { d := n.constant(v); return d != nil && d.Len() > 0 && d.Int(0) != 0 }
	if count >= 0 && isTrue(start) && isTrue(again) {
		b.Op(op.Yield, append(next, stacked...), nil)
		setOperands(o, inits)
		o.SetAttrs(named("carries", len(inits), "length", count))
		return results(o, append(ir.Types(inits), stackedTypes(stacked, count)...))[1:]
	}
	if len(stacked) > 0 {
		panic(&Error{Code: unsupportedCode, Value: true, Msg: "a loop stacks results and its number of iterations is not known at import: the dialect has static shapes"})
	}
	o.Name = op.Prefix + "while"
	block.AddArg(n.fresh("arg"), start.Type)
	b.Op(op.Yield, append(next, again), nil)
	all := append(slices.Clone(inits), start)
	setOperands(o, all)
	test, tb := n.region(o, ir.Types(all)...)
	o.Regions[0], o.Regions[1] = o.Regions[1], o.Regions[0]
	more := test.Args[len(all)-1]
	if limit != nil {
		inner.scope.b = tb
		more = inner.binary("and", inner.compare("lt", test.Args[0], limit), more)
	}
	tb.Op(op.Yield, one(more), nil)
	rs := results(o, ir.Types(all))
	return rs[1 : len(rs)-1]
}

// setOperands gives o, which was built without, operands.
func setOperands(o *ir.Op, vs []*ir.Value) {
	o.Operands = vs
	for i, v := range vs {
		v.Uses = append(v.Uses, ir.Use{Op: o, Index: i})
	}
}

// stackedTypes are the types of values in a number of iterations.
func stackedTypes(vs []*ir.Value, count int) (out []types.Type) {
	for _, v := range vs {
		t := v.Tensor()
		out = append(out, &types.Tensor{Elem: t.Elem, Shape: append(sizes([]int{count}), t.Shape...)})
	}
	return out
}

// front moves dimension d of x to the front, or back from there.
func (n *node) front(x *ir.Value, d int, back bool) *ir.Value {
	order := axesFrom(n.rank(x))
	if back {
		order = slices.Insert(order[1:], d, 0)
	} else {
		order = slices.Insert(slices.Delete(order, d, d+1), 0, d)
	}
	return n.transpose(x, order...)
}

func convertScan(n *node) []*ir.Value {
	if n.opset < 9 {
		unsupported("Scan before version 9")
	}
	g := n.graph("body")
	count := n.int("num_scan_inputs", 0)
	carries := len(n.ins) - count
	if count < 1 || carries < 0 || len(g.outputs) < carries {
		fail("%d inputs, %d of them scanned", len(n.ins), count)
	}
	stacks := len(g.outputs) - carries
	at := func(name string, length int) []int {
		list := n.ints(name)
		if list == nil {
			list = make([]int, length)
		}
		if len(list) != length {
			fail("%s has %d entries, not %d", name, len(list), length)
		}
		return list
	}
	reverse := func(x *ir.Value, yes int) *ir.Value {
		if yes == 0 {
			return x
		}
		return n.make("reverse", []*ir.Value{x}, named("dims", []int{0}))
	}
	inAxes, inBack := at("scan_input_axes", count), at("scan_input_directions", count)
	outAxes, outBack := at("scan_output_axes", stacks), at("scan_output_directions", stacks)
	var operands []*ir.Value
	for i := range carries {
		operands = append(operands, n.in(i))
	}
	ts := ir.Types(operands)
	length := 0
	for i := range count {
		x := n.in(carries + i)
		x = reverse(n.front(x, axis(inAxes[i], n.rank(x)), false), inBack[i])
		operands = append(operands, x)
		t := x.Tensor()
		ts = append(ts, &types.Tensor{Elem: t.Elem, Shape: t.Shape[1:]})
		if i > 0 && length != n.shape(x)[0] {
			fail("scans over %d and %d elements", length, n.shape(x)[0])
		}
		length = n.shape(x)[0]
	}
	o := n.b.Op(op.Prefix+"scan", operands, named("carries", carries))
	block, b := n.region(o, ts...)
	outs := n.body(g, b, block.Args)
	b.Op(op.Yield, outs, nil)
	if !slices.EqualFunc(ts[:carries], ir.Types(outs[:carries]), types.Equal) {
		unsupported("carried values of types %s that become %s", types.List(ts[:carries]), types.List(ir.Types(outs[:carries])))
	}
	rs := slices.Clone(results(o, append(slices.Clone(ts[:carries]), stackedTypes(outs[carries:], length)...)))
	for i := range stacks {
		v := rs[carries+i]
		rs[carries+i] = n.front(reverse(v, outBack[i]), axis(outAxes[i], n.rank(v)), true)
	}
	return rs
}
