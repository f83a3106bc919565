package op

import (
	"slices"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// rowFactors is the rule of ops along some dimensions of the first operand, which the results
// have, or have as 1, or lack: the others are divided. Further operands are whole.
func rowFactors(o *ir.Op, along []int) *Factors {
	f := newFactors(o)
	x := in(o, 0)
	at := 0
	for d, size := range x.Shape {
		if slices.Contains(along, d) {
			continue
		}
		n := f.factor(size, Parallel)
		f.Operands[0][d] = []int{n}
		for _, dims := range f.Results {
			to := at
			if len(dims) == x.Rank() {
				to = d
			}
			dims[to] = []int{n}
		}
		at++
	}
	return f
}

// rowsOf is rowFactors along the dimensions that attribute dim or dims names.
func rowsOf(dims func(o *ir.Op) ([]int, bool)) func(o *ir.Op) *Factors {
	return func(o *ir.Op) *Factors {
		along, ok := dims(o)
		if !ok {
			return nil
		}
		return rowFactors(o, along)
	}
}

// crossEntropyFactors are the rows; a sum of losses is partial where they are divided.
func crossEntropyFactors(o *ir.Op) *Factors {
	x := in(o, 0)
	along, ok := Dim(o, "dim", x.Rank())
	if !ok || Str(o, "reduction") == "mean" {
		return nil
	}
	f := newFactors(o)
	kind, row := Parallel, 0
	if Str(o, "reduction") == "sum" {
		kind, f.Even = Reduced, true
	}
	for d, size := range x.Shape {
		if d == along {
			continue
		}
		n := f.factor(size, kind)
		f.Operands[0][d], f.Operands[1][row] = []int{n}, []int{n}
		if kind == Parallel {
			f.Results[0][row] = []int{n}
		}
		row++
	}
	return f
}

// batchNormFactors are the channels and, with given statistics, the other dimensions too.
func batchNormFactors(o *ir.Op) *Factors {
	x := in(o, 0)
	channels, ok := Dim(o, "dim", x.Rank())
	if !ok {
		return nil
	}
	f := newFactors(o)
	for d := range x.Shape {
		if d != channels && len(o.Operands) < 5 {
			continue
		}
		n := f.factor(x.Shape[d], Parallel)
		f.Operands[0][d], f.Results[0][d] = []int{n}, []int{n}
		if d != channels {
			continue
		}
		for _, tensors := range [][][][]int{f.Operands[1:], f.Results[1:]} {
			for _, dims := range tensors {
				dims[0] = []int{n}
			}
		}
	}
	return f
}

// groupNormFactors are the samples, and the groups of the channels.
func groupNormFactors(o *ir.Op) *Factors {
	x := in(o, 0)
	per, ok := x.Shape[1].Div(dim.Const(Int(o, "groups")))
	f := newFactors(o)
	n := f.factor(x.Shape[0], Parallel)
	f.Operands[0][0], f.Results[0][0] = []int{n}, []int{n}
	if !ok {
		return f
	}
	channels := []int{f.factor(dim.Const(Int(o, "groups")), Parallel), f.factor(per, Fixed)}
	f.Operands[0][1], f.Results[0][1] = channels, slices.Clone(channels)
	for i := 1; i < len(f.Operands); i++ {
		f.Operands[i][0] = slices.Clone(channels)
	}
	return f
}

// groupNormPiece has the groups of its channels.
func groupNormPiece(piece, whole *ir.Op) {
	per, ok := in(whole, 0).Shape[1].Div(dim.Const(Int(whole, "groups")))
	if !ok {
		return
	}
	if groups, ok := in(piece, 0).Shape[1].Div(per); ok {
		if n, ok := groups.Int(); ok {
			piece.SetAttr("groups", types.Int{V: n})
		}
	}
}

// reduction is the named reduction that o, a dm.reduce, computes: by its name or by a region of
// one op.
func reduction(o *ir.Op) (types.Reduction, bool) {
	if kind := Str(o, "kind"); kind != "" {
		return types.ReductionOf(kind)
	}
	b := o.Body(0)
	if b == nil || len(b.Ops) != 2 || len(b.Args) != 2 || b.Ops[1].Name != Yield {
		return "", false
	}
	f, last := b.Ops[0], b.Ops[1]
	if len(f.Operands) != 2 || len(f.Results) != 1 || len(last.Operands) != 1 || last.Operands[0] != f.Results[0] {
		return "", false
	}
	x, y := f.Operands[0], f.Operands[1]
	if !(x == b.Args[0] && y == b.Args[1] || x == b.Args[1] && y == b.Args[0]) || !Of(f).Is(Commutative) {
		return "", false
	}
	return types.ReductionOf(f.Name[len(Prefix):])
}

func reduceFactors(o *ir.Op) *Factors {
	it := Of(o).Maps(o)
	if it == nil {
		return nil
	}
	f := it.factors()
	if by, ok := reduction(o); ok {
		f.Combine = by
		return f
	}
	for n, k := range f.Kinds {
		if k == Reduced {
			f.drop(n)
		}
	}
	return f
}
