package kernel

import (
	"fmt"
	"math"

	"dmir/dialect/ir"
	"dmir/dialect/op"
)

// SegmentAttention is the geometry of a dm.segment_attention.
type SegmentAttention struct {
	Op             *ir.Op
	Heads, Group   int64 // heads that share a key head
	Segments       int64
	Rows, Columns  int64 // queries of a segment, keys of an entry
	Entries        int64 // coordinates that there is room for
	Queries, Keys  int64
	Depth, Value   int64
	Scale, Slope   float64   // Slope: of scores below 0
	Adds           bool      // a score is a sum, of depth 1
	Bias           *ir.Value // nil: none
	BiasHead       int64     // from the bias of a head to the next, 0: all have one
	Weights        *ir.Value // of the elements of a sum of any depth, nil: none
	WeightsHead    int64     // as BiasHead
	WeightsQueries int64     // neighbours that have the same
	Leak           float64   // of such elements below 0
	Q, K, V        Matrices
	Y              Matrices
	HasY, HasTotal bool // whether y and lse are stored
}

// Matrices is where the matrices of an operand or a result are in memory, whose rows are contiguous.
type Matrices struct {
	Buf              *ir.Value
	Start, Head, Row int64
}

// SegmentAttentionOf is the geometry of f's op. An error is why no target has a kernel for it.
func SegmentAttentionOf(f *Form) (*SegmentAttention, error) {
	o := f.Main
	q, k, v := shapeOf(o.Operands[0]), shapeOf(o.Operands[1]), shapeOf(o.Operands[2])
	a := &SegmentAttention{
		Op: o, Heads: q[0], Group: q[0] / max(k[0], 1), Segments: shapeOf(o.Operands[3])[0] - 1, Entries: shapeOf(o.Operands[4])[0],
		Queries: q[1], Keys: k[1], Depth: q[2], Value: v[2], Scale: op.Float(o, "scale"), Slope: op.Float(o, "slope"), Adds: op.AddsScores(o),
	}
	a.Rows, a.Columns = op.SegmentBlock(o)
	for _, n := range []int64{a.Heads * a.Queries, a.Keys, a.Depth, a.Value, a.Entries * a.Columns} {
		if n < 1 || n > MostOfAttention {
			return nil, fmt.Errorf("segment_attention with a dimension of %d", n)
		}
	}
	a.Bias, a.Weights, a.Leak = op.SegmentBias(o), op.SegmentWeights(o), op.Float(o, "leak")
	for _, factor := range []float64{a.Scale, a.Slope, a.Leak} {
		if math.IsInf(factor, 0) || math.IsNaN(factor) {
			return nil, fmt.Errorf("segment_attention with the factor %g of scores", factor)
		}
	}
	if a.Bias != nil && shapeOf(a.Bias)[0] > 1 {
		a.BiasHead = a.Entries * a.Rows * a.Columns
	}
	if a.Weights != nil {
		w := shapeOf(a.Weights)
		a.WeightsQueries = a.Queries / max(w[1], 1)
		if w[0] > 1 {
			a.WeightsHead = w[1] * a.Depth
		}
	}
	a.Q, a.K, a.V = f.matrices(0, o.Operands[0]), f.matrices(1, o.Operands[1]), f.matrices(2, o.Operands[2])
	at := len(o.Operands)
	a.Y = f.matrices(at, o.Results[0])
	stored := map[*ir.Value]bool{}
	for _, v := range f.Outputs {
		stored[v] = true
	}
	a.HasY = stored[o.Results[0]] || f.Views[at] != nil
	a.HasTotal = len(o.Results) > 1 && stored[o.Results[1]]
	return a, nil
}

// matrices is how v, which has three dimensions and is number i of the operands and results of f's op, lies.
func (f *Form) matrices(i int, v *ir.Value) Matrices {
	if w := f.Views[i]; w != nil {
		return Matrices{w.Buf, w.Start, w.Steps[0], w.Steps[1]}
	}
	shape := shapeOf(v)
	return Matrices{v, 0, shape[1] * shape[2], shape[2]}
}

// Scores is the number of scores that there is room for.
func (a *SegmentAttention) Scores() int64 { return a.Heads * a.Entries * a.Rows * a.Columns }

// Mean is about how many keys a query sees.
func (a *SegmentAttention) Mean() int64 {
	return (a.Entries*a.Columns + a.Segments - 1) / max(a.Segments, 1)
}
