package kernel

import (
	"slices"

	"dmir/dialect/ir"
	"dmir/dialect/op"
)

// LibraryOp returns the op among ops that a library kernel computes, nil where
// there is none.
func LibraryOp(ops []*ir.Op) *ir.Op {
	for _, o := range ops {
		if d := op.Of(o); d != nil && d.Kernel == op.Library {
			return o
		}
	}
	return nil
}

// View is how an operand of a library op lies in the memory of a value outside
// the kernel that it is a part or a permutation of. Its last dimension is
// contiguous.
type View struct {
	Buf   *ir.Value
	Start int64   // of the first element
	Steps []int64 // for each dimension, 0 where it has size 1
}

// Viewable reports whether m, an op that o depends on, may be in the kernel of
// the library op o: it moves elements, to places that do not depend on data,
// and o's kernel takes strides.
func Viewable(o, m *ir.Op) bool {
	d := op.Of(o)
	return d != nil && d.Kernel == op.Library && slices.ContainsFunc(d.Operands, func(p op.Param) bool { return p.Strided }) &&
		len(m.Operands) == 1 && op.MoveOf(m).Fixed()
}

// library is the form of a group with o. The other ops are moves that its
// operands are views by.
func (f *Form) library(o *ir.Op) (*Form, error) {
	g := *f
	g.Class, g.Main, g.Views = ClassLibrary, o, make([]*View, len(o.Operands))
	for _, m := range f.Ops {
		if m != o && !Viewable(o, m) {
			return nil, reason(o, "%s runs as a kernel of its own", o.Name)
		}
	}
	for _, v := range f.Outputs {
		if v.Op != o {
			return nil, reason(o, "%s is stored by the kernel of %s", v.Name, o.Name)
		}
		g.Outs = append(g.Outs, Out{Value: v})
	}
	e := newEvaluator(newSpace(), f.Ops)
	seen := map[*ir.Value]bool{}
	for i, v := range o.Operands {
		if e.inside[v.Op] {
			if g.Views[i] = e.view(v); g.Views[i] == nil || i >= len(op.Of(o).Operands) || !op.Of(o).Operands[i].Strided {
				return nil, reason(o, "%s is no view of a tensor with contiguous rows", v.Name)
			}
			v = g.Views[i].Buf
		}
		if !seen[v] {
			seen[v] = true
			g.Inputs = append(g.Inputs, v)
		}
	}
	return &g, nil
}

// view is how v lies in the memory of a value outside the kernel; nil if its
// elements are computed or lie irregularly, or if its rows are not contiguous
// and as aligned as those of a tensor of its own.
func (e *evaluator) view(v *ir.Value) *View {
	shape := shapeOf(v)
	idx, loops := make([]Index, len(shape)), make([]*Atom, len(shape))
	for d, n := range shape {
		if n > 1 {
			loops[d] = e.Loop("i", n)
			idx[d] = IndexOf(loops[d])
		}
	}
	x := e.at(v, idx)
	if x.Op != Load || x.Elem != v.Elem() || len(shape) == 0 {
		return nil
	}
	w := &View{Buf: x.Buf, Start: x.At.C, Steps: make([]int64, len(shape))}
	last := len(shape) - 1
	unit := gcd(shape[last], max(1, rowAlignment/v.Elem().Bytes()))
	for _, t := range x.At.Terms {
		d := slices.Index(loops, t.Atom)
		if d < 0 || d == last && t.Coef != 1 || d != last && t.Coef%unit != 0 {
			return nil
		}
		w.Steps[d] = t.Coef
	}
	if w.Start%unit != 0 {
		return nil
	}
	return w
}

// rowAlignment is the number of bytes that a thread copies at a time.
const rowAlignment = 16
