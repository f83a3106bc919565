package attend

import (
	"math"

	"dmir/compile/llvm/code"

	"github.com/llir/llvm/ir/value"
)

// Backward is the plan of the gradient of an attention. A task is a key head, or a part
// of its keys: it sums their dK and dV over all queries, and the dQ of its part.
type Backward struct {
	sizes
	// Parts is the number of parts of the keys. Of more than one, the partial dQ of all are
	// summed by a launch of their own, see Join.
	Parts   int64
	Tasks   int64
	Scratch int64 // bytes of memory that a thread needs

	part                          int64 // keys of a part, whole blocks
	keyRows, depthRows, valueRows int64 // of tiles with a row for each key, and for each column
	pitch                         int64 // of a block of scores
}

// Gradient is what the gradient reads besides q, k and v, and where its results go.
type Gradient struct {
	Y, DY Load
	LSE   func(f *code.Func, head, query value.Value) value.Value
	// The results; nil where they are not stored.
	DQ, DK, DV Store
	// Partial stores an element of a part's dQ, where there are parts.
	Partial func(f *code.Func, part, head, query, col, v value.Value)
}

// mostPart is the keys of a part whose sums of dK and dV stay in the cache.
const mostPart = 4096

// NewBackward plans the gradient of an attention for an architecture.
func NewBackward(s Shape, arch string) *Backward {
	p := &Backward{sizes: newSizes(s, arch)}
	p.panels = max(1, min(backQueries/p.panel, ceil(s.Queries, p.panel)))
	p.keyRows = p.fitKeys()
	p.depthRows, p.valueRows = p.rows(s.Depth, p.vecs), p.rows(s.Value, p.vecs)
	// One vector more than whole pages of a cache have, so that rows fall into different sets.
	p.pitch = p.block() + p.lanes
	matrices := s.Heads / s.Group
	parts := max(ceil(s.Keys, mostPart), min(ceil(leastTasks, matrices), s.Keys/leastPart), 1)
	p.part = up(ceil(s.Keys, parts), p.keys)
	p.Parts = ceil(s.Keys, p.part)
	p.Tasks = matrices * p.Parts
	p.Scratch = p.layout().total
	return p
}

// backQueries is the number of queries of a block.
const backQueries = 128

// skips reports whether blocks of keys behind all their queries are left out. A query
// that sees no key at all makes NaN of all it touches.
func (s *sizes) skips() bool { return s.Causal && s.shift() >= 0 }

// backwardLayout is where things lie in the scratch memory, in bytes.
type backwardLayout struct {
	q, dy, turnedQ, turnedDY, dq, lse, delta int64
	probs, slopes, kept, mask                int64
	k, v, dk, dv                             int64
	total                                    int64
}

func (p *Backward) layout() backwardLayout {
	a := arena{size: p.size()}
	depth, value := up(p.Depth, p.lanes), up(p.Value, p.lanes)
	rows := p.keys + max(p.lanes, unroll, mostRows)
	l := backwardLayout{
		q: a.take(p.block() * depth), dy: a.take(p.block() * value),
		turnedQ: a.take(p.block() * depth), turnedDY: a.take(p.block() * value), dq: a.take(p.block() * depth),
		lse: a.take(p.block()), delta: a.take(p.block()),
		probs: a.take(rows * p.pitch), slopes: a.take(rows * p.pitch),
		k: a.take(p.keys * p.Depth), v: a.take(p.keys * p.Value),
		dk: a.take((p.part + mostRows) * depth), dv: a.take((p.part + mostRows) * value),
	}
	if p.Kept > 0 {
		l.kept = a.take(rows * p.pitch)
	}
	if p.Mask.Rows {
		l.mask = a.take(p.panel * up(p.keys, p.lanes))
	}
	l.total = a.at
	return l
}

// backward emits a gradient.
type backward struct {
	*emitter
	p *Backward
	g Gradient
	// The parts of the scratch memory.
	q, dy, turnedQ, turnedDY, dq, lse, delta value.Value
	probs, slopes, kept, mask                value.Value
	keys, values, dk, dv                     value.Value
}

func (p *Backward) emitter(f *code.Func, scratch value.Value, k Kernel, g Gradient) *backward {
	e := &backward{emitter: p.sizes.emitter(f, k), p: p, g: g}
	l := p.layout()
	at := func(byte int64) value.Value { return e.part(scratch, byte) }
	e.q, e.dy, e.turnedQ, e.turnedDY, e.dq, e.lse, e.delta = at(l.q), at(l.dy), at(l.turnedQ), at(l.turnedDY), at(l.dq), at(l.lse), at(l.delta)
	e.probs, e.slopes, e.kept, e.mask = at(l.probs), at(l.slopes), at(l.kept), at(l.mask)
	e.keys, e.values, e.dk, e.dv = at(l.k), at(l.v), at(l.dk), at(l.dv)
	return e
}

// Emit appends to f the tasks from first on, below last. scratch is the thread's own
// memory of p.Scratch bytes, aligned to 64.
func (p *Backward) Emit(f *code.Func, first, last, scratch value.Value, k Kernel, g Gradient) {
	e := p.emitter(f, scratch, k, g)
	e.For(first, last, code.Loop{Unroll: 1}, func(task value.Value) {
		n := code.Int(p.Parts)
		e.task(e.NewUDiv(task, n), e.order(e.NewURem(task, n), p.Parts))
	})
}

func (e *backward) task(matrix, part value.Value) {
	p := e.p
	from := e.NewMul(part, code.Int(p.part))
	n := e.span(from, p.part, p.Keys)
	to := e.NewAdd(from, n)
	clear := func(to value.Value, width int64) {
		e.fill(to, code.Int((p.part+mostRows)*up(width, p.lanes)), 0)
	}
	clear(e.dk, p.Depth)
	clear(e.dv, p.Value)
	first := e.NewMul(matrix, code.Int(p.Group))
	e.For(first, e.NewAdd(first, code.Int(p.Group)), code.Loop{Unroll: 1}, func(head value.Value) {
		e.For(code.Int(0), code.Int(p.Queries), code.Loop{Step: p.block(), Unroll: 1}, func(query value.Value) {
			b := queries{matrix: matrix, head: head, first: query, n: e.span(query, p.block(), p.Queries)}
			b.panels = e.parts(b.n, p.panel)
			e.begin(b)
			e.fill(e.dq, code.Int(p.block()*up(p.Depth, p.lanes)), 0)
			e.For(from, e.seen(b, to), code.Loop{Step: p.keys, Unroll: 1}, func(key value.Value) {
				e.step(b, key, e.NewSub(key, from))
			})
			e.finishQueries(b, part)
		})
	})
	e.finishKeys(e.g.DK, e.dk, p.Depth, e.unit(), matrix, from, n)
	e.finishKeys(e.g.DV, e.dv, p.Value, 1, matrix, from, n)
}

// unit is what sums with staged queries, which hold the factor of the scores, are
// multiplied by.
func (e *backward) unit() float64 {
	if e.p.plain() {
		return math.Ln2
	}
	return 1
}
