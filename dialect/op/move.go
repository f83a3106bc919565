package op

import "dmir/dialect/ir"

// Move is how an op that computes nothing makes its result: the pieces that it
// is put together from. An element belongs to the first piece that has it; the
// last one has all that are left.
type Move struct {
	Rank   int // of the result
	Pieces []Piece
}

// Piece is a part of a result that is taken from one operand.
type Piece struct {
	Operand int
	// At is where an element lies in the operand, one place for each of its
	// dimensions; nil with Flat: at the same row-major number.
	At   []Place
	Flat bool
	// A piece that is not the last has the elements whose place along dimension Dim
	// of the result is at least From and below To, if To is not 0, and those for
	// which no place that is Open lies outside of the operand.
	Dim      int
	From, To int64
}

// Place is a place along one dimension of an operand, for the element at i of the
// result: (Scale·i[Dim] + Offset + Index) / Div.
type Place struct {
	Dim           int // -1: none
	Scale, Offset int64
	Index         *Index // read when it runs; nil: 0
	Div           int64  // of an Open place; 0: 1. Where there is a remainder, it lies outside
	Open          bool
}

// Index is a place that an operand of integers holds.
type Index struct {
	Operand int
	At      []int // the dimension of the result for each of the operand's
	Most    int64 // it is moved into [0, Most]
	Minus   bool  // it counts backwards
}

// MoveOf is o's Move, nil where it has none or where that depends on a size that
// is no number.
func MoveOf(o *ir.Op) *Move {
	d := Of(o)
	if d == nil || d.Move == nil || !Valid(o) || len(o.Results) != 1 {
		return nil
	}
	if ps := d.Move(o); ps != nil {
		return &Move{out(o, 0).Rank(), ps}
	}
	return nil
}

// Fixed reports whether no place of m depends on data.
func (m *Move) Fixed() bool {
	return m.every(func(a Place) bool { return a.Index == nil })
}

// Covered reports whether every place of m lies inside its operand, whatever
// pieces follow.
func (m *Move) Covered() bool {
	return m.every(func(a Place) bool { return !a.Open })
}

func (m *Move) every(is func(Place) bool) bool {
	if m == nil {
		return false
	}
	for _, p := range m.Pieces {
		for _, a := range p.At {
			if !is(a) {
				return false
			}
		}
	}
	return true
}

// Selects reports whether m gives, of one operand of as many dimensions, each
// element at most once and in rising order along every dimension; or, of one
// operand, all in their row-major order.
func (m *Move) Selects() bool {
	if m == nil || len(m.Pieces) != 1 {
		return false
	}
	p := m.Pieces[0]
	if p.Flat {
		return true
	}
	seen := make([]bool, m.Rank)
	for _, a := range p.At {
		if a.Dim < 0 || seen[a.Dim] || a.Scale < 1 || a.Index != nil {
			return false
		}
		seen[a.Dim] = true
	}
	return len(p.At) == m.Rank
}

// Permutes reports whether m gives all elements of one operand with the
// dimensions in another order: dimension i of the result is dims[i] of the operand.
// It does not compare sizes.
func (m *Move) Permutes() (dims []int, ok bool) {
	if !m.Selects() || m.Pieces[0].Flat {
		return nil, false
	}
	dims = make([]int, m.Rank)
	for d, a := range m.Pieces[0].At {
		if a.Scale != 1 || a.Offset != 0 {
			return nil, false
		}
		dims[a.Dim] = d
	}
	return dims, true
}

// along are the places of a result's own dimensions.
func along(n int) []Place {
	at := make([]Place, n)
	for d := range at {
		at[d] = Place{Dim: d, Scale: 1}
	}
	return at
}

func moveAll(o *ir.Op) []Piece { return []Piece{{At: along(in(o, 0).Rank())}} }

func moveTranspose(o *ir.Op) []Piece {
	dims, ok := Dims(o, "dims", in(o, 0).Rank())
	if !ok || len(dims) != in(o, 0).Rank() {
		return nil
	}
	at := make([]Place, len(dims))
	for i, d := range dims {
		at[d] = Place{Dim: i, Scale: 1}
	}
	return []Piece{{At: at}}
}

func moveReshape(*ir.Op) []Piece { return []Piece{{Flat: true}} }

func moveBroadcast(o *ir.Op) []Piece {
	to, p := BroadcastDims(o)
	if p != nil {
		return nil
	}
	at := make([]Place, len(to))
	for i, d := range to {
		if at[i] = (Place{Dim: d, Scale: 1}); isOne(in(o, 0).Shape[i]) {
			at[i] = Place{Dim: -1}
		}
	}
	return []Piece{{At: at}}
}

func moveSlice(o *ir.Op) []Piece {
	s, p := sliceOf(o)
	if p != nil {
		return nil
	}
	at := along(len(s.Start))
	for d := range at {
		at[d].Scale, at[d].Offset = s.Stride[d], s.Start[d]
	}
	return []Piece{{At: at}}
}

func moveReverse(o *ir.Op) []Piece {
	x := in(o, 0)
	at := along(x.Rank())
	dims, ok := Dims(o, "dims", x.Rank())
	for _, d := range dims {
		n, known := x.Shape[d].Int()
		ok = ok && known
		at[d].Scale, at[d].Offset = -1, n-1
	}
	if !ok {
		return nil
	}
	return []Piece{{At: at}}
}

func moveConcatenate(o *ir.Op) []Piece {
	var m []Piece
	var from int64
	for i := range o.Operands {
		x := in(o, i)
		d, ok := Dim(o, "dim", x.Rank())
		if !ok {
			return nil
		}
		n, ok := x.Shape[d].Int()
		if !ok {
			return nil
		}
		at := along(x.Rank())
		at[d].Offset = -from
		m = append(m, Piece{Operand: i, At: at, Dim: d, From: from, To: from + n})
		from += n
	}
	return m
}

func movePad(o *ir.Op) []Piece {
	x := in(o, 0)
	low, p := listOf(o, "low", x.Rank(), 0, 0)
	if p != nil {
		return nil
	}
	gaps, p := listOf(o, "interior", x.Rank(), 0, 0)
	if p != nil {
		return nil
	}
	at := along(x.Rank())
	for d := range at {
		at[d].Offset, at[d].Div, at[d].Open = -low[d], gaps[d]+1, true
	}
	return []Piece{{At: at}, {Operand: 1}}
}

func moveGather(o *ir.Op) []Piece {
	d, ok := Dim(o, "dim", in(o, 0).Rank())
	if !ok {
		return nil
	}
	return picks(o, d, int(Int(o, "batch_dims")))
}

func moveEmbedding(o *ir.Op) []Piece { return picks(o, 0, 0) }

// picks is y[a…, i…, c…] = x[a…, indices[i…], c…], with i in place of dimension d
// of x; the first batch dimensions of the indices are those of x.
func picks(o *ir.Op, d, batch int) []Piece {
	x := in(o, 0)
	n, ok := x.Shape[d].Int()
	count := in(o, 1).Rank() - batch
	if !ok || batch < 0 || batch > d || count < 0 {
		return nil
	}
	index := &Index{Operand: 1, Most: n - 1}
	for i := range batch {
		index.At = append(index.At, i)
	}
	for i := range count {
		index.At = append(index.At, d+i)
	}
	at := along(x.Rank())
	at[d] = Place{Dim: -1, Index: index}
	for k := d + 1; k < len(at); k++ {
		at[k].Dim = k - 1 + count
	}
	return []Piece{{At: at}}
}

// parted are the places in a part that begins at the positions that operands
// first and up hold, moved so that the part lies inside; along a dimension that
// it has whole it can only begin at 0. backwards: in the part, of those in the
// whole.
func parted(o *ir.Op, first, part int, backwards bool) []Place {
	size := out(o, 0)
	if part > 0 {
		size = in(o, part)
	}
	at := along(size.Rank())
	for d := range at {
		n, ok := in(o, 0).Shape[d].Int()
		m, known := size.Shape[d].Int()
		if !ok || !known {
			return nil
		}
		if n > m {
			at[d].Index = &Index{Operand: first + d, Most: n - m, Minus: backwards}
		}
		at[d].Open = backwards
	}
	return at
}

func moveDynamicSlice(o *ir.Op) []Piece {
	at := parted(o, 1, 0, false)
	if at == nil {
		return nil
	}
	return []Piece{{At: at}}
}

func moveDynamicUpdate(o *ir.Op) []Piece {
	at := parted(o, 2, 1, true)
	if at == nil {
		return nil
	}
	return []Piece{{Operand: 1, At: at}, {At: along(in(o, 0).Rank())}}
}
