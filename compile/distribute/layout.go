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
	// SparseArgs and SparseResults are the sparse tensors that they store, of which the program may have pieces. The driver
	// sets them where arguments and results are whole.
	SparseArgs, SparseResults []Stored

	along []types.Axis // the axis of a pipeline, whose positions have results of their own; nil: all have all
	has   [][]bool     // of a pipeline: by result and position
}

// owners are the devices that have result i, ascending.
func (l *Layout) owners(i int) []int {
	var out []int
	for device := range l.Mesh.Devices() {
		if l.along == nil || l.has[i][l.Mesh.Position(device, l.along)] {
			out = append(out, device)
		}
	}
	return out
}

// Process connects the device of this process with those of others, where comms are those of the devices in it; nil where
// all are.
func (l *Layout) Process(comms []collective.Comm) collective.Comm {
	if len(comms) < l.Mesh.Devices() {
		return comms[0]
	}
	return nil
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
	if p.Stages != nil {
		l.along = []types.Axis{{Name: d.Pipeline}}
		l.has = make([][]bool, len(p.Outputs))
		for i := range l.has {
			l.has[i] = make([]bool, len(p.Stages))
			for at, s := range p.Stages {
				l.has[i][at] = slices.Contains(s.Outputs, i)
			}
		}
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

// Gather is result i put together; piece(k) is that of the device of comms[k], nil on one that has none. Every
// process of the run must ask for the same results in the same order.
func (l *Layout) Gather(ctx context.Context, comms []collective.Comm, i int, piece func(k int) *tensor.Tensor) (*tensor.Tensor, error) {
	n := l.Mesh.Devices()
	pieces := make([]*tensor.Tensor, n)
	for k, c := range comms {
		pieces[c.Rank()] = piece(k)
	}
	owners := l.owners(i)
	switch whole := l.Results[i].At.Shard == nil; {
	case len(comms) == n:
	case whole && len(owners) == n:
		pieces[owners[0]] = piece(0)
	case whole && pieces[comms[0].Rank()] != nil:
		pieces[owners[0]] = piece(0)
	case pieces[comms[0].Rank()] != nil:
		own := piece(0)
		b := tensor.Pack(own)
		all := make([]byte, len(owners)*len(b))
		// Bytes travel as they are, so that two elements may share one.
		if err := comms[0].AllGather(ctx, owners, "ui8", b, all); err != nil {
			return nil, err
		}
		for k, r := range owners {
			x, err := tensor.Unpack(all[k*len(b):(k+1)*len(b)], own.Elem, own.Shape)
			if err != nil {
				return nil, err
			}
			pieces[r] = x
		}
	}
	var out *tensor.Tensor
	if pieces[owners[0]] != nil {
		var err error
		if out, err = Join(l.Mesh, l.Results[i], pieces); err != nil {
			return nil, err
		}
	}
	if len(comms) == n || len(owners) == n {
		return out, nil
	}
	return l.broadcast(ctx, comms[0], owners[0], l.Results[i], out)
}

// broadcast is x, of type t, on every device; that of root has it.
func (l *Layout) broadcast(ctx context.Context, c collective.Comm, root int, t *types.Tensor, x *tensor.Tensor) (*tensor.Tensor, error) {
	shape := make([]int, t.Rank())
	for i, d := range t.Shape {
		n, ok := d.Int()
		if !ok {
			return nil, fmt.Errorf("the size %s of %s is no number", d, t)
		}
		shape[i] = int(n)
	}
	if x == nil {
		x = tensor.New(t.Elem, shape...)
	}
	b := tensor.Pack(x)
	if err := c.Broadcast(ctx, root, b); err != nil {
		return nil, err
	}
	return tensor.Unpack(b, t.Elem, shape)
}
