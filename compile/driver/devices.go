package driver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"dmir/compile/devices"
	"dmir/compile/distribute"
	"dmir/compile/interp"
	"dmir/compile/pass"
	"dmir/compile/pipeline"
	"dmir/compile/tensor"
	"dmir/dialect/flatten"
	"dmir/dialect/ir"
	"dmir/dialect/mesh"
	"dmir/dialect/op"
	"dmir/gpu/artifact"
	"dmir/gpu/collective"
	"dmir/gpu/device"
)

// Distribution is that several devices run a program together.
type Distribution struct {
	Devices int              // how many; 0: one; pass.AllDevices: those of the program's mesh
	Mesh    map[string]int64 // other sizes of the mesh's axes
	// Launch is how the processes were started of which this is one; nil: all devices are in this
	// process.
	Launch  *collective.Launch
	Timeout time.Duration // of a collective between processes; 0: that of package collective
	// Pieces are asked for in place of whole results.
	Pieces bool
	// Identity is the same for equal programs: processes that run others are found by it.
	Identity string
}

// together reports whether several devices run the job.
func (j Job) together() bool { return j.On.Devices != 0 || j.On.Launch != nil }

// count is pass.Options.Devices.
func (on Distribution) count() int {
	if on.Launch != nil {
		return on.Launch.Size
	}
	return on.Devices
}

// compiles is the device whose kind runs the job on several devices, nil for the reference
// executor, which does unless another is asked for.
func (j Job) compiles() (device.Device, error) {
	if j.Device == "" || j.Device == "auto" {
		return nil, nil
	}
	d, _, err := Choose(j.Device)
	return d, err
}

// pieces are the arguments that are given by device, by their numbers.
func (j Job) pieces() map[int]PieceReader {
	out := map[int]PieceReader{}
	flat, _ := flatten.Func(j.Fn)
	for i, a := range flat.Args {
		if read := j.Pieces[strings.TrimPrefix(a.Name, "%")]; read != nil {
			out[i] = read
		}
	}
	return out
}

// readPieces gives the devices of a team the pieces that are given.
func (j Job) readPieces(t *distribute.Team) error {
	for i, read := range j.pieces() {
		own := t.Args[i]
		if local, ok := t.Mesh.Local(own, own.At.Shard); own.At.Shard != nil && ok {
			own = local
		}
		shape := make([]int, own.Rank())
		for d := range shape {
			n, _ := own.Shape[d].Int()
			shape[d] = int(n)
		}
		for k, rank := range t.Ranks() {
			if !t.Needs(k, i) {
				continue
			}
			x, err := read(rank, own.Elem, shape)
			if err != nil {
				return err
			}
			t.SetPiece(k, i, x)
		}
	}
	return nil
}

// Divide is the program that each device runs of fn, a function of m, which stay as they are.
func Divide(ctx context.Context, m *ir.Module, fn *ir.Func, sizes map[string]int64, on Distribution) (*distribute.Program, error) {
	c := m.Clone()
	if err := devices.Mesh(c, on.Mesh); err != nil {
		return nil, err
	}
	u := &pass.Unit{Ctx: ctx, Module: c, Func: c.Func(fn.Name), Options: pass.Options{Bind: sizes, Devices: on.count()}}
	if err := pass.Run(u, pipeline.Divide(), nil); err != nil {
		return nil, err
	}
	var p *distribute.Program
	var err error
	if u.Parts != nil {
		p, err = distribute.Split(u.Module, u.Func, u.Parts)
	} else {
		p, err = distribute.Of(u.Module, u.Func)
	}
	if err == nil {
		p.Checks, p.Returned = u.Checks, u.Returned
	}
	return p, err
}

// checkedTogether makes the checks of a divided program on all its results, and gives those
// of the function.
func (j Job) checkedTogether(t *distribute.Team, all []Output) ([]Output, error) {
	if len(t.Checks) == 0 {
		return all, nil
	}
	outs, err := Checked(&artifact.Program{Checks: t.Checks, Returned: t.Returned}, all)
	if err != nil {
		return nil, t.Failed(placed(err, j.Module.Src))
	}
	return outs, nil
}

// team divides the job's program and connects its devices.
func (j Job) team(ctx context.Context) (*distribute.Team, error) {
	p, err := Divide(ctx, j.Module, j.Fn, j.Program.Bind, j.On)
	if err != nil {
		return nil, err
	}
	j.sparsely(p.Layout)
	if j.On.Launch == nil {
		return p.Local(), nil
	}
	comm, err := collective.Open(ctx, *j.On.Launch, j.On.Identity, j.On.Timeout)
	if err != nil {
		return nil, err
	}
	t, err := p.Member(comm)
	if err != nil {
		return nil, errors.Join(err, comm.Close())
	}
	return t, nil
}

// why is how the devices of a mesh run.
func (on Distribution) why(m *mesh.Mesh) string {
	where := "in one process"
	if on.Launch != nil {
		where = "one process each, by " + on.Launch.By
	}
	return fmt.Sprintf("%d devices, %s, %s", m.Devices(), m, where)
}

// inputs are the whole arguments of a program for several devices.
func (j Job) inputs(ctx context.Context, p *distribute.Program) ([]*tensor.Tensor, error) {
	if j.Fn.Op.Attr(op.MeshAttr) == nil {
		return interp.Inputs(ctx, j.Fn, j.Program.Bind, j.Seed, j.Inputs)
	}
	return interp.Inputs(ctx, p.Global(), j.Program.Bind, j.Seed, j.Inputs)
}

// runTogether runs the job on several devices, on the reference executor.
func runTogether(ctx context.Context, j Job, progress func(done, total int, op *ir.Op)) (*Result, error) {
	j, err := j.roomy(ctx, nil)
	if err != nil {
		return nil, err
	}
	t, err := j.team(ctx)
	if err != nil {
		return nil, err
	}
	args, err := j.inputs(ctx, t.Program)
	if err == nil {
		err = notCut(t.Set(args))
	}
	if err == nil {
		err = j.readPieces(t)
	}
	if err != nil {
		return nil, t.Failed(err)
	}
	start := time.Now()
	res, err := t.Run(ctx, interp.Options{Progress: progress})
	if err != nil {
		return nil, err
	}
	out := &Result{Device: "reference", Title: "the reference executor", Why: j.On.why(t.Mesh), Elapsed: time.Since(start), Rank: t.Ranks()[0]}
	for _, d := range res.Devices {
		out.Peak = max(out.Peak, d.Peak)
	}
	results := append(resultsOf(j.Fn), make([]Output, len(t.Fn.Results))...) // what checks compare has no names
	for i := range t.Fn.Results {
		if j.On.Pieces && (len(t.Checks) == 0 || i < t.Returned) {
			o := Output{Name: results[i].Name}
			for k, rank := range t.Ranks() {
				if x := res.Pieces[k][i]; x != nil {
					o.Pieces = append(o.Pieces, Piece{rank, x})
				}
			}
			if len(o.Pieces) > 0 { // otherwise the devices of this process have none of it
				o.Type, o.Tensor = o.Pieces[0].Tensor.Type(), o.Pieces[0].Tensor
				out.Outputs = append(out.Outputs, o)
			}
			continue
		}
		whole, err := t.Whole(ctx, res, i)
		if err != nil {
			return nil, err
		}
		out.Outputs = append(out.Outputs, Output{Name: results[i].Name, Type: whole.Type(), Tensor: whole})
	}
	if !j.On.Pieces {
		if err := joined(t.Layout, out.Outputs); err != nil {
			return nil, err
		}
	}
	if out.Outputs, err = j.checkedTogether(t, out.Outputs); err != nil {
		return nil, err
	}
	return out, t.Close()
}

// togetherSteps runs steps on several devices. The state stays in pieces.
type togetherSteps struct {
	team  *distribute.Team
	state []int
	peak  *int64
	job   Job
	begun bool
}

func (r *togetherSteps) step(ctx context.Context, args []*tensor.Tensor) ([]*tensor.Tensor, error) {
	if err := r.team.Set(args); err != nil {
		return nil, notCut(err)
	}
	if !r.begun {
		if err := r.job.readPieces(r.team); err != nil {
			return nil, r.team.Failed(err)
		}
		r.begun = true
	}
	res, err := r.team.Run(ctx, interp.Options{})
	if err != nil {
		return nil, err
	}
	for _, d := range res.Devices {
		*r.peak = max(*r.peak, d.Peak)
	}
	outs := make([]*tensor.Tensor, len(r.team.Fn.Results))
	all := make([]Output, len(outs))
	for i := range outs {
		if r.carried(i) >= 0 && !r.compared(i) {
			continue
		}
		if all[i].Tensor, err = r.team.Whole(ctx, res, i); err != nil {
			return nil, err
		}
		if r.carried(i) < 0 {
			outs[i] = all[i].Tensor
		}
	}
	if err := r.team.Joined(outs); err != nil {
		return nil, err
	}
	r.team.Carry(res, r.state)
	_, err = r.job.checkedTogether(r.team, all)
	return outs, err
}

// compared reports whether a check is about result i.
func (r *togetherSteps) compared(i int) bool {
	return slices.ContainsFunc(r.team.Checks, func(c artifact.Check) bool { return c.Got == i || c.Want == i })
}

// carried is the argument that result i becomes, negative if it is no state.
func (r *togetherSteps) carried(i int) int {
	if i >= len(r.state) {
		return -1
	}
	return r.state[i]
}

func (r *togetherSteps) current(ctx context.Context) ([]*tensor.Tensor, error) {
	out := make([]*tensor.Tensor, len(r.state))
	for i, in := range r.state {
		if in < 0 {
			continue
		}
		var err error
		if out[i], err = r.team.Current(ctx, i, in); err != nil {
			return nil, err
		}
	}
	return out, r.team.Joined(out)
}

func (r *togetherSteps) process() collective.Comm { return r.team.Process() }

func (r *togetherSteps) close() error { return r.team.Close() }
