package kernel

import (
	"math"
	"slices"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// move is the element at idx of the result of an op that only moves data.
func (e *evaluator) move(o *ir.Op, m *op.Move, idx []Index) *Expr {
	type part struct {
		conds []Condition
		x     *Expr
	}
	var parts []part
	for _, p := range m.Pieces {
		var conds []Condition
		if p.To > 0 || p.From > 0 {
			c := Condition{X: idx[p.Dim], Lo: p.From, Hi: p.To}
			if p.From == p.To || c.never() {
				continue
			}
			conds = append(conds, c)
		}
		x := o.Operands[p.Operand]
		at, inside := e.places(o, p, idx)
		parts = append(parts, part{append(conds, inside...), e.at(x, at)})
	}
	if len(parts) == 0 {
		return e.fail(o, o.Results[0].Elem(), "an empty %s", op.Of(o).Name)
	}
	out := parts[len(parts)-1].x
	for _, p := range slices.Backward(parts[:len(parts)-1]) {
		out = e.guard(p.conds, p.x, out)
	}
	return out
}

// places is the index of the operand's element that is at idx of the result,
// for piece p of the op's move; it holds under the conditions of inside.
func (e *evaluator) places(o *ir.Op, p op.Piece, idx []Index) (at []Index, inside []Condition) {
	shape := shapeOf(o.Operands[p.Operand])
	if p.Flat {
		return e.reshaped(idx, shapeOf(o.Results[0]), shape), nil
	}
	held := make([]Index, len(p.At)) // by operands
	for d, a := range p.At {
		if a.Index == nil {
			continue
		}
		which := make([]Index, len(a.Index.At))
		for i, r := range a.Index.At {
			which[i] = idx[r]
		}
		held[d] = e.datum(e.at(o.Operands[a.Index.Operand], which), a.Index.Most+1)
		if a.Index.Minus {
			held[d] = held[d].Times(-1)
		}
	}
	at = make([]Index, len(p.At))
	for d, a := range p.At {
		x := held[d].Plus(a.Offset)
		if a.Dim >= 0 {
			x = idx[a.Dim].Times(a.Scale).Add(x)
		}
		div := max(a.Div, 1)
		most := (shape[d] - 1) * div
		if a.Open {
			inside = append(inside, Condition{X: x, Lo: 0, Hi: most + 1})
		}
		if q, rest := written(x).split(div); div > 1 && len(rest.Terms) == 0 {
			inside = append(inside, Condition{X: rest, Lo: 0, Hi: 1})
			at[d] = e.Within(q, 0, max(shape[d]-1, 0))
			continue
		}
		if a.Open || p.To > 0 && d == p.Dim {
			x = e.Within(x, 0, max(most, 0))
		}
		if div > 1 {
			inside = append(inside, Condition{X: e.Mod(x, div), Lo: 0, Hi: 1})
			x = e.Div(x, div)
		}
		at[d] = x
	}
	return at, inside
}

// reshaped is the index in a tensor of shape to of the element at idx in one of
// shape from.
func (e *evaluator) reshaped(idx []Index, from, to []int64) []Index {
	if slices.Equal(from, to) {
		return idx
	}
	return e.Unlinear(Linear(idx, from), to)
}

// datum is the integer x, clamped to [0, n), as an index.
func (e *evaluator) datum(x *Expr, n int64) Index {
	if x.Op == Number {
		return Index{C: min(max(x.Int, 0), n-1)}
	}
	bound := func(v int64) *Expr { return e.expr(Expr{Op: Number, Elem: x.Elem, Int: v}) }
	c := e.scalar("clamp", x.Elem, bound(0), x, bound(n-1))
	return e.atom(Atom{Kind: Datum, E: c, Max: n - 1})
}

// lowest and highest are the least and the greatest value of an element type.
func lowest(elem types.Elem) (float64, int64) {
	switch {
	case elem.IsFloat():
		return math.Inf(-1), 0
	case elem == types.I1 || elem.IsUnsigned():
		return 0, 0
	}
	return 0, math.MinInt64 >> (64 - elem.Bits())
}

func highest(elem types.Elem) (float64, int64) {
	switch {
	case elem.IsFloat():
		return math.Inf(1), 0
	case elem == types.I1:
		return 1, 1
	case elem.IsUnsigned() && elem.Bytes() < 8:
		return 0, 1<<elem.Bits() - 1
	case elem.IsUnsigned():
		return 0, -1
	}
	return 0, math.MaxInt64 >> (64 - elem.Bits())
}
