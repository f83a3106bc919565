package op

import (
	"math"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// ColumnsAttr is how many columns the second matrix of a dm.segment_product has, ReductionAttr how its products of one place are joined, and
// CombineAttr what two elements make.
const (
	ColumnsAttr   = "columns"
	ReductionAttr = "kind"
	CombineAttr   = "combine"
)

// semiringAttrs are those of products in any semiring.
var semiringAttrs = []AttrDef{
	{Name: ReductionAttr, Kind: KindKeyword, Enum: reductionKinds, Default: types.Keyword("add"), Doc: "how products of one place are joined"},
	{Name: CombineAttr, Kind: KindKeyword, Enum: reductionKinds, Default: types.Keyword("mul"), Doc: "the function of two elements that a product is"},
}

// inRing reports whether products of o are added up.
func inRing(o *ir.Op) bool { return Str(o, ReductionAttr) == "add" && Str(o, CombineAttr) == "mul" }

// productOperands are those of a product of two matrices in rows.
var productOperands = []Param{
	{Name: "positions", Elems: positionElems, Doc: positionsDoc},
	{Name: "coordinates", Elems: indexes, Doc: "the columns of the first matrix's elements, which are rows of b"},
	{Name: "a", Elems: multiply, Doc: "its elements"},
	{Name: "b_positions", Elems: positionElems, Doc: "where the rows of b begin and end"},
	{Name: "b_coordinates", Elems: indexes, Doc: "the columns of b's elements"},
	{Name: "b", Elems: multiply, Doc: "its elements, of a's element type"},
}

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
		"With `kind` and `combine` it is a product in another semiring, of which `kind = min, combine = add` are shortest paths.\n\n" +
		"It is what `dm.matmul` and `dm.einsum` of sparse matrices become, with a check that neither products nor elements are more than there is room for. Counts, for each of `products`, 1 FLOP for a product or sum of elements, and 1 where it is added or multiplied. " +
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
	Operands: productOperands,
	Results: []Param{
		{Name: "y_positions", Elems: positionElems, Doc: "as many as the first operand"},
		{Name: "y_coordinates", Elems: positionElems, Doc: "as many as there is room for, as written"},
		{Name: "y", Elems: multiply, Doc: "of a's element type"},
	},
	Attrs: append([]AttrDef{
		{Name: ColumnsAttr, Kind: KindSize, Doc: "how many columns b has"},
		{Name: ProductsAttr, Kind: KindSize, Doc: "how many products there is room for: of more, the elements are some numbers"},
	}, semiringAttrs...),
	Traits:  Pure | Cast,
	Whole:   "The elements of the result are numbered throughout.",
	Infer:   inferSegmentProduct,
	FLOP:    productFLOP,
	Traffic: productTraffic,
	Kernel:  Library,
	Expand:  expandSegmentProduct, Derivative: segmentProductDerivative,
}

// productFLOP is one for each product, where it is one of numbers or their sum, and one where it is added or multiplied.
func productFLOP(o *ir.Op) dim.Dim {
	if len(o.Operands) != 6 || in(o, 0).Rank() != 1 || !in(o, 2).Elem.IsFloat() {
		return dim.Dim{}
	}
	n, ok := Size(o, ProductsAttr)
	if !ok {
		n = mostProducts(o)
	}
	var each int64
	for _, name := range []string{ReductionAttr, CombineAttr} {
		if k := Str(o, name); k == "add" || k == "mul" {
			each++
		}
	}
	return n.Scale(each)
}

// mostProducts is how many products two matrices in rows have at most: in a row of the second one no column is twice.
func mostProducts(o *ir.Op) dim.Dim {
	columns, _ := Size(o, ColumnsAttr)
	least := func(a, b dim.Dim) dim.Dim {
		if a.AtLeast(b) {
			return b
		}
		return a
	}
	a, b, rows := in(o, 2).Elements(), in(o, 5).Elements(), in(o, 0).Shape[0].Sub(dim.Const(1))
	return least(a.Mul(least(columns, b)), b.Mul(least(rows, a)))
}

func productTraffic(o *ir.Op) (read []dim.Dim, written dim.Dim) {
	read, written = wholeTraffic(o)
	for i := 4; i < len(read); i++ {
		read[i] = productsRead(o, i, read[i])
	}
	return read, written
}

// MultipliesSegments reports whether o is a product of two matrices that segments list.
func MultipliesSegments(o *ir.Op) bool {
	d := Of(o)
	return d != nil && (d == segmentProductDef || d == segmentDenseProductDef)
}

func inferSegmentProduct(o *ir.Op) ([]types.Type, *Problem) {
	if p := productOf(o); p != nil {
		return nil, p
	}
	if p := sizesStated(o, ColumnsAttr, ProductsAttr); p != nil {
		return nil, p
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

// productOf is what is wrong with the matrices of o.
func productOf(o *ir.Op) *Problem {
	rows := [2]string{"the first matrix", "b"}
	for i, what := range rows {
		if _, p := segments(o, 3*i); p != nil {
			return p
		}
		for k := 3*i + 1; k < 3*i+3; k++ {
			if p := rankIs(o, k, 1, "the elements of "+what); p != nil {
				return p
			}
		}
		if a, b := in(o, 3*i+1).Shape[0], in(o, 3*i+2).Shape[0]; !sameDim(a, b) {
			return problem("DM122", 3*i+2, "%s has %s elements and %s coordinates", what, dimText(b), dimText(a)).help("each element has a coordinate")
		}
	}
	if a, b := in(o, 2), in(o, 5); a.Elem != b.Elem {
		return problem("DM111", 5, "element types %s and %s differ", a.Elem, b.Elem).help("convert one of them with dm.convert")
	}
	return nil
}

// productsRead is what the products of o read of operand i, of which there are all bytes.
func productsRead(o *ir.Op, i int, all dim.Dim) dim.Dim {
	n, ok := Size(o, ProductsAttr)
	if most := in(o, i).Elem.Size(n); ok && !most.AtLeast(all) {
		return most
	}
	return all
}

// sizesStated is what is wrong with the sizes that o states.
func sizesStated(o *ir.Op, names ...string) *Problem {
	for _, name := range names {
		if _, ok := Size(o, name); !ok {
			return attrProblem("DM115", name, "%s is no number and no formula of symbols", name).help(`write a number, or a formula in quotes: "4 * e"`)
		}
	}
	return nil
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
	if !sizesKnown(o, 0, 1, 4) {
		return nil
	}
	l := &lowering{Builder: NewBuilder(b, nil), o: o}
	l.run(func(l *lowering) { vs = l.segmentProduct() })
	if l.problem != nil {
		l.Undo()
		return nil
	}
	if l.failed {
		return l.done()
	}
	return l.done(vs...)
}

// sizesKnown reports whether the sizes of some operands of o, of its last result and of what its attributes say are numbers.
func sizesKnown(o *ir.Op, operands ...int) bool {
	n, _ := Size(o, ColumnsAttr)
	products, _ := Size(o, ProductsAttr)
	known := n.IsConst() && products.IsConst() && out(o, len(o.Results)-1).Shape[0].IsConst()
	for _, i := range operands {
		known = known && in(o, i).Shape[0].IsConst()
	}
	return known
}

// rowProducts are the products of elements of a matrix in rows with the rows of another one that their coordinates number, one after the other.
type rowProducts struct {
	entry, at *ir.Value // of each which elements of the matrices it is of
	is        *ir.Value // which of those that there is room for are some
	offsets   *ir.Value // where the products of each element of the first one begin
	// own is the place of each in a row-major matrix, below end; numbers of places are of elem.
	own  *ir.Value
	end  dim.Dim
	elem types.Elem
}

// rowProducts are those of the matrices of which positions and coordinates are operands from first and from second on; nil where there are none.
func (l *lowering) rowProducts(first, second int) *rowProducts {
	o := l.o
	n, _ := Size(o, ColumnsAttr)
	products, _ := Size(o, ProductsAttr)
	rows, elements, others := in(o, first).Shape[0].Sub(dim.Const(1)), in(o, first+1).Shape[0], in(o, second+1).Shape[0]
	if products.IsZero() || elements.IsZero() || others.IsZero() || n.IsZero() {
		return nil
	}
	zero := func(elem types.Elem) *ir.Value { return l.Splat(&types.Tensor{Elem: elem}, 0) }
	ids, inside := l.segmentsOf(o.Operands[first], elements)
	row := l.Value("clamp", []*ir.Value{zero(o.Operands[second].Elem()), o.Operands[second], l.constant(o.Operands[second].Elem(), others)}, nil)
	elem := types.I64
	if most, ok := elements.Mul(others).Int(); ok && most < math.MaxInt32 {
		elem = types.I32
	}
	from, counts := l.productCounts(o.Operands[first+1], row, inside, elem)
	counts = l.Binary("max", counts, zero(elem))
	sums := l.Value("cumsum", []*ir.Value{counts}, named("dim", intAttr(0)))
	p := &rowProducts{end: rows.Mul(n)}
	p.offsets = l.Value("concatenate", []*ir.Value{l.Splat(l.vector(elem, dim.Const(1)), 0), sums}, named("dim", intAttr(0)))
	place := l.numbers(products)
	p.is = l.compared("lt", l.Convert(place, elem), l.lastOf(p.offsets))
	p.entry = l.Value("segment_ids", []*ir.Value{p.offsets}, nil, l.vector(types.I32, products))
	p.at = l.Binary("add", l.take(from, p.entry), l.Binary("sub", place, l.Convert(l.take(p.offsets, p.entry), types.I32)))
	p.elem = l.keyElem(p.end)
	column := l.nearest(l.Convert(l.take(o.Operands[second+1], p.at), p.elem), n)
	p.own = l.placeOf(l.take(ids, p.entry), column, p.elem, n)
	return p
}

// placeOf is the number of an element in a row-major matrix of n columns.
func (l *lowering) placeOf(row, column *ir.Value, elem types.Elem, n dim.Dim) *ir.Value {
	return l.Binary("add", l.Binary("mul", l.Convert(row, elem), l.constant(elem, n)), l.Convert(column, elem))
}

func (l *lowering) segmentProduct() []*ir.Value {
	o := l.o
	n, _ := Size(o, ColumnsAttr)
	products, _ := Size(o, ProductsAttr)
	rows, room := in(o, 0).Shape[0].Sub(dim.Const(1)), out(o, 1).Shape[0]
	var p *rowProducts
	if !room.IsZero() {
		p = l.rowProducts(0, 3)
	}
	if p == nil {
		return []*ir.Value{l.Splat(out(o, 0), 0), l.Splat(out(o, 1), 0), l.Splat(out(o, 2), 0)}
	}
	key, end := p.elem, l.constant(p.elem, p.end)
	x := l.Binary(Str(o, CombineAttr), l.take(o.Operands[2], p.entry), l.where(p.is, l.take(o.Operands[5], p.at), 0))
	s := l.Value("sort", []*ir.Value{l.Value("select", []*ir.Value{p.is, p.own, end}, nil)}, named("dim", intAttr(0)), l.vector(key, products), l.vector(types.I32, products)).Op
	own, x := s.Results[0], l.take(x, s.Results[1])
	is := l.compared("lt", own, end)
	number, first := l.groups(own, is)
	to := l.placed(first, number)
	starts := l.Value("iota", nil, append(named("dim", intAttr(0)), types.Named{Name: "step", Value: stepOf(n)}), l.vector(key, rows.Add(dim.Const(1))))
	begins := l.Value("searchsorted", []*ir.Value{own, starts}, nil, l.vector(types.I32, rows.Add(dim.Const(1))))
	before := l.Value("concatenate", []*ir.Value{l.Splat(l.vector(types.I32, dim.Const(1)), 0), l.Binary("add", number, l.constant(types.I32, dim.Const(1)))}, named("dim", intAttr(0)))
	kept := l.moved(own, to, room, end)
	kept = l.Value("select", []*ir.Value{l.compared("lt", kept, end), l.Binary("rem", kept, l.constant(key, n)), l.Splat(&types.Tensor{Elem: key}, 0)}, nil)
	ends := l.moved(l.numbers(products), to, room.Add(dim.Const(1)), l.reduce("add", l.Convert(is, types.I32), 0))
	y := l.Value("segment_reduce", []*ir.Value{x, ends}, named("kind", types.Keyword(Str(o, ReductionAttr))))
	if Str(o, ReductionAttr) != "add" { // of what lies behind all elements
		y = l.where(l.compared("lt", l.numbers(room), l.lastOf(before)), y, 0)
	}
	return []*ir.Value{l.Convert(l.take(before, begins), out(o, 0).Elem), l.Convert(kept, out(o, 1).Elem), y}
}

var segmentProductDerivative = &Derivative{
	Doc: "Of each matrix a `dm.segment_sample`: the cotangent of an element is the sum, over its products, of the other element times dy where the product is. None for positions and coordinates. " +
		"In another semiring that of what it is written out as.",
	rule: segmentProductRule, writtenOut: func(o *ir.Op) bool { return !inRing(o) },
}

func segmentProductRule(g *backward) {
	if g.dy[2] == nil {
		return
	}
	o := g.o
	pattern := []*ir.Value{g.x(0), g.x(1), g.x(3), g.x(4), g.y(0), g.y(1)}
	dy := g.wide(g.dy[2])
	if g.want[2] {
		g.give(2, g.sampled(o, "a", pattern, g.wide(g.x(5)), dy))
	}
	if g.want[5] {
		g.give(5, g.sampled(o, "b", pattern, g.wide(g.x(2)), dy))
	}
}
