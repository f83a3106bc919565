package attention

import (
	"slices"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// atom is an index that a program runs over: a letter of an equation or, where a
// reshape cuts a dimension, a part of one. Parts are outermost first.
type atom struct {
	size  dim.Dim
	parts []*atom
	of    *atom // the index that this is, of a value sliced to fewer elements
}

func (a *atom) index() *atom {
	if a.of != nil {
		return a.of
	}
	return a
}

func (a *atom) unit() bool { n, ok := a.size.Int(); return ok && n == 1 }

// axes are the atoms of each dimension of a value; a dimension of size 1 that
// repeats has none.
type axes [][]*atom

// leaves are the atoms of list as far as they have been cut.
func (f *finder) leaves(list []*atom) []*atom {
	var out []*atom
	for _, a := range list {
		switch {
		case a.parts != nil:
			out = append(out, f.leaves(a.parts)...)
		case f.units || !a.unit():
			out = append(out, a)
		}
	}
	return out
}

// longest are the leaves of list without those of size 1 that stand beside others, of
// which the index is 0.
func (f *finder) longest(list []*atom) []*atom {
	all := f.leaves(list)
	if len(all) == 1 {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), (*atom).unit)
}

func (f *finder) flat(x axes) []*atom { return f.leaves(slices.Concat(x...)) }

// all is x with the leaves of every dimension.
func (f *finder) all(x axes) axes {
	out := make(axes, len(x))
	for i := range x {
		out[i] = f.leaves(x[i])
	}
	return out
}

func (f *finder) same(x, y axes) bool {
	return slices.EqualFunc(f.all(x), f.all(y), slices.Equal[[]*atom])
}

// each has a dimension for every atom.
func each(list []*atom) (x axes) {
	for _, a := range list {
		x = append(x, []*atom{a})
	}
	return x
}

// regroup is the axes of a value of another shape with the same elements in the
// same order. Atoms that lie across the edge of a dimension are cut.
func (f *finder) regroup(x axes, shape []dim.Dim) (axes, bool) {
	rest := f.flat(x)
	one := dim.Const(1)
	out := make(axes, len(shape))
	for i, need := range shape {
		if need.Equal(one) && len(rest) > 0 && rest[0].unit() {
			out[i], rest = rest[:1:1], rest[1:]
			continue
		}
		for !need.Equal(one) {
			if len(rest) == 0 || need.IsZero() {
				return nil, false
			}
			a := rest[0]
			if left, ok := need.Div(a.size); ok {
				out[i], rest, need = append(out[i], a), rest[1:], left
				continue
			}
			left, ok := a.size.Div(need)
			if !ok {
				return nil, false
			}
			a.parts = []*atom{{size: need}, {size: left}}
			out[i], rest, need = append(out[i], a.parts[0]), append([]*atom{a.parts[1]}, rest[1:]...), one
		}
	}
	for _, a := range rest {
		if !a.unit() {
			return nil, false
		}
	}
	return out, true
}

// back is the operand of an op that only names, orders or repeats elements, and
// its axes from those of the result.
func (f *finder) back(o *ir.Op, x axes) (*ir.Value, axes, bool) {
	v := o.Operands[0]
	t := v.Tensor()
	switch o.Name {
	case "dm.convert":
		return v, x, true
	case "dm.transpose":
		dims, ok := op.Dims(o, "dims", len(x))
		if !ok || len(dims) != len(x) {
			return nil, nil, false
		}
		to := make(axes, len(x))
		for i, d := range dims {
			to[d] = x[i]
		}
		return v, to, true
	case "dm.reshape":
		to, ok := f.regroup(x, t.Shape)
		return v, to, ok
	case "dm.broadcast":
		dims, p := op.BroadcastDims(o)
		if p != nil {
			return nil, nil, false
		}
		to := make(axes, t.Rank())
		for i, d := range dims {
			if !repeats(t.Shape[i], o.Out(0).Shape[d]) {
				to[i] = x[d]
			}
		}
		return v, to, true
	}
	return nil, nil, false
}

// repeats reports whether a dimension of size from gives one of size to by
// repetition.
func repeats(from, to dim.Dim) bool { return from.Equal(dim.Const(1)) && !to.Equal(dim.Const(1)) }

// aligned is the axes of an operand of an element-wise op, whose result has
// shape and the axes x.
func aligned(t *types.Tensor, shape []dim.Dim, x axes) (axes, bool) {
	skip := len(shape) - t.Rank()
	if skip < 0 {
		return nil, false
	}
	out := make(axes, t.Rank())
	for i, d := range t.Shape {
		if !repeats(d, shape[i+skip]) {
			out[i] = x[i+skip]
		}
	}
	return out, true
}

// origin is the value that v is outside of kernels, or what a kernel yields as v.
func origin(v *ir.Value) *ir.Value {
	for v.Op != nil && v.Op.Name == op.Kernel {
		t := v.Op.Body(0).Terminator()
		if t == nil || v.Index >= len(t.Operands) {
			break
		}
		v = t.Operands[v.Index]
	}
	return v
}

// plain reports whether v is a tensor in row-major order in the device's memory.
func plain(v *ir.Value) bool {
	t := v.Tensor()
	return t != nil && t.At.Default() && t.Enc == ""
}
