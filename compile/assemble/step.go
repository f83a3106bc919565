package assemble

import (
	"cmp"
	"fmt"
	"slices"

	"dmir/analysis/cost"
	"dmir/compile/pass"
	"dmir/compile/schedule"
	"dmir/gpu/artifact"
)

// step adds the launches of step i of the schedule.
func (b *builder) step(i int, st schedule.Step) error {
	f, results, err := formOf(&b.inPlace, st.Op)
	if err != nil {
		return err
	}
	for k, v := range f.Outputs {
		b.buffer[v] = b.buffer[results[k]]
	}
	name := b.unique(StepName(st.Op))
	over, err := inPlaceResults(st, f, results)
	if err != nil {
		return err
	}
	plan, err := b.backend.Plan(f, Options{Tile: st.Op.Str(cost.TileAttr), Over: over})
	if err != nil {
		return wrap(st.Op, err)
	}
	ls, err := Launches(f, plan)
	if err != nil {
		return wrap(st.Op, err)
	}
	written, err := plan.Texts()
	if err != nil {
		return wrap(st.Op, err)
	}
	if n := Scratch(plan); n > aligned(st.Scratch) {
		return pass.Errorf(st.Op, "DM851", "%s needs %d bytes of scratch memory; %s is %d", StepName(st.Op), n, schedule.ScratchAttr, st.Scratch)
	}
	scratch := map[*Temp]int{}
	at := b.base + st.ScratchOffset
	first := len(b.out.Steps)
	for _, t := range plan.Temps() {
		scratch[t] = len(b.out.Buffers)
		b.own = append(b.own, len(b.out.Buffers))
		n := t.Bytes()
		b.out.Buffers = append(b.out.Buffers, artifact.Buffer{
			Name: fmt.Sprintf("%s.partial%d", name, len(scratch)), Elem: t.Elem.String(), Shape: []int64{t.N}, Kind: artifact.Temp,
			Offset: at, Bytes: n, First: i, Last: i,
		})
		at += aligned(n)
	}
	each := LaunchBytes(f, plan, ls, bytesRead(st.Op, b.flow))
	for k, l := range ls {
		// The cost model has one kernel: if it differs from the first launch, so do
		// the others.
		step := artifact.Step{Name: name + l.Suffix, Kind: artifact.StepLaunch, Stream: st.Stream, Differs: cmp.Or(l.Differs, ls[0].Differs)}
		var args []artifact.Arg
		for _, p := range l.Params {
			var n int
			var ok bool
			if p.Temp != nil {
				n, ok = scratch[p.Temp], true
			} else {
				n, ok = b.buffer[p.Value]
			}
			if !ok {
				return failure(st.Op, "%s has no buffer", p.Value.Name)
			}
			args = append(args, artifact.Arg{Buffer: n, Map: p.Map})
		}
		if step.Differs == "" && b.readsTwice(args, l.Params) {
			step.Differs = overlap
		}
		lines := b.lines(st.Op)
		n := b.kernels.Add(l, written[k], step.Name, lines)
		b.from(n, st.Op)
		step.Lines = slices.Sorted(slices.Values(lines))
		step.Launch = artifact.Launch{Kernel: n, Grid: l.Grid, Args: args}
		if k == 0 {
			step.Tile, step.Product = plan.Tile()
			step.Waits = b.awaited(i)
		}
		if e := b.costs[st.Op]; e != nil && l.Suffix == "" {
			step.FLOP, _ = e.FLOP.Int()
			step.ReadBytes, _ = e.Read.Int()
			step.WrittenBytes, _ = e.Written.Int()
			if m := b.backend.Machine(); m != nil {
				step.TimeNs = e.Time(m).Ns
			}
		}
		if each != nil {
			step.ReadBytes, step.WrittenBytes = each[k].Read, each[k].Written
		}
		b.out.Steps = append(b.out.Steps, step)
	}
	b.steps = append(b.steps, [2]int{first, len(b.out.Steps) - 1})
	return nil
}

// readsTwice reports whether two operands overlap in memory. In a region, views
// of one value are separate inputs.
func (b *builder) readsTwice(args []artifact.Arg, params []Param) bool {
	for i, a := range args {
		for k, c := range args[:i] {
			x, y := &b.out.Buffers[a.Buffer], &b.out.Buffers[c.Buffer]
			if params[i].Mode == artifact.In && params[k].Mode == artifact.In && x.Offset < y.Offset+y.Bytes && y.Offset < x.Offset+x.Bytes {
				return true
			}
		}
	}
	return false
}
