package stablehlo

import (
	"math"
	"slices"
	"strings"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

func reductions() map[string]conversion {
	return map[string]conversion{
		"reduce": reduce, "map": mapped, "reduce_window": reduceWindow, "select_and_scatter": selectAndScatter, "sort": sortOp, "chlo.ragged_dot": raggedDot,
		"chlo.top_k": topK,
	}
}

// limits are the least and the greatest number of type e.
func limits(e types.Elem) (low, high *types.Dense) {
	t := tensorOf(e)
	bits := e.Bits()
	switch {
	case e.IsFloat():
		return types.SplatOf(t, math.Inf(-1)), types.SplatOf(t, math.Inf(1))
	case e == types.I1:
		return types.SplatOf(t, 0), types.SplatOf(t, 1)
	case e == types.UI64:
		return types.IntOf(t, 0), types.IntOf(t, -1)
	case e.IsUnsigned():
		return types.IntOf(t, 0), types.IntOf(t, 1<<bits-1)
	}
	return types.IntOf(t, -1<<(bits-1)), types.IntOf(t, 1<<(bits-1)-1)
}

// reduce has operands and their initial values, and the dimensions that go.
func reduce(n *node) []*ir.Value {
	xs, inits, shape := n.inputs()
	dims := n.dims("dimensions", len(shape))
	if len(xs) == 1 {
		if y := n.namedReduce(xs[0], inits[0], dims); y != nil {
			return []*ir.Value{y}
		}
	}
	if len(xs) == 2 {
		if vs := n.argmax(xs, inits, dims); vs != nil {
			return vs
		}
	}
	return n.fold(xs, inits, dims)
}

// inputs are the operands of a reduction, their initial values and their one shape.
func (n *node) inputs() (xs, inits []*ir.Value, shape []int) {
	k := len(n.in) / 2
	n.must(k > 0 && len(n.in) == 2*k, "DM142", "%s takes operands and as many initial values, but has %d", n.name, len(n.in))
	xs, inits = n.in[:k], n.in[k:]
	shape = n.shape(xs[0])
	for i, x := range xs {
		n.must(slices.Equal(n.shape(x), shape), "DM142", "the operands of %s have the types %s and %s", n.name, xs[0].Type, x.Type)
		n.must(inits[i].Elem() == x.Elem() && len(n.shape(inits[i])) == 0, "DM142", "the initial value of %s is a %s, not a scalar of %s", n.name, inits[i].Type, x.Elem())
	}
	return xs, inits, shape
}

// reducer is the combiner of a reduction: that of its region, or the op that its
// pretty form applies.
func (n *node) reducer(e types.Elem) string {
	if at := slices.Index(n.words, "applies"); at >= 0 && at+1 < len(n.words) {
		_, name, _ := strings.Cut(n.words[at+1], ".")
		to, ok := combiners[op.Prefix+binaries[name]]
		n.must(ok, Unsupported, "%s applies %s, which is not supported", n.name, n.words[at+1])
		if other, ok := onBools[to]; ok && e == types.I1 {
			to = other
		}
		return to
	}
	return n.combiner(0, e)
}

// namedReduce is a reduction that has a name, or a bitwise one; nil for others.
func (n *node) namedReduce(x, init *ir.Value, dims []int) *ir.Value {
	e := x.Elem()
	combiner := n.reducer(e)
	if combiner == "" || combiner == "set" {
		return nil
	}
	y := n.convert(x, widened(e))
	switch kind := reduction(combiner, e); {
	case len(dims) == 0:
	case !e.IsFloat() && product(pick(n.shape(x), dims)) == 1:
		y = n.reshape(y, pick(n.shape(x), others(len(n.shape(x)), dims))...)
	case kind != "" && e != types.I1:
		y = n.reduced(kind, y, dims)
	default:
		y = n.bitwise(either(e == types.I1 && onBools[combiner] != "", onBools[combiner], combiner), y, dims)
	}
	y = n.convert(y, e)
	if isNeutral(combiner, init) {
		return y
	}
	return n.computed([]*ir.Value{y, init}, func(in []*ir.Value) *ir.Value { return n.arithmetic(combiner, in[0], in[1]) })[0]
}

// reduced is dm.reduce of a named kind.
func (n *node) reduced(kind string, x *ir.Value, dims []int) *ir.Value {
	dims = slices.Sorted(slices.Values(dims))
	attrs := []types.Named{named("kind", types.Keyword(kind))}
	if len(dims) < len(n.shape(x)) {
		attrs = append(attrs, intsAttr("dims", dims))
	}
	return n.op("reduce", []*ir.Value{x}, attrs...)
}

// bitwise is a reduction of the bits of integers, by a region.
func (n *node) bitwise(combiner string, x *ir.Value, dims []int) *ir.Value {
	start, _ := neutral(combiner, x.Elem())
	o := n.open("reduce", []*ir.Value{x, n.constant(start)}, []types.Named{intsAttr("dims", slices.Sorted(slices.Values(dims)))})
	number := types.Scalar{Elem: x.Elem()}
	n.inRegion(o, []*ir.Value{{Name: "%a", Type: number}, {Name: "%b", Type: number}}, func(args []*ir.Value) []*ir.Value {
		return []*ir.Value{n.binary(combiner, args[0], args[1])}
	})
	return n.closed(o).Results[0]
}

// fold is a reduction by any function of any number of operands: a loop over the
// reduced elements, in order, which computes all results at once.
func (n *node) fold(xs, inits []*ir.Value, dims []int) []*ir.Value {
	batch := pick(n.shape(xs[0]), others(len(n.shape(xs[0])), dims))
	return n.foldBy(xs, inits, dims, func(now, next []*ir.Value) []*ir.Value {
		return n.runFor(0, batch, slices.Concat(now, next))
	})
}

// foldBy is fold by the function step.
func (n *node) foldBy(xs, inits []*ir.Value, dims []int, step func(now, next []*ir.Value) []*ir.Value) []*ir.Value {
	shape := n.shape(xs[0])
	dims = slices.Sorted(slices.Values(dims))
	keep := others(len(shape), dims)
	batch := pick(shape, keep)
	steps := product(pick(shape, dims))
	var carried, stacks []*ir.Value
	for i, x := range xs {
		carried = append(carried, n.trailing(inits[i], batch))
		x = n.transpose(x, slices.Concat(dims, keep))
		stacks = append(stacks, n.reshape(x, append([]int{steps}, batch...)...))
	}
	return n.scan(batch, carried, stacks, step)
}

// scan is a loop over the first dimension of stacks, which carries values of the sizes
// of batch.
func (n *node) scan(batch []int, carried, stacks []*ir.Value, step func(now, next []*ir.Value) []*ir.Value) []*ir.Value {
	o := n.open("scan", slices.Concat(carried, stacks), []types.Named{intAttr("carries", len(carried))})
	var likes []*ir.Value
	for _, v := range carried {
		likes = append(likes, &ir.Value{Name: "%acc", Type: v.Type})
	}
	for _, v := range stacks {
		likes = append(likes, &ir.Value{Name: "%x", Type: op.SliceOf(v.Tensor())})
	}
	n.inRegion(o, likes, func(args []*ir.Value) []*ir.Value {
		return step(args[:len(carried)], args[len(carried):])
	})
	return n.closed(o).Results
}

// argmax is the reduction of numbers and their positions to the first largest or
// smallest, in the form in which JAX writes it; nil for others.
func (n *node) argmax(xs, inits []*ir.Value, dims []int) []*ir.Value {
	x, positions := xs[0], xs[1]
	if len(dims) != 1 || !counts(positions, dims[0]) || positions.Elem() != types.I32 && positions.Elem() != types.I64 || !n.hasOrder(x.Elem()) {
		return nil
	}
	results, args := n.body(0, x.Elem(), positions.Elem(), x.Elem(), positions.Elem())
	if len(results) != 2 {
		return nil
	}
	for _, way := range []struct{ direction, combiner string }{{"gt", "max"}, {"lt", "min"}} {
		if !isFirst(results, args, way.direction) || !isNeutral(way.combiner, inits[0]) {
			continue
		}
		if d := constantOf(inits[1]); d == nil || d.Int(0) != 0 {
			return nil
		}
		key := x
		switch {
		case way.combiner == "min" && x.Elem().IsFloat():
			key = n.unary("neg", x)
		case way.combiner == "min":
			key = n.unary("not", x)
		}
		shape := pick(n.shape(x), others(len(n.shape(x)), dims))
		at := n.make("argmax", []*ir.Value{key}, []types.Named{intAttr("dim", dims[0])}, tensorOf(positions.Elem(), shape...)).Results[0]
		return []*ir.Value{n.reduced(way.combiner, x, dims), at}
	}
	return nil
}

// hasOrder reports whether dm.argmax and dm.sort take numbers of type e.
func (n *node) hasOrder(e types.Elem) bool { return e != types.I1 && widened(e) == e }

// counts reports whether v holds the positions along dimension d.
func counts(v *ir.Value, d int) bool {
	o := v.Op
	if o == nil {
		return false
	}
	if o.Name == "dm.broadcast" && o.Operands[0].Op != nil {
		return false
	}
	return o.Name == "dm.iota" && int(op.Int(o, "dim")) == d && op.Counts(o)
}

// isFirst reports whether results are the greater, by direction, of two numbers a and c
// with the positions b and d; of equal ones the one at the first position, and NaN
// above all.
func isFirst(results, args []*ir.Value, direction string) bool {
	a, b, c, d := args[0], args[1], args[2], args[3]
	above := func(v *ir.Value) bool {
		if isCompare(v, direction, a, c) {
			return a.Elem().IsInt()
		}
		x, y, ok := operandsOf(v, "dm.or")
		return ok && (isCompare(x, direction, a, c) && isCompare(y, "ne", a, a) || isCompare(y, direction, a, c) && isCompare(x, "ne", a, a))
	}
	first := func(v *ir.Value) bool {
		x, y, ok := operandsOf(v, "dm.and")
		return ok && isCompare(x, "eq", a, c) && isCompare(y, "lt", b, d)
	}
	chosen := func(v, x, y *ir.Value) *ir.Value {
		if v.Op == nil || v.Op.Name != "dm.select" || v.Op.Operands[1] != x || v.Op.Operands[2] != y {
			return nil
		}
		return v.Op.Operands[0]
	}
	p, q := chosen(results[0], a, c), chosen(results[1], b, d)
	if p == nil || q == nil || !above(p) {
		return false
	}
	x, y, ok := operandsOf(q, "dm.or")
	return ok && (x == p || above(x)) && first(y)
}

// operandsOf are the two operands of v if it is the op.
func operandsOf(v *ir.Value, name string) (x, y *ir.Value, ok bool) {
	if v.Op == nil || v.Op.Name != name || len(v.Op.Operands) != 2 {
		return nil, nil, false
	}
	return v.Op.Operands[0], v.Op.Operands[1], true
}

func isCompare(v *ir.Value, direction string, x, y *ir.Value) bool {
	a, b, ok := operandsOf(v, "dm.compare")
	return ok && a == x && b == y && v.Op.Str("direction") == direction
}

// mapped applies its region to the elements of all operands.
func mapped(n *node) []*ir.Value {
	n.must(len(n.in) > 0, "DM142", "%s needs an operand", n.name)
	n.sameShapes(n.in)
	return n.runFor(0, n.shape(n.in[0]), n.in)
}

func topK(n *node) []*ir.Value {
	n.takes(1)
	to := n.result(0)
	k := n.intOr("k", -1)
	if shape := n.sizes(to); k < 0 && len(shape) > 0 {
		k = shape[len(shape)-1]
	}
	n.must(len(n.out) == 2, "DM142", "%s has two results", n.name)
	if x := n.in[0]; x.Elem() == types.I1 {
		o := n.make("top_k", []*ir.Value{n.convert(x, types.UI8)}, []types.Named{intAttr("k", k)}, inElem(&ir.Value{Type: to}, types.UI8), n.out[1])
		return []*ir.Value{n.compare("ne", o.Results[0], n.whole(types.UI8, 0)), o.Results[1]}
	}
	return n.make("top_k", n.in, []types.Named{intAttr("k", k)}, n.out...).Results
}
