package schedule

import (
	"cmp"
	"slices"
)

// block is a stretch of the workspace and when it is taken: the storage of a
// value, or of several that are written one over the other, or what a step
// needs while it runs.
type block struct {
	roots []*root
	step  *step // that needs it while it runs; nil for storage
	size  int64
	first int     // the step that writes it first; -1 where it is there from the start
	last  []int32 // for each stream the last step that uses it; -1 for none
	kept  bool    // to the end
}

// use records that step i uses b.
func (b *block) use(c *clock, i int) {
	if b.last == nil {
		b.last = make([]int32, c.count)
		for k := range b.last {
			b.last[k] = -1
		}
	}
	s := c.stream[i]
	b.last[s] = max(b.last[s], int32(i))
}

// over reports whether b is used up, whatever the streams do, when step i begins.
func (b *block) over(c *clock, i int) bool {
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

// apart reports whether a and b may be there at the same time.
func apart(c *clock, a, b *block) bool { return !a.over(c, b.first) && !b.over(c, a.first) }

// there reports whether b holds something that is needed when step t runs,
// however the streams run.
func (b *block) there(c *clock, t int) bool {
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

// own is the block of r alone.
func own(c *clock, r *root) *block {
	b := &block{roots: []*root{r}, size: r.size, first: -1, kept: r.kept()}
	if r.maker != nil {
		b.first = r.maker.index
		b.use(c, b.first)
	}
	for _, s := range r.reads {
		b.use(c, s.index)
	}
	return b
}

func scratchOf(c *clock, s *step) *block {
	b := &block{step: s, size: s.scratch, first: s.index}
	b.use(c, s.index)
	return b
}

// dying reports whether s may write over r: it reads it, and all others that
// read it have ended.
func dying(c *clock, r *root, s *step) bool {
	for _, o := range r.reads {
		if o != s && !c.before(o.index, s.index) {
			return false
		}
	}
	return slices.Contains(r.reads, s)
}

// blocks is the storage of g's values that are not there throughout, with as
// many written over others as may be, and what the steps need for themselves.
func (g *model) blocks(c *clock) []*block {
	var out []*block
	of := map[*root]*block{}
	for _, s := range g.steps {
		var taken []*root
		for i, r := range s.makes {
			if r.size == 0 {
				continue
			}
			at := slices.IndexFunc(g.over(s, i), func(x *root) bool { return of[x] != nil && !slices.Contains(taken, x) && dying(c, x, s) })
			b := own(c, r)
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
			out = append(out, scratchOf(c, s))
		}
	}
	return out
}

// layoutOf is the problem of placing blocks: which ones are apart, and what is
// there at each step.
func layoutOf(c *clock, bs []*block) *layout {
	l := &layout{apart: make([][]int32, len(bs))}
	for i, b := range bs {
		l.size = append(l.size, b.size)
		l.first = append(l.first, b.first)
		end := len(c.stream)
		if !b.kept {
			end = int(slices.Max(b.last))
		}
		l.length = append(l.length, end-b.first)
		for j, d := range bs[:i] {
			if apart(c, b, d) {
				l.apart[i] = append(l.apart[i], int32(j))
				l.apart[j] = append(l.apart[j], int32(i))
			}
		}
	}
	var before []int32
	for t := range c.stream {
		var here []int32
		for i, b := range bs {
			if b.there(c, t) {
				here = append(here, int32(i))
			}
		}
		switch {
		case subset(here, before):
		case subset(before, here) && len(l.cliques) > 0:
			l.cliques[len(l.cliques)-1] = here
			before = here
		default:
			l.cliques = append(l.cliques, here)
			before = here
		}
	}
	if c.count > 1 {
		for i := range bs {
			l.cliques = append(l.cliques, l.around(i))
		}
	}
	return l
}

// around is blocks that are all apart from each other, block i among them, with
// as many bytes as a simple choice finds: the largest first. Between streams
// more must be apart than is there at one step for certain.
func (l *layout) around(i int) []int32 {
	candidates := slices.Clone(l.apart[i])
	slices.SortStableFunc(candidates, func(a, b int32) int { return cmp.Compare(l.size[b], l.size[a]) })
	clique := []int32{int32(i)}
	for _, j := range candidates {
		all := true
		for _, k := range clique {
			all = all && slices.Contains(l.apart[j], k)
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

// parts cuts l into the sets of blocks that have nothing to do with each other.
func (l *layout) parts() [][]int {
	seen := make([]bool, len(l.size))
	var out [][]int
	for i := range l.size {
		if seen[i] {
			continue
		}
		part := []int{i}
		seen[i] = true
		for k := 0; k < len(part); k++ {
			for _, j := range l.apart[part[k]] {
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

// part is the problem of some of l's blocks.
func (l *layout) part(members []int) *layout {
	now := make([]int32, len(l.size))
	for i := range now {
		now[i] = -1
	}
	p := &layout{apart: make([][]int32, len(members)), base: l.base}
	for k, i := range members {
		now[i] = int32(k)
		p.size = append(p.size, l.size[i])
		p.first = append(p.first, l.first[i])
		p.length = append(p.length, l.length[i])
	}
	for k, i := range members {
		for _, j := range l.apart[i] {
			p.apart[k] = append(p.apart[k], now[j])
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
