package assemble

import (
	"slices"
	"strings"

	"dmir/compile/kernel"
	"dmir/compile/pass"
	"dmir/compile/schedule"
	"dmir/dialect/ir"
	"dmir/dialect/types"
	"dmir/gpu/artifact"
)

// buffers adds the buffers of the memory plan.
func (b *builder) buffers() error {
	region := b.body.IsRegion()
	over := b.overwritten()
	for _, p := range b.schedule.Buffers {
		if p.Value == nil {
			continue
		}
		if region && p.Kind == artifact.Input { // it belongs to the enclosing level
			for _, v := range p.Views {
				b.buffer[v] = b.buffer[p.Value]
			}
			continue
		}
		if region && p.Kind == artifact.Output {
			p.Kind = artifact.Temp
		}
		if in := over[p.Value]; in != nil {
			b.shareBuffer(p, in)
			continue
		}
		buf := bufferOf(p)
		buf.Offset += b.base
		if p.Offset < 0 { // a tensor of the host is copied to the device with the inputs
			buf.Bytes = buf.Size()
			buf.Offset = b.out.Workspace
			b.out.Workspace += aligned(buf.Bytes)
		}
		if p.Kind == artifact.Constant {
			data, err := constantBytes(p.Value)
			if err != nil {
				return err
			}
			buf.Data, buf.Array = data, arrayOf(p.Value)
		}
		n := len(b.out.Buffers)
		b.buffer[p.Value] = n
		for _, v := range p.Views {
			b.buffer[v] = n
		}
		b.own = append(b.own, n)
		b.out.Buffers = append(b.out.Buffers, buf)
	}
	return nil
}

// bufferOf is a buffer of the memory plan with memory of its own.
func bufferOf(p schedule.Buffer) artifact.Buffer {
	shape, _ := kernel.ShapeOf(p.Value)
	buf := artifact.Buffer{
		Name: strings.TrimPrefix(p.Value.Name, "%"), Elem: p.Value.Elem().String(), Shape: shape, Kind: p.Kind,
		Offset: p.Offset, Bytes: p.Bytes, First: p.First, Last: p.Last,
	}
	if t := p.Value.Tensor(); t != nil {
		buf.Order = t.At.Order
	}
	return buf
}

// constantBytes is the literal of a dm.constant as bytes in memory.
func constantBytes(v *ir.Value) ([]byte, error) {
	d, ok := v.Op.Attr("value").(*types.Dense)
	if !ok {
		return nil, failure(v.Op, "a constant without a literal")
	}
	data, err := d.All()
	if err != nil {
		return nil, pass.Errorf(v.Op, types.MissingArray, "%v", err)
	}
	return data, nil
}

// arrayOf is where the data of a constant are read; nil: they are in the text.
func arrayOf(v *ir.Value) *artifact.Array {
	if d, ok := v.Op.Attr("value").(*types.Dense); ok && d.File() != nil {
		return &artifact.Array{Path: d.File().Path, Name: d.File().Name}
	}
	return nil
}

// empty adds no step: updates fill the buffer, or there is nothing to fill.
func (b *builder) empty(_ int, st schedule.Step) error {
	for _, v := range st.Op.Results {
		n, ok := b.buffer[v]
		if !ok {
			return failure(st.Op, "%s has no buffer", v.Name)
		}
		b.out.Buffers[n].Filled = true
	}
	b.steps = append(b.steps, [2]int{len(b.out.Steps), len(b.out.Steps)})
	return nil
}

// awaited are the steps of the artifact on other streams that end before step i of the schedule begins. What adds no step has
// ended once all has that it waits for, and the step before it on its stream. A decision orders what stands before it.
func (b *builder) awaited(i int) (out []int) {
	steps := b.schedule.Steps
	seen := make([]bool, i)
	before := func(i int) int {
		for k := i - 1; k >= 0; k-- {
			if steps[k].Stream == steps[i].Stream {
				return k
			}
		}
		return -1
	}
	var end func(w int)
	end = func(w int) {
		switch {
		case w < 0 || seen[w]:
		case fillsNothing(steps[w].Op):
			seen[w] = true
			for _, v := range append(slices.Clone(steps[w].Waits), before(w)) {
				end(v)
			}
		default:
			seen[w] = true
			if last := b.steps[w][1]; last >= b.floor && steps[w].Stream != steps[i].Stream {
				out = append(out, last)
			}
		}
	}
	for _, w := range steps[i].Waits {
		end(w)
	}
	if k := before(i); k >= 0 && fillsNothing(steps[k].Op) {
		end(k)
	}
	return out
}

// setLifetimes converts the live ranges of the level's buffers from steps of
// the schedule to steps of the artifact; end is the last step of those that
// live to the end.
func (b *builder) setLifetimes(end int) {
	for _, i := range b.own {
		buf := &b.out.Buffers[i]
		if buf.First >= 0 && buf.First < len(b.steps) {
			buf.First = b.steps[buf.First][0]
		}
		if buf.Last >= len(b.steps) {
			buf.Last = end
		} else if buf.Last >= 0 {
			buf.Last = b.steps[buf.Last][1]
		}
	}
}
