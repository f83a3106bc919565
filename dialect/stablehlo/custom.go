package stablehlo

import (
	"slices"
	"strings"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
	"dmir/syntax/ast"
)

// customs are ops that call what has a name alone, and those of other dialects.
func customs() map[string]conversion {
	m := map[string]conversion{
		"custom_call":         customCall,
		"util.global.address": globalAddress, "util.global.load.indirect": globalLoad, "util.global.load": globalLoad,
		"util.unfoldable_constant": constant, "util.optimization_barrier": same,
	}
	for _, name := range []string{"expect_eq", "expect_almost_eq", "expect_close"} {
		m["check."+name] = check
		m["check."+name+"_const"] = checkConstant
	}
	return m
}

// customCalls are the targets of custom_call that have an equivalent.
var customCalls = merged(lapackCalls(), map[string]conversion{
	"check.expect_eq": check, "check.expect_almost_eq": check, "check.expect_close": check,
	"shape_assertion": shapeAssertion, "stablehlo.dynamic_reduce_window": dynamicReduceWindow, "cu_threefry2x32_ffi": hashed, "cu_threefry2x32": hashed, "ApproxTopK": approxTopK,
	"Sharding": same, "SPMDFullToShardShape": unsharded, "SPMDShardToFullShape": unsharded, "annotate_device_placement": same, "LayoutConstraint": same,
	"mhlo.erf": called("erf"), "mhlo.tan": called("tan"), "mhlo.topk": customTopK, "TopK": customTopK, "stablehlo.dynamic_top_k": customTopK,
	"byteir.layer_norm": byteirLayerNorm, "byteir.softmax": byteirSoftmax("softmax"), "byteir.log_softmax": byteirSoftmax("log_softmax"),
	"byteir.gelu": byteirGelu, "byteir.erf": called("erf"), "byteir.nll_loss_forward": byteirNLL,
})

func called(name string) conversion {
	return func(n *node) []*ir.Value {
		n.takes(1)
		return n.computed(n.in, func(in []*ir.Value) *ir.Value { return n.unary(name, in[0]) })
	}
}

func customCall(n *node) []*ir.Value {
	target := n.callee()
	f := customCalls[target]
	if f == nil {
		n.unsupported("the custom call of %s has no equivalent in the dialect", target)
	}
	n.name = target
	return f(n)
}

// callee is what a custom call calls.
func (n *node) callee() string {
	if t := n.keyword("call_target_name"); t != "" {
		return t
	}
	for _, w := range n.words {
		if name, ok := strings.CutPrefix(w, "@"); ok {
			return strings.Trim(name, `"`)
		}
	}
	n.fail("DM141", "%s needs the attribute call_target_name", n.name)
	return ""
}

// check compares two values; it keeps its name.
func check(n *node) []*ir.Value {
	n.takes(2)
	var attrs []types.Named
	if n.has(op.MaxULP) {
		attrs = append(attrs, named(op.MaxULP, types.Int{V: int64(n.int(op.MaxULP)), Elem: types.I64}))
	}
	if n.has(op.ToleranceAttr) {
		t := n.floatOr(op.ToleranceAttr, -1)
		n.must(t >= 0, "DM141", "tolerance of %s is no number that is at least 0", n.name)
		attrs = append(attrs, named(op.ToleranceAttr, types.Float{V: t}))
	}
	n.must(n.intOr("min_ulp_difference", 0) == 0, Unsupported, "%s with a least difference is not supported", n.name)
	n.must(alike(n.in[0].Type, n.in[1].Type), "DM142", "%s compares a %s with a %s", n.name, n.in[0].Type, n.in[1].Type)
	n.make(n.name, n.in, attrs)
	return nil
}

// checkConstant compares a value with a literal.
func checkConstant(n *node) []*ir.Value {
	n.takes(1)
	t, ok := n.in[0].Type.(*types.Tensor)
	n.must(ok, "DM142", "%s compares tensors, not %s", n.name, n.in[0].Type)
	want := n.constant(n.dense("value", t))
	want.Name = "%expected"
	n.name = strings.TrimSuffix(n.name, "_const")
	n.in = append(slices.Clone(n.in), want)
	return check(n)
}

// globalAddress stands for the symbol that it names until the value is loaded.
func globalAddress(n *node) []*ir.Value {
	n.must(len(n.t.Symbols) > 0, "DM141", "%s names no symbol", n.name)
	n.must(len(n.out) == 1, "DM142", "%s has one result", n.name)
	return []*ir.Value{{Name: n.t.Symbols[0].Name, Type: n.out[0]}}
}

// globalLoad is the constant that a global holds.
func globalLoad(n *node) []*ir.Value {
	name := ""
	switch {
	case len(n.in) == 1:
		name = n.in[0].Name
	case len(n.t.Symbols) > 0:
		name = n.t.Symbols[0].Name
	}
	g := n.globals[name]
	n.must(g != nil, "DM142", "there is no global %s", name)
	value := n.global(g)
	to := n.result(0)
	n.must(value != nil, Unsupported, "the global %s has no initial value", name)
	n.attrs["value"] = *value
	return []*ir.Value{n.constant(n.dense("value", to))}
}

// global is the initial value of a global: the literal behind its name, or the
// attribute initial_value.
func (n *node) global(g *ast.Op) *attr {
	at := &node{importer: n.importer, t: g, name: g.Name, attrs: map[string]attr{}}
	if g.Form == ast.Custom {
		at.pretty()
	} else if !g.Attrs.Empty() {
		at.dict(g.Attrs)
	}
	for _, name := range []string{"value", "initial_value"} {
		if a, ok := at.attrs[name]; ok {
			return &a
		}
	}
	return nil
}

// option is an entry of the dictionary byteir_attrs.
func (n *node) option(name string) *ast.AttrExpr {
	a, ok := n.attrs["byteir_attrs"]
	n.must(ok, "DM141", "%s needs the attribute byteir_attrs", n.name)
	return a.x.Get(name)
}

func (n *node) optionInts(name string) []int {
	x := n.option(name)
	n.must(x != nil, "DM141", "%s needs the attribute %s", n.name, name)
	n.attrs[name] = attr{x, n.attrs["byteir_attrs"].at}
	return n.ints(name)
}

// byteirLayerNorm gives the normalized values, the mean and the reciprocal of the
// standard deviation.
func byteirLayerNorm(n *node) []*ir.Value {
	n.takes(3)
	x, dims := n.in[0], n.optionInts("axis")
	eps := 1e-5
	if v := n.option("epsilon"); v != nil {
		eps = v.Float
	}
	attrs := []types.Named{named("epsilon", types.Float{V: eps})}
	if last := len(n.shape(x)) - 1; !slices.Equal(dims, []int{last}) {
		attrs = append(attrs, intsAttr("dims", dims))
	}
	out := []*ir.Value{n.op("layer_norm", n.in, attrs...)}
	if len(n.out) == 1 {
		return out
	}
	n.must(len(n.out) == 3, "DM142", "%s has one or three results", n.name)
	keep := []types.Named{intsAttr("dims", dims), named("keep_dims", types.Bool(true))}
	mean := n.op("mean", []*ir.Value{x}, keep...)
	variance := n.op("variance", []*ir.Value{x}, keep...)
	rstd := n.unary("rsqrt", n.binary("add", variance, n.fill(x.Elem(), eps)))
	return append(out, n.reshape(mean, n.sizes(n.out[1])...), n.reshape(rstd, n.sizes(n.out[2])...))
}

func byteirSoftmax(name string) conversion {
	return func(n *node) []*ir.Value {
		n.takes(1)
		dims := n.optionInts("axis")
		n.must(len(dims) == 1, "DM141", "axis of %s is one dimension", n.name)
		return []*ir.Value{n.op(name, n.in, intAttr("dim", dims[0]))}
	}
}

func byteirGelu(n *node) []*ir.Value {
	n.takes(1)
	var attrs []types.Named
	if x := n.option("approximate"); x != nil && x.Str == "tanh" {
		attrs = []types.Named{named("approximate", types.Keyword("tanh"))}
	}
	return []*ir.Value{n.op("gelu", n.in, attrs...)}
}

// byteirNLL is the negative logarithm of the probability of each target: the mean over
// the rows, or the sum, and the number of rows that count.
func byteirNLL(n *node) []*ir.Value {
	n.takes(2)
	x, target := n.in[0], n.in[1]
	shape := n.shape(x)
	n.must(len(shape) == 2 && len(n.out) == 2, Unsupported, "%s of this form is not supported", n.name)
	e := x.Elem()
	ignored := n.whole(target.Elem(), n.optionInts("ignore_index")[0])
	counts := n.compare("ne", target, ignored)
	picked := n.gather(x, n.reshape(target, shape[0], 1), 1, 1)
	losses := n.choose(counts, n.unary("neg", n.reshape(picked, shape[0])), n.fill(e, 0))
	rows := n.reduced("add", n.convert(counts, e), []int{0})
	sum := n.reduced("add", losses, []int{0})
	switch n.optionInts("reduction")[0] {
	case 0:
		return []*ir.Value{losses, rows}
	case 1:
		return []*ir.Value{n.binary("div", sum, rows), rows}
	}
	return []*ir.Value{sum, rows}
}

// unsharded passes on a value between a program for all devices and one for each where they are one.
func unsharded(n *node) []*ir.Value {
	n.takes(1)
	n.must(len(n.out) == 1 && alike(n.in[0].Type, n.out[0]), Unsupported, "%s between a %s and a part of it, a %s, is not supported; write the program with Shardy", n.name, n.in[0].Type, n.result(0))
	return n.in
}

// approxTopK is the exact answer to what asks for an approximate one: the largest elements along a dimension,
// or the smallest, by a function that compares, and what belongs to them.
func approxTopK(n *node) []*ir.Value {
	n.takes(4)
	k, d := n.setting("top_k"), n.setting("reduction_dim")
	shape := n.shape(n.in[0])
	n.must(k != nil && d != nil && len(n.out) == 2 && d.Int >= 0 && int(d.Int) < len(shape), "DM141", "%s needs top_k and reduction_dim in its mhlo.backend_config", n.name)
	n.must(n.setting("aggregate_to_topk") != nil && n.setting("aggregate_to_topk").Bool, Unsupported, "%s without aggregate_to_topk gives more elements than asked for and is not supported", n.name)
	t := n.called("compares")
	keep := n.setting("top_k").Int
	in, out := n.in[:2], n.out
	n.in, n.t, n.out = in, t, nil
	n.put("dimension", []int{int(d.Int)})
	sorted := sortOp(n)
	n.out = out
	for i, v := range sorted {
		sorted[i] = n.slice(v, int(d.Int), 0, min(int(keep), shape[d.Int]))
	}
	return sorted
}

// customTopK is the largest elements of each row and their positions.
func customTopK(n *node) []*ir.Value {
	n.takes(1)
	shape := n.sizes(n.result(0))
	n.must(len(n.out) == 2 && len(shape) > 0, "DM142", "%s has two results", n.name)
	return n.make("top_k", n.in, []types.Named{intAttr("k", shape[len(shape)-1])}, n.out...).Results
}

// called is the one function of called_computations; what says what it does.
func (n *node) called(what string) *ast.Op {
	called, _ := n.value("called_computations").(types.Array)
	n.must(len(called) == 1, "DM141", "%s needs the function that %s in called_computations", n.name, what)
	symbol, _ := called[0].(types.Symbol)
	name, _ := symbol.Name()
	t := n.trees[name]
	n.must(t != nil, "DM142", "there is no function @%s", name)
	return t
}
