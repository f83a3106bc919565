package network

import (
	"math/bits"

	"dmir/analysis/machine"
)

// timed is a way to do a collective.
type timed struct {
	seconds   float64
	algorithm Algorithm
	link      string  // the slowest
	most      float64 // what link takes
}

// slowest notes what one of several links takes.
func (t *timed) slowest(s *stage, seconds float64) {
	if t.link == "" || seconds > t.most {
		t.link, t.most = s.link.Title, seconds
	}
}

// add adds what one of several links takes, one after the other.
func (t *timed) add(s *stage, seconds float64) {
	t.seconds += seconds
	t.slowest(s, seconds)
}

// all is the stage's time for bytes that all of a group's devices in a part send together.
func (s *stage) all(bytes float64) float64 {
	return bytes / (s.link.Reached() * float64(s.inside))
}

// ring is the time of so many rounds of a ring.
func (l *layout) ring(rounds int, bytes float64) timed {
	t := timed{algorithm: Ring}
	for i := range l.stages {
		s := &l.stages[i]
		t.slowest(s, s.link.Latency+s.all(bytes/float64(l.p)))
	}
	t.seconds = float64(rounds*(l.p-1)) * t.most
	return t
}

// tree is the time of passing a double binary tree so many times.
func (l *layout) tree(passes int, bytes float64) timed {
	t := timed{algorithm: Tree}
	latency, transfer := 0.0, 0.0
	for i := range l.stages {
		s := &l.stages[i]
		up, part := float64(s.steps())*s.link.Latency, s.all(bytes)
		latency += up
		transfer = max(transfer, part)
		t.slowest(s, up+part)
	}
	t.seconds = float64(passes) * (latency + transfer)
	return t
}

// steps are those from the root of a tree to its last device: NCCL's devices in one node are a chain.
func (s *stage) steps() int {
	if s.link.Kind == machine.NVLink || s.link.Kind == machine.PCIe {
		return s.parts - 1
	}
	return depth(s.parts)
}

// depth is that of a binary tree with n nodes in which each node has the number of steps
// to it: ⌈log₂ n⌉.
func depth(n int) int { return bits.Len(uint(n - 1)) }

// hierarchical is the time of so many rounds of rings on one link after the other, in
// uniform groups.
func (l *layout) hierarchical(rounds int, bytes float64) timed {
	t := timed{algorithm: Hierarchical}
	for i := range l.stages {
		s := &l.stages[i]
		steps := float64(rounds * (s.parts - 1))
		t.add(s, steps*(s.link.Latency+s.all(bytes/float64(s.parts))))
	}
	return t
}

// pairwise is the time of an exchange with each other device in turn.
func (l *layout) pairwise(bytes float64) timed {
	t := timed{algorithm: Pairwise}
	for i := range l.stages {
		s := &l.stages[i]
		t.add(s, float64(s.partners)*(s.link.Latency+bytes/float64(l.p)/s.link.Reached()))
	}
	return t
}

// direct is the time of one transfer.
func (l *layout) direct(bytes float64) timed {
	t := timed{algorithm: Direct}
	for i := range l.stages {
		s := &l.stages[i]
		t.slowest(s, s.link.Latency+bytes/s.link.Reached())
	}
	t.seconds = t.most
	return t
}
