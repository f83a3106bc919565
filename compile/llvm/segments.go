package llvm

import (
	"slices"

	"dmir/compile/kernel"
	"dmir/compile/llvm/code"

	"github.com/llir/llvm/ir/constant"
	"github.com/llir/llvm/ir/value"
)

// A loop whose variable decides which part of a concatenation, or whether the padding of
// a pad is read, becomes a loop for each part, in which nothing is left to decide: the
// vectorizer would compute all parts for each element, or give up.

// mostSegments bounds the loops that one becomes.
const mostSegments = 8

// segment is a range of a loop's variable, from First, below Last.
type segment struct{ First, Last int64 }

// segments are the parts of the range of a, 0 to n, in which the conditions of xs that
// depend on a alone are all decided; the whole range where there are too many.
func segments(xs []*kernel.Expr, a *kernel.Atom, n int64) []segment {
	if a == nil {
		return []segment{{0, n}}
	}
	at := map[int64]bool{}
	add := func(x int64) {
		if x > 0 && x < n {
			at[x] = true
		}
	}
	for _, x := range xs {
		kernel.Walk(x, func(x *kernel.Expr) {
			for _, c := range x.If {
				if len(c.X.Terms) == 1 && c.X.Terms[0].Atom == a && c.X.Terms[0].Coef == 1 {
					add(c.Lo - c.X.C)
					add(c.Hi - c.X.C)
				}
			}
		})
	}
	if len(at) >= mostSegments {
		return []segment{{0, n}}
	}
	var ends []int64
	for x := range at {
		ends = append(ends, x)
	}
	slices.Sort(ends)
	var out []segment
	from := int64(0)
	for _, to := range append(ends, n) {
		out = append(out, segment{from, to})
		from = to
	}
	return out
}

// along is fold over a variable a from first, below last, which lie in the range of the
// segments, in a loop for each segment.
func (e *emitter) along(a *kernel.Atom, segs []segment, first, last value.Value, how code.Loop, acc []value.Value, body func(i value.Value, acc []value.Value) []value.Value) []value.Value {
	for _, s := range segs {
		from, to := first, last
		if len(segs) > 1 {
			from, to = e.most(first, code.Int(s.First)), e.least(last, code.Int(s.Last))
		}
		e.ranges[a] = s
		acc = e.fold(a, from, to, how, acc, body)
		delete(e.ranges, a)
	}
	return acc
}

// bounds are x.Bounds where variables of loops are in segments of their ranges.
func (e *emitter) bounds(x kernel.Index) (lo, hi int64) {
	if len(x.Terms) != 1 {
		return x.Bounds()
	}
	s, ok := e.ranges[x.Terms[0].Atom]
	if !ok {
		return x.Bounds()
	}
	a, b := x.Terms[0].Coef*s.First, x.Terms[0].Coef*(s.Last-1)
	return x.C + min(a, b), x.C + max(a, b)
}

// least and most are the smaller and the larger of two indices.
func (e *emitter) least(x, y value.Value) value.Value { return e.either(x, y, true) }

func (e *emitter) most(x, y value.Value) value.Value { return e.either(x, y, false) }

func (e *emitter) either(x, y value.Value, smaller bool) value.Value {
	a, ok := x.(*constant.Int)
	b, both := y.(*constant.Int)
	if ok && both {
		if (a.X.Cmp(b.X) < 0) == smaller {
			return x
		}
		return y
	}
	if smaller {
		return e.NewSelect(e.NewICmp(less, x, y), x, y)
	}
	return e.NewSelect(e.NewICmp(less, y, x), x, y)
}
