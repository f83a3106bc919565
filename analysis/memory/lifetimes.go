package memory

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
)

// Step is an op as it runs. The ops in the regions of an if, a loop or an
// unknown op are steps of their own, after the op; those in a kernel are not.
type Step struct {
	Op   *ir.Op
	Live int64 // bytes
}

// Buffer is a stretch of device memory and the steps during which it is taken.
type Buffer struct {
	Values []*ir.Value // that lie in it: the one it was taken for, views of it, updates in place; none for what a call needs
	Op     *ir.Op      // that took it, nil for an argument
	Arg    bool        // an argument: taken from before the first step to after the last
	First  int         // step
	Last   int         // step, inclusive
	Bytes  int64       // more than 0
	Offset int64       // address, from 0
}

// Plan reports where in memory every value of a function lies, and when.
type Plan struct {
	Steps    []Step
	Buffers  []Buffer // arguments, then in the order in which they are taken
	Peak     int64    // bytes: the highest end of a buffer
	Bound    int64    // bytes: the most that is live at one step, which is Peak's of package memory; no plan takes less
	PeakStep int      // the first step at which Bound is live; 0 where there is none
}

// Lay is the plan of fn's memory under the order of the text, every value at its
// own size. A compiled program takes no less: it rounds sizes up to what its
// device aligns to, and keeps constants throughout. If sizes are unbound,
// the error names those that the peak depends on.
func Lay(fn *ir.Func, sizes Sizes) (*Plan, error) {
	if fn.Body == nil {
		return &Plan{}, nil
	}
	t := &tracer{
		peak:  &peak{sizes: sizes, slots: map[*ir.Value]*slot{}, ends: map[*ir.Op]*slot{}},
		plan:  &Plan{},
		place: map[*slot]int{},
	}
	t.scan(fn.Body.Region, nil)
	for _, s := range t.order {
		if s.last != nil {
			s.next, t.ends[s.last] = t.ends[s.last], s
		}
	}
	for _, v := range fn.Args {
		if at := t.buffer(v, nil, t.bytes(sizes.Value(v))); at >= 0 {
			t.plan.Buffers[at].Arg = true
			t.place[t.slot(v)] = at
		}
	}
	t.plan.Bound = t.live
	t.region(fn.Body.Region)
	if len(t.unbound) > 0 {
		slices.Sort(t.unbound)
		names := slices.Compact(t.unbound)
		if len(names) > 8 {
			names = append(names[:8:8], "…")
		}
		return nil, fmt.Errorf("depends on %s", strings.Join(names, ", "))
	}
	if t.over {
		return nil, errors.New("more bytes than 64 bits count")
	}
	for i := range t.plan.Buffers {
		if b := &t.plan.Buffers[i]; b.Arg {
			b.Last = max(len(t.plan.Steps)-1, 0)
		}
	}
	t.plan.assign()
	return t.plan, nil
}

// tracer runs a function as Peak does, with numbers, and writes down what is
// taken when.
type tracer struct {
	*peak
	plan    *Plan
	place   map[*slot]int // its buffer
	taken   []*slot       // by the regions that are running
	live    int64
	sum     int64 // of all buffers, dead or alive
	unbound []string
	over    bool
}

func (t *tracer) bytes(d dim.Dim) int64 {
	n, ok := d.Int()
	if !ok {
		t.over = t.over || d.Overflow()
		t.unbound = append(t.unbound, d.Symbols()...)
		return 0
	}
	return max(n, 0)
}

// buffer takes a buffer of n bytes for v, -1 where it needs none.
func (t *tracer) buffer(v *ir.Value, o *ir.Op, n int64) int {
	if n == 0 {
		return -1
	}
	if t.sum > math.MaxInt64-n { // and so no address and no sum of live bytes is larger
		t.over = true
		return -1
	}
	t.sum += n
	t.live += n
	b := Buffer{Op: o, First: max(len(t.plan.Steps)-1, 0), Last: max(len(t.plan.Steps)-1, 0), Bytes: n}
	if v != nil {
		b.Values = []*ir.Value{v}
	}
	t.plan.Buffers = append(t.plan.Buffers, b)
	return len(t.plan.Buffers) - 1
}

func (t *tracer) region(r *ir.Region) {
	if r == nil {
		return
	}
	before := len(t.taken)
	for _, b := range r.Blocks {
		for _, o := range b.Ops {
			t.op(b, o)
		}
	}
	for _, s := range t.taken[before:] {
		t.give(s)
	}
	t.taken = t.taken[:before]
}

func (t *tracer) op(b *ir.Block, o *ir.Op) {
	step := len(t.plan.Steps)
	t.plan.Steps = append(t.plan.Steps, Step{Op: o})
	ends := t.ends[o]
	for i, v := range o.Results {
		s := t.slot(v)
		if s.of != v {
			if at, ok := t.place[s]; ok {
				t.plan.Buffers[at].Values = append(t.plan.Buffers[at].Values, v)
			}
			continue
		}
		if over := t.overwritten(o, i); over != nil {
			s.take(over)
			if at, ok := t.place[over]; ok {
				t.place[s] = at
				t.plan.Buffers[at].Values = append(t.plan.Buffers[at].Values, v)
			}
		} else {
			if at := t.buffer(v, o, t.bytes(t.sizes.Value(v))); at >= 0 {
				t.place[s] = at
			}
			s.held = true
		}
		t.taken = append(t.taken, s)
		if s.last == nil {
			s.next, ends = ends, s
		}
	}
	callee := t.call(o)
	t.plan.Steps[step].Live = t.live
	if t.live > t.plan.Bound {
		t.plan.Bound, t.plan.PeakStep = t.live, step
	}
	t.live -= callee
	if runsRegions(o) {
		for _, r := range o.Regions {
			t.region(r)
		}
	}
	for s := ends; s != nil; s = s.next {
		t.give(s)
	}
}

// call takes, for this step, what a called function needs of its own.
func (t *tracer) call(o *ir.Op) int64 {
	var most int64
	if t.sizes.Extra != nil {
		for _, e := range t.sizes.Extra(o) {
			most = max(most, t.bytes(e))
		}
	}
	if t.buffer(nil, o, most) < 0 {
		return 0
	}
	return most
}

// give returns s to the free memory after the last step so far.
func (t *tracer) give(s *slot) {
	if !s.held {
		return
	}
	s.held = false
	if at, ok := t.place[s]; ok {
		b := &t.plan.Buffers[at]
		b.Last = len(t.plan.Steps) - 1
		t.live -= b.Bytes
	}
}
