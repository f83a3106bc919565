package schedule

import (
	"dmir/compile/pass"
	"dmir/dialect/ir"
	"dmir/gpu/artifact"
)

// Schedule is the schedule and the memory plan in a body's text.
type Schedule struct {
	Steps     []Step
	Buffers   []Buffer // inputs, constants and results in the order of the text, then scratch memory
	Workspace int64    // bytes
	// Bound is the most bytes that are live at one step for any offsets, with
	// every value rounded up to Align: a lower bound on the workspace.
	Bound   int64
	Streams int
}

// Step is an op that runs.
type Step struct {
	Op      *ir.Op
	Stream  int
	Waits   []int   // earlier steps on other streams that must have ended
	Offsets []int64 // of each result, bytes; -1 for one outside the device's memory
	// Over is, for each result, the operand or captured value that it overwrites;
	// nil for a result with memory of its own. The generated code must read each
	// element of it before writing it, in one thread.
	Over          []*ir.Value
	Scratch       int64 // bytes of scratch memory
	ScratchOffset int64
}

// Buffer is the storage of one value.
type Buffer struct {
	Value  *ir.Value     // nil for the scratch memory of a step
	Views  []*ir.Value   // values that share the memory in another shape
	Kind   artifact.Kind // a returned input is an Input, a returned constant a Constant
	Offset int64
	Bytes  int64
	// First and Last are the live range in steps: First is -1 for memory that is
	// live from the start, Last the number of steps for memory that is live to
	// the end.
	First, Last int
}

// Read returns the schedule and plan of b, on which the passes schedule and
// plan have run. Errors are those of Check about the form of the attributes;
// the schedule is not proven valid.
func Read(b pass.Body) (*Schedule, error) {
	g, err := read(b, nil, nil)
	if err != nil {
		return nil, err
	}
	t := g.streams()
	t.placement()
	if len(t.problems) > 0 {
		return nil, t.problems
	}
	s := &Schedule{Workspace: t.workspace, Streams: t.clock.count}
	for i, st := range g.steps {
		step := Step{Op: st.op, Stream: t.stream[i], Waits: t.waits[i], Over: make([]*ir.Value, len(st.makes))}
		for k, r := range st.makes {
			step.Offsets = append(step.Offsets, t.offset[r])
			step.Over[k] = t.overwritten(st, k)
		}
		if st.scratch > 0 {
			step.Scratch, step.ScratchOffset = st.need, t.scratch[i]
		}
		s.Steps = append(s.Steps, step)
	}
	s.Buffers = t.buffers()
	for _, r := range g.roots {
		if r.persistent() {
			s.Bound += r.size
		}
	}
	s.Bound += mostLive(t.clock, g.blocks(t.clock))
	return s, nil
}

// overwritten is the value that result k of s overwrites, nil for none.
func (t *text) overwritten(s *step, k int) *ir.Value {
	if s.makes[k].aliased != nil {
		return t.captured(s, s.onto[k])
	}
	if s.makes[k].bytes == 0 {
		return nil
	}
	for _, r := range t.over(s, k) {
		if t.offset[r] == t.offset[s.makes[k]] && dying(t.clock, r, s) {
			return t.captured(s, r)
		}
	}
	return nil
}

// captured is the value by which s refers to r, that of r where s does not read it.
func (t *text) captured(s *step, r *root) *ir.Value {
	for _, v := range ir.UsedValues(s.op) {
		if t.rootOf[v] == r {
			return v
		}
	}
	return r.value
}

func (t *text) buffers() []Buffer {
	views := map[*root][]*ir.Value{}
	for _, v := range t.views {
		if r := t.rootOf[v.Results[0]]; r != nil {
			views[r] = append(views[r], v.Results[0])
		}
	}
	var out []Buffer
	for _, r := range t.roots {
		b := Buffer{Value: r.value, Views: views[r], Offset: t.offset[r], Bytes: r.bytes, First: -1, Kind: artifact.Temp}
		if r.maker != nil {
			b.First, b.Last = r.maker.index, r.maker.index
		}
		for _, s := range r.reads {
			b.Last = max(b.Last, s.index)
		}
		switch {
		case r.kind == input:
			b.Kind = artifact.Input
		case r.kind == constant:
			b.Kind = artifact.Constant
		case r.out:
			b.Kind = artifact.Output
		}
		if r.kept() {
			b.Last = len(t.steps)
		}
		out = append(out, b)
	}
	for i, s := range t.steps {
		if n := s.need; n > 0 {
			out = append(out, Buffer{Kind: artifact.Temp, Offset: t.scratch[i], Bytes: n, First: i, Last: i})
		}
	}
	return out
}
