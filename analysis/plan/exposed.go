package plan

import (
	"cmp"
	"slices"

	"dmir/analysis/network"
	"dmir/dialect/types"
)

// exposed is how long devices wait in a step for communication that runs beside computation, as it is played: reductions of gradients
// begin when these are made, one after the other, those as one that wait for the network together, parameters are gathered in the order in which they are used, what is done once in a
// step begins when what it needs is there, and the step ends when all is there. Without a pipeline.
func (m *model) exposed(choice []int, l load) float64 {
	if !m.near {
		return 0
	}
	strategy := func(i int) *strategy { return &m.vars[m.ofNode[i]].strategies[choice[m.ofNode[i]]] }
	takes := make([]float64, len(m.nodes))    // with what is exchanged in front of it and waited for
	gathered := make([]float64, len(m.nodes)) // for the arguments that a node is the first to use
	behind := make([][]sending, len(m.nodes))
	for i := range m.links {
		k := &m.links[i]
		t := m.grid.convert(m.values[k.value], m.made(k, choice[k.from]), m.wanted(k, choice[k.to])).time * k.times
		maker := m.values[k.value].node
		switch {
		case t == 0:
		case k.deferred:
			behind[maker] = append(behind[maker], m.sending(k, choice, k.node))
		case k.phase == once && k.node < 0 && m.nodes[maker].phase == once: // the next value of an argument, or a result
			behind[maker] = append(behind[maker], m.sending(k, choice, -1))
		case k.node >= 0:
			again := 1.0
			if k.phase != once {
				again = m.nodes[k.node].again(l.recompute)
			}
			takes[k.node] += t * again
		default:
			takes[maker] += t
		}
	}
	var order, last []int
	for i, n := range m.nodes {
		s, times := strategy(i), m.between(n.layer, n.layer)
		if n.o == nil {
			uses := m.result(n, 0).uses
			switch {
			case s.comm == 0 || len(uses) == 0:
			case !s.again:
				gathered[uses[0].node] += s.comm * times
			case m.grid.single(): // else part.passes have it
				for _, phase := range []phase{forward, backward} {
					if first := m.reads(m.result(n, 0), phase); first >= 0 {
						gathered[first] += s.comm * times
					}
				}
			}
			continue
		}
		takes[i] += (s.time + s.comm) * times
		if n.phase == once {
			last = append(last, i)
			continue
		}
		takes[i] += (s.time + s.comm) * times * (n.again(l.recompute) - 1)
		order = append(order, i)
	}
	clock, net, work := 0.0, 0.0, 0.0
	ready := make([]float64, len(m.nodes))
	var bucket []*sending // what the network begins next, or began last, as one
	begins := 0.0         // that
	send := func(i int, began float64) {
		for n := range behind[i] {
			x := &behind[i][n]
			// Of several layers the first ones' is under way while the others compute.
			k := m.between(m.nodes[i].layer, m.nodes[i].layer)
			there := clock - (clock-began)*(k-1)/k
			if len(bucket) > 0 && there <= begins && x.joins(bucket[0]) {
				net += x.time - m.saved(bucket[len(bucket)-1], x)
				bucket = append(bucket, x)
			} else {
				begins = max(net, there)
				net = begins + x.time
				bucket = append(bucket[:0], x)
			}
			for _, y := range bucket {
				if y.to >= 0 {
					ready[y.to] = max(ready[y.to], net)
				}
			}
		}
	}
	run := func(i int) {
		if t := gathered[i]; t > 0 {
			net += t
			ready[i] = max(ready[i], net)
		}
		clock = max(clock, ready[i])
		began := clock
		clock += takes[i]
		work += takes[i]
		send(i, began)
	}
	var waiting []int // gradients of parameters whose operands are under way, the one that comes first in front
	for _, i := range order {
		if m.aside(m.nodes[i]) && ready[i] > clock {
			waiting = append(waiting, i)
			continue
		}
		run(i)
		for len(waiting) > 0 && ready[waiting[0]] <= clock {
			run(waiting[0])
			waiting = waiting[1:]
		}
	}
	for _, i := range waiting {
		run(i)
	}
	// Ops of updates need others of them.
	for _, i := range last {
		for k := range m.nodes[i].o.Operands {
			if v := m.operand(m.nodes[i], k); v != nil && m.nodes[v.node].phase == once {
				ready[i] = max(ready[i], ready[v.node])
			}
		}
	}
	slices.SortStableFunc(last, func(a, b int) int { return cmp.Compare(ready[a], ready[b]) })
	for _, i := range last {
		run(i)
	}
	return max(clock, net) - work
}

// A sending is what a node makes devices exchange behind it, for another node or, negative, for the end of the step.
type sending struct {
	conversion
	time  float64 // of all layers that it stands for
	times float64 // how many
	elem  types.Elem
	to    int
}

func (m *model) sending(k *link, choice []int, to int) sending {
	v := m.values[k.value]
	c := m.grid.convert(v, m.made(k, choice[k.from]), m.wanted(k, choice[k.to]))
	return sending{conversion: c, time: c.time * k.times, times: k.times, elem: v.v.Elem(), to: to}
}

// joins reports whether devices can exchange both as one, as the compiler's buckets.
func (x *sending) joins(y *sending) bool {
	return x.steps == 1 && y.steps == 1 && x.kind == y.kind && x.axes == y.axes && x.elem == y.elem && x.kind != network.AllToAll
}

// saved is how much less x and y take as one, in each layer.
func (m *model) saved(x, y *sending) float64 {
	one := m.grid.collective(x.kind, x.axes, x.bytes+y.bytes)
	return max(0, x.conversion.time+y.conversion.time-one) * min(x.times, y.times)
}
