package plan

import (
	"math"
	"slices"

	"dmir/analysis/network"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// A strategy is how a node is divided: what each axis divides, and the layouts that follow.
type strategy struct {
	factors [maxAxes]int8 // of the op; whole: none; partial: operands of a linear set stay partial
	set     int           // of Linear, where an axis is partial
	in, out []layout      // of operands and results; a result's layout is that of an argument in which it is used
	stored  layout        // of an argument
	parts   float64       // among which the computation is divided
	traffic float64       // bytes that cross memory
	time    float64       // s: computation, memory and launch
	comm    float64       // s: of what devices exchange inside the op, or to gather an argument
	sent    [maxAxes]float64
	held    float64 // bytes of an argument that stay for the step: as it is stored, and as it is used unless that is freed
	again   bool    // an argument is gathered for the forward and for the backward pass of each micro-batch, and freed in between
}

// undivided reports whether s, a strategy of n, divides nothing over any axis.
func (s *strategy) undivided(n *node) bool {
	if n.o == nil {
		return s.stored == allWhole
	}
	return s.factors == [maxAxes]int8{whole, whole, whole}
}

// strategies are all ways to divide n on the grid.
func (g *graph) strategies(n *node, gr *grid, bandwidth float64) []strategy {
	if n.o == nil {
		return g.argument(n, gr)
	}
	options := g.options(n, gr)
	var out []strategy
	choice := strategy{factors: [maxAxes]int8{whole, whole, whole}}
	var each func(a int)
	each = func(a int) {
		if a == len(gr.axes) {
			if s, ok := g.divided(n, gr, choice, bandwidth); ok {
				out = append(out, s)
			}
			return
		}
		for _, f := range options[a] {
			choice.factors[a] = f
			if f != partial {
				each(a + 1)
				continue
			}
			for set := range n.f.Linear {
				if len(n.f.Linear[set]) > 0 {
					choice.set = set
					each(a + 1)
				}
			}
		}
		choice.factors[a] = whole
	}
	each(0)
	return out
}

// options are the factors that each axis may divide.
func (g *graph) options(n *node, gr *grid) [maxAxes][]int8 {
	var out [maxAxes][]int8
	pieces := n.f.Pieces()
	for a, axis := range gr.axes {
		out[a] = []int8{whole}
		if axis.Size == 1 {
			continue
		}
		for f, size := range n.f.Sizes {
			k, ok := size.Int()
			if !ok || pieces[f] == op.OnePiece || !g.outermost(n, f) {
				continue
			}
			parts, all := int64(axis.Size), k
			if f == n.batch {
				k, all = gr.rows(k), gr.even(k)
			}
			if pieces[f] == op.EqualPieces && all%parts != 0 || !divides(k, parts) || !g.allowed(n, f, a, gr) {
				continue
			}
			out[a] = append(out[a], int8(f))
		}
		if len(n.f.Linear) > 0 && n.f.Combine == types.Add {
			out[a] = append(out[a], partial)
		}
		if isContraction(n) && n.micro && gr.asked(axis) {
			// An axis that is asked for divides contractions where it can.
			if k := slices.DeleteFunc(slices.Clone(out[a]), func(f int8) bool { return f < 0 }); len(k) > 0 {
				out[a] = k
			}
		}
	}
	return out
}

// asked reports whether a divides what it is called after, as an axis whose size is asked for.
func (gr *grid) asked(a Axis) bool {
	return gr.roles || slices.ContainsFunc(gr.fix.Axes(), func(b Axis) bool { return b.Name == a.Name && b.Size > 0 })
}

// allowed reports whether axis a may divide factor f of n where the sizes of axes are given: a data axis divides
// samples in contractions, a context axis positions of the sequence, an expert axis experts and elsewhere samples, and a
// tensor axis what parameters have, or heads. Where all axes have roles, a data axis divides samples of other ops too.
func (g *graph) allowed(n *node, f, a int, gr *grid) bool {
	if gr.roles && n.micro && gr.axes[a].Name == dataAxis && !isContraction(n) {
		return f == n.batch
	}
	if !isContraction(n) || !n.micro || !gr.asked(gr.axes[a]) {
		return true
	}
	switch role := g.role(n, int8(f)); gr.axes[a].Name {
	case expertAxis:
		experts := g.experts(n)
		return slices.Contains(experts, f) || len(experts) == 0 && role == samplesRole
	case dataAxis:
		return role == samplesRole || role == expertRole
	case contextAxis:
		return role == sequenceRole || role == expertRole
	case tensorAxis:
		return role == tensorRole || role == expertRole || n.phase == backward && role != samplesRole && role != sequenceRole
	}
	return true
}

// experts are the factors of n, a contraction with a parameter or of a parameter's gradient, that all its tensors have: of each
// expert its own samples are multiplied by its own parameters.
func (g *graph) experts(n *node) (out []int) {
	parameter := g.result(n, 0) != nil && !g.result(n, 0).micro
	for k := range n.o.Operands {
		v := g.operand(n, k)
		parameter = parameter || v != nil && !v.micro
	}
	tensors := slices.Concat(n.f.Operands, n.f.Results)
	for f := range n.f.Sizes {
		if parameter && f != n.batch && !slices.ContainsFunc(tensors, func(dims [][]int) bool { return !op.Divided(dims, f) }) {
			out = append(out, f)
		}
	}
	return out
}

// outermost reports whether factor f is the first one of each dimension that has it: else pieces would
// not be contiguous.
func (g *graph) outermost(n *node, f int) bool {
	found := false
	for _, tensors := range [][][][]int{n.f.Operands, n.f.Results} {
		for _, dims := range tensors {
			for _, list := range dims {
				switch k := slices.Index(list, f); {
				case k > 0:
					return false
				case k == 0:
					found = true
				}
			}
		}
	}
	return found
}

// divided completes a strategy: layouts, time, and what it exchanges. ok is false of one that cannot be.
func (g *graph) divided(n *node, gr *grid, s strategy, bandwidth float64) (strategy, bool) {
	s.parts = 1
	var parts [16]int64 // by factor
	linear := -1
	for a, f := range s.factors[:len(gr.axes)] {
		switch {
		case f >= 0:
			s.parts *= float64(gr.axes[a].Size)
			if int(f) < len(parts) {
				parts[f] = max(parts[f], 1) * int64(gr.axes[a].Size)
			}
		case f == partial:
			linear = s.set
		}
	}
	pieces := n.f.Pieces()
	for f, size := range n.f.Sizes {
		if f >= len(parts) || parts[f] <= 1 {
			continue
		}
		k, _ := size.Int()
		p, all := parts[f], k
		if f == n.batch {
			k, all = gr.rows(k), gr.even(k)
		}
		if pieces[f] == op.EqualPieces && all%p != 0 || !divides(k, p) {
			return s, false
		}
	}
	s.in = make([]layout, len(n.o.Operands))
	s.out = make([]layout, len(n.o.Results))
	for k := range n.o.Operands {
		s.in[k] = g.place(n, n.f.Operands, k, s, gr)
		if v := g.operand(n, k); v != nil && !gr.fits(v, s.in[k]) {
			return s, false
		}
		if linear < 0 {
			continue
		}
		for a, f := range s.factors[:len(gr.axes)] {
			if f == partial && slices.Contains(n.f.Linear[linear], k) {
				s.in[k][a] = partial
			}
		}
	}
	exchanges := [maxAxes]bool{}
	for k := range n.o.Results {
		s.out[k] = g.place(n, n.f.Results, k, s, gr)
		v := g.result(n, k)
		for a, f := range s.factors[:len(gr.axes)] {
			switch {
			case f == partial:
				s.out[k][a] = partial
			case f < 0 || s.out[k][a] >= 0:
			case n.f.Kinds[f] == op.Reduced:
				if n.f.Combine != types.Add {
					return s, false
				}
				s.out[k][a] = partial
			case n.f.Kinds[f] == op.Exchanged:
				exchanges[a] = true
			}
		}
		if v != nil && !gr.fits(v, s.out[k]) {
			return s, false
		}
	}
	g.exchange(n, gr, &s, exchanges)
	for _, k := range n.reads {
		if v := g.operand(n, k); v != nil {
			s.traffic += gr.piece(v, s.in[k])
		}
	}
	for _, k := range n.writes {
		if v := g.result(n, k); v != nil {
			s.traffic += gr.piece(v, s.out[k])
		}
	}
	micro := 1.0
	if n.micro && n.batch >= 0 {
		micro = float64(gr.micro)
	}
	if n.moved >= 0 {
		s.traffic = n.moved / s.parts / micro
	}
	s.time = n.fused * (max(g.computing(n, gr, &s, micro), s.traffic/bandwidth) + n.launch)
	return s, true
}

// uneven is how many times more than the mean the device computes that has most to do: where the queries
// of a causal attention are divided, the last ones see all keys and the first ones few.
func (g *graph) uneven(n *node, gr *grid, s *strategy) float64 {
	if !isAttention(n) || !op.Bool(n.o, "causal") {
		return 1
	}
	return 2 - 1/float64(alongQueries(n, gr, s))
}

// alongQueries is among how many devices s divides the queries of n, an attention.
func alongQueries(n *node, gr *grid, s *strategy) int64 {
	p := int64(1)
	for a, f := range s.factors[:len(gr.axes)] {
		if f >= 0 && (n.f.Kinds[f] == op.Exchanged || int(f) == n.f.Together[0]) {
			p *= int64(gr.axes[a].Size)
		}
	}
	return p
}

// place is the layout that follows for tensor k from the factors that axes divide.
func (g *graph) place(n *node, tensors [][][]int, k int, s strategy, gr *grid) layout {
	l := allWhole
	if k >= len(tensors) {
		return l
	}
	for d, list := range tensors[k] {
		if len(list) == 0 {
			continue
		}
		for a, f := range s.factors[:len(gr.axes)] {
			if f < 0 {
				continue
			}
			together := n.f.Together
			if int(f) == list[0] || together[0] != together[1] && list[0] == together[1] && int(f) == together[0] {
				l[a] = int8(d) // an axis that divides queries divides keys too, which then travel in a ring
			}
		}
	}
	return l
}

// exchange is what devices send to each other inside of an op: keys and values in a ring, and
// statistics of what is divided over them, of the size of its smallest result.
func (g *graph) exchange(n *node, gr *grid, s *strategy, divided [maxAxes]bool) {
	for a, f := range s.factors[:len(gr.axes)] {
		if f < 0 {
			continue
		}
		p := float64(gr.axes[a].Size)
		together := n.f.Together
		switch {
		case together[0] != together[1] && int(f) == together[0]:
			bytes := 0.0
			for k := 1; k <= 2 && k < len(n.o.Operands); k++ {
				if v := g.operand(n, k); v != nil {
					bytes += gr.piece(v, s.in[k])
				}
			}
			if n.phase == backward { // their gradients travel as well
				bytes *= 2
			}
			step := gr.collective(network.Permute, 1<<a, bytes)
			work := n.compute / s.parts / float64(max(1, gr.micro)) / p
			s.comm += (p-1)*max(0, step-work) + step/p
			s.sent[a] += (p - 1) * bytes
		case slices.Contains(n.rows, int(f)): // a maximum and a sum, or two sums, of each row
			v := g.operand(n, 0)
			if v == nil {
				continue
			}
			size, _ := n.f.Sizes[f].Int()
			bytes := gr.piece(v, s.in[0]) / v.elem * 4 / max(1, float64(size)/p)
			s.comm += 2 * gr.collective(network.AllReduce, 1<<a, bytes)
			s.sent[a] += 4 * bytes * (p - 1) / p
		case divided[a]:
			bytes := math.Inf(1)
			for k := range n.o.Results {
				if v := g.result(n, k); v != nil {
					bytes = min(bytes, gr.piece(v, s.out[k]))
				}
			}
			for k := range n.o.Operands {
				if v := g.operand(n, k); v != nil && len(v.shape) > 0 && v.batch >= 0 {
					bytes = min(bytes, gr.piece(v, s.in[k]))
				}
			}
			if math.IsInf(bytes, 1) {
				continue
			}
			s.comm += gr.collective(network.AllReduce, 1<<a, bytes)
			s.sent[a] += 2 * bytes * (p - 1) / p
		}
	}
}

// storedAsAsked reports whether the layout is one that Setting.States allows.
func (g *graph) storedAsAsked(v *value, stored layout, gr *grid) bool {
	if gr.fix.States == "" || v.next < 0 {
		return true
	}
	parameter := g.isParameter(v)
	for a, axis := range gr.axes {
		if axis.Name != dataAxis || axis.Size == 1 {
			continue
		}
		possible := slices.ContainsFunc(v.shape, func(n int64) bool { return n%int64(axis.Size) == 0 })
		kept := gr.fix.States == StatesWhole || parameter && gr.fix.States == StatesSplit
		if split := stored[a] >= 0; split && kept || !split && !kept && possible {
			return false
		}
	}
	return true
}

// isParameter reports whether v, an argument, is a parameter, and no state of the optimizer.
func (g *graph) isParameter(v *value) bool { return g.wrt[v.v] || g.usedBySamples(v) }

// passes is how many passes of a micro-batch, forward and backward, read v, an argument that is the same for all of them. One that both
// read may be freed behind the forward pass and be gathered again. It is 0 of components of sparse tensors, of which the text states no such thing.
func (g *graph) passes(v *value) (n int) {
	if v.micro || len(v.shape) == 0 || op.ArgAttr(g.fn, v.v.Index, op.ComponentAttr) != nil {
		return 0
	}
	for _, p := range []phase{forward, backward} {
		if g.reads(v, p) >= 0 {
			n++
		}
	}
	return n
}

// reads is the first node of a micro-batch in a pass that reads v, negative if there is none.
func (g *graph) reads(v *value, p phase) int {
	for _, u := range v.uses {
		if n := g.nodes[u.node]; n.micro && n.phase == p {
			return u.node
		}
	}
	return -1
}

// argument are the layouts in which an argument is stored and used: used as it is stored, or gathered along
// some axes, once for each step or once for each pass of a micro-batch.
func (g *graph) argument(n *node, gr *grid) []strategy {
	v := g.result(n, 0)
	may := g.passes(v) == 2 && (v.fixed == nil || g.again[v.v])
	asked := may && v.fixed == nil && gr.fix.States == StatesParameters && g.isParameter(v)
	var out []strategy
	for _, stored := range gr.layouts(v, v.divisible) {
		if v.fixed != nil && stored != *v.fixed || !g.storedAsAsked(v, stored, gr) || v.pieces > 0 && !gr.eachHas(v, stored) {
			continue
		}
		split := 0
		for a := range gr.axes {
			if stored[a] >= 0 {
				split |= 1 << a
			}
		}
		for gathered := 0; gathered <= split; gathered++ {
			if gathered&split != gathered || gathered != 0 && (v.micro || v.pieces > 0) {
				continue
			}
			used := stored
			for a := range gr.axes {
				if gathered&(1<<a) != 0 {
					used[a] = whole
				}
			}
			if asked && slices.ContainsFunc(gr.axes, func(x Axis) bool { return x.Name == dataAxis && used[slices.Index(gr.axes, x)] >= 0 }) {
				continue
			}
			c := gr.convert(v, stored, used)
			s := strategy{stored: stored, out: []layout{used}, parts: 1, comm: c.time, sent: c.sent, held: gr.piece(v, stored)}
			if v.micro {
				s.held *= float64(gr.micro)
			}
			if used == stored {
				out = append(out, s)
				continue
			}
			again := s
			again.again = true
			s.held += gr.piece(v, used)
			if !asked && !(may && g.again[v.v]) {
				out = append(out, s)
			}
			if may {
				out = append(out, again)
			}
		}
	}
	return out
}
