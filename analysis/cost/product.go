package cost

import (
	"dmir/analysis/machine"
	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/op"
)

// products notes the matrices that e, a contraction, multiplies, or the scores of an attention, as far as their
// sizes are known: the time depends on how they fall into tiles.
func (s *scope) products(e *Entry) {
	known := true
	size := func(d dim.Dim) int64 {
		n, ok := d.Subst(s.env).Int()
		known = known && ok && n > 0
		return n
	}
	switch e.Op.Name {
	case op.Prefix + "attention", op.Prefix + "attention_grad":
		q, k, v := e.Op.In(0), e.Op.In(1), e.Op.In(2)
		if q == nil || k == nil || v == nil || q.Rank() < 2 || k.Rank() < 2 || v.Rank() < 2 {
			return
		}
		last := func(shape []dim.Dim, i int) int64 { return size(shape[len(shape)-i]) }
		a := machine.Attention{
			Heads: size(dim.Prod(q.Shape[:q.Rank()-2]...)), KeyHeads: size(dim.Prod(k.Shape[:k.Rank()-2]...)), Queries: last(q.Shape, 2), Keys: last(k.Shape, 2),
			Depth: last(q.Shape, 1), Value: last(v.Shape, 1), Scores: size(op.Scores(e.Op)),
			Elem: e.Elem, Gradient: e.Op.Name == op.Prefix+"attention_grad",
		}
		if known {
			e.own().attention = &a
		}
	case op.Prefix + "segment_attention":
		q, v, at := e.Op.In(0), e.Op.In(2), e.Op.In(4)
		if q == nil || v == nil || at == nil || q.Rank() != 3 || v.Rank() != 3 {
			return
		}
		rows, columns := op.SegmentBlock(e.Op)
		queries := size(q.Shape[0].Mul(q.Shape[1]))
		scores := size(op.SegmentScores(e.Op))
		if known {
			e.own().segments = &machine.Segments{Queries: queries, Keys: (scores + queries - 1) / queries, Rows: rows, Columns: columns, Depth: size(q.Shape[2]), Value: size(v.Shape[2]), Elem: q.Elem, Weighted: op.SegmentWeights(e.Op) != nil}
		}
	default:
		p, ok := s.product(e.Op)
		if !ok {
			return
		}
		of := func(p op.Product) machine.Product {
			x := machine.Product{Batch: size(p.Batch), Rows: size(p.Rows), Cols: size(p.Cols), Depth: size(p.Depth), Elem: e.Elem, Turned: p.Turned, Structured: p.Structured}
			if p.Phases > 0 {
				x.Phases, x.Channels = p.Phases, size(p.Channels)
			}
			if !p.Groups.IsZero() {
				x.Groups = size(p.Groups)
			}
			if p.Window != nil {
				w, ok := windowOf(p.Window, s.env)
				x.Window, known = w, known && ok
			}
			return x
		}
		if x := of(p); known {
			e.own().product = x
		}
		if p.Divided == nil {
			return
		}
		if x := of(*p.Divided); known {
			e.own().phases = x
		}
	}
}

// windowOf is the window of a convolution whose symbols have values; ok is false where its sizes are not known.
func windowOf(w *op.Moving, env map[string]dim.Dim) (out machine.Window, ok bool) {
	ok = true
	size := func(d dim.Dim) int64 {
		n, is := d.Subst(env).Int()
		ok = ok && is
		return n
	}
	out = machine.Window{Taps: w.Taps, Images: size(w.Images), Lines: size(w.Lines), Outputs: size(w.Outputs), Reach: w.Reach, Span: size(w.Span), Planes: w.Planes}
	return out, ok && out.Images > 0 && out.Lines > 0 && out.Outputs > 0
}

// WindowOf is the window of o, a convolution of known sizes, or that of its phases; of other ops it has no taps.
func WindowOf(o *ir.Op, phases bool) (w machine.Window) {
	p, ok := op.ProductOf(o)
	if ok && phases && p.Divided != nil {
		p = *p.Divided
	}
	if ok && p.Window != nil {
		w, _ = windowOf(p.Window, nil)
	}
	return w
}

// Product is the matrices that e multiplies; ok is false of what is no contraction of two operands of known sizes.
func (e *Entry) Product() (p machine.Product, ok bool) { return e.product, e.product.Batch > 0 }

// Phases is the matrices of the phases of e, a convolution of known sizes whose image has zeros between its elements.
func (e *Entry) Phases() (p machine.Product, ok bool) { return e.phases, e.phases.Batch > 0 }

// Attention is what e, an attention or its gradient, computes; nil of other ops and where sizes are not known.
func (e *Entry) Attention() *machine.Attention { return e.attention }

// productTime is how long the products of e, a contraction, take on m, in ns; ok is false where only the FLOP are known.
// threads are those of a processor that run the kernel; 0 are all.
func (e *Entry) productTime(m *machine.Machine, tile string, threads int) (t machine.ProductTime, ok bool) {
	switch {
	case m.CPU:
		if e.product.Batch == 0 {
			return t, false
		}
		p := e.product
		p.Structured = false // which is made dense
		if t, ok = m.ProcessorProduct(p, threads); !ok {
			return t, false
		}
	case e.attention != nil:
		a := *e.attention
		a.Tile, _ = machine.ParseTile(tile)
		t = m.AttentionTime(a)
	case e.product.Batch > 0:
		at, ok := machine.ParseTile(tile)
		p := e.product
		if e.phases.Batch > 0 && (!ok || at.Phases || at.Path == machine.WindowPath) {
			p = e.phases
		}
		if ok && m.SMs > 0 && m.L2Bandwidth > 0 {
			t = m.ProductTime(p, at)
		} else {
			t = m.BestProduct(p)
		}
	default:
		return t, false
	}
	t.Compute *= 1e9
	t.L2 *= 1e9
	t.Tail *= 1e9
	return t, true
}

// ordering notes the lines that e puts in order, if their sizes are known: the time depends on how they are divided.
func (s *scope) ordering(e *Entry) {
	x, ok := op.OrderingOf(e.Op)
	if !ok {
		return
	}
	lines, ok1 := x.Lines.Subst(s.env).Int()
	n, ok2 := x.Length.Subst(s.env).Int()
	most, ok3 := x.Most.Subst(s.env).Int()
	if ok1 && ok2 && ok3 && lines > 0 && n > 0 {
		e.own().sort = &machine.Sort{Lines: lines, N: n, Most: most, Elem: e.Op.In(0).Elem}
	}
}
