package stablehlo

import (
	"slices"
	"strconv"
	"strings"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
	"dmir/syntax/ast"
	"dmir/syntax/diag"
)

func controls() map[string]conversion {
	return map[string]conversion{
		"while": while, "if": ifOp, "case": caseOp, "func.call": call, "composite": composite,
		"tensor.extract": extract, "tuple": tuple, "chlo.scan": chloScan, "get_tuple_element": tupleElement,
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
	b, ts := n.entry(i, len(n.in))
	var names []string
	for _, a := range n.args(b) {
		names = append(names, a.Name)
	}
	if ts != nil {
		names = splitNames(names, ts)
	}
	var likes []*ir.Value
	for k, name := range names {
		likes = append(likes, &ir.Value{Name: name, Type: n.in[k].Type})
	}
	return likes
}

func ifOp(n *node) []*ir.Value {
	n.takes(1)
	n.must(len(n.t.Regions) == 2, "DM142", "%s has two regions", n.name)
	if known := n.known(n.in[0]); len(known) == 1 {
		return n.run(either(known[0] != 0, 0, 1), nil)
	}
	return n.branch(n.in[0], func() []*ir.Value { return n.run(0, nil) }, func() []*ir.Value { return n.run(1, nil) })
}

func (n *node) branch(condition *ir.Value, yes, no func() []*ir.Value) []*ir.Value {
	o := n.open("if", []*ir.Value{condition}, nil, n.out...)
	n.inRegion(o, nil, func([]*ir.Value) []*ir.Value { return yes() })
	n.inRegion(o, nil, func([]*ir.Value) []*ir.Value { return no() })
	for i, v := range o.Body(0).Terminator().Operands {
		if i < len(o.Results) && types.HasUnnamed(o.Results[i].Type) {
			o.Results[i].Type = plain(v.Type)
		}
	}
	return n.closed(o).Results
}

// caseOp takes the branch of a number, the last one for numbers without a branch.
func caseOp(n *node) []*ir.Value {
	n.takes(1)
	count := len(n.t.Regions)
	n.must(count > 0 && len(n.shape(n.in[0])) == 0, "DM142", "%s takes a scalar and at least one branch", n.name)
	n.must(count <= 256, Unsupported, "%s with %d branches is not supported", n.name, count)
	if known := n.known(n.in[0]); len(known) == 1 {
		i := known[0]
		return n.run(int(either(0 <= i && i < int64(count), i, int64(count-1))), nil)
	}
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
	if n.opened[name] {
		return n.expanded(name)
	}
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
	return n.inlined(name)
}

// inlined is the body of a function, for the operands, where the builder stands.
func (n *node) inlined(name string) []*ir.Value {
	t := n.trees[name]
	n.must(t != nil && len(t.Regions) == 1 && len(t.Regions[0].Blocks) == 1, "DM142", "there is no function @%s with a body", name)
	b := t.Regions[0].Blocks[0]
	args := b.Args
	if t.Func != nil {
		args = t.Func.Args
	}
	n.must(len(n.in) == len(args), "DM142", "@%s takes %d operands, but has %d", name, len(args), len(n.in))
	n.must(n.depth < 64, Unsupported, "calls of functions that are expanded are nested too deep")
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

// chloScan is a scan along any dimension: its region takes the elements of the inputs and then what is carried, and
// passes on those of the outputs and then what is carried next.
func chloScan(n *node) []*ir.Value {
	n.must(len(n.t.Regions) == 1 && len(n.t.Regions[0].Blocks) == 1, "DM142", "%s needs a region of one block", n.name)
	args, inputs := n.args(n.t.Regions[0].Blocks[0]), 0
	n.must(len(args) == len(n.in), "DM142", "the region of %s takes %d values; expected %d", n.name, len(args), len(n.in))
	for inputs < len(n.in) {
		t, ok := n.typeAt(args[inputs].Type).(*types.Tensor)
		if !ok || len(n.shape(n.in[inputs])) != t.Rank()+1 {
			break
		}
		inputs++
	}
	n.must(inputs > 0, "DM142", "%s takes a tensor along whose dimension it runs", n.name)
	d, carries := n.int("dimension"), len(n.in)-inputs
	front := func(rank int) []int { return append([]int{d}, others(rank, []int{d})...) }
	operands := slices.Clone(n.in[inputs:])
	var likes []*ir.Value
	for _, v := range operands {
		likes = append(likes, &ir.Value{Name: "%acc", Type: v.Type})
	}
	for _, v := range n.in[:inputs] {
		rank := len(n.shape(v))
		n.must(d >= 0 && d < rank, "DM141", "dimension = %d of %s is no dimension of %s", d, n.name, v.Type)
		v = n.transpose(v, front(rank))
		operands, likes = append(operands, v), append(likes, &ir.Value{Name: "%x", Type: op.SliceOf(v.Tensor())})
	}
	attrs := []types.Named{intAttr("carries", carries)}
	if n.flag("is_reverse") {
		attrs = append(attrs, named("reverse", types.Bool(true)))
	}
	o := n.open("scan", operands, attrs)
	n.inRegion(o, likes, func(args []*ir.Value) []*ir.Value {
		out := n.run(0, slices.Concat(args[carries:], args[:carries]))
		n.must(len(out) >= carries, "DM142", "the region of %s passes on %d values, but %d are carried", n.name, len(out), carries)
		outputs := len(out) - carries
		return slices.Concat(out[outputs:], out[:outputs])
	})
	results := n.closed(o).Results
	var out []*ir.Value
	for _, v := range results[carries:] {
		rank := len(n.shape(v))
		n.must(d < rank, "DM142", "%s: an output has no dimension %d", n.name, d)
		out = append(out, n.transpose(v, op.Inverse(front(rank))))
	}
	return append(out, results[:carries]...)
}

// tuple is its operands as one value.
func tuple(n *node) []*ir.Value {
	of := make([]types.Type, len(n.in))
	for i, v := range n.in {
		of[i] = plain(v.Type)
	}
	return n.make("pack", n.in, nil, &types.Tuple{Of: of}).Results
}

// tupleElement is a member of a tuple: [0] behind it, or the attribute index.
func tupleElement(n *node) []*ir.Value {
	n.takes(1)
	t, ok := n.in[0].Type.(*types.Tuple)
	n.must(ok, "DM142", "%s takes a tuple, not a %s", n.name, n.in[0].Type)
	at := n.intOr("index", -1)
	if at < 0 && len(n.words) == 1 {
		if x, err := strconv.Atoi(strings.Trim(n.words[0], "[]")); err == nil {
			at = x
		}
	}
	n.must(0 <= at && at < len(t.Of), "DM141", "%s has the index %d, but %s has %s", n.name, at, t, diag.Count(len(t.Of), "member"))
	return n.make("unpack", n.in, nil, t.Of...).Results[at : at+1]
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
	for _, v := range init {
		n.must(!isCompound(v.Type), Unsupported, "a loop of blocks that carries a %s is not supported", v.Type)
	}
	n.b.At = n.positionOf(first)
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
		n.b.At = n.positionOf(branch)
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
		n.b.At = n.positionOf(branch)
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
