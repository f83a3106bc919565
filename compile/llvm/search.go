package llvm

import (
	"slices"

	"dmir/compile/kernel"
	"dmir/compile/llvm/code"
	"dmir/compile/llvm/scalar"
	"dmir/dialect/types"

	"github.com/llir/llvm/ir/constant"
	"github.com/llir/llvm/ir/enum"
	lltypes "github.com/llir/llvm/ir/types"
	"github.com/llir/llvm/ir/value"
)

// search halves the range in which the first element is for which the predicate of x does not hold.
func (e *emitter) search(x *kernel.Expr) value.Value {
	e.hoist(x.Args[0])
	ends := e.While([]value.Value{code.Int(0), code.Int(x.Vars[0].Max + 1)}, func(acc []value.Value) value.Value {
		return e.NewICmp(less, acc[0], acc[1])
	}, func(acc []value.Value) (out []value.Value) {
		middle := e.NewLShr(e.NewAdd(acc[0], acc[1]), code.Int(1))
		e.within(func() {
			e.bind(x.Vars[0], middle)
			holds := e.value(x.Args[0])
			out = []value.Value{e.NewSelect(holds, e.NewAdd(middle, code.Int(1)), acc[0]), e.NewSelect(holds, acc[1], middle)}
		})
		return out
	})
	return e.number(x, ends[0])
}

// mostWalked is how many times as many elements as there are searches these may walk over: each search among them halves a range some ten
// times, and the processor foresees none of it.
const mostWalked = 8

// risingRows is how many neighbours or steps a task has at least whose searches rise: each task begins with a search.
const risingRows = 256

// rising are the searches in xs for numbers that rise with a, among what does not depend on it: the next one begins where the one
// before ended.
func rising(xs []*kernel.Expr, a *kernel.Atom) (all []*kernel.Expr) {
	if a == nil {
		return nil
	}
	for _, x := range xs {
		kernel.Walk(x, func(x *kernel.Expr) {
			if x.Op != kernel.Search || x.Args[0].Op != "compare" || x.Vars[0].Max >= mostWalked*(a.Max+1) || slices.Contains(all, x) {
				return
			}
			is := x.Args[0]
			of, number := is.Args[0], is.Args[1]
			if number.Op != kernel.Count || len(number.At.Terms) != 1 || number.At.Terms[0].Atom != a || number.At.Terms[0].Coef < 0 || of.DependsOn(a) {
				return
			}
			if is.Kind == "lt" || is.Kind == "le" {
				all = append(all, x)
			}
		})
	}
	return all
}

// risen is fold over a, of which the searches ss rise, and which are found in one pass over what they search.
func (e *emitter) risen(ss []*kernel.Expr, a *kernel.Atom, from, to value.Value, how code.Loop, body func(i value.Value)) {
	begins := make([]value.Value, len(ss))
	e.within(func() {
		e.bind(a, from)
		for k, s := range ss {
			begins[k] = e.wholeNumber(e.value(s))
		}
	})
	how.Vectorize = false
	e.fold(a, from, to, how, begins, func(i value.Value, acc []value.Value) []value.Value {
		out := make([]value.Value, len(ss))
		for k, s := range ss {
			n := s.Vars[0].Max + 1
			out[k] = e.While(acc[k:k+1], func(acc []value.Value) (more value.Value) {
				e.within(func() {
					e.bind(s.Vars[0], e.least(acc[0], code.Int(n-1)))
					more = e.NewAnd(e.NewICmp(less, acc[0], code.Int(n)), e.value(s.Args[0]))
				})
				return more
			}, func(acc []value.Value) []value.Value {
				return []value.Value{e.NewAdd(acc[0], code.Int(1))}
			})[0]
			e.given[s] = e.number(s, out[k])
		}
		body(i)
		for _, s := range ss {
			delete(e.given, s)
		}
		return out
	})
}

// number is n, an index that is not negative, as an integer of the type of x.
func (e *emitter) number(x *kernel.Expr, n value.Value) value.Value {
	if t := scalar.Register(x.Elem); !t.Equal(code.Index) {
		return e.NewTrunc(n, t)
	}
	return n
}

// sumsOfSegment is how many sums a loop over a segment has where one is not much shorter: additions
// wait for the one before.
const sumsOfSegment = 4

// longSegment is the mean length of segments from which a loop over one has several sums.
const longSegment = 20

// vectorSegment is the mean length of segments from which vectors whose rest is masked sum them in less time than a loop of
// additions, each of which waits for the one before: with 4 elements they take 1.7 times as long, with 7 as long, with 16 three quarters.
const vectorSegment = 12

// overSegment is the reduction x over the elements of its segment. These are mostly gathered, for which vectors pay only where
// they have masks.
func (e *emitter) overSegment(x *kernel.Expr, begin value.Value) value.Value {
	if e.M.Masks && combines(x) && x.Span.Mean >= vectorSegment && x.Elem == types.F32 && !e.inside && !reducesAgain(x) {
		how := code.Loop{Vectorize: true, Short: true, Wide: vectorBytes / 4, Interleave: 1, Unroll: 1}
		return e.fold(x.Vars[0], e.index(x.Span.From), e.index(x.Span.To), how, []value.Value{begin}, func(_ value.Value, acc []value.Value) []value.Value {
			return []value.Value{e.step(x, x.Args[0], acc[0])}
		})[0]
	}
	outer := e.inside
	e.inside = true
	defer func() { e.inside = outer }()
	from, to := e.index(x.Span.From), e.index(x.Span.To)
	acc := []value.Value{begin}
	if combines(x) && x.Span.Mean >= longSegment {
		for range sumsOfSegment - 1 {
			acc = append(acc, begin)
		}
		whole := e.NewSub(e.most(e.NewSub(to, from), code.Int(0)), code.Int(sumsOfSegment-1))
		rest := e.NewAdd(from, e.NewAnd(e.most(e.NewSub(to, from), code.Int(0)), code.Int(-sumsOfSegment)))
		acc = e.Fold(from, e.NewAdd(from, whole), code.Loop{Step: sumsOfSegment, Scalar: true, Unroll: 1}, acc, func(k value.Value, acc []value.Value) []value.Value {
			out := make([]value.Value, len(acc))
			for i := range out {
				e.within(func() {
					e.bind(x.Vars[0], e.NewAdd(k, code.Int(int64(i))))
					out[i] = e.step(x, x.Args[0], acc[i])
				})
			}
			return out
		})
		held := e.accumulator(x)
		acc = []value.Value{held.Merge(e.Func, held.Merge(e.Func, acc[0], acc[1]), held.Merge(e.Func, acc[2], acc[3]))}
		from = rest
	}
	return e.fold(x.Vars[0], from, to, code.Loop{Scalar: true, Unroll: 1}, acc, func(_ value.Value, acc []value.Value) []value.Value {
		return []value.Value{e.step(x, x.Args[0], acc[0])}
	})[0]
}

// between is a datum that is clamped to what a dimension has, in a loop that is no vector code: as it
// is where it is one of them, which a branch foresees.
func (e *emitter) between(a *kernel.Atom) value.Value {
	x := a.E.Args[1]
	v := e.value(x)
	t := v.Type().(*lltypes.IntType)
	inside := e.NewICmp(enum.IPredULT, v, constant.NewInt(t, a.Max+1))
	v = e.Likely(inside, func() []value.Value { return []value.Value{v} }, func() (out []value.Value) {
		e.within(func() { out = []value.Value{e.value(a.E)} })
		return out
	})[0]
	if t.BitSize < 64 {
		return e.NewZExt(v, code.Index)
	}
	return v
}
