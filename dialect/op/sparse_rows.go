package op

import (
	"math"
	"slices"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// Products of two matrices are those of rows with rows, in whatever formats they are stored: what is stored in the order of rows is told
// where each begins, and another operand is sorted, which has fewer elements than there are products.

// listed is a matrix in rows: where these begin, and the columns and the values of their elements.
type listed struct{ positions, columns, values *ir.Value }

// inRows reports whether t is a matrix of which a dimension is walked, and below it what is stored of the other one.
func inRows(t *types.Tensor) bool {
	if !isMatrix(t) {
		return false
	}
	rows, stored := t.Format.Levels[0], t.Format.Levels[1]
	return rows.Kind == types.DenseLevel && stored.Kind == types.CompressedLevel && !stored.NonUnique
}

// isMatrix reports whether each of two levels of t walks a dimension.
func isMatrix(t *types.Tensor) bool {
	if t == nil || t.Format == nil || len(t.Shape) != 2 || len(t.Format.Levels) != 2 {
		return false
	}
	return !slices.ContainsFunc(t.Format.Levels, func(l types.Level) bool { return l.Div > 0 || l.Mod > 0 || l.NonOrdered }) &&
		t.Format.Levels[0].Dim != t.Format.Levels[1].Dim
}

// product is two matrices whose rows meet rows: row i of the result is a sum of rows of b.
type product struct {
	a, b               *side // each element is an entry
	outer, meet, inner int   // the letters of the rows, of what is summed over, and of the columns
}

// matrices is the join of the operands from number first on as a product of matrices in rows, whose result is stored as to, or is dense; nil
// where it is another one.
func (j *joining) matrices(to *types.Tensor, first int) *product {
	if len(j.sides) != 2+first || len(j.in) != 2+first || len(j.blocks) > 0 || len(j.output) != 2 {
		return nil
	}
	p := &product{outer: j.output[0], inner: j.output[1]}
	if to.Format != nil && !to.Format.Full() {
		if !j.bound || !isMatrix(to) || to.Format.Levels[1].Kind == types.DenseLevel {
			return nil
		}
		p.outer, p.inner = j.output[to.Format.Levels[0].Dim], j.output[to.Format.Levels[1].Dim]
	}
	for i, letters := range j.terms[first:] {
		s := j.sideOf(first+i, letters, true)
		if len(letters) != 2 || twice(letters) {
			return nil
		}
		switch outer, inner := slices.Contains(letters, p.outer), slices.Contains(letters, p.inner); {
		case outer && !inner && p.a == nil:
			p.a = s
		case inner && !outer && p.b == nil:
			p.b = s
		default:
			return nil
		}
	}
	other := func(letters []int, c int) int { return letters[1-slices.Index(letters, c)] }
	p.meet = other(p.a.letters, p.outer)
	if p.outer == p.inner || p.meet != other(p.b.letters, p.inner) {
		return nil
	}
	return p
}

// rowsOf is s, each element of which is an entry, with the rows along one letter and the columns along another one.
func (j *joining) rowsOf(s *side, row, column int) listed {
	if inRows(s.t) && s.outer[0] == row {
		return listed{s.positions(1), s.component(1, types.Coordinates), last(s.parts)}
	}
	rows, columns := j.sizes[row], j.sizes[column]
	is := s.stored(s.level)
	v := j.Reshape(last(s.parts), s.count(s.level))
	// begins is where rows begin among the places of elements in order, of which a row has so many.
	begins := func(sorted *ir.Value, each dim.Dim) *ir.Value {
		n := rows.Add(dim.Const(1))
		starts := j.Value("iota", nil, append(named("dim", intAttr(0)), types.Named{Name: "step", Value: stepOf(each)}), j.vector(sorted.Elem(), n))
		return j.Value("searchsorted", []*ir.Value{sorted, starts}, nil, j.vector(types.I32, n))
	}
	if isMatrix(s.t) && s.outer[0] == row && !s.loose() {
		x := j.Convert(s.coordinate(row), types.I32)
		if is != nil {
			x = j.Value("select", []*ir.Value{is, x, j.constant(types.I32, rows)}, nil)
		}
		return listed{begins(x, dim.Const(1)), s.coordinate(column), v}
	}
	end := rows.Mul(columns)
	elem := j.keyElem(end)
	key := j.Binary("add", j.Binary("mul", j.Convert(s.coordinate(row), elem), j.constant(elem, columns)), j.Convert(s.coordinate(column), elem))
	if is != nil {
		key = j.Value("select", []*ir.Value{is, key, j.constant(elem, end)}, nil)
	}
	n := s.count(s.level)
	sorted := j.Value("sort", []*ir.Value{key}, named("dim", intAttr(0)), j.vector(elem, n), j.vector(types.I32, n)).Op.Results
	at := j.Convert(j.Binary("rem", sorted[0], j.constant(elem, columns)), types.I32)
	return listed{begins(sorted[0], columns), at, j.take(v, sorted[1])}
}

// rows are the matrices of p in rows, their element type as computed, and how many products there is room for, which is checked where it is
// stated.
func (j *joining) rows(p *product) (a, b listed, elem types.Elem, products dim.Dim) {
	elem = wide(p.a.t.Elem)
	if e := j.out[0].Elem; e.Bytes() > elem.Bytes() {
		elem = e
	}
	elements, others := p.a.count(p.a.level), p.b.count(p.b.level)
	a, b = j.rowsOf(p.a, p.outer, p.meet), j.rowsOf(p.b, p.meet, p.inner)
	a.values, b.values = j.Convert(a.values, elem), j.Convert(b.values, elem)
	if !j.bound {
		return a, b, elem, products
	}
	each := j.sizes[p.inner]
	if each.AtLeast(others) {
		each = others
	}
	most := elements.Mul(each)
	if j.room.AtLeast(most) {
		return a, b, elem, most
	}
	sums := types.I64
	if v, ok := most.Int(); ok && v < math.MaxInt32 {
		sums = types.I32
	}
	inside := j.compared("lt", j.Convert(j.numbers(elements), a.positions.Elem()), j.lastOf(a.positions))
	_, counts := j.productCounts(a.columns, b.positions, inside, sums)
	j.within(j.reduce("add", counts, 0), j.room, RoomForProducts+valueName(j.o.Results[0]))
	return a, b, elem, j.room
}

// rowwise is the sparse result of p.
func (j *joining) rowwise(p *product, to *types.Tensor) {
	a, b, elem, products := j.rows(p)
	rows, columns := j.sizes[p.outer], j.sizes[p.inner]
	room := j.entriesOf(to, nil).count(1)
	y := j.Value("segment_product", []*ir.Value{a.positions, a.columns, a.values, b.positions, b.columns, b.values}, sizesOfProduct(columns, products),
		j.vector(types.I32, rows.Add(dim.Const(1))), j.vector(types.I32, room), j.vector(elem, room)).Op.Results
	if !room.AtLeast(products) && !room.AtLeast(rows.Mul(columns)) {
		j.within(j.Reshape(j.lastOf(y[0])), room, valueName(j.o.Results[0]))
	}
	if inRows(to) {
		parts := []*ir.Value{y[0], y[1], y[2]}
		for i, c := range to.Components() {
			parts[i] = j.Convert(parts[i], c.Tensor.Elem)
		}
		j.results[0] = parts
		return
	}
	k := keys{end: rows.Mul(columns), values: j.Convert(y[2], to.Elem)}
	ids := j.Value("segment_ids", []*ir.Value{y[0]}, nil, j.vector(types.I32, room))
	k.key = j.placeOf(ids, y[1], j.keyElem(k.end), columns)
	j.assemble(to, k)
}

// filled is the dense result of p.
func (j *joining) filled(p *product) *ir.Value {
	a, b, _, products := j.rows(p)
	attrs := sizesOfProduct(j.sizes[p.inner], products)
	if !j.bound {
		attrs = attrs[:1]
	}
	y := j.Value("segment_dense_product", []*ir.Value{a.positions, a.columns, a.values, b.positions, b.columns, b.values}, attrs)
	return j.Convert(y, j.out[0].Elem)
}

// sampled is the product p where the first operand, a matrix, stores elements, as the values of what it stores.
func (j *joining) sampled(p *product) *ir.Value {
	a, b, _, products := j.rows(p)
	c := j.rowsOf(j.sideOf(0, j.output, true), p.outer, p.inner)
	y := j.Value("segment_sample", []*ir.Value{a.positions, a.columns, b.positions, b.columns, c.positions, c.columns, a.values, b.values},
		append(sizesOfProduct(j.sizes[p.inner], products), types.Named{Name: sampledBy, Value: types.Keyword("c")}))
	return j.Convert(y, j.out[0].Elem)
}

func sizesOfProduct(columns, products dim.Dim) []types.Named {
	return []types.Named{{Name: ColumnsAttr, Value: sizeAttr(columns)}, {Name: ProductsAttr, Value: sizeAttr(products)}}
}
