package op

import (
	"math"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// The running sums, products and maxima.

var (
	exclusiveAttr = AttrDef{Name: "exclusive", Kind: KindBool, Default: types.Bool(false), Doc: "an element is not part of its own result"}
	reverseAttr   = AttrDef{Name: "reverse", Kind: KindBool, Default: types.Bool(false), Doc: "from the last element to the first"}
)

// betweenElements counts one FLOP less than elements for each row along dim.
func betweenElements(o *ir.Op) dim.Dim {
	x := in(o, 0)
	d, ok := Dim(o, "dim", x.Rank())
	if !ok || !x.Elem.IsFloat() {
		return dim.Dim{}
	}
	return x.Elements().Sub(dim.Prod(without(x.Shape, d)...))
}

var cumsumDef = &Def{
	Name: "cumsum", Family: Normalization, Class: ClassNormalization,
	Summary: "running sum along a dimension",
	Foreign: []Foreign{{Names: "cumulative_sum"}},
	Doc: "`y[i] = Σ x[j]` for `j ≤ i` along `dim`; for `j < i` with `exclusive`, from the back with `reverse`. Half precision is accumulated in f32 unless `accumulate = f16`.\n\n" +
		"Counts one addition less than elements for each row; integers count none.",
	Example: `func.func @example(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %y = dm.cumsum %x, dim = 1 : tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}`,
	Operands: []Param{{Name: "x", Elems: numeric, Doc: "at least one dimension"}},
	Results:  []Param{{Name: "y", Elems: numeric, Doc: "x's type"}},
	Attrs: []AttrDef{
		lastDimAttr("dimension along which the sum runs"),
		exclusiveAttr, reverseAttr,
		accumulateAttr,
	},
	Traits:  Pure,
	Factors: rowsOf(reducedDim), Linear: linearIn([]int{0}),
	Divides:    "The dimensions but `dim`.",
	Exchange:   exchangedRuns,
	Exchanges:  "`dim`: devices exchange the totals of their pieces.",
	Infer:      inferAlongDim,
	Verify:     accumulateProblem,
	FLOP:       betweenElements,
	Kernel:     Library,
	Derivative: cumsumDerivative,
}

var cumprodDef = &Def{
	Name: "cumprod", Family: Normalization, Class: ClassNormalization,
	Summary: "running product along a dimension",
	Foreign: []Foreign{{Names: "cumulative_prod"}},
	Doc: "`y[i] = Π x[j]` for `j ≤ i` along `dim`; for `j < i` with `exclusive`, from the back with `reverse`. " + wideDoc +
		"\n\nCounts one multiplication less than elements for each row; integers count none.",
	Example: `func.func @example(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %y = dm.cumprod %x, dim = 1 : tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}`,
	Operands:   []Param{{Name: "x", Elems: numeric, Doc: "at least one dimension"}},
	Results:    []Param{{Name: "y", Elems: numeric, Doc: "x's type"}},
	Attrs:      []AttrDef{lastDimAttr("dimension along which the product runs"), exclusiveAttr, reverseAttr},
	Traits:     Pure,
	Factors:    rowsOf(reducedDim),
	Divides:    "The dimensions but `dim`.",
	Exchange:   exchangedRuns,
	Exchanges:  "`dim`: devices exchange the totals of their pieces.",
	Infer:      inferAlongDim,
	FLOP:       betweenElements,
	Kernel:     Library,
	Derivative: cumprodDerivative,
}

var cummaxDef = &Def{
	Name: "cummax", Family: Normalization, Class: ClassNormalization,
	Summary: "running maximum along a dimension",
	Foreign: []Foreign{{Names: "cumulative_max"}},
	Doc: "`y[i] = max x[j]` for `j ≤ i` along `dim`; for `j < i` with `exclusive` (the least value for the first), from the back with `reverse`; NaN from the first NaN on." +
		"\n\nCounts no FLOP.",
	Example: `func.func @example(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %y = dm.cummax %x, dim = 1 : tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}`,
	Operands:   []Param{{Name: "x", Elems: numeric, Doc: "at least one dimension"}},
	Results:    []Param{{Name: "y", Elems: numeric, Doc: "x's type"}},
	Attrs:      []AttrDef{lastDimAttr("dimension along which the maximum runs"), exclusiveAttr, reverseAttr},
	Traits:     Pure,
	Factors:    rowsOf(reducedDim),
	Divides:    "The dimensions but `dim`.",
	Exchange:   exchangedRuns,
	Exchanges:  "`dim`: devices exchange the totals of their pieces.",
	Infer:      inferAlongDim,
	Kernel:     Library,
	Derivative: cummaxDerivative,
}

var cumsumDerivative = &Derivative{
	Doc: "`dx` is the running sum of dy from the other end.",
	rule: func(g *backward) {
		g.give(0, g.running("cumsum", g.dy[0], Bool(g.o, "exclusive"), !Bool(g.o, "reverse")))
	},
}

var cumprodDerivative = &Derivative{
	Doc:  "`dx[i] = Σ dy[j] · y[j] / x[i]` over the products that x[i] is part of; at the first zero of a row the products of the other elements, and 0 behind it.",
	rule: cumprodRule,
}

var cummaxDerivative = &Derivative{
	Doc:  "Every element of dy goes to the element that its maximum comes from, of equal ones to the first.",
	rule: cummaxRule,
}

// running is the op called name of v along the dimension of o.
func (g *backward) running(name string, v *ir.Value, exclusive, reverse bool) *ir.Value {
	return g.Value(name, []*ir.Value{v}, []types.Named{
		{Name: "dim", Value: types.Int{V: Int(g.o, "dim")}},
		{Name: "exclusive", Value: types.Bool(exclusive)},
		{Name: "reverse", Value: types.Bool(reverse)},
	})
}

// cumprodRule divides the sums over later products by x. At the first zero, where
// this is not possible, it takes the sums over the products with 1 in its place.
func cumprodRule(g *backward) {
	exclusive, reverse := Bool(g.o, "exclusive"), Bool(g.o, "reverse")
	x, y, dy := g.wide(g.x(0)), g.wide(g.y(0)), g.wide(g.dy[0])
	one := g.number(x, 1)
	sums := func(products *ir.Value) *ir.Value {
		return g.running("cumsum", g.mul(dy, products), exclusive, !reverse)
	}
	zero := g.compare("eq", x, g.number(x, 0))
	zeros := g.running("cumsum", g.Convert(zero, types.I32), false, reverse)
	first := g.Binary("and", zero, g.compare("eq", zeros, g.number(zeros, 1)))
	without := g.running("cumprod", g.choose(first, one, x), exclusive, reverse)
	g.give(0, g.choose(first, sums(without), g.div(sums(y), g.choose(zero, one, x))))
}

// cummaxRule adds dy up at the positions where the maximum rises. Positions count in the
// order in which the maximum runs.
func cummaxRule(g *backward) {
	xt := in(g.o, 0)
	d, _ := Dim(g.o, "dim", xt.Rank())
	n, ok := xt.Shape[d].Int()
	if !ok || n == 0 {
		g.failed = true
		return
	}
	exclusive, reverse := Bool(g.o, "exclusive"), Bool(g.o, "reverse")
	forward := func(v *ir.Value) *ir.Value {
		if !reverse {
			return v
		}
		return g.Value("reverse", []*ir.Value{v}, named("dims", IntList(d)))
	}
	// shifted is v one position later, behind what stands for nothing.
	shifted := func(v *ir.Value, nothing float64) *ir.Value {
		low, zeros := make([]int, xt.Rank()), make([]int, xt.Rank())
		low[d] = 1
		head := g.part(v, []int{d}, []int{0}, []int{int(n - 1)}, []int{1})
		return g.Value("pad", []*ir.Value{head, g.number(v, nothing)}, []types.Named{{Name: "low", Value: IntList(low...)}, {Name: "high", Value: IntList(zeros...)}})
	}
	x, y, dy := forward(g.x(0)), forward(g.y(0)), forward(g.wide(g.dy[0]))
	before := y
	if !exclusive {
		before = shifted(y, math.Inf(-1))
	}
	place := g.count(tensor(xt, types.I32, xt.Shape...), d)
	rises := g.choose(g.compare("gt", x, before), place, g.number(place, 0))
	at := g.Value("cummax", []*ir.Value{rises}, named("dim", intAttr(d)))
	if exclusive { // the first of dy belongs to no element
		at = shifted(at, 0)
		dy = g.choose(g.compare("gt", place, g.number(place, 0)), dy, g.number(dy, 0))
	}
	order := append(append(identity(xt.Rank())[:d:d], identity(xt.Rank())[d+1:]...), d)
	last := xt.Rank() - 1
	dy = g.Transpose(dy, order...)
	none := g.zeros(asTensor(dy.Type))
	g.give(0, forward(g.Transpose(g.scatter("add", none, g.Transpose(at, order...), dy, last, last), Inverse(order)...)))
}
