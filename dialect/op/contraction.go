package op

import (
	"fmt"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/types"
	"dmir/syntax/diag"
)

func contractions() []*Def {
	return []*Def{einsumDef, matmulDef, groupedMatmulDef, structuredEinsumDef, convolutionDef}
}

const accumulateDoc = "Half precision is accumulated in f32 and rounded once, unless `accumulate = f16`. " +
	"The result has the operands' element type or, as written, a wider one, which keeps the accumulator's bits."

const precisionDoc = "\n\n" +
	"`precision = tf32` states that the operands, of f32, may be rounded to TF32 on their way to the tensor cores: to nearest, ties away from zero, with 10 bits of the mantissa " +
	"(an error of up to 2⁻¹¹ of each operand); sums stay f32. Without it products of f32 are those of f32, unless `--f32-products tf32` or `f32_products` in `dmir.toml` says " +
	"otherwise for the whole program; `precision = f32` exempts an op from that. The gradient inherits it. The reference executor rounds so, too; where there is no such unit, as on processors, " +
	"products are those of f32, which are more precise."

var accumulateAttr = AttrDef{
	Name: "accumulate", Kind: KindKeyword, Enum: []string{"f32", "f16"}, Default: types.Keyword("f32"),
	Doc: "the type in which sums of operands narrower than it are kept",
}

// PrecisionAttr is how the tensor cores may take the operands of a contraction of f32.
const PrecisionAttr = "precision"

// precisionAttr has no default: where an op has none, a setting for the whole program holds.
var precisionAttr = AttrDef{
	Name: PrecisionAttr, Kind: KindKeyword, Enum: []string{"f32", "tf32"}, Optional: true,
	Doc: "`tf32`: operands of f32 may be rounded to TF32 for the tensor cores; `f32`, not",
}

// TF32 reports whether o is a contraction of two operands or more, or an attention, whose products may round operands to TF32.
func TF32(o *ir.Op) bool {
	return len(o.Operands) > 1 && in(o, 0).Elem == types.F32 && Of(o).Attr(PrecisionAttr) != nil && Str(o, PrecisionAttr) == "tf32"
}

// SetPrecision gives the contractions of f32 among ops, and in their regions, that state no precision this one.
func SetPrecision(ops []*ir.Op, precision string) {
	ir.Walk(ops, func(o *ir.Op) bool {
		if Of(o).Attr(PrecisionAttr) != nil && o.Attr(PrecisionAttr) == nil && len(o.Operands) > 1 && in(o, 0).Elem == types.F32 && out(o, 0).Elem == types.F32 {
			o.SetAttr(PrecisionAttr, types.Keyword(precision))
		}
		return true
	})
}

// inherited is the precision of o, a contraction, as an attribute of another one that computes a part of it, or its gradient.
func inherited(o *ir.Op) []types.Named {
	if a := o.Attr(PrecisionAttr); a != nil {
		return named(PrecisionAttr, a)
	}
	return nil
}

var einsumDef = &Def{
	Name: "einsum", Family: Contraction, Class: ClassContraction,
	Summary: "Einstein summation of any number of tensors",
	Foreign: []Foreign{{Names: "dot_general tensordot"}},
	Doc: "The equation gives every dimension of every operand a letter; `\"bln,nu->blu\"` is `y[b,l,u] = Σₙ x[b,l,n] · w[n,u]`. " +
		"A letter has one size wherever it stands; letters that the output lacks are summed over; a letter repeated within an operand takes the diagonal. " +
		"The output is always written. `...` in a term stands for the dimensions of its operand that have no letter, aligned at the last and broadcast as in NumPy; where it stands for any, the output has it as well: `\"...ij,jk->...ik\"`.\n\n" +
		accumulateDoc + " Operands of the two f8 types may be mixed." + precisionDoc + "\n\n" +
		"Counts 2 FLOP (a multiplication and an addition) for each point of the loops over all letters where something is summed, 1 for a product without a sum " +
		"(an outer product); a single operand counts the additions of its sum, and none if it is only permuted. " +
		"Three and more operands are contracted pairwise from left to right, each step keeping the letters needed later, and counted so. Integers count none.",
	Example: `func.func @example(%x: tensor<2x3x4xf32>, %w: tensor<4x5xf32>) -> tensor<2x3x5xf32> {
  %y = dm.einsum "bln,nu->blu" %x, %w : (tensor<2x3x4xf32>, tensor<4x5xf32>) -> tensor<2x3x5xf32>
  return %y : tensor<2x3x5xf32>
}`,
	Operands: []Param{{Name: "operands", Elems: multiply, Variadic: true, Doc: "one for each comma-separated part of the equation; one element type"}},
	Results:  []Param{{Name: "y", Elems: multiply, Doc: "the output's letters as dimensions"}},
	Attrs: []AttrDef{
		{Name: "equation", Kind: KindString, Lead: true, Doc: "letters of the operands, `->`, letters of the output"},
		accumulateAttr, precisionAttr, productsAttr,
	},
	Traits: Pure, Infer: inferEinsum, FLOP: flopEinsum, Traffic: trafficEinsum, Maps: mapsEinsum,
	Linear:     linearInEach,
	Divides:    "The dimension of every letter; where the output lacks it, the results are parts of a sum. A letter that an operand has twice is whole.",
	Orders:     AnyOrders,
	Derivative: einsumDerivative,
}

var matmulDef = &Def{
	Name: "matmul", Family: Contraction, Class: ClassContraction,
	Summary: "matrix product over the last two dimensions",
	Foreign: []Foreign{
		{Names: "mm bmm dot gemm batch_matmul"},
		{Names: "linear dense addmm baddbmm fully_connected", Rest: "and dm.add of the bias"},
	},
	Doc: "`y[…,m,n] = Σₖ x[…,m,k] · w[…,k,n]`. The dimensions before the last two are a batch and broadcast as in NumPy. " +
		"`transpose_a` reads the first operand as `[…,k,m]`, `transpose_b` the second as `[…,n,k]`.\n\n" + accumulateDoc + precisionDoc +
		"\n\nCounts 2·batch·m·n·k FLOP; integers count none.",
	Example: `func.func @example(%x: tensor<2x3x4xf32>, %w: tensor<5x4xf32>) -> tensor<2x3x5xf32> {
  %y = dm.matmul %x, %w, transpose_b = true : (tensor<2x3x4xf32>, tensor<5x4xf32>) -> tensor<2x3x5xf32>
  return %y : tensor<2x3x5xf32>
}`,
	Operands: []Param{
		{Name: "x", Elems: multiply, Doc: "`[…, m, k]`"},
		{Name: "w", Elems: multiply, Doc: "`[…, k, n]`, x's element type"},
	},
	Results: []Param{{Name: "y", Elems: multiply, Doc: "`[…, m, n]`"}},
	Attrs: []AttrDef{
		{Name: "transpose_a", Kind: KindBool, Default: types.Bool(false), Doc: "x is `[…, k, m]`"},
		{Name: "transpose_b", Kind: KindBool, Default: types.Bool(false), Doc: "w is `[…, n, k]`"},
		accumulateAttr, precisionAttr, productsAttr,
	},
	Traits:  Pure,
	Linear:  linearInEach,
	Divides: "The batch, m and n; along k the results are parts of a sum.",
	Infer:   inferMatmul,
	FLOP: func(o *ir.Op) dim.Dim {
		x := in(o, 0)
		if !x.Elem.IsFloat() || x.Rank() < 2 || in(o, 1).Rank() < 2 {
			return dim.Dim{}
		}
		_, k, _ := matmulSides(o)
		return out(o, 0).Elements().Mul(k).Scale(2)
	},
	Maps:       mapsMatmul,
	Orders:     AnyOrders,
	Derivative: matmulDerivative,
}

// contractionElems checks that operands [from, to) agree in element type; the
// two f8 types count as one.
func contractionElems(o *ir.Op, from, to int) *Problem {
	f8 := func(e types.Elem) bool { return e == types.F8E4M3FN || e == types.F8E5M2 }
	for i := from + 1; i < to; i++ {
		if a, b := in(o, from).Elem, in(o, i).Elem; a != b && !(f8(a) && f8(b)) {
			return problem("DM111", i, "element types %s and %s differ", a, b).help("convert one of them with dm.convert")
		}
	}
	return nil
}

// roundedProblem is what is wrong where o rounds operands to TF32 that are not of f32.
func roundedProblem(o *ir.Op, from, to types.Elem) *Problem {
	if Str(o, PrecisionAttr) == "tf32" && (from != types.F32 || to.Bytes() > from.Bytes()) {
		return attrProblem("DM115", PrecisionAttr, "precision = tf32 is of operands and results of f32, and these are of %s and %s", from, to).help("leave precision out")
	}
	return nil
}

// accumulated is the result's element type: the operands', or a wider one of
// the same kind as written.
func accumulated(o *ir.Op) (types.Elem, *Problem) {
	from, to := in(o, 0).Elem, out(o, 0).Elem
	if Str(o, "accumulate") == "f16" && from.IsFloat() && from != types.F16 && from.Bytes() != 1 {
		return from, attrProblem("DM115", "accumulate", "accumulate = f16 is not supported for operands of %s", from).
			help("leave accumulate out: %s is accumulated in %s", from, wide(from))
	}
	if p := roundedProblem(o, from, to); p != nil {
		return from, p
	}
	if to == types.InvalidElem || to == from {
		return from, nil
	}
	wider := to.Bytes() > from.Bytes() || from.Bytes() == 1 && to.Bytes() == 1
	if wider && from.IsFloat() == to.IsFloat() && from.IsUnsigned() == to.IsUnsigned() {
		return to, nil
	}
	return from, problem("DM128", -1, "operands of %s cannot produce a result of %s", from, to).
		help("write %s or a wider type; convert the result with dm.convert", from)
}

// matmulSides gives m, k and n; k of the first operand.
func matmulSides(o *ir.Op) (m, k, n dim.Dim) {
	a, b := in(o, 0).Shape, in(o, 1).Shape
	m, k = a[len(a)-2], a[len(a)-1]
	if Bool(o, "transpose_a") {
		m, k = k, m
	}
	if n = b[len(b)-1]; Bool(o, "transpose_b") {
		n = b[len(b)-2]
	}
	return m, k, n
}

func inferMatmul(o *ir.Op) ([]types.Type, *Problem) {
	if p := contractionElems(o, 0, 2); p != nil {
		return nil, p
	}
	for i := range 2 {
		if p := rankAtLeast(o, i, 2, "matmul"); p != nil {
			return nil, p.help(`write a product with a vector as dm.einsum "ij,j->i"`)
		}
	}
	a, b := in(o, 0).Shape, in(o, 1).Shape
	m, k, n := matmulSides(o)
	k2 := b[len(b)-2]
	if Bool(o, "transpose_b") {
		k2 = b[len(b)-1]
	}
	if !sameDim(k, k2) {
		p := problem("DM122", 1, "matmul of %s and %s contracts dimensions of sizes %s and %s", shapeText(a), shapeText(b), dimText(k), dimText(k2))
		if sameDim(k, n) && !Bool(o, "transpose_b") {
			return nil, p.help("the second operand looks transposed: add transpose_b = true")
		}
		return nil, p.help("the last dimension of the first and the last but one of the second must be equal")
	}
	batch, ok := broadcastTwo(a[:len(a)-2], b[:len(b)-2])
	if !ok {
		return nil, problem("DM110", 1, "batch dimensions of %s and %s do not broadcast", shapeText(a), shapeText(b)).
			help("sizes before the last two must be equal or 1")
	}
	elem, p := accumulated(o)
	if p != nil {
		return nil, p
	}
	return one(tensor(in(o, 0), elem, append(batch, m, n)...)), nil
}

func mapsMatmul(o *ir.Op) *Iteration {
	a, b, c := in(o, 0).Shape, in(o, 1).Shape, out(o, 0).Shape
	if len(a) < 2 || len(b) < 2 || len(c) < 2 {
		return nil
	}
	_, k, _ := matmulSides(o)
	nb := len(c) - 2
	names := append(batchNames(nb), "m", "n", "k")
	it := &Iteration{Loops: append(append([]dim.Dim{}, c...), k), Names: names, Reduces: make([]bool, len(c)+1)}
	it.Reduces[len(c)] = true
	m, n, red := nb, nb+1, nb+2
	side := func(shape []dim.Dim, row, col int, transposed bool) []int {
		if transposed {
			row, col = col, row
		}
		return append(broadcastMap(shape[:len(shape)-2], c[:nb]), row, col)
	}
	it.Operands = [][]int{side(a, m, red, Bool(o, "transpose_a")), side(b, red, n, Bool(o, "transpose_b"))}
	it.Results = [][]int{identity(len(c))}
	return it
}

func batchNames(n int) []string {
	s := make([]string, n)
	for i := range s {
		s[i] = fmt.Sprintf("b%d", i)
	}
	return s
}

var convolutionDef = &Def{
	Name: "convolution", Family: Contraction, Class: ClassContraction,
	Summary: "convolution of NCHW images with OIHW filters",
	Foreign: []Foreign{{Names: "conv conv1d conv2d conv3d conv_general_dilated"}},
	Doc: "`y[n,o,p…] = Σ x[n, c, p·stride - low + q·rhs_dilation …] · w[o, c, q…]`, summed over the channels of o's group and the window (a cross-correlation, as in " +
		"every deep-learning framework). One, two or three spatial dimensions. The layout is fixed: x is `[batch, channels, spatial…]`, w is " +
		"`[out channels, channels / feature_group_count, window…]`; transpose other layouts first. A spatial dimension of size d becomes " +
		"`(d + low + high - (window - 1)·rhs_dilation - 1) / stride + 1`, rounded down.\n\n" +
		"With `lhs_dilation = l` there are `l - 1` zeros between the elements of x first, so that its size is `(d - 1)·l + 1`. This is a transposed convolution: that of stride s, padding p and a window k is " +
		"`lhs_dilation = s` and padding `k - 1 - p` with the filter reversed and its channels exchanged. The zeros are not stored and count no FLOP, and kernels of GPUs do not multiply them.\n\n" + accumulateDoc + precisionDoc +
		"\n\nCounts 2·(elements of y)·(window)·(channels / groups) FLOP, padding included, but not the products with the zeros between elements. Reads the elements of x that some window touches, and all of w.",
	Example: `func.func @example(%x: tensor<1x2x5x5xf32>, %w: tensor<3x2x3x3xf32>) -> tensor<1x3x3x3xf32> {
  %y = dm.convolution %x, %w, window_strides = [2, 2], padding = [[1, 1], [1, 1]] : (tensor<1x2x5x5xf32>, tensor<3x2x3x3xf32>) -> tensor<1x3x3x3xf32>
  return %y : tensor<1x3x3x3xf32>
}`,
	Operands: []Param{
		{Name: "x", Elems: multiply, Doc: "`[N, C, spatial…]`"},
		{Name: "w", Elems: multiply, Doc: "`[O, C / groups, window…]`, numbers only in the window"},
	},
	Results: []Param{{Name: "y", Elems: multiply, Doc: "`[N, O, spatial…]`"}},
	Attrs: []AttrDef{
		{Name: "window_strides", Kind: KindInts, Optional: true, Doc: "step of the window, one for each spatial dimension; 1 where absent"},
		{Name: "padding", Kind: KindPairs, Optional: true, Doc: "zeros before and after each spatial dimension; none where absent"},
		{Name: "lhs_dilation", Kind: KindInts, Optional: true, Doc: "distance of x's elements, with zeros between them; 1 where absent"},
		{Name: "rhs_dilation", Kind: KindInts, Optional: true, Doc: "distance of the window's taps; 1 where absent"},
		{Name: "feature_group_count", Kind: KindInt, Default: types.Int{V: 1}, Doc: "groups into which the channels fall; as many as channels is a depthwise convolution"},
		accumulateAttr, precisionAttr,
	},
	Traits:  Pure | Windowed,
	Factors: convolutionFactors, Linear: linearInEach, Piece: convolutionPiece,
	Divides:  "The batch, the groups, the out channels of every group; along the channels of a group the results are parts of a sum, and so along a spatial dimension that the window covers whole, without padding. A spatial dimension along which no window moves: of one tap, with stride 1 and no padding.",
	Exchange: exchangedSpace, Exchanges: "The spatial dimensions: devices get the elements of x that they lack from their neighbours. Where the window is larger than the result, as in the gradient of a filter, the window is divided and the results are parts of a sum.",
	Infer: inferConvolution,
	Traffic: func(o *ir.Op) ([]dim.Dim, dim.Dim) {
		if in(o, 0).Rank() < 3 || in(o, 1).Rank() != in(o, 0).Rank() {
			return wholeTraffic(o)
		}
		w, p := convolutionWindow(o)
		return windowTraffic(o, w, p)
	},
	FLOP: func(o *ir.Op) dim.Dim {
		w := in(o, 1)
		if !w.Elem.IsFloat() || w.Rank() < 3 || in(o, 0).Rank() != w.Rank() {
			return dim.Dim{}
		}
		if o.Attr("lhs_dilation") == nil {
			return out(o, 0).Elements().Mul(dim.Prod(w.Shape[1:]...)).Scale(2)
		}
		win, p := convolutionWindow(o)
		if p != nil {
			return dim.Dim{}
		}
		n := dim.Prod(in(o, 0).Shape[0], w.Shape[0], w.Shape[1]).Scale(2)
		for i := range win.Size {
			n = n.Mul(win.products(i))
		}
		return n
	},
	Orders:     AnyOrders,
	Derivative: convolutionDerivative,
}

// maxSpatial is how many spatial dimensions a convolution may have.
const maxSpatial = 3

func inferConvolution(o *ir.Op) ([]types.Type, *Problem) {
	if p := contractionElems(o, 0, 2); p != nil {
		return nil, p
	}
	x, w := in(o, 0), in(o, 1)
	if r := x.Rank(); r < 3 || r > 2+maxSpatial {
		return nil, problem("DM117", 0, "convolution needs 1 to 3 spatial dimensions after batch and channels, but x has shape %s", shapeText(x.Shape))
	}
	if p := rankIs(o, 1, x.Rank(), "the filter"); p != nil {
		return nil, p.help("a filter is [out channels, channels / groups, window…]")
	}
	groups := Int(o, "feature_group_count")
	if groups < 1 {
		return nil, attrProblem("DM115", "feature_group_count", "feature_group_count is %d; the minimum is 1", groups)
	}
	if want := w.Shape[1].Scale(groups); !sameDim(x.Shape[1], want) {
		return nil, problem("DM122", 1, "x %s has %s channels, but the filter %s in %s takes %s", shapeText(x.Shape), dimText(x.Shape[1]),
			shapeText(w.Shape), diag.Count(int(groups), "group"), dimText(want)).
			help("the filter's second dimension is channels / feature_group_count")
	}
	if n, ok := w.Shape[0].Int(); ok && n%groups != 0 {
		return nil, attrProblem("DM123", "feature_group_count", "%d output channels cannot be divided into %d groups", n, groups)
	}
	win, p := convolutionWindow(o)
	if p != nil {
		return nil, p
	}
	elem, p := accumulated(o)
	if p != nil {
		return nil, p
	}
	return one(tensor(x, elem, append([]dim.Dim{x.Shape[0], w.Shape[0]}, win.Out...)...)), nil
}
