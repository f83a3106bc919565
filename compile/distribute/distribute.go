// Package distribute runs functions that the devices of a mesh run together: it gives each its
// pieces of the arguments and puts its pieces of the results together.
package distribute

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"dmir/compile/interp"
	"dmir/compile/tensor"
	"dmir/dialect/ir"
	"dmir/dialect/mesh"
	"dmir/dialect/op"
	"dmir/dialect/types"
	"dmir/gpu/collective"
)

// Program is a function that each device of a mesh runs; its arguments and results state the wholes
// that they are pieces of (op.GlobalAttr). Those that state none are the same on every device.
type Program struct {
	Module *ir.Module
	Fn     *ir.Func
	Mesh   *mesh.Mesh
}

// Of is the program of fn, a function of m with the attribute dm.mesh.
func Of(m *ir.Module, fn *ir.Func) (*Program, error) {
	name := fn.Op.Str(op.MeshAttr)
	found := mesh.Find(m, name)
	if found == nil {
		return nil, fmt.Errorf("@%s is run by the devices of @%s, which is no mesh of the file", fn.Name, name)
	}
	return &Program{m, fn, found}, nil
}

// whole is the type of the whole of argument or result i.
func (p *Program) whole(attrs string, i int, own types.Type) *types.Tensor {
	if t, _ := op.GlobalType(p.Fn.Op, attrs, i); t != nil {
		return t
	}
	t, _ := own.(*types.Tensor)
	return t
}

// Arg is the type of the whole of argument i, nil where it is no tensor.
func (p *Program) Arg(i int) *types.Tensor { return p.whole("arg_attrs", i, p.Fn.Args[i].Type) }

// Result is the type of the whole of result i.
func (p *Program) Result(i int) *types.Tensor { return p.whole("res_attrs", i, p.Fn.Results[i]) }

// Pieces are a device's pieces of the arguments.
func (p *Program) Pieces(device int, args []*tensor.Tensor) ([]*tensor.Tensor, error) {
	out := make([]*tensor.Tensor, len(args))
	for i, x := range args {
		t := p.Arg(i)
		if t == nil || t.At.Shard == nil {
			out[i] = x
			continue
		}
		if len(x.Shape) != t.Rank() {
			return nil, fmt.Errorf("argument %d is %s, not %s", i, x.Type(), t)
		}
		out[i] = Piece(p.Mesh, device, x, t.At.Shard)
	}
	return out, nil
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

// Result is what a run of all devices gives.
type Result struct {
	Outputs []*tensor.Tensor // the wholes
	Devices []*interp.Result
}

// Run runs the program on the reference executor, every device in this process, on whole
// arguments.
func (p *Program) Run(ctx context.Context, args []*tensor.Tensor, o interp.Options) (*Result, error) {
	n := p.Mesh.Devices()
	comms := collective.Local(n)
	res := &Result{Devices: make([]*interp.Result, n)}
	errs := make([]error, n)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var all sync.WaitGroup
	for d := range n {
		pieces, err := p.Pieces(d, args)
		if err != nil {
			return nil, err
		}
		all.Add(1)
		go func() {
			defer all.Done()
			own := o
			own.Device = &interp.Device{Mesh: p.Mesh, ID: d, Comm: comms[d]}
			own.Threads = max(1, o.Threads/n)
			if d > 0 {
				own.Progress = nil
			}
			if res.Devices[d], errs[d] = interp.Run(ctx, p.Module, p.Fn, pieces, own); errs[d] != nil {
				comms[d].Abort(errs[d])
				return
			}
			errs[d] = comms[d].Close()
		}()
	}
	all.Wait()
	if err := first(errs); err != nil {
		return nil, err
	}
	for i := range p.Fn.Results {
		pieces := make([]*tensor.Tensor, n)
		for d, r := range res.Devices {
			pieces[d] = r.Outputs[i]
		}
		whole, err := Join(p.Mesh, p.Result(i), pieces)
		if err != nil {
			return nil, err
		}
		res.Outputs = append(res.Outputs, whole)
	}
	return res, nil
}

// first is the error of the device whose failure ended the run.
func first(errs []error) error {
	var other error
	for d, err := range errs {
		var ended *collective.Ended
		switch {
		case err == nil:
		case errors.As(err, &ended):
			other = err
		default:
			return deviceError(d, err)
		}
	}
	return other
}

// deviceError names the device in a failure; one that belongs to an op stays one.
func deviceError(d int, err error) error {
	var at *interp.Error
	if errors.As(err, &at) {
		named := *at
		named.Msg = fmt.Sprintf("device %d: %s", d, at.Msg)
		return &named
	}
	return fmt.Errorf("device %d: %w", d, err)
}
