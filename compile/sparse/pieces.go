package sparse

import (
	"cmp"
	"fmt"
	"slices"

	"dmir/compile/tensor"
	"dmir/dialect/dim"
	"dmir/dialect/types"
)

// pieces are t cut into n parts, of equally many coordinates along what is cut or of equally many entries, each with room for what it
// stores.
func (t *Tensor) pieces(n types.Pieces, byEntries bool) ([]*Tensor, error) {
	c, err := t.Unpack()
	if err != nil {
		return nil, err
	}
	of, count := InPieces(t.Type, n, byEntries, nil), n.Count()
	own, first := of.Piece(), firsts(of)
	shape := slices.Clone(c.Shape)
	for d := range shape {
		shape[d], _ = size(own, d)
	}
	outer, inner := of.Format.Outermost(), of.Format.Innermost(len(shape))
	var each int64 // elements of a piece by entries
	if byEntries {
		block := inEntry(t.Type)
		each = (int64(len(c.At[outer]))/block + count - 1) / count * block
	}
	piece := func(k int) int64 { // of element k
		if byEntries {
			return int64(k) / each
		}
		p := c.At[outer][k] / int64(shape[outer])
		if n.Inner > 0 {
			p = p*n.Inner + c.At[inner][k]/int64(shape[inner])
		}
		return p
	}
	at := make([][]int, count) // the elements of each piece, in order
	for k := range c.At[outer] {
		at[piece(k)] = append(at[piece(k)], k)
	}
	out := make([]*Tensor, count)
	for p, list := range at {
		part := &COO{Shape: shape, At: make([][]int64, len(c.At)), Values: Take(c.Values, list)}
		for d := range c.At {
			for _, k := range list {
				part.At[d] = append(part.At[d], c.At[d][k]-first(p, d))
			}
		}
		if out[p], err = Pack(Open(own), part); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// firsts tells the first coordinate along dimension d of piece p of t.
func firsts(t *types.Tensor) func(p, d int) int64 {
	f, own := t.Format, t.Piece()
	return func(p, d int) int64 {
		at, columns := int64(p), max(f.Pieces.Inner, 1)
		switch {
		case f.ByEntries:
			return 0
		case d == f.Outermost():
			at /= columns
		case d == f.Innermost(t.Rank()):
			at %= columns
		default:
			return 0
		}
		each, _ := own.Shape[d].Int()
		return at * each
	}
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
func InPieces(t *types.Tensor, n types.Pieces, byEntries bool, stored []int64) *types.Tensor {
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
func (t *Tensor) Largest(n types.Pieces, byEntries bool) ([]int64, error) {
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
	first := firsts(of)
	shape, ok := Numbers(to.Shape)
	if !ok {
		return nil, problem("", "%s has sizes that are no numbers", to)
	}
	c := &COO{At: make([][]int64, len(shape))}
	for _, n := range shape {
		c.Shape = append(c.Shape, int(n))
	}
	var values []*tensor.Tensor
	for p := range int(of.Format.Pieces.Count()) {
		x := &Tensor{Type: own}
		for _, part := range parts {
			n := part.Shape[1]
			x.Parts = append(x.Parts, Take(part.Reshape(part.Len()), span(p*n, n)))
		}
		err := x.CheckPattern()
		if err == nil { // what was computed of padding is any number
			x.Pad()
		}
		piece, unpacked := x.Unpack()
		if err = cmp.Or(err, unpacked); err != nil {
			return nil, fmt.Errorf("piece %d of %d: %w", p, of.Format.Pieces.Count(), err)
		}
		for d := range c.At {
			for _, k := range piece.At[d] {
				c.At[d] = append(c.At[d], k+first(p, d))
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
