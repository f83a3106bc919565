package memory

import "cmp"

// chunk is a free stretch of memory.
type chunk struct{ size, at int64 }

func (c chunk) compare(d chunk) int {
	return cmp.Or(cmp.Compare(c.size, d.size), cmp.Compare(c.at, d.at))
}

// tree is an ordered set of chunks: a treap whose priorities come from the
// chunks themselves, so that the same chunks make the same tree.
type tree struct{ root *node }

type node struct {
	chunk
	priority    uint64
	left, right *node
}

// ceiling is the smallest chunk of n bytes or more; the lowest of those of one size.
func (t *tree) ceiling(n int64) (c chunk, ok bool) {
	for at := t.root; at != nil; {
		if at.size >= n {
			c, ok = at.chunk, true
			at = at.left
		} else {
			at = at.right
		}
	}
	return c, ok
}

func (t *tree) insert(c chunk) {
	less, more := split(t.root, c)
	t.root = join(join(less, &node{chunk: c, priority: scramble(c)}), more)
}

func (t *tree) remove(c chunk) {
	link := &t.root
	for *link != nil {
		switch n := *link; n.compare(c) {
		case 0:
			*link = join(n.left, n.right)
			return
		case 1:
			link = &n.left
		default:
			link = &n.right
		}
	}
}

// split parts n into what is less than c and the rest.
func split(n *node, c chunk) (less, more *node) {
	if n == nil {
		return nil, nil
	}
	if n.compare(c) < 0 {
		n.right, more = split(n.right, c)
		return n, more
	}
	less, n.left = split(n.left, c)
	return less, n
}

// join is the opposite of split: all of less lies before more.
func join(less, more *node) *node {
	switch {
	case less == nil:
		return more
	case more == nil:
		return less
	case less.priority > more.priority:
		less.right = join(less.right, more)
		return less
	}
	more.left = join(less, more.left)
	return more
}

// scramble spreads the bits of c (the finalizer of SplitMix64: Steele, Lea,
// Flood, "Fast splittable pseudorandom number generators", 2014).
func scramble(c chunk) uint64 {
	x := uint64(c.size)*0x9e3779b97f4a7c15 ^ uint64(c.at)
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
