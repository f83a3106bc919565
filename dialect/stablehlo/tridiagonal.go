package stablehlo

import (
	"slices"

	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// gtsv solves systems of tridiagonal matrices, whose diagonals below, on and above it are lists of one length,
// by elimination that exchanges a row with the next one where that has the larger number in its column.
func gtsv(n *node) []*ir.Value {
	n.takes(4)
	b, batch, size, _ := n.matrices(n.in[3])
	e, count := b.Elem(), n.shape(b)[0]
	rows := []*ir.Value{}
	for _, v := range n.in[:3] {
		n.must(slices.Equal(n.shape(v), append(slices.Clone(batch), size)), "DM142", "%s: %s and %s do not fit together", n.name, v.Type, n.in[3].Type)
		rows = append(rows, n.reshape(n.transpose(n.convert(n.reshape(v, count, size), e), []int{1, 0}), size, count, 1))
	}
	rows = append(rows, n.transpose(b, []int{1, 0, 2}))
	now, next := make([]*ir.Value, 4), make([]*ir.Value, 4)
	for i, v := range rows {
		now[i] = n.reshape(n.slice(v, 0, 0, 1), n.shape(v)[1:]...)
		next[i] = n.slice(v, 0, 1, size)
	}
	// What is carried of a row: its number in the column, the one behind it, and the right side. Of a row that
	// is done it has one more, which it got by an exchange.
	done := n.scan(nil, now[1:], next, func(row, next []*ir.Value) []*ir.Value {
		low, diagonal, high, side := next[0], next[1], next[2], next[3]
		swap := n.compare("gt", n.unary("abs", low), n.unary("abs", row[0]))
		pick := func(x, y *ir.Value) *ir.Value { return n.choose(swap, x, y) }
		zero := n.trailing(n.fill(e, 0), n.shape(high))
		top := []*ir.Value{pick(low, row[0]), pick(diagonal, row[1]), pick(high, zero), pick(side, row[2])}
		factor := n.binary("div", pick(row[0], low), top[0])
		less := func(x, y *ir.Value) *ir.Value { return n.binary("sub", x, n.binary("mul", factor, y)) }
		rest := []*ir.Value{less(pick(row[1], diagonal), top[1]), less(pick(zero, high), top[2]), less(pick(row[2], side), top[3])}
		return append(rest, top...)
	})
	last := n.binary("div", done[2], done[0]) // of the only row, if there is one
	var above []*ir.Value
	for _, v := range done[3:] {
		above = append(above, n.backward(v))
	}
	x := n.scan(nil, []*ir.Value{last, n.filled(e, 0, n.shape(last)...)}, above, func(known, row []*ir.Value) []*ir.Value {
		side := n.binary("sub", n.binary("sub", row[3], n.binary("mul", row[1], known[0])), n.binary("mul", row[2], known[1]))
		x := n.binary("div", side, row[0])
		return []*ir.Value{x, known[0], x}
	})[2]
	x = n.concatenated([]*ir.Value{n.backward(x), n.reshape(last, append([]int{1}, n.shape(last)...)...)}, 0)
	solved := n.like(n.transpose(x, []int{1, 0, 2}), batch, n.in[3].Elem())
	if len(n.out) == 1 { // cuSPARSE's
		return []*ir.Value{solved}
	}
	return append(slices.Clone(n.in[:3]), solved, n.trailing(n.whole(types.I32, 0), batch))
}
