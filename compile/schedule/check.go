package schedule

import (
	"cmp"
	"slices"

	"dmir/compile/pass"
	"dmir/dialect/ir"
	"dmir/syntax/diag"
)

// Check proves that the schedule in the text of fn, including the regions of
// its control flow, is valid in every interleaving of the streams: a step runs
// after those that define its operands, and no byte of a value is overwritten
// between its definition and its last use. Steps of one stream run in the order
// of the text; across streams only waits order them. It returns Problems, or
// the error of a pass if fn cannot be scheduled at all.
func Check(fn *ir.Func) error { return check(pass.BodyOf(fn)) }

func check(b pass.Body) error {
	g, err := read(b, nil, nil)
	if err != nil {
		return err
	}
	t := g.streams()
	t.placement()
	if len(t.problems) > 0 {
		return t.problems
	}
	t.dependencies()
	t.bounds()
	t.overlaps()
	if len(t.problems) > 0 {
		return t.problems
	}
	for _, s := range t.steps {
		for n := range s.op.Regions {
			if !pass.Controls(s.op) || s.op.Body(n) == nil {
				continue
			}
			r, err := pass.RegionOf(b.Func, s.op, n)
			if err == nil {
				err = check(r)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// dependencies checks that the operands of every step are defined before it.
func (t *text) dependencies() {
	for _, s := range t.steps {
		for _, r := range s.reads {
			if r.maker == nil || t.clock.before(r.maker.index, s.index) {
				continue
			}
			d := t.problem(s.op, "DM844", "%s on stream %d reads %s, which step %d makes on stream %d, and does not wait for it",
				label(s.op), t.stream[s.index], called(r.value), r.maker.index, t.stream[r.maker.index])
			d.Related = []diag.Related{{Span: place(r.maker.op), Message: "made here"}}
		}
		for _, i := range t.before(s) {
			if r := t.steps[i]; !t.clock.before(i, s.index) {
				if r == s.behind {
					t.problem(s.op, "DM844", "%s on stream %d does not wait for step %d, %s on stream %d: the devices agree on the order of what they send and receive",
						label(s.op), t.stream[s.index], i, label(r.op), t.stream[i])
					continue
				}
				d := t.problem(s.op, "DM844", "%s on stream %d writes over what step %d, %s, reads on stream %d, and does not wait for it",
					label(s.op), t.stream[s.index], i, label(r.op), t.stream[i])
				d.Related = []diag.Related{{Span: place(r.op), Message: "read here"}}
			}
		}
	}
}

// allocation is a live range with its offsets in the workspace.
type allocation struct {
	*liveRange
	at, end int64
}

func (s allocation) op(b pass.Body) *ir.Op {
	switch {
	case s.step != nil:
		return s.step.op
	case s.roots[0].value.Op != nil:
		return s.roots[0].value.Op
	}
	return b.Region.Op
}

func (s allocation) String() string {
	if s.step != nil {
		return "the scratch memory of " + label(s.step.op)
	}
	return called(s.roots[0].value)
}

// allocations are those of all values and of the steps' scratch memory.
func (t *text) allocations() []allocation {
	var out []allocation
	for _, r := range t.roots {
		if r.bytes > 0 {
			at := t.offset[r]
			out = append(out, allocation{liveRangeOf(t.clock, r), at, at + r.bytes})
		}
	}
	for i, s := range t.steps {
		if n := s.need; n > 0 {
			out = append(out, allocation{scratchRange(t.clock, s), t.scratch[i], t.scratch[i] + n})
		}
	}
	return out
}

// bounds checks that allocations are aligned and inside the workspace.
func (t *text) bounds() {
	for _, s := range t.allocations() {
		switch {
		case s.at < 0 || s.at > t.workspace || s.end > t.workspace:
			t.problem(s.op(t.body), "DM846", "%s takes bytes %d to %d of a workspace of %d", s, s.at, s.end, t.workspace)
		case s.at%Align != 0:
			t.problem(s.op(t.body), "DM845", "%s lies at offset %d, which is not a multiple of %d", s, s.at, Align)
		}
	}
}

// overlaps checks that allocations that overlap do not interfere.
func (t *text) overlaps() {
	all := t.allocations()
	slices.SortStableFunc(all, func(a, b allocation) int { return cmp.Compare(a.at, b.at) })
	for i, a := range all {
		for _, b := range all[i+1:] {
			if b.at >= a.end {
				break
			}
			if !interfere(t.clock, a.liveRange, b.liveRange) || t.replaces(a, b) || t.replaces(b, a) {
				continue
			}
			first, second := a, b
			if second.first < first.first {
				first, second = second, first
			}
			lo, hi := max(a.at, b.at), min(a.end, b.end)
			d := t.problem(second.op(t.body), "DM847", "%s shares bytes %d to %d with %s, which may still be needed when it is written", second, lo, hi, first)
			d.Related = []diag.Related{{Span: place(first.op(t.body)), Message: first.String()}}
		}
	}
}

// replaces reports whether b overwrites a by a step that may do so, as the last
// reader of a.
func (t *text) replaces(a, b allocation) bool {
	if a.step != nil || b.step != nil || a.at != b.at {
		return false
	}
	r, old := b.roots[0], a.roots[0]
	if r.maker == nil {
		return false
	}
	i := slices.Index(r.maker.makes, r)
	return slices.Contains(t.over(r.maker, i), old) && dying(t.clock, old, r.maker)
}
