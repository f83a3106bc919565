package op

import (
	"slices"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// pruneDef keeps the largest elements of each group.
var pruneDef = &Def{
	Name: "prune", Family: SparseTensors, Class: ClassNormalization,
	Summary: "of each group of neighbours the n largest by magnitude",
	Foreign: []Foreign{{Names: "to_sparse_semi_structured"}},
	Doc: "The result's format has dense levels and, as the last one, `structured[n, m]`, as `#dm.nm<2:4>` has: of each m neighbours along its dimension the n elements with the largest magnitudes are stored, " +
		"of equal ones those with the smaller coordinates; NaN counts as the largest. The others are dropped. (Mishra et al., *Accelerating Sparse Deep Neural Networks*, arXiv 2104.08378.)\n\n" +
		"`dm.convert_format` to such a format drops nothing: it is an error if a group has more than n elements that are not 0.\n\nCounts no FLOP.",
	Example: `func.func @example(%w: tensor<8x16xf32>, %x: tensor<16x4xf32>) -> tensor<8x4xf32> {
  %s = dm.prune %w : (tensor<8x16xf32>) -> tensor<8x16xf32, #dm.nm<2:4>>
  %y = dm.matmul %s, %x : (tensor<8x16xf32, #dm.nm<2:4>>, tensor<16x4xf32>) -> tensor<8x4xf32>
  return %y : tensor<8x4xf32>
}`,
	Operands: []Param{{Name: "x", Elems: numeric, Doc: "any shape"}},
	Results:  []Param{{Name: "y", Elems: numeric, Doc: "x's shape and element type, the format as written"}},
	Traits:   Pure | Cast,
	Infer: func(o *ir.Op) ([]types.Type, *Problem) {
		if len(o.Results) == 0 || asTensor(o.Results[0].Type) == nil {
			return nil, noResult("prune")
		}
		x := in(o, 0)
		return one(tensor(x, x.Elem, x.Shape...)), nil
	},
	Whole:  "What is kept of a group is known to the device that runs.",
	Kernel: Structure,
}

var pruned = &Sparse{
	Doc: "The result stores n of each m neighbours.", Assembles: true,
	Infer: func(o *ir.Op, dense []types.Type) ([]types.Type, *Problem) {
		r := *asTensor(dense[0])
		if r.Format = out(o, 0).Format; structuredLevel(&r) == nil {
			return nil, problem("DM134", -1, "dm.prune stores n of each m neighbours, and %s does not", &r).help("write the result as %s", structuredExample(&r))
		}
		return one(&r), nil
	},
	lower: func(l *lowering) { l.results[0] = l.largest(l.denseOf(0), l.out[0], false) },
}

// structuredExample is the type of t with a format that stores 2 of 4.
func structuredExample(t *types.Tensor) string {
	if t.Rank() == 2 {
		return types.List([]types.Type{&types.Tensor{Shape: t.Shape, Elem: t.Elem, At: t.At, Format: &types.Format{PosWidth: 32, CrdWidth: 32, Levels: []types.Level{
			{Kind: types.DenseLevel}, {Kind: types.StructuredLevel, Dim: 1, N: 2, M: 4},
		}}}})
	}
	return "#dm.sparse<map = (i, j) -> (i : dense, j : structured[2, 4])>"
}

// structuredLevel is the last level of t if that stores n of each m neighbours and all before it are
// dense; nil: it does not.
func structuredLevel(t *types.Tensor) *types.Level {
	if t.Format == nil {
		return nil
	}
	n := len(t.Format.Levels) - 1
	if last := &t.Format.Levels[n]; last.Kind == types.StructuredLevel && !slices.ContainsFunc(t.Format.Levels[:n], types.Level.HasCoordinates) {
		return last
	}
	return nil
}

// largest are the components of to, with the largest elements of x. whole: it is an error if
// others are not 0.
func (l *lowering) largest(x *ir.Value, to *types.Tensor, whole bool) []*ir.Value {
	e, level := l.entriesOf(to, nil), structuredLevel(to)
	last := len(e.levels()) - 1
	n, m, i32 := dim.Const(level.N), dim.Const(level.M), types.I32
	groups := e.count(last - 1).Mul(dim.Quotient(e.size(last), level.M))
	x = l.Reshape(e.leveled(x), groups, m)
	size := x
	if !x.Elem().IsUnsigned() {
		size = l.Unary("abs", x)
	}
	if whole {
		zero := l.Splat(&types.Tensor{Elem: x.Elem()}, 0)
		most := l.reduce("max", l.reduce("add", l.Convert(l.compared("ne", x, zero), i32), 1), 0)
		l.Op("check.expect_eq", []*ir.Value{most, l.Binary("min", most, l.constant(i32, n))}, named(RoomAttr, types.Str("a group of "+valueName(l.o.Results[0]))))
	}
	kept := &types.Tensor{Shape: []dim.Dim{groups, n}, Elem: i32}
	found := l.Value("top_k", []*ir.Value{size}, append(named("k", types.Int{V: level.N}), named("dim", intAttr(1))...), &types.Tensor{Shape: kept.Shape, Elem: x.Elem()}, kept).Op
	at := l.Value("sort", []*ir.Value{found.Results[1]}, named("dim", intAttr(1)))
	first := l.Value("iota", nil, append(named("dim", intAttr(0)), types.Named{Name: "step", Value: stepOf(m)}), &types.Tensor{Shape: kept.Shape, Elem: i32})
	at = l.Binary("add", at, first) // in x
	values := e.flat(l.take(l.Reshape(x, groups.Mul(m)), l.Reshape(at, groups.Mul(n))))
	at = l.Reshape(at, groups.Mul(n))
	if !isOne(e.count(last - 1)) {
		at = l.Binary("rem", at, l.constant(i32, e.size(last)))
	}
	return []*ir.Value{l.Convert(at, to.Components()[0].Tensor.Elem), values}
}
