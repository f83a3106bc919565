package op

import (
	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/types"
)

func controls() []*Def { return []*Def{whileDef, scanDef, ifDef, mapDef} }

var predicate = &types.Tensor{Elem: types.I1, At: types.Placement{Space: types.HBM}}

var whileDef = &Def{
	Name: "while", Family: Control, Class: ClassMovement,
	Summary: "repetition while a condition holds",
	Foreign: []Foreign{{Names: "while_loop fori_loop"}},
	Doc: "The first region takes the carried values and yields one `tensor<i1>`; while it is true, the second takes them and yields the next. The results are the carried values when the condition is false. " +
		"`trip_count` states how often the body runs, for the cost: it does not change what is computed. `max_trips` ends the loop after so many iterations, whatever the condition.\n\n" +
		"The trip count is known where a carried integer starts at a constant, changes by a constant in each iteration, and the condition compares it with a constant: then a device reads no condition back, and `trip_count` is not needed.\n\n" +
		"A loop copies its initial values, unless nothing reads them afterwards, and each iteration copies the values that it yields, unless they are updates in place of the carried ones.\n\n" +
		"The derivative of a loop with a known trip count is that of the `dm.scan` of the same body. With `max_trips` that scan has so many iterations, each in a `dm.if` on the condition. Other loops have none.\n\n" +
		"The cost is that of condition and body times the trip count; where that is unknown it is a formula in the symbol `trips`.",
	Example: `func.func @example(%x: tensor<2xf32>) -> (tensor<i64>, tensor<2xf32>) {
  %zero = dm.constant dense<0> : tensor<i64>
  %n, %y = dm.while %zero, %x, trip_count = 3 : (tensor<i64>, tensor<2xf32>) -> (tensor<i64>, tensor<2xf32>) {
  ^bb0(%i: tensor<i64>, %v: tensor<2xf32>):
    %three = dm.constant dense<3> : tensor<i64>
    %more = dm.compare lt %i, %three : (tensor<i64>, tensor<i64>) -> tensor<i1>
    dm.yield %more : tensor<i1>
  } do {
  ^bb0(%i: tensor<i64>, %v: tensor<2xf32>):
    %one = dm.constant dense<1> : tensor<i64>
    %next = dm.add %i, %one : tensor<i64>
    %w = dm.add %v, %v : tensor<2xf32>
    dm.yield %next, %w : tensor<i64>, tensor<2xf32>
  }
  return %n, %y : tensor<i64>, tensor<2xf32>
}`,
	Operands: []Param{{Name: "init", Elems: storable, Variadic: true, Tuples: true, Doc: "the values carried into the first round, tensors or tuples"}},
	Results:  []Param{{Name: "results", Elems: storable, Variadic: true, Tuples: true, Doc: "the carried values after the last round, of the same types"}},
	Attrs: []AttrDef{
		{Name: "trip_count", Kind: KindInt, Optional: true, Doc: "how often the body runs, where known"},
		{Name: "max_trips", Kind: KindInt, Optional: true, Doc: "the most iterations"},
	},
	Regions: []RegionDef{
		{Name: "condition", Doc: "takes the carried values, yields `tensor<i1>`"},
		{Name: "body", Keyword: "do", Doc: "takes the carried values, yields the next ones"},
	},
	Traits: Pure,
	Infer: func(o *ir.Op) ([]types.Type, *Problem) {
		return ir.Types(o.Operands), nil
	},
	Verify: func(o *ir.Op) *Problem {
		for _, name := range []string{"trip_count", "max_trips"} {
			if n := Int(o, name); n < 0 {
				return attrProblem("DM115", name, "%s = %d is negative", name, n)
			}
		}
		carried := ir.Types(o.Operands)
		if p := regionProblem(o, 0, carried, []types.Type{predicate}); p != nil {
			return p
		}
		return regionProblem(o, 1, carried, carried)
	},
	FLOP: func(o *ir.Op) dim.Dim {
		var sum dim.Dim
		for _, r := range o.Regions {
			sum = sum.Add(bodyFLOP(r))
		}
		return sum
	},
	Kernel: Structure,
}

var ifDef = &Def{
	Name: "if", Family: Control, Class: ClassMovement,
	Summary: "one of two regions by a condition",
	Foreign: []Foreign{{Names: "cond"}},
	Doc: "The first region runs where the condition is true, otherwise the one after `else`; both yield the results and may use values from outside. `else` may be left out where there are no results.\n\n" +
		"The cost is that of the costlier region, and of a copy of the results.",
	Example: `func.func @example(%x: tensor<2xf32>) -> tensor<2xf32> {
  %c = dm.constant dense<true> : tensor<i1>
  %y = dm.if %c : (tensor<i1>) -> tensor<2xf32> {
    %a = dm.exp %x : tensor<2xf32>
    dm.yield %a : tensor<2xf32>
  } else {
    dm.yield %x : tensor<2xf32>
  }
  return %y : tensor<2xf32>
}`,
	Operands: []Param{{Name: "condition", Elems: bools, Doc: "`tensor<i1>`"}},
	Results:  []Param{{Name: "results", Elems: storable, Variadic: true, Tuples: true, Doc: "what the regions yield, tensors or tuples"}},
	Regions: []RegionDef{
		{Name: "then", Doc: "takes nothing, yields the results"},
		{Name: "else", Keyword: "else", Optional: true, Doc: "takes nothing, yields the results"},
	},
	Traits: Pure,
	Infer: func(o *ir.Op) ([]types.Type, *Problem) {
		if p := rankIs(o, 0, 0, "the condition"); p != nil {
			return nil, p.help("reduce it to one i1")
		}
		return yielded(o, 0)
	},
	Verify: func(o *ir.Op) *Problem {
		results, p := yielded(o, 0)
		if p != nil {
			return p
		}
		if !hasRegion(o, 1) {
			if len(results) > 0 {
				return problem("DM127", -1, "if yields %s but has no else", types.List(results)).help("add else { dm.yield … }")
			}
			return nil
		}
		if p := regionProblem(o, 0, nil, results); p != nil {
			return p
		}
		return regionProblem(o, 1, nil, results)
	},
	FLOP: func(o *ir.Op) dim.Dim {
		var most dim.Dim
		for _, r := range o.Regions {
			if n := bodyFLOP(r); n.AtLeast(most) {
				most = n
			}
		}
		return most
	},
	Kernel: Structure,
}

var mapDef = &Def{
	Name: "map", Family: Control, Class: ClassElementwise,
	Summary: "any scalar function of every element",
	Doc: "The region takes one scalar of each operand, which broadcast as in NumPy, and yields one scalar for each result. Inside, the element-wise ops work on bare element types: `dm.add %a, %b : f32`. " +
		"Values from outside are not visible; pass them as operands.\n\nCounts the region's FLOP for each element of the result.",
	Example: `func.func @example(%x: tensor<2x3xf32>, %y: tensor<3xf32>) -> tensor<2x3xf32> {
  %z = dm.map %x, %y : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32> {
  ^bb0(%a: f32, %b: f32):
    %half = dm.constant 0.5 : f32
    %s = dm.add %a, %b : f32
    %m = dm.mul %s, %half : f32
    dm.yield %m : f32
  }
  return %z : tensor<2x3xf32>
}`,
	Operands: []Param{{Name: "operands", Elems: ordered, Variadic: true, Doc: "shapes that broadcast, any element types"}},
	Results:  []Param{{Name: "results", Elems: ordered, Variadic: true, Doc: "the broadcast shape; the element types that the region yields"}},
	Regions:  []RegionDef{{Name: "body", Doc: "one scalar of each operand in, one of each result out"}},
	Traits:   Pure | Pointwise | Isolated,
	Infer: func(o *ir.Op) ([]types.Type, *Problem) {
		if len(o.Operands) == 0 {
			return nil, problem("DM124", -1, "map needs at least one operand")
		}
		shape, p := broadcastAll(o, 0)
		if p != nil {
			return nil, p
		}
		ts, p := yielded(o, 0)
		if p != nil {
			return nil, p
		}
		for i, t := range ts {
			s, ok := t.(types.Scalar)
			if !ok {
				return nil, problem("DM127", -1, "the region yields %s where a scalar is expected", t).help("inside map values are scalars such as f32")
			}
			ts[i] = tensor(in(o, 0), s.Elem, shape...)
		}
		return ts, nil
	},
	Verify: func(o *ir.Op) *Problem {
		want := make([]types.Type, len(o.Operands))
		for i := range want {
			want[i] = types.Scalar{Elem: in(o, i).Elem}
		}
		return regionProblem(o, 0, want, nil)
	},
	FLOP: func(o *ir.Op) dim.Dim {
		if len(o.Regions) == 0 {
			return dim.Dim{}
		}
		return bodyFLOP(o.Regions[0]).Mul(out(o, 0).Elements())
	},
	Maps: pointwiseMaps,
}

// hasRegion reports whether o has region n; one without blocks, as MLIR's generic
// form writes an absent optional region, is none.
func hasRegion(o *ir.Op, n int) bool { return o.Body(n) != nil }

// yielded is the types that region n's terminator yields.
func yielded(o *ir.Op, n int) ([]types.Type, *Problem) {
	t := o.Body(n).Terminator()
	if t == nil || t.Name != Yield {
		return nil, problem("DM127", -1, "region %d does not end in dm.yield", n).help("end it with dm.yield and the values that it returns")
	}
	return ir.Types(t.Operands), nil
}

// regionProblem checks that region n takes the types in and, unless nil, yields the types out.
func regionProblem(o *ir.Op, n int, in, out []types.Type) *Problem {
	b := o.Body(n)
	if b == nil {
		return problem("DM127", -1, "region %d is empty", n).help("end it with dm.yield")
	}
	if args := ir.Types(b.Args); !sameTypes(args, in) {
		return problem("DM126", -1, "the block takes (%s), but the op passes (%s)", types.List(args), types.List(in)).
			help("correct the types of the block's arguments")
	}
	ts, p := yielded(o, n)
	if p == nil && out != nil && !sameTypes(ts, out) {
		p = problem("DM127", -1, "the region yields (%s) where (%s) is expected", types.List(ts), types.List(out))
	}
	return p
}

func sameTypes(a, b []types.Type) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !Compatible(a[i], b[i]) {
			return false
		}
	}
	return true
}
