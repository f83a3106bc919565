package schedule

import (
	"cmp"
	"slices"

	"dmir/base/streams"
	"dmir/base/work"
	"dmir/compile/pass"
	"dmir/dialect/op"
)

// The streams of a function with collectives: kernels, and what devices exchange.
const (
	computing  = 0
	exchanging = 1
)

// played is an order with its streams and waits, its time in s, and the bytes that are live at once.
type played struct {
	*rematerialized
	stream []int
	extra  [][]int // steps, by place, that each waits for beyond those that define its operands
	waits  [][]int
	total  float64
	held   int64
}

// overlapped is the order of r, or another one, with collectives on a stream of their own: each begins once its operand is
// there, and is waited for by what needs its result, so that what stands between the two runs meanwhile. Of orders that hold
// no more than allowed, and which r does in any case, it is one with the least time, and of those alike (streams.Worth) the
// one with the least memory; streams.Orders finds them, from the order of r and from that of the text.
//
// Where values would live too long, since a collective may begin early and end late, it waits for the kernels behind which it
// is expected to begin, and kernels that are expected to begin after it wait for it (paced). Arguments that are gathered again
// (op.RegatherAttr) are so one ahead of the one at work (aheads). At last each waits for what stands before it, which is the
// memory of one stream.
//
// Where devices send to each other one by one, in the stages of a pipeline, the order is that of their schedule.
func overlapped(g *model, r *rematerialized, ds []duration, allowed int64, counts *work.Counts) (*played, error) {
	given := []*rematerialized{r}
	if len(r.repeated) == 0 && !slices.IsSorted(r.order) && g.point == nil {
		text := *r
		text.order = r.textOrder()
		given = append(given, &text)
	}
	var all []*played
	try := func(r *rematerialized, steps []streams.Step) error {
		free, err := r.played(ds, steps, nil)
		if err != nil {
			return err
		}
		paced, err := r.played(ds, steps, free.paces())
		if err != nil {
			return err
		}
		all = append(all, &free.played, &paced.played)
		ahead, some := r.aheads(g)
		if !some {
			return nil
		}
		next, err := r.played(ds, steps, ahead)
		if err != nil {
			return err
		}
		all = append(all, &next.played)
		return nil
	}
	for _, from := range given {
		steps := from.steps(g, ds)
		if err := try(from, steps); err != nil {
			return nil, err
		}
		if g.point != nil {
			continue
		}
		for _, order := range streams.Orders(steps, counts) {
			moved := *from
			moved.order = make([]int, len(order))
			for k, i := range order {
				moved.order[k] = from.order[i]
			}
			if err := try(&moved, streams.InOrder(steps, order)); err != nil {
				return nil, err
			}
		}
	}
	steps := r.steps(g, ds)
	serial, err := r.played(ds, steps, serially(steps))
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(p *played) bool { return p.held > max(allowed, serial.held) })
	all = append(all, &serial.played)
	least := slices.MinFunc(all, func(a, b *played) int { return cmp.Compare(a.total, b.total) }).total
	return slices.MinFunc(slices.DeleteFunc(all, func(p *played) bool { return p.total > least*(1+streams.Worth) }), func(a, b *played) int {
		return cmp.Or(cmp.Compare(a.held, b.held), cmp.Compare(a.total, b.total))
	}), nil
}

// steps are the tasks in their order as the steps of a device.
func (r *rematerialized) steps(g *model, ds []duration) []streams.Step {
	at := make([]int, len(r.tasks))
	for k, i := range r.order {
		at[i] = k
	}
	out := make([]streams.Step, len(r.order))
	for k, i := range r.order {
		d := &ds[r.origin[i]]
		out[k] = streams.Step{Communication: d.sends, Duration: (d.launch + d.busy) / 1e9, Alone: pass.Controls(g.steps[r.origin[i]].op)}
		for _, j := range r.tasks[i].after {
			out[k].After = append(out[k].After, at[j])
		}
	}
	return out
}

// timed is an order with the times of its steps.
type timed struct {
	played
	steps []streams.Step
	spans []streams.Span
}

// played plays the steps, which are r's in its order, and wait for extra ones too.
func (r *rematerialized) played(ds []duration, steps []streams.Step, extra [][]int) (*timed, error) {
	t := &timed{played{rematerialized: r, extra: extra}, steps, nil}
	for _, i := range r.order {
		s := computing
		if ds[r.origin[i]].sends {
			s = exchanging
		}
		t.stream = append(t.stream, s)
	}
	if extra != nil {
		t.steps = slices.Clone(steps)
		for k, more := range extra {
			t.steps[k].After = slices.Concat(steps[k].After, more)
		}
	}
	s, err := streams.Timeline(t.steps)
	if err != nil {
		return nil, err
	}
	t.total, t.spans = s.Total, s.Spans
	t.waits = waitsFor(r.problem, r.order, t.stream, extra)
	t.held = held(r, t.stream, t.waits)
	return t, nil
}

// paces are waits that hold steps to the times at which they begin in any case: a collective waits for the last kernel that
// has ended then, a kernel for the last collective.
func (t *timed) paces() [][]int {
	out := make([][]int, len(t.steps))
	ended := [2]int{-1, -1} // the last on each stream that had ended when the step before on the other began
	var begun [2][]int      // on each stream, those that had not
	for k, s := range t.stream {
		other := 1 - s
		waits := begun[other]
		last := -1
		for len(waits) > 0 && t.spans[waits[0]].End <= t.spans[k].Start {
			last, waits = waits[0], waits[1:]
		}
		begun[other] = waits
		if last > ended[other] {
			ended[other] = last
			out[k] = []int{last}
		}
		begun[s] = append(begun[s], k)
	}
	return out
}

// aheads are waits of the gatherings of arguments that are gathered again, which need nothing that a step makes: each waits for the
// kernels in front of the one before it, so that what is gathered is there for the next kernels and not for all. some is false
// where there are no such ones.
func (r *rematerialized) aheads(g *model) (waits [][]int, some bool) {
	waits = make([][]int, len(r.order))
	kernel, before := -1, -1 // the last kernel, and that in front of the last gathering
	for k, i := range r.order {
		s := g.steps[r.origin[i]]
		switch {
		case !sends(s):
			kernel = k
		case s.op.Attr(op.RegatheredAttr) != nil:
			some = true
			if before >= 0 {
				waits[k] = []int{before}
			}
			before = kernel
		}
	}
	return waits, some
}

// serially are waits by which each step begins once the one before it has ended.
func serially(steps []streams.Step) [][]int {
	out := make([][]int, len(steps))
	for k := 1; k < len(steps); k++ {
		if steps[k].Communication != steps[k-1].Communication {
			out[k] = []int{k - 1}
		}
	}
	return out
}

// sends reports whether a step exchanges something with other devices.
func sends(s *step) bool { return op.Of(s.op).Is(op.Collective) || op.IsBucket(s.op) }
