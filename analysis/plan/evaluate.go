package plan

import (
	"math"
	"slices"

	"dmir/dialect/op"
	"dmir/dialect/types"
)

// A part is what a device does for the nodes with one number of a layer: for one micro-batch, and once
// in a step.
type part struct {
	forward, backward, weight float64 // s; weight is a part of backward
	compute                   float64 // s of a micro-batch without communication
	once                      float64 // s
	onceCompute               float64
	deferred                  float64          // s of communication that only the end of the step, or its beginning, waits for
	again                     float64          // s in which a micro-batch gathers parameters for its passes, beside its computation
	sent                      [maxAxes]float64 // bytes for each micro-batch
	sentOnce                  [maxAxes]float64

	parameters, states, gathered, gradients float64 // bytes
	kept                                    float64 // bytes of a micro-batch's activations
	working                                 float64 // bytes while one op or one layer runs
	boundary                                float64 // bytes that go to the next layer
}

func (p *part) add(q *part, times float64) {
	p.forward += q.forward * times
	p.backward += q.backward * times
	p.weight += q.weight * times
	p.compute += q.compute * times
	p.once += q.once * times
	p.onceCompute += q.onceCompute * times
	p.deferred += q.deferred * times
	p.again += q.again * times
	for a := range p.sent {
		p.sent[a] += q.sent[a] * times
		p.sentOnce[a] += q.sentOnce[a] * times
	}
	p.parameters += q.parameters * times
	p.states += q.states * times
	p.gathered += q.gathered * times
	p.gradients += q.gradients * times
	p.kept += q.kept * times
	p.working = max(p.working, q.working)
	p.boundary = q.boundary
}

// parts are those of each number of a layer under the choices of the model's variables.
func (m *model) parts(choice []int, l load) []part {
	out := make([]part, m.layerCount())
	freed := make([]freed, len(out))
	for i, n := range m.nodes {
		x := &m.vars[m.ofNode[i]]
		s := &x.strategies[choice[m.ofNode[i]]]
		p := &out[n.layer]
		if n.o == nil {
			m.argumentPart(p, n, s)
			if s.again {
				freed[n.layer].add(m.grid.piece(m.result(n, 0), s.out[0]))
			}
			continue
		}
		again := n.again(l.recompute)
		t := s.time + s.comm
		switch n.phase {
		case forward:
			p.forward += t
			p.backward += t * (again - 1)
		case backward:
			p.backward += t
			if m.ofWeights(n) {
				p.weight += t
			}
		case once:
			p.once += t
			p.onceCompute += s.time
			p.gradients += m.reduced(n, s)
			m.tally(&p.sentOnce, s.sent, 1)
			continue
		}
		p.compute += s.time * again
		m.tally(&p.sent, s.sent, again)
		for k := range n.o.Results {
			if v := m.result(n, k); v != nil && m.ofValue[m.of[v.v]] < 0 {
				m.keep(p, v, s.out[k], l)
			}
		}
		p.working = max(p.working, m.working(n, s))
	}
	for x, at := range m.ofValue {
		if at >= 0 {
			v := m.values[x]
			if n := m.nodes[v.node]; n.o != nil {
				m.keep(&out[n.layer], v, m.vars[at].layouts[choice[at]], l)
			}
		}
	}
	for i := range m.links {
		k := &m.links[i]
		c := m.grid.convert(m.values[k.value], m.made(k, choice[k.from]), m.wanted(k, choice[k.to]))
		p := &out[k.layer]
		again := 1.0
		if k.node >= 0 {
			again = m.nodes[k.node].again(l.recompute)
		}
		switch {
		case k.deferred:
			p.deferred += c.time
			m.tally(&p.sentOnce, c.sent, 1)
		case k.phase == once:
			p.once += c.time
			m.tally(&p.sentOnce, c.sent, 1)
		default:
			if k.phase == forward {
				p.forward += c.time
				p.backward += c.time * (again - 1)
			} else {
				p.backward += c.time
			}
			m.tally(&p.sent, c.sent, again)
		}
	}
	for i := range out {
		out[i].working += freed[i].held(l.recompute)
	}
	if l.recompute == Full {
		// The values of one unit are there while its backward pass runs.
		most := make([]float64, len(out))
		for unit, bytes := range m.everything(choice) {
			most[unit.layer] = max(most[unit.layer], bytes)
		}
		for ℓ := range out {
			out[ℓ].working += most[ℓ]
		}
	}
	return out
}

// freed are gathered parameters of a layer that are freed behind each pass.
type freed struct{ all, most float64 } // bytes

func (f *freed) add(bytes float64) {
	f.all += bytes
	f.most = max(f.most, bytes)
}

// held is what is there of them at a time, with one that is gathered ahead: one, or, where the layer is computed again in front of
// its backward pass, all.
func (f *freed) held(recompute string) float64 {
	if recompute == Full {
		return f.all + f.most
	}
	return min(f.all, 2*f.most)
}

func (m *model) tally(into *[maxAxes]float64, sent [maxAxes]float64, times float64) {
	for a := range into {
		into[a] += sent[a] * times
	}
}

// ofWeights reports whether a backward op serves gradients of parameters alone.
func (g *graph) ofWeights(n *node) bool {
	for k := range n.o.Results {
		v := g.result(n, k)
		if v == nil || v.micro {
			return false
		}
	}
	return isContraction(n) && !g.looped()
}

func (m *model) argumentPart(p *part, n *node, s *strategy) {
	v := m.result(n, 0)
	stored := m.grid.piece(v, s.stored)
	if v.micro {
		stored *= float64(m.grid.micro)
	}
	switch {
	case m.wrt[v.v] || v.next >= 0 && m.usedBySamples(v):
		p.parameters += stored
	case v.next >= 0:
		p.states += stored
	default:
		p.gathered += stored
	}
	p.gathered += s.held - stored
	if !s.again {
		p.deferred += s.comm
		m.tally(&p.sentOnce, s.sent, 1)
		return
	}
	passes, into := float64(m.passes(v)), &p.again
	if m.grid.single() {
		into = &p.deferred
	}
	*into += passes * s.comm
	m.tally(&p.sent, s.sent, passes)
}

// usedBySamples reports whether a micro-batch is computed with the argument.
func (g *graph) usedBySamples(v *value) bool {
	for _, u := range v.uses {
		if g.nodes[u.node].micro {
			return true
		}
	}
	return false
}

// keep adds what a micro-batch keeps of v in layout l for its backward pass, and the gradients of parameters.
func (m *model) keep(p *part, v *value, lay layout, l load) {
	n := m.nodes[v.node]
	bytes := m.grid.piece(v, lay)
	switch {
	case m.keeps(v, l.recompute):
		p.kept += bytes
	case n.micro && !v.micro && len(v.shape) > 0 && !m.reducedAtOnce(v):
		p.gradients += bytes
	}
	if m.crosses(v) {
		p.boundary += bytes
	}
}

// A unit is what full recomputation computes again together, and the layer that it counts to.
type unit struct{ number, layer int }

// everything is what a micro-batch would keep of each unit without recomputation.
func (m *model) everything(choice []int) map[unit]float64 {
	out := map[unit]float64{}
	for x, v := range m.values {
		n := m.nodes[v.node]
		if n.unit < 0 || !v.saved {
			continue
		}
		var lay layout
		if at := m.ofValue[x]; at >= 0 {
			lay = m.vars[at].layouts[choice[at]]
		} else {
			lay = m.vars[m.ofNode[v.node]].strategies[choice[m.ofNode[v.node]]].out[v.index]
		}
		out[unit{n.unit, n.layer}] += m.grid.piece(v, lay)
	}
	return out
}

// A staging is a pipeline's stages: how many layers each has; the first has also what stands before the layers,
// the last what stands behind them.
type staging struct {
	parts  []part // of each stage
	layers []int
	first  []int // number in the text of each stage's first layer
}

// stage cuts the layers into n stages, each within limit bytes: into equal ones where that is possible, and what stands before and behind
// the layers takes less than one of them; else so that the slowest one is as fast as possible, in the way of Alpa's dynamic program (Zheng et al., OSDI 2022, section 5): under a bound of the slowest
// stage, which is searched, stages take as many layers as they can, from the last stage on, since the first ones
// hold the activations of more micro-batches. ok is false if they do not fit.
func (m *model) stage(parts []part, n int, live func(stage int) float64, limit float64) (st staging, ok bool) {
	if m.layers == nil {
		var all part
		for i := range parts {
			all.add(&parts[i], 1)
		}
		if n > 1 {
			return st, false
		}
		return staging{parts: []part{all}, layers: []int{0}, first: []int{0}}, all.bytes(live(0)).total() <= limit
	}
	count := m.layers.count
	if n > count {
		return st, false
	}
	if !m.topHeavy(m.grid, m.bandwidth) {
		return m.evenly(parts, n, live, limit)
	}
	try := func(bound float64) (staging, bool) {
		s := staging{parts: make([]part, n), layers: make([]int, n), first: make([]int, n)}
		next := count - 1 // the last layer that has no stage yet
		for k := n - 1; k >= 0; k-- {
			var p part
			if k == n-1 {
				p.add(&parts[len(parts)-1], 1)
			}
			for next >= 0 {
				if next < k { // a layer for each stage before
					break
				}
				q := p
				q.add(&parts[m.numberOf(next)], 1)
				if k == 0 && next == 0 {
					q.add(&parts[0], 1)
				}
				if s.layers[k] > 0 && (q.forward+q.backward > bound || q.bytes(live(k)).total() > limit) {
					break
				}
				p = q
				s.layers[k]++
				next--
			}
			s.parts[k] = p
			s.first[k] = next + 1
			if p.forward+p.backward > bound || p.bytes(live(k)).total() > limit {
				return s, false
			}
		}
		return s, next < 0
	}
	var total part
	for i := range count {
		total.add(&parts[m.numberOf(i)], 1)
	}
	total.add(&parts[0], 1)
	total.add(&parts[len(parts)-1], 1)
	low, high := (total.forward+total.backward)/float64(n), total.forward+total.backward
	st, ok = try(high * (1 + 1e-9))
	if !ok {
		return st, false
	}
	for range 40 {
		mid := (low + high) / 2
		if s, good := try(mid); good {
			st, high = s, mid
		} else {
			low = mid
		}
		if high-low < 1e-6*high {
			break
		}
	}
	return st, true
}

// numberOf is the number of layer i of the text, from 0 on.
func (g *graph) numberOf(i int) int {
	switch count := g.layers.count; {
	case i == 0:
		return 1
	case i == count-1:
		return g.layers.left
	case count == g.layers.left:
		return 1 + i
	}
	return 2
}

// evenLayers is how many layers each of n stages has where they are as equal as they can be: of a loop all have equally many, but for the last
// one, which may have fewer; of other layers, where they do not divide into n, the last stage and the first ones have one less than those between.
// It is nil where a loop has no such stages.
func (g *graph) evenLayers(n int) []int {
	count := g.layers.count
	if g.looped() {
		if !op.Stageable(count, n) {
			return nil
		}
		each := slices.Repeat([]int{op.StageLayers(count, n)}, n)
		each[n-1] = count - (n-1)*each[0]
		return each
	}
	each := slices.Repeat([]int{count / n}, n)
	for k := range count % n {
		each[n-2-k]++
	}
	return each
}

// evenly is the stages of evenLayers; ok is false where there are none, or one does not fit.
func (g *graph) evenly(parts []part, n int, live func(stage int) float64, limit float64) (st staging, ok bool) {
	layers := g.evenLayers(n)
	if layers == nil {
		return st, false
	}
	st, ok = staging{parts: make([]part, n), layers: layers, first: make([]int, n)}, true
	next := g.layers.count
	for k := n - 1; k >= 0; k-- {
		p := &st.parts[k]
		if k == n-1 {
			p.add(&parts[len(parts)-1], 1)
		}
		for range layers[k] {
			next--
			p.add(&parts[g.numberOf(next)], 1)
		}
		if k == 0 {
			p.add(&parts[0], 1)
		}
		st.first[k] = next
		ok = ok && p.bytes(live(k)).total() <= limit
	}
	return st, ok
}

// bytes are what a device of the stage holds with the activations of so many micro-batches.
func (p *part) bytes(live float64) Memory {
	x := Memory{
		Parameters:  int64(p.parameters + p.gathered),
		Gradients:   int64(p.gradients),
		States:      int64(p.states),
		Activations: int64(p.kept * live),
		Working:     int64(p.working),
	}
	x.Total = int64(x.total())
	return x
}

func (x Memory) total() float64 {
	return float64(x.Parameters + x.Gradients + x.States + x.Activations + x.Working)
}

// transfer is how long it takes to send what crosses to the next stage.
func (m *model) transfer(p *part) float64 {
	if m.grid.pipe <= 1 {
		return 0
	}
	return m.grid.sending(p.boundary)
}

// exposed is the communication of a stage that the computation of one micro-batch does not hide, of which it may hide a part.
func (p *part) exposed(hidden float64) float64 {
	return (1-hidden)*p.deferred + max(0, hidden*p.deferred-p.compute)
}

// passes are the times of a micro-batch's passes, each with half of what computation does not hide of the gathering of parameters for
// them.
func (p *part) passes(hidden float64) (forward, backward float64) {
	gathering := ((1-hidden)*p.again + max(0, hidden*p.again-p.compute)) / 2
	return p.forward + gathering, p.backward + gathering
}

// peak is the rate, in FLOP/s, of the units that do most of the step's contractions.
func (g *graph) elem() types.Elem {
	work := map[types.Elem]float64{}
	best := types.InvalidElem
	for _, n := range g.nodes {
		if isContraction(n) {
			e := n.o.Operands[0].Elem()
			work[e] += n.compute
			if best == types.InvalidElem || work[e] > work[best] {
				best = e
			}
		}
	}
	return best
}

func ceil(a, b int) int { return int(math.Ceil(float64(a) / float64(b))) }
