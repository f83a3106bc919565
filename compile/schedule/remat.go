package schedule

import (
	"cmp"
	"container/heap"
	"context"
	"math"
	"slices"
)

// recomputed is a problem in which some tasks run twice: what they make is given
// back after its early readers, and made again before the late ones, instead of
// being held in between.
type recomputed struct {
	*problem
	order  []int
	origin []int // of each task: the one that it repeats, itself for those of the start
	from   []int // of each store: the one whose value it holds again, itself for those of the start
	maker  []int // of each store: the task; -1 of one that is in use no more
	again  []int // the repeated tasks that are in use
	alone  func(task int) bool
}

// newRecomputed is p, in an order, with nothing recomputed. alone tells of which
// tasks single results can be made without the others.
func newRecomputed(p *problem, order []int, alone func(int) bool) *recomputed {
	r := &recomputed{problem: p, order: order, alone: alone}
	for i := range p.tasks {
		r.origin = append(r.origin, i)
	}
	r.maker = make([]int, len(p.size))
	for i := range p.tasks {
		for _, s := range p.tasks[i].makes {
			r.maker[s] = i
		}
	}
	for s := range p.size {
		r.from = append(r.from, s)
	}
	return r
}

// clone is a copy of r. What hangs below a task is shared: it is replaced and
// never changed.
func (r *recomputed) clone() *recomputed {
	p := &problem{size: slices.Clone(r.size), kept: slices.Clone(r.kept), base: r.base, tasks: slices.Clone(r.tasks)}
	return &recomputed{
		problem: p, order: slices.Clone(r.order), origin: slices.Clone(r.origin), from: slices.Clone(r.from),
		maker: slices.Clone(r.maker), again: slices.Clone(r.again), alone: r.alone,
	}
}

// link sets after of task i from what it reads.
func (r *recomputed) link(i int) {
	t := &r.tasks[i]
	t.after = nil
	for _, s := range t.reads {
		if !slices.Contains(t.after, r.maker[s]) {
			t.after = append(t.after, r.maker[s])
		}
	}
}

// exchange makes task i read store now where it read old.
func (r *recomputed) exchange(i, old, now int) {
	t := &r.tasks[i]
	swapped := func(s []int) []int {
		s = slices.Clone(s)
		for k := range s {
			if s[k] == old {
				s[k] = now
			}
		}
		return s
	}
	t.reads = swapped(t.reads)
	if t.over != nil {
		t.over = slices.Clone(t.over)
		for k := range t.over {
			t.over[k] = swapped(t.over[k])
		}
	}
	r.link(i)
}

// late are the places behind place at whose tasks read store s.
func (r *recomputed) late(s, at int) (places []int) {
	for k := at + 1; k < len(r.order); k++ {
		if slices.Contains(r.tasks[r.order[k]].reads, s) {
			places = append(places, k)
		}
	}
	return places
}

// repeat makes store s again right before its first reader behind place at, for
// all readers from there on. What its maker reads and nobody holds there any
// more is made again too, up to depth tasks back; beyond that it is held.
// It reports false where that repeats nothing new.
func (r *recomputed) repeat(s, at, depth int) bool {
	late := r.late(s, at)
	if len(late) == 0 || r.kept[s] {
		return false
	}
	readers := make([]int, len(late))
	for k, place := range late {
		readers[k] = r.order[place]
	}
	now := r.insert(s, late[0], depth)
	for _, i := range readers {
		r.exchange(i, s, now)
	}
	return true
}

// insert puts a repetition of the maker of s at a place and gives its store.
func (r *recomputed) insert(s, place, depth int) (now int) {
	t := r.maker[s]
	c := len(r.tasks)
	task := r.tasks[t]
	task.over, task.makes = nil, nil
	for _, made := range r.tasks[t].makes {
		if made != s && r.alone(r.origin[t]) {
			continue
		}
		n := len(r.size)
		r.size = append(r.size, r.size[made])
		r.kept = append(r.kept, false)
		r.from = append(r.from, r.from[made])
		r.maker = append(r.maker, c)
		task.makes = append(task.makes, n)
		if made == s {
			now = n
		}
	}
	r.tasks = append(r.tasks, task)
	r.origin = append(r.origin, r.origin[t])
	r.again = append(r.again, c)
	r.order = slices.Insert(r.order, place, c)
	for _, x := range task.reads {
		if depth > 0 && !r.kept[x] && len(r.late(x, place)) == 0 {
			before := len(r.order)
			y := r.insert(x, place, depth-1)
			r.exchange(c, x, y)
			place += len(r.order) - before
		}
	}
	r.link(c)
	return now
}

// drop takes repetition c back: its readers read the values of the start.
func (r *recomputed) drop(c int) {
	for _, s := range r.tasks[c].makes {
		for _, i := range r.order {
			if slices.Contains(r.tasks[i].reads, s) {
				r.exchange(i, s, r.from[s])
			}
		}
	}
	r.remove(c)
	for again := true; again; { // what only c needed
		again = false
		left := r.readers()
		for _, d := range r.again {
			if !slices.ContainsFunc(r.tasks[d].makes, func(s int) bool { return left[s] > 0 }) {
				r.remove(d)
				again = true
				break
			}
		}
	}
}

func (r *recomputed) remove(c int) {
	r.again = slices.DeleteFunc(r.again, func(x int) bool { return x == c })
	r.order = slices.DeleteFunc(r.order, func(x int) bool { return x == c })
	r.tasks[c].reads, r.tasks[c].makes, r.tasks[c].after = nil, nil, nil
}

// valid reports whether every task comes behind those it waits for.
func (r *recomputed) valid() bool {
	seen := map[int]bool{}
	for _, i := range r.order {
		for _, j := range r.tasks[i].after {
			if !seen[j] {
				return false
			}
		}
		seen[i] = true
	}
	return true
}

// compact is r without the tasks that are in use no more, in its order.
func (r *recomputed) compact() *recomputed {
	c := r.clone()
	now := make([]int, len(r.tasks))
	c.tasks, c.origin, c.again = nil, nil, nil
	for k, i := range r.order {
		now[i] = k
		c.tasks = append(c.tasks, r.tasks[i])
		c.origin = append(c.origin, r.origin[i])
	}
	for s := range c.maker {
		c.maker[s] = -1
	}
	for k := range c.tasks {
		t := &c.tasks[k]
		t.after = nil
		for _, j := range r.tasks[r.order[k]].after {
			t.after = append(t.after, now[j])
		}
		for _, s := range t.makes {
			c.maker[s] = k
		}
	}
	for _, i := range r.again {
		c.again = append(c.again, now[i])
	}
	c.order = c.textOrder()
	return c
}

// excess is what the order holds above budget, over all steps, in byte-steps.
func (r *recomputed) excess(budget int64) (sum float64, peak int64, top int) {
	live, peak := r.holds(r.order)
	for k, n := range live {
		sum += float64(max(n-budget, 0))
		if n > live[top] {
			top = k
		}
	}
	return sum, peak, top
}

// maxBack is how many tasks back a value may be made again from.
const maxBack = 6

// fit recomputes values, and orders anew, until no step holds more than budget,
// and gives the best it reached where that cannot be.
func (r *recomputed) fit(ctx context.Context, budget int64) *recomputed {
	for {
		r = r.under(ctx, budget)
		sum, peak, _ := r.excess(budget)
		if peak <= budget || ctx.Err() != nil {
			return r.without(budget).compact()
		}
		c := r.compact()
		c.order, _ = c.lowest(ctx, c.order)
		if after, _, _ := c.excess(budget); after < sum {
			r = c
			continue
		}
		if c = r.rearranged(ctx, budget, sum); c == nil || len(c.again) > 4*len(c.size) {
			return r.without(budget).compact()
		}
		r = c
	}
}

// cut is a way to recompute: for the readers of a store behind a task, going
// back so many tasks at most.
type cut struct {
	store, task, depth int
	rate               float64 // byte-steps above the budget that it saves for each ns
}

// under recomputes values until no step holds more than budget, each time the
// one that costs the least time for what it takes off the steps above the
// budget. It gives the best it reached where that is more.
//
// What a cut saves changes with every other one that is taken, as a rule to
// less; so a cut is only asked again when it is the best by what it saved when
// it was last asked (Minoux, "Accelerated greedy algorithms for maximizing
// submodular set functions", 1978). When all are used up, and new values with
// new cuts have come, it begins again.
func (r *recomputed) under(ctx context.Context, budget int64) *recomputed {
	for {
		sum, peak, _ := r.excess(budget)
		var open cuts
		for _, c := range r.cuts(budget) {
			for c.depth = 0; c.depth < maxBack && ctx.Err() == nil; c.depth++ {
				next, further := r.with(&c, budget, sum)
				if !further {
					break
				}
				if next != nil {
					open = append(open, c)
				}
			}
		}
		heap.Init(&open)
		taken := false
		for len(open) > 0 && peak > budget && ctx.Err() == nil && len(r.again) < 4*len(r.size) {
			next, _ := r.with(&open[0], budget, sum)
			switch {
			case next == nil:
				heap.Pop(&open)
			case open.beaten():
				heap.Fix(&open, 0)
			default:
				heap.Pop(&open)
				r, taken = next, true
				sum, peak, _ = r.excess(budget)
			}
		}
		if !taken || peak <= budget {
			return r
		}
	}
}

// cuts are the ways to recompute that could save something: at every stretch
// between two uses of a value in which a step holds more than budget.
func (r *recomputed) cuts(budget int64) (out []cut) {
	live, _ := r.holds(r.order)
	over := make([]int, len(live)+1) // steps above the budget before each place
	for k, n := range live {
		over[k+1] = over[k]
		if n > budget {
			over[k+1]++
		}
	}
	last := make([]int, len(r.size)) // the place of the last use so far
	for k, i := range r.order {
		for _, s := range r.tasks[i].makes {
			last[s] = k
		}
		for _, s := range r.tasks[i].reads {
			if from := last[s]; r.size[s] > 0 && !r.kept[s] && over[k] > over[from+1] {
				out = append(out, cut{store: s, task: r.order[from]})
			}
			last[s] = k
		}
	}
	return out
}

// with is r, which holds sum above the budget, with cut c, whose rate it sets;
// nil where that saves nothing. further tells that c goes back as far as it may.
func (r *recomputed) with(c *cut, budget int64, sum float64) (next *recomputed, further bool) {
	at := slices.Index(r.order, c.task)
	if at < 0 || r.maker[c.store] < 0 || len(r.tasks[r.maker[c.store]].makes) == 0 {
		return nil, false
	}
	next = r.clone()
	if !next.repeat(c.store, at, c.depth) || len(next.again)-len(r.again) <= c.depth {
		return nil, false
	}
	after, _, _ := next.excess(budget)
	if after >= sum {
		return nil, true
	}
	ns := 1.0
	for _, i := range next.again[len(r.again):] {
		ns += next.tasks[i].ns
	}
	c.rate = (sum - after) / ns
	return next, true
}

// cuts is a heap, the best first.
type cuts []cut

func (c cuts) Len() int           { return len(c) }
func (c cuts) Less(i, j int) bool { return c[i].rate > c[j].rate }
func (c cuts) Swap(i, j int)      { c[i], c[j] = c[j], c[i] }

// beaten reports whether the first is not the best any more.
func (c cuts) beaten() bool {
	return len(c) > 1 && c[1].rate > c[0].rate || len(c) > 2 && c[2].rate > c[0].rate
}

func (c *cuts) Push(x any) { *c = append(*c, x.(cut)) }
func (c *cuts) Pop() any {
	old := *c
	x := old[len(old)-1]
	*c = old[:len(old)-1]
	return x
}

// The work that rearranged may take in all, and for one value at least; where
// there is less for each, the values are too many to try.
const (
	rearrangeWork = 60_000_000
	eachWork      = 40_000
)

// rearranged is r with one value recomputed for some of its readers and all
// tasks ordered anew, where that holds less above the budget; nil where no value
// does. It finds what under does not: values that pay only in another order.
func (r *recomputed) rearranged(ctx context.Context, budget int64, sum float64) *recomputed {
	type cut struct{ store, at, depth int }
	var cuts []cut
	for s := range r.size {
		if r.size[s] == 0 || r.kept[s] {
			continue
		}
		places := r.late(s, -1)
		for _, at := range places[:max(len(places)-1, 0)] {
			for depth := range 3 {
				cuts = append(cuts, cut{s, at, depth})
			}
		}
	}
	work := rearrangeWork / max(len(cuts), 1)
	if work < eachWork {
		return nil
	}
	var best *recomputed
	rate := math.Inf(-1)
	for _, k := range cuts {
		if ctx.Err() != nil {
			return nil
		}
		c := r.clone()
		c.repeat(k.store, k.at, k.depth)
		if k.depth > 0 && len(c.again)-len(r.again) <= k.depth {
			continue // no further back than the cut before
		}
		ns := 1.0
		for _, i := range c.again[len(r.again):] {
			ns += c.tasks[i].ns
		}
		c = c.compact()
		c.order, _ = c.lowestWithin(ctx, c.order, work/2, work/2)
		after, _, _ := c.excess(budget)
		if won := sum - after; won > 0 && won/ns > rate {
			best, rate = c, won/ns
		}
	}
	return best
}

// without is r less the repetitions that turn out not to be needed for budget,
// or, where it is not met, for the peak that is; the most expensive go first.
func (r *recomputed) without(budget int64) *recomputed {
	_, peak, _ := r.excess(budget)
	limit := max(budget, peak)
	candidates := slices.Clone(r.again)
	slices.SortStableFunc(candidates, func(a, b int) int { return cmp.Compare(r.tasks[b].ns, r.tasks[a].ns) })
	for _, c := range candidates {
		if !slices.Contains(r.again, c) {
			continue
		}
		less := r.clone()
		less.drop(c)
		if _, n, _ := less.excess(budget); n <= limit && less.valid() {
			r = less
		}
	}
	return r
}
