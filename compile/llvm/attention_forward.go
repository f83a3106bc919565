package llvm

import (
	"dmir/compile/assemble"
	"dmir/compile/kernel"
	"dmir/compile/llvm/attend"
	"dmir/compile/llvm/code"
	"dmir/gpu/artifact"

	"github.com/llir/llvm/ir/value"
)

// attentionForward is the scheme of a dm.attention.
type attentionForward struct {
	*attention
	p *attend.Forward
	partial
}

func (g generator) attention(f *kernel.Form) (scheme, error) {
	a, err := attentionOf(f)
	if err != nil {
		return nil, err
	}
	s := &attentionForward{attention: a, p: attend.NewForward(a.shape, g.arch)}
	if s.p.Parts > 1 {
		s.partial = a.partial(s.p.Parts, a.shape.Value)
		s.sums = &assemble.Temp{Elem: a.sum, N: s.p.Parts * a.shape.Heads * a.shape.Queries, Own: true}
	}
	return s, nil
}

func (s *attentionForward) launches() ([]*launch, error) {
	ps := newParams()
	ps.reads(s.f.Inputs)
	if s.rows != nil {
		ps.temp("means", s.rows, artifact.Out)
		ps.temp("sums", s.sums, artifact.Out)
	} else {
		ps.writes(s.f.Outputs, nil)
	}
	l := newLaunch("", s.f.Class, s.p.Tasks, ps.list, func(b *body) error {
		r := s.results(b)
		r.PartY = s.storeRows(b)
		r.PartLSE = func(f *code.Func, part, head, query, v value.Value) {
			b.lib.Store(f, s.sum, b.memory[s.sums], s.row(f, part, head, query), v)
		}
		s.p.Emit(b.Func, b.first, b.last, b.scratch, s.kernel(b), r)
		return nil
	})
	l.Scratch = s.p.Scratch
	if s.rows == nil {
		return []*launch{l}, nil
	}
	return []*launch{l, s.join()}, nil
}

// results are where the results go.
func (s *attentionForward) results(b *body) attend.Results {
	r := attend.Results{Y: s.result(b, 0), Log: func(f *code.Func, x value.Value) value.Value {
		return b.lib.Apply(f, &kernel.Expr{Op: "log", Elem: s.sum, Args: []*kernel.Expr{{Elem: s.sum}}}, []value.Value{x})
	}}
	if r.Y == nil { // a step needs the logarithms alone
		r.Y = func(*code.Func, value.Value, value.Value, value.Value, value.Value) {}
	}
	if len(s.o.Results) > 1 {
		if v := s.o.Results[1]; b.params[v] != nil {
			r.LSE = func(f *code.Func, head, query, x value.Value) {
				b.lib.Store(f, v.Elem(), b.params[v], s.number(f, head, query), x)
			}
		}
	}
	return r
}

// join is the launch that combines the parts.
func (s *attentionForward) join() *launch {
	ps := newParams()
	ps.writes(s.f.Outputs, nil)
	ps.temp("means", s.rows, artifact.In)
	ps.temp("sums", s.sums, artifact.In)
	return newLaunch("_join", s.f.Class, s.p.JoinTasks(), ps.list, func(b *body) error {
		from := attend.Parts{Y: s.loadRows(b), LSE: func(f *code.Func, part, head, query value.Value) value.Value {
			return b.lib.Load(f, s.sum, b.memory[s.sums], s.row(f, part, head, query))
		}}
		s.p.Join(b.Func, b.first, b.last, from, s.results(b))
		return nil
	})
}

// number is that of a query among all heads.
func (a *attention) number(f *code.Func, head, query value.Value) value.Value {
	return f.NewAdd(f.NewMul(head, code.Int(a.shape.Queries)), query)
}

// partial is the memory of what parts of the keys give: rows for each query, and sums of
// exponentials; nil where there are none.
type partial struct {
	rows, sums *assemble.Temp
	of         *attention
	width      int64
}

func (a *attention) partial(parts, width int64) partial {
	n := parts * a.shape.Heads * a.shape.Queries
	return partial{rows: &assemble.Temp{Elem: a.sum, N: n * width, Own: true}, of: a, width: width}
}

func (p *partial) temps() []*assemble.Temp {
	var out []*assemble.Temp
	for _, t := range []*assemble.Temp{p.rows, p.sums} {
		if t != nil {
			out = append(out, t)
		}
	}
	return out
}

// row is the number of a query's row.
func (p *partial) row(f *code.Func, part, head, query value.Value) value.Value {
	return p.of.number(f, f.NewAdd(f.NewMul(part, code.Int(p.of.shape.Heads)), head), query)
}

func (p *partial) at(f *code.Func, part, head, query, col value.Value) value.Value {
	return f.NewAdd(f.NewMul(p.row(f, part, head, query), code.Int(p.width)), col)
}

func (p *partial) storeRows(b *body) func(f *code.Func, part, head, query, col, v value.Value) {
	if p.rows == nil {
		return nil
	}
	return func(f *code.Func, part, head, query, col, v value.Value) {
		b.lib.Store(f, p.rows.Elem, b.memory[p.rows], p.at(f, part, head, query, col), v)
	}
}

func (p *partial) loadRows(b *body) func(f *code.Func, part, head, query, col value.Value) value.Value {
	return func(f *code.Func, part, head, query, col value.Value) value.Value {
		return b.lib.Load(f, p.rows.Elem, b.memory[p.rows], p.at(f, part, head, query, col))
	}
}
