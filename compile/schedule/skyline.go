package schedule

import (
	"cmp"
	"context"
	"math"
	"slices"
)

// skyline searches offsets in which every block lies on the ground or on one
// that it must not share bytes with; the lowest peak there is has such offsets,
// because what does not rest on anything can be let down. Blocks are placed
// from the lowest offset to the highest, each at the lowest place that is left
// to it, so that every such placement is met once (Moffitt, "MiniMalloc: A
// Lightweight Memory Allocator for Hardware-Accelerated Machine Learning",
// ASPLOS 2023). A branch ends where at some moment the height that is reached
// and the blocks that are still to come make a peak that is no better than the
// best. It gives the lowest peak found, with its offsets, and given where none is
// lower; over reports that there is none below that.
func (l *layout) skyline(ctx context.Context, given, bound int64, work int) (peak int64, over bool) {
	n := len(l.size)
	s := &sky{
		layout: l, ctx: ctx, work: work, best: given, bound: bound,
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
	*layout
	ctx    context.Context
	work   int
	best   int64 // peak of the best placement so far
	bound  int64
	kept   []int64
	at     []int64
	placed []bool
	ground []int64 // of each block: the highest end of those placed that it must be apart from
	floor  []int64 // of each clique: the highest end of its blocks that are placed
	rest   []int64 // of each clique: bytes of its blocks that are not
	in     [][]int32
}

// search places what is left behind block last, which lies at offset low; those
// at one offset come in the order of their numbers. count blocks are placed, and
// end at top. It reports whether the search is over.
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
	// Below the lowest end that a block can reach, every block begins that comes
	// next: of one above it the other could be let down under it.
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
	slices.SortStableFunc(next, func(a, b int32) int {
		return cmp.Or(cmp.Compare(s.ground[a], s.ground[b]), cmp.Compare(s.size[b]*int64(s.length[b]+1), s.size[a]*int64(s.length[a]+1)))
	})
	for _, i := range next {
		if s.ground[i] < ceiling && s.put(int(i), count, top) {
			return true
		}
	}
	return false
}

// put places block i where it rests and searches on.
func (s *sky) put(i, count int, top int64) bool {
	at := s.ground[i]
	end := at + s.size[i]
	s.at[i], s.placed[i] = at, true
	s.work -= len(s.apart[i]) + len(s.in[i])
	grounds := make([]int64, len(s.apart[i]))
	for k, j := range s.apart[i] {
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
	for k, j := range s.apart[i] {
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
