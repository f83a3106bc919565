package plan

import (
	"dmir/analysis/cost"
	"dmir/analysis/machine"
	"dmir/dialect/op"
)

// A product is what a contraction multiplies, and which of its sizes each factor of the op divides.
type product struct {
	machine.Product
	attention *machine.Attention
	sides     []side // by factor
}

// A side is a size of a product.
type side uint8

const (
	noSide side = iota
	batchSide
	rowSide
	colSide
	depthSide
)

// productOf is the product of n, whose cost is e; nil of what is no contraction, or whose sizes are not known.
func productOf(n *node, e *cost.Entry) *product {
	p, ok := e.Product()
	if x, phases := e.Phases(); phases { // a CPU, which has none, is not asked for products
		p = x
	}
	out := &product{Product: p, attention: e.Attention(), sides: make([]side, len(n.f.Sizes))}
	if out.attention != nil {
		return out
	}
	if !ok || len(n.f.Operands) < 2 || len(n.f.Results) < 1 {
		return nil
	}
	rows, cols := rowSide, colSide
	if p.Turned {
		rows, cols = cols, rows
	}
	for f := range n.f.Sizes {
		a, b := op.Divided(n.f.Operands[0], f), op.Divided(n.f.Operands[1], f)
		switch {
		case !op.Divided(n.f.Results[0], f):
			out.sides[f] = depthSide
		case a && b:
			out.sides[f] = batchSide
		case a:
			out.sides[f] = rows
		case b:
			out.sides[f] = cols
		}
	}
	return out
}

// computing is how long a device computes in n, in seconds, divided by s and in one of so many micro-batches. Of
// contractions it is the time of the smaller product: its tiles fill a device less well.
func (g *graph) computing(n *node, gr *grid, s *strategy, micro float64) float64 {
	uneven := g.uneven(n, gr, s)
	p := n.product
	if p == nil || g.target.CPU {
		return n.compute * uneven / s.parts / micro
	}
	if a := p.attention; a != nil {
		x := *a
		queries := alongQueries(n, gr, s)
		all := int64(s.parts * micro)
		x.Heads = max(1, x.Heads*queries/all)
		x.Queries = max(1, x.Queries/queries)
		x.Scores = max(1, int64(float64(x.Scores)*uneven)/all)
		return g.timeOf(x, func() machine.ProductTime { return g.target.AttentionTime(x) })
	}
	x := p.Product
	sizes := [...]*int64{batchSide: &x.Batch, rowSide: &x.Rows, colSide: &x.Cols, depthSide: &x.Depth}
	divide := func(f int, by int64) {
		if size := sizes[p.sides[f]]; size != nil {
			*size = max(1, (*size+by-1)/by)
		}
	}
	for i, f := range s.factors[:len(gr.axes)] {
		if f >= 0 {
			divide(int(f), int64(gr.axes[i].Size))
		}
	}
	if micro > 1 {
		divide(n.batch, int64(micro))
	}
	return g.timeOf(x, func() machine.ProductTime { return g.target.BestProduct(x) })
}

// timeOf is the time of a product, computed once.
func (g *graph) timeOf(key any, compute func() machine.ProductTime) float64 {
	if t, ok := g.timed.Load(key); ok {
		return t.(float64)
	}
	t := compute().Total()
	g.timed.Store(key, t)
	return t
}
