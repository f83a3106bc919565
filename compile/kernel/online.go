package kernel

import (
	"math"
	"slices"

	"dmir/dialect/types"
)

// Online are the passes along a row in which some sums are computed together
// with the reduction that their elements read, their base: elements are taken
// relative to the base of those before, and the sum so far is corrected where
// the base changes.
//
// The sums are those of exponentials, Σ e^(x - m) with the maximum m of x
// (Milakov and Gimelshein, Online normalizer calculation for softmax, arXiv
// 1805.02867), and of squares, Σ (x - s/n)² with the sum s of the n elements of
// x (Chan, Golub and LeVeque, Updating formulae and a pairwise algorithm for
// computing sample variances, 1979).
type Online struct {
	Passes [][]*Expr       // as in a Nest; a base comes before the sums with it
	Base   map[*Expr]*Expr // of the sums
}

// Online moves each sum that it can into the pass of its base, and what waits for
// nothing into a later pass that reads the same.
func (f *Form) Online() Online {
	o := Online{Base: map[*Expr]*Expr{}}
	pass := map[*Expr]int{}
	for _, level := range f.Nest.Passes { // what a reduction reads is in a pass before its own
		for _, x := range level {
			d := 0
			base := base(x, f.Rows.Cols)
			for _, y := range x.over {
				if y != base {
					d = max(d, pass[y]+1)
				}
			}
			if base != nil {
				if d <= pass[base] {
					d = pass[base]
					o.Base[x] = base
				} else {
					d = max(d, pass[base]+1)
				}
			}
			pass[x] = d
			for len(o.Passes) <= d {
				o.Passes = append(o.Passes, nil)
			}
			o.Passes[d] = append(o.Passes[d], x)
		}
	}
	f.postpone(&o)
	return o
}

// postpone moves reductions that no other one reads into the first later pass that
// reads what they do, where the others of their own pass do not.
func (f *Form) postpone(o *Online) {
	read := map[*Expr]bool{}
	for _, pass := range o.Passes {
		for _, x := range pass {
			for _, y := range x.over {
				read[y] = true
			}
		}
	}
	reads := func(pass []*Expr, x *Expr) bool {
		var others []*Expr
		for _, y := range pass {
			if y != x {
				others = append(others, y.Args[0])
			}
		}
		loads := f.Streams(others, 1)
		for _, y := range f.Streams(x.Args, 1) {
			if !slices.Contains(loads, y) {
				return false
			}
		}
		return true
	}
	for i, pass := range o.Passes {
		for _, x := range slices.Clone(pass) {
			if read[x] || o.Base[x] != nil || reads(o.Passes[i], x) {
				continue
			}
			for k := i + 1; k < len(o.Passes); k++ {
				if reads(o.Passes[k], x) {
					o.Passes[i] = slices.DeleteFunc(o.Passes[i], func(y *Expr) bool { return y == x })
					o.Passes[k] = append(o.Passes[k], x)
					break
				}
			}
		}
	}
}

// base is the reduction with which x, a reduction along a row of cols elements,
// can be computed; nil where there is none.
func base(x *Expr, cols int64) *Expr {
	if x.Kind != "add" || !x.Elem.IsFloat() {
		return nil
	}
	same := func(m, of *Expr, kind string) bool {
		return m.Op == Reduce && m.Over == RowReduction && m.Kind == kind && computedIn(m.Elem) == computedIn(x.Elem) && exact(m.Args[0]) == exact(of)
	}
	body := exact(x.Args[0])
	switch {
	case body.Op == "exp" && exact(body.Args[0]).Op == "sub":
		d := exact(body.Args[0])
		if m := exact(d.Args[1]); same(m, d.Args[0], "max") {
			return m
		}
	case body.Op == "mul" && body.Args[0] == body.Args[1] && exact(body.Args[0]).Op == "sub":
		d := exact(body.Args[0])
		if s := meanOf(exact(d.Args[1]), cols); s != nil && same(s, d.Args[0], "add") {
			return s
		}
	}
	return nil
}

// meanOf is the sum that x divides by n; nil where x is another expression.
func meanOf(x *Expr, n int64) *Expr {
	if len(x.Args) != 2 {
		return nil
	}
	by := x.Args[1]
	if x.Op == "mul" && x.Args[0].Op == Number {
		x, by = &Expr{Op: x.Op, Args: []*Expr{x.Args[1], by}}, x.Args[0]
	}
	times := by.Num * float64(n)
	if x.Op == "div" {
		times = by.Num / float64(n)
	}
	if x.Op != "mul" && x.Op != "div" || by.Op != Number || math.Abs(times-1) > 0x1p-20 {
		return nil
	}
	return exact(x.Args[0])
}

// computedIn is the type in which kernels compute elements of a type.
func computedIn(e types.Elem) types.Elem {
	if e.IsFloat() && e.Bytes() < 4 {
		return types.F32
	}
	return e
}

// exact is x without conversions that change no value, as kernels compute it.
func exact(x *Expr) *Expr {
	for x.Op == "convert" && x.Args[0].Elem.IsFloat() && computedIn(x.Args[0].Elem) == x.Elem {
		x = x.Args[0]
	}
	return x
}

// Streams are the loads of xs that advance along the row with each element, in
// vectors of v, whose addresses no reduction decides and no condition guards.
func (f *Form) Streams(xs []*Expr, v int64) (loads []*Expr) {
	seen := map[*Expr]bool{}
	var visit func(x *Expr)
	visit = func(x *Expr) {
		if seen[x] || x.Op == Reduce || x.Op == Guard {
			return
		}
		seen[x] = true
		if x.Op != Load {
			for _, a := range x.Args {
				visit(a)
			}
			return
		}
		col := f.Rows.Col
		if col != nil && x.DependsOn(col) && len(x.RowReductions()) == 0 && (v == 1 || x.At.Vector(col, v) == v) {
			loads = append(loads, x)
		}
	}
	for _, x := range xs {
		visit(x)
	}
	return loads
}

// Operations is the number of distinct ones that xs take for each element of a
// row; random numbers count as many.
func (f *Form) Operations(xs []*Expr) (n int64) {
	const random = 16 // neighbours share a draw
	seen := &visited{}
	for _, x := range xs {
		walk(x, seen, (*Expr).overRows, func(y *Expr) {
			switch {
			case !slices.Contains(y.Free(), f.Rows.Col):
			case y.Op == Keep || y.Op == Random:
				n += random
			default:
				n++
			}
		})
	}
	return n
}
