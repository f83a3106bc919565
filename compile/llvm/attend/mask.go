package attend

import (
	"dmir/compile/llvm/code"

	"github.com/llir/llvm/ir/enum"
	"github.com/llir/llvm/ir/value"
)

// MaskGradient is how the heads share the matrices of a mask, and where its gradient
// goes: the slopes of the scores, summed over what the mask is repeated for.
type MaskGradient struct {
	Matrices int64
	// Head is number repeat of the heads that share a matrix.
	Head func(f *code.Func, matrix, repeat value.Value) value.Value
	Store
}

// keyBlocks is how many blocks of keys a task of the mask's gradient has, if any more
// than one task shares a matrix.
const keyBlocks = 4

// maskParts are the parts of a matrix of the mask: of its queries and of its keys.
func (p *Backward) maskParts() (queries, keys int64) {
	queries, keys = 1, 1
	if p.Mask.Rows {
		queries = p.blocks()
	}
	if p.Mask.Cols {
		keys = ceil(p.Keys, keyBlocks*p.keys)
	}
	return queries, keys
}

// MaskTasks is the number of tasks of the mask's gradient: parts of its matrices.
func (p *Backward) MaskTasks(matrices int64) int64 {
	queries, keys := p.maskParts()
	return matrices * queries * keys
}

// MaskScratch is the bytes of memory that a thread needs for them.
func (p *Backward) MaskScratch() int64 {
	return p.layout().total + up(p.maskSums()*p.size(), 64)
}

// maskSums is the number of sums of a task: a lane for each query, or one vector for all.
func (p *Backward) maskSums() int64 {
	n := p.lanes
	if p.Mask.Rows {
		n = p.block()
	}
	return n * p.maskKeys()
}

// maskKeys is the number of keys that have a sum of their own.
func (p *Backward) maskKeys() int64 {
	if p.Mask.Cols {
		return keyBlocks * p.keys
	}
	return 1
}

// EmitMask appends the tasks from first on, below last, of the gradient of the mask.
func (p *Backward) EmitMask(f *code.Func, first, last, scratch value.Value, k Kernel, g Gradient, m MaskGradient) {
	e := p.emitter(f, scratch, k, g)
	sums := e.emitter.part(scratch, p.layout().total)
	queryParts, keyParts := p.maskParts()
	e.For(first, last, code.Loop{Unroll: 1}, func(task value.Value) {
		rest := e.NewUDiv(task, code.Int(keyParts))
		from := e.NewMul(e.NewURem(task, code.Int(keyParts)), code.Int(keyBlocks*p.keys))
		row := e.NewMul(e.NewURem(rest, code.Int(queryParts)), code.Int(p.block()))
		matrix := e.NewUDiv(rest, code.Int(queryParts))
		to, end := value.Value(code.Int(p.Keys)), value.Value(code.Int(p.Queries))
		if p.Mask.Cols {
			to = e.NewAdd(from, e.span(from, keyBlocks*p.keys, p.Keys))
		}
		if p.Mask.Rows {
			end = e.NewAdd(row, e.span(row, p.block(), p.Queries))
		}
		e.fill(sums, code.Int(p.maskSums()), 0)
		e.For(code.Int(0), code.Int(p.Heads/m.Matrices), code.Loop{Unroll: 1}, func(repeat value.Value) {
			head := m.Head(f, matrix, repeat)
			e.For(row, end, code.Loop{Step: p.block(), Unroll: 1}, func(query value.Value) {
				b := queries{matrix: e.NewUDiv(head, code.Int(p.Group)), head: head, first: query, n: e.span(query, p.block(), p.Queries)}
				b.panels = e.parts(b.n, p.panel)
				e.begin(b)
				e.For(from, e.seen(b, to), code.Loop{Step: p.keys, Unroll: 1}, func(key value.Value) {
					e.maskStep(b, key, e.NewSub(key, from), sums)
				})
			})
		})
		e.storeMask(m, sums, matrix, row, e.NewSub(end, row), from, e.NewSub(to, from))
	})
}

// maskSum is where vector g of a key's sums for panel i is.
func (e *backward) maskSum(i, key value.Value, g int64) value.Value {
	p := e.p
	at := key
	if !p.Mask.Cols {
		at = code.Int(0)
	}
	if !p.Mask.Rows {
		return e.NewMul(at, code.Int(p.lanes))
	}
	at = e.NewAdd(e.NewMul(i, code.Int(p.maskKeys())), at)
	return e.NewAdd(e.NewMul(at, code.Int(p.panel)), code.Int(g*p.lanes))
}

// maskStep adds the slopes of a block of keys, which begins at row number row of the sums.
func (e *backward) maskStep(b queries, key, row, sums value.Value) {
	p := e.p
	limit := e.span(key, p.keys, p.Keys)
	k := e.rows(e.k.K, p.Depth, e.keys, b.matrix, key, limit)
	v := e.rows(e.k.V, p.Value, e.values, b.matrix, key, limit)
	e.For(code.Int(0), b.panels, code.Loop{Unroll: 1}, func(i value.Value) {
		s := e.blockOf(b, i, key, limit)
		e.If(e.NewICmp(enum.IPredSGT, s.n, code.Int(0)), func() {
			e.slope(s, i, k, v)
			slopes := e.column0(e.slopes, i)
			e.For(code.Int(0), s.n, code.Loop{Unroll: 1}, func(k value.Value) {
				for g := range p.vecs {
					at := e.maskSum(i, e.NewAdd(row, k), g)
					e.store(e.NewFAdd(e.load(sums, at), e.load(slopes, e.inPanel(k, 0, p.pitch, g))), sums, at)
				}
			})
		})
	})
}

// storeMask stores the sums of a task, for n queries and so many keys.
func (e *backward) storeMask(m MaskGradient, sums, matrix, query, n, key, keys value.Value) {
	p := e.p
	if !p.Mask.Rows {
		n = code.Int(1)
	}
	if !p.Mask.Cols {
		keys = code.Int(1)
	}
	e.For(code.Int(0), n, code.Loop{Unroll: 1}, func(q value.Value) {
		panel, lane := e.NewUDiv(q, code.Int(p.panel)), e.NewURem(q, code.Int(p.panel))
		e.For(code.Int(0), keys, code.Loop{}, func(k value.Value) {
			first := e.at(sums, e.maskSum(panel, k, 0))
			if p.Mask.Rows {
				m.Store(e.Func, matrix, e.NewAdd(query, q), e.NewAdd(key, k), e.NewLoad(e.elem, e.at(first, lane)))
				return
			}
			sum := e.Fold(code.Int(0), code.Int(p.lanes), code.Loop{}, []value.Value{e.number(0)}, func(i value.Value, acc []value.Value) []value.Value {
				return []value.Value{e.NewFAdd(acc[0], e.NewLoad(e.elem, e.at(first, i)))}
			})
			m.Store(e.Func, matrix, code.Int(0), e.NewAdd(key, k), sum[0])
		})
	})
}
