package assemble

import (
	"context"
	"slices"

	"dmir/analysis/cost"
	"dmir/compile/kernel"
	"dmir/compile/pass"
	"dmir/compile/schedule"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/gpu/artifact"
	"dmir/syntax/source"
)

// Generate returns the artifact of u's function, on which all passes have run.
func Generate(u *pass.Unit, backend Backend) (*artifact.Program, error) {
	m, fn := u.Module, u.Func
	if err := schedule.Check(fn); err != nil { // the text may have been edited
		return nil, err
	}
	body := pass.BodyOf(fn)
	s, err := schedule.Read(body)
	if err != nil {
		return nil, err
	}
	if err := u.Step(0, len(body.Ops)); err != nil {
		return nil, err
	}
	b := &builder{
		backend: backend, unit: u, level: level{body: body, schedule: s}, buffer: map[*ir.Value]int{}, used: map[string]bool{},
		costs: cost.Block(body.Block, fn, m, nil), flow: cost.NewFlow(fn, m, nil),
		out: &artifact.Program{Name: fn.Name, Target: backend.Name(), Workspace: s.Workspace},
	}
	b.kernels = Kernels{Out: b.out, LineOf: b.line}
	if m.Src != nil {
		b.source, b.out.File = m.Src, m.Src.Path
	}
	if err := b.block(); err != nil {
		return nil, err
	}
	for _, v := range fn.Args {
		b.out.Inputs = append(b.out.Inputs, b.buffer[v])
	}
	if err := b.outputs(fn); err != nil {
		return nil, err
	}
	b.setLifetimes(len(b.out.Steps))
	if err := b.divided(fn); err != nil {
		return nil, err
	}
	if err := b.kernels.Write(backend); err != nil {
		return nil, err
	}
	return b.out, nil
}

// block adds the buffers and the steps of the current level.
func (b *builder) block() error {
	if err := b.buffers(); err != nil {
		return err
	}
	for i, st := range b.schedule.Steps {
		err := context.Cause(b.unit.Context())
		if !b.body.IsRegion() {
			err = b.unit.Step(i, len(b.schedule.Steps))
		}
		if err != nil {
			return err
		}
		add := b.step
		switch {
		case pass.Controls(st.Op):
			add = b.control
		case fillsNothing(st.Op):
			add = b.empty
		case op.Of(st.Op).Is(op.Collective) || op.IsBucket(st.Op):
			add = b.collective
		}
		if err := add(i, st); err != nil {
			return err
		}
	}
	return nil
}

// builder makes the artifact of a scheduled function.
type builder struct {
	backend Backend
	level
	unit    *pass.Unit
	buffer  map[*ir.Value]int
	kernels Kernels
	used    map[string]bool // names of steps
	costs   map[*ir.Op]*cost.Entry
	flow    *cost.Flow
	source  *source.File // of the program; nil: it has none
	out     *artifact.Program
	// floor is the step after the last decision or the last boundary of one of
	// its parts.
	floor int
}

// level is a body: that of the function, or of a region.
type level struct {
	body     pass.Body
	schedule *schedule.Schedule
	inPlace  op.InPlace
	base     int64 // where its memory begins
	// steps is the first and last step of the artifact for each of the schedule's.
	steps [][2]int
	own   []int // its buffers, with live ranges in steps of the schedule
}

// outputs sets the buffers that fn returns.
func (b *builder) outputs(fn *ir.Func) error {
	for _, v := range fn.Body.Terminator().Operands {
		n, ok := b.buffer[v]
		if !ok {
			return failure(fn.Body.Terminator(), "%s, which is returned, has no buffer", v.Name)
		}
		b.out.Outputs = append(b.out.Outputs, n)
		shape, _ := kernel.ShapeOf(v)
		var order []int
		if t := v.Tensor(); t != nil {
			order = t.At.Order
		}
		if buf := b.out.Buffers[n]; !slices.Equal(buf.Shape, shape) || !slices.Equal(buf.Order, order) {
			b.out.Views = append(b.out.Views, make([]*artifact.View, len(b.out.Outputs)-1-len(b.out.Views))...)
			b.out.Views = append(b.out.Views, &artifact.View{Shape: shape, Order: order})
		}
	}
	return nil
}
