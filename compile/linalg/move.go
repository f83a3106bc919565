package linalg

import (
	"fmt"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// expr is the affine expression d·scale + offset of a loop.
func expr(d int, scale, offset int64) string {
	s := fmt.Sprintf("d%d", d)
	if scale != 1 {
		s = fmt.Sprintf("%s * %d", s, scale)
	}
	if offset != 0 {
		s = fmt.Sprintf("%s + %d", s, offset)
	}
	return s
}

// move writes an op that computes nothing: a reshape as such; what reads one operand
// at affine places by its map; all others element by element.
func (x *exporter) move(b builder, o *ir.Op, m *op.Move) *ir.Value {
	in := x.of(o.Operands)
	t := tensorOf(signless(o.Results[0].Elem()), sizes(o.Results[0])...)
	first := m.Pieces[0]
	if first.Flat {
		return b.reshape(in[first.Operand], sizes(o.Results[0])...)
	}
	if len(m.Pieces) == 1 && m.Fixed() {
		return b.view(in[first.Operand], t, first.At)
	}
	return b.each(t, func(b builder, at values) *ir.Value {
		var y *ir.Value
		for i := len(m.Pieces) - 1; i >= 0; i-- {
			p := m.Pieces[i]
			from := in[p.Operand]
			if !some(sizes(from)) {
				continue // it has no elements, so that others have all
			}
			places, inside := b.places(o, in, p, sizes(from), at)
			v := b.extract(from, places...)
			if y == nil {
				y = v
			} else if inside == nil {
				y = v
			} else {
				y = b.choose(inside, v, y)
			}
		}
		if y == nil { // an empty result
			y = b.number(t.Elem, 0)
		}
		return y
	})
}

func some(shape []int64) bool {
	for _, n := range shape {
		if n == 0 {
			return false
		}
	}
	return true
}

// view is a copy of x with the elements at affine places; a part of it is a slice.
func (b builder) view(x *ir.Value, t *types.Tensor, at []op.Place) *ir.Value {
	names, parallel := loops(t.Rank())
	slice := len(at) == t.Rank() && !types.Equal(x.Type, t)
	var offset, stride []int64
	for d, a := range at {
		slice = slice && a.Dim == d && a.Scale > 0
		offset, stride = append(offset, a.Offset), append(stride, a.Scale)
	}
	if slice {
		return b.make("tensor.extract_slice", t, values{x}, attr("operandSegmentSizes", types.IntArray(types.I32, 1, 0, 0, 0)),
			attr("static_offsets", types.IntArray(types.I64, offset...)), attr("static_sizes", types.IntArray(types.I64, sizesOf(t)...)),
			attr("static_strides", types.IntArray(types.I64, stride...)))
	}
	m := make([]string, len(at))
	for i, a := range at {
		if m[i] = fmt.Sprint(a.Offset); a.Dim >= 0 {
			m[i] = expr(a.Dim, a.Scale, a.Offset)
		}
	}
	return b.generic(values{x}, values{b.empty(t)}, [][]string{m, names}, parallel, func(_ builder, v values) values { return v[:1] })[0]
}

// places are where piece p has the element at at, limited to the operand's sizes, and
// whether it has it, nil if it always does.
func (b builder) places(o *ir.Op, in values, p op.Piece, size []int64, at values) (places values, inside *ir.Value) {
	and := func(v *ir.Value) {
		if inside == nil {
			inside = v
		} else {
			inside = b.two("arith.andi", inside, v)
		}
	}
	if p.To != 0 {
		and(b.is("ge", at[p.Dim], b.index(p.From), false))
		and(b.is("lt", at[p.Dim], b.index(p.To), false))
	}
	for d, a := range p.At {
		v := b.index(a.Offset)
		if a.Dim >= 0 {
			v = b.two("arith.addi", b.two("arith.muli", at[a.Dim], b.index(a.Scale)), v)
		}
		if a.Index != nil {
			add := "arith.addi"
			if a.Index.Minus {
				add = "arith.subi"
			}
			v = b.two(add, v, b.looked(o, in, a.Index, at))
		}
		zero, last := b.index(0), b.index(size[d]-1)
		if a.Div > 1 {
			by := b.index(a.Div)
			rest := b.is("eq", b.two("arith.remsi", v, by), zero, false)
			if a.Open {
				and(rest)
				and(b.is("ge", v, zero, false))
			}
			v = b.two("arith.divsi", v, by)
		}
		if a.Open {
			and(b.is("ge", v, zero, false))
			and(b.is("le", v, last, false))
		}
		places = append(places, b.two("arith.minsi", b.two("arith.maxsi", v, zero), last))
	}
	return places, inside
}

// looked is the index that an operand holds, moved into its limits.
func (b builder) looked(o *ir.Op, in values, i *op.Index, at values) *ir.Value {
	var where values
	for _, d := range i.At {
		where = append(where, at[d])
	}
	v := b.long(b.extract(in[i.Operand], where...), o.Operands[i.Operand].Elem())
	limit := b.whole(types.I64, i.Most)
	if o.Operands[i.Operand].Elem().IsUnsigned() {
		v = b.two("arith.minui", v, limit)
	} else {
		v = b.two("arith.minsi", b.two("arith.maxsi", v, b.whole(types.I64, 0)), limit)
	}
	return b.make("arith.index_cast", types.Scalar{Elem: types.Index}, values{v})
}

// long is an integer of element type from as an i64.
func (b builder) long(v *ir.Value, from types.Elem) *ir.Value { return b.cast(v, from, types.I64) }
