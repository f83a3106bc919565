// Package distribute runs functions that the devices of a mesh run together: it gives each its
// pieces of the arguments and puts its pieces of the results together.
package distribute

import (
	"fmt"
	"slices"

	"dmir/compile/pass"
	"dmir/compile/tensor"
	"dmir/dialect/ir"
	"dmir/dialect/mesh"
	"dmir/dialect/op"
	"dmir/dialect/types"
	"dmir/gpu/artifact"
)

// Program is what the devices of a mesh run: a function, whose arguments and results state the wholes that they
// are pieces of (op.GlobalAttr), or one for each position along an axis, which together are a step. Those that
// state none are the same on every device.
type Program struct {
	*Layout
	Module *ir.Module
	Fn     *ir.Func // of parts, what they were made of: its arguments and results are those of the program
	// Checks are what is expected of the results, of which the first Returned are those of the
	// text; see artifact.Program.
	Checks   []artifact.Check
	Returned int

	parts []part // by position along the axis of the pipeline
}

// part is a function with the arguments and results of the program that are its own.
type part struct {
	fn            *ir.Func
	args, results []int
}

// Of is the program of fn, a function of m with the attribute dm.mesh.
func Of(m *ir.Module, fn *ir.Func) (*Program, error) {
	if only := op.OnlyOf(fn.Op); only != nil {
		return nil, fmt.Errorf("@%s is for the devices with %s = %d, and the others have other functions", fn.Name, only.Axis, only.Position)
	}
	found, err := meshOf(m, fn)
	if err != nil {
		return nil, err
	}
	p := &Program{Layout: &Layout{Mesh: found}, Module: m, Fn: fn}
	own := part{fn: fn}
	for i, a := range fn.Args {
		p.Args, own.args = append(p.Args, whole(fn, "arg_attrs", i, a.Type)), append(own.args, i)
	}
	for i, t := range fn.Results {
		p.Results, own.results = append(p.Results, whole(fn, "res_attrs", i, t)), append(own.results, i)
	}
	p.parts = []part{own}
	return p, nil
}

// Split is the program of parts, functions of m with the attributes dm.mesh and dm.only, that were made of fn.
func Split(m *ir.Module, fn *ir.Func, parts []pass.Part) (*Program, error) {
	found, err := meshOf(m, parts[0].Func)
	if err != nil {
		return nil, err
	}
	l := &Layout{Mesh: found, Args: make([]*types.Tensor, len(fn.Args)), Results: make([]*types.Tensor, len(fn.Results))}
	p := &Program{Layout: l, Module: m, Fn: fn}
	l.has = make([][]bool, len(fn.Results))
	for i := range l.has {
		l.has[i] = make([]bool, len(parts))
	}
	for at, of := range parts {
		only := op.OnlyOf(of.Func.Op)
		if only == nil || only.Position != at {
			return nil, fmt.Errorf("@%s is not for position %d of a pipeline", of.Func.Name, at)
		}
		l.along = []types.Axis{{Name: only.Axis}}
		for i, n := range of.Args {
			l.Args[n] = whole(of.Func, "arg_attrs", i, of.Func.Args[i].Type)
		}
		for i, n := range of.Results {
			l.Results[n], l.has[n][at] = whole(of.Func, "res_attrs", i, of.Func.Results[i]), true
		}
		p.parts = append(p.parts, part{of.Func, of.Args, of.Results})
	}
	for i, a := range fn.Args { // that no device needs
		if l.Args[i] == nil {
			if t, ok := a.Type.(*types.Tensor); ok {
				r := *t
				r.At.Shard = nil
				l.Args[i] = &r
			}
		}
	}
	return p, nil
}

func meshOf(m *ir.Module, fn *ir.Func) (*mesh.Mesh, error) {
	name := fn.Op.Str(op.MeshAttr)
	if found := mesh.Find(m, name); found != nil {
		return found, nil
	}
	return nil, fmt.Errorf("@%s is run by the devices of @%s, which is no mesh of the file", fn.Name, name)
}

// whole is the type of which argument or result i of fn, of type own, is a piece.
func whole(fn *ir.Func, attrs string, i int, own types.Type) *types.Tensor {
	if t, _ := op.GlobalType(fn.Op, attrs, i); t != nil {
		return t
	}
	t, _ := own.(*types.Tensor)
	return t
}

// part is what a device runs.
func (p *Program) part(device int) *part {
	if p.along == nil {
		return &p.parts[0]
	}
	return &p.parts[p.Mesh.Position(device, p.along)]
}

// Functions are what the devices run, by position along the axis of a pipeline.
func (p *Program) Functions() []*ir.Func {
	out := make([]*ir.Func, len(p.parts))
	for i := range p.parts {
		out[i] = p.parts[i].fn
	}
	return out
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

// Join puts the pieces of all devices together, of a whole of type t; those of devices that have none are
// nil.
func Join(m *mesh.Mesh, t *types.Tensor, pieces []*tensor.Tensor) (*tensor.Tensor, error) {
	s := t.At.Shard
	if s == nil {
		return pieces[slices.IndexFunc(pieces, func(x *tensor.Tensor) bool { return x != nil })], nil
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
		if x == nil {
			continue
		}
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
