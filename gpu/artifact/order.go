package artifact

import (
	"cmp"
	"fmt"
	"slices"
)

// access is the use of a buffer by a step.
type access struct {
	step        int
	read, write bool
	decides     bool // the host reads it when the step, and all before it, have ended
}

// accesses lists, for each buffer, the steps that use it, in their order. A
// tensor map is for loads or stores, which its mode does not distinguish: the
// buffer's first use decides (see order).
func (p *Program) accesses() [][]access {
	out := make([][]access, len(p.Buffers))
	add := func(b, step int, read, write bool) {
		if n := len(out[b]); n > 0 && out[b][n-1].step == step && !out[b][n-1].decides {
			out[b][n-1].read = out[b][n-1].read || read
			out[b][n-1].write = out[b][n-1].write || write
			return
		}
		out[b] = append(out[b], access{step: step, read: read, write: write})
	}
	for i, s := range p.Steps {
		switch s.Kind {
		case StepFill:
			add(s.Move.To, i, false, true)
			continue
		case StepCopy:
			add(s.Move.From, i, true, false)
			add(s.Move.To, i, false, true)
			continue
		case StepCollective:
			for _, v := range s.Collective.Values() {
				if s.Collective.Op != Recv {
					add(v.From, i, true, false)
				}
				if s.Collective.Op != Send {
					add(v.To, i, false, true)
				}
			}
			continue
		case StepLoop, StepBranch:
			b := s.Decision.On
			out[b] = append(out[b], access{step: p.decided(i), read: true, decides: true})
			continue
		case StepRepeat:
			continue
		}
		for j, a := range s.Launch.Args {
			switch p.Kernels[s.Launch.Kernel].Params[j].Mode {
			case In:
				add(a.Buffer, i, true, false)
			case Out:
				add(a.Buffer, i, false, true)
			case InOut:
				add(a.Buffer, i, true, true)
			case Map:
				b := &p.Buffers[a.Buffer]
				// The buffer is not written yet, so the map is for stores.
				stores := len(out[a.Buffer]) == 0 && (b.Kind == Temp || b.Kind == Output)
				add(a.Buffer, i, !stores, stores)
			}
		}
	}
	return out
}

// lifetimes checks that buffers are live at the steps that use them, and do not
// overlap: two that are live at the same time share no byte, and a constant, which is
// filled once for many runs, shares none at any time.
func (c *checker) lifetimes() {
	p := c.p
	uses := p.accesses()
	c.written(uses)
	for i := range p.Buffers {
		b := &p.Buffers[i]
		for _, a := range uses[i] {
			if a.step < b.First || a.step > b.Last {
				c.errorf("buffer %s: step %d (%s) uses it, and it lives from step %d to step %d", b.Name, a.step, p.Steps[a.step].Name, b.First, b.Last)
				break
			}
		}
		if b.Kind == Input && b.First > -1 {
			c.errorf("buffer %s: an input that lives from step %d on, not from the start", b.Name, b.First)
		}
	}
	for i, o := range p.Outputs {
		b := &p.Buffers[o]
		if b.Kind != Constant && b.Last < len(p.Steps) {
			c.errorf("output %d is the buffer %s, which lives until step %d, not to the end", i, b.Name, b.Last)
		}
	}
	p.overlapping(func(i, j int) bool {
		a, b := &p.Buffers[i], &p.Buffers[j]
		switch {
		case a.Kind == Constant || b.Kind == Constant:
			c.errorf("buffers %s and %s share bytes, and one is a constant", a.Name, b.Name)
		case a.First <= b.Last && b.First <= a.Last:
			c.errorf("buffers %s and %s share bytes and live at the same time, from step %d to step %d", a.Name, b.Name, max(a.First, b.First), min(a.Last, b.Last))
		}
		return len(c.errs) < maxErrors
	})
}

// overlapping calls f for each pair of buffers that share bytes, until f returns
// false.
func (p *Program) overlapping(f func(i, j int) bool) {
	at := make([]int, 0, len(p.Buffers))
	for i := range p.Buffers {
		if p.Buffers[i].Bytes > 0 {
			at = append(at, i)
		}
	}
	slices.SortFunc(at, func(i, j int) int { return cmp.Compare(p.Buffers[i].Offset, p.Buffers[j].Offset) })
	for n, i := range at {
		end := p.Buffers[i].Offset + p.Buffers[i].Bytes
		for _, j := range at[n+1:] {
			if p.Buffers[j].Offset >= end {
				break
			}
			if !f(i, j) {
				return
			}
		}
	}
}

// order requires that of two steps that use the same bytes, one of them for
// writing, the later one starts when the earlier has ended: on the same stream,
// or by waiting for it, if need be through others.
func (c *checker) order() {
	p := c.p
	ended := p.endedBefore()
	for i, floor := range p.floors() {
		c.waits(i, floor)
	}
	after := func(i, j int) bool { return int(ended[j][p.Steps[i].Stream]) >= i } // i < j
	uses := p.accesses()
	unordered := func(i, j int, what string) {
		c.errorf("step %d (%s) does not wait for step %d (%s), and both use %s", j, p.Steps[j].Name, i, p.Steps[i].Name, what)
	}
	for b := range p.Buffers {
		if i, j, ok := firstUnordered(uses[b], after); ok {
			unordered(i, j, "the buffer "+p.Buffers[b].Name)
		}
	}
	if len(c.errs) > 0 {
		return
	}
	p.overlapping(func(b, d int) bool {
		first, second := uses[b], uses[d]
		if len(first) == 0 || len(second) == 0 {
			return true
		}
		if p.Buffers[b].First > p.Buffers[d].First { // they do not live at the same time
			first, second = second, first
		}
		for _, x := range ending(first) {
			for _, y := range beginning(second) {
				if x.decides || y.decides || !x.write && !y.write || x.step == y.step {
					continue
				}
				if i, j := min(x.step, y.step), max(x.step, y.step); !after(i, j) {
					unordered(i, j, fmt.Sprintf("the bytes of the buffers %s and %s", p.Buffers[b].Name, p.Buffers[d].Name))
					return len(c.errs) < maxErrors
				}
			}
		}
		return true
	})
}

// firstUnordered finds two uses of one buffer, one of them for writing, of which
// the later does not start after the earlier has ended. That is transitive, so
// it looks at each use and at those back to the write before.
func firstUnordered(uses []access, after func(i, j int) bool) (i, j int, found bool) {
	since := 0 // the last write, and the reads behind it
	for k, b := range uses {
		if b.decides {
			continue
		}
		for _, a := range uses[since:k] {
			if !a.decides && (a.write || b.write) && a.step != b.step && !after(min(a.step, b.step), max(a.step, b.step)) {
				return min(a.step, b.step), max(a.step, b.step), true
			}
			if !b.write { // reads are ordered by the write alone
				break
			}
		}
		if b.write {
			since = k
		}
	}
	return 0, 0, false
}

// ending are the uses that later uses must wait for: the last write and the reads
// after it. All others have ended before these.
func ending(uses []access) []access {
	for k := len(uses) - 1; k >= 0; k-- {
		if uses[k].write {
			return uses[k:]
		}
	}
	return uses
}

// beginning are the uses that must wait for earlier ones: the reads up to the first
// write, and that write. All others start after these.
func beginning(uses []access) []access {
	for k := range uses {
		if uses[k].write {
			return uses[:k+1]
		}
	}
	return uses
}

// endedBefore returns, for each step, the last step of each stream that has ended
// when it starts; -1: none.
func (p *Program) endedBefore() [][maxStreams]int32 {
	out := make([][maxStreams]int32, len(p.Steps))
	last := [maxStreams]int{} // one more than the last step of a stream so far
	floors := p.floors()
	var over [maxStreams]int32 // the last step of a stream before the last bound of a part
	for j := range over {
		over[j] = -1
	}
	for i, s := range p.Steps {
		if floors[i] == i {
			for j, n := range last {
				over[j] = int32(n) - 1
			}
		}
		out[i] = over
		merge := func(w int) {
			for j := range out[i] {
				out[i][j] = max(out[i][j], out[w][j])
			}
			out[i][p.Steps[w].Stream] = max(out[i][p.Steps[w].Stream], int32(w))
		}
		if last[s.Stream] > 0 {
			merge(last[s.Stream] - 1)
		}
		for _, w := range s.Waits {
			merge(w)
		}
		last[s.Stream] = i + 1
	}
	return out
}

// Overwritten reports for each input whether a run changes its bytes: a step writes
// it, or a buffer that lives after it. Such an input must be copied again before
// the next run.
func (p *Program) Overwritten() []bool {
	written := make([]bool, len(p.Buffers))
	uses := p.accesses()
	writes := func(b int) bool { return slices.ContainsFunc(uses[b], func(a access) bool { return a.write }) }
	for i := range p.Buffers {
		written[i] = writes(i)
	}
	p.overlapping(func(i, j int) bool {
		written[i], written[j] = written[i] || writes(j), written[j] || writes(i)
		return true
	})
	out := make([]bool, len(p.Inputs))
	for i, b := range p.Inputs {
		out[i] = written[b]
	}
	return out
}
