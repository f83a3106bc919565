package schedule

import (
	"container/heap"
	"context"
	"encoding/binary"
)

// exact searches for an order of minimum peak, below the peak given. Proven
// reports that the search was complete: then no order is better than the one
// found or, if there is none, than the given peak.
//
// It is a shortest-path search over sets of tasks that have run, where the
// length of a path is its peak. Live memory is a function of the set, and a
// task that fits under the current peak and leaves no more memory live than
// before may run at once: moved forward in any order, it raises the memory of
// no step. That leaves few sets even of graphs with hundreds of tasks.
func (p *problem) exact(ctx context.Context, given int64, limit int) (order []int, proven bool) {
	n := len(p.tasks)
	s := &search{problem: p, behind: p.behind(), readers: p.readers(), best: map[string]int64{}, bound: given}
	s.work = n + len(p.size)
	for i := range p.tasks {
		s.work += len(p.tasks[i].reads) + len(p.tasks[i].after)
	}
	first := &node{set: make([]uint64, (n+63)/64), live: p.base, peak: p.least()}
	if first.peak >= given {
		return nil, true
	}
	s.push(s.close(first))
	for s.queue.Len() > 0 {
		at := heap.Pop(&s.queue).(*node)
		if at.ran == n {
			return at.order(n), true
		}
		if s.best[key(at.set)] < at.peak {
			continue
		}
		if limit -= s.work; limit < 0 || ctx.Err() != nil {
			return nil, false
		}
		limit -= s.expand(at)
	}
	return nil, true
}

// node is a set of tasks that have run.
type node struct {
	set    []uint64
	live   int64
	peak   int64 // so far
	ran    int   // tasks in the set
	seq    int
	parent *node
	did    []int // tasks since the parent
}

func (d *node) has(i int) bool { return d.set[i/64]>>(i%64)&1 != 0 }

func (d *node) order(n int) []int {
	out := make([]int, n)
	at := n
	for ; d != nil; d = d.parent {
		at -= len(d.did)
		copy(out[at:], d.did)
	}
	return out
}

func key(set []uint64) string {
	b := make([]byte, 0, 8*len(set))
	for _, w := range set {
		b = binary.LittleEndian.AppendUint64(b, w)
	}
	return string(b)
}

type search struct {
	*problem
	behind  [][]int
	readers []int32
	best    map[string]int64 // lowest peak with which a set was reached
	queue   queue
	bound   int64 // only peaks below it are searched
	seq     int
	work    int // of expanding a node
}

// state is the memory after the tasks of d.
func (s *search) state(d *node) *state {
	m := &state{s.problem, append([]int32(nil), s.readers...), d.live}
	for i := range s.tasks {
		if d.has(i) {
			for _, x := range s.tasks[i].reads {
				m.left[x]--
			}
		}
	}
	return m
}

// ready reports whether task i can run next.
func (s *search) ready(d *node, i int) bool {
	if d.has(i) {
		return false
	}
	for _, j := range s.tasks[i].after {
		if !d.has(j) {
			return false
		}
	}
	return true
}

// expand queues the successors of d and returns the work.
func (s *search) expand(d *node) (work int) {
	m := s.state(d)
	for i := range s.tasks {
		if !s.ready(d, i) {
			continue
		}
		peak := max(d.peak, m.held(i))
		if peak >= s.bound {
			continue
		}
		next := &node{set: append([]uint64(nil), d.set...), live: d.live + m.gain(i), peak: peak, ran: d.ran + 1, parent: d, did: []int{i}}
		next.set[i/64] |= 1 << (i % 64)
		s.push(s.close(next))
		work += s.work
	}
	return work
}

// close runs every task that raises no memory.
func (s *search) close(d *node) *node {
	m := s.state(d)
	for again := true; again; {
		again = false
		for i := range s.tasks {
			if !s.ready(d, i) || m.held(i) > d.peak || m.gain(i) > 0 {
				continue
			}
			m.run(i)
			d.set[i/64] |= 1 << (i % 64)
			d.live = m.live
			d.ran++
			d.did = append(d.did, i)
			again = true
		}
	}
	return d
}

func (s *search) push(d *node) {
	k := key(d.set)
	if before, seen := s.best[k]; seen && before <= d.peak {
		return
	}
	s.best[k] = d.peak
	s.seq++
	d.seq = s.seq
	heap.Push(&s.queue, d)
}

// queue is ordered by peak, then by the number of tasks done, then first in,
// first out.
type queue []*node

func (q queue) Len() int { return len(q) }
func (q queue) Less(i, j int) bool {
	a, b := q[i], q[j]
	switch {
	case a.peak != b.peak:
		return a.peak < b.peak
	case a.ran != b.ran:
		return a.ran > b.ran
	}
	return a.seq < b.seq
}
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)   { *q = append(*q, x.(*node)) }
func (q *queue) Pop() any {
	old := *q
	d := old[len(old)-1]
	*q = old[:len(old)-1]
	return d
}
