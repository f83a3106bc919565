package fuse

import (
	"slices"

	"dmir/analysis/cost"
	"dmir/analysis/machine"
	"dmir/compile/kernel"
	"dmir/compile/target"
	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// Rules decide which groups of ops can run as one kernel.
type Rules interface {
	// Legal reports whether ops, in the order of the text, can run as one kernel
	// that stores outs, in place of what they update where over is true, and
	// moves so much. how is how the target runs it, and known is false where that
	// is not known. A legal group stays legal when it loses
	// an op whose results no other op of it uses, and when it is reduced to two
	// of its ops and those between them.
	Legal(ops []*ir.Op, outs []*ir.Value, over map[*ir.Value]bool, moved target.Moved) (how cost.Running, known, ok bool)
	// Least is the time in seconds below which no kernel computes p, and below
	// which none does that computes an operand of it; known is false where that of
	// package cost is.
	Least(p machine.Product) (all, computed float64, known bool)
	// Conflict reports whether a and b are never in one kernel, whatever its
	// other ops are. depends reports whether an op may depend on another.
	Conflict(a, b *ir.Op, depends func(o, on *ir.Op) bool) bool
	// Plain reports whether o is in conflict with no other op that is plain.
	Plain(o *ir.Op) bool
	// Cheap reports whether o may be recomputed in each kernel that uses it.
	Cheap(o *ir.Op) bool
}

// Kernels are the rules of the kernels that the compiler generates; see
// kernel.OfOver. t is what the target knows of them; of the zero value nothing is known.
func Kernels(t target.Times) Rules { return kernels{t} }

type kernels struct{ times target.Times }

func (k kernels) Legal(ops []*ir.Op, outs []*ir.Value, over map[*ir.Value]bool, moved target.Moved) (how cost.Running, known, ok bool) {
	f, err := kernel.OfOver(ops, outs, over)
	if err != nil {
		return how, false, false
	}
	if k.times.Running != nil {
		how, known = k.times.Running(f, moved)
	}
	return how, known, true
}

func (k kernels) Least(p machine.Product) (all, computed float64, known bool) {
	if k.times.Least == nil {
		return 0, 0, false
	}
	all, computed = k.times.Least(p)
	return all, computed, true
}

// Conflict excludes pairs by op and shape alone. Whether two reductions are
// over the same rows is left to Legal.
func (kernels) Conflict(a, b *ir.Op, depends func(o, on *ir.Op) bool) bool {
	if early(a, b, depends) || early(b, a, depends) {
		return true
	}
	if unfusible(a) || unfusible(b) {
		return !viewed(a, b, depends) && !viewed(b, a, depends) && !placed(a, b, depends) && !placed(b, a, depends) &&
			!alongside(a, b, depends) && !alongside(b, a, depends)
	}
	ca, cb := contracts(a), contracts(b)
	switch {
	case ca && cb:
		return !paired(a, b)
	case ca:
		return reduces(b) && !epilogueReduction(b, a, depends)
	case cb:
		return reduces(a) && !epilogueReduction(a, b, depends)
	}
	if op.Of(a).Is(op.Windowed) || op.Of(b).Is(op.Windowed) {
		return reduces(a) && reduces(b)
	}
	return reduces(a) && reduces(b) && incompatibleSpaces(a, b)
}

// Plain ops are those that Conflict asks nothing about.
func (kernels) Plain(o *ir.Op) bool {
	return !unfusible(o) && !contracts(o) && !reduces(o) && !op.Of(o).Is(op.Windowed) && o.Attr(op.RecomputedAttr) == nil
}

// early reports whether a kernel of both would compute o, which is computed again so as not to be held,
// with what is computed before it: m is neither computed again nor depends on o.
func early(o, m *ir.Op, depends func(o, on *ir.Op) bool) bool {
	return o.Attr(op.RecomputedAttr) != nil && m.Attr(op.RecomputedAttr) == nil && !op.IsView(m) && m.Name != op.Constant && !depends(m, o)
}

// incompatibleSpaces reports whether no row kernel has the iteration spaces of
// both reductions: those of a row kernel are its elements, its rows and its
// columns.
func incompatibleSpaces(a, b *ir.Op) bool {
	n, f := reductionSize(a)
	m, h := reductionSize(b)
	if n == 0 || m == 0 || f == 0 || h == 0 {
		return false
	}
	if n == m {
		return f != h && f*h != n && f != n && h != m
	}
	return m != n/f && m != f && n != m/h && n != h
}

// reductionSize is the number of elements that o reads, and how many of them it
// reduces to one; 0 where that is not known.
func reductionSize(o *ir.Op) (elements, each int64) {
	x := o.In(0)
	if x == nil {
		return 0, 0
	}
	n, ok := x.Elements().Int()
	if !ok {
		return 0, 0
	}
	d := op.Of(o)
	if d == nil || d.Reduced == nil {
		return n, 0
	}
	dims, ok := d.Reduced(o)
	each = 1
	for _, d := range dims {
		k, known := x.Shape[d].Int()
		ok = ok && known
		each *= k
	}
	if !ok {
		return n, 0
	}
	return n, each
}

// Cheap ops read no more than they write, or compute an element of the result
// from one element of each operand.
func (kernels) Cheap(o *ir.Op) bool {
	d := op.Of(o)
	if d == nil || !d.Is(op.Pure) || len(o.Regions) > 0 {
		return false
	}
	return d.Is(op.Pointwise) || d.Family == op.Sources || op.MoveOf(o).Fixed()
}

// viewed reports whether m can be in the kernel of o as a move by which an operand
// of o is a view.
func viewed(o, m *ir.Op, depends func(o, on *ir.Op) bool) bool {
	return kernel.Viewable(o, m) && !unfusible(m) && depends(o, m)
}

// placed reports whether m can be in the kernel of o as a move or an update by which
// a result of o lies in another value.
func placed(o, m *ir.Op, depends func(o, on *ir.Op) bool) bool {
	return kernel.Placeable(o, m) && !unfusible(m) && depends(m, o)
}

// alongside reports whether m can be in the kernel of o, an op of kind op.Selective,
// which computes it as often as m alone would: for each element of o's result or,
// as what an operand of o is made of, of the operand.
func alongside(o, m *ir.Op, depends func(o, on *ir.Op) bool) bool {
	d, e := op.Of(o), op.Of(m)
	if d == nil || e == nil || d.Kernel != op.Selective || e.Kernel != op.Fusible || m.Results[0].Tensor() == nil {
		return false
	}
	y := m.Results[0].Tensor()
	if depends(o, m) {
		return (e.Is(op.Pointwise) || e.Move != nil && !e.Is(op.Update)) &&
			slices.ContainsFunc(o.Operands, func(v *ir.Value) bool { return v.Tensor().Elements().Equal(y.Elements()) })
	}
	return e.Is(op.Pointwise) && slices.EqualFunc(y.Shape, o.Results[0].Tensor().Shape, dim.Dim.Equal)
}

// unfusible reports whether o's kernel, if it has one, holds no other op, moves
// that it views its operands by and ops alongside aside.
func unfusible(o *ir.Op) bool {
	d := op.Of(o)
	return d == nil || d.Kernel != op.Fusible
}

// contracts reports whether o is a sum of products other than a convolution.
func contracts(o *ir.Op) bool {
	d := op.Of(o)
	return d != nil && d.Family == op.Contraction && !d.Is(op.Windowed)
}

// epilogueReduction reports whether the reduction o can be in the epilogue of
// the contraction c, as a result that no op of the kernel uses: its operand
// depends on the elements of c one by one, and on no other reduction of them,
// which would have to be complete first.
func epilogueReduction(o, c *ir.Op, depends func(o, on *ir.Op) bool) bool {
	if !op.Reduces(o) || o.Parent != c.Parent || !depends(o, c) {
		return false
	}
	const unknown, dependent, free = 0, 1, 2
	seen := map[*ir.Op]int{c: dependent}
	clean := true
	var back func(o *ir.Op) int
	back = func(o *ir.Op) int {
		if o == nil {
			return free
		}
		if s := seen[o]; s != unknown {
			return s
		}
		if !depends(o, c) {
			return free
		}
		seen[o] = free
		for _, v := range o.Operands {
			if back(v.Op) == dependent {
				seen[o] = dependent
			}
		}
		if seen[o] == dependent && !op.PerElement(o) && !op.MoveOf(o).Selects() {
			clean = false
		}
		return seen[o]
	}
	return back(o.Operands[0].Op) == dependent && clean
}

// reduces reports whether an element of o's result is computed from many
// elements of an operand.
func reduces(o *ir.Op) bool {
	d := op.Of(o)
	return d != nil && (d.Family == op.Normalization && !op.PerElement(o) || d.Is(op.Windowed))
}

// paired reports whether two contractions might share a kernel: the same op and
// attributes, with a common operand.
func paired(a, b *ir.Op) bool {
	if a.Name != b.Name || len(a.Operands) != len(b.Operands) || len(a.Operands) > 3 || len(a.Results) != 1 || len(b.Results) != 1 {
		return false
	}
	if op.Str(a, "equation") != op.Str(b, "equation") || !types.Equal(a.Results[0].Type, b.Results[0].Type) {
		return false
	}
	return slices.ContainsFunc(a.Operands, func(v *ir.Value) bool { return slices.Contains(b.Operands, v) })
}
