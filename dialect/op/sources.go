package op

import (
	"math"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/types"
)

func sources() []*Def { return []*Def{constantDef, emptyDef, iotaDef, rngDef} }

var constantDef = &Def{
	Name: "constant", Family: Sources, Class: ClassMovement,
	Summary: "a tensor written in the program",
	Foreign: []Foreign{{Names: "full zeros ones const"}},
	Doc: "`dense<…>` lists the elements or, with one value, repeats it. In the scalar regions of `dm.map` and `dm.reduce` the value is a plain number: `dm.constant 2.0 : f32`. " +
		"`#dm.file<\"weights.npz\", \"name\">` takes the elements from a file in NumPy's format in the program's folder, whose array has the type written; of a .npy file it is `#dm.file<\"weights.npy\">`. Cost does not read the file.\n\n" +
		"Moves nothing: the elements are in memory before the program starts, as those of arguments are, and what uses them reads them, inside a kernel as well. One number, repeated or not, is part of the kernel that uses it, which reads nothing of it unless it is a library kernel. Counts no FLOP.",
	Example: `func.func @example() -> tensor<2x2xf32> {
  %c = dm.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  return %c : tensor<2x2xf32>
}`,
	Results: []Param{{Name: "y", Elems: storable, Doc: "the type written"}},
	Attrs:   []AttrDef{{Name: "value", Kind: KindDense, Lead: true, Doc: "the elements, or the file that has them"}},
	Traits:  Pure,
	Factors: constantFactors, Piece: constantPiece,
	Divides: "Every dimension of one number repeated.",
	Traffic: func(*ir.Op) ([]dim.Dim, dim.Dim) { return nil, dim.Dim{} },
	Infer: func(o *ir.Op) ([]types.Type, *Problem) {
		if len(o.Results) == 0 {
			return nil, noResult("constant")
		}
		written := o.Results[0].Type
		d, ok := Attr(o, "value").(*types.Dense)
		if !ok {
			if _, scalar := written.(types.Scalar); scalar {
				return one(written), nil
			}
			return nil, attrProblem("DM115", "value", "the value of %s is not dense<…>", written).help("write dense<%s>", Attr(o, "value"))
		}
		return one(tensor(out(o, 0), d.Type.Elem, d.Type.Shape...)), nil
	},
	Verify: func(o *ir.Op) *Problem {
		for _, d := range out(o, 0).Shape {
			if !d.IsConst() {
				return problem("DM118", -1, "a constant of shape %s has an unknown number of elements", shapeText(out(o, 0).Shape)).
					help("write a scalar constant, which broadcasts, or dm.broadcast it")
			}
		}
		return nil
	},
}

// IsData reports whether o is a constant of several elements, or of elements in a
// file: data in memory. Any other is a number, which is part of a kernel's code.
func IsData(o *ir.Op) bool {
	if o == nil || o.Name != Constant {
		return false
	}
	d, ok := o.Attr("value").(*types.Dense)
	return ok && d.Len() != 1
}

// Loads reports whether a kernel that runs the op of u, or another kernel that holds it, loads from
// memory what u takes of v: anything but a number, which is part of the code of all kernels but those
// of a library.
func Loads(v *ir.Value, u ir.Use) bool {
	if v.Op == nil || v.Op.Name != Constant || IsData(v.Op) {
		return true
	}
	d := Of(u.Op)
	return d != nil && d.Kernel == Library
}

// InFile reports whether o is a constant whose elements are in a file.
func InFile(o *ir.Op) bool {
	if o.Name != Constant {
		return false
	}
	d, ok := o.Attr("value").(*types.Dense)
	return ok && d.File() != nil
}

var emptyDef = &Def{
	Name: "empty", Family: Sources, Class: ClassMovement,
	Summary: "memory for a tensor that updates fill",
	Doc: "A tensor whose elements are not set: what reads an element before an update has written it reads an unknown number. (MLIR's `tensor.empty`.) The reference executor gives zeros. " +
		"`dm.scan` is compiled to a loop that fills its stacked results so.\n\nMoves nothing; counts no FLOP.",
	Example: `func.func @example(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = dm.constant dense<0> : tensor<i64>
  %a = dm.empty : tensor<2x3xf32>
  %y = dm.dynamic_update_slice %a, %x, %0, %0 : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<i64>, tensor<i64>) -> tensor<2x3xf32>
  return %y : tensor<2x3xf32>
}`,
	Results: []Param{{Name: "y", Elems: storable, Doc: "the type written"}},
	Traits:  Pure,
	Factors: everyDim,
	Divides: "Every dimension.",
	Infer: func(o *ir.Op) ([]types.Type, *Problem) {
		if len(o.Results) == 0 {
			return nil, noResult("empty")
		}
		return one(out(o, 0)), nil
	},
	Traffic: func(*ir.Op) ([]dim.Dim, dim.Dim) { return nil, dim.Dim{} },
	Kernel:  Structure,
}

var iotaDef = &Def{
	Name: "iota", Family: Sources, Class: ClassMovement,
	Summary: "numbers counting up along a dimension",
	Foreign: []Foreign{{Names: "arange linspace"}},
	Doc: "Every element is `start + step · i` for its position i along `dim`, from 0; the type is the one written. Of floating-point types the product and the sum are each rounded, to f32 or to a wider type of the result, " +
		"and then once to the result's; integers wrap. n numbers from a to b, evenly spaced, are `start = a, step = (b - a) / (n - 1)`.\n\nWrites its result; inside a kernel it moves nothing. Counts no FLOP.",
	Example: `func.func @example() -> tensor<2x4xi64> {
  %i = dm.iota dim = 1 : tensor<2x4xi64>
  return %i : tensor<2x4xi64>
}`,
	Results: []Param{{Name: "y", Elems: numeric, Doc: "the type written, at least one dimension"}},
	Attrs: []AttrDef{
		{Name: "dim", Kind: KindInt, Default: types.Int{}, Doc: "dimension along which the numbers count"},
		{Name: "start", Kind: KindFloat, Default: types.Float{}, Doc: "the first number"},
		{Name: "step", Kind: KindFloat, Default: types.Float{V: 1}, Doc: "what the next number has more; whole, as `start`, where the result holds integers"},
	},
	Traits:  Pure,
	Factors: iotaFactors,
	Divides: "The dimensions but `dim`.",
	Verify: func(o *ir.Op) *Problem {
		for _, name := range []string{"start", "step"} {
			if v := Float(o, name); out(o, 0).Elem.IsInt() && (v != math.Trunc(v) || math.Abs(v) > 1<<53) {
				return attrProblem("DM115", name, "%s = %g of %s is not a whole number of at most 2^53", name, v, out(o, 0).Elem).
					help("write a whole number, or a floating-point result")
			}
		}
		return nil
	},
	Infer: func(o *ir.Op) ([]types.Type, *Problem) {
		y := out(o, 0)
		if len(o.Results) == 0 {
			return nil, noResult("iota")
		}
		if _, p := dimOf(o, "dim", y.Shape); p != nil {
			return nil, p
		}
		return one(tensor(y, y.Elem, y.Shape...)), nil
	},
}

// Counts reports whether o, a dm.iota, gives positions: from 0, in steps of 1.
func Counts(o *ir.Op) bool { return Float(o, "start") == 0 && Float(o, "step") == 1 }

var rngDef = &Def{
	Name: "rng", Family: Sources, Class: ClassMovement,
	Summary: "random numbers, seeded",
	Foreign: []Foreign{
		{Names: "rand uniform rng_uniform", Form: "uniform"},
		{Names: "randn normal rng_normal", Form: "normal"},
	},
	Doc: "`uniform` numbers are at least `low` and below `high`; `normal` ones have the mean and standard deviation given. The same seed and shape always give the same numbers; the type is the one written. Uniform numbers of floating-point types up to f32 are made of 24 random bits and computed in f32, others of 53 in f64: " +
		"bits of SplitMix64 of `key(seed, 2) + γ · (number + 1)` with the element's number in row-major order; of the 64 for `number / 2` an f32 or smaller one takes the lower or the upper half. " + stepDoc + "\n\n" +
		"Writes its result; inside a kernel it moves nothing. Counts no FLOP.",
	Example: `func.func @example() -> tensor<2x4xf32> {
  %x = dm.rng normal, seed = 7, mean = 1.0, stddev = 0.5 : tensor<2x4xf32>
  return %x : tensor<2x4xf32>
}`,
	Operands: []Param{stepParam},
	Results:  []Param{{Name: "y", Elems: numeric, Doc: "the type written; floating-point for `normal`"}},
	Attrs: []AttrDef{
		{Name: "distribution", Kind: KindKeyword, Lead: true, Enum: []string{"uniform", "normal"}, Doc: "the distribution"},
		{Name: "seed", Kind: KindInt, Default: types.Int{}, Doc: "start of the random sequence"},
		{Name: "low", Kind: KindFloat, Default: types.Float{}, Doc: "least uniform value"},
		{Name: "high", Kind: KindFloat, Default: types.Float{V: 1}, Doc: "uniform values are below it"},
		{Name: "mean", Kind: KindFloat, Default: types.Float{}, Doc: "mean of normal values"},
		{Name: "stddev", Kind: KindFloat, Default: types.Float{V: 1}, Doc: "standard deviation of normal values"},
	},
	Traits:     Pure | Random,
	Whole:      "a number depends on the place of its element in the whole tensor, which the partitioner gives to each device.",
	Steps:      12,
	Derivative: flat("The numbers depend on no floating-point operand: no gradient flows."),
	Infer: func(o *ir.Op) ([]types.Type, *Problem) {
		y := out(o, 0)
		if len(o.Results) == 0 {
			return nil, noResult("rng")
		}
		return one(tensor(y, y.Elem, y.Shape...)), nil
	},
	Verify: func(o *ir.Op) *Problem {
		if p := stepProblem(o); p != nil {
			return p
		}
		y := out(o, 0)
		if Str(o, "distribution") == "normal" {
			if !y.Elem.IsFloat() {
				return problem("DM128", -1, "normally distributed numbers are floating-point, not %s", y.Elem).help("convert them with dm.convert")
			}
			if s := Float(o, "stddev"); !(s >= 0) {
				return attrProblem("DM115", "stddev", "stddev = %g is negative", s)
			}
			return nil
		}
		if lo, hi := Float(o, "low"), Float(o, "high"); !(lo < hi) {
			return attrProblem("DM115", "high", "low = %g is not below high = %g", lo, hi)
		}
		return nil
	},
}
