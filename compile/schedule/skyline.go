package schedule

import (
	"cmp"
	"context"
	"math"
	"slices"
)

// skyline searches for offsets in which every live range is at the bottom or
// rests on one that it interferes with; some optimal placement has this form,
// since others can be lowered. Live ranges are placed from the lowest offset to
// the highest, each at its lowest possible offset, so that every such placement
// is visited once (Moffitt, "MiniMalloc: A Lightweight Memory Allocator for
// Hardware-Accelerated Machine Learning", ASPLOS 2023). A branch ends where for
// some clique the height reached plus the sizes of those not placed is no
// better than the best peak. It returns the lowest peak found, with its
// offsets, and given if none is lower; over reports that the search was
// complete.
func (l *placement) skyline(ctx context.Context, given, bound int64, work int) (peak int64, over bool) {
	n := len(l.size)
	s := &sky{
		placement: l, ctx: ctx, work: work, best: given, bound: bound,
		at: make([]int64, n), placed: make([]bool, n), ground: make([]int64, n),
		floor: make([]int64, len(l.cliques)), rest: make([]int64, len(l.cliques)), in: make([][]int32, n),
	}
	for c, members := range l.cliques {
		for _, i := range members {
			s.rest[c] += l.size[i]
			s.in[i] = append(s.in[i], int32(c))
		}
	}
	s.search(0, -1, 0, 0)
	if s.kept != nil {
		l.offset = s.kept
	}
	return s.best, s.work >= 0 && ctx.Err() == nil
}

type sky struct {
	*placement
	ctx    context.Context
	work   int
	best   int64 // peak of the best placement so far
	bound  int64
	kept   []int64
	at     []int64
	placed []bool
	ground []int64 // by live range: the highest end of those placed that it interferes with
	floor  []int64 // by clique: the highest end of its placed live ranges
	rest   []int64 // by clique: bytes of its live ranges that are not placed
	in     [][]int32
}

// search places the live ranges after last, which is at offset low; those at
// one offset are in the order of their numbers. count are placed, and end at
// top. It reports whether the search is over.
func (s *sky) search(count, last int, low, top int64) bool {
	if count == len(s.size) {
		s.best = top
		s.kept = slices.Clone(s.at)
		return top <= s.bound
	}
	if s.work -= len(s.size) + len(s.floor); s.work < 0 || s.ctx.Err() != nil {
		return true
	}
	for c, rest := range s.rest {
		if rest > 0 && max(s.floor[c], low)+rest >= s.best {
			return false
		}
	}
	var next []int32
	// The next one begins below the lowest end that any can reach: otherwise the
	// one with that end could be lowered under it.
	ceiling := int64(math.MaxInt64)
	for i := range s.size {
		if s.placed[i] {
			continue
		}
		end := s.ground[i] + s.size[i]
		if end <= low || max(s.ground[i], low)+s.size[i] >= s.best {
			return false
		}
		ceiling = min(ceiling, end)
		if s.ground[i] > low || s.ground[i] == low && i > last {
			next = append(next, int32(i))
		}
	}
	next = slices.DeleteFunc(next, func(i int32) bool { return s.ground[i] >= ceiling })
	slices.SortStableFunc(next, func(a, b int32) int {
		return cmp.Or(cmp.Compare(s.ground[a], s.ground[b]), cmp.Compare(s.size[b]*int64(s.length[b]+1), s.size[a]*int64(s.length[a]+1)))
	})
	for _, i := range next {
		if s.put(int(i), count, top) {
			return true
		}
	}
	return false
}

// put places live range i where it rests and continues the search.
func (s *sky) put(i, count int, top int64) bool {
	at := s.ground[i]
	end := at + s.size[i]
	s.at[i], s.placed[i] = at, true
	s.work -= len(s.interferes[i]) + len(s.in[i])
	grounds := make([]int64, len(s.interferes[i]))
	for k, j := range s.interferes[i] {
		grounds[k] = s.ground[j]
		if !s.placed[j] {
			s.ground[j] = max(s.ground[j], end)
		}
	}
	floors := make([]int64, len(s.in[i]))
	for k, c := range s.in[i] {
		floors[k] = s.floor[c]
		s.floor[c] = max(s.floor[c], end)
		s.rest[c] -= s.size[i]
	}
	over := s.search(count+1, i, at, max(top, end))
	for k, j := range s.interferes[i] {
		if !s.placed[j] {
			s.ground[j] = grounds[k]
		}
	}
	for k, c := range s.in[i] {
		s.floor[c] = floors[k]
		s.rest[c] += s.size[i]
	}
	s.placed[i] = false
	return over
}
