package op

import (
	"math"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// ColumnsAttr is how many columns the second matrix of a dm.segment_product has.
const ColumnsAttr = "columns"

// The product of two matrices in compressed rows as one kernel: what a product of sparse tensors with
// a sparse result becomes on components where their levels are rows.

var segmentProductDef = &Def{
	Name: "segment_product", Family: SparseTensors, Class: ClassNormalization,
	Summary: "the product of two matrices that segments list, row by row",
	Foreign: []Foreign{{Names: "spgemm csr_matmul"}},
	Doc: "Row i of the result is `Σ a[x] · (row coordinates[x] of b)` over the elements x of segment i of the first matrix; rows of b are the segments of its own positions. " +
		"The result stores each column that some product has, 0 or not, once, and its coordinates rise within a row. This is Gustavson's algorithm (ACM TOMS 4(3), 1978): on a processor a row is summed in a workspace as wide as it " +
		"(Kjolstad et al., *Tensor Algebra Compilation with Workspaces*, CGO 2019).\n\n" +
		"Positions are clamped to 0 and the number of elements; a coordinate of the first matrix outside names no row. Positions of the first matrix do not fall, and coordinates of b rise within a row and are below `columns`: otherwise the elements are some numbers. " +
		"The last position is how many elements the result has, also where that is more than it has room for; elements behind it are 0, as their coordinates.\n\n" +
		"It is what `dm.matmul` and `dm.einsum` of sparse matrices become, with a check that neither products nor elements are more than there is room for. Counts 2 FLOP for each of `products`. " +
		"Moves the operands, of b at most what so many products read, and the results.",
	Example: `func.func @example(%a: tensor<2xf32>, %b: tensor<5xf32>) -> (tensor<3xi32>, tensor<5xi32>, tensor<5xf32>) {
  %positions = dm.constant dense<[0, 1, 2]> : tensor<3xi32>
  %coordinates = dm.constant dense<[0, 2]> : tensor<2xi32>
  %b_positions = dm.constant dense<[0, 2, 2, 5]> : tensor<4xi32>
  %b_coordinates = dm.constant dense<[0, 3, 1, 3, 4]> : tensor<5xi32>
  %p, %c, %v = dm.segment_product %positions, %coordinates, %a, %b_positions, %b_coordinates, %b, columns = 6, products = 7
      : (tensor<3xi32>, tensor<2xi32>, tensor<2xf32>, tensor<4xi32>, tensor<5xi32>, tensor<5xf32>) -> (tensor<3xi32>, tensor<5xi32>, tensor<5xf32>)
  return %p, %c, %v : tensor<3xi32>, tensor<5xi32>, tensor<5xf32>
}`,
	Operands: []Param{
		{Name: "positions", Elems: positionElems, Doc: positionsDoc},
		{Name: "coordinates", Elems: indexes, Doc: "the columns of the first matrix's elements, which are rows of b"},
		{Name: "a", Elems: multiply, Doc: "its elements"},
		{Name: "b_positions", Elems: positionElems, Doc: "where the rows of b begin and end"},
		{Name: "b_coordinates", Elems: indexes, Doc: "the columns of b's elements"},
		{Name: "b", Elems: multiply, Doc: "its elements, of a's element type"},
	},
	Results: []Param{
		{Name: "y_positions", Elems: positionElems, Doc: "as many as the first operand"},
		{Name: "y_coordinates", Elems: positionElems, Doc: "as many as there is room for, as written"},
		{Name: "y", Elems: multiply, Doc: "of a's element type"},
	},
	Attrs: []AttrDef{
		{Name: ColumnsAttr, Kind: KindSize, Doc: "how many columns b has"},
		{Name: ProductsAttr, Kind: KindSize, Doc: "how many products there is room for: of more, the elements are some numbers"},
	},
	Traits: Pure | Cast,
	Whole:  "The elements of the result are numbered throughout.",
	Infer:  inferSegmentProduct,
	FLOP: func(o *ir.Op) dim.Dim {
		n, ok := Size(o, ProductsAttr)
		if !ok || !in(o, 2).Elem.IsFloat() {
			return dim.Dim{}
		}
		return n.Scale(2)
	},
	Traffic: func(o *ir.Op) (read []dim.Dim, written dim.Dim) {
		read, written = wholeTraffic(o)
		n, ok := Size(o, ProductsAttr)
		for i := 4; ok && i < len(read); i++ {
			if most := in(o, i).Elem.Size(n); !most.AtLeast(read[i]) {
				read[i] = most
			}
		}
		return read, written
	},
	Kernel: Library,
	Expand: expandSegmentProduct,
}

func inferSegmentProduct(o *ir.Op) ([]types.Type, *Problem) {
	rows := [2]string{"the first matrix", "b"}
	for i, what := range rows {
		if _, p := segments(o, 3*i); p != nil {
			return nil, p
		}
		for k := 3*i + 1; k < 3*i+3; k++ {
			if p := rankIs(o, k, 1, "the elements of "+what); p != nil {
				return nil, p
			}
		}
		if a, b := in(o, 3*i+1).Shape[0], in(o, 3*i+2).Shape[0]; !sameDim(a, b) {
			return nil, problem("DM122", 3*i+2, "%s has %s elements and %s coordinates", what, dimText(b), dimText(a)).help("each element has a coordinate")
		}
	}
	if a, b := in(o, 2), in(o, 5); a.Elem != b.Elem {
		return nil, problem("DM111", 5, "element types %s and %s differ", a.Elem, b.Elem).help("convert one of them with dm.convert")
	}
	for _, name := range []string{ColumnsAttr, ProductsAttr} {
		if _, ok := Size(o, name); !ok {
			return nil, attrProblem("DM115", name, "%s is no number and no formula of symbols", name).help(`write a number, or a formula in quotes: "4 * e"`)
		}
	}
	if len(o.Results) != 3 {
		return nil, noResult("segment_product")
	}
	p, c, y := out(o, 0), out(o, 1), out(o, 2)
	if c.Rank() != 1 || y.Rank() != 1 || !sameDim(c.Shape[0], y.Shape[0]) {
		return nil, problem("DM117", -1, "the results have coordinates %s and elements %s", shapeText(c.Shape), shapeText(y.Shape)).help("write vectors, with the room that there is")
	}
	count := func(t *types.Tensor) types.Elem {
		if t.Elem == types.I64 {
			return types.I64
		}
		return types.I32
	}
	return []types.Type{tensor(in(o, 0), count(p), in(o, 0).Shape...), tensor(in(o, 0), count(c), c.Shape...), tensor(in(o, 0), in(o, 2).Elem, y.Shape...)}, nil
}

// productCounts are, of the elements of a matrix in rows, how many products each has with elements of another one, whose
// positions are given: from which of these on; none where is does not hold.
func (l *lowering) productCounts(coordinates, positions, is *ir.Value, elem types.Elem) (from, counts *ir.Value) {
	next := l.Binary("add", coordinates, l.Splat(&types.Tensor{Elem: coordinates.Elem()}, 1))
	from = l.Convert(l.take(positions, coordinates), types.I32)
	counts = l.Binary("sub", l.Convert(l.take(positions, next), types.I32), from)
	if is != nil {
		counts = l.Value("select", []*ir.Value{is, counts, l.Splat(asTensor(counts.Type), 0)}, nil)
	}
	return from, l.Convert(counts, elem)
}

// expandSegmentProduct expands the products, sorts them by their places, and sums those of one place.
func expandSegmentProduct(b *ir.Builder, o *ir.Op) (vs []*ir.Value) {
	n, _ := Size(o, ColumnsAttr)
	products, _ := Size(o, ProductsAttr)
	rows, room := in(o, 0).Shape[0].Sub(dim.Const(1)), out(o, 1).Shape[0]
	for _, d := range []dim.Dim{n, products, rows, room, in(o, 1).Shape[0], in(o, 4).Shape[0]} {
		if !d.IsConst() {
			return nil
		}
	}
	l := &lowering{Builder: NewBuilder(b, nil), o: o}
	l.run(func(l *lowering) { vs = l.segmentProduct(n, products, rows, room) })
	if l.problem != nil {
		l.Undo()
		return nil
	}
	if l.failed {
		return l.done()
	}
	return l.done(vs...)
}

func (l *lowering) segmentProduct(n, products, rows, room dim.Dim) []*ir.Value {
	o := l.o
	positions, coordinates, a, b := o.Operands[0], o.Operands[1], o.Operands[2], o.Operands[5]
	elements, others := in(o, 1).Shape[0], in(o, 4).Shape[0]
	if products.IsZero() || elements.IsZero() || others.IsZero() || n.IsZero() || room.IsZero() {
		return []*ir.Value{l.Splat(out(o, 0), 0), l.Splat(out(o, 1), 0), l.Splat(out(o, 2), 0)}
	}
	zero := func(elem types.Elem) *ir.Value { return l.Splat(&types.Tensor{Elem: elem}, 0) }
	ids, inside := l.segmentsOf(positions, elements)
	row := l.Value("clamp", []*ir.Value{zero(o.Operands[3].Elem()), o.Operands[3], l.constant(o.Operands[3].Elem(), others)}, nil)
	elem := types.I64
	if most, ok := elements.Mul(others).Int(); ok && most < math.MaxInt32 {
		elem = types.I32
	}
	from, counts := l.productCounts(coordinates, row, inside, elem)
	counts = l.Binary("max", counts, zero(elem))
	sums := l.Value("cumsum", []*ir.Value{counts}, named("dim", intAttr(0)))
	offsets := l.Value("concatenate", []*ir.Value{l.Splat(l.vector(elem, dim.Const(1)), 0), sums}, named("dim", intAttr(0)))
	place := l.numbers(products)
	is := l.compared("lt", l.Convert(place, elem), l.lastOf(offsets))
	entry := l.Value("segment_ids", []*ir.Value{offsets}, nil, l.vector(types.I32, products))
	at := l.Binary("add", l.take(from, entry), l.Binary("sub", place, l.Convert(l.take(offsets, entry), types.I32)))
	x := l.Binary("mul", l.take(a, entry), l.where(is, l.take(b, at), 0))
	key := l.keyElem(rows.Mul(n))
	column := l.nearest(l.Convert(l.take(o.Operands[4], at), key), n)
	end := l.constant(key, rows.Mul(n))
	own := l.Binary("add", l.Binary("mul", l.Convert(l.take(ids, entry), key), l.constant(key, n)), column)
	s := l.Value("sort", []*ir.Value{l.Value("select", []*ir.Value{is, own, end}, nil)}, named("dim", intAttr(0)), l.vector(key, products), l.vector(types.I32, products)).Op
	own, x = s.Results[0], l.take(x, s.Results[1])
	is = l.compared("lt", own, end)
	number, first := l.groups(own, is)
	to := l.placed(first, number)
	starts := l.Value("iota", nil, append(named("dim", intAttr(0)), types.Named{Name: "step", Value: stepOf(n)}), l.vector(key, rows.Add(dim.Const(1))))
	begins := l.Value("searchsorted", []*ir.Value{own, starts}, nil, l.vector(types.I32, rows.Add(dim.Const(1))))
	before := l.Value("concatenate", []*ir.Value{l.Splat(l.vector(types.I32, dim.Const(1)), 0), l.Binary("add", number, l.constant(types.I32, dim.Const(1)))}, named("dim", intAttr(0)))
	kept := l.moved(own, to, room, end)
	kept = l.Value("select", []*ir.Value{l.compared("lt", kept, end), l.Binary("rem", kept, l.constant(key, n)), zero(key)}, nil)
	ends := l.moved(l.numbers(products), to, room.Add(dim.Const(1)), l.reduce("add", l.Convert(is, types.I32), 0))
	y := l.Value("segment_reduce", []*ir.Value{x, ends}, named("kind", types.Keyword("add")))
	return []*ir.Value{l.Convert(l.take(before, begins), out(o, 0).Elem), l.Convert(kept, out(o, 1).Elem), y}
}

// rowwise is the join of two matrices in compressed rows with a result in compressed rows, or all in columns: the parts of the
// result; nil where the operands or the result are others.
func (j *joining) rowwise(to *types.Tensor) []*ir.Value {
	if len(j.sides) != 2 || len(j.in) != 2 || len(j.blocks) > 0 || !inRows(to) || !j.bound {
		return nil
	}
	outer, inner := j.output[to.Format.Levels[0].Dim], j.output[to.Format.Levels[1].Dim]
	a, b := j.sides[0], j.sides[1]
	for _, s := range j.sides {
		if !inRows(s.t) || s.whole || twice(s.letters) {
			return nil
		}
	}
	if a.outer[0] != outer {
		a, b = b, a
	}
	if a.outer[0] != outer || b.outer[1] != inner || a.outer[1] != b.outer[0] || outer == inner || a.outer[1] == outer || a.outer[1] == inner {
		return nil
	}
	elem := wide(a.t.Elem)
	if e := j.out[0].Elem; e.Bytes() > elem.Bytes() {
		elem = e
	}
	rows, columns := j.sizes[outer], j.sizes[inner]
	elements, others := a.count(1), b.count(1)
	each := columns
	if each.AtLeast(others) {
		each = others
	}
	most := elements.Mul(each)
	sums := types.I64
	if v, ok := most.Int(); ok && v < math.MaxInt32 {
		sums = types.I32
	}
	products := j.room
	if products.AtLeast(most) {
		products = most
	} else {
		_, counts := j.productCounts(a.component(1, types.Coordinates), b.positions(1), a.stored(1), sums)
		j.within(j.reduce("add", counts, 0), products, RoomForProducts+valueName(j.o.Results[0]))
	}
	var operands []*ir.Value
	for _, s := range []*side{a, b} {
		operands = append(operands, s.positions(1), s.component(1, types.Coordinates), j.Convert(s.entries.values(), elem))
	}
	e := j.entriesOf(to, nil)
	room := e.count(1)
	y := j.Value("segment_product", operands, []types.Named{{Name: ColumnsAttr, Value: sizeAttr(columns)}, {Name: ProductsAttr, Value: sizeAttr(products)}},
		j.vector(types.I32, rows.Add(dim.Const(1))), j.vector(types.I32, room), j.vector(elem, room)).Op.Results
	if !room.AtLeast(products) && !room.AtLeast(rows.Mul(columns)) {
		j.within(j.Reshape(j.lastOf(y[0])), room, valueName(j.o.Results[0]))
	}
	parts := []*ir.Value{y[0], y[1], y[2]}
	for i, c := range to.Components() {
		parts[i] = j.Convert(parts[i], c.Tensor.Elem)
	}
	return parts
}

// inRows reports whether t is a matrix of which a dimension is walked, and below it what is stored of the other one.
func inRows(t *types.Tensor) bool {
	if t == nil || t.Format == nil || len(t.Shape) != 2 || len(t.Format.Levels) != 2 {
		return false
	}
	rows, stored := t.Format.Levels[0], t.Format.Levels[1]
	plain := func(l types.Level) bool { return l.Div == 0 && l.Mod == 0 && !l.NonUnique && !l.NonOrdered }
	return rows.Kind == types.DenseLevel && stored.Kind == types.CompressedLevel && plain(rows) && plain(stored) && rows.Dim != stored.Dim
}
