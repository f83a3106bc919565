package plan

import (
	"cmp"
	"container/heap"
	"context"
	"math"
	"runtime"
	"slices"
	"sync"

	"dmir/base/parallel"
)

// An exploration bounds settings by what each of their ops takes at least, then, of least time first, by what all take together, then, those that
// may be better than the best plan, by schedule, and then looks at them, until none that is left can be among the plans that are kept.
type exploration struct {
	*search
	lock  sync.Mutex // of what follows
	wait  *sync.Cond
	open  settingHeap
	under int        // settings that workers have
	third bool       // those with an unrequested third axis are looked at, all others were
	loose []*setting // that were looked at when no plan was known, and are yet to be bounded by schedule
	step  func()
}

// explore looks at settings. Each counts as two steps.
func (s *search) explore(ctx context.Context, settings []setting, step func()) {
	x := &exploration{search: s, step: step}
	x.wait = sync.NewCond(&x.lock)
	parallel.Each(runtime.GOMAXPROCS(0), len(settings), func(i int) {
		if ctx.Err() == nil {
			s.apart(&settings[i])
		}
	})
	for i := range settings {
		heap.Push(&x.open, &settings[i])
	}
	workers := runtime.GOMAXPROCS(0)
	parallel.Each(workers, workers, func(int) {
		for set := x.next(ctx); set != nil; set = x.next(ctx) {
			x.treat(ctx, set)
		}
	})
	for _, set := range slices.SortedFunc(slices.Values(x.loose), func(a, b *setting) int { return cmp.Compare(a.least, b.least) }) {
		if enough := min(x.fastest(), x.known()); set.least < enough && !x.late() {
			set.least = max(set.least, x.optimistic(ctx, *set, enough, true))
		}
		x.bound = min(x.bound, set.least)
	}
}

// chained reports whether the setting can be bounded by the chains of its schedules.
func (x *exploration) chained(set *setting) bool {
	gr, err := x.grid(*set)
	return err == nil && set.form.level(gr, x.bandwidth)
}

// fastest is the time of the best plan so far; 0 where there is none.
func (x *exploration) fastest() float64 {
	x.search.lock.Lock()
	defer x.search.lock.Unlock()
	best := 0.0
	for _, c := range x.best {
		if best == 0 || c.Time < best {
			best = c.Time
		}
	}
	return best
}

// next is the first setting; nil where none is left. It waits for what other workers make of theirs.
func (x *exploration) next(ctx context.Context) *setting {
	x.lock.Lock()
	defer x.lock.Unlock()
	for x.under > 0 && (len(x.open) == 0 || x.open[0].roles && !x.third) {
		x.wait.Wait()
	}
	if len(x.open) == 0 || ctx.Err() != nil {
		x.wait.Broadcast()
		return nil
	}
	if x.open[0].roles && !x.third {
		x.third = true
		x.leave()
	}
	x.under++
	return heap.Pop(&x.open).(*setting)
}

// treat bounds a setting more closely, looks at it, or gives it up.
func (x *exploration) treat(ctx context.Context, set *setting) {
	defer func() {
		x.lock.Lock()
		defer x.lock.Unlock()
		x.under--
		x.wait.Broadcast()
	}()
	switch {
	case set.least >= x.cutoff(set.roles) && !(x.o.Price != nil && set.plain()) || x.spent() || set.left && (set.closely || set.least >= x.known()):
		x.done(nil, set.least, shortage{bytes: math.Inf(1)})
		if !set.bounded {
			x.tell()
		}
	case !set.bounded || !set.closely && (set.left || set.least < x.fastest()):
		enough := x.cutoff(set.roles)
		if set.bounded {
			enough = min(enough, x.fastest())
		}
		if set.left {
			enough = min(enough, x.known())
		}
		closely := set.bounded
		set.least = max(set.least, x.optimistic(ctx, *set, enough, closely))
		set.closely = closely || !x.chained(set)
		if !set.bounded {
			set.bounded = true
			x.tell()
		}
		x.lock.Lock()
		defer x.lock.Unlock()
		heap.Push(&x.open, set)
	default:
		found, bound, need := x.look(ctx, *set)
		if set.least = max(bound, set.least); set.closely {
			x.done(found, set.least, need)
			return
		}
		x.done(found, math.Inf(1), need)
		x.lock.Lock()
		defer x.lock.Unlock()
		x.loose = append(x.loose, set)
	}
}

// mostThird is how many settings with an unrequested third axis may be looked at: each takes as long as several of two axes. Of the
// others it is asked alone what they take at least, as far as the bound of the search is not less anyway.
const mostThird = 24

// known is what the bound of the search is at most, by what is known so far.
func (x *exploration) known() float64 {
	x.search.lock.Lock()
	defer x.search.lock.Unlock()
	return x.bound
}

// leave chooses among such settings when all others were looked at, so that the choice is the same in each run: those that may be better
// than the best plan, of least work first: how much of a pipeline's time is waiting they share with those of two axes.
func (x *exploration) leave() {
	below := x.cutoff(true)
	at := 0
	lighter := func(a, b *setting) int { return cmp.Or(cmp.Compare(a.work, b.work), cmp.Compare(a.at, b.at)) }
	for _, set := range slices.SortedFunc(slices.Values(x.open), lighter) {
		if set.least < below {
			at++
			set.left = at > mostThird
		}
	}
}

// spent reports whether there is a plan and no time to look for a better one.
func (x *exploration) spent() bool {
	if !x.late() {
		return false
	}
	x.search.lock.Lock()
	defer x.search.lock.Unlock()
	return len(x.found) > 0
}

// done is the end of a setting.
func (x *exploration) done(found []*candidate, bound float64, need shortage) {
	x.search.lock.Lock()
	defer x.search.lock.Unlock()
	x.keep(found, bound, need)
	x.step()
}

func (x *exploration) tell() {
	x.search.lock.Lock()
	defer x.search.lock.Unlock()
	x.step()
}

// A settingHeap has settings, in the order of sooner.
type settingHeap []*setting

// sooner orders settings: those of fewer axes first, which are looked at in a fraction of the time and tell which of the others cannot be
// better, and those with an unrequested third axis last; among these that of the least time.
func sooner(a, b *setting) int {
	switch {
	case a.roles && !b.roles:
		return 1
	case b.roles && !a.roles:
		return -1
	}
	return cmp.Or(cmp.Compare(a.several(), b.several()), cmp.Compare(a.least, b.least), cmp.Compare(a.at, b.at))
}

func (h settingHeap) Len() int           { return len(h) }
func (h settingHeap) Less(i, j int) bool { return sooner(h[i], h[j]) < 0 }
func (h settingHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *settingHeap) Push(v any)        { *h = append(*h, v.(*setting)) }
func (h *settingHeap) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}
