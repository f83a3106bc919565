package op

import (
	"slices"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// alike is the rule of ops whose operands and results have the same dimensions, of which
// those that whole reports are not divided. Operands of rank 0 have none.
func alike(o *ir.Op, whole func(d int) bool) *Factors {
	f := newFactors(o)
	shape := out(o, 0).Shape
	for d, size := range shape {
		if whole(d) {
			continue
		}
		n := f.factor(size, Parallel)
		for _, tensors := range [][][][]int{f.Operands, f.Results} {
			for _, dims := range tensors {
				if len(dims) == len(shape) {
					dims[d] = []int{n}
				}
			}
		}
	}
	return f
}

// everyDim is the rule of ops that have no dimension that must be whole.
func everyDim(o *ir.Op) *Factors { return alike(o, func(int) bool { return false }) }

// besides is the rule of ops that work along the dimensions which attribute name names.
func besides(name string) func(o *ir.Op) *Factors {
	return func(o *ir.Op) *Factors {
		dims, ok := Dims(o, name, in(o, 0).Rank())
		if !ok {
			return nil
		}
		return alike(o, func(d int) bool { return slices.Contains(dims, d) })
	}
}

func concatenateFactors(o *ir.Op) *Factors {
	along, ok := Dim(o, "dim", in(o, 0).Rank())
	if !ok {
		return nil
	}
	return alike(o, func(d int) bool { return d == along })
}

// takenWhole reports whether the dm.slice o takes all of dimension d of its operand.
func takenWhole(o *ir.Op, s *slicing, d int) bool {
	n, known := in(o, 0).Shape[d].Int()
	return s.Whole[d] || known && s.Start[d] == 0 && s.Limit[d] == n && s.Stride[d] == 1
}

func sliceFactors(o *ir.Op) *Factors {
	s, p := sliceOf(o)
	if p != nil {
		return nil
	}
	return alike(o, func(d int) bool { return !takenWhole(o, s, d) })
}

// slicePiece ends the slice of a dimension that is taken whole at the end of the piece.
func slicePiece(piece, whole *ir.Op) {
	s, p := sliceOf(whole)
	dims, ok := Dims(whole, "dims", in(whole, 0).Rank())
	if p != nil || !ok {
		return
	}
	limits := slices.Clone(Ints(whole, "limit_indices"))
	for i, d := range dims {
		if n, known := in(piece, 0).Shape[d].Int(); known && takenWhole(whole, s, d) {
			limits[i] = n
		}
	}
	piece.SetAttr("limit_indices", int64sAttr(limits))
}

// partFactors is the rule of an op on a part of the first operand, that in which part has all
// of its dimension.
func partFactors(o *ir.Op, part *types.Tensor) *Factors {
	x := in(o, 0)
	return alike(o, func(d int) bool { return !x.Shape[d].Equal(part.Shape[d]) })
}

// dynamicSlicePiece takes all of the piece of a dimension that is taken whole.
func dynamicSlicePiece(piece, whole *ir.Op) {
	sizes := slices.Clone(Ints(whole, "slice_sizes"))
	for d := range sizes {
		if n, known := in(piece, 0).Shape[d].Int(); known && sizes[d] >= 0 && in(whole, 0).Shape[d].Equal(out(whole, 0).Shape[d]) {
			sizes[d] = n
		}
	}
	piece.SetAttr("slice_sizes", int64sAttr(sizes))
}

func padFactors(o *ir.Op) *Factors {
	grows := make([]bool, in(o, 0).Rank())
	for _, name := range []string{"low", "high", "interior"} {
		list, p := listOf(o, name, len(grows), 0, 0)
		if p != nil {
			return nil
		}
		for d, n := range list {
			grows[d] = grows[d] || n > 0
		}
	}
	return alike(o, func(d int) bool { return grows[d] })
}

// pickFactors is the rule of what indices pick from dimension d of the first operand, and
// picked has: the dimensions of the indices, the first batch of which are the operand's, and
// the operand's others. picked is a result or, with a number from 0, an operand.
func pickFactors(o *ir.Op, d, batch, picked int) *Factors {
	f := newFactors(o)
	x, idx := in(o, 0), in(o, 1)
	to, kept := f.Results[0], [][][]int{f.Operands[0]}
	if picked >= 0 { // dm.scatter, whose result has the dimensions of the operand
		to, kept = f.Operands[picked], append(kept, f.Results[0])
	}
	count := idx.Rank() - batch
	for i, size := range x.Shape {
		if i == d {
			continue
		}
		n, at := f.factor(size, Parallel), i
		if i > d {
			at += count - 1
		}
		to[at] = []int{n}
		for _, dims := range kept {
			dims[i] = []int{n}
		}
		if i < batch {
			f.Operands[1][i] = []int{n}
		}
	}
	for i := range count {
		if picked >= 0 {
			break // every device would have to add all updates
		}
		n := f.factor(idx.Shape[batch+i], Parallel)
		f.Operands[1][batch+i], to[d+i] = []int{n}, []int{n}
	}
	return f
}

func gatherFactors(picked int) func(o *ir.Op) *Factors {
	return func(o *ir.Op) *Factors {
		d, ok := Dim(o, "dim", in(o, 0).Rank())
		if !ok {
			return nil
		}
		return pickFactors(o, d, int(Int(o, "batch_dims")), picked)
	}
}

func oneHotFactors(o *ir.Op) *Factors {
	class, ok := Dim(o, "dim", out(o, 0).Rank())
	if !ok {
		return nil
	}
	f := newFactors(o)
	for d, size := range in(o, 0).Shape {
		to := d
		if d >= class {
			to++
		}
		n := f.factor(size, Parallel)
		f.Operands[0][d], f.Results[0][to] = []int{n}, []int{n}
	}
	return f
}

func iotaFactors(o *ir.Op) *Factors {
	along, ok := Dim(o, "dim", out(o, 0).Rank())
	if !ok {
		return nil
	}
	return alike(o, func(d int) bool { return d == along })
}

// constantFactors: the pieces of a constant of one number are alike.
func constantFactors(o *ir.Op) *Factors {
	if d, ok := Attr(o, "value").(*types.Dense); !ok || !d.Splat || d.File() != nil {
		return nil
	}
	return everyDim(o)
}

func constantPiece(piece, _ *ir.Op) {
	if d, ok := Attr(piece, "value").(*types.Dense); ok && d.Splat {
		piece.SetAttr("value", d.Of(tensor(out(piece, 0), d.Type.Elem, out(piece, 0).Shape...)))
	}
}

// reshapeFactors are the common refinement of the two shapes, from the first dimension on:
// where the next sizes have a common divisor, it is a factor of both.
func reshapeFactors(o *ir.Op) *Factors {
	f := newFactors(o)
	x, y := in(o, 0).Shape, out(o, 0).Shape
	n, m := len(x), len(y)
	for n > 0 && m > 0 && x[n-1].Equal(y[m-1]) && !x[n-1].IsZero() { // equal ends may be symbols
		n, m = n-1, m-1
		f.Operands[0][n] = []int{f.factor(x[n], Parallel)}
		f.Results[0][m] = f.Operands[0][n]
	}
	a, b := refined{dims: f.Operands[0][:n], shape: x[:n]}, refined{dims: f.Results[0][:m], shape: y[:m]}
	for a.next() && b.next() {
		common := commonFactor(a.left, b.left)
		if isOne(common) {
			if !f.unrelated(&a, &b) {
				break
			}
			continue
		}
		k := f.factor(common, Parallel)
		a.take(k, common)
		b.take(k, common)
	}
	for _, r := range []*refined{&a, &b} {
		if r.next() && len(r.dims[r.at]) > 0 { // part of it is no product of factors
			for _, k := range r.dims[r.at] {
				f.drop(k)
			}
			r.dims[r.at] = nil
		}
	}
	return f
}

// refined is a shape of which the dimensions before at, and a divisor of that at at, are
// products of factors.
type refined struct {
	dims  [][]int
	shape []dim.Dim
	at    int
	left  dim.Dim // what remains of dimension at; 0: it is not begun
}

// next goes to the next dimension of which something remains.
func (r *refined) next() bool {
	for r.at < len(r.shape) {
		if r.left.IsZero() {
			if r.left = r.shape[r.at]; r.left.IsZero() {
				return false
			}
		}
		if !isOne(r.left) {
			return true
		}
		r.at, r.left = r.at+1, dim.Dim{}
	}
	return false
}

func (r *refined) take(factor int, size dim.Dim) {
	r.dims[r.at] = append(r.dims[r.at], factor)
	r.left, _ = r.left.Div(size)
}

// unrelated takes from both shapes what has no common divisor, until the products are the same;
// false where that cannot be known.
func (f *Factors) unrelated(a, b *refined) bool {
	p, q := dim.Const(1), dim.Const(1)
	for {
		m, ok := p.Int()
		n, known := q.Int()
		side, product := a, &p
		switch {
		case !ok || !known:
			return false
		case m == n && m > 1:
			return true
		case m > n:
			side, product = b, &q
		}
		if !side.next() {
			return false
		}
		*product = product.Mul(side.left)
		side.take(f.factor(side.left, Fixed), side.left)
	}
}

// commonFactor is a size that divides a and b: of numbers the greatest, of formulas the one that
// divides the other, else 1.
func commonFactor(a, b dim.Dim) dim.Dim {
	m, ok := a.Int()
	n, known := b.Int()
	if ok && known {
		for n != 0 {
			m, n = n, m%n
		}
		return dim.Const(m)
	}
	if _, divides := a.Div(b); divides {
		return b
	}
	if _, divides := b.Div(a); divides {
		return a
	}
	return dim.Const(1)
}
