package schedule

import (
	"cmp"
	"context"
	"slices"
)

// liveRange is a piece of memory and the steps during which it is live: the
// storage of a value, or of several that overwrite each other, or the scratch
// memory of a step.
type liveRange struct {
	roots []*root
	step  *step // whose scratch memory it is; nil for storage
	size  int64
	first int     // the step that writes it first; -1 if it is live from the start
	last  []int32 // for each stream the last step that uses it; -1 for none
	kept  bool    // live to the end
}

// use records that step i uses b.
func (b *liveRange) use(c *clock, i int) {
	if b.last == nil {
		b.last = make([]int32, c.count)
		for k := range b.last {
			b.last[k] = -1
		}
	}
	s := c.stream[i]
	b.last[s] = max(b.last[s], int32(i))
}

// over reports whether b is dead, in any interleaving of the streams, when step
// i begins.
func (b *liveRange) over(c *clock, i int) bool {
	if b.kept || i < 0 {
		return false
	}
	for s, n := range b.last {
		if n > c.ended[i][s] {
			return false
		}
	}
	return true
}

// interfere reports whether a and b may be live at the same time.
func interfere(c *clock, a, b *liveRange) bool { return !a.over(c, b.first) && !b.over(c, a.first) }

// liveAt reports whether b is live at step t in every interleaving of the
// streams.
func (b *liveRange) liveAt(c *clock, t int) bool {
	if b.first > t || b.first >= 0 && b.first != t && !c.before(b.first, t) {
		return false
	}
	if b.kept {
		return true
	}
	for _, n := range b.last {
		if int(n) == t || int(n) > t && c.before(t, int(n)) {
			return true
		}
	}
	return false
}

// liveRangeOf is the live range of r.
func liveRangeOf(c *clock, r *root) *liveRange {
	b := &liveRange{roots: []*root{r}, size: r.size, first: -1, kept: r.kept()}
	if r.maker != nil {
		b.first = r.maker.index
		b.use(c, b.first)
	}
	for _, s := range r.reads {
		b.use(c, s.index)
	}
	return b
}

func scratchRange(c *clock, s *step) *liveRange {
	b := &liveRange{step: s, size: s.scratch, first: s.index}
	b.use(c, s.index)
	return b
}

// dying reports whether s may overwrite r: s reads it, and its other readers
// have ended.
func dying(c *clock, r *root, s *step) bool {
	for _, o := range r.reads {
		if o != s && !c.before(o.index, s.index) {
			return false
		}
	}
	return slices.Contains(r.reads, s)
}

// blocks are the live ranges of g's values that do not live throughout, with as
// many values in place of others as possible, and of the steps' scratch memory.
func (g *model) blocks(c *clock) []*liveRange {
	var out []*liveRange
	of := map[*root]*liveRange{}
	for _, s := range g.steps {
		var taken []*root
		for i, r := range s.makes {
			if r.size == 0 {
				continue
			}
			at := slices.IndexFunc(g.over(s, i), func(x *root) bool { return of[x] != nil && !slices.Contains(taken, x) && dying(c, x, s) })
			b := liveRangeOf(c, r)
			if at < 0 {
				out = append(out, b)
				of[r] = b
				continue
			}
			x := g.over(s, i)[at]
			taken = append(taken, x)
			old := of[x]
			old.roots = append(old.roots, r)
			old.kept = old.kept || b.kept
			for k, n := range b.last {
				old.last[k] = max(old.last[k], n)
			}
			of[r] = old
		}
		if s.scratch > 0 {
			out = append(out, scratchRange(c, s))
		}
	}
	return out
}

// placementOf is the problem of placing live ranges, which are in the order in which
// they begin: which ones interfere, and which are live at each step. It is not
// complete once ctx has ended.
func placementOf(ctx context.Context, c *clock, bs []*liveRange) *placement {
	l := &placement{interferes: make([][]int32, len(bs))}
	over := c.overFrom()
	var open []int32 // those before that a later one may interfere with
	for i, b := range bs {
		if i%64 == 0 && ctx.Err() != nil {
			return l
		}
		l.size = append(l.size, b.size)
		l.first = append(l.first, b.first)
		end := len(c.stream)
		if !b.kept {
			end = int(slices.Max(b.last))
		}
		l.length = append(l.length, end-b.first)
		open = slices.DeleteFunc(open, func(j int32) bool { return over(bs[j], b.first) })
		for _, j := range open {
			if interfere(c, b, bs[j]) {
				l.interferes[i] = append(l.interferes[i], j)
				l.interferes[j] = append(l.interferes[j], int32(i))
			}
		}
		open = append(open, int32(i))
	}
	l.cliques = live(c, bs)
	if c.count > 1 {
		for i := range bs {
			if ctx.Err() != nil {
				return l
			}
			l.cliques = append(l.cliques, l.clique(i))
		}
	}
	return l
}

// live are the largest sets of live ranges that are live at one step.
func live(c *clock, bs []*liveRange) (sets [][]int32) {
	over := c.overFrom()
	var open, before []int32
	begun := 0
	for t := range c.stream {
		for ; begun < len(bs) && bs[begun].first <= t; begun++ {
			open = append(open, int32(begun))
		}
		open = slices.DeleteFunc(open, func(j int32) bool { return over(bs[j], t) })
		here := make([]int32, 0, len(open))
		for _, i := range open {
			if bs[i].liveAt(c, t) {
				here = append(here, i)
			}
		}
		switch {
		case subset(here, before):
		case subset(before, here) && len(sets) > 0:
			sets[len(sets)-1] = here
			before = here
		default:
			sets = append(sets, here)
			before = here
		}
	}
	return sets
}

// mostLive is a lower bound on the bytes that the live ranges take. With one stream it
// does not depend on which of them interfere.
func mostLive(c *clock, bs []*liveRange) int64 {
	if c.count > 1 {
		return placementOf(context.Background(), c, bs).bound()
	}
	l := &placement{cliques: live(c, bs)}
	for _, b := range bs {
		l.size = append(l.size, b.size)
	}
	return l.bound()
}

// clique is a set of live ranges that all interfere with each other and include
// i, chosen greedily by size. With several streams more of them interfere than
// are certainly live at one step.
func (l *placement) clique(i int) []int32 {
	candidates := slices.Clone(l.interferes[i])
	slices.SortStableFunc(candidates, func(a, b int32) int { return cmp.Compare(l.size[b], l.size[a]) })
	clique := []int32{int32(i)}
	for _, j := range candidates {
		all := true
		for _, k := range clique {
			all = all && slices.Contains(l.interferes[j], k)
		}
		if all {
			clique = append(clique, j)
		}
	}
	return clique
}

// subset reports whether all of a, which is sorted, are in b, which is too.
func subset(a, b []int32) bool {
	k := 0
	for _, x := range a {
		for k < len(b) && b[k] < x {
			k++
		}
		if k == len(b) || b[k] != x {
			return false
		}
	}
	return true
}

// parts splits l into the connected components of the interference graph.
func (l *placement) parts() [][]int {
	seen := make([]bool, len(l.size))
	var out [][]int
	for i := range l.size {
		if seen[i] {
			continue
		}
		part := []int{i}
		seen[i] = true
		for k := 0; k < len(part); k++ {
			for _, j := range l.interferes[part[k]] {
				if !seen[j] {
					seen[j] = true
					part = append(part, int(j))
				}
			}
		}
		slices.Sort(part)
		out = append(out, part)
	}
	return out
}

// part is the problem of a component of l.
func (l *placement) part(members []int) *placement {
	if len(members) == len(l.size) {
		return l
	}
	now := make([]int32, len(l.size))
	for i := range now {
		now[i] = -1
	}
	p := &placement{interferes: make([][]int32, len(members)), base: l.base}
	for k, i := range members {
		now[i] = int32(k)
		p.size = append(p.size, l.size[i])
		p.first = append(p.first, l.first[i])
		p.length = append(p.length, l.length[i])
	}
	for k, i := range members {
		for _, j := range l.interferes[i] {
			p.interferes[k] = append(p.interferes[k], now[j])
		}
	}
	for _, c := range l.cliques {
		var here []int32
		for _, i := range c {
			if now[i] >= 0 {
				here = append(here, now[i])
			}
		}
		if len(here) > 0 {
			p.cliques = append(p.cliques, here)
		}
	}
	return p
}
