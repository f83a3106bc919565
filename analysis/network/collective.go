package network

import (
	"fmt"
	"math"
	"math/bits"
)

// A Kind is a kind of collective. The bytes of a collective are those of one device:
type Kind int

const (
	AllReduce     Kind = iota // the buffer that is reduced
	ReduceScatter             // the operand, of which a device keeps one part of p
	AllGather                 // the result, of which a device has one part of p
	AllToAll                  // the operand, of which a device keeps one part of p
	Permute                   // the buffer that is sent to another device
	Send                      // the buffer that one device of the group sends and another one receives
	Broadcast                 // the buffer of one device, which all others receive
)

var kinds = []string{"all-reduce", "reduce-scatter", "all-gather", "all-to-all", "permute", "send", "broadcast"}

func (k Kind) String() string {
	if k < 0 || int(k) >= len(kinds) {
		return fmt.Sprintf("Kind(%d)", int(k))
	}
	return kinds[k]
}

// Sent is the bytes that the p devices of a group send together, whatever the algorithm.
// ok is false if 64 bits do not count them, or for sizes that are negative.
func (k Kind) Sent(bytes int64, p int) (sent int64, ok bool) {
	if bytes < 0 || p < 1 {
		return 0, false
	}
	if p == 1 {
		return 0, true
	}
	times := uint64(p - 1) // all but the device's own part, on each of p devices
	switch k {
	case AllReduce:
		times *= 2
	case Permute:
		times = uint64(p)
	case Send:
		times = 1
	}
	high, low := bits.Mul64(uint64(bytes), times)
	return int64(low), high == 0 && low <= math.MaxInt64
}

// An Algorithm is how a collective is done; the package's comment has their formulas.
type Algorithm string

const (
	None         Algorithm = "none" // there is one device
	Ring         Algorithm = "ring"
	Tree         Algorithm = "tree"
	Hierarchical Algorithm = "hierarchical"
	Pairwise     Algorithm = "pairwise"
	Direct       Algorithm = "direct"
	Switch       Algorithm = "switch"
)

// An Estimate is what a collective is predicted to take.
type Estimate struct {
	Time      float64 // s
	Algorithm Algorithm
	Link      string // title of the link that takes most of the time; "" where there is one device
	Devices   int    // of a group
	Sent      int64  // bytes that a device sends, the mean of the group rounded up
	GroupSent int64  // bytes that all devices of a group send
}

// Estimate predicts a collective of some bytes, as Kind defines them, in all groups on the
// given axes at once.
func (m *Mesh) Estimate(kind Kind, bytes int64, axes ...string) (Estimate, error) {
	if kind < 0 || int(kind) >= len(kinds) {
		return Estimate{}, fmt.Errorf("%v is no kind of collective", kind)
	}
	if bytes < 0 {
		return Estimate{}, fmt.Errorf("%v of %d bytes: a size is 0 or more", kind, bytes)
	}
	l, err := m.layout(axes)
	if err != nil {
		return Estimate{}, fmt.Errorf("%v: %w", kind, err)
	}
	sent, ok := kind.Sent(bytes, l.p)
	if !ok {
		return Estimate{}, fmt.Errorf("%v of %d bytes on %d devices sends more bytes than 64 bits count", kind, bytes, l.p)
	}
	t := l.fastest(kind, float64(bytes))
	each := sent / int64(l.p)
	if sent%int64(l.p) > 0 {
		each++
	}
	return Estimate{Time: t.seconds, Algorithm: t.algorithm, Link: t.link, Devices: l.p, Sent: each, GroupSent: sent}, nil
}

// fastest is the best way to do a collective; of equal ones the first.
func (l *layout) fastest(kind Kind, bytes float64) timed {
	if l.p == 1 {
		return timed{algorithm: None}
	}
	ways := l.ways(kind, bytes)
	best := ways[0]
	for _, w := range ways[1:] {
		if w.seconds < best.seconds {
			best = w
		}
	}
	return best
}

// ways are the ways to do a collective in groups of several devices.
func (l *layout) ways(kind Kind, bytes float64) []timed {
	var all []timed
	for _, p := range l.protocols() {
		u, tree := l.under(p, false), l.under(p, true)
		add := func(base float64, ways ...timed) {
			for _, w := range ways {
				w.seconds += l.begins(p, base)
				all = append(all, w)
			}
		}
		switch kind {
		case AllReduce:
			add(p.ring, u.rings(2, bytes)...)
			add(p.tree, tree.tree(2, bytes))
		case ReduceScatter, AllGather:
			add(p.ring, u.rings(1, bytes)...)
		case AllToAll:
			add(p.ring, u.pairwise(bytes))
		case Broadcast:
			add(p.tree, tree.tree(1, bytes))
		default:
			add(p.ring, u.direct(bytes))
		}
	}
	if t, ok := l.inSwitches(bytes); ok && kind == AllReduce {
		all = append(all, t)
	}
	return all
}

// rings are the ways of rings: one, and one on each link where that differs and can be.
func (l *layout) rings(rounds int, bytes float64) []timed {
	ways := []timed{l.ring(rounds, bytes)}
	if l.uniform && len(l.stages) > 1 {
		ways = append(ways, l.hierarchical(rounds, bytes))
	}
	return ways
}
