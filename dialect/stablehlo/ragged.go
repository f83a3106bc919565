package stablehlo

import (
	"slices"

	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// raggedDot is chlo.ragged_dot: a product of which one dimension of the first operand is cut into groups of
// the sizes that the third holds: a dm.grouped_matmul where the operands are matrices. Else the groups are told apart by masks, one of
// each group, so that the work is that of all groups on the whole dimension.
//
//   - a free dimension of the first operand: each group has a matrix of its own, of the second operand's
//     group dimension; elements behind the last group give zeros;
//   - a contracting dimension: the result has a product for each group;
//   - a batch dimension: the groups change nothing.
func raggedDot(n *node) []*ir.Value {
	n.takes(3)
	lhs, rhs, sizes := n.in[0], n.in[1], n.in[2]
	a, b, g := n.shape(lhs), n.shape(rhs), n.shape(sizes)
	batchA, batchB := n.dims("lhs_batching_dimensions", len(a)), n.dims("rhs_batching_dimensions", len(b))
	sumA, sumB := n.dims("lhs_contracting_dimensions", len(a)), n.dims("rhs_contracting_dimensions", len(b))
	ragged, group := n.dims("lhs_ragged_dimensions", len(a)), n.dims("rhs_group_dimensions", len(b))
	n.must(len(ragged) == 1 && len(g) > 0, "DM141", "%s has one ragged dimension, and sizes of groups", n.name)
	n.must(len(batchA) == len(batchB) && len(sumA) == len(sumB), "DM141", "%s pairs dimensions of its operands, but names more of one", n.name)
	r, count := ragged[0], g[len(g)-1]
	if slices.Contains(batchA, r) {
		n.in = n.in[:2]
		return []*ir.Value{n.contracted(batchA, batchB, sumA, sumB)}
	}
	contracting := slices.Contains(sumA, r)
	free := !contracting
	n.must(len(group) == either(free, 1, 0), "DM141", "%s has a group dimension of the second operand where the ragged one is free, and else none", n.name)
	n.must(!free || b[group[0]] == count, "DM142", "%s has %d groups, but the second operand has %d", n.name, count, b[either(free, group, []int{0})[0]])

	if y := n.groupedMatmul(free, r, sumA, sumB, group); y != nil {
		return []*ir.Value{y}
	}

	// Letters for the equation: those of the first operand, and the group's.
	letter := func(i int) byte { return byte('a' + i) }
	n.must(len(a)+len(b) < 25, Unsupported, "%s of so many dimensions is not supported", n.name)
	const groups = 'z'
	left, right := make([]byte, len(a)), make([]byte, len(b))
	for i := range left {
		left[i] = letter(i)
	}
	for i := range right {
		right[i] = letter(len(a) + i)
	}
	for i, d := range batchA {
		right[batchB[i]] = left[d]
	}
	for i, d := range sumA {
		right[sumB[i]] = left[d]
	}
	if free {
		right[group[0]] = groups
	}
	var out []byte
	if contracting {
		out = append(out, groups)
	}
	for _, d := range batchA {
		out = append(out, left[d])
	}
	for _, d := range others(len(a), batchA, sumA) {
		out = append(out, left[d])
	}
	for _, d := range others(len(b), batchB, sumB, group) {
		out = append(out, right[d])
	}

	// The sizes of groups may differ along the dimensions in front of the ragged one.
	along := either(contracting, sumA, others(len(a), batchA, sumA))
	prefix := slices.Concat(batchA, along[:slices.Index(along, r)])
	if len(g) == 1 {
		prefix = nil
	}
	n.must(slices.Equal(g[:len(g)-1], pick(a, prefix)), "DM142", "%s: sizes of groups of the type %s do not fit to %s", n.name, sizes.Type, lhs.Type)
	ends := n.op("cumsum", []*ir.Value{n.convert(sizes, types.I64)}, intAttr("dim", len(g)-1))
	starts := n.binary("sub", ends, n.convert(sizes, types.I64))
	wide := append(slices.Clone(g), 1)
	at := n.numbersBelow(a[r])
	inside := n.binary("and", n.compare("ge", at, n.reshape(starts, wide...)), n.compare("lt", at, n.reshape(ends, wide...)))
	// The mask has the dimensions of prefix, that of groups, and the ragged one; it gets those of the operand.
	places := append(slices.Clone(prefix), r)
	order, shape := []int{len(prefix)}, ones(len(a)+1)
	shape[0] = count
	for _, i := range sortedBy(places) {
		shape[1+places[i]] = a[places[i]]
		order = append(order, either(i < len(prefix), i, i+1))
	}
	inside = n.reshape(n.transpose(inside, order), shape...)

	to := n.result(0)
	e := commonElem(lhs.Elem(), rhs.Elem(), to.Elem)
	lhs, rhs = n.convert(lhs, e), n.convert(rhs, e)
	with := append([]byte{groups}, left...)
	lhs = n.choose(inside, lhs, n.fill(e, 0))
	return []*ir.Value{n.convert(n.einsum(string(with)+","+string(right)+"->"+string(out), lhs, rhs), to.Elem)}
}

func (n *node) einsum(equation string, x, y *ir.Value) *ir.Value {
	return n.op("einsum", []*ir.Value{x, y}, named("equation", types.Str(equation)))
}

// groupedMatmul is a ragged product of matrices in groups along dimension 0; nil of others.
func (n *node) groupedMatmul(free bool, r int, sumA, sumB, group []int) *ir.Value {
	a, b, sizes := n.in[0], n.in[1], n.in[2]
	if len(n.shape(a)) != 2 || len(n.shape(sizes)) != 1 || len(sumA) != 1 || r != 0 {
		return nil
	}
	to := n.result(0)
	e := commonElem(a.Elem(), b.Elem(), to.Elem)
	var attrs []types.Named
	switch {
	case !free && len(n.shape(b)) == 2 && sumB[0] == 0:
	case free && sumA[0] == 1 && len(n.shape(b)) == 3 && group[0] == 0:
		if sumB[0] == 2 {
			attrs = append(attrs, named("transpose_b", types.Bool(true)))
		}
	default:
		return nil
	}
	ends := n.op("cumsum", []*ir.Value{n.convert(sizes, types.I64)}, intAttr("dim", 0))
	positions := n.op("concatenate", []*ir.Value{n.filled(types.I64, 0, 1), ends}, intAttr("dim", 0))
	return n.convert(n.op("grouped_matmul", []*ir.Value{n.convert(a, e), n.convert(b, e), positions}, attrs...), to.Elem)
}
