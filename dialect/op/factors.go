package op

import (
	"slices"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// Factors is how an op's tensors can be divided over devices together: the dimensions of
// operands and results as products of factors, each of which is divided in all of them or in
// none (the sharding rule of Shardy). An op on pieces of its operands computes the pieces of its
// results.
type Factors struct {
	Sizes []dim.Dim
	Kinds []FactorKind
	// Operands and Results are the factors of each dimension, the outermost first, whose
	// product it is; none for a dimension that is whole on every device, which one of size
	// 1 always is.
	Operands, Results [][][]int
	// Combine is how the parts of a result give the result, where a Reduced factor is
	// divided that the result lacks.
	Combine types.Reduction
	// Even: no element is neutral in a Reduced factor, so that it is divided only into pieces
	// of one size. Otherwise the neutral element is that of Combine, in all operands with
	// the factor.
	Even bool
	// Linear are the sets of operands in which the op is linear together: with parts that
	// sum to these operands, and the others as they are, its results are parts that
	// sum to its results. Of dm.add these are [[0, 1]], of a product [[0], [1]].
	Linear [][]int
	// Complete are the results without an Exchanged factor that are no parts, because the devices
	// complete them.
	Complete []int
	// Together are two factors that may be divided over the same axes, though no piece of one
	// meets all pieces of the other on a device, as queries and keys: devices then exchange
	// pieces of the second. Equal numbers: none are.
	Together [2]int
}

// FactorKind is what it means to divide a factor.
type FactorKind uint8

// The kinds of factors.
const (
	Parallel  FactorKind = iota // pieces are computed independently; all results have the factor
	Reduced                     // results without the factor are partial; what is padding in operands must be neutral
	Fixed                       // never divided: it completes the product of a dimension that has others
	Exchanged                   // of DivisionOf: pieces are computed together with other devices; dimensions with the factor may differ in size
)

// FactorsOf is how o can be divided, nil if it cannot: then every device computes all of it, or what
// it expands to is divided. o has passed the verifier; its sizes may be symbols.
func FactorsOf(o *ir.Op) *Factors { return factorsOf(o, false) }

// DivisionOf is FactorsOf with the factors that the partitioner has an algorithm for, in which
// devices exchange what they need (see Def.Exchange), or draw the numbers that their pieces have in the whole.
func DivisionOf(o *ir.Op) *Factors { return factorsOf(o, true) }

func factorsOf(o *ir.Op, exchange bool) *Factors {
	d := Of(o)
	drawn := exchange && d != nil && d.Maps != nil && d.Is(Random) // the partitioner draws the whole for each device
	if d == nil || d.Whole != "" && !drawn || !Valid(o) || !exchange && Draws(o) {
		return nil
	}
	var f *Factors
	switch {
	case d.Factors != nil:
		f = d.Factors(o)
	case d.Maps != nil:
		if it := d.Maps(o); it != nil {
			f = it.factors()
		}
	}
	if f == nil {
		return nil
	}
	if exchange && d.Exchange != nil {
		d.Exchange(o, f)
	}
	f.tidy(o)
	if d.Linear != nil {
		f.Linear = summable(o, d.Linear(o))
	}
	return f
}

// Pieces is into what pieces a factor is divided.
type Pieces uint8

// The kinds of pieces.
const (
	AnyPieces   Pieces = iota // the last ones may be padded
	EqualPieces               // of one size
	OnePiece                  // it is not divided
)

// Pieces are those of each factor.
func (f *Factors) Pieces() []Pieces {
	out := make([]Pieces, len(f.Sizes))
	for n, k := range f.Kinds {
		switch {
		case k == Fixed:
			out[n] = OnePiece
		case k == Reduced && f.Even:
			out[n] = EqualPieces
		}
	}
	for _, tensors := range [][][][]int{f.Operands, f.Results} {
		for _, dims := range tensors {
			for _, list := range dims {
				for _, n := range list {
					if len(list) > 1 { // padding would stand inside the dimension
						out[n] = max(out[n], EqualPieces)
					}
				}
			}
		}
	}
	return out
}

// newFactors is a rule without factors for o.
func newFactors(o *ir.Op) *Factors {
	f := &Factors{Operands: make([][][]int, len(o.Operands)), Results: make([][][]int, len(o.Results))}
	for i := range o.Operands {
		f.Operands[i] = make([][]int, in(o, i).Rank())
	}
	for i := range o.Results {
		f.Results[i] = make([][]int, out(o, i).Rank())
	}
	return f
}

// factor adds one.
func (f *Factors) factor(size dim.Dim, kind FactorKind) int {
	f.Sizes, f.Kinds = append(f.Sizes, size), append(f.Kinds, kind)
	return len(f.Sizes) - 1
}

// factors is the rule that follows from the loops: each is a factor.
func (it *Iteration) factors() *Factors {
	f := &Factors{Sizes: it.Loops, Kinds: make([]FactorKind, len(it.Loops))}
	for i, reduces := range it.Reduces {
		if reduces {
			f.Kinds[i] = Reduced
		}
	}
	spread := func(maps [][]int) [][][]int {
		out := make([][][]int, len(maps))
		for i, loops := range maps {
			out[i] = make([][]int, len(loops))
			for d, l := range loops {
				if l >= 0 {
					out[i][d] = []int{l}
				}
			}
		}
		return out
	}
	f.Operands, f.Results = spread(it.Operands), spread(it.Results)
	// A diagonal needs the whole of both dimensions, and so does what reads along it.
	for _, loops := range slices.Concat(it.Operands, it.Results) {
		for _, l := range loops {
			if l >= 0 && repeated(loops, l) {
				f.drop(l)
			}
		}
	}
	return f
}

// repeated reports whether loop l stands in loops twice.
func repeated(loops []int, l int) bool {
	n := 0
	for _, k := range loops {
		if k == l {
			n++
		}
	}
	return n > 1
}

// drop makes factor n one that is not divided.
func (f *Factors) drop(n int) { f.Kinds[n] = Fixed }

// tidy leaves dimensions whole that cannot be divided: those of one element, those with
// nothing but Fixed factors, and what gives parts of elements that are not combined.
func (f *Factors) tidy(o *ir.Op) {
	for n, k := range f.Kinds {
		switch {
		case k != Reduced:
		case f.inAll(n):
			f.Kinds[n] = Parallel
		case !f.combines(o, n):
			f.drop(n)
		}
	}
	for _, tensors := range [][][][]int{f.Operands, f.Results} {
		for _, dims := range tensors {
			for d, list := range dims {
				var kept []int
				divides := false
				for _, n := range list {
					if !isOne(f.Sizes[n]) {
						kept, divides = append(kept, n), divides || f.Kinds[n] != Fixed
					}
				}
				if dims[d] = kept; !divides {
					dims[d] = nil
				}
			}
		}
	}
}

// inAll reports whether all results have factor n.
func (f *Factors) inAll(n int) bool {
	return !slices.ContainsFunc(f.Results, func(dims [][]int) bool { return !Divided(dims, n) })
}

// Divided reports whether a tensor with the factors dims has factor n.
func Divided(dims [][]int, n int) bool {
	return slices.ContainsFunc(dims, func(list []int) bool { return slices.Contains(list, n) })
}

// combines reports whether the results that lack factor n have an element type whose
// parts are combined.
func (f *Factors) combines(o *ir.Op, n int) bool {
	for i, dims := range f.Results {
		if !Divided(dims, n) && !slices.Contains(combined(f.Combine), out(o, i).Elem) {
			return false
		}
	}
	return true
}

// combined are the element types of partial values.
func combined(r types.Reduction) []types.Elem {
	if r == types.And || r == types.Or {
		return logical
	}
	return numeric
}

// summable are the sets of operands, and no results of other types, whose parts can be summed.
func summable(o *ir.Op, sets [][]int) [][]int {
	for i := range o.Results {
		if !slices.Contains(numeric, out(o, i).Elem) {
			return nil
		}
	}
	return slices.DeleteFunc(sets, func(set []int) bool {
		return slices.ContainsFunc(set, func(i int) bool { return !slices.Contains(numeric, in(o, i).Elem) })
	})
}
