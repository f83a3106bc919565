package op

import (
	"slices"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// The sums of products of three matrices in compressed rows at the elements of one of them, as one kernel: masked products, and the gradients of products.

const sampledBy = "sampled"

var segmentSampleDef = &Def{
	Name: "segment_sample", Family: SparseTensors, Class: ClassNormalization,
	Summary: "products of two matrices that segments list, where a third one has elements",
	Foreign: []Foreign{{Names: "masked_spgemm"}},
	Doc: "Three matrices in rows meet where `a[i, k]`, `b[k, j]` and `c[i, j]` are elements of them; rows of a and c are the same, rows of b are numbered by coordinates of a, and columns of b and c are below `columns`. " +
		"With `sampled = c` element `c[i, j]` of the result is `Σₖ a[i, k] · b[k, j]`, a masked product; with `sampled = a` element `a[i, k]` is `Σⱼ b[k, j] · c[i, j]`, and with `sampled = b` element `b[k, j]` is `Σᵢ a[i, k] · c[i, j]`, " +
		"the gradients of a product. The values given are those of the other two matrices, in the order a, b, c. Where one of the three has no element there is no product. " +
		"On a processor a row of c is a workspace as wide as it (Kjolstad et al., *Tensor Algebra Compilation with Workspaces*, CGO 2019), so that nothing is searched or sorted.\n\n" +
		"Positions are clamped to 0 and the number of elements; a coordinate of a outside names no row. Positions of a and c do not fall, and coordinates rise within a row and are, of b and c, below `columns`: otherwise the elements are some numbers. " +
		"Elements in no row are 0.\n\n" +
		"It is what `dm.sample` of sparse matrices becomes, and the gradient of [`dm.segment_product`](#dmsegment_product). Counts 2 FLOP for each of `products`, those of elements of a with rows of b. Moves the operands and the result.",
	Example: `func.func @example(%a: tensor<2xf32>, %b: tensor<5xf32>) -> tensor<3xf32> {
  %positions = dm.constant dense<[0, 1, 2]> : tensor<3xi32>
  %coordinates = dm.constant dense<[0, 2]> : tensor<2xi32>
  %b_positions = dm.constant dense<[0, 2, 2, 5]> : tensor<4xi32>
  %b_coordinates = dm.constant dense<[0, 3, 1, 3, 4]> : tensor<5xi32>
  %c_positions = dm.constant dense<[0, 1, 3]> : tensor<3xi32>
  %c_coordinates = dm.constant dense<[3, 0, 4]> : tensor<3xi32>
  %y = dm.segment_sample c %positions, %coordinates, %b_positions, %b_coordinates, %c_positions, %c_coordinates, %a, %b, columns = 6, products = 7
      : (tensor<3xi32>, tensor<2xi32>, tensor<4xi32>, tensor<5xi32>, tensor<3xi32>, tensor<3xi32>, tensor<2xf32>, tensor<5xf32>) -> tensor<3xf32>
  return %y : tensor<3xf32>
}`,
	Operands: []Param{
		{Name: "a_positions", Elems: positionElems, Doc: positionsDoc},
		{Name: "a_coordinates", Elems: indexes, Doc: "the columns of a's elements, which are rows of b"},
		{Name: "b_positions", Elems: positionElems, Doc: "where the rows of b begin and end"},
		{Name: "b_coordinates", Elems: indexes, Doc: "the columns of b's elements"},
		{Name: "c_positions", Elems: positionElems, Doc: "as many as those of a"},
		{Name: "c_coordinates", Elems: indexes, Doc: "the columns of c's elements"},
		{Name: "x", Elems: full, Doc: "the elements of the first matrix but the one that `sampled` names"},
		{Name: "y", Elems: full, Doc: "those of the second such matrix, of x's element type"},
	},
	Results: []Param{{Name: "z", Elems: full, Doc: "the elements of the matrix that `sampled` names, of x's element type"}},
	Attrs: []AttrDef{
		{Name: sampledBy, Kind: KindKeyword, Lead: true, Enum: sampledMatrices, Doc: "the matrix whose elements are computed"},
		{Name: ColumnsAttr, Kind: KindSize, Doc: "how many columns b and c have"},
		{Name: ProductsAttr, Kind: KindSize, Doc: "how many products there is room for: of more, the elements are some numbers"},
	},
	Traits: Pure,
	Whole:  "Which elements meet is known to the device that runs.",
	Infer:  inferSegmentSample,
	FLOP: func(o *ir.Op) dim.Dim {
		n, ok := Size(o, ProductsAttr)
		if !ok || len(o.Operands) < 8 || !in(o, 6).Elem.IsFloat() {
			return dim.Dim{}
		}
		return n.Scale(2)
	},
	Traffic: func(o *ir.Op) (read []dim.Dim, written dim.Dim) {
		read, written = wholeTraffic(o)
		if len(o.Operands) < 8 {
			return read, written
		}
		x, y := SampledValues(o)
		for i, of := range map[int]int{3: 1, 6: x, 7: y} {
			if of == 1 { // of b at most what so many products read
				read[i] = productsRead(o, i, read[i])
			}
		}
		return read, written
	},
	Kernel: Library,
	Expand: expandSegmentSample, Derivative: segmentSampleDerivative,
}

// sampledMatrices are the words of sampledBy.
var sampledMatrices = []string{"a", "b", "c"}

// SampledMatrix is which of its matrices, numbered from 0, a dm.segment_sample computes elements of.
func SampledMatrix(o *ir.Op) int { return max(slices.Index(sampledMatrices, Str(o, sampledBy)), 0) }

// SampledValues are the numbers of the matrices whose values are the last two operands.
func SampledValues(o *ir.Op) (x, y int) {
	switch SampledMatrix(o) {
	case 0:
		return 1, 2
	case 1:
		return 0, 2
	}
	return 0, 1
}

func inferSegmentSample(o *ir.Op) ([]types.Type, *Problem) {
	names := sampledMatrices
	for i, what := range names {
		if _, p := segments(o, 2*i); p != nil {
			return nil, p
		}
		if p := rankIs(o, 2*i+1, 1, "the coordinates of "+what); p != nil {
			return nil, p
		}
	}
	if a, c := in(o, 0).Shape[0], in(o, 4).Shape[0]; !sameDim(a, c) {
		return nil, problem("DM122", 4, "a has %s positions and c has %s", dimText(a), dimText(c)).help("a and c have the same rows")
	}
	x, y := SampledValues(o)
	for i, of := range [2]int{x, y} {
		if p := rankIs(o, 6+i, 1, "the elements of "+names[of]); p != nil {
			return nil, p
		}
		if n, c := in(o, 6+i).Shape[0], in(o, 2*of+1).Shape[0]; !sameDim(n, c) {
			return nil, problem("DM122", 6+i, "%s has %s elements and %s coordinates", names[of], dimText(n), dimText(c)).help("each element has a coordinate")
		}
	}
	if a, b := in(o, 6), in(o, 7); a.Elem != b.Elem {
		return nil, problem("DM111", 7, "element types %s and %s differ", a.Elem, b.Elem).help("convert one of them with dm.convert")
	}
	if p := sizesStated(o, ColumnsAttr, ProductsAttr); p != nil {
		return nil, p
	}
	return one(tensor(in(o, 6), in(o, 6).Elem, in(o, 2*SampledMatrix(o)+1).Shape[0])), nil
}

// expandSegmentSample expands the products of a and b, and finds each among the elements of c, which lie in order.
func expandSegmentSample(b *ir.Builder, o *ir.Op) (vs []*ir.Value) {
	if !sizesKnown(o, 0, 1, 2, 3, 5) {
		return nil
	}
	l := &lowering{Builder: NewBuilder(b, nil), o: o}
	l.run(func(l *lowering) { vs = []*ir.Value{l.segmentSample()} })
	if l.problem != nil {
		l.Undo()
		return nil
	}
	if l.failed {
		return l.done()
	}
	return l.done(vs...)
}

func (l *lowering) segmentSample() *ir.Value {
	o, y := l.o, out(l.o, 0)
	others := in(o, 5).Shape[0]
	p := l.rowProducts(0, 2)
	if p == nil || others.IsZero() {
		return l.Splat(y, 0)
	}
	n, _ := Size(o, ColumnsAttr)
	ids, _ := l.segmentsOf(o.Operands[4], others)
	stored := l.placeOf(ids, l.nearest(l.Convert(o.Operands[5], p.elem), n), p.elem, n)
	at := l.Value("searchsorted", []*ir.Value{stored, p.own}, nil, l.vector(types.I32, asTensor(p.own.Type).Shape[0]))
	is := l.Binary("and", p.is, l.compared("eq", l.take(stored, at), p.own))
	elem := wide(in(o, 6).Elem)
	element := func(operand, of int) *ir.Value {
		number := [3]*ir.Value{p.entry, p.at, at}[of]
		return l.where(is, l.take(l.Convert(o.Operands[operand], elem), number), 0)
	}
	first, second := SampledValues(o)
	v := l.Binary("mul", element(6, first), element(7, second))
	switch SampledMatrix(o) {
	case 0:
		v = l.Value("segment_reduce", []*ir.Value{v, p.offsets}, named("kind", types.Keyword("add")))
	case 1:
		v = l.addedUp(v, l.placed(is, p.at), y.Shape[0])
	default:
		v = l.addedUp(v, l.placed(is, at), y.Shape[0])
	}
	return l.Convert(v, y.Elem)
}

// sampled is a dm.segment_sample of the products of o: the elements of one of three matrices from those of the other two.
func (w *Builder) sampled(o *ir.Op, of string, pattern []*ir.Value, x, y *ir.Value) *ir.Value {
	attrs := named(sampledBy, types.Keyword(of))
	for _, a := range []string{ColumnsAttr, ProductsAttr} {
		attrs = append(attrs, types.Named{Name: a, Value: o.Attr(a)})
	}
	return w.Value("segment_sample", append(pattern[:6:6], x, y), attrs)
}

var segmentSampleDerivative = &Derivative{
	Doc:  "Of each of the two matrices whose elements are given a `dm.segment_sample` of dy and the other one. None for positions and coordinates.",
	rule: segmentSampleRule,
}

func segmentSampleRule(g *backward) {
	given := [2]int{}
	given[0], given[1] = SampledValues(g.o)
	dy := g.wide(g.dy[0])
	for i, of := range given {
		if !g.want[6+i] {
			continue
		}
		x, y, other := g.wide(g.x(7-i)), dy, given[1-i]
		if SampledMatrix(g.o) < other {
			x, y = y, x
		}
		g.give(6+i, g.sampled(g.o, sampledMatrices[of], g.o.Operands, x, y))
	}
}
