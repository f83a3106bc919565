package schedule

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
)

// placement is the problem of assigning offsets to live ranges.
type placement struct {
	size       []int64   // of each live range, more than 0
	first      []int     // the step that writes it first
	length     []int     // steps from there to the last reader
	interferes [][]int32 // neighbours in the interference graph
	cliques    [][]int32 // sets of live ranges that interfere pairwise
	base       int64     // bytes below all of them
	offset     []int64
}

// bound is the largest size of a clique, a lower bound on every placement.
func (l *placement) bound() (most int64) {
	for _, c := range l.cliques {
		var sum int64
		for _, i := range c {
			sum += l.size[i]
		}
		most = max(most, sum)
	}
	for _, n := range l.size {
		most = max(most, n)
	}
	return most
}

// Bounds on the work of placing, in visits of a live range or a clique: about a
// second in all, and a tenth of that where the peak is within 1 % of the bound.
const (
	annealWork  = 80_000_000
	skylineWork = 40_000_000
)

// place finds offsets and returns the peak. It starts with best-fit in the
// orders of time, size, area and length; where these are above the bound, a
// search of all placements in which every live range rests on another, and
// random changes of the order, follow until nothing is lower or the limit of
// work is reached.
func (l *placement) place(ctx context.Context) int64 {
	bound := l.bound()
	best, at, order := int64(-1), []int64(nil), []int(nil)
	keep := func(peak int64, o []int) {
		if best < 0 || peak < best {
			best, at, order = peak, slices.Clone(l.offset), slices.Clone(o)
		}
	}
	for _, by := range []func(a, b int) int{l.byTime, l.bySize, l.byArea, l.byLength} {
		o := make([]int, len(l.size))
		for i := range o {
			o[i] = i
		}
		slices.SortStableFunc(o, by)
		if keep(l.fit(ctx, o), o); best == bound {
			break
		}
	}
	effort := func(work int) int {
		if best-bound <= (l.base+bound)/100 {
			return work / 10
		}
		return work
	}
	search := func(work int) (over bool) {
		if best <= bound {
			return true
		}
		peak, over := l.skyline(ctx, best, bound, effort(work))
		if peak < best {
			keep(peak, order)
		}
		return over
	}
	if !search(skylineWork / 8) {
		if peak, o := l.anneal(ctx, order, bound, effort(annealWork)); peak < best {
			keep(l.fit(ctx, o), o)
		}
		search(skylineWork)
	}
	l.offset = at
	return max(best, 0)
}

func (l *placement) byTime(a, b int) int {
	return cmp.Or(cmp.Compare(l.first[a], l.first[b]), cmp.Compare(l.length[b], l.length[a]))
}

func (l *placement) bySize(a, b int) int {
	return cmp.Or(cmp.Compare(l.size[b], l.size[a]), cmp.Compare(l.length[b], l.length[a]))
}

func (l *placement) byArea(a, b int) int {
	area := func(i int) float64 { return float64(l.size[i]) * float64(l.length[i]+1) }
	return cmp.Compare(area(b), area(a))
}

func (l *placement) byLength(a, b int) int {
	return cmp.Or(cmp.Compare(l.length[b], l.length[a]), cmp.Compare(l.size[b], l.size[a]))
}

// fit places live ranges in the given order, each into the smallest gap that
// holds it, and returns the peak. It stops, with offsets that mean nothing, once
// ctx has ended.
func (l *placement) fit(ctx context.Context, order []int) (peak int64) {
	l.offset = make([]int64, len(l.size))
	pairs := 0
	for _, a := range l.interferes {
		pairs += len(a)
	}
	// Where many interfere, a walk over all that are placed, by offset, is shorter
	// than sorting those that do.
	dense := pairs/16 > len(l.size)*len(l.size)/256
	placed := make([]bool, len(l.size))
	var around, sorted []int32
	near := make([]int, len(l.size)) // 1 + the last live range that it was met beside
	by := func(a, b int32) int { return cmp.Compare(l.offset[a], l.offset[b]) }
	for n, i := range order {
		if n%64 == 0 && ctx.Err() != nil {
			return peak
		}
		around = around[:0]
		if dense {
			for _, j := range l.interferes[i] {
				near[j] = i + 1
			}
			for _, j := range sorted {
				if near[j] == i+1 {
					around = append(around, j)
				}
			}
		} else {
			for _, j := range l.interferes[i] {
				if placed[j] {
					around = append(around, j)
				}
			}
			slices.SortFunc(around, by)
		}
		at, least, top := int64(-1), int64(-1), int64(0)
		for _, j := range around {
			if gap := l.offset[j] - top; gap >= l.size[i] && (least < 0 || gap < least) {
				at, least = top, gap
			}
			top = max(top, l.offset[j]+l.size[j])
		}
		if at < 0 {
			at = top
		}
		l.offset[i] = at
		placed[i] = true
		if dense {
			k, _ := slices.BinarySearchFunc(sorted, int32(i), by)
			sorted = slices.Insert(sorted, k, int32(i))
		}
		peak = max(peak, at+l.size[i])
	}
	return peak
}

// anneal changes an order at random, mostly by moving a live range at the peak
// forward, and keeps changes that do not raise the peak much.
func (l *placement) anneal(ctx context.Context, start []int, bound int64, work int) (int64, []int) {
	order := slices.Clone(start)
	peak := l.fit(ctx, order)
	best, bestOrder := peak, slices.Clone(order)
	each := 1
	for _, a := range l.interferes {
		each += 4 * (len(a) + 1)
	}
	rounds := work / each
	r := rand.New(rand.NewPCG(uint64(len(order)), 13))
	trial := make([]int, len(order))
	for round := 0; round < rounds && best > bound && len(order) > 1; round++ {
		if ctx.Err() != nil {
			break
		}
		copy(trial, order)
		from := r.IntN(len(order))
		if r.IntN(3) > 0 { // a live range at the peak, or one it rests on
			for tries := 0; tries < 64 && l.offset[trial[from]]+l.size[trial[from]] < peak; tries++ {
				from = r.IntN(len(order))
			}
		}
		to := r.IntN(len(order))
		if from > 0 && r.IntN(4) > 0 {
			to = r.IntN(from)
		}
		move(trial, from, to)
		n := l.fit(ctx, trial)
		slack := float64(peak) * 0.02 * (1 - float64(round)/float64(rounds)) * r.Float64()
		if float64(n) <= float64(peak)+slack {
			order, trial = trial, order
			peak = n
		} else {
			l.fit(ctx, order)
		}
		if n < best {
			best = n
			copy(bestOrder, order)
		}
	}
	return best, bestOrder
}
