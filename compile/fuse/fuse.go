// Package fuse partitions a function into kernels so that its predicted time is
// least, and the bytes it moves where times are equal.
//
// Read fuse.go first (best), then branch.go (solve). A graph (graph.go) has the nodes and
// values of a function, a candidate (eval.go) is a kernel with its price, and a partition
// (partition.go) is what the local search changes. rules.go says which ops may share a
// kernel; order.go and rewrite.go write the kernels, assemble.go those that store the parts of a value.
//
// The function's ops form a graph, which is cut into parts that no kernel spans
// (parts.go). A local search (local_search.go) finds a plan of the whole graph, in
// which equal layers have equal kernels (repeat.go);
// minimum cuts (bound.go, shared_writes.go) give a lower bound on the price of
// any plan. Where plan and bound differ, short parts are searched exhaustively,
// from the last kernel to the first (search.go, enumerate.go). Cheap ops may be
// recomputed in each kernel that uses them instead of being stored; decisions
// that concern several parts are made by branch and bound (branch.go). The
// remaining difference between plan and bound is reported as the gap.
//
// Compare Chen et al., EVT, ASPLOS 2024: an integer program for the same
// partition without recomputation.
package fuse

import (
	"context"
	"time"

	"dmir/analysis/cost"
	"dmir/analysis/machine"
	"dmir/compile/pass"
	"dmir/compile/target"
	"dmir/dialect/ir"
	"dmir/dialect/op"
)

// Options are the choices of a run.
type Options struct {
	Rules  Rules // nil: Kernels of no target
	Refuse bool  // inline kernels of the text and partition their ops again
	Effort int   // bound on the kernels tried in each part before the best plan so far is taken; 0: DefaultEffort
}

// DefaultEffort plans a layer of a transformer, forward and backward, in a few
// seconds on one core.
const DefaultEffort = 20000

// Pass groups every op of the body into a dm.kernel. times is what the unit's target
// knows of kernels.
func Pass(times func(*pass.Unit) (target.Times, error)) pass.Pass {
	return pass.Pass{Name: "fuse", Summary: "ops become kernels, by the least predicted time", Run: func(u *pass.Unit) error {
		t, err := times(u)
		if err != nil || !u.Body().OneBlock() {
			return err
		}
		f := &Figures{}
		if err := f.fuse(u, Options{Rules: Kernels(t)}); err != nil {
			return err
		}
		u.Gaps = append(u.Gaps, f.gap)
		return nil
	}}
}

// Figures are statistics of a run.
type Figures struct {
	KernelsBefore, KernelsAfter int
	MovedBefore, MovedAfter     int64   // bytes
	Minimum                     int64   // bytes
	TimeBefore, TimeAfter       float64 // ns, predicted
	// Elements that kernels without a contraction read and write.
	NonContractionBefore, NonContractionAfter int64
	Recomputed                                int     // copies of ops in kernels beyond one of each
	Exact                                     bool    // no plan takes less time, or as much and moves less
	Gap                                       float64 // bound on the time that another plan might save, as a fraction of TimeAfter; 0 where Exact
	Elapsed                                   time.Duration

	planned price // of the kernels, in the model of the search
	graph   *graph
	kernels []*candidate // in the order of the body
	gap     pass.Gap
}

// Stats fuses u as Pass does and returns its statistics.
func Stats(u *pass.Unit) (*Figures, error) { return Run(u, Options{}) }

// Run fuses u's body in place. Errors are *pass.Error, for a symbolic size
// (DM801) or an op of another dialect (DM804), or the cause of the context's
// cancellation.
func Run(u *pass.Unit, o Options) (*Figures, error) {
	start := time.Now()
	if !u.Body().OneBlock() {
		return &Figures{Exact: true}, nil
	}
	f, m := &Figures{}, u.Model()
	f.before(u, m)
	if err := f.fuse(u, o); err != nil {
		return nil, err
	}
	f.after(u, m)
	f.Elapsed = time.Since(start)
	return f, nil
}

// fuse fuses u's body and sets the figures of the plan.
func (f *Figures) fuse(u *pass.Unit, o Options) (err error) {
	rules, effort, body := o.Rules, o.Effort, u.Body()
	if rules == nil {
		rules = Kernels(target.Times{})
	}
	if effort == 0 {
		effort = DefaultEffort
	}
	op.RemoveDead(body.Block)
	if o.Refuse {
		inline(body.Block)
	}
	defer func() {
		if r := recover(); r == canceled {
			err = context.Cause(u.Context())
		} else if r != nil {
			panic(r)
		}
	}()
	legal := legalitiesOf(rules)
	g, s, err := best(u, rules, legal, effort)
	if err != nil {
		return err
	}
	if ops := g.assembled(s.kernels); len(ops) > 0 {
		a := g.inParts(ops)
		h, t, err := best(u, rules, legal, effort)
		switch {
		case err != nil:
			return err
		case t.price.less(s.price):
			g, s = h, t
		default:
			a.undo()
		}
	}
	f.Exact = s.exact
	if !s.exact && s.price.fs > 0 {
		f.Gap = float64(s.price.fs-s.bound.fs) / float64(s.price.fs)
	}
	f.Recomputed, f.planned, f.graph, f.kernels = copies(s.kernels), s.price, g, s.kernels
	f.gap = pass.Gap{Func: u.Func.Name, Ns: float64(s.price.fs) / 1e6, LeastNs: float64(s.bound.fs) / 1e6, Bytes: s.price.bytes, Minimum: min(s.least, s.price.bytes), Cut: g.cut}
	if body.IsRegion() {
		f.gap.In = body.Region.Op
	}
	g.rewrite(s.kernels)
	return nil
}

// best is the graph of u's body and its best plan, whose kernels are in an order in
// which they can run.
func best(u *pass.Unit, rules Rules, legal *legalities, effort int) (*graph, solution, error) {
	g, err := build(u, rules, legal)
	if err != nil {
		return nil, solution{}, err
	}
	var together [][2]int
	for round := 0; ; round++ {
		if round > len(g.nodes) { // each round joins parts or makes copies
			panic("fuse: kernels of one part wait for each other")
		}
		s := g.solve(g.parts(together), effort)
		if err := context.Cause(g.ctx); err != nil {
			return nil, s, err
		}
		ks, ok := g.order(s.kernels)
		if ok {
			s.kernels = ks
			return g, s, nil
		}
		if acyclic(g.dataDependences(s.kernels)) {
			g.copyInstead(ks) // only what they overwrite forms the cycle
			continue
		}
		// The kernels of different parts form a cycle: plan these parts as one. Their
		// first nodes may be cheap ones of other parts.
		for _, k := range ks {
			for _, n := range k.nodes {
				together = append(together, [2]int{ks[0].nodes[0], n})
			}
		}
	}
}

// inline replaces the kernels of b by their ops.
func inline(b *ir.Block) {
	for i := 0; i < len(b.Ops); i++ {
		o := b.Ops[i]
		if o.Name != op.Kernel {
			continue
		}
		for j, v := range ir.InlineBlock(o.Body(0), o, nil) {
			if v.Op != nil && v.Op.Parent == b && o.Results[j].Name != "" {
				v.Name = o.Results[j].Name
			}
			ir.ReplaceUses(o.Results[j], v)
		}
		ir.Erase(o)
		i--
	}
}

// copies counts the ops in ks beyond one copy of each.
func copies(ks []*candidate) int {
	n, seen := 0, map[int]bool{}
	for _, k := range ks {
		for _, i := range k.nodes {
			if seen[i] {
				n++
			}
			seen[i] = true
		}
	}
	return n
}

func (f *Figures) before(u *pass.Unit, m *machine.Machine) {
	f.KernelsBefore, f.MovedBefore, f.TimeBefore, f.NonContractionBefore, f.Minimum = measure(u, m)
}

func (f *Figures) after(u *pass.Unit, m *machine.Machine) {
	f.KernelsAfter, f.MovedAfter, f.TimeAfter, f.NonContractionAfter, _ = measure(u, m)
}

// measure sums up the costs of u's function.
func measure(u *pass.Unit, m *machine.Machine) (kernels int, moved int64, ns float64, elements, minimum int64) {
	c := cost.Function(u.Func, u.Module, u.Options.Bind)
	for _, e := range c.Entries {
		n, _ := e.Moved().Int()
		if n == 0 && e.Time(m).Ns == 0 {
			continue
		}
		kernels++
		if e.Class != op.ClassContraction {
			elements += crossed(e.Op)
		}
	}
	moved, _ = c.Moved().Int()
	minimum, _ = c.Minimum().Int()
	return kernels, moved, c.Time(m).Ns, elements, minimum
}

// crossed is the number of elements that o reads and writes.
func crossed(o *ir.Op) int64 {
	var n int64
	seen := map[*ir.Value]bool{}
	count := func(v *ir.Value) {
		if t := v.Tensor(); t != nil && !seen[v] {
			seen[v] = true
			k, _ := t.Elements().Int()
			n += k
		}
	}
	for _, v := range ir.UsedValues(o) {
		count(v)
	}
	for _, v := range o.Results {
		count(v)
	}
	return n
}
