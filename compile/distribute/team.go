package distribute

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"dmir/compile/interp"
	"dmir/compile/tensor"
	"dmir/dialect/op"
	"dmir/dialect/types"
	"dmir/gpu/collective"
)

// Team is devices of a program that run in this process on the reference executor: all of
// them, or the one whose process this is.
type Team struct {
	*Program
	comms []collective.Comm
	args  [][]*tensor.Tensor // the pieces of each device; nil where its function does not have the argument
}

// Local is all devices of the program in this process.
func (p *Program) Local() *Team {
	return &Team{Program: p, comms: collective.Local(p.Mesh.Devices())}
}

// Member is the device of this process, whose number is the rank of comm.
func (p *Program) Member(comm collective.Comm) (*Team, error) {
	if n := p.Mesh.Devices(); comm.Size() != n {
		return nil, fmt.Errorf("@%s is run by %d devices (%s), and there are %d processes", p.Fn.Name, n, p.Mesh, comm.Size())
	}
	return &Team{Program: p, comms: []collective.Comm{comm}}, nil
}

// Process is that of the layout.
func (t *Team) Process() collective.Comm { return t.Layout.Process(t.comms) }

// Result is what a run gives.
type Result struct {
	Pieces  [][]*tensor.Tensor // the results of each device of the team; nil where its function does not have one
	Devices []*interp.Result
}

// Set gives the arguments new values, whole ones; those that are nil stay.
func (t *Team) Set(args []*tensor.Tensor) error {
	args, err := t.Cut(args)
	if err != nil {
		return err
	}
	if t.args == nil {
		t.args = make([][]*tensor.Tensor, len(t.comms))
	}
	for k, c := range t.comms {
		if t.args[k] == nil {
			t.args[k] = make([]*tensor.Tensor, len(t.Fn.Args))
		}
		for _, i := range t.part(c.Rank()).args {
			if i >= len(args) || args[i] == nil {
				continue
			}
			x := args[i]
			piece, err := t.Piece(c.Rank(), i, x)
			if err != nil {
				return err
			}
			t.args[k][i] = piece
		}
		for i := range t.Fn.Args {
			if err := t.position(k, i); err != nil {
				return err
			}
		}
	}
	return nil
}

// position sets argument i of device number k if it is the position of the device.
func (t *Team) position(k, i int) error {
	names, ok := op.PositionOf(t.Fn.Op, i)
	if !ok {
		return nil
	}
	axes, err := t.Mesh.ParseAxes(names)
	if err == nil {
		t.args[k][i] = tensor.FromInts(types.I64, nil, []int64{int64(t.Mesh.Position(t.comms[k].Rank(), axes))})
	}
	return err
}

// Needs reports whether device number k of the team runs a function with argument i.
func (t *Team) Needs(k, i int) bool { return slices.Contains(t.part(t.comms[k].Rank()).args, i) }

// SetPiece gives argument i of device number k of the team its piece.
func (t *Team) SetPiece(k, i int, x *tensor.Tensor) {
	if t.args == nil {
		t.args = make([][]*tensor.Tensor, len(t.comms))
	}
	if t.args[k] == nil {
		t.args[k] = make([]*tensor.Tensor, len(t.Fn.Args))
	}
	t.args[k][i] = x
}

// Ranks are the devices of the team.
func (t *Team) Ranks() []int {
	out := make([]int, len(t.comms))
	for k, c := range t.comms {
		out[k] = c.Rank()
	}
	return out
}

// Run runs the function once on the arguments that are set. Where a device fails, all end.
func (t *Team) Run(ctx context.Context, o interp.Options) (*Result, error) {
	n := len(t.comms)
	res := &Result{Pieces: make([][]*tensor.Tensor, n), Devices: make([]*interp.Result, n)}
	errs := make([]error, n)
	if o.Threads == 0 {
		o.Threads = runtime.GOMAXPROCS(0)
	}
	var all sync.WaitGroup
	for k, c := range t.comms {
		all.Go(func() {
			own := o
			own.Device = &interp.Device{Mesh: t.Mesh, ID: c.Rank(), Comm: c}
			own.Threads = max(1, o.Threads/n)
			if k > 0 {
				own.Progress = nil
			}
			part := t.part(c.Rank())
			args := make([]*tensor.Tensor, len(part.args))
			for i, n := range part.args {
				args[i] = t.args[k][n]
			}
			res.Devices[k], errs[k] = interp.Run(ctx, t.Module, part.fn, args, own)
			if errs[k] != nil {
				t.abort(c, errs[k])
				return
			}
			res.Pieces[k] = make([]*tensor.Tensor, len(t.Results))
			for i, n := range part.results {
				res.Pieces[k][n] = res.Devices[k].Outputs[i]
			}
		})
	}
	all.Wait()
	if k, err := first(errs); err != nil {
		if n == 1 {
			return nil, collective.Report(t.comms[0], t.named(k, err))
		}
		return nil, t.named(k, err)
	}
	return res, nil
}

// abort ends the run of the other devices in this process. A failure of a process ends the
// others when it is reported; see package collective.
func (t *Team) abort(c collective.Comm, err error) {
	if len(t.comms) > 1 {
		c.Abort(err)
	}
}

// Carry makes results the arguments of the next run: in, by result, is the argument, or
// negative.
func (t *Team) Carry(res *Result, in []int) {
	for k := range t.comms {
		for i, n := range in {
			if n >= 0 && res.Pieces[k][i] != nil {
				t.args[k][n] = res.Pieces[k][i]
			}
		}
	}
}

// Whole is result i put together. Every process of the run must ask for the same results in
// the same order.
func (t *Team) Whole(ctx context.Context, res *Result, i int) (*tensor.Tensor, error) {
	return t.join(ctx, i, func(k int) *tensor.Tensor { return res.Pieces[k][i] })
}

// Current is the value of argument n that is to be result i of the last run.
func (t *Team) Current(ctx context.Context, i, n int) (*tensor.Tensor, error) {
	return t.join(ctx, i, func(k int) *tensor.Tensor { return t.args[k][n] })
}

func (t *Team) join(ctx context.Context, i int, piece func(k int) *tensor.Tensor) (*tensor.Tensor, error) {
	return t.Gather(ctx, t.comms, i, piece)
}

// Failed is err, the reason why a team does not run: one process reports what all find.
func (t *Team) Failed(err error) error {
	if len(t.comms) > 1 {
		return err
	}
	return collective.Report(t.comms[0], err)
}

// Close ends the team.
func (t *Team) Close() error {
	errs := make([]error, len(t.comms))
	var all sync.WaitGroup
	for k, c := range t.comms {
		all.Go(func() { errs[k] = c.Close() })
	}
	all.Wait()
	return errors.Join(errs...)
}

// first is the failure that ended the run, and whose it is.
func first(errs []error) (k int, err error) {
	for i, e := range errs {
		var ended *collective.Ended
		if e == nil {
			continue
		}
		if k, err = i, e; !errors.As(e, &ended) {
			return k, err
		}
	}
	return k, err
}

// named is err with the number of the device; one that belongs to an op stays one.
func (t *Team) named(k int, err error) error {
	var at *interp.Error
	if errors.As(err, &at) {
		named := *at
		named.Msg = fmt.Sprintf("device %d: %s", t.comms[k].Rank(), at.Msg)
		return &named
	}
	return err
}

// Run runs the program once in this process on whole arguments and gives whole results.
func (p *Program) Run(ctx context.Context, args []*tensor.Tensor, o interp.Options) ([]*tensor.Tensor, *Result, error) {
	t := p.Local()
	if err := t.Set(args); err != nil {
		return nil, nil, err
	}
	res, err := t.Run(ctx, o)
	if err != nil {
		return nil, nil, err
	}
	var outs []*tensor.Tensor
	for i := range p.Fn.Results {
		whole, err := t.Whole(ctx, res, i)
		if err != nil {
			return nil, nil, err
		}
		outs = append(outs, whole)
	}
	return outs, res, t.Close()
}
