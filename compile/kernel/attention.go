package kernel

import (
	"fmt"
	"math"
	"slices"

	"dmir/dialect/ir"
	"dmir/dialect/op"
)

// Attention is the geometry of a dm.attention or dm.attention_grad.
type Attention struct {
	Op            *ir.Op
	Heads, Group  int64 // heads in the whole batch; heads that share a key head
	Queries, Keys int64
	Depth, Value  int64 // elements of a row of q and k, and of v
	Scale         float64
	Batch         []int64   // the dimensions of the heads
	Mask          *ir.Value // nil: none
	MaskShape     []int64   // of the rank of Batch, queries and keys together; nil without a mask
	Dropout       float64   // the rate; 0 for none
	Step          *ir.Value // of the dropout; nil: none
	// Of dropout in a part of a whole, the number of its first row of scores there, nil for the whole, and by how much the numbers of
	// the first rows of neighbours along the dimensions of Batch differ.
	First *ir.Value
	Rows  []int64
}

// AttentionOf is the geometry of o. An error is why no target has a kernel for it.
func AttentionOf(o *ir.Op) (a Attention, err error) {
	var shapes [3][]int64
	for i := range shapes {
		s, ok := ShapeOf(o.Operands[i])
		if !ok || len(s) < 2 {
			return a, fmt.Errorf("%s of unknown shape", o.Name)
		}
		shapes[i] = s
	}
	q, k, v := shapes[0], shapes[1], shapes[2]
	n := len(q)
	a = Attention{
		Op: o, Heads: Product(q[:n-2]), Group: 1, Queries: q[n-2], Keys: k[n-2], Depth: q[n-1], Value: v[n-1],
		Scale: 1 / math.Sqrt(float64(q[n-1])), Batch: q[:n-2], Dropout: max(op.Float(o, "dropout"), 0),
	}
	if op.Attr(o, "scale") != nil {
		a.Scale = op.Float(o, "scale")
	}
	if math.IsInf(a.Scale, 0) || math.IsNaN(a.Scale) {
		return a, fmt.Errorf("attention with the scale %g", a.Scale)
	}
	if keyHeads := Product(k[:n-2]); keyHeads > 0 {
		a.Group = a.Heads / keyHeads
	}
	for _, n := range []int64{a.Heads, a.Queries, a.Keys, a.Depth, a.Value} {
		if n < 1 || n > MostOfAttention {
			return a, fmt.Errorf("attention with a dimension of %d", n)
		}
	}
	if a.Dropout > 0 {
		a.Step = op.StepOf(o)
		if drawn := op.NumberingOf(o); drawn.First != nil {
			steps, _ := drawn.Steps()
			a.First, a.Rows = drawn.First, steps[:n-2]
		}
	}
	if i := op.OperandNumber(o, "mask"); i >= 0 {
		a.Mask = o.Operands[i]
		m := shapeOf(a.Mask)
		a.MaskShape = append(slices.Repeat([]int64{1}, n-len(m)), m...)
	}
	return a, nil
}

// MostOfAttention bounds the sizes of attentions that there are kernels for.
const MostOfAttention = 1 << 30
