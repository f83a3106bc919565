package op

import (
	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/types"
)

var rollDef = &Def{
	Name: "roll", Family: Movement, Class: ClassMovement,
	Summary: "elements moved along dimensions, those behind the end to the front",
	Doc: "`y[…, i, …] = x[…, (i - shift) mod n, …]` for each dimension of n elements in `dims` and its entry in `shifts`, which may be negative, as in PyTorch and NumPy.\n\n" +
		"Reads and writes everything; counts no FLOP.",
	Example: `func.func @example(%x: tensor<2x5xf32>) -> tensor<2x5xf32> {
  %y = dm.roll %x, shifts = [2], dims = [1] : tensor<2x5xf32>
  return %y : tensor<2x5xf32>
}`,
	Operands: []Param{{Name: "x", Elems: storable, Doc: "any shape"}},
	Results:  []Param{{Name: "y", Elems: storable, Doc: "x's type"}},
	Attrs: []AttrDef{
		{Name: "shifts", Kind: KindInts, Doc: "how far the elements move, an entry for each of `dims`"},
		{Name: "dims", Kind: KindInts, Optional: true, Doc: "dimensions along which they move; all where absent"},
	},
	Traits:  Pure,
	Factors: besides("dims"), Linear: linearIn([]int{0}),
	Divides:  "The dimensions that `dims` does not name.",
	Exchange: exchangedDims, Exchanges: "`dims`, if evenly: devices get the elements that they lack from others.",
	Infer: func(o *ir.Op) ([]types.Type, *Problem) {
		x := in(o, 0)
		dims, p := dimsOf(o, "dims", x.Shape)
		if p != nil {
			return nil, p
		}
		if _, p := listOf(o, "shifts", len(dims), 0, minShift); p != nil {
			return nil, p
		}
		return one(tensor(x, x.Elem, x.Shape...)), nil
	},
	Expand: expandRoll,
	Orders: AlikeOrders,
	Derivative: &Derivative{
		Doc: "`dx` is dy moved back.",
		rule: func(g *backward) {
			attrs := []types.Named{{Name: "shifts", Value: int64sAttr(negated(Ints(g.o, "shifts")))}}
			if a := g.o.Attr("dims"); a != nil {
				attrs = append(attrs, types.Named{Name: "dims", Value: a})
			}
			g.give(0, g.Value("roll", g.dy[:1], attrs))
		},
	},
}

// minShift is the least shift, whose negative is a shift too.
const minShift = -1 << 62

func negated(ns []int64) []int64 {
	r := make([]int64, len(ns))
	for i, n := range ns {
		r[i] = -n
	}
	return r
}

// expandRoll puts the end of each dimension before the rest.
func expandRoll(b *ir.Builder, o *ir.Op) []*ir.Value {
	x := in(o, 0)
	dims, ok := Dims(o, "dims", x.Rank())
	if !ok {
		return nil
	}
	w, v := NewBuilder(b, nil), o.Operands[0]
	for i, shift := range Ints(o, "shifts") {
		n, known := x.Shape[dims[i]].Int()
		if shift == 0 || known && n == 0 {
			continue
		}
		if !known {
			w.failed = true
			break
		}
		cut := int(((-shift)%n + n) % n)
		if cut == 0 {
			continue
		}
		part := func(from, to int) *ir.Value { return w.part(v, []int{dims[i]}, []int{from}, []int{to}, []int{1}) }
		v = w.Value("concatenate", []*ir.Value{part(cut, int(n)), part(0, cut)}, named("dim", intAttr(dims[i])))
	}
	return w.done(v)
}

var oneHotDef = &Def{
	Name: "one_hot", Family: Movement, Class: ClassMovement,
	Summary: "1 at each index along a new dimension, else 0",
	Doc: "The result has a new dimension of `classes` elements at `dim`: 1 at the place that the index names and 0 elsewhere, everywhere for an index below 0 or above the last class. " +
		"The element type is that of the result as written.\n\nReads the indices and writes the result; counts no FLOP.",
	Example: `func.func @example(%i: tensor<3xi64>) -> tensor<3x5xf32> {
  %y = dm.one_hot %i, classes = 5 : (tensor<3xi64>) -> tensor<3x5xf32>
  return %y : tensor<3x5xf32>
}`,
	Operands: []Param{{Name: "indices", Elems: indexes, Doc: "any shape"}},
	Results:  []Param{{Name: "y", Elems: ordered, Doc: "the indices' shape with `classes` at `dim`, any element type"}},
	Attrs: []AttrDef{
		{Name: "classes", Kind: KindInt, Doc: "size of the new dimension, at least 1"},
		lastDimAttr("where the new dimension is in the result"),
	},
	Traits:   Pure | Cast,
	Factors:  oneHotFactors,
	Divides:  "The dimensions of the indices.",
	Exchange: exchangedClasses, Exchanges: "The classes, of which each device compares its own.",
	Infer: func(o *ir.Op) ([]types.Type, *Problem) {
		x, elem := in(o, 0), out(o, 0).Elem
		if elem == types.InvalidElem {
			elem = types.F32
		}
		n := Int(o, "classes")
		if n < 1 {
			return nil, attrProblem("DM115", "classes", "classes = %d; the minimum is 1", n)
		}
		shape := append(append([]dim.Dim{}, x.Shape...), dim.Const(1))
		d, p := dimOf(o, "dim", shape)
		if p != nil {
			return nil, p
		}
		shape = append(append(append([]dim.Dim{}, x.Shape[:d]...), dim.Const(n)), x.Shape[d:]...)
		return one(tensor(x, elem, shape...)), nil
	},
	Expand: func(b *ir.Builder, o *ir.Op) []*ir.Value {
		y := out(o, 0)
		d, ok := Dim(o, "dim", y.Rank())
		if !ok {
			return nil
		}
		w := NewBuilder(b, nil)
		at := w.Reshape(o.Operands[0], replaced(y.Shape, d, dim.Const(1))...)
		class := w.count(tensor(y, in(o, 0).Elem, y.Shape...), d)
		return w.done(w.Convert(w.compare("eq", class, at), y.Elem))
	},
	Derivative: flat("None: no gradient flows to indices."),
}
