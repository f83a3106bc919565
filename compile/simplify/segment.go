package simplify

import (
	"slices"
	"strings"

	"dmir/compile/pass"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/pattern"
	"dmir/dialect/types"
)

func segmentRules() []Rule {
	return []Rule{
		{
			Name: "segments-in-one-vector", Doc: "An op on segments whose positions have leading dimensions is that of one vector of positions, in which each batch follows the one before: kernels walk one vector.",
			Ops: []string{"segment_reduce", "segment_ids"}, apply: segmentsInOneVector,
		},
		{
			Name: "padding-in-no-segment", Doc: "What is reduced by segments alone need not have another number behind the last position: no segment has an element there, as positions do not fall.",
			Ops: []string{"segment_reduce"}, apply: paddingInNoSegment,
		},
		{
			Name: "blocks-by-column", Doc: "Blocks of products that are added up at their places are products of the blocks of each place, in the order of places: none of them is in memory.",
			Ops: []string{"scatter"}, apply: blocksByColumn,
		},
		{
			Name: "gaps-in-no-segment", Doc: "What is reduced by every other segment alone need not have another number in the segments between: these are the gaps of a loose level.",
			Ops: []string{"slice"}, apply: gapsInNoSegment,
		},
		{
			Name: "padding-replaced", Doc: "What has another number behind the last position need not be computed of such numbers.",
			Ops: []string{"select"}, apply: paddingReplaced,
		},
	}
}

func segmentsInOneVector(_ *rewriter, o *ir.Op) bool {
	if !op.HasBatches(o) {
		return false
	}
	b := pass.Before(o)
	vs := op.Unbatched(b.Builder, o)
	return vs != nil && built(b, o, vs[0])
}

func blocksByColumn(_ *rewriter, o *ir.Op) bool {
	b := pass.Before(o)
	vs := op.BlocksByColumn(b.Builder, o)
	return vs != nil && built(b, o, vs[0])
}

func paddingInNoSegment(_ *rewriter, o *ir.Op) bool {
	if op.HasBatches(o) || op.Int(o, "dim") != 0 || rows(o.In(0)) != 0 {
		return false
	}
	for positions := vector(o.Operands[1]); ; { // where several segments at a time are one, positions are some of those of all
		if unmask(o, 0, positions, bounded) {
			return true
		}
		some := from(positions, "gather")
		if some == nil || !isVector(some.In(0)) || !isVector(some.In(1)) {
			return false
		}
		positions = vector(some.Operands[0])
	}
}

// gapsInNoSegment is of o, a slice of every other segment from the first on.
func gapsInNoSegment(_ *rewriter, o *ir.Op) bool {
	s := from(o.Operands[0], "segment_reduce")
	if s == nil || len(s.Results[0].Uses) > 1 || op.HasBatches(s) || op.Int(s, "dim") != 0 || rows(s.In(0)) != 0 {
		return false
	}
	cut, ok := cutOf(o)
	return ok && cut.start[0] == 0 && cut.stride[0] == 2 && unmask(s, 0, vector(s.Operands[1]), ranged)
}

// ranged is the positions of whose segments o, a select, chooses its second operand in the even ones, row by row; nil where o
// does not do that.
func ranged(o *ir.Op) *ir.Value {
	c := mask(o)
	if c == nil || op.Str(c, "direction") != "eq" {
		return nil
	}
	r := from(c.Operands[0], "rem")
	if r == nil {
		return nil
	}
	ids := from(r.Operands[0], "segment_ids")
	two, is := numberOf(r.Operands[1])
	zero, also := numberOf(c.Operands[1])
	if ids == nil || op.HasBatches(ids) || !is || !also || !two.is(2) || !zero.isZero() {
		return nil
	}
	return vector(ids.Operands[0])
}

// mask is the comparison of rows by which o, a select, chooses; nil where it does not.
func mask(o *ir.Op) *ir.Op {
	if o.Name != op.Prefix+"select" || o.In(0).Rank() != o.In(1).Rank() || rows(o.In(0)) < 0 || rows(o.In(0)) != rows(o.In(1)) {
		return nil
	}
	is := o.Operands[0]
	if r := from(is, "reshape"); r != nil && isVector(r.In(0)) && r.In(0).Shape[rows(r.In(0))].Equal(is.Tensor().Shape[rows(is.Tensor())]) {
		is = r.Operands[0]
	}
	c := from(is, "compare")
	if c == nil || !isVector(c.Results[0].Tensor()) {
		return nil
	}
	return c
}

func paddingReplaced(_ *rewriter, o *ir.Op) bool {
	positions := bounded(o)
	return positions != nil && unmask(o, 1, positions, bounded)
}

// unmask has operand i of o, along whose rows positions have segments, without the numbers where of says that it is masked: wherever it
// is computed, row by row, for o alone. Rows are those of the first dimension that is not 1: what a device has of a tensor in pieces is
// one piece.
func unmask(o *ir.Op, i int, positions *ir.Value, of func(o *ir.Op) *ir.Value) bool {
	x := o.Operands[i]
	p := x.Op
	if p == nil || !plain(p) || len(p.Results) != 1 {
		return false
	}
	if of(p) == positions && types.Equal(p.Operands[1].Type, x.Type) {
		o.SetOperand(i, p.Operands[1])
		return true
	}
	if len(x.Uses) > 1 {
		return false
	}
	changed := false
	for j, v := range p.Operands {
		if rowwise(p, j, v) {
			changed = unmask(p, j, positions, of) || changed
		}
	}
	return changed
}

// bounded is the positions in front of the last of which o, a select, chooses its second operand, row by row; nil where o does
// not do that.
func bounded(o *ir.Op) *ir.Value {
	c := mask(o)
	if c == nil || op.Str(c, "direction") != "lt" {
		return nil
	}
	n, end := from(unconverted(c.Operands[0]), "iota"), from(unconverted(c.Operands[1]), "slice")
	if n == nil || end == nil || n.Results[0].Tensor().Rank() != 1 || !isVector(end.In(0)) {
		return nil
	}
	along := rows(end.In(0))
	m, ok := end.In(0).Shape[along].Int()
	if cut, k := cutOf(end); !ok || !k || cut.start[along] != m-1 {
		return nil
	}
	return vector(end.Operands[0])
}

// rows is the first dimension of t that is not 1, -1 where there is none.
func rows(t *types.Tensor) int {
	for d := range t.Rank() {
		if !pattern.IsOne(t, d) {
			return d
		}
	}
	return -1
}

// isVector reports whether t has one dimension that is not 1, and that last.
func isVector(t *types.Tensor) bool { return t.Rank() > 0 && rows(t) == t.Rank()-1 }

// vector is v, positions, before its conversions, and with the dimensions of 1 that it had.
func vector(v *ir.Value) *ir.Value {
	for {
		v = unconverted(v)
		r := from(v, "reshape")
		if r == nil || !isVector(v.Tensor()) || !isVector(r.In(0)) {
			return v
		}
		v = r.Operands[0]
	}
}

// unconverted is v before its conversions to integers that have all of its values.
func unconverted(v *ir.Value) *ir.Value {
	for {
		c := from(v, "convert")
		if c == nil || !c.In(0).Elem.IsInt() || !v.Elem().IsInt() || c.In(0).Elem.Bits() >= v.Elem().Bits() || v.Elem().IsUnsigned() {
			return v
		}
		v = c.Operands[0]
	}
}

// rowwise reports whether row i of the result of o depends on row i of v, operand j, alone.
func rowwise(o *ir.Op, j int, v *ir.Value) bool {
	t, r := v.Tensor(), o.Results[0].Tensor()
	if t == nil || rows(t) < 0 || rows(r) < 0 || !t.Shape[rows(t)].Equal(r.Shape[rows(r)]) {
		return false
	}
	from, to := rows(t), rows(r)
	switch o.Name {
	case op.Prefix + "reshape":
		return true
	case op.Prefix + "reduce":
		return !slices.Contains(dimsOf(o, t.Rank()), from)
	case op.Prefix + "transpose":
		dims := dimsOf(o, t.Rank())
		return len(dims) > to && dims[to] == from
	case op.Prefix + "einsum":
		eq := pattern.Equation(o)
		if eq == nil {
			return false
		}
		row := eq.Output[to : to+1]
		return eq.Inputs[j][from:from+1] == row && strings.Count(eq.Inputs[j], row) == 1
	}
	return pattern.Elementwise(o) && t.Rank() == r.Rank() && from == to
}
