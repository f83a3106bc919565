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
	transfer(out, nil, x, start, size)
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
		transfer(into, start, x, nil, size)
	}
	if len(s.Partial) > 0 {
		return combined(partial, s.Reduce), nil
	}
	return out, nil
}

// transfer copies the part of from that begins at start, or at its first element, and has the
// given size to where such a part begins in to, row by row.
func transfer(to *tensor.Tensor, toStart []int, from *tensor.Tensor, start, size []int) {
	if slices.Contains(size, 0) {
		return
	}
	rank := len(size)
	row := 1
	if rank > 0 {
		row = size[rank-1]
	}
	place := func(x *tensor.Tensor, start, at []int) int {
		n := 0
		for d := range rank {
			n *= x.Shape[d]
			if start != nil {
				n += start[d]
			}
			if d < rank-1 {
				n += at[d]
			}
		}
		return n
	}
	at := make([]int, max(0, rank-1))
	for {
		copyRow(to, place(to, toStart, at), from, place(from, start, at), row)
		d := len(at) - 1
		for ; d >= 0; d-- {
			if at[d]++; at[d] < size[d] {
				break
			}
			at[d] = 0
		}
		if d < 0 {
			return
		}
	}
}

// copyRow copies n elements from the k-th on to the i-th and those behind it.
func copyRow(to *tensor.Tensor, i int, from *tensor.Tensor, k, n int) {
	switch to.Kind() {
	case tensor.KindF32:
		copy(to.F32[i:i+n], from.F32[k:])
	case tensor.KindF64:
		copy(to.F64[i:i+n], from.F64[k:])
	case tensor.KindInt:
		copy(to.Int[i:i+n], from.Int[k:])
	default:
		copy(to.Bool[i:i+n], from.Bool[k:])
	}
}
