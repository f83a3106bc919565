package differential

import (
	"context"
	"runtime"
	"time"

	"dmir/base/parallel"
	"dmir/gpu/device"
	"dmir/gpu/emulator"
	"dmir/testkit/counted"
)

// Batch is the number of programs that are compiled for the emulator together.
const Batch = 64

// limit bounds the time of one program on the emulator, which takes it a second: of a machine with much else to do too.
const limit = 10 * time.Minute

// Check runs the cases, which are compiled for the emulator together, and
// returns the failure of each: nil where there is none. The error is one that
// concerns all cases.
func Check(ctx context.Context, cases []Case) ([]*Find, error) {
	finds := make([]*Find, len(cases))
	ready := make([]*prepared, len(cases))
	parallel.Each(runtime.GOMAXPROCS(0), len(cases), func(i int) {
		p := &prepared{c: cases[i]}
		for _, step := range []func(context.Context) *Find{p.reference, p.differences, p.build} {
			if finds[i] = step(ctx); finds[i] != nil {
				return
			}
		}
		ready[i] = p
	})
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var jobs []emulator.Job
	var at, elsewhere []int
	for i, p := range ready {
		if p == nil {
			continue
		}
		if err := p.built.Check(); err != nil {
			finds[i] = &Find{p.c, Refused, err.Error()}
			continue
		}
		if p.c.Device != "" {
			elsewhere = append(elsewhere, i)
			continue
		}
		jobs, at = append(jobs, emulator.Job{Program: p.built, Inputs: p.inputs}), append(at, i)
	}
	parallel.Each(runtime.GOMAXPROCS(0), len(elsewhere), func(k int) {
		i := elsewhere[k]
		d, _, err := device.Find(cases[i].Device)
		if err != nil {
			finds[i] = &Find{cases[i], Refused, err.Error()}
			return
		}
		finds[i] = ready[i].on(ctx, d)
	})
	if len(jobs) == 0 {
		return finds, ctx.Err()
	}
	outcomes, err := emulator.RunBatch(ctx, jobs, emulator.Options{Timeout: limit})
	if err != nil {
		return nil, err
	}
	for k, o := range outcomes {
		p := ready[at[k]]
		var outputs [][]byte
		if o.Err == nil {
			outputs = o.Result.Outputs
		}
		if finds[at[k]] = p.judge(ctx, outputs, o.Err); finds[at[k]] == nil {
			finds[at[k]] = p.moved(o.Result.Steps)
		}
	}
	for _, d := range others() {
		for _, i := range at {
			if finds[i] == nil && (cases[i].Arch == "" || cases[i].Arch == d.Arch()) {
				finds[i] = ready[i].on(ctx, d)
			}
		}
	}
	return finds, ctx.Err()
}

// moved compares the bytes that each step moved with the prediction. A single
// op that is a kernel has constants in its text that its cost reads from
// memory.
func (p *prepared) moved(steps []emulator.StepReport) *Find {
	if p.c.Unfused {
		return nil
	}
	for i, r := range steps {
		s := &p.built.Steps[i]
		if s.Decides() || r.Runs == 0 {
			continue
		}
		row := counted.Row{
			Program: p.c.Name, Step: s.Name, Runs: r.Runs, Term: s.Differs,
			PredictedRead: s.ReadBytes * r.Runs, PredictedWritten: s.WrittenBytes * r.Runs, CountedRead: r.Read, CountedWritten: r.Written,
		}
		if k := p.built.KernelOf(s); k != nil {
			row.Class = k.Class
		}
		if problem := row.Problem(); problem != "" {
			return &Find{p.c, Bytes, problem}
		}
	}
	return nil
}

// on runs the program on a device.
func (p *prepared) on(ctx context.Context, d device.Device) *Find {
	out, err := d.Run(ctx, p.built, p.inputs, device.Options{Timeout: limit})
	var outputs [][]byte
	if err == nil {
		outputs = out.Outputs
	}
	f := p.judge(ctx, outputs, err)
	if f != nil {
		f.Msg = d.Name() + ": " + f.Msg
	}
	return f
}

// Settled reports whether a difference of numbers also occurs with other
// inputs. One that only some inputs have is a comparison that rounding decides.
func Settled(ctx context.Context, f *Find) (bool, error) {
	if f.Kind != Numbers {
		return true, nil
	}
	var again []Case
	for k := range uint64(3) {
		c := f.Case
		c.Seed += 1000 + k
		again = append(again, c)
	}
	finds, err := Check(ctx, again)
	wrong := 0
	for _, g := range finds {
		if g != nil {
			wrong++
		}
	}
	return wrong >= 2, err
}
