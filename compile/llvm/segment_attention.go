package llvm

import (
	"math"

	"dmir/compile/kernel"
	"dmir/compile/llvm/code"
	"dmir/compile/llvm/scalar"
	"dmir/dialect/types"

	"github.com/llir/llvm/ir/enum"
	lltypes "github.com/llir/llvm/ir/types"
	"github.com/llir/llvm/ir/value"
)

// segmentKeys is the number of keys whose scores are normalized at a time: exponentials are vector
// code then, and what was summed before is scaled once for all of them (Dao, arXiv 2307.08691).
const segmentKeys = 128

// segmentWork is the work of a task, in elements of keys and values.
const segmentWork = 256 << 10

// segmentAttention is the kernel of a dm.segment_attention: queries of all heads in their order, each
// after the other, tasks with about as many scores.
type segmentAttention struct {
	*body
	*kernel.SegmentAttention
	elem, sum types.Elem // of operands, of the computation
	reg       lltypes.Type
	q, y      value.Value // rows in scratch memory
	w         value.Value // weights of the query's elements, times the scale
	scores    value.Value
	places    value.Value // of keys: their numbers
}

func newSegmentAttention(f *kernel.Form) (scheme, error) {
	g, err := kernel.SegmentAttentionOf(f)
	if err != nil {
		return nil, err
	}
	ps := newParams()
	ps.reads(f.Inputs)
	ps.writes(f.Outputs, nil)
	sum := kept(g.Op.Operands[0].Elem())
	tasks := max(1, min(g.Heads*g.Segments, ceil(g.Scores()*(g.Depth+g.Value), segmentWork)))
	l := newLaunch("", f.Class, tasks, ps.list, func(b *body) error {
		a := &segmentAttention{body: b, SegmentAttention: g, elem: g.Op.Operands[0].Elem(), sum: sum, reg: scalar.Register(sum)}
		a.q, a.y, a.scores, a.places = b.take(sum, g.Depth), b.take(sum, g.Value), b.take(sum, segmentKeys), b.take(types.I64, segmentKeys)
		if g.Weights != nil {
			a.w = b.take(sum, g.Depth)
		}
		a.write(tasks)
		return nil
	})
	l.Scratch = scratchBytes(sum, g.Depth) + scratchBytes(sum, g.Value) + scratchBytes(sum, segmentKeys) + scratchBytes(types.I64, segmentKeys)
	if g.Weights != nil {
		l.Scratch += scratchBytes(sum, g.Depth)
	}
	return single{l}, nil
}

func (a *segmentAttention) load(elem types.Elem, buf, at value.Value) value.Value {
	return a.lib.Load(a.Func, elem, buf, at)
}

func (a *segmentAttention) at(p, i value.Value) value.Value { return a.Element(a.reg, p, i) }

func (a *segmentAttention) number(x float64) value.Value {
	return a.lib.Number(&kernel.Expr{Op: kernel.Number, Elem: a.sum, Num: x})
}

func (a *segmentAttention) apply(name string, xs ...value.Value) value.Value {
	args := make([]*kernel.Expr, len(xs))
	for i := range args {
		args[i] = &kernel.Expr{Elem: a.sum}
	}
	return a.lib.Apply(a.Func, &kernel.Expr{Op: name, Elem: a.sum, Args: args}, xs)
}

// plus is a sum in any order.
func (a *segmentAttention) plus(x, y value.Value) value.Value {
	return a.lib.Combine(a.Func, "add", a.sum, x, y, true)
}

// place is the first element of a row.
func (a *segmentAttention) place(m kernel.Matrices, head, row value.Value) value.Value {
	return a.NewAdd(a.NewAdd(a.NewMul(head, code.Int(m.Head)), a.NewMul(row, code.Int(m.Row))), code.Int(m.Start))
}

// clamped is element at of the integers buf, moved into [0, most].
func (a *segmentAttention) clamped(elem types.Elem, buf, at value.Value, most int64) value.Value {
	v := a.load(elem, buf, at)
	n := code.Int(most)
	if elem.IsUnsigned() {
		v = a.extended(v, true)
		return a.NewSelect(a.NewICmp(enum.IPredULT, v, n), v, n)
	}
	return a.most(a.least(a.wholeNumber(v), n), code.Int(0))
}

// position is one of the segments, moved into the range of entries.
func (a *segmentAttention) position(i value.Value) value.Value {
	v := a.Op.Operands[3]
	return a.clamped(v.Elem(), a.buffer(v), i, a.Entries)
}

// write computes the tasks first to last - 1 of n.
func (a *segmentAttention) write(n int64) {
	m := a.Segments
	of := code.Int(m)
	head := func(row value.Value) value.Value { return a.NewUDiv(row, of) }
	segment := func(row value.Value) value.Value { return a.NewURem(row, of) }
	each := a.NewAdd(a.position(of), of) // about the work of a head
	all := a.NewMul(each, code.Int(a.Heads))
	from, to := a.divided(a.Heads*m, n, all, a.first, a.last, func(row value.Value) value.Value {
		s := segment(row)
		return a.NewAdd(a.NewMul(head(row), each), a.NewAdd(a.position(s), s))
	})
	a.For(from, to, code.Loop{}, func(row value.Value) {
		h, s := head(row), segment(row)
		begin := a.position(s)
		end := a.NewAdd(begin, a.most(a.NewSub(a.position(a.NewAdd(s, code.Int(1))), begin), code.Int(0)))
		a.For(code.Int(0), code.Int(a.Rows), code.Loop{Unroll: 1}, func(r value.Value) {
			a.query(h, a.NewAdd(a.NewMul(s, code.Int(a.Rows)), r), r, begin, end)
		})
	})
}

// query computes a query, which sees the keys of the entries from begin, below end.
func (a *segmentAttention) query(head, query, r, begin, end value.Value) {
	vector := code.Loop{Vectorize: true}
	kv := head
	if a.Group > 1 {
		kv = a.NewUDiv(head, code.Int(a.Group))
	}
	q := a.buffer(a.Q.Buf)
	row := a.place(a.Q, head, query)
	a.For(code.Int(0), code.Int(a.Depth), vector, func(d value.Value) {
		x := a.load(a.elem, q, a.NewAdd(row, d))
		if a.Weights == nil {
			x = a.NewFMul(x, a.number(a.Scale))
		}
		a.NewStore(x, a.at(a.q, d))
	})
	if a.Weights != nil {
		own := a.NewAdd(a.NewMul(head, code.Int(a.WeightsHead)), a.NewMul(a.NewUDiv(query, code.Int(a.WeightsQueries)), code.Int(a.Depth)))
		a.For(code.Int(0), code.Int(a.Depth), vector, func(d value.Value) {
			x := a.load(a.elem, a.buffer(a.Weights), a.NewAdd(own, d))
			a.NewStore(a.NewFMul(x, a.number(a.Scale)), a.at(a.w, d))
		})
	}
	a.For(code.Int(0), code.Int(a.Value), vector, func(d value.Value) { a.NewStore(a.number(0), a.at(a.y, d)) })
	keys := a.NewMul(a.NewSub(end, begin), code.Int(a.Columns))
	done := a.Fold(code.Int(0), keys, code.Loop{Step: segmentKeys, Unroll: 1}, []value.Value{a.number(math.Inf(-1)), a.number(0)}, func(first value.Value, acc []value.Value) []value.Value {
		n := a.least(code.Int(segmentKeys), a.NewSub(keys, first))
		a.score(head, kv, r, begin, first, n)
		most, sum, factor := a.exponentials(n, acc[0])
		a.values(kv, n, factor)
		return []value.Value{most, a.NewFAdd(a.NewFMul(acc[1], factor), sum)}
	})
	most, sum := done[0], done[1]
	sees := a.NewICmp(enum.IPredSGT, keys, code.Int(0))
	if a.HasY {
		y := a.buffer(a.Y.Buf)
		row := a.place(a.Y, head, query)
		by := a.NewFDiv(a.number(1), a.NewSelect(sees, sum, a.number(1)))
		a.For(code.Int(0), code.Int(a.Value), vector, func(d value.Value) {
			x := a.NewFMul(a.NewLoad(a.reg, a.at(a.y, d)), by)
			a.lib.Store(a.Func, a.elem, y, a.NewAdd(row, d), x)
		})
	}
	if a.HasTotal {
		v := a.Op.Results[1]
		// Scores that are all minus infinity make NaN of what they touch.
		x := a.NewFAdd(a.NewFAdd(a.apply("log", sum), most), a.NewFSub(most, most))
		at := a.NewAdd(a.NewMul(head, code.Int(a.Queries)), query)
		a.lib.Store(a.Func, v.Elem(), a.buffer(v), at, a.NewSelect(sees, x, a.number(math.Inf(-1))))
	}
}

// score computes the scores of n keys from number first of the segment on, and notes which keys they are.
func (a *segmentAttention) score(head, kv, r, begin, first, n value.Value) {
	coordinates, k := a.Op.Operands[4], a.buffer(a.K.Buf)
	places := func(i value.Value) value.Value { return a.Element(code.Index, a.places, i) }
	a.For(code.Int(0), n, code.Loop{Unroll: 1}, func(i value.Value) {
		key := a.NewAdd(first, i)
		entry, column := value.Value(key), value.Value(code.Int(0))
		if a.Columns > 1 {
			entry, column = a.NewUDiv(key, code.Int(a.Columns)), a.NewURem(key, code.Int(a.Columns))
		}
		entry = a.NewAdd(begin, entry)
		number := a.NewAdd(a.NewMul(a.clamped(coordinates.Elem(), a.buffer(coordinates), entry, a.Keys/a.Columns-1), code.Int(a.Columns)), column)
		a.NewStore(number, places(i))
		row := a.place(a.K, kv, number)
		s := a.product(k, row)
		if a.Bias != nil {
			at := a.NewAdd(a.NewMul(head, code.Int(a.BiasHead)), a.NewAdd(a.NewMul(a.NewAdd(a.NewMul(entry, code.Int(a.Rows)), r), code.Int(a.Columns)), column))
			s = a.NewFAdd(s, a.load(a.Bias.Elem(), a.buffer(a.Bias), at))
		}
		a.NewStore(a.leaky(s, a.Slope), a.at(a.scores, i))
	})
}

// leaky is x, times f where it is below 0.
func (a *segmentAttention) leaky(x value.Value, f float64) value.Value {
	if f == 1 {
		return x
	}
	return a.NewSelect(a.NewFCmp(enum.FPredOLT, x, a.number(0)), a.NewFMul(x, a.number(f)), x)
}

// product is that of the query, which is scaled, with the row of k that begins at element row; or their sum, weighted or not.
func (a *segmentAttention) product(k, row value.Value) value.Value {
	if a.Adds && a.Weights == nil {
		key := a.NewFMul(a.load(a.elem, k, row), a.number(a.Scale))
		return a.NewFAdd(a.NewLoad(a.reg, a.at(a.q, code.Int(0))), key)
	}
	return a.Fold(code.Int(0), code.Int(a.Depth), code.Loop{Vectorize: true}, []value.Value{a.number(0)}, func(d value.Value, acc []value.Value) []value.Value {
		x, y := a.NewLoad(a.reg, a.at(a.q, d)), a.load(a.elem, k, a.NewAdd(row, d))
		if a.Weights != nil {
			return []value.Value{a.plus(acc[0], a.NewFMul(a.leaky(a.NewFAdd(x, y), a.Leak), a.NewLoad(a.reg, a.at(a.w, d))))}
		}
		return []value.Value{a.plus(acc[0], a.NewFMul(x, y))}
	})[0]
}

// exponentials puts e^(score - most) in place of n scores, where most is the greatest of these and of those before, old: their sum,
// and what sums relative to old are multiplied by.
func (a *segmentAttention) exponentials(n, old value.Value) (most, sum, factor value.Value) {
	score := func(i value.Value) value.Value { return a.NewLoad(a.reg, a.at(a.scores, i)) }
	how := code.Loop{Vectorize: true, Short: a.Mean() < segmentKeys/4}
	c := a.lib.Accumulator("max", a.sum, true)
	most = c.Value(a.Func, a.Fold(code.Int(0), n, how, []value.Value{c.Begin(a.Func, old)}, func(i value.Value, acc []value.Value) []value.Value {
		return []value.Value{c.Add(a.Func, acc[0], score(i))}
	})[0])
	// As long as all scores are minus infinity there is nothing that they are relative to.
	base := a.NewSelect(a.NewFCmp(enum.FPredOEQ, most, a.number(math.Inf(-1))), a.number(0), most)
	sum = a.Fold(code.Int(0), n, how, []value.Value{a.number(0)}, func(i value.Value, acc []value.Value) []value.Value {
		x := a.apply("exp", a.NewFSub(score(i), base))
		a.NewStore(x, a.at(a.scores, i))
		return []value.Value{a.plus(acc[0], x)}
	})[0]
	return most, sum, a.apply("exp", a.NewFSub(old, base))
}

// values adds the values of n keys, times their exponentials, to what was summed before, times factor: strips of a row, whose
// sums stay in registers.
func (a *segmentAttention) values(kv, n, factor value.Value) {
	size := a.sum.Bytes()
	at, w := int64(0), a.stripBytes()/size
	for at < a.Value {
		for w > 1 && w > a.Value-at {
			w /= 2
		}
		a.strip(kv, n, factor, at, w)
		at += w
	}
}

// strip is values of w elements of a row from number from on.
func (a *segmentAttention) strip(kv, n, factor value.Value, from, w int64) {
	size := a.sum.Bytes()
	how := code.Loop{Vectorize: true, Wide: int(min(w, vectorBytes/size)), Interleave: int(max(1, w*size/vectorBytes)), Unroll: 1}
	if w == 1 {
		how = code.Loop{}
	}
	v := a.buffer(a.V.Buf)
	sums := a.Alloca(a.reg, w, vectorBytes)
	each := func(f func(j value.Value)) { a.For(code.Int(0), code.Int(w), how, f) }
	sum := func(j value.Value) value.Value { return a.Element(a.reg, sums, j) }
	y := func(j value.Value) value.Value { return a.at(a.y, a.NewAdd(j, code.Int(from))) }
	each(func(j value.Value) { a.NewStore(a.NewFMul(a.NewLoad(a.reg, y(j)), factor), sum(j)) })
	a.For(code.Int(0), n, code.Loop{Unroll: 1}, func(i value.Value) {
		p := a.NewLoad(a.reg, a.at(a.scores, i))
		row := a.NewAdd(a.place(a.V, kv, a.NewLoad(code.Index, a.Element(code.Index, a.places, i))), code.Int(from))
		each(func(j value.Value) {
			x := a.NewFMul(p, a.load(a.elem, v, a.NewAdd(row, j)))
			a.NewStore(a.NewFAdd(a.NewLoad(a.reg, sum(j)), x), sum(j))
		})
	})
	each(func(j value.Value) { a.NewStore(a.NewLoad(a.reg, sum(j)), y(j)) })
}
