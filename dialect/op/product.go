package op

import (
	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// Product is a contraction of two operands as a batch of products of matrices: Rows × Depth by Depth × Cols. Elements of a
// row of the result lie side by side, as far as its innermost dimension has them.
type Product struct {
	Batch, Rows, Cols, Depth dim.Dim
	// Turned: the rows are those of the second operand.
	Turned bool
	Window *Moving // of a convolution
	// Groups is how many matrices divide the rows, each of which meets one; the batch is 1 then.
	Groups dim.Dim
	// Phases is how many products the outputs of each group of channels are divided into, where they are: the batch has them all,
	// and the depth is that of all of them together, Channels for each tap of the window.
	Phases   int64
	Channels dim.Dim
	// Structured: the first operand has two of each four elements along the depth.
	Structured bool
	// Divided is the same of a convolution whose image has zeros between its elements, in phases; nil of others.
	Divided *Product
}

// Product is the product of w's blocks, or of what is 2:4, as ProductOf has it.
func (w *Written) Product() (p Product, ok bool) {
	for _, g := range w.ops {
		if Of(g) == groupedMatmulDef {
			return groupedProduct(g), true
		}
		if IsStructured(g) {
			return structuredProduct(g)
		}
	}
	return p, false
}

// ProductOf is o as products of matrices; ok is false of what is no contraction of two operands, or one of sparse tensors without blocks that are matrices.
func ProductOf(o *ir.Op) (p Product, ok bool) {
	d := Of(o)
	if d != nil && d.Sparse != nil && IsSparse(o) {
		return WriteOut(o).Product()
	}
	if d == groupedMatmulDef && Valid(o) {
		return groupedProduct(o), true
	}
	if IsStructured(o) && Valid(o) {
		return structuredProduct(o)
	}
	if d == nil || d.Class != ClassContraction || len(o.Operands) != 2 || len(o.Results) != 1 || !Valid(o) {
		return p, false
	}
	if d == convolutionDef {
		return convolutionProduct(o)
	}
	if d.Maps == nil {
		return p, false
	}
	it := d.Maps(o)
	if it == nil {
		return p, false
	}
	one := dim.Const(1)
	p = Product{Batch: one, Rows: one, Cols: one, Depth: one}
	var used [3]uint64 // the loops of both operands and of the result
	for k, maps := range [3][][]int{it.Operands[:1], it.Operands[1:], it.Results} {
		for _, loop := range maps[0] {
			if loop >= 0 && loop < 64 {
				used[k] |= 1 << loop
			}
		}
	}
	for i, n := range it.Loops {
		bit := uint64(1) << min(i, 63)
		a, b := used[0]&bit != 0, used[1]&bit != 0
		switch out := used[2]&bit != 0; {
		case !out:
			p.Depth = p.Depth.Mul(n)
		case a && b:
			p.Batch = p.Batch.Mul(n)
		case b:
			p.Cols = p.Cols.Mul(n)
		default:
			p.Rows = p.Rows.Mul(n)
		}
	}
	if dims, last := it.Results[0], innermost(out(o, 0)); last >= 0 && last < len(dims) {
		if bit := uint64(1) << min(max(dims[last], 0), 63); used[0]&bit != 0 && used[1]&bit == 0 {
			p.turn()
		}
	}
	return p, true
}

// turn makes columns of the rows.
func (p *Product) turn() { p.Rows, p.Cols, p.Turned = p.Cols, p.Rows, !p.Turned }

// innermost is the dimension of t whose elements lie side by side; -1 of a scalar.
func innermost(t *types.Tensor) int {
	if n := len(t.At.Order); n > 0 {
		return t.At.Order[n-1]
	}
	return t.Rank() - 1
}

// Moving is the window of a convolution.
type Moving struct {
	Images         dim.Dim
	Lines, Outputs dim.Dim // of an image, and of a line
	Taps           int64
	Reach          int64   // elements of a line behind that of an output that its taps meet, where outputs are neighbours
	Span           dim.Dim // the same of all dimensions: how many outputs lie between the first and the last that an element is for
	Planes         int64   // into which steps of several elements divide an image
}

// convolutionProduct is a convolution as the product of its filters and the windows of its images, group by group.
func convolutionProduct(o *ir.Op) (p Product, ok bool) {
	x, w, y := in(o, 0), in(o, 1), out(o, 0)
	groups := Int(o, "feature_group_count")
	if x.Rank() < 3 || w.Rank() != x.Rank() || groups < 1 {
		return p, false
	}
	win, problem := convolutionWindow(o)
	if problem != nil {
		return p, false
	}
	spatial := y.Shape[2:]
	last := len(spatial) - 1
	m := &Moving{
		Images: y.Shape[0], Lines: dim.Prod(spatial[:last]...), Outputs: spatial[last], Taps: 1, Planes: 1,
		Reach: (win.Size[last] - 1) * win.Dilation[last] / win.Stride[last],
	}
	for d, n := range win.Size {
		m.Taps *= n
		m.Planes *= min(n, win.Stride[d])
		m.Span = m.Span.Mul(spatial[d]).Add(dim.Const((n - 1) * win.Dilation[d] / win.Stride[d]))
	}
	p = Product{
		Batch:  dim.Const(groups),
		Rows:   dim.Prod(append([]dim.Dim{y.Shape[0]}, y.Shape[2:]...)...),
		Cols:   dim.Quotient(w.Shape[0], groups),
		Depth:  dim.Prod(w.Shape[1:]...),
		Window: m,
	}
	if innermost(y) != 1 {
		p.turn()
	}
	if f := win.phases(); f != nil {
		p.Divided = p.phased(f, win, *m, spatial, y.Shape[0], w.Shape[1])
	}
	return p, true
}
