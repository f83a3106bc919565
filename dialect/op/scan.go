package op

import (
	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/types"
)

var scanDef = &Def{
	Name: "scan", Family: Control, Class: ClassMovement,
	Summary: "a loop over the first dimension of tensors",
	Doc: "The first `carries` operands are carried from iteration to iteration; the others are stacks: iteration i takes element i of their first dimension. " +
		"The region takes the carried values and these slices, and yields the next carried values and what iteration i adds to each stacked result. " +
		"The results are the carried values after the last iteration, then the stacked ones. Values from outside are visible; they are the same in every iteration. (`jax.lax.scan`; ONNX's Scan.)\n\n" +
		"All stacks have the same size, which is the number of iterations; without stacks `length` states it. With `reverse = true` the iterations run from the last element to the first, and stacked results are filled in that order.\n\n" +
		"A device runs it without reading anything back: slices are read, and elements of the results written, in place. Carried values are copied from iteration to iteration, unless they are updates in place.\n\n" +
		"The derivative is a scan in the other direction. Its iterations compute the region again, from the carried values that each began with and, with `save = contractions`, from the results of those contractions that take longer to compute again than to write and read (outer products do not); " +
		"the scan itself then stacks both. Gradients of values from outside are summed over the iterations.\n\n" +
		"The cost is that of the region times the number of iterations.",
	Example: `func.func @example(%h: tensor<2xf32>, %xs: tensor<3x2xf32>) -> (tensor<2xf32>, tensor<3x2xf32>) {
  %last, %ys = dm.scan %h, %xs, carries = 1 : (tensor<2xf32>, tensor<3x2xf32>) -> (tensor<2xf32>, tensor<3x2xf32>) {
  ^bb0(%c: tensor<2xf32>, %x: tensor<2xf32>):
    %next = dm.max %c, %x : tensor<2xf32>
    dm.yield %next, %next : tensor<2xf32>, tensor<2xf32>
  }
  return %last, %ys : tensor<2xf32>, tensor<3x2xf32>
}`,
	Operands: []Param{{Name: "operands", Elems: storable, Variadic: true, Tuples: true, Doc: "the values carried into the first iteration, then the stacks; tensors or tuples"}},
	Results:  []Param{{Name: "results", Elems: storable, Variadic: true, Tuples: true, Doc: "the carried values after the last iteration, then what the iterations yield, stacked"}},
	Attrs: []AttrDef{
		{Name: "carries", Kind: KindInt, Doc: "how many of the operands, the first ones, are carried"},
		{Name: "length", Kind: KindInt, Optional: true, Doc: "the number of iterations; required without stacks"},
		{Name: "reverse", Kind: KindBool, Default: types.Bool(false), Doc: "from the last element to the first"},
		{Name: "save", Kind: KindKeyword, Enum: []string{"contractions", "carries"}, Default: types.Keyword("contractions"), Doc: "what is kept for the derivative: carried values and results of contractions, or carried values alone, which takes the least memory and computes contractions again"},
	},
	Regions: []RegionDef{{Name: "body", Doc: "takes the carried values and a slice of each stack, yields the next carried values and the elements of the stacked results"}},
	Traits:  Pure,
	Infer:   inferScan,
	Verify:  verifyScan,
	FLOP: func(o *ir.Op) dim.Dim {
		n, ok := Trips(o)
		if !ok || len(o.Regions) == 0 {
			return dim.Dim{}
		}
		return bodyFLOP(o.Regions[0]).Mul(n)
	},
	Kernel: Structure,
}

// Carries is how many values o, a dm.while or a dm.scan, carries: its first
// operands, results and arguments of its body.
func Carries(o *ir.Op) int {
	if o.Name == Scan {
		return int(max(0, min(Int(o, "carries"), int64(len(o.Operands)))))
	}
	return len(o.Operands)
}

// LoopBody is the block that o, a dm.while or a dm.scan, repeats; nil where it has
// none, and for other ops.
func LoopBody(o *ir.Op) *ir.Block {
	switch o.Name {
	case While:
		return o.Body(1)
	case Scan:
		return o.Body(0)
	}
	return nil
}

// SliceOf is the type of an element of the first dimension of t.
func SliceOf(t *types.Tensor) *types.Tensor { return t.With(t.Shape[1:]...) }

// StackOf is the type of n tensors of type t along a new first dimension.
func StackOf(n dim.Dim, t *types.Tensor) *types.Tensor {
	return t.With(append([]dim.Dim{n}, t.Shape...)...)
}

// scanLength is the number of iterations of a scan.
func scanLength(o *ir.Op) (dim.Dim, *Problem) {
	c := Int(o, "carries")
	if c < 0 || c > int64(len(o.Operands)) {
		return dim.Dim{}, attrProblem("DM115", "carries", "carries = %d, but scan has %d operands", c, len(o.Operands)).
			help("it is how many of the operands, the first ones, are carried")
	}
	var n dim.Dim
	stated := Attr(o, "length") != nil
	if stated {
		if Int(o, "length") < 0 {
			return n, attrProblem("DM115", "length", "length = %d is negative", Int(o, "length"))
		}
		n = dim.Const(Int(o, "length"))
	}
	first := true
	for i := int(c); i < len(o.Operands); i++ {
		for _, m := range types.Members(o.Operands[i].Type) {
			if m.Tensor.Rank() == 0 {
				return n, problem("DM117", i, "a stack needs at least one dimension, but is %s", m.Tensor).
					help("scan slices the operands behind the first %d; raise carries to carry it", c)
			}
			size := m.Tensor.Shape[0]
			switch {
			case first && !stated:
				n = size
			case !sameDim(n, size):
				return n, problem("DM122", i, "scan runs %s times, but the first dimension of %s has size %s", dimText(n), m.Tensor, dimText(size)).
					help("all stacks have the same first dimension, and length is its size")
			default:
				n = known(n, size)
			}
			first = false
		}
	}
	if !stated && int(c) == len(o.Operands) {
		return n, problem("DM115", -1, "scan has no stack, so its number of iterations is unknown").help("add length = …, or lower carries")
	}
	return n, nil
}

func inferScan(o *ir.Op) ([]types.Type, *Problem) {
	n, p := scanLength(o)
	if p != nil {
		return nil, p
	}
	ts, p := yielded(o, 0)
	if p != nil {
		return nil, p
	}
	c := Carries(o)
	if len(ts) < c {
		return nil, problem("DM127", -1, "the region yields %d values, but scan carries %d", len(ts), c).
			help("yield the next carried values first, then what is stacked")
	}
	for i := range ts {
		if i < c {
			ts[i] = o.Operands[i].Type
			continue
		}
		if len(types.Members(ts[i])) == 0 {
			return nil, problem("DM127", -1, "the region yields %s where a tensor is expected", ts[i])
		}
		ts[i] = types.Each(ts[i], func(m types.Member) types.Type { return StackOf(n, m.Tensor) })
	}
	return ts, nil
}

func verifyScan(o *ir.Op) *Problem {
	c := Carries(o)
	passed := ir.Types(o.Operands)
	for i := c; i < len(passed); i++ {
		passed[i] = types.Each(passed[i], func(m types.Member) types.Type { return SliceOf(m.Tensor) })
	}
	next := ir.Types(o.Operands[:c])
	if ts, p := yielded(o, 0); p == nil && len(ts) >= c {
		next = append(next, ts[c:]...)
	}
	return regionProblem(o, 0, passed, next)
}

// TripsSymbol is the symbol that stands for the number of iterations of a while
// whose trip count is neither known nor written.
const TripsSymbol = "trips"

// Trips is how often the body of o, a dm.while or a dm.scan, runs: exactly where
// that follows from the text, else what trip_count states or max_trips allows.
// ok is false where it is unknown, and of other ops.
func Trips(o *ir.Op) (n dim.Dim, ok bool) {
	switch o.Name {
	case Scan:
		n, p := scanLength(o)
		return n, p == nil
	case While:
		if n, ok := TripCount(o); ok {
			return dim.Const(n), true
		}
		for _, name := range []string{"trip_count", "max_trips"} {
			if n := Int(o, name); Attr(o, name) != nil && n >= 0 {
				return dim.Const(n), true
			}
		}
	}
	return dim.Dim{}, false
}
