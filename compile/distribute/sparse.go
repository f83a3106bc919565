package distribute

import (
	"dmir/compile/sparse"
	"dmir/compile/tensor"
	"dmir/dialect/types"
)

// Stored is a sparse tensor that arguments or results in a row store, from number First on; its sizes are numbers.
type Stored struct {
	First     int
	Type      *types.Tensor
	Pieces    types.Pieces // those that it is in where devices divide it
	ByEntries bool         // of equally many entries
}

// pieces is the type of s in the pieces in which ts, whole arguments or results, store it; nil where they store it whole.
func (s Stored) pieces(ts []*types.Tensor) *types.Tensor {
	cs := s.Type.Components()
	if s.First+len(cs) > len(ts) || ts[s.First] == nil || ts[s.First].Rank() != 2 {
		return nil
	}
	n, ok := ts[s.First].Shape[0].Int()
	ok = ok && n == s.Pieces.Count()
	var stored []int64
	for i, c := range cs {
		if c.Kind == types.Coordinates && s.Type.Format.Levels[c.Level].HasPositions() {
			e, is := ts[s.First+i].Shape[1].Int()
			stored, ok = append(stored, e), ok && is
		}
	}
	if !ok {
		return nil
	}
	return sparse.InPieces(s.Type, s.Pieces, s.ByEntries, stored)
}

// Cut is args, whole ones of which some may be nil, with those that store sparse tensors in pieces as the program has them.
func (l *Layout) Cut(args []*tensor.Tensor) ([]*tensor.Tensor, error) {
	var out []*tensor.Tensor
	for _, s := range l.SparseArgs {
		to := s.pieces(l.Args)
		n := len(s.Type.Components())
		if to == nil || s.First+n > len(args) {
			continue
		}
		x := &sparse.Tensor{Type: s.Type, Parts: args[s.First:][:n]}
		if has(x.Parts) == 0 || x.Parts[0] == nil || x.Parts[0].Rank() == 2 { // as the run before left it
			continue
		}
		if x.Type = x.Held(); x.Type == nil {
			continue
		}
		parts, err := x.Cut(sparse.InPieces(x.Type, to.Format.Pieces, s.ByEntries, numbers(to)))
		if err != nil {
			return nil, err
		}
		if out == nil {
			out = append(out, args...)
		}
		copy(out[s.First:], parts)
	}
	if out == nil {
		return args, nil
	}
	return out, nil
}

func numbers(t *types.Tensor) []int64 {
	ns, _ := sparse.Numbers(t.Format.Stored)
	return ns
}

func has(ts []*tensor.Tensor) (n int) {
	for _, t := range ts {
		if t != nil {
			n++
		}
	}
	return n
}

// Joined puts sparse tensors in pieces among results together; those of which a component is nil stay.
func (l *Layout) Joined(results []*tensor.Tensor) error {
	for _, s := range l.SparseResults {
		of := s.pieces(l.Results)
		n := len(s.Type.Components())
		if of == nil || s.First+n > len(results) || has(results[s.First:][:n]) < n || results[s.First].Rank() != 2 {
			continue
		}
		x, err := sparse.Joined(of, results[s.First:][:n], s.Type)
		if err != nil {
			return err
		}
		copy(results[s.First:], x.Parts)
	}
	return nil
}
