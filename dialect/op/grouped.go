package op

import (
	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// groupedMatmulDef is what layers of experts multiply with: rows that are sorted by expert, and how
// many each has is known when they run.
var groupedMatmulDef = &Def{
	Name: "grouped_matmul", Family: Contraction, Class: ClassContraction,
	Summary: "matrix products of groups of rows, of any lengths",
	Foreign: []Foreign{
		{Names: "grouped_mm grouped_gemm ragged_dot gmm", Rest: "with positions in place of the ends or the sizes of the groups"},
		{Names: "segment_matmul segment_mm"},
	},
	Doc: "Positions divide the rows of x as `dm.segment_reduce` divides a dimension: group e is rows `positions[e] ≤ t < positions[e + 1]`.\n\n" +
		"- With a matrix for each group, `w[e, k, n]`, each row meets that of its group: `y[t,n] = Σₖ x[t,k] · w[e,k,n]`; rows in no group give zeros. `transpose_b` reads `w[e, n, k]`. Tokens sorted by expert meet their experts.\n" +
		"- With rows, `w[t, n]`, each group has a product of its own, over its rows: `y[e,k,n] = Σₜ x[t,k] · w[t,n]`, zeros for an empty group: the gradient by the matrices.\n\n" +
		"With `block = c` a position counts c rows, as where a row of blocks of a sparse matrix begins: group e is rows `c · positions[e]` to `c · positions[e + 1] - 1`. " +
		"Positions are clamped to 0 and the number of rows. Where they fall, the elements are some numbers.\n\n" + accumulateDoc + precisionDoc +
		"\n\nCounts 2·t·k·n FLOP, as if each row were in a group; integers count none.",
	Example: `func.func @example(%x: tensor<5x3xf32>, %w: tensor<2x3x4xf32>) -> tensor<5x4xf32> {
  %positions = dm.constant dense<[0, 2, 5]> : tensor<3xi32>
  %y = dm.grouped_matmul %x, %w, %positions : (tensor<5x3xf32>, tensor<2x3x4xf32>, tensor<3xi32>) -> tensor<5x4xf32>
  return %y : tensor<5x4xf32>
}`,
	Operands: []Param{
		{Name: "x", Elems: multiply, Doc: "`[t, k]`"},
		{Name: "w", Elems: multiply, Doc: "`[e, k, n]`, or `[t, n]`; x's element type"},
		{Name: "positions", Elems: positionElems, Doc: "e + 1 positions that do not fall: group e begins at the e-th and ends before the next"},
	},
	Results: []Param{{Name: "y", Elems: multiply, Doc: "`[t, n]`, or `[e, k, n]`"}},
	Attrs: []AttrDef{
		{Name: "transpose_b", Kind: KindBool, Default: types.Bool(false), Doc: "w is `[e, n, k]`"},
		{Name: "block", Kind: KindInt, Default: types.Int{V: 1}, Doc: "rows that a position counts; they divide the rows of x"},
		accumulateAttr, precisionAttr,
	},
	Traits: Pure,
	Linear: func(*ir.Op) [][]int { return [][]int{{0}, {1}} },
	Factors: func(o *ir.Op) *Factors {
		f := newFactors(o)
		kind := Parallel
		if GroupedRows(o) {
			kind = Reduced
		}
		k, n := f.factor(in(o, 0).Shape[1], kind), f.factor(groupedCols(o), Parallel)
		f.Operands[0][1] = []int{k}
		if !GroupedRows(o) {
			f.Operands[1][1], f.Results[0][1], f.Results[0][2] = []int{n}, []int{k}, []int{n}
			return f
		}
		row, col := 1, 2
		if Bool(o, "transpose_b") {
			row, col = col, row
		}
		f.Operands[1][row], f.Operands[1][col], f.Results[0][1] = []int{k}, []int{n}, []int{n}
		return f
	},
	Divides: "n; along k the results are parts of a sum, or have it.",
	Infer:   inferGroupedMatmul,
	FLOP: func(o *ir.Op) dim.Dim {
		x := in(o, 0)
		if w := in(o, 1).Rank(); !x.Elem.IsFloat() || x.Rank() != 2 || w != 2 && w != 3 {
			return dim.Dim{}
		}
		return x.Elements().Mul(groupedCols(o)).Scale(2)
	},
	Expand: expandGroupedMatmul,
	Derivative: &Derivative{
		Doc: "By x, and by w where it has a row for each of x, a grouped product with the other operand or its matrices transposed; by the matrices the products of each group's rows. None by the positions.",
		rule: func(g *backward) {
			dy, xs := g.alike(g.dy[0], g.o.Operands[:2]...)
			product := func(a, b *ir.Value, transposed bool) *ir.Value {
				attrs := append(g.precision(), blockAttr(GroupBlock(g.o))...)
				if transposed {
					attrs = append(attrs, types.Named{Name: "transpose_b", Value: types.Bool(true)})
				}
				return g.Value("grouped_matmul", []*ir.Value{a, b, g.o.Operands[2]}, attrs)
			}
			x, w := xs[0], xs[1]
			switch rows, turned := GroupedRows(g.o), Bool(g.o, "transpose_b"); {
			case !rows:
				if g.want[0] {
					g.give(0, product(w, dy, true))
				}
				if g.want[1] {
					g.give(1, product(x, dy, false))
				}
			default:
				if g.want[0] {
					g.give(0, product(dy, w, !turned))
				}
				if g.want[1] && turned {
					g.give(1, product(dy, x, false))
				} else if g.want[1] {
					g.give(1, product(x, dy, false))
				}
			}
		},
	},
}

// GroupedRows reports whether o, a grouped product, has a matrix for each group, with which its rows are
// multiplied, and not a product for each group.
func GroupedRows(o *ir.Op) bool { return in(o, 1).Rank() == 3 }

// GroupBlock is how many rows a position of o, a grouped product, counts.
func GroupBlock(o *ir.Op) int64 { return Int(o, "block") }

// blockAttr is the attribute of so many rows.
func blockAttr(n int64) []types.Named {
	if n == 1 {
		return nil
	}
	return named("block", types.Int{V: n})
}

// groupedCols is n of a grouped product.
func groupedCols(o *ir.Op) dim.Dim {
	w := in(o, 1).Shape
	if GroupedRows(o) && Bool(o, "transpose_b") {
		return w[1]
	}
	return w[len(w)-1]
}

func inferGroupedMatmul(o *ir.Op) ([]types.Type, *Problem) {
	if p := contractionElems(o, 0, 2); p != nil {
		return nil, p
	}
	if p := rankIs(o, 0, 2, "the first operand"); p != nil {
		return nil, p
	}
	groups, p := segments(o, 2)
	if p != nil {
		return nil, p
	}
	elem, p := accumulated(o)
	if p != nil {
		return nil, p
	}
	x, w := in(o, 0), in(o, 1)
	block := GroupBlock(o)
	if block < 1 {
		return nil, attrProblem("DM115", "block", "block = %d is no number of rows", block).help("a position counts one row, or more")
	}
	if rows, ok := x.Shape[0].Int(); ok && rows%block != 0 {
		return nil, problem("DM123", 0, "%d rows are not a multiple of the %d of a block", rows, block).help("a block has rows of x alone")
	}
	differ := func(what string, a, b dim.Dim) *Problem {
		return problem("DM122", 1, "grouped_matmul of %s and %s has %s of %s and %s", shapeText(x.Shape), shapeText(w.Shape), what, dimText(a), dimText(b))
	}
	switch w.Rank() {
	case 2:
		switch {
		case !sameDim(x.Shape[0], w.Shape[0]):
			return nil, differ("numbers of rows", x.Shape[0], w.Shape[0]).help("both operands have the same rows; a matrix for each group has three dimensions")
		case Bool(o, "transpose_b"):
			return nil, attrProblem("DM115", "transpose_b", "transpose_b is of a matrix for each group, and the second operand has rows").help("leave transpose_b out")
		}
		return one(tensor(x, elem, groups, x.Shape[1], w.Shape[1])), nil
	case 3:
		k := w.Shape[1]
		if Bool(o, "transpose_b") {
			k = w.Shape[2]
		}
		switch {
		case !sameDim(groups, w.Shape[0]):
			return nil, problem("DM122", 2, "there are positions of %s groups, and matrices of %s", dimText(groups), dimText(w.Shape[0])).help("e groups have e + 1 positions")
		case !sameDim(x.Shape[1], k):
			return nil, differ("contracted dimensions", x.Shape[1], k).help("w is [groups, k, n], with transpose_b = true [groups, n, k]")
		}
		return one(tensor(x, elem, x.Shape[0], groupedCols(o))), nil
	}
	return nil, problem("DM117", 1, "the second operand has shape %s where 3 dimensions are expected, or 2", shapeText(w.Shape)).
		help("w is [groups, k, n], or has a row for each of x: [t, n]")
}

// expandGroupedMatmul multiplies all rows with each group's matrix, those of other groups as zeros.
func expandGroupedMatmul(b *ir.Builder, o *ir.Op) []*ir.Value {
	x, p := in(o, 0), in(o, 2)
	w := NewBuilder(b, nil)
	groups := p.Shape[0].Sub(dim.Const(1))
	m, ok := groups.Int()
	if !ok || !x.Shape[0].IsConst() {
		return nil
	}
	at := w.count(tensor(p, p.Elem, dim.Const(1), x.Shape[0]), 1)
	edge := func(from int) *ir.Value {
		e := w.part(o.Operands[2], []int{0}, []int{from}, []int{from + int(m)}, []int{1})
		if block := GroupBlock(o); block > 1 { // clamped first, so that no product is too large
			rows, _ := x.Shape[0].Int()
			e = w.Binary("min", w.Binary("max", e, w.number(e, 0)), w.number(e, float64(rows/block)))
			e = w.Binary("mul", e, w.number(e, float64(block)))
		}
		return w.Reshape(e, groups, dim.Const(1))
	}
	inside := w.Binary("and", w.compare("ge", at, edge(0)), w.compare("lt", at, edge(1)))
	all := tensor(x, x.Elem, append([]dim.Dim{groups}, x.Shape...)...)
	rows := w.Value("broadcast", []*ir.Value{o.Operands[0]}, named("dims", IntList(1, 2)), all)
	rows = w.choose(w.Reshape(inside, groups, x.Shape[0], dim.Const(1)), rows, w.zeros(all))
	equation := "etk,tn->ekn"
	if GroupedRows(o) {
		equation = "etk,ekn->tn"
		if Bool(o, "transpose_b") {
			equation = "etk,enk->tn"
		}
	}
	attrs := append(inherited(o), types.Named{Name: "equation", Value: types.Str(equation)})
	if a := o.Attr("accumulate"); a != nil {
		attrs = append(attrs, types.Named{Name: "accumulate", Value: a})
	}
	return w.done(w.Value("einsum", []*ir.Value{rows, o.Operands[1]}, attrs, out(o, 0)))
}

// groupedProduct is o as a product of matrices: of its rows, or, where each group has a product of its own, of groups of mean length.
func groupedProduct(o *ir.Op) Product {
	x, groups := in(o, 0), in(o, 2).Shape[0].Sub(dim.Const(1))
	p := Product{Batch: dim.Const(1), Rows: x.Shape[0], Cols: groupedCols(o), Depth: x.Shape[1], Groups: groups}
	if !GroupedRows(o) {
		p = Product{Batch: groups, Rows: x.Shape[1], Cols: groupedCols(o), Depth: x.Shape[0]}
		if n, ok := groups.Int(); ok && n > 0 {
			p.Depth = dim.Quotient(x.Shape[0].Add(dim.Const(n-1)), n)
		}
	}
	return p
}
