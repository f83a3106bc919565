package op

import (
	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// The product of two matrices in compressed rows as a dense matrix: what a product of sparse tensors with a dense result becomes on
// components where their levels are rows.

var segmentDenseProductDef = &Def{
	Name: "segment_dense_product", Family: SparseTensors, Class: ClassNormalization,
	Summary: "the product of two matrices that segments list, as a dense matrix",
	Doc: "Row i of the result is `Σ a[x] · (row coordinates[x] of b)` over the elements x of segment i of the first matrix; rows of b are the segments of its own positions. " +
		"With `kind` and `combine` it is a product in another semiring: `kind = min, combine = add` gives the shortest of the paths of two steps (Kepner and Gilbert, *Graph Algorithms in the Language of Linear Algebra*, SIAM 2011). " +
		"Where no two elements meet the result is the neutral element of the kind: 0 of a sum, an infinity of a minimum. A row is summed where it is stored, and nothing else of the result is touched.\n\n" +
		"Positions are clamped to 0 and the number of elements; a coordinate of the first matrix outside names no row. Positions of the first matrix do not fall, and coordinates of b rise within a row and are below `columns`: otherwise the elements are some numbers.\n\n" +
		"It is what `dm.matmul` and `dm.einsum` of two sparse matrices with a dense result become; of their stated `products` a check is made there. Counts for each of `products`, or of as many as there can be, 1 FLOP for a product or sum of elements, and 1 where it is added or multiplied. " +
		"Moves the operands, of b at most what so many products read, and the result.",
	Example: `func.func @example(%a: tensor<2xf32>, %b: tensor<5xf32>) -> tensor<2x6xf32> {
  %positions = dm.constant dense<[0, 1, 2]> : tensor<3xi32>
  %coordinates = dm.constant dense<[0, 2]> : tensor<2xi32>
  %b_positions = dm.constant dense<[0, 2, 2, 5]> : tensor<4xi32>
  %b_coordinates = dm.constant dense<[0, 3, 1, 3, 4]> : tensor<5xi32>
  %y = dm.segment_dense_product %positions, %coordinates, %a, %b_positions, %b_coordinates, %b, columns = 6
      : (tensor<3xi32>, tensor<2xi32>, tensor<2xf32>, tensor<4xi32>, tensor<5xi32>, tensor<5xf32>) -> tensor<2x6xf32>
  return %y : tensor<2x6xf32>
}`,
	Operands: productOperands,
	Results:  []Param{{Name: "y", Elems: multiply, Doc: "`[rows, columns]`, of a's element type"}},
	Attrs: append([]AttrDef{
		{Name: ColumnsAttr, Kind: KindSize, Doc: "how many columns b has"},
		{Name: ProductsAttr, Kind: KindSize, Optional: true, Doc: "how many products there are at most: of more, the elements are some numbers"},
	}, semiringAttrs...),
	Traits: Pure,
	Whole:  "Which elements meet is known to the device that runs.",
	Infer: func(o *ir.Op) ([]types.Type, *Problem) {
		if p := productOf(o); p != nil {
			return nil, p
		}
		names := []string{ColumnsAttr}
		if o.Attr(ProductsAttr) != nil {
			names = append(names, ProductsAttr)
		}
		if p := sizesStated(o, names...); p != nil {
			return nil, p
		}
		n, _ := Size(o, ColumnsAttr)
		return one(tensor(in(o, 2), in(o, 2).Elem, in(o, 0).Shape[0].Sub(dim.Const(1)), n)), nil
	},
	FLOP:    productFLOP,
	Traffic: productTraffic,
	Kernel:  Library,
	Expand:  expandSegmentDenseProduct,
	Derivative: &Derivative{
		Doc: "Of each matrix a `dm.segment_sample` of the other one and dy, if `products` are stated. Without them, and in another semiring, that of what it is written out as. None for positions and coordinates.",
		rule: func(g *backward) {
			o := g.o
			shape := out(o, 0).Shape
			all := dim.Prod(shape...)
			count := func(n, step dim.Dim) *ir.Value { // dy in rows
				return g.Value("iota", nil, append(named("dim", intAttr(0)), types.Named{Name: "step", Value: stepOf(step)}), &types.Tensor{Shape: []dim.Dim{n}, Elem: types.I32})
			}
			columns := g.Value("broadcast", []*ir.Value{g.Value("iota", nil, named("dim", intAttr(1)), &types.Tensor{Shape: []dim.Dim{dim.Const(1), shape[1]}, Elem: types.I32})}, nil, &types.Tensor{Shape: shape, Elem: types.I32})
			pattern := []*ir.Value{g.x(0), g.x(1), g.x(3), g.x(4), count(shape[0].Add(dim.Const(1)), shape[1]), g.Reshape(columns, all)}
			dy := g.Reshape(g.wide(g.dy[0]), all)
			if g.want[2] {
				g.give(2, g.sampled(o, "a", pattern, g.wide(g.x(5)), dy))
			}
			if g.want[5] {
				g.give(5, g.sampled(o, "b", pattern, g.wide(g.x(2)), dy))
			}
		},
		writtenOut: func(o *ir.Op) bool { return !inRing(o) || o.Attr(ProductsAttr) == nil },
	},
}

// expandSegmentDenseProduct expands the products and joins them at their places; where none are stated, b is made dense, and its rows are joined.
func expandSegmentDenseProduct(b *ir.Builder, o *ir.Op) (vs []*ir.Value) {
	n, _ := Size(o, ColumnsAttr)
	products, stated := Size(o, ProductsAttr)
	if !n.IsConst() || stated && !products.IsConst() {
		return nil
	}
	for _, i := range []int{0, 1, 3, 4} {
		if !in(o, i).Shape[0].IsConst() {
			return nil
		}
	}
	l := &lowering{Builder: NewBuilder(b, nil), o: o}
	l.run(func(l *lowering) { vs = []*ir.Value{l.segmentDenseProduct()} })
	if l.problem != nil {
		l.Undo()
		return nil
	}
	if l.failed {
		return l.done()
	}
	return l.done(vs...)
}

func (l *lowering) segmentDenseProduct() *ir.Value {
	o, y := l.o, out(l.o, 0)
	kind, combine := Str(o, ReductionAttr), Str(o, CombineAttr)
	elem := wide(y.Elem)
	neutral := func(shape ...dim.Dim) *ir.Value {
		r, _ := types.ReductionOf(kind)
		t := &types.Tensor{Shape: shape, Elem: elem}
		return l.Value("constant", nil, named("value", Neutral(r, t)), t)
	}
	into := func(base, at, x *ir.Value, kind string) *ir.Value {
		return l.Value("scatter", []*ir.Value{base, at, x}, append(named("kind", types.Keyword(kind)), named("dim", intAttr(0))...))
	}
	elements, others := in(o, 1).Shape[0], in(o, 4).Shape[0]
	a, b := l.Convert(o.Operands[2], elem), l.Convert(o.Operands[5], elem)
	n, inner := y.Shape[1], in(o, 3).Shape[0].Sub(dim.Const(1))
	if elements.IsZero() || others.IsZero() || n.IsZero() || y.Shape[0].IsZero() || inner.IsZero() {
		return l.Convert(neutral(y.Shape...), y.Elem)
	}
	if _, stated := Size(o, ProductsAttr); stated {
		p := l.rowProducts(0, 3)
		if p == nil {
			return l.Convert(neutral(y.Shape...), y.Elem)
		}
		x := l.Binary(combine, l.take(a, p.entry), l.where(p.is, l.take(b, p.at), 0))
		return l.Convert(l.Reshape(into(neutral(p.end), l.placed(p.is, p.own), x, kind), y.Shape...), y.Elem)
	}
	all := inner.Mul(n)
	key := l.keyElem(all)
	ids, is := l.segmentsOf(o.Operands[3], others)
	at := l.placed(is, l.placeOf(ids, l.nearest(l.Convert(o.Operands[4], key), n), key, n))
	rows := func(base, x *ir.Value) *ir.Value {
		return l.take(l.Reshape(into(base, at, x, "set"), inner, n), o.Operands[1])
	}
	stored := rows(l.Splat(l.vector(types.I8, all), 0), l.Value("broadcast", []*ir.Value{l.Splat(&types.Tensor{Elem: types.I8}, 1)}, nil, l.vector(types.I8, others)))
	x := l.Binary(combine, l.Reshape(a, elements, dim.Const(1)), rows(l.Splat(l.vector(elem, all), 0), b))
	x = l.Value("select", []*ir.Value{l.compared("ne", stored, l.Splat(&types.Tensor{Elem: types.I8}, 0)), x, neutral()}, nil)
	return l.Convert(l.Value("segment_reduce", []*ir.Value{x, o.Operands[0]}, named("kind", types.Keyword(kind))), y.Elem)
}
