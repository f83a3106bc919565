package kernel

import (
	"math"
	"slices"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// Groups are the updates of a scatter, grouped by the row that they update: the
// index along the scattered dimension, in one batch. A kernel whose reductions
// run over groups reads them as lists that an earlier launch has made; see
// Form.Grouped.
//
// Batch b and row r have number b·(Rows+1) + r, so that the numbers of a row and
// of the next one bound its updates in the list of all, the last row's included.
type Groups struct {
	Batches, Rows int64
	Updates       int64 // of each batch
	// Batch and Update number the batches and the updates of one, nil where there
	// is one batch; Place is the row that an update names, which may not exist.
	Batch, Update *Atom
	Place         Index

	indices *ir.Value
}

// Pieces are what a scatter's reduction adds up of each update: a value for each of its
// cells, the places of the result's other dimensions. Equal parts of the list of all
// updates that lie in one group can be reduced for all cells before the groups are.
type Pieces struct {
	Of    *Groups
	Kind  string
	Cells int64
	// Batch numbers the batches, Cell steps of V cells and Update the updates of a batch,
	// nil where there is one; X is the value of an update in a cell.
	Batch, Cell, Update *Atom
	X                   *Expr

	op    *ir.Op
	space *Space
	cell  Index
}

// Sum is a number of sums, which has one for each of n pieces and each cell: that of the
// piece which the variable numbers, in the cell of x, a reduction over groups, or of X.
func (p *Pieces) Sum(sums *ir.Value, n int64, x *Expr) (sum *Expr, piece *Atom) {
	cell := p.cell
	if x != nil {
		cell = x.Cell
	}
	piece = p.space.Loop("piece", n)
	return p.space.expr(Expr{Op: Load, Elem: sums.Elem(), Buf: sums, At: alone(piece).Times(p.Cells).Add(cell)}), piece
}

// Grouped is f, a kernel of class Loop, with the updates of each scatter grouped
// by row: its reductions over updates run over those of one row.
func (f *Form) Grouped() (*Form, error) {
	g := *f
	g.grouped, g.Inputs = true, nil
	h, err := g.pointwise()
	if err != nil {
		return nil, err
	}
	h.Class, h.Groups, h.Pieces = f.Class, h.eval.groups, h.eval.pieces
	return h.finish()
}

// Visits is the number of updates, besides the first, that the reductions of one
// element of f, a kernel of class Loop that is not grouped, compare with its row.
func (f *Form) Visits() int64 { return f.eval.visits }

// updates are the updates of a scatter o that update one row.
type updates struct {
	*evaluator
	sizes []int64   // of the indices of a batch
	vars  []*Atom   // that number the updates of a batch; none if there is one
	own   Index     // the number of an update
	pick  []Index   // its index among the indices of a batch
	named Condition // holds where it updates the row
	group Index     // the number of the row's group
	of    *Groups   // nil: the reductions visit all updates
	cell  Index     // the number of the element's cell
	op    *ir.Op
}

// updatesOf are the updates of row of o in the place idx of its other dimensions, those
// of the batch first.
func (e *evaluator) updatesOf(o *ir.Op, idx []Index, row Index) *updates {
	indices := o.Operands[1]
	_, rows, others := scatterDims(o)
	shape, batches := shapeOf(indices), op.Int(o, "batch_dims")
	batch := idx[:batches]
	u := &updates{evaluator: e, op: o, sizes: shape[batches:], cell: Linear(idx[batches:], others[batches:])}
	vars, own := e.loops([]int64{Product(u.sizes)})
	u.vars, u.own = vars, own[0]
	u.pick = e.Unlinear(u.own, u.sizes)
	u.named = Condition{X: e.place(indices, slices.Concat(batch, u.pick), rows).Add(row.Times(-1)), Lo: 0, Hi: 1}
	u.group = Linear(batch, shape[:len(batch)]).Times(rows + 1).Add(row)
	if e.grouped && len(u.vars) > 0 {
		u.of = e.groupsOf(indices, len(batch), rows)
	}
	return u
}

// scatterDims are the dimension that o, a scatter, indexes, its size, and the other sizes.
func scatterDims(o *ir.Op) (d int, rows int64, others []int64) {
	shape := shapeOf(o.Operands[0])
	d, _ = op.Dim(o, "dim", len(shape))
	return d, shape[d], slices.Concat(shape[:d], shape[d+1:])
}

// pieces are those of u's reductions of a kind; nil where an update is itself computed by a
// reduction.
func (u *updates) pieces(kind string) *Pieces {
	e, o := u.evaluator, u.op
	for _, p := range e.pieces {
		if p.op == o {
			return p
		}
	}
	d, _, others := scatterDims(o)
	batches := op.Int(o, "batch_dims")
	p := &Pieces{Of: u.of, Kind: kind, Cells: Product(others[batches:]), Update: e.Loop("update", u.of.Updates), op: o, space: e.Space}
	if u.of.Batches > 1 {
		p.Batch = e.Loop("batch", u.of.Batches)
	}
	p.Cell, p.cell = e.wide("cell", p.Cells, e.v, e.lane)
	idx := slices.Concat(e.Unlinear(alone(p.Batch), others[:batches]), e.Unlinear(p.cell, others[batches:]))
	p.X = e.at(o.Operands[2], slices.Concat(idx[:d], e.Unlinear(IndexOf(p.Update), u.sizes), idx[d:]))
	if reduces(p.X) {
		return nil
	}
	e.pieces = append(e.pieces, p)
	return p
}

// groupsOf are the groups of the updates at indices of that many rows.
func (e *evaluator) groupsOf(indices *ir.Value, batch int, rows int64) *Groups {
	shape := shapeOf(indices)
	g := &Groups{Batches: Product(shape[:batch]), Rows: rows, Updates: Product(shape[batch:]), indices: indices}
	for _, old := range e.groups {
		if old.indices == indices && old.Rows == rows && old.Batches == g.Batches {
			return old
		}
	}
	if g.Batches > 1 {
		g.Batch = e.Loop("batch", g.Batches)
	}
	g.Update = e.Loop("update", g.Updates)
	g.Place = e.place(indices, slices.Concat(e.Unlinear(alone(g.Batch), shape[:batch]), e.Unlinear(IndexOf(g.Update), shape[batch:])), rows)
	e.groups = append(e.groups, g)
	return g
}

// reduce is the reduction of x, an expression of the updates' number, over the
// updates of the row, in their order; none if there are none.
func (u *updates) reduce(kind string, x, none *Expr) *Expr {
	r := Expr{Op: Reduce, Elem: x.Elem, Kind: kind, Vars: u.vars, Args: []*Expr{x}}
	if u.of != nil {
		r.Groups, r.At = u.of, u.group
		if kind != First && kind != Last {
			if r.Pieces = u.pieces(kind); r.Pieces != nil {
				r.Cell = u.cell
			}
		}
	} else {
		r.Args[0] = u.guard([]Condition{u.named}, x, none)
		u.visits += max(0, Product(u.sizes)-1)
	}
	switch {
	case kind == First || kind == Last:
		r.Args = append(r.Args, none)
	case len(u.vars) == 0:
		return r.Args[0]
	}
	return u.expr(r)
}

// identity is the identity element of a reduction as an expression.
func (e *evaluator) identity(kind string, elem types.Elem) *Expr {
	f, i := Identity(kind, elem)
	return (&constant{f, i}).number(e.Space, elem)
}

// scatter reduces, for each element of the result, the updates of that element
// in their order, so that the sum is deterministic.
func (e *evaluator) scatter(o *ir.Op, idx []Index) *Expr {
	x, elem, kind := o.Operands[0], o.Results[0].Elem(), op.Str(o, "kind")
	d, _, _ := scatterDims(o)
	u := e.updatesOf(o, slices.Concat(idx[:d], idx[d+1:]), idx[d])
	update := e.at(o.Operands[2], slices.Concat(idx[:d], u.pick, idx[d+1:]))
	old := e.at(x, idx)
	if kind == "set" {
		return u.reduce(Last, update, old)
	}
	return e.scalar(kind, elem, old, u.reduce(kind, update, e.identity(kind, elem)))
}

// scattered is what the update at idx of the scatter o stores in v. One update
// of each element stores: the first, which combines the old element with all of
// them in order, as the form that copies does; of a set the last.
func (e *evaluator) scattered(v *ir.Value, o *ir.Op, idx []Index) Out {
	x, indices, values := o.Operands[0], o.Operands[1], o.Operands[2]
	shape, elem, kind := shapeOf(x), x.Elem(), op.Str(o, "kind")
	d, _, _ := scatterDims(o)
	batch := int(op.Int(o, "batch_dims"))
	end := d + len(shapeOf(indices)) - batch
	where := e.place(indices, slices.Concat(idx[:batch], idx[d:end]), shape[d])
	exists := Condition{X: where, Lo: 0, Hi: shape[d]}
	row := e.Within(where, 0, shape[d]-1)
	u := e.updatesOf(o, slices.Concat(idx[:d], idx[end:]), row)
	at := slices.Concat(idx[:d], []Index{row}, idx[end:])
	out := Out{Value: v, At: Place(o.Results[0], at), If: []Condition{exists}, N: Product(shapeOf(values))}
	if len(u.vars) > 0 {
		which := First
		if kind == "set" {
			which = Last
		}
		none := e.number(types.I32, -1)
		stores := u.reduce(which, e.expr(Expr{Op: Count, Elem: types.I32, At: u.own}), none)
		stores = e.guard(out.If, stores, none)
		own := Linear(idx[d:end], u.sizes)
		out.If = []Condition{{X: e.atom(Atom{Kind: Datum, E: stores, Min: -1, Max: Product(u.sizes) - 1}).Add(own.Times(-1)), Lo: 0, Hi: 1}}
	}
	if kind == "set" {
		out.X = e.at(values, idx)
		return out
	}
	update := e.at(values, slices.Concat(idx[:d], u.pick, idx[end:]))
	if len(u.vars) > 0 {
		update = u.reduce(kind, update, e.identity(kind, elem))
	}
	out.X = e.scalar(kind, elem, e.at(x, at), update)
	return out
}

// place is the index that indices hold at idx, which may be none of the rows. Its
// bounds are those that a comparison with rows needs: it may be anything beyond.
func (e *evaluator) place(indices *ir.Value, idx []Index, rows int64) Index {
	which := e.at(indices, idx)
	_, least := lowest(which.Elem)
	_, most := highest(which.Elem)
	if which.Elem == types.UI64 { // as an index of 64 bits, those above are negative
		least, most = math.MinInt64, math.MaxInt64
	}
	return e.atom(Atom{Kind: Datum, E: which, Min: max(least, math.MinInt32), Max: min(most, max(rows, math.MaxInt32))})
}
