package plan

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"dmir/analysis/units"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

// A role is what an axis divides in most of the computation.
type role uint8

const (
	unusedRole role = iota
	samplesRole
	sequenceRole
	tensorRole
	expertRole
	rowsRole // of sparse tensors
)

var roleNames = [...]string{"unused", "data", "sequence", "tensor", "expert", "rows"}

// finish gives a plan what only the plans that are shown need: names, the values' shardings.
func (s *search) finish(c *candidate) {
	roles := c.roles()
	c.Plan.Axes = c.named(roles)
	c.Names = append(c.Names, axesText(c.Plan.Axes))
	divides := false
	for a := range c.m.grid.axes {
		divides = divides || c.divides(a)
	}
	switch {
	case s.o.Devices == c.m.grid.pipe || slices.ContainsFunc(roles, func(r role) bool { return r != unusedRole }):
	case divides:
		c.Names = append(c.Names, "each device computes all products: to exchange would take longer than it saves")
	case c.m.grid.pipe > 1:
		c.Names = append(c.Names, "the devices of a stage do the same: to exchange would take longer than it saves")
	default:
		c.Names = append(c.Names, "nothing is divided: to exchange would take longer than it saves")
	}
	names := map[string]string{}
	for a := range c.m.grid.axes {
		names[c.m.grid.axes[a].Name] = c.axisName(roles, a)
	}
	sent := map[string]int64{}
	for name, n := range c.Sent {
		if as := names[name]; as != "" {
			name = as
		}
		sent[name] += n
	}
	c.Sent = sent
	c.writes(newWriter(s, c))
	if s.o.Devices > 1 {
		w := newWriter(s, c)
		w.arguments()
		c.Values = w.values
		c.Used, c.Regathered = w.inUse()
		c.Names = append(c.Names, w.divided()...)
	}
	c.Names = append(c.Names, c.storage(roles)...)
	between := c.sequence(roles)
	c.SequenceParallel = len(between) > 0
	c.Names = append(c.Names, between...)
	if c.Schedule != "" {
		c.Names = append(c.Names, fmt.Sprintf("%d stages, schedule %s", len(c.Stages), c.Schedule))
	}
	if c.Microbatches > 1 {
		c.Names = append(c.Names, fmt.Sprintf("%d micro-batches", c.Microbatches))
	}
	switch c.Recompute {
	case Full:
		c.Names = append(c.Names, "layers are recomputed in the backward pass")
	case Selective:
		c.Names = append(c.Names, "all but contractions and attention is recomputed in the backward pass")
	}
}

// writes makes w the writer of the plan's text.
func (c *candidate) writes(w *writer) {
	c.edits = sync.OnceValue(func() []diag.Edit {
		edits := w.write()
		c.gradients = w.gradients > 0
		return edits
	})
}

// roles are what the axes divide in contractions, by the time that these take. Where there are none, an axis
// divides the samples of some op, or parts of tensors, or nothing.
func (c *candidate) roles() []role {
	m := c.m
	out := make([]role, len(m.grid.axes))
	for a := range m.grid.axes {
		var share [len(roleNames)]float64
		samples := false
		for i, n := range m.nodes {
			if n.o == nil || n.phase != forward {
				continue
			}
			v := m.ofNode[i]
			r := m.role(n, m.vars[v].strategies[c.choice[v]].factors[a])
			samples = samples || r == samplesRole
			if isContraction(n) {
				share[r] += n.compute
			}
		}
		best := 0
		for r := range share {
			if share[r] > share[best] {
				best = r
			}
		}
		switch {
		case c.dividesRows(a):
			out[a] = rowsRole
		case m.grid.fix.Expert > 1 && m.grid.axes[a].Name == expertAxis: // whatever takes longer than the experts
			out[a] = expertRole
		case best != 0 || share[0] > 0:
			out[a] = role(best)
		case samples:
			out[a] = samplesRole
		case c.divides(a):
			out[a] = tensorRole
		}
	}
	return out
}

// dividesRows reports whether a sparse argument is divided over an axis.
func (c *candidate) dividesRows(a int) bool {
	for i, n := range c.m.nodes {
		v := c.m.ofNode[i]
		if n.o == nil && c.m.result(n, 0).pieces > 0 && c.m.vars[v].strategies[c.choice[v]].stored[a] >= 0 {
			return true
		}
	}
	return false
}

// divides reports whether an op, or an argument as it is stored, is divided over an axis.
func (c *candidate) divides(a int) bool {
	for i, n := range c.m.nodes {
		v := c.m.ofNode[i]
		s := c.m.vars[v].strategies[c.choice[v]]
		if n.o == nil && s.stored[a] >= 0 || n.o != nil && s.factors[a] >= 0 {
			return true
		}
	}
	return false
}

// role is what dividing factor f of n divides: samples, positions, the experts of parameters, or the rest of
// them.
func (g *graph) role(n *node, f int8) role {
	switch {
	case f < 0:
		return unusedRole
	case int(f) == n.batch:
		return samplesRole
	}
	inParameter, inSamples, inAll := false, false, true
	for k := range n.o.Operands {
		v := g.operand(n, k)
		if v == nil || k >= len(n.f.Operands) || !op.Divided(n.f.Operands[k], int(f)) {
			inAll = false
			continue
		}
		if v.micro {
			inSamples = true
		} else {
			inParameter = true
		}
	}
	inResult := len(n.f.Results) > 0 && op.Divided(n.f.Results[0], int(f))
	sum := g.result(n, 0) // of a parameter's gradient
	switch {
	case sum != nil && !sum.micro && inResult:
		return tensorRole
	case isAttention(n) && n.f.Together[0] == int(f):
		return sequenceRole
	case inParameter && inSamples && inResult:
		return expertRole
	case inParameter || isAttention(n):
		return tensorRole
	case isContraction(n) && inAll && inResult: // the heads of scores that are written
		return tensorRole
	}
	return sequenceRole
}

// axisName is what an axis is called: by its role, with a number where two have the same.
func (c *candidate) axisName(roles []role, a int) string {
	if c.m.grid.named {
		return c.m.grid.axes[a].Name
	}
	name := roleNames[roles[a]]
	if roles[a] == unusedRole {
		name = "replica" // nothing is divided over it
	}
	for b := range a {
		if roles[b] == roles[a] && c.m.grid.axes[b].Size > 1 {
			name += "2"
		}
	}
	return name
}

func (c *candidate) named(roles []role) []Axis {
	var out []Axis
	if c.m.grid.pipe > 1 {
		out = append(out, Axis{"pipe", c.m.grid.pipe})
	}
	last := -1 // the axis before, if nothing is divided over it
	for a, x := range c.m.grid.axes {
		switch idle := !c.m.grid.named && !c.divides(a); {
		case x.Size == 1:
		case idle && last >= 0: // devices with the same are along one axis
			out[last].Size *= x.Size
		default:
			if last = -1; idle {
				last = len(out)
			}
			out = append(out, Axis{c.axisName(roles, a), x.Size})
		}
	}
	if len(out) == 0 {
		out = append(out, Axis{"data", 1})
	}
	return out
}

// storage names how parameters and the optimizer's states lie along the axes that divide samples.
func (c *candidate) storage(roles []role) []string {
	m := c.m
	var states, split, params, sharded, again float64
	for _, x := range m.state {
		v := m.values[x]
		at := m.ofNode[v.node]
		s := m.vars[at].strategies[c.choice[at]]
		divided := false
		for a, r := range roles {
			divided = divided || r == samplesRole && m.grid.axes[a].Size > 1 && s.stored[a] >= 0
		}
		add := func(all, part *float64) {
			*all += v.bytes
			if divided {
				*part += v.bytes
			}
		}
		if m.isParameter(v) {
			add(&params, &sharded)
			if divided && s.again {
				again += v.bytes
			}
		} else {
			add(&states, &split)
		}
	}
	over := ""
	for a, r := range roles {
		if r == samplesRole && m.grid.axes[a].Size > 1 {
			over = c.axisName(roles, a)
		}
	}
	switch {
	case over == "":
		return nil
	case params > 0 && again > params/2:
		return []string{"parameters and optimizer states split over " + over + ", parameters gathered again for the backward pass (ZeRO-3)"}
	case params > 0 && sharded > params/2:
		return []string{"parameters and optimizer states split over " + over + ", parameters gathered once for each step (FSDP)"}
	case states > 0 && split > states/2:
		return []string{"optimizer states split over " + over + " (ZeRO-1)"}
	}
	return nil
}

// sequence names what happens between contractions.
func (c *candidate) sequence(roles []role) []string {
	m := c.m
	for a, r := range roles {
		if r != tensorRole || m.grid.axes[a].Size == 1 {
			continue
		}
		var all, split float64
		for i, n := range m.nodes {
			if n.o == nil || n.phase != forward || op.Of(n.o).Class != op.ClassNormalization || n.batch < 0 {
				continue
			}
			v := m.ofNode[i]
			f := m.vars[v].strategies[c.choice[v]].factors[a]
			all++
			if f >= 0 && int(f) != n.batch {
				split++
			}
		}
		if all > 0 && split > all/2 {
			return []string{"sequence split over " + c.axisName(roles, a) + " between contractions (sequence parallelism)"}
		}
	}
	return nil
}

// line is the line of the text at which an op stands.
func (s *search) line(o *ir.Op) int {
	if s.m.Src == nil {
		return 0
	}
	return lineOf(s.m.Src, o.Span)
}

func lineOf(f *source.File, span source.Span) int {
	line, _ := f.Human(span.Start)
	return line
}

// why is what p loses against the best plan.
func why(best, p *Plan) string {
	type term struct {
		text string
		more float64
	}
	bubble := func(p *Plan) float64 { return p.Bubble * p.Time }
	terms := []term{
		{"computation", p.Compute - best.Compute},
		{"exposed communication", p.Exposed - best.Exposed},
		{"pipeline bubble", bubble(p) - bubble(best)},
	}
	slices.SortStableFunc(terms, func(a, b term) int {
		if a.more > b.more {
			return -1
		}
		return 1
	})
	var more, less []string
	for _, t := range terms {
		switch {
		case t.more > best.Time/1000:
			more = append(more, fmt.Sprintf("%s more of %s", secondsText(t.more), t.text))
		case t.more < -best.Time/1000:
			less = append(less, fmt.Sprintf("%s less of %s", secondsText(-t.more), t.text))
		}
	}
	if len(more) == 0 {
		return fmt.Sprintf("%s slower", secondsText(p.Time-best.Time))
	}
	text := strings.Join(more, ", ")
	if len(less) > 0 {
		text += ", though " + strings.Join(less, ", ")
	}
	return text
}

func secondsText(s float64) string { return units.Time(s * 1e9) }
