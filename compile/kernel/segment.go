package kernel

import (
	"slices"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// Span is the range of the variable of a Reduce over a segment, whose bounds are data: from
// From, below To, both between 0 and the variable's range. Where From is not below To there
// is nothing.
type Span struct {
	From, To Index
	Mean     int64 // about how long a segment is: the dimension by the number of segments, rounded up
}

// spanKey identifies a span of a space.
type spanKey struct {
	parts int // From and To; see Space.intern
	mean  int64
}

// span is the one with these bounds.
func (s *Space) span(p Span) *Span {
	key := spanKey{s.intern(p.To.appendTo(p.From.appendTo(s.key[:0]))), p.Mean}
	if old := s.spans[key]; old != nil {
		return old
	}
	s.spans[key] = &p
	return &p
}

// Steps is about how often the reduction x evaluates its body.
func (x *Expr) Steps() int64 {
	if x.Span != nil {
		return x.Span.Mean
	}
	n := int64(1)
	for _, v := range x.Vars {
		n *= v.Max - v.Min + 1
	}
	return n
}

// Rare reports whether the body of the reduction x may be evaluated less than once, where most segments are empty: what
// it reads is not to be read before.
func (x *Expr) Rare() bool { return x.Span != nil && x.Span.Mean <= 1 }

// segment is a segment of a dimension that reductions run over: reductions of one segment have
// one variable, so that what they read is the same.
type segment struct {
	positions *ir.Value
	size      int64 // of the dimension
	number    Index // of the segment
	k         *Atom
	span      *Span
}

// segment is segment number i of a dimension of n elements.
func (e *evaluator) segment(positions *ir.Value, i Index, n int64) *segment {
	positions = e.original(positions)
	for _, s := range e.segments {
		if s.positions == positions && s.size == n && s.number.Equal(i) {
			return s
		}
	}
	m := max(shapeOf(positions)[0]-1, 1)
	_, most := highest(positions.Elem())
	bound := func(i Index) Index { return e.datum(e.at(positions, []Index{i}), min(n, most-1)+1) }
	s := &segment{positions: positions, size: n, number: i, k: e.Loop("k", n)}
	s.span = e.span(Span{From: bound(i), To: bound(i.Plus(1)), Mean: (n + m - 1) / m})
	e.segments = append(e.segments, s)
	return s
}

// original is the value that v stands for in an expansion.
func (e *evaluator) original(v *ir.Value) *ir.Value {
	for w := e.stands[v]; w != nil; w = e.stands[v] {
		v = w
	}
	return v
}

// segmentReduce reduces a segment in a loop over it.
func (e *evaluator) segmentReduce(o *ir.Op, idx []Index) *Expr {
	x, elem := o.Operands[0], o.Results[0].Elem()
	if op.HasBatches(o) {
		return e.fail(o, elem, "%s has positions with leading dimensions, which the pass simplify takes away", o.Name)
	}
	shape := shapeOf(x)
	d, _ := op.Dim(o, "dim", len(shape))
	s := e.segment(o.Operands[1], idx[d], shape[d])
	at := slices.Clone(idx)
	at[d] = IndexOf(s.k)
	return e.expr(Expr{Op: Reduce, Elem: elem, Kind: op.Str(o, "kind"), Vars: []*Atom{s.k}, Span: s.span, Args: []*Expr{e.at(x, at)}})
}

// segmentIDs is the number of the segment that a reduction runs over where it is about that
// reduction's elements, else a search among the positions.
func (e *evaluator) segmentIDs(o *ir.Op, idx []Index) *Expr {
	positions, elem := e.original(o.Operands[0]), o.Results[0].Elem()
	if op.HasBatches(o) {
		return e.fail(o, elem, "%s has positions with leading dimensions, which the pass simplify takes away", o.Name)
	}
	for _, s := range e.segments {
		if s.positions == positions && idx[0].Equal(IndexOf(s.k)) {
			return e.expr(Expr{Op: Count, Elem: elem, At: s.number})
		}
	}
	k := e.expr(Expr{Op: Count, Elem: positions.Elem(), At: idx[0]})
	return e.search(Expr{Elem: elem, Buf: positions, At: idx[0]}, shapeOf(positions)[0]-1, func(j Index) *Expr {
		return e.compares("le", e.at(positions, []Index{j.Plus(1)}), k)
	})
}

// searchSorted is a search for an element of the second operand in the first.
func (e *evaluator) searchSorted(o *ir.Op, idx []Index) *Expr {
	sorted, y := o.Operands[0], e.rounded(e.at(o.Operands[1], idx))
	right, float := op.Str(o, "side") == "right", y.Elem.IsFloat()
	not := func(x *Expr) *Expr { return e.scalar("not", types.I1, x) }
	both := func(a, b *Expr) *Expr { return e.scalar("and", types.I1, a, b) }
	return e.search(Expr{Elem: o.Results[0].Elem()}, shapeOf(sorted)[0], func(j Index) *Expr {
		v := e.rounded(e.at(sorted, []Index{j}))
		switch {
		case !right && !float:
			return e.compares("lt", v, y)
		case !right: // a NaN is behind what is none
			return e.scalar("or", types.I1, e.compares("lt", v, y), both(e.compares("eq", v, v), e.compares("ne", y, y)))
		case !float:
			return e.compares("le", v, y)
		}
		return not(e.scalar("or", types.I1, e.compares("lt", y, v), both(e.compares("eq", y, y), e.compares("ne", v, v))))
	})
}

func (e *evaluator) compares(direction string, x, y *Expr) *Expr {
	return e.expr(Expr{Op: "compare", Elem: types.I1, Kind: direction, Args: []*Expr{x, y}})
}

// search is x as how many of n elements come first, by a predicate that holds for these and for
// none behind them.
func (e *evaluator) search(x Expr, n int64, first func(j Index) *Expr) *Expr {
	if n == 0 {
		return e.number(x.Elem, 0)
	}
	j := e.Loop("j", n)
	x.Op, x.Vars, x.Args = Search, []*Atom{j}, []*Expr{first(IndexOf(j))}
	return e.expr(x)
}

// Segmented reports whether f reads the segments of positions, or searches.
func (f *Form) Segmented() bool {
	found := f.Main != nil && (op.TakesSegments(f.Main) || op.MultipliesSegments(f.Main))
	f.each(func(x *Expr) { found = found || x.Span != nil || x.Op == Search })
	return found
}
