package kernel

import (
	"fmt"

	"dmir/dialect/op"
)

// A Library is what a target makes of library ops: a function for each family of them.
type Library[S any] struct {
	Attention, AttentionGradient, SegmentAttention, SegmentDenseProduct func(f *Form) (S, error)
	// SegmentProduct and SegmentSample are nil where products are written out.
	SegmentProduct func(f *Form) (S, error)
	SegmentSample  func(f *Form) (S, error)
	// Running joins the elements of each line in order, by a reduction of the kind.
	Running func(f *Form, kind string) S
	// Argmax finds the first of the largest elements of each line.
	Argmax func(f *Form) S
	// Ordered stores the first most elements of each sorted line, and their indices.
	Ordered func(f *Form, most int64, by Order) (S, error)
}

// Order is how the elements of a line are ordered; equal ones in the order of their indices.
type Order struct {
	Falling  bool
	NaNFirst bool // before all numbers, not behind them
}

// Greatest is the order whose first element is the result of dm.argmax.
var Greatest = Order{Falling: true, NaNFirst: true}

// Of is what l makes of f, the form of a library op.
func (l Library[S]) Of(f *Form) (s S, err error) {
	o := f.Main
	if !f.takesRowMajor() {
		return s, fmt.Errorf("%s takes row-major tensors", o.Name)
	}
	switch o.Name {
	case "dm.attention":
		return l.Attention(f)
	case "dm.attention_grad":
		return l.AttentionGradient(f)
	case "dm.segment_attention":
		return l.SegmentAttention(f)
	case "dm.segment_product":
		if l.SegmentProduct != nil {
			return l.SegmentProduct(f)
		}
	case "dm.segment_dense_product":
		return l.SegmentDenseProduct(f)
	case "dm.segment_sample":
		if l.SegmentSample != nil {
			return l.SegmentSample(f)
		}
	case "dm.cumsum":
		return l.Running(f, "add"), nil
	case "dm.cumprod":
		return l.Running(f, "mul"), nil
	case "dm.cummax":
		return l.Running(f, "max"), nil
	case "dm.argmax":
		return l.Argmax(f), nil
	case "dm.sort":
		return l.Ordered(f, LineOf(o).N, Order{Falling: op.Bool(o, "descending")})
	case "dm.top_k":
		largest := op.Bool(o, "largest")
		return l.Ordered(f, op.Int(o, "k"), Order{Falling: largest, NaNFirst: largest})
	}
	return s, fmt.Errorf("there is no kernel for %s", o.Name)
}
