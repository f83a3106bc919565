package stablehlo

import (
	"slices"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// key is an operand by which a sort orders its elements.
type key struct {
	operand    int
	descending bool
}

// sortOp sorts several operands together. A comparator that compares one operand, and
// where that is equal the next one, becomes a stable sort for each of them, the last
// one first. For any other function the place of each element is counted.
func sortOp(n *node) []*ir.Value {
	n.must(len(n.in) > 0, "DM142", "%s needs an operand", n.name)
	shape := n.shape(n.in[0])
	var elems []types.Elem
	for _, x := range n.in {
		n.must(slices.Equal(n.shape(x), shape), "DM142", "the operands of %s have the types %s and %s", n.name, n.in[0].Type, x.Type)
		elems = append(elems, x.Elem(), x.Elem())
	}
	d := n.intOr("dimension", -1)
	if d < 0 {
		d += len(shape)
	}
	if len(shape) == 0 {
		return n.in
	}
	n.must(d >= 0 && d < len(shape), "DM141", "dimension = %d of %s is no dimension of %s", n.intOr("dimension", -1), n.name, n.in[0].Type)
	results, args := n.body(0, elems...)
	n.must(len(results) == 1 && results[0].Elem() == types.I1, "DM142", "the region of %s passes on one i1", n.name)
	if keys := keysOf(results[0], args, 0); keys != nil {
		return n.sortBy(keys, d)
	}
	return n.rank(d)
}

// keysOf are the operands that the comparator v compares, the first one first; nil
// where it is another function.
func keysOf(v *ir.Value, args []*ir.Value, depth int) []key {
	if k, ok := keyOf(v, args); ok {
		return []key{k}
	}
	x, y, ok := operandsOf(v, "dm.or")
	if !ok || depth > 64 {
		return nil
	}
	for _, p := range [][2]*ir.Value{{x, y}, {y, x}} {
		k, ok := keyOf(p[0], args)
		if !ok {
			continue
		}
		a, b, ok := operandsOf(p[1], "dm.and")
		if !ok {
			continue
		}
		for _, q := range [][2]*ir.Value{{a, b}, {b, a}} {
			if !isEqual(q[0], args, k.operand) {
				continue
			}
			if rest := keysOf(q[1], args, depth+1); rest != nil {
				return append([]key{k}, rest...)
			}
		}
	}
	return nil
}

// keyOf is the operand whose two elements v compares.
func keyOf(v *ir.Value, args []*ir.Value) (key, bool) {
	x, y, ok := operandsOf(v, "dm.compare")
	if !ok {
		return key{}, false
	}
	i, j := slices.Index(args, canonicalNumber(x)), slices.Index(args, canonicalNumber(y))
	if i < 0 || j < 0 || i/2 != j/2 || i == j {
		return key{}, false
	}
	switch v.Op.Str("direction") {
	case "lt":
		return key{operand: i / 2, descending: i > j}, true
	case "gt":
		return key{operand: i / 2, descending: i < j}, true
	}
	return key{}, false
}

func isEqual(v *ir.Value, args []*ir.Value, operand int) bool {
	x, y, ok := operandsOf(v, "dm.compare")
	if !ok || v.Op.Str("direction") != "eq" {
		return false
	}
	i, j := slices.Index(args, canonicalNumber(x)), slices.Index(args, canonicalNumber(y))
	return i >= 0 && j >= 0 && i/2 == operand && j/2 == operand && i != j
}

// canonicalNumber is the argument that v gives one zero and one NaN, as JAX does before
// it compares: select(x != x, NaN, select(x == 0, 0, x)).
func canonicalNumber(v *ir.Value) *ir.Value {
	v = narrow(v)
	for range 2 {
		if v.Op == nil || v.Op.Name != "dm.select" || constantOf(v.Op.Operands[1]) == nil {
			return v
		}
		p, q, ok := operandsOf(v.Op.Operands[0], "dm.compare")
		if !ok || p.Op != nil {
			return v
		}
		d := constantOf(v.Op.Operands[1])
		switch zero := constantOf(q); {
		case q == p && v.Op.Operands[0].Op.Str("direction") == "ne" && d.Elem.IsFloat() && d.Float(0) != d.Float(0):
		case zero != nil && v.Op.Operands[0].Op.Str("direction") == "eq" && zero.Elem.IsFloat() && zero.Float(0) == 0 && d.Float(0) == 0:
		default:
			return v
		}
		v = v.Op.Operands[2]
	}
	return v
}

// sortBy sorts all operands by keys.
func (n *node) sortBy(keys []key, d int) []*ir.Value {
	vs := slices.Clone(n.in)
	for _, k := range slices.Backward(keys) {
		x := vs[k.operand]
		comparable := x
		if !n.hasOrder(x.Elem()) {
			comparable = n.convert(x, either(x.Elem() == types.I1, types.UI8, widened(x.Elem())))
		}
		var attrs []types.Named
		if d != len(n.shape(x))-1 {
			attrs = append(attrs, intAttr("dim", d))
		}
		if k.descending {
			attrs = append(attrs, named("descending", types.Bool(true)))
		}
		if len(vs) == 1 && len(keys) == 1 {
			return []*ir.Value{n.convert(n.make("sort", []*ir.Value{comparable}, attrs).Results[0], x.Elem())}
		}
		o := n.make("sort", []*ir.Value{comparable}, attrs, comparable.Type, tensorOf(types.I64, n.shape(x)...))
		o.Results[0].Name, o.Results[1].Name = "%sorted", "%order"
		for i, v := range vs {
			if i == k.operand {
				vs[i] = n.convert(o.Results[0], v.Elem())
				continue
			}
			vs[i] = n.along(v, o.Results[1], d)
		}
	}
	return vs
}

// along takes the elements of x in an order of their own for each row of dimension d.
func (n *node) along(x, order *ir.Value, d int) *ir.Value {
	rank := len(n.shape(x))
	last := append(others(rank, []int{d}), d)
	y := n.gather(n.transpose(x, last), n.transpose(order, last), rank-1, rank-1)
	return n.transpose(y, op.Inverse(last))
}

// rank sorts by any function: the place of an element is the number of those that
// precede it, or equal it and stand before it.
func (n *node) rank(d int) []*ir.Value {
	shape := n.shape(n.in[0])
	size := shape[d]
	n.must(size <= 4096, Unsupported, "%s of %d elements by this function is not supported: only a comparison of operands one after the other sorts many", n.name, size)
	last := append(others(len(shape), []int{d}), d)
	rows := pick(shape, last[:len(last)-1])
	square := slices.Concat(rows, []int{size, size})
	var pairs, swapped []*ir.Value
	for _, x := range n.in {
		x = n.transpose(x, last)
		a := n.reshape(x, slices.Concat(rows, []int{size, 1})...)
		b := n.reshape(x, slices.Concat(rows, []int{1, size})...)
		pairs, swapped = append(pairs, b, a), append(swapped, a, b)
	}
	precedes := n.runFor(0, square, pairs)[0]  // [i, j]: j comes before i
	follows := n.runFor(0, square, swapped)[0] // i comes before j
	row := n.reshape(n.iota(types.I64, 0, size), size, 1)
	earlier := n.compare("lt", n.iota(types.I64, 0, size), row)
	tie := n.binary("and", n.unary("not", follows), earlier)
	place := n.reduced("add", n.convert(n.binary("or", precedes, tie), types.I64), []int{len(square) - 1})
	out := make([]*ir.Value, len(n.in))
	for i, x := range n.in {
		x = n.transpose(x, last)
		y := n.op("scatter", []*ir.Value{x, place, x}, intAttr("dim", len(rows)), intAttr("batch_dims", len(rows)))
		out[i] = n.transpose(y, op.Inverse(last))
	}
	return out
}
