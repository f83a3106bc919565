package assemble

import (
	"slices"

	"dmir/analysis/cost"
	"dmir/compile/kernel"
	"dmir/compile/pass"
	"dmir/compile/schedule"
	"dmir/compile/target"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// PlanPass chooses how each kernel of u's body runs and records the bytes of its
// partial results, for the memory plan.
func PlanPass(u *pass.Unit, b Backend) error {
	body := u.Body()
	var inPlace op.InPlace
	var steps []*ir.Op
	for _, o := range slices.Clone(body.Ops) {
		if !runs(o) || pass.Controls(o) || fillsNothing(o) || op.Of(o).Is(op.Collective) || op.IsBucket(o) {
			continue
		}
		placeConstants(o)
		cost.Running{}.Note(o)
		steps = append(steps, o)
	}
	costs := cost.Block(body.Block, u.Func, u.Module, u.Options.Bind)
	flow := cost.NewFlow(u.Func, u.Module, u.Options.Bind)
	for i, o := range steps {
		if err := u.Step(i, len(steps)); err != nil {
			return err
		}
		f, _, err := formOf(&inPlace, o)
		if err != nil {
			return err
		}
		p, err := b.Plan(f, Options{Tile: o.Str(cost.TileAttr)})
		if err != nil {
			return wrap(o, err)
		}
		ls, err := Launches(f, p)
		if err != nil {
			return wrap(o, err)
		}
		if n := Scratch(p); n > 0 {
			o.SetAttr(schedule.ScratchAttr, types.Int{V: n})
		}
		how := running(p)
		if e := costs[o]; e != nil {
			read, ok1 := e.Read.Int()
			written, ok2 := e.Written.Int()
			if ok1 && ok2 {
				beside(&how, LaunchBytes(f, p, ls, bytesRead(o, flow)), read, written)
			}
		}
		how.Note(o)
	}
	return nil
}

// fillsNothing reports whether o, a step, computes no element.
func fillsNothing(o *ir.Op) bool {
	return o.Name == op.Empty || (len(o.Regions) == 0 || o.Name == op.Kernel) && !op.HasEffect(o) && !slices.ContainsFunc(o.Results, func(v *ir.Value) bool {
		shape, known := kernel.ShapeOf(v)
		return !known || !slices.Contains(shape, 0)
	})
}

// runs reports whether o, an op of a function's body, is a step.
func runs(o *ir.Op) bool {
	return (len(o.Results) > 0 || o.Name == op.Send) && o.Name != op.Constant && !op.IsView(o)
}

// formOf is the form of the step o, a dm.kernel or a single op.
func formOf(p *op.InPlace, o *ir.Op) (f *kernel.Form, results []*ir.Value, err error) {
	over := kernel.Updating(p, o)
	if o.Name != op.Kernel {
		f, err = kernel.OfOver([]*ir.Op{o}, o.Results, over)
		return f, o.Results, wrap(o, err)
	}
	body := o.Body(0)
	last := body.Terminator()
	var outs []*ir.Value
	for i, v := range last.Operands {
		if slices.Contains(outs, v) {
			return nil, nil, failure(o, "the kernel yields %s twice", v.Name)
		}
		outs, results = append(outs, v), append(results, o.Results[i])
	}
	f, err = kernel.OfOver(body.Ops[:len(body.Ops)-1], outs, over)
	return f, results, wrap(o, err)
}

// Launches are the launches of p, the plan of f, with the reasons why they move
// other bytes than the cost model predicts. The nest of f is verified first; an
// error there is a defect of dmir.
func Launches(f *kernel.Form, p Plan) ([]*Launch, error) {
	if err := f.Verify(); err != nil {
		return nil, &InvalidError{Problems: []string{err.Error()}}
	}
	ls, err := p.Launches()
	if err != nil {
		return nil, err
	}
	if differs := dataDependence(f, len(ls)); differs != "" {
		for _, l := range ls {
			l.Differs = differs
		}
	}
	return ls, nil
}

// Scratch is the size of the shared memory of p's launches, in bytes.
func Scratch(p Plan) int64 {
	var n int64
	for _, t := range p.Temps() {
		n += aligned(t.Bytes())
	}
	return n
}

func aligned(n int64) int64 { return (n + schedule.Align - 1) &^ (schedule.Align - 1) }

// running is how p runs, but for the bytes that its launches move.
func running(p Plan) cost.Running {
	tile, _ := p.Tile()
	pace := p.Pace()
	return cost.Running{Tile: tile, Launches: int64(pace.Launches), Bandwidth: int64(pace.Bandwidth), Epilogue: int64(pace.Epilogue * 1e9)}
}

// Running is how f runs, of which a kernel reads and writes so many bytes, those of each value that its launches read by `of`. The
// fusion planner asks it for every candidate; ok is false where there is no plan.
func Running(b Backend, f *kernel.Form, moved target.Moved) (how cost.Running, ok bool) {
	p, err := b.Plan(f, Options{})
	if err != nil {
		return how, false
	}
	how = running(p)
	if len(p.Temps()) == 0 {
		return how, true
	}
	ls, err := p.Launches()
	if err != nil {
		return how, false
	}
	beside(&how, LaunchBytes(f, p, ls, moved.Of), moved.Read, moved.Written)
	return how, true
}

// Times is what the fusion planner asks of b.
func Times(b Backend) target.Times {
	return target.Times{Running: func(f *kernel.Form, moved target.Moved) (cost.Running, bool) { return Running(b, f, moved) }}
}
