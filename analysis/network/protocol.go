package network

import (
	"math/bits"

	"dmir/analysis/machine"
)

// A protocol is one of the ways in which NCCL hands data from one device to the next.
type protocol struct {
	ring, tree float64          // s that a collective takes to begin
	links      map[string]hands // by kind
}

// hands is what a protocol makes of a link.
type hands struct {
	ring, tree float64 // latency of a step, as part of that of a ring of LL128, which machines state
	part       float64 // of the bandwidth that collectives reach
}

// protocols are LL, LL128 and Simple, and plain where a library is not known. NCCL 2.30, src/graph/tuning.cc: base
// latencies of ring and tree (6.6, 14.0 and 8.4 µs; 6.8, 14.0 and 8.4), of a step of a ring over NVLink (0.6, 1.9 and 3.4), PCI
// (1.0, 2.5 and 5.7) and the network (2.7, 4.0 and 14.0), of a tree (0.6, 1.25 and 4.0; 1.0, 1.9 and 4.0; 5.0, 8.5 and 14); LL has at most 141 GB/s on 370 of a Hopper's NVLink and 45
// for a node of 400 GB/s, LL128 0.92 of the bandwidth.
var (
	plain     = []protocol{{}}
	protocols = []protocol{
		{6.6e-6, 6.8e-6, map[string]hands{machine.NVLink: {0.6 / 1.9, 0.6 / 1.9, 141.0 / 370}, machine.PCIe: {1 / 2.5, 1 / 2.5, 0.5}, machine.Adapter: {2.7 / 4, 5.0 / 4, 45.0 / 400}}},
		{14e-6, 14e-6, map[string]hands{machine.NVLink: {1, 1.25 / 1.9, 0.92}, machine.PCIe: {1, 1.9 / 2.5, 0.92}, machine.Adapter: {1, 8.5 / 4, 0.92}}},
		{8.4e-6, 8.4e-6, map[string]hands{machine.NVLink: {3.4 / 1.9, 4.0 / 1.9, 1}, machine.PCIe: {5.7 / 2.5, 4.0 / 2.5, 1}, machine.Adapter: {14.0 / 4, 14.0 / 4, 1}}},
	}
)

// The latencies of a reduction by the switches of NVLink, fitted to half of the published ones of docs/TIMES.md (the same file
// has 25 µs), and of one step of the tree that joins them across nodes (the same file: NVLSTree).
const (
	switchLatency = 80e-6
	joinLatency   = 20.9e-6
)

// adapterLatency is what a collective takes besides where it crosses adapters, whose transfers threads of the processor post: fitted to
// the same half.
const adapterLatency = 14e-6

// begins is what a collective takes to begin with protocol p on l, whose base is that of a ring or a tree.
func (l *layout) begins(p protocol, base float64) float64 {
	for i := range l.stages {
		if p.links != nil && l.stages[i].link.Kind == machine.Adapter {
			return base + adapterLatency
		}
	}
	return base
}

// protocols are those that collectives on l have.
func (l *layout) protocols() []protocol {
	for i := range l.stages {
		if l.stages[i].link.Kind == "" {
			return plain
		}
	}
	return protocols
}

// under is l with the links as p has them in rings, or in trees.
func (l *layout) under(p protocol, tree bool) *layout {
	if p.links == nil {
		return l
	}
	out := &layout{p: l.p, uniform: l.uniform, stages: make([]stage, len(l.stages))}
	for i, s := range l.stages {
		link := *s.link
		h := p.links[link.Kind]
		if tree {
			link.Latency *= h.tree
		} else {
			link.Latency *= h.ring
		}
		link.Bandwidth, link.Reach = link.Reached()*h.part, 0
		s.link = &link
		out.stages[i] = s
	}
	return out
}

// inSwitches is the time of an all-reduce that switches do between devices, and a tree across nodes, in a pipeline; ok is
// false where the switch reduces nothing.
func (l *layout) inSwitches(bytes float64) (t timed, ok bool) {
	if !l.uniform || len(l.stages) == 0 || l.stages[0].link.Reduces == 0 || l.stages[0].parts < 2 {
		return t, false
	}
	t.algorithm = Switch
	inside := &l.stages[0]
	latency := switchLatency
	t.slowest(inside, bytes/inside.link.Reduces)
	for i := range l.stages[1:] {
		s := &l.stages[i+1]
		latency += 2 * float64(bits.Len(uint(s.parts-1))) * joinLatency
		t.slowest(s, 2*float64(s.parts-1)/float64(s.parts)*bytes/(s.link.Reached()*float64(s.inside)))
	}
	t.seconds = latency + t.most
	return t, true
}
