package fuse

import (
	"slices"

	"dmir/compile/kernel"
	"dmir/dialect/ir"
	"dmir/dialect/op"
)

// Rules say which groups of ops can run as one kernel.
type Rules interface {
	// Legal reports whether ops, in the order of the text, can run as one kernel
	// that stores outs, those for which over is true over what they update; handed
	// is the bytes that the kernel writes to memory of its own and reads from it,
	// such as partial sums. A legal group stays legal when it loses an op whose
	// results none of the others use, and when only two of its ops and those
	// between them are left.
	Legal(ops []*ir.Op, outs []*ir.Value, over map[*ir.Value]bool) (handed int64, ok bool)
	// Apart reports whether a and b are never in one kernel, whatever else is.
	Apart(a, b *ir.Op) bool
	// Cheap reports whether o may be computed again in each kernel that uses it.
	Cheap(o *ir.Op) bool
}

// Kernels are the rules of the kernels that the compiler can make; see
// kernel.OfOver. The target says what a kernel hands on in memory of its own; nil:
// nothing.
func Kernels(handed func(*kernel.Form) int64) Rules { return kernels{handed} }

type kernels struct{ handed func(*kernel.Form) int64 }

func (k kernels) Legal(ops []*ir.Op, outs []*ir.Value, over map[*ir.Value]bool) (handed int64, ok bool) {
	f, err := kernel.OfOver(ops, outs, over)
	if err != nil {
		return 0, false
	}
	if k.handed != nil {
		handed = k.handed(f)
	}
	return handed, true
}

// Apart knows what no kernel has two of. What is left to Legal is whether two
// folds are over the same rows.
func (kernels) Apart(a, b *ir.Op) bool {
	if unfusible(a) || unfusible(b) {
		return true
	}
	ca, cb := contracts(a), contracts(b)
	switch {
	case ca && cb:
		return !paired(a, b)
	case ca:
		return folds(b) && !foldsOf(b, a)
	case cb:
		return folds(a) && !foldsOf(a, b)
	}
	if op.Of(a).Is(op.Windowed) || op.Of(b).Is(op.Windowed) {
		return folds(a) && folds(b)
	}
	return folds(a) && folds(b) && strangers(a, b)
}

// strangers reports whether two folds are over spaces that no row kernel has
// both of: it has the elements of its rows and columns, and its rows and its
// columns themselves.
func strangers(a, b *ir.Op) bool {
	n, f := folded(a)
	m, h := folded(b)
	if n == 0 || m == 0 || f == 0 || h == 0 {
		return false
	}
	if n == m {
		return f != h && f*h != n && f != n && h != m
	}
	return m != n/f && m != f && n != m/h && n != h
}

// folded is how many elements o folds, and how many to one; 0 where that is not
// known.
func folded(o *ir.Op) (elements, each int64) {
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

// Cheap ops read no more than they give, or compute one element of each of
// their operands for one of their result.
func (kernels) Cheap(o *ir.Op) bool {
	d := op.Of(o)
	if d == nil || !d.Is(op.Pure) || len(o.Regions) > 0 {
		return false
	}
	return d.Is(op.Pointwise) || d.Family == op.Sources || op.MoveOf(o).Fixed()
}

// unfusible reports whether o's kernel, if it has one, takes no other op.
func unfusible(o *ir.Op) bool {
	d := op.Of(o)
	return d == nil || d.Kernel != op.Fusible
}

// contracts reports whether o is a sum of products that is no convolution.
func contracts(o *ir.Op) bool {
	d := op.Of(o)
	return d != nil && d.Family == op.Contraction && !d.Is(op.Windowed)
}

// foldsOf reports whether the fold o may stand behind the contraction c, as a
// result that nothing in the kernel uses: what it folds depends on c's elements
// one by one, and on no other fold of them, which would have to be done before.
func foldsOf(o, c *ir.Op) bool {
	if !op.Reduces(o) || o.Parent != c.Parent {
		return false
	}
	const unknown, depends, free = 0, 1, 2
	seen := map[*ir.Op]int{c: depends}
	clean := true
	var back func(o *ir.Op) int
	back = func(o *ir.Op) int {
		if o == nil {
			return free
		}
		if s := seen[o]; s != unknown {
			return s
		}
		seen[o] = free
		for _, v := range o.Operands {
			if back(v.Op) == depends {
				seen[o] = depends
			}
		}
		if d := op.Of(o); seen[o] == depends && !d.Is(op.Pointwise) && !op.MoveOf(o).Selects() {
			clean = false
		}
		return seen[o]
	}
	return back(o.Operands[0].Op) == depends && clean
}

// folds reports whether an element of o's result is computed from many of an
// operand's.
func folds(o *ir.Op) bool {
	d := op.Of(o)
	return d != nil && (d.Family == op.Normalization || d.Is(op.Windowed))
}

// paired reports whether two contractions might share a kernel: equal in form,
// with a common operand.
func paired(a, b *ir.Op) bool {
	if a.Name != b.Name || len(a.Operands) != 2 || len(b.Operands) != 2 || len(a.Results) != 1 || len(b.Results) != 1 {
		return false
	}
	if op.Str(a, "equation") != op.Str(b, "equation") || a.Results[0].Type != b.Results[0].Type {
		return false
	}
	return slices.ContainsFunc(a.Operands, func(v *ir.Value) bool { return slices.Contains(b.Operands, v) })
}
