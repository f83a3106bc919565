// Package distribute runs functions that the devices of a mesh run together: it gives each its
// pieces of the arguments and puts its pieces of the results together.
package distribute

import (
	"fmt"
	"slices"

	"dmir/compile/tensor"
	"dmir/dialect/ir"
	"dmir/dialect/mesh"
	"dmir/dialect/op"
	"dmir/dialect/types"
	"dmir/gpu/artifact"
)

// Program is a function that each device of a mesh runs; its arguments and results state the wholes
// that they are pieces of (op.GlobalAttr). Those that state none are the same on every device.
type Program struct {
	*Layout
	Module *ir.Module
	Fn     *ir.Func
	// Checks are what is expected of the results, of which the first Returned are those of the
	// text; see artifact.Program.
	Checks   []artifact.Check
	Returned int
}

// Of is the program of fn, a function of m with the attribute dm.mesh.
func Of(m *ir.Module, fn *ir.Func) (*Program, error) {
	name := fn.Op.Str(op.MeshAttr)
	found := mesh.Find(m, name)
	if found == nil {
		return nil, fmt.Errorf("@%s is run by the devices of @%s, which is no mesh of the file", fn.Name, name)
	}
	whole := func(attrs string, i int, own types.Type) *types.Tensor {
		if t, _ := op.GlobalType(fn.Op, attrs, i); t != nil {
			return t
		}
		t, _ := own.(*types.Tensor)
		return t
	}
	l := &Layout{Mesh: found}
	for i, a := range fn.Args {
		l.Args = append(l.Args, whole("arg_attrs", i, a.Type))
	}
	for i, t := range fn.Results {
		l.Results = append(l.Results, whole("res_attrs", i, t))
	}
	return &Program{Layout: l, Module: m, Fn: fn}, nil
}

// Global is the function with the types of the whole arguments, for what makes them: it has no
// body.
func (p *Program) Global() *ir.Func {
	g := *p.Fn
	o := *p.Fn.Op
	g.Op, g.Args = &o, nil
	for i, a := range p.Fn.Args {
		v := *a
		if t := p.Args[i]; t != nil {
			whole := *t
			whole.At.Shard = nil
			v.Type = &whole
		}
		g.Args = append(g.Args, &v)
	}
	return &g
}

// Piece is the piece of x that a device has; what is behind the end of x is zeros, and so is,
// but on the first device along partial axes, what is to be reduced with others (or the neutral
// element of another reduction).
func Piece(m *mesh.Mesh, device int, x *tensor.Tensor, s *types.Sharding) *tensor.Tensor {
	start, size := m.Offset(device, x.Shape, s)
	shape := slices.Clone(x.Shape)
	for d := range shape {
		shape[d] = int(mesh.Piece(int64(x.Shape[d]), m.Count(s.Dims[d].Axes)))
	}
	out := tensor.New(x.Elem, shape...)
	if padding != nil {
		padding(out)
	}
	if len(s.Partial) > 0 && m.Position(device, s.Partial) > 0 {
		fillNeutral(out, s.Reduce)
		return out
	}
	each(size, func(at []int) {
		from, to := 0, 0
		for d := range at {
			from = from*x.Shape[d] + start[d] + at[d]
			to = to*shape[d] + at[d]
		}
		set(out, to, x, from)
	})
	return out
}

// padding is what tests fill pieces with, as programs must not depend on what is behind the end.
var padding func(piece *tensor.Tensor)

// Join puts the pieces of all devices together, of a whole of type t.
func Join(m *mesh.Mesh, t *types.Tensor, pieces []*tensor.Tensor) (*tensor.Tensor, error) {
	s := t.At.Shard
	if s == nil {
		return pieces[0], nil
	}
	shape := make([]int, t.Rank())
	for i, d := range t.Shape {
		n, ok := d.Int()
		if !ok {
			return nil, fmt.Errorf("the size %s of %s is no number", d, t)
		}
		shape[i] = int(n)
	}
	out := tensor.New(t.Elem, shape...)
	partial := make([]*tensor.Tensor, m.Count(s.Partial))
	done := map[string]bool{}
	for device, x := range pieces {
		start, size := m.Offset(device, shape, s)
		part := m.Position(device, s.Partial)
		if key := fmt.Sprint(start, part); done[key] { // another device has the same piece
			continue
		} else {
			done[key] = true
		}
		into := out
		if len(s.Partial) > 0 {
			if partial[part] == nil {
				partial[part] = tensor.New(t.Elem, shape...)
			}
			into = partial[part]
		}
		each(size, func(at []int) {
			from, to := 0, 0
			for d := range at {
				to = to*shape[d] + start[d] + at[d]
				from = from*x.Shape[d] + at[d]
			}
			set(into, to, x, from)
		})
	}
	if len(s.Partial) > 0 {
		return combined(partial, s.Reduce), nil
	}
	return out, nil
}

// each visits the indices of a shape.
func each(shape []int, visit func([]int)) {
	if slices.Contains(shape, 0) {
		return
	}
	at := make([]int, len(shape))
	for {
		visit(at)
		d := len(shape) - 1
		for ; d >= 0; d-- {
			if at[d]++; at[d] < shape[d] {
				break
			}
			at[d] = 0
		}
		if d < 0 {
			return
		}
	}
}

// set copies an element.
func set(to *tensor.Tensor, i int, from *tensor.Tensor, k int) {
	switch to.Kind() {
	case tensor.KindF32:
		to.F32[i] = from.F32[k]
	case tensor.KindF64:
		to.F64[i] = from.F64[k]
	case tensor.KindInt:
		to.Int[i] = from.Int[k]
	default:
		to.Bool[i] = from.Bool[k]
	}
}
