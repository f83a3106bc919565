package plan

import (
	"cmp"
	"container/heap"
	"context"
	"math"
	"runtime"
	"sync"

	"dmir/base/parallel"
)

// An exploration bounds settings by what each of their ops takes at least, then, of least time first, by what all take together, and
// then looks at them, until none that is left can be among the plans that are kept.
type exploration struct {
	*search
	lock  sync.Mutex // of what follows
	wait  *sync.Cond
	open  settingHeap
	under int // settings that workers have
	third int // settings with a third axis that nobody asked for
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
}

// next is the first setting; nil where none is left. It waits for what other workers make of theirs.
func (x *exploration) next(ctx context.Context) *setting {
	x.lock.Lock()
	defer x.lock.Unlock()
	for len(x.open) == 0 && x.under > 0 {
		x.wait.Wait()
	}
	if len(x.open) == 0 || ctx.Err() != nil {
		x.wait.Broadcast()
		return nil
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
	case set.least >= x.cutoff(set.roles) && !(x.o.Price != nil && set.plain()) || x.spent() || !set.bounded && x.enough(set):
		x.done(nil, set.least, shortage{bytes: math.Inf(1)})
		if !set.bounded {
			x.tell()
		}
	case !set.bounded:
		set.least, set.bounded = max(set.least, x.optimistic(ctx, *set)), true
		x.tell()
		x.lock.Lock()
		defer x.lock.Unlock()
		heap.Push(&x.open, set)
	default:
		x.done(x.look(ctx, *set))
	}
}

// mostThird is how many settings with a third axis that nobody asked for are bounded with all ops together: each takes as long as
// several of two axes. What the others take at least counts for the bound of the search.
const mostThird = 24

// enough reports whether as many settings with a third axis were bounded as may be.
func (x *exploration) enough(set *setting) bool {
	if !set.roles {
		return false
	}
	x.lock.Lock()
	defer x.lock.Unlock()
	x.third++
	return x.third > mostThird
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

// A settingHeap has settings: those of fewer axes first, which are looked at in a fraction of the time and tell which of the others
// cannot be better; among these that of the least time.
type settingHeap []*setting

func (h settingHeap) Len() int { return len(h) }
func (h settingHeap) Less(i, j int) bool {
	a, b := h[i], h[j]
	return cmp.Or(cmp.Compare(a.several(), b.several()), cmp.Compare(a.least, b.least), cmp.Compare(a.at, b.at)) < 0
}
func (h settingHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *settingHeap) Push(v any)   { *h = append(*h, v.(*setting)) }
func (h *settingHeap) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}
