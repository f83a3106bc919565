package streams

import (
	"cmp"
	"container/heap"
	"slices"

	"dmir/base/work"
)

// Barrier is the kind of a step that no bucket reaches over.
const Barrier = -1

// Buckets are sets of steps of communication, each ascending, that take less time as one: of one kind, above 0, none of which
// needs another, even by way of another set. kinds has those of all steps; together is how long some of them take as one, which
// begins once all that they wait for has ended, and whose results are there when it ends.
//
// What stands in the queue of its stream anyway becomes one where that takes no longer; a first step waits for others that
// come after it (the window) where a part Worth of the time is saved. Windows are tried by kind, from the longest to a few
// parts of the time, and each trial is played.
//
// given is a schedule without, of the steps in any order. What counts has as "buckets" grows with the steps and what they wait
// for, times the logarithm of the steps.
func Buckets(steps []Step, kinds []int, together func(members []int) float64, given Schedule, counts *work.Counts) (Bucketed, error) {
	of := frequent(steps, kinds)
	if len(of) == 0 || given.Exposed <= given.Total*Worth {
		return Bucketed{Schedule: given}, nil
	}
	b := newBuckets(steps, kinds, together, given, counts)
	windows := make([]float64, len(of)) // of kinds; negative: each step by itself
	for i := range windows {
		windows[i] = -1
	}
	total, best := given.Total, (*combined)(nil)
	for i := range of {
		for _, w := range []float64{0, 1. / 256, 1. / 64, 1. / 16, 1. / 4, 1} {
			before := windows[i]
			windows[i] = w * given.Total
			c := b.combine(of, windows)
			s, err := Timeline(c.steps)
			if err != nil {
				return Bucketed{Schedule: given}, err
			}
			if len(c.sets) > 0 && (s.Total < total*(1-Worth) || w == 0 && s.Total <= total) {
				total, best = s.Total, c
				best.schedule = s
			} else {
				windows[i] = before
			}
		}
	}
	if best == nil {
		return Bucketed{Schedule: given}, nil
	}
	s, err := Hidden(best.steps, best.schedule, counts)
	if err != nil {
		return Bucketed{Schedule: given}, err
	}
	order := make([]int, len(steps))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(best.of[i], best.of[j]) })
	return Bucketed{best.sets, order, best.spread(s, steps)}, nil
}

// Bucketed is steps of which some are one.
type Bucketed struct {
	Sets  [][]int // none: all stay by themselves
	Order []int   // of the steps, those of a set behind each other; nil without sets
	// Schedule is that of the steps in the best of Orders; of a set each step has a part of the span.
	Schedule
}

// mostKinds bounds the kinds that are tried, those first of which there are most steps.
const mostKinds = 8

// mostMembers bounds the steps that are one: a device begins them with a call for each.
const mostMembers = 128

// frequent are the kinds of which there are two steps at least.
func frequent(steps []Step, kinds []int) []int {
	n := map[int]int{}
	for i, k := range kinds {
		if k > 0 && steps[i].Communication {
			n[k]++
		}
	}
	var of []int
	for k, times := range n {
		if times > 1 {
			of = append(of, k)
		}
	}
	slices.SortFunc(of, func(a, b int) int { return cmp.Or(cmp.Compare(n[b], n[a]), cmp.Compare(a, b)) })
	return of[:min(len(of), mostKinds)]
}

// buckets finds sets of steps.
type buckets struct {
	steps    []Step
	kinds    []int
	together func(members []int) float64
	order    []int // of the steps, as they begin
	at       []int // of steps: the place in order
	begins   []float64
	ready    []float64 // when what each waits for has ended
	counts   *work.Counts
}

func newBuckets(steps []Step, kinds []int, together func([]int) float64, given Schedule, counts *work.Counts) *buckets {
	n := len(steps)
	b := &buckets{steps: steps, kinds: kinds, together: together, order: make([]int, n), at: make([]int, n), begins: make([]float64, n), ready: make([]float64, n), counts: counts}
	for i, s := range steps {
		b.order[i], b.begins[i] = i, given.Spans[i].Start
		for _, d := range s.After {
			b.ready[i] = max(b.ready[i], given.Spans[d].End)
		}
	}
	slices.SortStableFunc(b.order, func(i, j int) int { return cmp.Compare(b.begins[i], b.begins[j]) })
	for k, i := range b.order {
		b.at[i] = k
	}
	return b
}

// set is steps that become one, while it is open.
type set struct {
	members []int
	behind  []*set // open ones that it waits for
	open    bool
	until   float64 // when what a member waits for has ended at the latest
}

// reaches reports whether a set waits for another, or is it.
func (s *set) reaches(other *set) bool {
	return s == other || slices.ContainsFunc(s.behind, func(b *set) bool { return b.open && b.reaches(other) })
}

// close takes no more members into a set, nor into those that it waits for, which end before it begins: what waits for a closed
// set hence waits for no open one by way of it, and sets cannot wait for each other.
func (s *set) close() {
	if s == nil || !s.open {
		return
	}
	s.open = false
	for _, b := range s.behind {
		b.close()
	}
	s.behind = nil
}

// combine makes sets of the steps of kinds by their windows, and the steps that there are with them.
func (b *buckets) combine(of []int, windows []float64) *combined {
	open := make([]*set, len(of))
	var sets []*set
	behind := make([][]*set, len(b.steps)) // of steps: the open sets that each waits for; of members with its own
	visits := 0
	for _, i := range b.order {
		s := &b.steps[i]
		var waits []*set
		for _, d := range s.After {
			visits++
			for _, x := range behind[d] {
				if x.open && !slices.Contains(waits, x) {
					waits = append(waits, x)
				}
			}
		}
		behind[i] = waits
		if s.Alone || b.kinds[i] == Barrier {
			for k := range open {
				open[k].close()
			}
			continue
		}
		k := slices.Index(of, b.kinds[i])
		if k < 0 || !s.Communication || windows[k] < 0 {
			continue
		}
		x := open[k]
		if x == nil || !x.open || len(x.members) == mostMembers || b.ready[i] > x.until || slices.ContainsFunc(waits, func(w *set) bool { return w.open && w.reaches(x) }) {
			x.close()
			x = &set{open: true, until: b.begins[i] + windows[k]}
			open[k], sets = x, append(sets, x)
		}
		x.members = append(x.members, i)
		x.behind = slices.DeleteFunc(x.behind, func(w *set) bool { return !w.open }) // so that it has no more than one of each kind
		for _, w := range waits {
			if w.open && w != x && !slices.Contains(x.behind, w) {
				x.behind = append(x.behind, w)
			}
		}
		behind[i] = []*set{x}
	}
	b.counts.Add("buckets", visits+len(b.steps))
	return b.joined(sets)
}

// combined is steps of which some are one.
type combined struct {
	sets     [][]int
	steps    []Step
	of       []int // of the steps before: the one that each is a part of
	schedule Schedule
}

// joined are the steps with sets as one, in the order in which they began, a set once all that it waits for stands before it.
func (b *buckets) joined(sets []*set) *combined {
	c := &combined{of: make([]int, len(b.steps))}
	leader := make([]int, len(b.steps))
	for i := range leader {
		leader[i] = i
	}
	members := make([][]int, len(b.steps))
	for _, s := range sets {
		if len(s.members) < 2 {
			continue
		}
		slices.Sort(s.members)
		c.sets = append(c.sets, s.members)
		for _, i := range s.members {
			leader[i] = s.members[0]
		}
		members[s.members[0]] = s.members
	}
	waits, users := make([]int, len(b.steps)), make([][]int, len(b.steps))
	after := make([][]int, len(b.steps))
	for i, s := range b.steps {
		to := leader[i]
		for _, d := range s.After {
			from := leader[d]
			users[from] = append(users[from], to)
			after[to] = append(after[to], from)
			waits[to]++
		}
	}
	ready := queue{less: func(i, j int) bool { return b.at[i] < b.at[j] }}
	// A step that runs alone stays between those before and behind it.
	var alone []int // places in order
	for k, i := range b.order {
		if b.steps[i].Alone || b.kinds[i] == Barrier {
			alone = append(alone, k)
		}
	}
	stretch := func(i int) int { n, _ := slices.BinarySearch(alone, b.at[i]); return n }
	left := make([]int, len(alone)+1) // steps of each stretch that are not placed yet
	now := 0
	for i := range b.steps {
		if leader[i] == i {
			left[stretch(i)]++
		}
	}
	later := make([][]int, len(left))
	free := func(i int) {
		if n := stretch(i); n > now {
			later[n] = append(later[n], i)
		} else {
			heap.Push(&ready, i)
		}
	}
	for i := range b.steps {
		if leader[i] == i && waits[i] == 0 {
			free(i)
		}
	}
	next := func() {
		for now < len(left)-1 && left[now] == 0 {
			now++
			for _, i := range later[now] {
				heap.Push(&ready, i)
			}
		}
	}
	for next(); len(ready.of) > 0; next() {
		i := heap.Pop(&ready).(int)
		step := b.steps[i]
		step.After = nil
		for _, d := range after[i] {
			step.After = append(step.After, c.of[d])
		}
		slices.Sort(step.After)
		step.After = slices.Compact(step.After)
		if members[i] != nil {
			step.Duration = b.together(members[i])
		}
		c.of[i] = len(c.steps)
		c.steps = append(c.steps, step)
		left[stretch(i)]--
		for _, u := range users[i] {
			if waits[u]--; waits[u] == 0 {
				free(u)
			}
		}
	}
	for i, l := range leader {
		c.of[i] = c.of[l]
	}
	return c
}

// spread is s, the schedule of the steps with sets as one, by the steps without.
func (c *combined) spread(s Schedule, steps []Step) Schedule {
	out := s
	out.Spans = make([]Span, len(steps))
	for i, k := range c.of {
		out.Spans[i] = s.Spans[k]
	}
	for _, members := range c.sets {
		whole := s.Spans[c.of[members[0]]]
		sum := 0.0
		for _, i := range members {
			sum += steps[i].Duration
		}
		at := whole.Start
		for n, i := range members {
			part := 1 / float64(len(members))
			if sum > 0 {
				part = steps[i].Duration / sum
			}
			end := at + part*(whole.End-whole.Start)
			if n == len(members)-1 {
				end = whole.End
			}
			out.Spans[i] = Span{Start: at, End: end, Exposed: whole.Exposed * part}
			at = end
		}
	}
	return out
}
