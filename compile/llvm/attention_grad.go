package llvm

import (
	"dmir/compile/kernel"
	"dmir/compile/llvm/attend"
	"dmir/compile/llvm/code"
	dm "dmir/dialect/ir"
	"dmir/gpu/artifact"

	"github.com/llir/llvm/ir/value"
)

// attentionGradient is the scheme of a dm.attention_grad.
type attentionGradient struct {
	*attention
	p *attend.Backward
	partial
}

func (g generator) attentionGradient(f *kernel.Form) (scheme, error) {
	a, err := attentionOf(f)
	if err != nil {
		return nil, err
	}
	s := &attentionGradient{attention: a, p: attend.NewBackward(a.shape, g.arch)}
	if s.p.Parts > 1 && s.stores(0) {
		s.partial = a.partial(s.p.Parts, a.shape.Depth)
	}
	return s, nil
}

func (s *attentionGradient) launches() ([]*launch, error) {
	var all []*launch
	if main := s.main(); main != nil {
		all = append(all, main)
	}
	if s.rows != nil {
		all = append(all, s.join())
	}
	if s.stores(3) {
		all = append(all, s.maskLaunch())
	}
	return all, nil
}

// launch is a launch that stores some of the results, and uses the parts of dQ in the mode
// where it is not "".
func (s *attentionGradient) launch(suffix string, tasks int64, ps *params, results []int, parts artifact.Mode, write func(b *body)) *launch {
	var stores []*dm.Value
	for _, i := range results {
		ps.writes(s.holding(i), nil)
		stores = append(stores, s.o.Results[i])
	}
	if s.rows != nil && parts != "" {
		ps.temp("parts", s.rows, parts)
	}
	l := newLaunch(suffix, s.f.Class, tasks, ps.list, func(b *body) error { write(b); return nil })
	l.Stores = stores
	return l
}

// main is the launch that computes the gradients of q, k and v; nil if none is stored.
func (s *attentionGradient) main() *launch {
	var results []int
	for i := range 3 {
		if s.stores(i) && (i > 0 || s.rows == nil) {
			results = append(results, i)
		}
	}
	if len(results) == 0 && s.rows == nil {
		return nil
	}
	ps := newParams()
	ps.reads(s.f.Inputs)
	l := s.launch("", s.p.Tasks, ps, results, artifact.Out, func(b *body) {
		g := s.gradient(b)
		g.DK, g.DV = s.result(b, 1), s.result(b, 2)
		if g.Partial = s.storeRows(b); g.Partial == nil {
			g.DQ = s.result(b, 0)
		}
		s.p.Emit(b.Func, b.first, b.last, b.scratch, s.kernel(b), g)
	})
	l.Scratch = s.p.Scratch
	return l
}

// gradient is what a gradient reads besides q, k and v.
func (s *attentionGradient) gradient(b *body) attend.Gradient {
	v := s.o.Operands[4]
	return attend.Gradient{Y: s.operand(b, 3).Load, DY: s.operand(b, 5).Load, LSE: func(f *code.Func, head, query value.Value) value.Value {
		return b.lib.Load(f, v.Elem(), b.buffer(v), s.number(f, head, query))
	}}
}

// join is the launch that sums the parts of dQ.
func (s *attentionGradient) join() *launch {
	return s.launch("_queries", s.p.JoinTasks(), newParams(), []int{0}, artifact.In, func(b *body) {
		s.p.Join(b.Func, b.first, b.last, attend.Parts{Y: s.loadRows(b)}, s.result(b, 0))
	})
}

// maskLaunch is the launch that computes the gradient of the mask.
func (s *attentionGradient) maskLaunch() *launch {
	m := attend.MaskGradient{Matrices: kernel.Product(s.maskShape[:len(s.batch)]), Head: s.maskHead}
	ps := newParams()
	ps.reads(s.f.Inputs)
	l := s.launch("_mask", s.p.MaskTasks(m.Matrices), ps, []int{3}, "", func(b *body) {
		m.Store = s.result(b, 3)
		s.p.EmitMask(b.Func, b.first, b.last, b.scratch, s.kernel(b), s.gradient(b), m)
	})
	l.Scratch = s.p.MaskScratch()
	return l
}

// maskHead is the head that is number repeat of those that share a matrix of the mask.
func (s *attentionGradient) maskHead(f *code.Func, matrix, repeat value.Value) value.Value {
	n := len(s.batch)
	kept, rest, steps, step := make([]int64, n), make([]int64, n), make([]int64, n), int64(1)
	for d := n - 1; d >= 0; d-- {
		kept[d], rest[d], steps[d] = s.batch[d], 1, step
		if s.maskShape[d] == 1 {
			kept[d], rest[d] = 1, s.batch[d]
		}
		step *= s.batch[d]
	}
	return f.NewAdd(parts(f, matrix, kept, steps), parts(f, repeat, rest, steps))
}
