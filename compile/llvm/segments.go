package llvm

import (
	"slices"

	"dmir/compile/kernel"
	"dmir/compile/llvm/code"
	"dmir/dialect/op"

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
	taps := map[*kernel.Atom]bool{} // of windows whose loops are unrolled
	all := func(visit func(x *kernel.Expr)) {
		for _, x := range xs {
			kernel.Walk(x, visit)
		}
	}
	all(func(x *kernel.Expr) {
		if unrolls(x) {
			for _, v := range x.Vars {
				taps[v] = true
			}
		}
	})
	all(func(x *kernel.Expr) {
		for _, c := range x.If {
			coef, per, rest := int64(0), int64(1), []int64{c.X.C} // X is coef·⌊a/per⌋ plus one of rest
			for _, t := range c.X.Terms {
				switch {
				case t.Atom == a || quotient(t.Atom, a):
					coef, per = t.Coef, max(t.Atom.N, 1)
				case taps[t.Atom] && len(rest) == 1:
					for i := range t.Atom.Max {
						rest = append(rest, c.X.C+t.Coef*(i+1))
					}
				default:
					rest = nil
				}
			}
			if coef <= 0 {
				continue
			}
			for _, r := range rest {
				add(ceil(c.Lo-r, coef) * per)
				add(ceil(c.Hi-r, coef) * per)
			}
		}
	})
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
	lo, hi = x.C, x.C
	for _, t := range x.Terms {
		first, last := t.Atom.Min, t.Atom.Max
		if s, ok := e.ranges[t.Atom]; ok {
			first, last = s.First, s.Last-1
		} else if t.Atom.Kind == kernel.Div && len(t.Atom.X.Terms) == 1 && quotient(t.Atom, t.Atom.X.Terms[0].Atom) {
			if s, ok := e.ranges[t.Atom.X.Terms[0].Atom]; ok {
				first, last = s.First/t.Atom.N, (s.Last-1)/t.Atom.N
			}
		}
		a, b := t.Coef*first, t.Coef*last
		lo, hi = lo+min(a, b), hi+max(a, b)
	}
	return lo, hi
}

// quotient reports whether x is a divided by a number.
func quotient(x, a *kernel.Atom) bool {
	return x.Kind == kernel.Div && x.X.Equal(kernel.IndexOf(a))
}

// mostUnrolled bounds the taps of a window whose loops are unrolled.
const mostUnrolled = 25

// unrolls reports whether x reduces the elements of a small window: unrolled, it can be
// computed for a vector of neighbours at once, with nothing to decide about padding.
func unrolls(x *kernel.Expr) bool {
	if x.Op != kernel.Reduce || x.Over != kernel.OwnLoop || x.Groups != nil || x.Span != nil || selects(x) || x.From == nil || !op.Of(x.From).Is(op.Windowed) {
		return false
	}
	return x.Steps() <= mostUnrolled
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
