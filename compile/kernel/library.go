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

// View is how an operand or a result of a library op lies in the memory of a value
// outside the kernel that it is a part or a permutation of. Its last dimension is
// contiguous.
type View struct {
	Buf   *ir.Value
	Start int64   // of the first element
	Steps []int64 // for each dimension, 0 where it has size 1 or repeats what is there once
}

// Viewable reports whether m, an op that o depends on, may be in the kernel of
// the library op o: it moves elements, to places that do not depend on data,
// and o's kernel takes strides.
func Viewable(o, m *ir.Op) bool {
	d := op.Of(o)
	return d != nil && d.Kernel == op.Library && slices.ContainsFunc(d.Operands, strided) && moves(m)
}

// Placeable is Viewable for an op that depends on o: it moves the elements of a
// result, or updates a part of another value with them.
func Placeable(o, m *ir.Op) bool {
	d := op.Of(o)
	return d != nil && d.Kernel == op.Library && slices.ContainsFunc(d.Results, strided) && (moves(m) || replaces(m))
}

func strided(p op.Param) bool { return p.Strided }

// moves reports whether m moves the elements of one operand to places that do not
// depend on data.
func moves(m *ir.Op) bool { return len(m.Operands) == 1 && op.MoveOf(m).Fixed() }

// replaces reports whether m updates a slice.
func replaces(m *ir.Op) bool { return op.Updates(m) && op.Of(m).Move != nil }

// library is the form of a group with o. The other ops are moves by which its
// operands and results are views, and updates of slices with its results.
func (f *Form) library(o *ir.Op) (*Form, error) {
	g := *f
	g.Class, g.Main, g.Views = ClassLibrary, o, make([]*View, len(o.Operands)+len(o.Results))
	for _, m := range f.Ops {
		if m != o && !Viewable(o, m) && !Placeable(o, m) && m.Name != op.Constant {
			return nil, reason(o, "%s runs as a kernel of its own", o.Name)
		}
	}
	e := newEvaluator(newSpace(), f.Ops)
	g.eval = e
	for _, v := range f.Outputs {
		if err := g.results(v); err != nil {
			return nil, err
		}
		g.Outs = append(g.Outs, Out{Value: v})
	}
	seen := map[*ir.Value]bool{}
	for i, v := range o.Operands {
		if e.inside[v.Op] && v.Op.Name != op.Constant {
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

// results finds the results of f's library op that v, a result of f, has the
// elements of, and how they lie in v's memory.
func (f *Form) results(v *ir.Value) error {
	o, e := f.Main, f.eval
	if v.Op == o {
		if f.Views[len(o.Operands)+v.Index] != nil {
			return reason(o, "%s is stored twice", v.Name)
		}
		return nil
	}
	for _, part := range f.stored(v) {
		found := false
		for i, r := range o.Results {
			idx, loops := e.each(r)
			places := map[*ir.Value]place{r: {idx: idx}}
			for _, m := range f.Ops {
				if m != o && !op.Updates(m) {
					e.follow(m, places)
				}
			}
			p, ok := places[part.of]
			if !ok || len(p.in) > 0 || i >= len(op.Of(o).Results) || !op.Of(o).Results[i].Strided || Product(shapeOf(r)) != Product(shapeOf(part.of)) {
				continue
			}
			at := len(o.Operands) + i
			if f.Views[at] != nil || slices.Contains(f.Outputs, r) {
				return reason(o, "%s is stored twice", r.Name)
			}
			if f.Views[at] = viewAt(v, part.place(p.idx), r, loops); f.Views[at] == nil {
				return reason(o, "%s has no contiguous rows in %s", r.Name, v.Name)
			}
			if !f.Over[v] && part.place(p.idx).Equal(Place(r, idx)) {
				return reason(o, "%s is %s in another shape", v.Name, r.Name)
			}
			found = true
			break
		}
		if !found {
			return reason(o, "%s is stored by the kernel of %s", v.Name, o.Name)
		}
	}
	return nil
}

// view is how v lies in the memory of a value outside the kernel; nil if its
// elements are computed or lie irregularly; see viewAt.
func (e *evaluator) view(v *ir.Value) *View {
	idx, loops := e.each(v)
	x := e.at(v, idx)
	if x.Op != Load || x.Elem != v.Elem() || len(idx) == 0 {
		return nil
	}
	return viewAt(x.Buf, x.At, v, loops)
}

// each is the index of an element of v, with a loop for each dimension, nil for
// those of size 1.
func (e *evaluator) each(v *ir.Value) (idx []Index, loops []*Atom) {
	shape := shapeOf(v)
	idx, loops = make([]Index, len(shape)), make([]*Atom, len(shape))
	for d, n := range shape {
		if n > 1 {
			loops[d] = e.Loop("i", n)
			idx[d] = IndexOf(loops[d])
		}
	}
	return idx, loops
}

// viewAt is the view of v, whose element at loops lies at at in the memory of buf;
// nil if it has no strides, or rows that are not contiguous or less aligned than
// those of a tensor of its own.
func viewAt(buf *ir.Value, at Index, v *ir.Value, loops []*Atom) *View {
	shape := shapeOf(v)
	if len(shape) == 0 {
		return nil
	}
	w := &View{Buf: buf, Start: at.C, Steps: make([]int64, len(shape))}
	last := len(shape) - 1
	unit := GCD(shape[last], max(1, rowAlignment/v.Elem().Bytes()))
	for _, t := range at.Terms {
		d := slices.Index(loops, t.Atom)
		if d < 0 || d == last && t.Coef != 1 || d != last && t.Coef%unit != 0 {
			return nil
		}
		w.Steps[d] = t.Coef
	}
	if w.Start%unit != 0 || shape[last] > 1 && w.Steps[last] != 1 {
		return nil
	}
	return w
}

// rowAlignment is the number of bytes that a thread copies at a time.
const rowAlignment = 16

// Line describes the operand of a library op as lines along the dimension of its
// attribute dim: Lines of N elements with stride Inner; line r starts at
// (r / Inner) · N · Inner + r % Inner.
type Line struct{ Lines, N, Inner int64 }

// LineOf is the description for o.
func LineOf(o *ir.Op) Line {
	shape := shapeOf(o.Operands[0])
	d, _ := op.Dim(o, "dim", len(shape))
	l := Line{1, shape[d], 1}
	for i, n := range shape {
		if i != d {
			l.Lines *= n
		}
		if i > d {
			l.Inner *= n
		}
	}
	return l
}

// takesRowMajor reports whether each operand and result of f, a library kernel, is
// row-major or a view.
func (f *Form) takesRowMajor() bool {
	for i, v := range slices.Concat(f.Main.Operands, f.Main.Results) {
		viewed := i < len(f.Views) && f.Views[i] != nil
		if t := v.Tensor(); !viewed && t != nil && t.At.Order != nil {
			return false
		}
	}
	return true
}
