package op

import (
	"slices"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// HasBatches reports whether o is an op on segments whose positions have leading dimensions.
func HasBatches(o *ir.Op) bool {
	return (ReducesSegments(o) || o.Name == Prefix+"segment_ids") && batched(o) > 0
}

// Unbatched is the results of o, an op on segments whose positions have leading dimensions, by the same op on one vector
// of positions: each batch follows the one before, and what lies between the last position of one and the first of the
// next is a segment that is left out. A device has one batch, of which the dimensions go away. It returns nil of other ops.
func Unbatched(b *ir.Builder, o *ir.Op) []*ir.Value {
	reduces := ReducesSegments(o)
	if !HasBatches(o) || !Valid(o) {
		return nil
	}
	w := NewBuilder(b, nil)
	at := o.Operands[len(o.Operands)-1]
	batch, p := batched(o), asTensor(at.Type)
	lead, ends := p.Shape[:batch], p.Shape[batch]
	count, m := dim.Prod(lead...), ends.Sub(dim.Const(1))
	if !reduces {
		return w.done(w.batchedIDs(o, lead, count, ends))
	}
	along, _ := Dim(o, "dim", in(o, 0).Rank())
	x := in(o, 0)
	n := x.Shape[along]
	// x with the dimension of the segments behind those of the batch, as one.
	order := []int{}
	for i := range x.Rank() {
		if i != along {
			order = append(order, i)
		}
	}
	order = slices.Insert(order, batch, along)
	rest := slices.Delete(slices.Clone(x.Shape), along, along+1)[batch:]
	v := w.Transpose(o.Operands[0], order...)
	v = w.Reshape(v, append([]dim.Dim{count.Mul(n)}, rest...)...)
	v = w.Value("segment_reduce", []*ir.Value{v, w.followed(at, lead, count, n)}, []types.Named{{Name: "kind", Value: Attr(o, "kind")}})
	if !isOne(count) {
		v = w.padded(v, 1)
		v = w.Reshape(v, append([]dim.Dim{count, ends}, rest...)...)
		if last, ok := m.Int(); ok {
			v = w.part(v, []int{1}, []int{0}, []int{int(last)}, []int{1})
		} else {
			w.failed = true
		}
	}
	v = w.Reshape(v, slices.Concat(lead, []dim.Dim{m}, rest)...)
	back := make([]int, len(order))
	for i, from := range order {
		back[from] = i
	}
	return w.done(w.Transpose(v, back...))
}

// followed are the positions of batches of n elements each in one vector.
func (w *Builder) followed(positions *ir.Value, lead []dim.Dim, count, n dim.Dim) *ir.Value {
	t := asTensor(positions.Type)
	ends := t.Shape[len(lead)]
	if isOne(count) {
		return w.Reshape(positions, ends)
	}
	each, ok := n.Int()
	if !ok {
		w.failed = true
		return positions
	}
	at := w.Reshape(positions, count, ends)
	at = w.Binary("min", w.Binary("max", at, w.number(at, 0)), w.number(at, float64(each)))
	first := w.Value("iota", nil, named("dim", intAttr(0)), tensor(t, t.Elem, count, dim.Const(1)))
	at = w.Binary("add", at, w.Binary("mul", first, w.number(first, float64(each))))
	return w.Reshape(at, count.Mul(ends))
}

// batchedIDs are those of o, a dm.segment_ids: of all batches the numbers in one vector of segments, less those before the batch.
func (w *Builder) batchedIDs(o *ir.Op, lead []dim.Dim, count, ends dim.Dim) *ir.Value {
	y := out(o, 0)
	n := y.Shape[len(lead)]
	all := w.followed(o.Operands[0], lead, count, n)
	ids := w.Value("segment_ids", []*ir.Value{all}, nil, tensor(y, y.Elem, count.Mul(n)))
	if !isOne(count) {
		each, ok := ends.Int()
		if !ok {
			w.failed = true
			return ids
		}
		ids = w.Reshape(ids, count, n)
		first := w.Value("iota", nil, named("dim", intAttr(0)), tensor(y, y.Elem, count, dim.Const(1)))
		ids = w.Binary("sub", ids, w.Binary("mul", first, w.number(first, float64(each))))
		// What is in front of the first position of its batch is in the segment that is left out before.
		ids = w.Binary("min", w.Binary("max", ids, w.number(ids, 0)), w.number(ids, float64(each-1)))
	}
	return w.Reshape(ids, y.Shape...)
}

// padded is x with n more elements of 0 at the end of its first dimension.
func (w *Builder) padded(x *ir.Value, n int) *ir.Value {
	t := asTensor(x.Type)
	high := make([]int, t.Rank())
	high[0] = n
	none := make([]int, t.Rank())
	return w.Value("pad", []*ir.Value{x, w.Splat(&types.Tensor{Elem: t.Elem}, 0)}, []types.Named{{Name: "low", Value: IntList(none...)}, {Name: "high", Value: IntList(high...)}})
}
