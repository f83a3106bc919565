package schedule

import (
	"cmp"
	"container/heap"
	"context"
	"math"
	"slices"
)

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

// fit recomputes values, and orders again, until no step holds more than budget,
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
			if from := last[s]; r.size[s] > 0 && !r.kept[s] && !r.once(s) && over[k] > over[from+1] {
				out = append(out, cut{store: s, task: r.order[from]})
			}
			last[s] = k
		}
	}
	return out
}

// with is r, which holds sum above the budget, with cut c, whose rate it sets;
// nil where that saves nothing. further reports that c goes back as far as it may.
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
// tasks ordered again, where that holds less above the budget; nil where no value
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
