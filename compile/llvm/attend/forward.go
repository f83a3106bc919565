package attend

import (
	"dmir/compile/llvm/code"

	"github.com/llir/llvm/ir/enum"
	"github.com/llir/llvm/ir/value"
)

// Forward is the plan of an attention. A task is a block of queries of one head, or a
// part of its keys where there are few blocks.
type Forward struct {
	sizes
	// Parts is the number of parts of the keys. Of more than one, the results of all are
	// combined by a launch of their own, see Join.
	Parts   int64
	Tasks   int64
	Scratch int64 // bytes of memory that a thread needs

	few                bool  // see isFew
	part               int64 // keys of a part, whole blocks
	keyRows, valueRows int64 // of tiles
}

// Results are where an attention's results go.
type Results struct {
	Y   Store
	LSE func(f *code.Func, head, query, v value.Value) // nil: not stored
	Log func(f *code.Func, x value.Value) value.Value  // the natural logarithm
	// Where there are parts, the results of one as if it had all keys.
	PartY   func(f *code.Func, part, head, query, col, v value.Value)
	PartLSE func(f *code.Func, part, head, query, v value.Value)
}

// NewForward plans an attention for an architecture.
func NewForward(s Shape, arch string) *Forward {
	p := &Forward{sizes: newSizes(s, arch)}
	p.few = p.isFew()
	p.keyRows = p.fitKeys()
	p.valueRows = p.rows(s.Value, p.vecs)
	parts := max(1, min(ceil(leastTasks, s.Heads*p.blocks()), s.Keys/leastPart))
	p.part = up(ceil(s.Keys, parts), p.keys)
	p.Parts = ceil(s.Keys, p.part)
	p.Tasks = s.Heads * p.blocks() * p.Parts
	p.Scratch = p.layout().total
	return p
}

// forwardLayout is where things lie in the scratch memory, in bytes.
type forwardLayout struct {
	q, y, most, sums, factors, stage, scores, kept, mask, k, v int64
	total                                                      int64
}

func (p *Forward) layout() forwardLayout {
	a := arena{size: p.size()}
	rows := p.keys + max(p.lanes, unroll)
	l := forwardLayout{
		q:       a.take(p.panels * p.panel * up(p.Depth, p.lanes)),
		y:       a.take(p.panels * p.panel * up(p.Value, p.lanes)),
		most:    a.take(p.panels * p.panel),
		sums:    a.take(p.panels * p.panel),
		factors: a.take(p.panel),
		stage:   a.take(p.panel * up(max(p.Depth, p.Value), p.lanes)),
		scores:  a.take(rows * p.panel),
		k:       a.take(p.keys * p.Depth),
		v:       a.take(p.keys * p.Value),
	}
	if p.Kept > 0 {
		l.kept = a.take(rows * p.panel)
	}
	if p.Mask.Rows {
		l.mask = a.take(p.panel * up(p.keys, p.lanes))
	}
	l.total = a.at
	return l
}

// forward emits an attention.
type forward struct {
	*emitter
	p *Forward
	r Results
	// The parts of the scratch memory.
	q, y, most, sums, factors, stage, scores, kept, mask, keys, values value.Value
}

// Emit appends to f the tasks from first on, below last. scratch is the thread's own
// memory of p.Scratch bytes, aligned to 64.
func (p *Forward) Emit(f *code.Func, first, last, scratch value.Value, k Kernel, r Results) {
	e := &forward{emitter: p.emitter(f, k), p: p, r: r}
	l := p.layout()
	at := func(byte int64) value.Value { return e.part(scratch, byte) }
	e.q, e.y, e.most, e.sums, e.factors, e.stage = at(l.q), at(l.y), at(l.most), at(l.sums), at(l.factors), at(l.stage)
	e.scores, e.kept, e.mask, e.keys, e.values = at(l.scores), at(l.kept), at(l.mask), at(l.k), at(l.v)
	e.For(first, last, code.Loop{Unroll: 1}, func(task value.Value) {
		n := code.Int(p.blocks())
		of, part := e.NewUDiv(task, code.Int(p.Parts)), e.NewURem(task, code.Int(p.Parts))
		e.task(e.NewUDiv(of, n), e.order(e.NewURem(of, n), p.blocks()), part)
	})
}

// order is the block that comes as number i of n. Under a causal mask late blocks see
// the most keys: each early one is followed by a late one, so that the parts that
// threads have are even.
func (e *emitter) order(i value.Value, n int64) value.Value {
	if !e.s.Causal {
		return i
	}
	half := e.NewLShr(i, code.Int(1))
	odd := e.NewICmp(enum.IPredNE, e.NewAnd(i, code.Int(1)), code.Int(0))
	return e.NewSelect(odd, e.NewSub(code.Int(n-1), half), half)
}

// task computes a block of queries: of each block of keys, one panel after the other,
// so that keys and values are in the L2 cache for all but the first.
func (e *forward) task(head, number, part value.Value) {
	p := e.p
	first := e.NewMul(number, code.Int(p.block()))
	live := e.span(first, p.block(), p.Queries)
	panels := e.parts(live, p.panel)
	each := func(body func(panel, query, live value.Value)) {
		e.For(code.Int(0), panels, code.Loop{Unroll: 1}, func(i value.Value) {
			query := e.NewAdd(first, e.NewMul(i, code.Int(p.panel)))
			body(i, query, e.span(query, p.panel, p.Queries))
		})
	}
	each(func(i, query, live value.Value) { e.begin(e.panelOf(i), head, query, live) })
	from, seen := value.Value(code.Int(0)), value.Value(code.Int(p.Keys))
	if p.Parts > 1 {
		from = e.NewMul(part, code.Int(p.part))
		seen = e.NewAdd(from, e.span(from, p.part, p.Keys))
	}
	if p.Causal { // by the last query
		seen = e.least(seen, e.NewAdd(e.NewAdd(first, live), code.Int(p.shift())))
	}
	matrix := e.NewUDiv(head, code.Int(p.Group))
	e.For(from, seen, code.Loop{Step: p.keys, Unroll: 1}, func(key value.Value) {
		limit := e.span(key, p.keys, p.Keys)
		k := e.rows(e.k.K, p.Depth, e.keys, matrix, key, limit)
		v := e.rows(e.k.V, p.Value, e.values, matrix, key, limit)
		each(func(i, query, live value.Value) {
			b := block{at: e.scores, pitch: p.panel, head: head, query: query, live: live, key: key, n: limit, limit: limit}
			if !p.Causal {
				e.step(e.panelOf(i), b, k, v)
				return
			}
			b.n = e.least(limit, e.NewSub(e.NewAdd(query, code.Int(p.panel+p.shift())), key))
			e.If(e.NewICmp(enum.IPredSGT, b.n, code.Int(0)), func() { e.step(e.panelOf(i), b, k, v) })
		})
	})
	each(func(i, query, live value.Value) { e.finish(e.panelOf(i), part, head, query, live) })
}
