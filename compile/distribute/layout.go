package distribute

import (
	"context"
	"fmt"
	"slices"

	"dmir/compile/tensor"
	"dmir/dialect/dim"
	"dmir/dialect/mesh"
	"dmir/dialect/types"
	"dmir/gpu/artifact"
	"dmir/gpu/collective"
)

// Layout is how the arguments and results of a program lie on the devices of a mesh: the types
// of the wholes, with their shardings; nil where an argument is no tensor.
type Layout struct {
	Mesh          *mesh.Mesh
	Args, Results []*types.Tensor
}

// Compiled is the layout of a compiled program.
func Compiled(p *artifact.Program) (*Layout, error) {
	d := p.Divided
	if d == nil {
		return nil, fmt.Errorf("@%s is for one device", p.Name)
	}
	l := &Layout{Mesh: &mesh.Mesh{Name: d.Mesh}}
	for _, a := range d.Axes {
		l.Mesh.Axes = append(l.Mesh.Axes, mesh.Axis{Name: a.Name, Size: a.Size})
	}
	for i, w := range d.Inputs {
		b := &p.Buffers[p.Inputs[i]]
		t, err := l.whole(w, b.Elem, b.Shape)
		if err != nil {
			return nil, fmt.Errorf("argument %d: %w", i, err)
		}
		l.Args = append(l.Args, t)
	}
	for i, w := range d.Outputs {
		t, err := l.whole(w, p.Buffers[p.Outputs[i]].Elem, p.ResultView(i).Shape)
		if err != nil {
			return nil, fmt.Errorf("result %d: %w", i, err)
		}
		l.Results = append(l.Results, t)
	}
	return l, nil
}

// whole is the type of the whole of a buffer.
func (l *Layout) whole(w *artifact.Whole, elem string, piece []int64) (*types.Tensor, error) {
	e, ok := types.ElemByName(elem)
	if !ok {
		return nil, fmt.Errorf("elements of an unknown type %s", elem)
	}
	t := &types.Tensor{Elem: e, At: types.Placement{Space: types.HBM}}
	shape := func(list []int64) (out []dim.Dim) {
		for _, n := range list {
			out = append(out, dim.Const(n))
		}
		return out
	}
	if t.Shape = shape(piece); w == nil {
		return t, nil
	}
	t.Shape = shape(w.Shape)
	s := &types.Sharding{Mesh: types.SymbolOf(l.Mesh.Name), Dims: make([]types.Split, len(w.Dims))}
	axes := func(names []string) (out []types.Axis, err error) {
		for _, n := range names {
			a, err := types.ParseAxis(n)
			if err != nil {
				return nil, err
			}
			out = append(out, a)
		}
		return out, nil
	}
	var err error
	for i, names := range w.Dims {
		if s.Dims[i].Axes, err = axes(names); err != nil {
			return nil, err
		}
	}
	if s.Partial, err = axes(w.Partial); err != nil {
		return nil, err
	}
	if len(s.Partial) > 0 {
		if s.Reduce, ok = types.ReductionOf(w.Reduction); !ok {
			return nil, fmt.Errorf("no reduction is %q", w.Reduction)
		}
	}
	if problem := l.Mesh.Problem(s); problem != "" {
		return nil, fmt.Errorf("%s", problem)
	}
	if err := s.CheckAxes(); err != nil {
		return nil, err
	}
	t.At.Shard = s
	local, ok := l.Mesh.Local(t, s)
	if !ok || !slices.EqualFunc(local.Shape, piece, func(d dim.Dim, n int64) bool { return d.Equal(dim.Const(n)) }) {
		return nil, fmt.Errorf("%v is no piece of %s", piece, t)
	}
	return t, nil
}

// Piece is a device's piece of argument i, whose whole is x.
func (l *Layout) Piece(device, i int, x *tensor.Tensor) (*tensor.Tensor, error) {
	t := l.Args[i]
	switch {
	case t == nil || t.At.Shard == nil:
		return x, nil
	case len(x.Shape) != t.Rank():
		return nil, fmt.Errorf("argument %d is %s, not %s", i, x.Type(), t)
	}
	return Piece(l.Mesh, device, x, t.At.Shard), nil
}

// Gather is result i put together; piece(k) is that of the device of comms[k]. Every process of the
// run must ask for the same results in the same order.
func (l *Layout) Gather(ctx context.Context, comms []collective.Comm, i int, piece func(k int) *tensor.Tensor) (*tensor.Tensor, error) {
	n := l.Mesh.Devices()
	pieces := make([]*tensor.Tensor, n)
	for k, c := range comms {
		pieces[c.Rank()] = piece(k)
	}
	switch {
	case len(comms) == n:
	case l.Results[i].At.Shard == nil:
		pieces[0] = piece(0)
	default:
		own := piece(0)
		b := tensor.Pack(own)
		all := make([]byte, n*len(b))
		ranks := make([]int, n)
		for r := range ranks {
			ranks[r] = r
		}
		// Bytes travel as they are, so that two elements may share one.
		if err := comms[0].AllGather(ctx, ranks, "ui8", b, all); err != nil {
			return nil, err
		}
		for r := range pieces {
			x, err := tensor.Unpack(all[r*len(b):(r+1)*len(b)], own.Elem, own.Shape)
			if err != nil {
				return nil, err
			}
			pieces[r] = x
		}
	}
	return Join(l.Mesh, l.Results[i], pieces)
}
