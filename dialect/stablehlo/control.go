package stablehlo

import (
	"slices"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
	"dmir/syntax/ast"
)

func controls() map[string]conversion {
	return map[string]conversion{
		"while": while, "if": ifOp, "case": caseOp, "func.call": call, "composite": composite,
		"tensor.extract": extract,
	}
}

// while has a region for the condition and one for the body, with the same arguments.
func while(n *node) []*ir.Value {
	o := n.open("while", n.in, nil)
	for i := range 2 {
		n.inRegion(o, n.likes(i), func(args []*ir.Value) []*ir.Value { return n.run(i, args) })
	}
	return n.closed(o).Results
}

// likes are the arguments of region i by name, with the types of the operands.
func (n *node) likes(i int) []*ir.Value {
	b := n.entry(i, len(n.in))
	var likes []*ir.Value
	for k, a := range n.args(b) {
		likes = append(likes, &ir.Value{Name: a.Name, Type: n.in[k].Type})
	}
	return likes
}

func ifOp(n *node) []*ir.Value {
	n.takes(1)
	n.must(len(n.t.Regions) == 2, "DM142", "%s has two regions", n.name)
	return n.branch(n.in[0], func() []*ir.Value { return n.run(0, nil) }, func() []*ir.Value { return n.run(1, nil) })
}

func (n *node) branch(condition *ir.Value, yes, no func() []*ir.Value) []*ir.Value {
	o := n.open("if", []*ir.Value{condition}, nil, n.out...)
	n.inRegion(o, nil, func([]*ir.Value) []*ir.Value { return yes() })
	n.inRegion(o, nil, func([]*ir.Value) []*ir.Value { return no() })
	return n.closed(o).Results
}

// caseOp takes the branch of a number, the last one for numbers without a branch.
func caseOp(n *node) []*ir.Value {
	n.takes(1)
	count := len(n.t.Regions)
	n.must(count > 0 && len(n.shape(n.in[0])) == 0, "DM142", "%s takes a scalar and at least one branch", n.name)
	n.must(count <= 256, Unsupported, "%s with %d branches is not supported", n.name, count)
	var from func(i int) []*ir.Value
	from = func(i int) []*ir.Value {
		if i == count-1 {
			return n.run(i, nil)
		}
		chosen := n.compare("eq", n.in[0], n.whole(n.in[0].Elem(), i))
		return n.branch(chosen, func() []*ir.Value { return n.run(i, nil) }, func() []*ir.Value { return from(i + 1) })
	}
	if count > 1 {
		return from(0)
	}
	return n.branch(n.constant(types.SplatOf(tensorOf(types.I1), 1)), func() []*ir.Value { return n.run(0, nil) }, func() []*ir.Value { return n.run(0, nil) })
}

func call(n *node) []*ir.Value {
	name := n.keyword("callee")
	if name == "" && len(n.t.Symbols) > 0 {
		name, _ = types.ParseSymbol(n.t.Symbols[0].Name).Name()
	}
	return n.call(name)
}

// call is func.call of a function of the program.
func (n *node) call(name string) []*ir.Value {
	s := n.funcs[name]
	if n.refused[name] {
		panic(bailout{})
	}
	n.must(s != nil, "DM142", "there is no function @%s", name)
	n.must(s.manual == nil, Unsupported, "the call of @%s, a sdy.manual_computation, is not supported; only a function that is nothing else runs on each device", name)
	n.must(len(n.in) == len(s.in), "DM142", "@%s takes %d operands, but has %d", name, len(s.in), len(n.in))
	for i, v := range n.in {
		n.must(alike(v.Type, s.in[i]), "DM142", "operand %d of @%s is a %s, but a %s is expected", i, name, v.Type, s.in[i])
	}
	in := make([]*ir.Value, len(n.in))
	for i, v := range n.in {
		in[i] = n.as(v, s.in[i])
	}
	o := n.make(op.Call, in, []types.Named{named("callee", types.SymbolOf(name))}, s.out...)
	for _, r := range o.Results {
		r.Name = ""
	}
	return o.Results
}

// inlined is the body of a function for many elements at once, in the region of a
// reduction.
func inlined(n *node) []*ir.Value {
	name := n.keyword("callee")
	if name == "" && len(n.t.Symbols) > 0 {
		name, _ = types.ParseSymbol(n.t.Symbols[0].Name).Name()
	}
	t := n.trees[name]
	n.must(t != nil && len(t.Regions) == 1 && len(t.Regions[0].Blocks) == 1, "DM142", "there is no function @%s with a body", name)
	b := t.Regions[0].Blocks[0]
	args := b.Args
	if t.Func != nil {
		args = t.Func.Args
	}
	n.must(len(n.in) == len(args), "DM142", "@%s takes %d operands, but has %d", name, len(args), len(n.in))
	n.must(n.depth < 32, Unsupported, "calls in the region of a reduction are nested too deep")
	n.depth++
	defer func() { n.depth-- }()
	outer := n.scope
	n.scope = &scope{names: map[string][]*ir.Value{}}
	defer func() { n.scope = outer }()
	for i, a := range args {
		n.scope.names[a.Name] = []*ir.Value{n.in[i]}
	}
	return n.block(b)
}

// composite calls its decomposition.
func composite(n *node) []*ir.Value {
	name := n.keyword("decomposition")
	n.must(name != "", "DM141", "%s needs the attribute decomposition", n.name)
	return n.call(name)
}

// extract is the only element of a tensor of rank 0, which stays one.
func extract(n *node) []*ir.Value {
	n.must(len(n.in) == 1, Unsupported, "%s at a position is not supported", n.name)
	n.out = []types.Type{n.in[0].Type}
	return n.in
}

// loop converts a function whose blocks are a loop, as older tools wrote one: an entry
// that branches to a block with the condition, which leads to the body or to the end.
func (n *node) loop(blocks []*ast.Block) []*ir.Value {
	n.must(len(blocks) == 4, Unsupported, "a function of %d blocks is not supported, unless they are a loop", len(blocks))
	by := map[string]*ast.Block{}
	for _, b := range blocks {
		by[b.Label] = b
	}
	first := n.ops(blocks[0])
	head := n.target(by, first, 0)
	last := head.Ops[len(head.Ops)-1]
	n.must(last.Name == "cf.cond_br" && len(last.Succs) == 2, Unsupported, "a function of several blocks is not supported, unless they are a loop")
	body, end := by[last.Succs[0].Name], by[last.Succs[1].Name]
	n.must(body != nil && end != nil && len(body.Ops) > 0, "DM142", "a branch leads to no block")
	init := n.passed(first, 0)
	n.b.At = positionOf(first)
	o := n.open("while", init, nil)
	likes := func(b *ast.Block, vs []*ir.Value) []*ir.Value {
		n.must(len(b.Args) == len(vs), "DM142", "%s takes %d values, but gets %d", b.Label, len(b.Args), len(vs))
		var out []*ir.Value
		for i, a := range b.Args {
			out = append(out, &ir.Value{Name: a.Name, Type: vs[i].Type})
		}
		return out
	}
	enter := func(b *ast.Block, vs []*ir.Value) (leave func()) {
		n.must(len(b.Args) == len(vs), "DM142", "%s takes %d values, but gets %d", b.Label, len(b.Args), len(vs))
		leave = n.enter()
		for i, a := range b.Args {
			n.scope.names[a.Name] = []*ir.Value{vs[i]}
		}
		return leave
	}
	var toBody, toEnd []int // which of the carried values the condition passes on
	n.inRegion(o, likes(head, init), func(args []*ir.Value) []*ir.Value {
		defer enter(head, args)()
		branch := n.ops(head)
		places := func(vs []*ir.Value) []int {
			out := make([]int, len(vs))
			for i, v := range vs {
				out[i] = slices.Index(args, v)
				n.must(out[i] >= 0, Unsupported, "a loop whose condition passes on other values than it takes is not supported")
			}
			return out
		}
		toBody, toEnd = places(n.passed(branch, 0)), places(n.passed(branch, 1))
		n.b.At = positionOf(branch)
		return n.passed(branch, -1)[:1]
	})
	at := func(vs []*ir.Value, places []int) []*ir.Value {
		out := make([]*ir.Value, len(places))
		for i, p := range places {
			out[i] = vs[p]
		}
		return out
	}
	named := make([]*ir.Value, len(init)) // the carried values under the names of the body
	copy(named, init)
	for i, p := range toBody {
		if i < len(body.Args) {
			named[p] = &ir.Value{Name: body.Args[i].Name, Type: init[p].Type}
		}
	}
	n.inRegion(o, named, func(args []*ir.Value) []*ir.Value {
		defer enter(body, at(args, toBody))()
		branch := n.ops(body)
		n.must(n.target(by, branch, 0) == head, Unsupported, "a function of several blocks is not supported, unless they are a loop")
		n.b.At = positionOf(branch)
		return n.passed(branch, 0)
	})
	results := n.closed(o).Results
	for i, p := range toEnd {
		if i < len(end.Args) {
			results[p].Name = end.Args[i].Name
		}
	}
	defer enter(end, at(results, toEnd))()
	return n.block(end)
}

// ops converts the ops of b but its branch, which it returns.
func (n *node) ops(b *ast.Block) *ast.Op {
	n.must(len(b.Ops) > 0, "DM142", "a block is empty")
	for _, t := range b.Ops[:len(b.Ops)-1] {
		n.importer.convert(t)
	}
	return b.Ops[len(b.Ops)-1]
}

// target is the block that successor i of a branch is.
func (n *node) target(by map[string]*ast.Block, t *ast.Op, i int) *ast.Block {
	n.must(t.Name == "cf.br" && len(t.Succs) == 1 && by[t.Succs[i].Name] != nil, Unsupported, "a function of several blocks is not supported, unless they are a loop")
	b := by[t.Succs[i].Name]
	n.must(len(b.Ops) > 0, "DM142", "a block is empty")
	return b
}

// passed are the values that a branch passes to successor i; those in front of all
// successors for -1.
func (n *node) passed(t *ast.Op, i int) []*ir.Value {
	b := &node{importer: n.importer, t: t, name: t.Name}
	uses := t.Operands
	if i >= 0 {
		uses = t.Succs[i].Args
	}
	var vs []*ir.Value
	for _, u := range uses {
		vs = append(vs, b.use(u, nil))
	}
	return vs
}
