package memory

import (
	"cmp"
	"math"
	"slices"
)

// maxGreedy is the number of buffers up to which orders other than that of time
// are tried: each takes time in its square, on memory that lies in a row.
const maxGreedy = 1 << 13

// assign gives every buffer its offset: the arguments, which are there
// throughout, from 0 on, and the others above them by best fit, in the order of
// time; and, where that takes more than is live at the peak, with the largest
// and with the longest-lived first. The plan with the lowest peak stands.
func (p *Plan) assign() {
	var base int64
	var rest []*Buffer
	for i := range p.Buffers {
		b := &p.Buffers[i]
		if b.Arg {
			b.Offset = base
			base += b.Bytes
		} else {
			rest = append(rest, b)
		}
	}
	best := base + inTime(rest)
	at := offsets(rest)
	if len(rest) <= maxGreedy {
		for _, order := range [...]func(a, b *Buffer) int{bySize, byArea, byLength} {
			if best == p.Bound {
				break
			}
			if peak := base + inOrder(rest, order); peak < best {
				best, at = peak, offsets(rest)
			}
		}
	}
	for i, b := range rest {
		b.Offset = base + at[i]
	}
	p.Peak = best
}

func offsets(bs []*Buffer) []int64 {
	out := make([]int64, len(bs))
	for i, b := range bs {
		out[i] = b.Offset
	}
	return out
}

func bySize(a, b *Buffer) int { return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), byLength(a, b)) }

func byLength(a, b *Buffer) int {
	return cmp.Or(cmp.Compare(b.Last-b.First, a.Last-a.First), cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.First, b.First))
}

func byArea(a, b *Buffer) int {
	area := func(b *Buffer) float64 { return float64(b.Bytes) * float64(b.Last-b.First+1) }
	return cmp.Or(cmp.Compare(area(b), area(a)), cmp.Compare(a.First, b.First))
}

// inOrder places the buffers one after the other, each into the smallest gap
// that holds it between those that are placed and live with it, and returns the peak.
func inOrder(bs []*Buffer, order func(a, b *Buffer) int) (peak int64) {
	type stretch struct {
		start, end  int64
		first, last int
	}
	placed := make([]stretch, 0, len(bs)) // by start
	sorted := slices.Clone(bs)
	slices.SortStableFunc(sorted, order)
	for _, b := range sorted {
		var top int64
		at, least := int64(-1), int64(math.MaxInt64)
		for _, s := range placed {
			if s.last < b.First || b.Last < s.first {
				continue
			}
			if gap := s.start - top; gap >= b.Bytes && gap < least {
				at, least = top, gap
			}
			top = max(top, s.end)
		}
		if at < 0 {
			at = top
		}
		b.Offset = at
		peak = max(peak, at+b.Bytes)
		i, _ := slices.BinarySearchFunc(placed, at, func(s stretch, at int64) int { return cmp.Compare(s.start, at) })
		placed = slices.Insert(placed, i, stretch{at, at + b.Bytes, b.First, b.Last})
	}
	return peak
}

// inTime takes and gives memory back as the steps go by, each buffer from the
// smallest free stretch that holds it, and returns the peak.
func inTime(bs []*Buffer) int64 {
	ending := slices.Clone(bs)
	slices.SortStableFunc(ending, func(a, b *Buffer) int { return cmp.Compare(a.Last, b.Last) })
	h := heap{starts: map[int64]int64{}, ends: map[int64]int64{}}
	for _, b := range bs { // by First
		for len(ending) > 0 && ending[0].Last < b.First {
			h.give(ending[0].Offset, ending[0].Bytes)
			ending = ending[1:]
		}
		b.Offset = h.take(b.Bytes)
	}
	return h.peak
}

// heap is memory from 0 to top of which some stretches are free, no two of them
// side by side.
type heap struct {
	free   tree            // by size, then address
	starts map[int64]int64 // of a free stretch, to its end
	ends   map[int64]int64 // and the other way round
	top    int64
	peak   int64
}

func (h *heap) take(n int64) int64 {
	s, ok := h.free.ceiling(n)
	if !ok { // at the top, with what is free below it
		at := h.top
		if start, free := h.ends[h.top]; free {
			h.remove(start, h.top)
			at = start
		}
		h.top = at + n
		h.peak = max(h.peak, h.top)
		return at
	}
	end := s.at + s.size
	h.remove(s.at, end)
	if n < s.size {
		h.insert(s.at+n, end)
	}
	return s.at
}

func (h *heap) give(at, n int64) {
	end := at + n
	if start, free := h.ends[at]; free {
		h.remove(start, at)
		at = start
	}
	if e, free := h.starts[end]; free {
		h.remove(end, e)
		end = e
	}
	h.insert(at, end)
}

func (h *heap) insert(start, end int64) {
	h.starts[start], h.ends[end] = end, start
	h.free.insert(chunk{end - start, start})
}

func (h *heap) remove(start, end int64) {
	delete(h.starts, start)
	delete(h.ends, end)
	h.free.remove(chunk{end - start, start})
}
