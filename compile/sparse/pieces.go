package sparse

import (
	"cmp"
	"fmt"
	"slices"

	"dmir/compile/tensor"
	"dmir/dialect/dim"
	"dmir/dialect/types"
)

// pieces are t cut into n parts, of equally many coordinates along its outermost level or of equally many entries, each with room for
// what it stores.
func (t *Tensor) pieces(n int64, byEntries bool) ([]*Tensor, error) {
	c, err := t.Unpack()
	if err != nil {
		return nil, err
	}
	own := InPieces(t.Type, n, byEntries, nil).Piece()
	outer := t.Type.Format.Outermost()
	each, _ := own.Shape[outer].Int()
	at := make([][]int, n) // the elements of each piece, in order
	if byEntries {
		block := inEntry(t.Type)
		each = (int64(len(c.At[outer]))/block + n - 1) / n * block
		for k := range c.At[outer] {
			at[int64(k)/each] = append(at[int64(k)/each], k)
		}
		each = 0 // coordinates stay
	} else {
		for k, x := range c.At[outer] {
			at[x/each] = append(at[x/each], k)
		}
	}
	shape := slices.Clone(c.Shape)
	shape[outer], _ = size(own, outer)
	out := make([]*Tensor, n)
	for p, list := range at {
		part := &COO{Shape: shape, At: make([][]int64, len(c.At)), Values: Take(c.Values, list)}
		for d := range c.At {
			for _, k := range list {
				x := c.At[d][k]
				if d == outer {
					x -= int64(p) * each
				}
				part.At[d] = append(part.At[d], x)
			}
		}
		if out[p], err = Pack(Open(own), part); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// size is that of dimension d of t.
func size(t *types.Tensor, d int) (int, bool) {
	n, ok := t.Shape[d].Int()
	return int(n), ok
}

// inEntry is how many elements each entry of the last compressed level of t has: those of a block.
func inEntry(t *types.Tensor) int64 {
	levels, n := t.Format.Levels, int64(1)
	for _, l := range slices.Backward(levels) {
		k, _ := l.Size(t.Shape).Int()
		switch {
		case l.Kind == types.StructuredLevel:
			n *= k / l.M * l.N
		case l.HasCoordinates():
			return n
		default:
			n *= k
		}
	}
	return n
}

// InPieces is t in n pieces, each with room for as many entries as stored says; nil: as t.
func InPieces(t *types.Tensor, n int64, byEntries bool, stored []int64) *types.Tensor {
	r, f := *t, *t.Format
	f.Pieces, f.ByEntries = n, byEntries
	if stored != nil {
		f.Stored = make([]dim.Dim, len(stored))
		for i, s := range stored {
			f.Stored[i] = dim.Const(s)
		}
	}
	r.Format = &f
	return &r
}

// Largest is how many entries each compressed level of the largest of n pieces of t has.
func (t *Tensor) Largest(n int64, byEntries bool) ([]int64, error) {
	all, err := t.pieces(n, byEntries)
	if err != nil {
		return nil, err
	}
	most := make([]int64, len(t.Type.Format.Stored))
	for _, x := range all {
		held, _ := Numbers(x.Held().Format.Stored)
		for i := range most {
			most[i] = max(most[i], held[i])
		}
	}
	return most, nil
}

// Cut is what stores t in pieces, as the type to: its components, which have the pieces as their first dimension.
func (t *Tensor) Cut(to *types.Tensor) ([]*tensor.Tensor, error) {
	all, err := t.pieces(to.Format.Pieces, to.Format.ByEntries)
	if err != nil {
		return nil, err
	}
	var out []*tensor.Tensor
	for _, c := range to.Components() {
		shape, ok := Numbers(c.Tensor.Shape)
		if !ok {
			return nil, problem("", "%s has sizes that are no numbers", to)
		}
		out = append(out, tensor.New(c.Tensor.Elem, int(shape[0]), int(shape[1])))
	}
	for p, x := range all {
		x, err := x.Fit(to.Piece())
		if err != nil {
			return nil, problem("state more as dm.piece_room of the argument", "piece %d of %d is too large: %v", p, len(all), err)
		}
		for i, part := range x.Parts {
			n := part.Len()
			for k := range n {
				move(out[i], p*n+k, part, k)
			}
		}
	}
	return out, nil
}

// Joined is the tensor that parts store in pieces, as the type of, stored as to.
func Joined(of *types.Tensor, parts []*tensor.Tensor, to *types.Tensor) (*Tensor, error) {
	own := of.Piece()
	outer := of.Format.Outermost()
	each, _ := own.Shape[outer].Int()
	shape, ok := Numbers(to.Shape)
	if !ok {
		return nil, problem("", "%s has sizes that are no numbers", to)
	}
	c := &COO{At: make([][]int64, len(shape))}
	for _, n := range shape {
		c.Shape = append(c.Shape, int(n))
	}
	var values []*tensor.Tensor
	for p := range of.Format.Pieces {
		x := &Tensor{Type: own}
		for _, part := range parts {
			n := part.Shape[1]
			x.Parts = append(x.Parts, Take(part.Reshape(part.Len()), span(int(p)*n, n)))
		}
		err := x.CheckPattern()
		if err == nil { // what was computed of padding is any number
			x.Pad()
		}
		piece, unpacked := x.Unpack()
		if err = cmp.Or(err, unpacked); err != nil {
			return nil, fmt.Errorf("piece %d of %d: %w", p, of.Format.Pieces, err)
		}
		for d := range c.At {
			for _, k := range piece.At[d] {
				if d == outer && !of.Format.ByEntries {
					k += p * each
				}
				c.At[d] = append(c.At[d], k)
			}
		}
		values = append(values, piece.Values)
	}
	total := 0
	for _, v := range values {
		total += v.Len()
	}
	c.Values = tensor.New(to.Elem, total)
	at := 0
	for _, v := range values {
		for k := range v.Len() {
			move(c.Values, at, v, k)
			at++
		}
	}
	return Pack(to, c)
}

// span are the n numbers from first on.
func span(first, n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = first + i
	}
	return out
}
