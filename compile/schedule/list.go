package schedule

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
)

// beam is list scheduling with beam search: it builds orders task by task and
// keeps, at every length, the width best prefixes: those with the lowest peak,
// then with the least live memory.
func (p *problem) beam(ctx context.Context, width int) []int {
	n := len(p.tasks)
	behind := p.behind()
	first := &beginning{state: p.start(), open: make([]int32, n)}
	for i := range p.tasks {
		first.open[i] = int32(len(p.tasks[i].after))
		if first.open[i] == 0 {
			first.ready = append(first.ready, i)
		}
	}
	level := []*beginning{first}
	for range n {
		if ctx.Err() != nil {
			return nil
		}
		type choice struct {
			from       *beginning
			task       int
			peak, live int64
			mark       uint64 // hash of the set of tasks: two orders of one set differ only in their peak
		}
		var choices []choice
		for _, b := range level {
			for _, i := range b.ready {
				choices = append(choices, choice{b, i, max(b.peak, b.held(i)), b.live + b.gain(i), b.mark + taskHash(i)})
			}
		}
		slices.SortStableFunc(choices, func(a, b choice) int {
			return cmp.Or(cmp.Compare(a.peak, b.peak), cmp.Compare(a.live, b.live), cmp.Compare(a.task, b.task))
		})
		seen := map[uint64]bool{}
		var next []*beginning
		for _, c := range choices {
			if len(next) == width {
				break
			}
			if !seen[c.mark] {
				seen[c.mark] = true
				next = append(next, c.from.with(c.task, c.peak, behind[c.task]))
			}
		}
		level = next
	}
	return level[0].order()
}

// taskHash is the hash of a task; that of a set is the sum.
func taskHash(i int) uint64 {
	x := (uint64(i) + 1) * 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	return x ^ x>>27
}

type beginning struct {
	*state
	peak   int64
	open   []int32 // number of predecessors that have not run, by task
	ready  []int   // in order
	mark   uint64
	parent *beginning
	last   int
}

func (b *beginning) with(i int, peak int64, behind []int) *beginning {
	m := *b.state
	m.left = slices.Clone(m.left)
	m.run(i)
	c := &beginning{state: &m, peak: peak, open: slices.Clone(b.open), mark: b.mark + taskHash(i), parent: b, last: i}
	for _, j := range b.ready {
		if j != i {
			c.ready = append(c.ready, j)
		}
	}
	for _, j := range behind {
		if c.open[j]--; c.open[j] == 0 {
			c.ready = append(c.ready, j)
		}
	}
	slices.Sort(c.ready)
	return c
}

func (b *beginning) order() []int {
	var out []int
	for ; b.parent != nil; b = b.parent {
		out = append(out, b.last)
	}
	slices.Reverse(out)
	return out
}

// improve moves single tasks while that lowers the peak, or the memory of the
// steps close to it. rounds is the number of moves tried.
func (p *problem) improve(ctx context.Context, order []int, rounds int) []int {
	n := len(order)
	if n < 3 {
		return order
	}
	behind := p.behind()
	best := slices.Clone(order)
	at := make([]int, n)
	place := func() {
		for k, i := range best {
			at[i] = k
		}
	}
	place()
	live, peak := p.holds(best)
	least := p.least()
	score := pressure(live, peak)
	r := rand.New(rand.NewPCG(uint64(n), 11))
	trial := make([]int, n)
	for round := 0; round < rounds && peak > least; round++ {
		if round%64 == 0 && ctx.Err() != nil {
			break
		}
		i := r.IntN(n)
		if round%2 == 0 { // half of the moves are of tasks near the peak
			top := slices.Index(live, slices.Max(live))
			i = best[min(max(top+r.IntN(17)-8, 0), n-1)]
		}
		lo, hi := 0, n-1
		for _, j := range p.tasks[i].after {
			lo = max(lo, at[j]+1)
		}
		for _, j := range behind[i] {
			hi = min(hi, at[j]-1)
		}
		if hi <= lo {
			continue
		}
		to := lo + r.IntN(hi-lo+1)
		if to == at[i] {
			continue
		}
		copy(trial, best)
		move(trial, at[i], to)
		l, pk := p.holds(trial)
		if sc := pressure(l, pk); pk < peak || pk == peak && sc <= score {
			copy(best, trial)
			live, peak, score = l, pk, sc
			place()
		}
	}
	return best
}

// pressure is the memory above nine tenths of the peak, summed over all steps.
func pressure(live []int64, peak int64) (sum float64) {
	from := peak - peak/10
	for _, n := range live {
		if n > from {
			sum += float64(n - from)
		}
	}
	return sum
}

// move moves the element at from to index to.
func move(s []int, from, to int) {
	x := s[from]
	if from < to {
		copy(s[from:to], s[from+1:to+1])
	} else {
		copy(s[to+1:from+1], s[to:from])
	}
	s[to] = x
}

// Bounds on the work of ordering, in visits of a task or a store: about two
// seconds in all.
const (
	exactWork = 60_000_000
	listWork  = 40_000_000
)

// lowest is the order with the lowest peak found, the given one if none is
// lower; proven reports that it is a minimum.
func (p *problem) lowest(ctx context.Context, given []int) (order []int, proven bool) {
	return p.lowestWithin(ctx, given, exactWork, listWork)
}

// lowestWithin is lowest with bounds on the work of its two searches.
func (p *problem) lowestWithin(ctx context.Context, given []int, exactWork, listWork int) (order []int, proven bool) {
	_, peak := p.holds(given)
	if peak <= p.least() {
		return given, true
	}
	found, proven := p.exact(ctx, peak, exactWork)
	if proven {
		if found != nil {
			return found, true
		}
		return given, true
	}
	size := len(p.tasks) + len(p.size)
	for i := range p.tasks {
		size += len(p.tasks[i].reads) + len(p.tasks[i].after)
	}
	order = given
	width := min(max(listWork/4/(size*len(p.tasks)+1), 1), 128)
	candidates := [][]int{given, p.beam(ctx, width)}
	for _, c := range candidates {
		if c == nil {
			continue
		}
		c = p.improve(ctx, c, listWork/2/(2*size+1))
		if _, n := p.holds(c); n < peak {
			order, peak = c, n
		}
	}
	return order, peak <= p.least()
}
