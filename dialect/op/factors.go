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
	// Operands and Results are the factors of each dimension, the outermost first; none for
	// a dimension that is whole on every device, which one of size 1 always is.
	Operands, Results [][][]int
	// Combine is how the parts of a result give the result, where a Reduced factor is
	// divided that the result lacks.
	Combine types.Reduction
	// Linear are the sets of operands in which the op is linear together: with parts that
	// sum to these operands, and the others as they are, its results are parts that
	// sum to its results. Of dm.add these are [[0, 1]], of a product [[0], [1]].
	Linear [][]int
}

// FactorKind is what it means to divide a factor.
type FactorKind uint8

// The kinds of factors.
const (
	Parallel FactorKind = iota // pieces are computed independently; results have the factor
	Reduced                    // results without the factor are partial; what is padding in operands must be neutral
)

// FactorsOf is how o can be divided, nil if it cannot: then every device computes all of it, or what
// it expands to is divided. o is valid, and its sizes may be symbols.
func FactorsOf(o *ir.Op) *Factors {
	d := Of(o)
	switch {
	case d == nil || !Valid(o):
		return nil
	case d.Factors != nil:
		return d.Factors(o)
	case d.Maps != nil:
		if it := d.Maps(o); it != nil {
			return it.factors(linear(o))
		}
	}
	return nil
}

// factors is the rule that follows from the loops: each is a factor.
func (it *Iteration) factors(linear [][]int) *Factors {
	f := &Factors{Sizes: it.Loops, Kinds: make([]FactorKind, len(it.Loops)), Linear: linear}
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
				if l >= 0 && !repeated(loops, l) {
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

// drop takes factor n out of all dimensions, so that it stays whole.
func (f *Factors) drop(n int) {
	for _, tensors := range [][][][]int{f.Operands, f.Results} {
		for _, dims := range tensors {
			for d, list := range dims {
				if slices.Contains(list, n) {
					dims[d] = nil
				}
			}
		}
	}
}

// linear are the sets of operands in which an op with Maps is linear.
func linear(o *ir.Op) [][]int {
	if l := Of(o).Linear; l != nil {
		return l(o)
	}
	return nil
}
