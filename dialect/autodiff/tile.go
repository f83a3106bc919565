package autodiff

import (
	"cmp"
	"slices"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// piece is a term of a cotangent that is zero outside [low, low + size) of one
// dimension: what flows back through a slice.
type piece struct {
	v         *ir.Value
	low, size int64
}

// joined is the sum of terms of which each is zero where the others are not and
// that cover the whole of a dimension: a value that was cut into slices, such as
// stacked queries, keys and values, gets them concatenated again. nil where the
// terms are not like that.
func joined(b *ir.Builder, terms []*ir.Value) *ir.Value {
	if len(terms) < 2 || terms[0].Tensor() == nil {
		return nil
	}
	at := -1
	var pieces []piece
	for _, t := range terms {
		p, d, ok := pieceOf(t)
		if !ok || at >= 0 && d != at {
			return nil
		}
		at = d
		pieces = append(pieces, p)
	}
	slices.SortFunc(pieces, func(a, b piece) int { return cmp.Compare(a.low, b.low) })
	end := int64(0)
	var vs []*ir.Value
	for _, p := range pieces {
		if p.low != end {
			return nil
		}
		end += p.size
		vs = append(vs, p.v)
	}
	if n, ok := terms[0].Tensor().Shape[at].Int(); !ok || n != end {
		return nil
	}
	return b.Op("dm.concatenate", vs, []types.Named{{Name: "dim", Value: types.Int{V: int64(at)}}}, plain(terms[0].Type)).Results[0]
}

// pieceOf reads a dm.pad with zeros before and after one dimension.
func pieceOf(v *ir.Value) (p piece, at int, ok bool) {
	o := v.Op
	if o == nil || o.Name != "dm.pad" || op.Attr(o, "interior") != nil {
		return p, 0, false
	}
	zero, _ := op.Attr(constantOf(o.Operands[1]), "value").(*types.Dense)
	if zero == nil || !zero.Splat || !zero.Elem.IsFloat() || zero.Float(0) != 0 {
		return p, 0, false
	}
	low, high := op.Ints(o, "low"), op.Ints(o, "high")
	at = -1
	for d := range v.Tensor().Rank() {
		if d < len(low) && low[d] != 0 || d < len(high) && high[d] != 0 {
			if at >= 0 {
				return p, 0, false
			}
			at = d
		}
	}
	if at < 0 {
		return p, 0, false
	}
	size, known := o.In(0).Shape[at].Int()
	p = piece{v: o.Operands[0], size: size}
	if at < len(low) {
		p.low = low[at]
	}
	return p, at, known
}

// constantOf is the dm.constant that defines v; an op without attributes where
// there is none.
func constantOf(v *ir.Value) *ir.Op {
	if v.Op != nil && v.Op.Name == op.Constant {
		return v.Op
	}
	return &ir.Op{}
}
