package schedule

import (
	"dmir/compile/pass"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

// text is the schedule in the attributes of a function.
type text struct {
	*model
	stream    []int
	waits     [][]int
	clock     *clock
	offset    map[*root]int64
	scratch   []int64 // offsets
	workspace int64
	problems  Problems
}

func (t *text) problem(o *ir.Op, code, format string, args ...any) *diag.Diagnostic {
	t.problems = append(t.problems, pass.Errorf(o, code, format, args...).Diagnostic())
	return &t.problems[len(t.problems)-1]
}

// place is the location of o, for related notes of a diagnostic.
func place(o *ir.Op) source.Span {
	if o.Head.Len() > 0 {
		return o.Head
	}
	return o.Span
}

// streams reads the streams and waits of g's steps.
func (g *model) streams() *text {
	t := &text{model: g, offset: map[*root]int64{}}
	for _, s := range g.steps {
		t.stream = append(t.stream, t.streamOf(s))
	}
	for _, s := range g.steps {
		t.waits = append(t.waits, t.waitsOf(s))
	}
	t.clock = newClock(t.stream, t.waits)
	return t
}

// maxStream bounds the stream numbers in a text.
const maxStream = 1 << 10

func (t *text) streamOf(s *step) int {
	switch a := s.op.Attr(StreamAttr).(type) {
	case nil:
		return 0
	case types.Int:
		if a.V >= 0 && a.V < maxStream {
			return int(a.V)
		}
		t.problem(s.op, "DM842", "%s of %s is %d; streams are numbered from 0 to %d", StreamAttr, label(s.op), a.V, maxStream-1)
	default:
		t.problem(s.op, "DM842", "%s of %s is %s, not a number", StreamAttr, label(s.op), a)
	}
	return 0
}

func (t *text) waitsOf(s *step) (waits []int) {
	a := s.op.Attr(WaitsAttr)
	if a == nil {
		return nil
	}
	ns := types.IntegersOf(a)
	if ns == nil {
		t.problem(s.op, "DM842", "%s of %s is %s, not a list of steps", WaitsAttr, label(s.op), a)
		return nil
	}
	for _, n := range ns {
		switch {
		case n < 0 || n >= int64(len(t.steps)):
			t.problem(s.op, "DM843", "%s, step %d, waits for step %d, but there are %s", label(s.op), s.index, n, diag.Count(len(t.steps), "step"))
		case n >= int64(s.index):
			t.problem(s.op, "DM843", "%s, step %d, waits for step %d, which does not come before it", label(s.op), s.index, n)
		case t.stream[n] == t.stream[s.index]:
			t.problem(s.op, "DM843", "%s, step %d, waits for step %d, which runs on the same stream", label(s.op), s.index, n)
		default:
			waits = append(waits, int(n))
		}
	}
	return waits
}

// placement reads the offsets of t's values.
func (t *text) placement() {
	fn, ins := t.body.Func, t.body.Inputs()
	var ok bool
	if t.workspace, ok = t.number(head(t.body), WorkspaceAttr); ok && t.workspace < 0 {
		t.problem(t.body.Region.Op, "DM842", "%s of @%s is %d bytes", WorkspaceAttr, fn.Name, t.workspace)
	}
	if t.body.IsRegion() {
		for _, v := range ins {
			t.offset[t.rootOf[v]] = -1
		}
	} else if ns, ok := t.list(fn.Op, ArgOffsetsAttr, len(ins), "argument"); ok {
		for i, v := range ins {
			t.offset[t.rootOf[v]] = ns[i]
		}
	}
	for _, o := range t.consts {
		t.results(o)
	}
	t.scratch = make([]int64, len(t.steps))
	for i, s := range t.steps {
		t.results(s.op)
		if s.scratch > 0 {
			t.scratch[i], _ = t.number(s.op, ScratchOffsetAttr)
		}
	}
}

func (t *text) results(o *ir.Op) {
	if len(o.Results) == 0 {
		return
	}
	if ns, ok := t.list(o, OffsetsAttr, len(o.Results), "result"); ok {
		for i, v := range o.Results {
			t.offset[t.rootOf[v]] = ns[i]
		}
	}
}

func (t *text) number(o *ir.Op, name string) (int64, bool) {
	switch a := o.Attr(name).(type) {
	case types.Int:
		return a.V, true
	case nil:
		t.problem(o, "DM842", "%s has no %s", named(o), name)
	default:
		t.problem(o, "DM842", "%s of %s is %s, not a number of bytes", name, named(o), a)
	}
	return 0, false
}

func (t *text) list(o *ir.Op, name string, n int, of string) ([]int64, bool) {
	a := o.Attr(name)
	if a == nil {
		if n == 0 {
			return nil, true
		}
		t.problem(o, "DM842", "%s has no %s", named(o), name)
		return nil, false
	}
	ns := types.IntegersOf(a)
	if len(ns) != n {
		t.problem(o, "DM842", "%s of %s is %s, not a list of %s", name, named(o), a, diag.Count(n, "offset"))
		return nil, false
	}
	return ns, true
}

func named(o *ir.Op) string {
	if o.Name == op.Func {
		return "@" + o.Str("sym_name")
	}
	return label(o)
}
