package driver

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"dmir/compile/distribute"
	"dmir/compile/interp"
	"dmir/compile/tensor"
	"dmir/dialect/types"
	"dmir/gpu/artifact"
	"dmir/gpu/collective"
	"dmir/gpu/device"
)

// PieceReader reads a device's piece of an argument.
type PieceReader func(device int, elem types.Elem, shape []int) (*tensor.Tensor, error)

// Piece is a device's piece of a result.
type Piece struct {
	Device int
	Tensor *tensor.Tensor
}

// DeviceError is the failure of one of several devices.
type DeviceError struct {
	Rank int
	Err  error
}

func (e *DeviceError) Error() string { return fmt.Sprintf("device %d: %v", e.Rank, e.Err) }

// Unwrap is the failure.
func (e *DeviceError) Unwrap() error { return e.Err }

// members are the devices of a compiled program in this process: all, or the one whose
// process this is.
type members struct {
	*distribute.Layout
	p       *artifact.Program
	comms   []collective.Comm
	devices []device.Device
	runs    []artifact.Stage // what each runs
}

// join connects the devices of p, the first of which is d.
// sparsely, if not nil, tells which arguments and results store sparse tensors.
func (on Distribution) join(ctx context.Context, d device.Device, p *artifact.Program, sparsely func(*distribute.Layout)) (*members, error) {
	l, err := distribute.Compiled(p)
	if err != nil {
		return nil, err
	}
	if sparsely != nil {
		sparsely(l)
	}
	n := p.Devices()
	want := on.Devices
	if on.Launch != nil {
		want = on.Launch.Size
	}
	if want > 0 && want != n {
		return nil, &CountError{fmt.Sprintf("@%s was compiled for the %d devices of mesh @%s (%s), and is to run on %d", p.Name, n, l.Mesh.Name, l.Mesh, want)}
	}
	m := &members{Layout: l, p: p}
	if on.Launch == nil {
		m.comms = collective.Local(n)
	} else {
		c, err := collective.Open(ctx, *on.Launch, on.Identity, on.Timeout)
		if err != nil {
			return nil, err
		}
		m.comms = []collective.Comm{c}
	}
	for _, c := range m.comms {
		local := c.Rank()
		if on.Launch != nil {
			local = on.Launch.LocalRank
		}
		m.devices = append(m.devices, sibling(d, local))
		m.runs = append(m.runs, p.Of(c.Rank()))
	}
	return m, nil
}

// CountError is that a program is to run on another number of devices than it is for.
type CountError struct{ Msg string }

func (e *CountError) Error() string { return e.Msg }

// sibling is device number n of the kind of d where the machine has several, in turn.
func sibling(d device.Device, n int) device.Device {
	kind, number, numbered := strings.Cut(d.Name(), ":")
	if numbered && number != "" {
		return d
	}
	for k := n; k > 0; k-- {
		if s, _, err := device.Find(kind + ":" + strconv.Itoa(n%(k+1))); err == nil && n%(k+1) > 0 {
			return s
		}
	}
	return d
}

// inputs are the contents of the buffers of each device's arguments: pieces of args, which may
// be nil, or what pieces reads, and positions.
func (m *members) inputs(args []*tensor.Tensor, pieces map[int]PieceReader) ([][][]byte, error) {
	args, err := m.Cut(args)
	if err != nil {
		return nil, notCut(err)
	}
	out := make([][][]byte, len(m.comms))
	for k, c := range m.comms {
		p := m.runs[k].Program
		out[k] = make([][]byte, len(p.Inputs))
		for own, i := range m.runs[k].Inputs {
			if i >= len(args) {
				continue
			}
			x := args[i]
			var err error
			switch read := pieces[i]; {
			case read != nil:
				b := &p.Buffers[p.Inputs[own]]
				elem, _ := types.ElemByName(b.Elem)
				x, err = read(c.Rank(), elem, extents(b.Shape))
			case x == nil:
				continue
			default:
				x, err = m.Piece(c.Rank(), i, x)
			}
			if err != nil {
				return nil, err
			}
			out[k][own] = packed(p, own, x)
		}
		for i := range p.Divided.Positions {
			out[k][p.Given()+i] = binary.LittleEndian.AppendUint64(nil, uint64(p.Divided.Positions[i].Of(c.Rank())))
		}
	}
	return out, nil
}

// each runs f for each device at the same time. Where one fails, all end, and the error is that
// of the one which found out why.
func (m *members) each(f func(k int) error) error {
	errs := make([]error, len(m.comms))
	var all sync.WaitGroup
	for k, c := range m.comms {
		all.Go(func() {
			if errs[k] = f(k); errs[k] != nil && len(m.comms) > 1 {
				c.Abort(errs[k])
			}
		})
	}
	all.Wait()
	var ended *collective.Ended
	at := slices.IndexFunc(errs, func(err error) bool { return err != nil && !errors.As(err, &ended) })
	if at < 0 {
		at = slices.IndexFunc(errs, func(err error) bool { return err != nil })
	}
	if at < 0 {
		return nil
	}
	var failed *CheckError
	if errors.As(errs[at], &failed) || errors.As(errs[at], &ended) {
		return errs[at]
	}
	err := &DeviceError{m.comms[at].Rank(), errs[at]}
	if len(m.comms) > 1 {
		return err
	}
	return collective.Report(m.comms[0], err)
}

// close ends the run of all devices.
func (m *members) close() error {
	errs := make([]error, len(m.comms))
	var all sync.WaitGroup
	for k, c := range m.comms {
		all.Go(func() { errs[k] = c.Close() })
	}
	all.Wait()
	return errors.Join(errs...)
}

// whole are the results that are asked for, put together, or as the devices have them; the others have no tensor.
func (m *members) whole(ctx context.Context, outputs [][][]byte, asked func(i int) bool, keep bool) ([]Output, error) {
	own := make([][]*tensor.Tensor, len(outputs))
	for k, b := range outputs {
		outs, err := Unpack(m.runs[k].Program, b)
		if err != nil {
			return nil, err
		}
		own[k] = make([]*tensor.Tensor, len(m.p.Outputs))
		for i, n := range m.runs[k].Outputs {
			own[k][n] = outs[i].Tensor
		}
	}
	all := make([]Output, len(m.p.Outputs))
	for i := range all {
		all[i].Name = m.p.Result(i)
		if !asked(i) {
			continue
		}
		if keep && i < m.p.Own() {
			for k := range own {
				if x := own[k][i]; x != nil {
					all[i].Pieces = append(all[i].Pieces, Piece{m.comms[k].Rank(), x})
				}
			}
			if len(all[i].Pieces) > 0 {
				all[i].Tensor = all[i].Pieces[0].Tensor
				all[i].Type = all[i].Tensor.Type()
			}
			continue
		}
		t, err := m.Gather(ctx, m.comms, i, func(k int) *tensor.Tensor { return own[k][i] })
		if err != nil {
			return nil, err
		}
		all[i].Type, all[i].Tensor = t.Type(), t
	}
	if keep {
		return all, nil
	}
	return all, joined(m.Layout, all)
}

// joined puts the sparse tensors in pieces among outs together.
func joined(l *distribute.Layout, outs []Output) error {
	ts := make([]*tensor.Tensor, len(outs))
	for i, o := range outs {
		ts[i] = o.Tensor
	}
	if err := l.Joined(ts); err != nil {
		return err
	}
	for i, t := range ts {
		if t != nil {
			outs[i].Tensor, outs[i].Type = t, t.Type()
		}
	}
	return nil
}

// RunTogether runs a compiled program on several devices, of which d is the first, on args,
// the values of its whole arguments, or on the pieces of those that are read, and makes its
// checks.
func RunTogether(ctx context.Context, d device.Device, p *artifact.Program, args []*tensor.Tensor, pieces map[int]PieceReader, on Distribution, o device.Options) (*Result, error) {
	res, err := runTeam(ctx, d, p, args, pieces, on, o, nil)
	if err == nil {
		res.present()
	}
	return res, err
}

// present leaves results out of which the devices of this process have no piece.
func (r *Result) present() {
	r.Outputs = slices.DeleteFunc(r.Outputs, func(o Output) bool { return o.Tensor == nil })
}

// runTeam is RunTogether with all results, those without a tensor too.
func runTeam(ctx context.Context, d device.Device, p *artifact.Program, args []*tensor.Tensor, pieces map[int]PieceReader, on Distribution, o device.Options, sparsely func(*distribute.Layout)) (*Result, error) {
	m, err := on.join(ctx, d, p, sparsely)
	if err != nil {
		return nil, err
	}
	in, err := m.inputs(args, pieces)
	if err != nil {
		return nil, m.leave(err)
	}
	got := make([]*device.Result, len(m.comms))
	err = m.each(func(k int) (err error) {
		own := o
		own.Comm = m.comms[k]
		if k > 0 {
			own.Progress = nil
		}
		got[k], err = m.devices[k].Run(ctx, m.runs[k].Program, in[k], own)
		return err
	})
	if err != nil {
		return nil, err
	}
	outputs := make([][][]byte, len(got))
	out := &Result{Device: d.Name(), Title: d.Title(), Why: on.why(m.Mesh), Peak: p.Workspace, Rank: m.comms[0].Rank(), Untimed: got[0].Untimed}
	for k, r := range got {
		outputs[k] = r.Outputs
		out.Elapsed, out.Compile = max(out.Elapsed, r.Elapsed), max(out.Compile, r.Compile)
	}
	if out.Outputs, err = m.whole(ctx, outputs, func(int) bool { return true }, on.Pieces); err != nil {
		return nil, err
	}
	if out.Outputs, err = Checked(p, out.Outputs); err != nil {
		return nil, m.leave(err)
	}
	out.Kernels = kernels(m.runs[0].Program.For(d.Arch()), got[0])
	return out, m.close()
}

// leave ends the run of the other devices of this process, none of which has begun.
func (m *members) leave(err error) error {
	if len(m.comms) > 1 {
		m.comms[0].Abort(err)
		return err
	}
	return collective.Report(m.comms[0], err)
}

// runCompiled compiles the job's function for d and runs it on several devices of its kind.
func runCompiled(ctx context.Context, d device.Device, j Job) (*Result, error) {
	args, err := j.whole(ctx)
	if err != nil {
		return nil, err
	}
	if j, err = j.roomy(ctx, args); err != nil {
		return nil, err
	}
	p, warnings, err := j.build(ctx, d)
	if err != nil {
		return nil, err
	}
	res, err := runTeam(ctx, d, p, args, j.pieces(), j.On, device.Options{Progress: j.Progress}, j.sparsely)
	if err != nil {
		return nil, placed(err, j.Module.Src)
	}
	res.Warnings = warnings
	for i, r := range resultsOf(j.Fn) {
		res.Outputs[i].Name = r.Name
	}
	res.present()
	return res, nil
}

// compiledMembers runs steps of a compiled program on several devices. The state stays in
// pieces.
type compiledMembers struct {
	*members
	sessions []device.Session
	pieces   map[int]PieceReader // of the first step
	place    func(error) error
}

// open loads the program on each device.
func (m *members) open(ctx context.Context, o device.Options, pieces map[int]PieceReader, place func(error) error) (*compiledMembers, error) {
	c := &compiledMembers{m, make([]device.Session, len(m.comms)), pieces, place}
	err := m.each(func(k int) (err error) {
		own := o
		own.Comm = m.comms[k]
		if k > 0 {
			own.Progress = nil
		}
		c.sessions[k], err = device.Open(ctx, m.devices[k], m.runs[k].Program, own)
		return err
	})
	return c, err
}

func (c *compiledMembers) step(ctx context.Context, args []*tensor.Tensor) ([]*tensor.Tensor, error) {
	in, err := c.inputs(args, c.pieces)
	c.pieces = nil
	if err != nil {
		return nil, c.leave(err)
	}
	outputs := make([][][]byte, len(c.comms))
	err = c.each(func(k int) (err error) {
		outputs[k], err = c.sessions[k].Step(ctx, in[k])
		return err
	})
	if err != nil {
		return nil, c.place(err)
	}
	outs, err := c.whole(ctx, outputs, func(i int) bool { return c.p.Carried(i) < 0 }, false)
	if err == nil && len(c.p.Checks) > 0 {
		err = c.checked(ctx, outs)
	}
	return stepTensors(outs, c.p.Own()), err
}

// checked compares the results of a step, among them those that are state.
func (c *compiledMembers) checked(ctx context.Context, outs []Output) error {
	all := slices.Clone(outs)
	if slices.ContainsFunc(c.p.Checks, func(k artifact.Check) bool { return c.p.Carried(k.Got) >= 0 || c.p.Carried(k.Want) >= 0 }) {
		state, err := c.states(ctx)
		if err != nil {
			return err
		}
		for i := range state {
			if state[i].Tensor != nil {
				all[i].Tensor = state[i].Tensor
			}
		}
	}
	if err := expected(c.p, all); err != nil {
		return c.leave(c.place(err))
	}
	return nil
}

func (c *compiledMembers) states(ctx context.Context) ([]Output, error) {
	state := make([][][]byte, len(c.comms))
	err := c.each(func(k int) (err error) {
		state[k], err = c.sessions[k].State(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	return c.whole(ctx, state, func(i int) bool { return c.p.Carried(i) >= 0 }, false)
}

func (c *compiledMembers) current(ctx context.Context) ([]*tensor.Tensor, error) {
	outs, err := c.states(ctx)
	return stepTensors(outs, len(outs)), err
}

func stepTensors(outs []Output, n int) []*tensor.Tensor {
	var ts []*tensor.Tensor
	for i, o := range outs {
		if i < n {
			ts = append(ts, o.Tensor)
		}
	}
	return ts
}

func (c *compiledMembers) process() collective.Comm { return c.Process(c.comms) }

func (c *compiledMembers) close() error {
	var errs []error
	for _, s := range c.sessions {
		if s != nil {
			errs = append(errs, s.Close())
		}
	}
	return errors.Join(append(errs, c.members.close())...)
}

// whole are the values of the job's arguments, whole ones.
func (j Job) whole(ctx context.Context) ([]*tensor.Tensor, error) {
	if p, err := distribute.Of(j.Module, j.Fn); err == nil {
		return j.inputs(ctx, p)
	}
	return interp.Inputs(ctx, j.Fn, j.Program.Bind, j.Seed, j.Inputs)
}
