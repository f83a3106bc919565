package schedule

import (
	"cmp"
	"container/heap"
	"context"
	"math"
	"slices"
)

// excess is the memory of the order above budget, summed over all steps, in
// byte-steps.
func (r *rematerialized) excess(budget int64) (sum float64, peak int64, top int) {
	live, peak := r.holds(r.order)
	for k, n := range live {
		sum += float64(max(n-budget, 0))
		if n > live[top] {
			top = k
		}
	}
	return sum, peak, top
}

// maxBack bounds the number of tasks on a path that are recomputed for a value.
const maxBack = 6

// fit recomputes values and reorders until no step holds more than budget, and
// returns the best order found if that is impossible.
func (r *rematerialized) fit(ctx context.Context, budget int64) *rematerialized {
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
		if c = r.rearranged(ctx, budget, sum); c == nil || len(c.repeated) > 4*len(c.size) {
			return r.without(budget).compact()
		}
		r = c
	}
}

// cut is a way to recompute: for the readers of a store after a task, going
// back at most some number of tasks.
type cut struct {
	store, task, depth int
	rate               float64 // byte-steps above the budget that it saves per ns
}

// under recomputes values until no step holds more than budget, each time the
// one with the best ratio of memory saved above the budget to time. It returns
// the best order found if the budget is not met.
//
// The saving of a cut changes with every other cut, usually to less; so a cut
// is re-evaluated only when it is the best by its last evaluation (Minoux,
// "Accelerated greedy algorithms for maximizing submodular set functions",
// 1978). When all are evaluated, and recomputed values have added cuts, it
// starts over.
func (r *rematerialized) under(ctx context.Context, budget int64) *rematerialized {
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
		for len(open) > 0 && peak > budget && ctx.Err() == nil && len(r.repeated) < 4*len(r.size) {
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

// cuts are the candidates: every interval between two uses of a value in which
// a step holds more than budget.
func (r *rematerialized) cuts(budget int64) (out []cut) {
	live, _ := r.holds(r.order)
	over := make([]int, len(live)+1) // number of steps above the budget before each position
	for k, n := range live {
		over[k+1] = over[k]
		if n > budget {
			over[k+1]++
		}
	}
	last := make([]int, len(r.size)) // the position of the last use so far
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

// with is r, whose excess is sum, with cut c, whose rate it sets; nil if that
// saves nothing. further reports that c reached its limit of tasks.
func (r *rematerialized) with(c *cut, budget int64, sum float64) (next *rematerialized, further bool) {
	at := slices.Index(r.order, c.task)
	if at < 0 || r.maker[c.store] < 0 || len(r.tasks[r.maker[c.store]].makes) == 0 {
		return nil, false
	}
	next = r.clone()
	if !next.repeat(c.store, at, c.depth) || len(next.repeated)-len(r.repeated) <= c.depth {
		return nil, false
	}
	after, _, _ := next.excess(budget)
	if after >= sum {
		return nil, true
	}
	ns := 1.0
	for _, i := range next.repeated[len(r.repeated):] {
		ns += next.tasks[i].ns
	}
	c.rate = (sum - after) / ns
	return next, true
}

// cuts is a heap, best first.
type cuts []cut

func (c cuts) Len() int           { return len(c) }
func (c cuts) Less(i, j int) bool { return c[i].rate > c[j].rate }
func (c cuts) Swap(i, j int)      { c[i], c[j] = c[j], c[i] }

// beaten reports whether the first is no longer the best.
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

// Bounds on the work of rearranged, in total and for one value; with less for
// each, it is not run.
const (
	rearrangeWork = 60_000_000
	eachWork      = 40_000
)

// rearranged is r with one value recomputed for some of its readers and all
// tasks reordered, if that has less excess; nil if there is no such value.
// Unlike under, it finds values whose recomputation pays only in another order.
func (r *rematerialized) rearranged(ctx context.Context, budget int64, sum float64) *rematerialized {
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
	var best *rematerialized
	rate := math.Inf(-1)
	for _, k := range cuts {
		if ctx.Err() != nil {
			return nil
		}
		c := r.clone()
		c.repeat(k.store, k.at, k.depth)
		if k.depth > 0 && len(c.repeated)-len(r.repeated) <= k.depth {
			continue // the same as the cut before
		}
		ns := 1.0
		for _, i := range c.repeated[len(r.repeated):] {
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

// without is r without the repetitions that are not needed for budget or, where
// it is not met, for the current peak; the most expensive are removed first.
func (r *rematerialized) without(budget int64) *rematerialized {
	_, peak, _ := r.excess(budget)
	limit := max(budget, peak)
	candidates := slices.Clone(r.repeated)
	slices.SortStableFunc(candidates, func(a, b int) int { return cmp.Compare(r.tasks[b].ns, r.tasks[a].ns) })
	for _, c := range candidates {
		if !slices.Contains(r.repeated, c) {
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
