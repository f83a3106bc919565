package llvm

import (
	"maps"
	"math"
	"slices"

	"dmir/compile/kernel"
	"dmir/compile/llvm/code"

	"github.com/llir/llvm/ir/constant"
	"github.com/llir/llvm/ir/enum"
	lltypes "github.com/llir/llvm/ir/types"
	"github.com/llir/llvm/ir/value"
)

// index is x as a number of 64 bits. Overflow is impossible within the bounds of x,
// which lets the compiler see through extensions.
func (e *emitter) index(x kernel.Index) value.Value {
	var sum value.Value
	add := func(v value.Value) {
		if sum == nil {
			sum = v
			return
		}
		n := e.NewAdd(sum, v)
		n.OverflowFlags = nsw
		sum = n
	}
	for _, t := range x.Terms {
		v := e.atom(t.Atom)
		if t.Coef != 1 {
			n := e.NewMul(v, code.Int(t.Coef))
			n.OverflowFlags = nsw
			v = n
		}
		add(v)
	}
	if sum == nil || x.C != 0 {
		add(code.Int(x.C))
	}
	return sum
}

// less compares indices.
const less = enum.IPredSLT

var nsw = []enum.OverflowFlag{enum.OverflowFlagNSW}

func (e *emitter) atom(a *kernel.Atom) value.Value {
	if v, ok := e.atoms[a]; ok {
		return v
	}
	for i := len(e.scopes) - 1; i >= 0; i-- {
		if v, ok := e.scopes[i].index[a]; ok {
			return v
		}
	}
	var v value.Value
	switch a.Kind {
	case kernel.Div:
		v = e.divided(a, func(x, n value.Value) value.Value { return e.NewUDiv(x, n) })
	case kernel.Mod:
		v = e.divided(a, func(x, n value.Value) value.Value { return e.NewURem(x, n) })
	case kernel.Within:
		return e.index(a.X)
	case kernel.Datum:
		if e.inside && a.E.Op == "clamp" && a.Min == 0 && a.E.Elem.Bytes() >= 4 {
			v = e.between(a)
			break
		}
		v = e.value(a.E)
		v = e.extended(v, a.E.Elem.IsUnsigned() || v.Type().Equal(lltypes.I1))
	default:
		return e.fail(code.Index, "the variable %s is read where it has no value", a.Name)
	}
	e.scopes[len(e.scopes)-1].index[a] = v
	return v
}

// divided divides a's index, which is not negative, by a constant: in 32 bits where
// these suffice, since that is faster.
func (e *emitter) divided(a *kernel.Atom, by func(x, n value.Value) value.Value) value.Value {
	x := e.index(a.X)
	if _, hi := a.X.Bounds(); hi <= math.MaxInt32 && a.N <= math.MaxInt32 {
		q := by(e.NewTrunc(x, lltypes.I32), constant.NewInt(lltypes.I32, a.N))
		return e.NewZExt(q, code.Index)
	}
	return by(x, code.Int(a.N))
}

// divisions are the distinct atoms that divide an index in xs or at which depends on v.
func divisions(xs []*kernel.Expr, at []kernel.Index, v *kernel.Atom) map[*kernel.Atom]bool {
	out := map[*kernel.Atom]bool{}
	look := func(a *kernel.Atom) {
		if (a.Kind == kernel.Div || a.Kind == kernel.Mod) && a.X.DependsOn(v) {
			out[a] = true
		}
	}
	for _, x := range xs {
		kernel.Walk(x, func(x *kernel.Expr) {
			x.At.Atoms(look)
			for _, c := range x.If {
				c.X.Atoms(look)
			}
		})
	}
	for _, x := range at {
		x.Atoms(look)
	}
	return out
}

// widest returns the result of widen for the number of neighbours, of n elements, whose
// indices have the fewest divisions by which they differ: all n where there are none in
// divided, those of single elements; else the largest of the best.
func widest[T any](n int64, divided map[*kernel.Atom]bool, single T, widen func(w int64) (T, map[*kernel.Atom]bool, error)) (T, error) {
	if len(divided) == 0 {
		if n == 1 {
			return single, nil
		}
		all, _, err := widen(n)
		return all, err
	}
	best, fewest := single, len(divided)
	for _, w := range widths(n, divided) {
		x, left, err := widen(w)
		if err != nil {
			return single, err
		}
		if len(left) < fewest {
			best, fewest = x, len(left)
		}
		if fewest == 0 {
			break
		}
	}
	return best, nil
}

// mostWidths bounds the widths that are tried.
const mostWidths = 64

// widths are numbers of neighbours, largest first, that divide n and for which indices
// may lose divisions: divisors that they share with n, alone and, since an index may be
// divided again, as products.
func widths(n int64, divided map[*kernel.Atom]bool) []int64 {
	all := map[int64]bool{}
	for range 3 {
		for d := range divided {
			all[kernel.GCD(d.N, n)] = true
			for _, w := range slices.Collect(maps.Keys(all)) {
				all[kernel.GCD(w, d.N)] = true
				if w <= n/d.N {
					all[kernel.GCD(w*d.N, n)] = true
				}
			}
		}
	}
	var out []int64
	for w := range all {
		if w > 1 && w < n {
			out = append(out, w)
		}
	}
	slices.Sort(out)
	slices.Reverse(out)
	return out[:min(len(out), mostWidths)]
}
