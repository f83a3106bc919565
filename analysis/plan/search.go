package plan

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"time"

	"dmir/analysis/network"
	"dmir/analysis/pipelining"
	"dmir/analysis/plan/solve"
	"dmir/base/parallel"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/stacks"
	"dmir/syntax/source"
)

// top is how many plans there are unless asked otherwise.
const top = 10

// Search finds plans for fn, a function of m. It stops early with ctx's error.
func Search(ctx context.Context, m *ir.Module, fn *ir.Func, o Options) (*Result, error) {
	start := time.Now()
	s, err := newSearch(m, fn, o)
	if err != nil {
		return nil, err
	}
	if o.Limit > 0 {
		s.ends = start.Add(o.Limit)
	}
	if err := s.cuttable(s.o.Fix.Microbatches); err != nil {
		return nil, err
	}
	settings := s.settings()
	if len(settings) == 0 {
		return nil, s.noSetting()
	}
	parallel.Each(runtime.GOMAXPROCS(0), len(s.forms), func(i int) { s.fuse(ctx, s.forms[i]) })
	done := 0
	step := func() {
		if done++; o.Progress != nil {
			o.Progress(done, 3*len(settings))
		}
	}
	s.explore(ctx, settings, step)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.prove(ctx)
	best, why := s.rank(ctx, func(priced, of int) {
		if o.Progress != nil {
			o.Progress(2*len(settings)+len(settings)*priced/of, 3*len(settings))
		}
	})
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if len(best) == 0 {
		return nil, s.tooLarge()
	}
	r := s.result(len(settings), best, why)
	r.Elapsed = time.Since(start).Seconds()
	return r, nil
}

// Problems are the optimization problems of the settings that o.Fix leaves open, without recomputation, as the search
// solves them: for benchmarks of solvers.
func Problems(m *ir.Module, fn *ir.Func, o Options) ([]*solve.Problem, error) {
	s, err := newSearch(m, fn, o)
	if err != nil {
		return nil, err
	}
	var out []*solve.Problem
	for _, set := range s.settings() {
		gr, err := s.grid(set)
		if err != nil {
			return nil, err
		}
		l := load{pipe: set.pipe, recompute: None, inflight: float64(min(int64(set.pipe), set.micro)), memory: s.memory, hidden: s.hidden()}
		out = append(out, newModel(set.form.graph, gr, s.bandwidth).problem(l))
	}
	return out, nil
}

type search struct {
	*graph            // the step as the text has it
	forms     []*form // the ways to divide its sparse tensors, the first one that of graph
	o         Options
	module    *ir.Module // of the text
	text      *ir.Func
	textOps   map[source.Span]*ir.Op // with a place in the text
	given     given
	bandwidth float64
	memory    float64
	peak      float64 // FLOP/s of a device
	tokens    int64
	ends      time.Time // when the search has to have an answer; zero: it has all the time

	orderLock sync.Mutex // of orders
	orders    map[way][][]pipelining.Task

	lock  sync.Mutex // of what follows
	found []*candidate
	best  map[string]*candidate // the plans that would be shown, by their keys, each one once
	bound float64
	least shortage
}

// late reports whether the time of the search is spent.
func (s *search) late() bool { return !s.ends.IsZero() && time.Now().After(s.ends) }

// A shortage is the plan that exceeds the memory by least.
type shortage struct {
	bytes   float64
	proved  bool // no choice of strategies lacks less
	setting setting
}

// A setting is a mesh and what the pipeline does on it.
type setting struct {
	form      *form
	axes      []Axis // that divide values
	pipe      int
	micro     int64
	recompute string
	roles     bool    // each axis divides what it is called after, see graph.allowed
	left      bool    // others with a third axis take less at least, see exploration.leave
	least     float64 // s: no plan of it takes less
	work      float64 // s: what a device of it does at least, on average
	filling   float64 // s: see graph.filling
	bounded   bool    // least is that of its choices together, and not of each by itself
	closely   bool    // least is that of each schedule by itself
	at        int     // among all settings
}

// plain reports whether the setting is one axis, without a pipeline or micro-batches.
func (set *setting) plain() bool { return set.several() == 1 && set.pipe == 1 && set.micro == 1 }

// several is how many axes beside the pipeline have several devices.
func (set *setting) several() (n int) {
	for _, a := range set.axes {
		if a.Size > 1 {
			n++
		}
	}
	return n
}

// A candidate is a plan with the model that it comes from.
type candidate struct {
	*Plan
	m      *model
	choice []int
	set    setting
	st     staging
	load   load
	whole  bool // nothing is divided
	other  bool // see search.otherwise
	// gradients is that the text states how gradients are divided.
	gradients bool
}

func newSearch(m *ir.Module, fn *ir.Func, o Options) (*search, error) {
	if o.Devices < 1 {
		return nil, &Error{Code: CodeDevices, Msg: fmt.Sprintf("a plan is for one device or more, not for %d", o.Devices), Help: "dmir plan --devices 64"}
	}
	if o.Fix.Context > 1 && o.Fix.Expert > 1 {
		return nil, &Error{Code: CodeStated, Msg: fmt.Sprintf("context %d and expert %d are two axes, and a plan has one of them beside data and tensor", o.Fix.Context, o.Fix.Expert), Help: "leave one of them out"}
	}
	links := o.Machine.Joined()
	if o.Devices > 1 && len(o.Machine.Links) == 0 {
		return nil, &Error{Code: CodeLinks, Msg: fmt.Sprintf("%s is no cluster: how long its devices take to exchange data is not known", o.Machine.Name), Help: "name a cluster, such as --target dgx-h100, or describe links under [machines." + o.Machine.Name + ".links] in dmir.toml"}
	}
	if n := len(links); o.Devices > 1 && n > 0 && links[n-1].Devices > 0 && links[n-1].Devices < o.Devices {
		return nil, &Error{Code: CodeDevices, Msg: fmt.Sprintf("%s joins %d devices, fewer than %d", o.Machine.Name, links[n-1].Devices, o.Devices), Help: "plan for fewer devices, or for another cluster"}
	}
	first, err := newForm(m, fn, o, nil, false)
	if err != nil {
		return nil, err
	}
	g := first.graph
	s := &search{graph: g, forms: []*form{first}, o: o, module: m, text: fn, textOps: map[source.Span]*ir.Op{}, bound: math.Inf(1), memory: float64(o.Memory), least: shortage{bytes: math.Inf(1)}, best: map[string]*candidate{}, orders: map[way][][]pipelining.Task{}}
	for _, f := range m.Funcs {
		if f.Body != nil {
			ir.Walk(f.Body.Ops, func(o *ir.Op) bool {
				s.textOps[o.Span] = o
				return true
			})
		}
	}
	if s.memory == 0 {
		s.memory = float64(o.Machine.Memory)
	}
	if s.memory == 0 {
		s.memory = math.Inf(1)
	}
	if err := s.keepStated(); err != nil {
		return nil, err
	}
	s.divideRows()
	if err := s.unroll(); err != nil {
		return nil, err
	}
	s.bandwidth = g.rate()
	s.peak = o.Machine.Peak(true, g.elem())
	s.tokens = g.tokens()
	if !slices.ContainsFunc(g.nodes, func(n *node) bool { return n.o != nil }) {
		return nil, &Error{Code: CodeStep, Msg: "@" + fn.Name + " computes nothing", Help: "name the function that takes the gradient with --func"}
	}
	return s, nil
}

// rate is the bandwidth of the memory that kernels reach, in B/s.
func (g *graph) rate() float64 {
	if b := g.target.Ceilings.Bandwidth; b > 0 {
		return b
	}
	return g.target.Bandwidth
}

// tokens are those of a step: the elements of its largest integer argument with samples, or samples times positions
// where they are vectors.
func (g *graph) tokens() int64 {
	n := max(g.batch, 1)
	vectors := n
	for _, x := range g.data {
		v := g.values[x]
		all := int64(1)
		for _, k := range v.shape {
			all *= k
		}
		switch t := v.v.Tensor(); {
		case t.Elem.IsInt():
			n = max(n, all)
		case len(v.shape) == 3:
			vectors = max(vectors, all/v.shape[2])
		}
	}
	if n == g.batch {
		return vectors
	}
	return n
}

// free is how a setting is weighed with unlimited memory.
func (s *search) free(set setting) load {
	l := load{pipe: set.pipe, recompute: s.o.Fix.Recompute, inflight: 1, memory: math.Inf(1), hidden: s.hidden()}
	if l.recompute == "" {
		l.recompute, l.free = None, true
	}
	return l
}

// prove looks again at the setting of the best plan, with more time, if the choice there may be far from the
// best one.
func (s *search) prove(ctx context.Context) {
	if len(s.found) == 0 || s.late() {
		return
	}
	best := slices.MinFunc(s.found, func(a, b *candidate) int { // whichever was found first
		return cmp.Or(cmp.Compare(a.Time, b.Time), cmp.Compare(a.Microbatches, b.Microbatches), cmp.Compare(a.key(), b.key()))
	})
	if best.Objective-best.Bound <= gap*best.Objective {
		return
	}
	l := best.load
	o := solve.Options{Nodes: 40, Gap: gap, Start: best.choice, MILP: s.o.MILP, MILPLimit: 20 * time.Second}
	sol, err := best.m.solve(ctx, best.m.problem(l), l, o)
	if err != nil || sol.Infeasible != nil || sol.Choice == nil {
		return
	}
	best.Bound = max(best.Bound, sol.Bound)
	found, _ := s.schedule(best.m, l, sol, best.set)
	s.keep(found, max(sol.Bound+best.set.filling, best.set.least), shortage{bytes: math.Inf(1)})
}

// tight is the part of the memory from which on recomputation may pay although plans without it fit.
const tight = 0.9

// look solves one setting, with more and more recomputation until plans fit with memory to spare. need is
// the memory that it lacks, if none fits.
func (s *search) look(ctx context.Context, set setting) (found []*candidate, bound float64, need shortage) {
	bound, need = math.Inf(1), shortage{bytes: math.Inf(1), setting: set}
	gr, err := s.grid(set)
	if err != nil {
		return nil, bound, need
	}
	s.graph.work.Add("settings", 1)
	m := newModel(set.form.graph, gr, s.bandwidth)
	for _, recompute := range []string{None, Selective, Full} {
		if f := s.o.Fix.Recompute; f != "" && f != recompute || recompute != None && m.layers == nil || recompute == None && m.looped() {
			continue
		}
		set.recompute = recompute
		more, least, lacks := s.solve(ctx, m, set)
		found = append(found, more...)
		bound = min(bound, least)
		if lacks.bytes < need.bytes {
			need = lacks
		}
		if slices.ContainsFunc(more, func(c *candidate) bool { return float64(c.Memory.Total) < tight*s.memory }) {
			break
		}
	}
	return found, bound, need
}

func (s *search) solve(ctx context.Context, m *model, set setting) (found []*candidate, bound float64, need shortage) {
	bound, need = math.Inf(1), shortage{bytes: math.Inf(1), setting: set}
	l := load{pipe: set.pipe, recompute: set.recompute, inflight: float64(min(int64(set.pipe), set.micro)), memory: s.memory, hidden: s.hidden()}
	for range tries {
		p := m.problem(l)
		var least float64
		var lacks shortage
		found, least, lacks = s.within(ctx, m, p, set, l)
		bound = min(bound, least)
		if lacks.bytes < need.bytes {
			need = lacks
		}
		if len(found) > 0 || math.IsInf(lacks.bytes, 1) || lacks.proved || l.memory < lacks.bytes {
			break
		}
		l.memory -= lacks.bytes
	}
	return found, bound, need
}

// tries is how often a setting is solved with less memory, where its plans turned out to hold more than
// the sums of the model: stages are not equal, and ops need room to work.
const tries = 4

// within is solve with a limit of the model's sums.
func (s *search) within(ctx context.Context, m *model, p *solve.Problem, set setting, l load) (found []*candidate, bound float64, need shortage) {
	bound, need = math.Inf(1), shortage{bytes: math.Inf(1), setting: set}
	o := quick
	if s.o.Price == nil && !set.plain() {
		o = s.better(set)
	}
	sol, err := m.solve(ctx, p, l, o)
	if err != nil {
		return nil, bound, need
	}
	if sol.Infeasible != nil {
		if k := sol.Infeasible.Limit; k >= 0 {
			need.bytes, need.proved = sol.Infeasible.Least-l.memory, true
		}
		return nil, bound, need
	}
	bound = sol.Bound + set.filling
	if sol.Choice == nil {
		return nil, bound, need
	}
	if bound < s.cutoff(set.roles) {
		found, need.bytes = s.schedule(m, l, sol, set)
		found = append(found, s.quicken(ctx, m, p, l, sol.Bound, found, set)...)
		found = append(found, s.otherwise(ctx, m, l, p, sol, set)...)
	}
	found = append(found, s.undivided(m, l, p, sol.Bound, set)...)
	return found, bound, need
}

// otherwise is the choice that is best where computation hides all communication beside it, if that is another one: which of the
// two takes less, their texts tell.
func (s *search) otherwise(ctx context.Context, m *model, l load, p *solve.Problem, sol *solve.Solution, set setting) []*candidate {
	if !s.near || set.pipe > 1 {
		return nil
	}
	all := l
	all.hidden = 1
	other, err := m.solve(ctx, m.problem(all), all, quick)
	if err != nil || other.Infeasible != nil || other.Choice == nil || slices.Equal(other.Choice, sol.Choice) {
		return nil
	}
	other.Value, other.Bound = p.Value(other.Choice), sol.Bound
	found, _ := s.schedule(m, l, other, set)
	for _, c := range found {
		c.other = !c.whole
	}
	return found
}

// gap is how close to the best choice of a setting the search comes before it goes on to the next one, if quick allows.
const gap = 1e-3

// quick is the effort for each setting.
var quick = solve.Options{Nodes: 4, Gap: gap, Entries: 1 << 18, Sweeps: 40}

// better is the effort for a setting where only choices count that are to be kept.
func (s *search) better(set setting) solve.Options {
	return below(s.cutoff(set.roles) - set.filling)
}

// below is the effort for a setting where only choices count that take less.
func below(time float64) solve.Options {
	o := quick
	if !math.IsInf(time, 1) {
		o.Below = max(time, math.SmallestNonzeroFloat64)
	}
	return o
}

// worthAnAxis is how much less, as a part, a plan with an unrequested third axis has to take than the best one.
const worthAnAxis = 0.01

// cutoff is the time that a setting has to beat, or else is not searched: that of the last plan that is kept, and where it has a third
// axis, somewhat less than that of the best one.
func (s *search) cutoff(third bool) float64 {
	s.lock.Lock()
	defer s.lock.Unlock()
	best, worst := math.Inf(1), 0.0
	for _, c := range s.best {
		best, worst = min(best, c.Time), max(worst, c.Time)
	}
	switch {
	case third:
		return best * (1 - worthAnAxis)
	case len(s.best) < s.kept():
		return math.Inf(1)
	}
	return worst
}

// kept is how many plans the search keeps. Of which the text takes least is not known before texts are priced, so
// that the first plan does not depend on how many are shown.
func (s *search) kept() int {
	if s.o.Price != nil {
		return max(s.shown(), top)
	}
	return s.shown()
}

func (s *search) shown() int {
	if s.o.Top > 0 {
		return s.o.Top
	}
	return top
}

// grid is the mesh of a setting, the pipeline's axis outermost.
func (s *search) grid(set setting) (*grid, error) {
	g := &grid{axes: set.axes, pipe: set.pipe, micro: set.micro, fix: s.o.Fix, roles: set.roles, named: s.given.mesh != nil, times: map[transfer]float64{}, moves: map[int]*moves{}}
	axes := []network.Axis{{Name: "pipe", Size: set.pipe}}
	for _, a := range set.axes {
		axes = append(axes, network.Axis{Name: a.Name, Size: a.Size})
		g.all = append(g.all, a.Name)
	}
	g.all = append(g.all, "pipe")
	net, err := network.NewMesh(s.o.Machine, axes)
	g.net = net
	return g, err
}

func (s *search) keep(found []*candidate, bound float64, need shortage) {
	for _, c := range found {
		s.found = append(s.found, c)
		key, again := c.key(), false
		for k, d := range s.best {
			again = again || k == key && d.Time <= c.Time || k != key && d.same(c)
		}
		if again {
			continue
		}
		s.best[key] = c
		for len(s.best) > s.kept() {
			worst := ""
			for k, d := range s.best {
				if worst == "" || d.Time > s.best[worst].Time || d.Time == s.best[worst].Time && k > worst {
					worst = k
				}
			}
			delete(s.best, worst)
		}
	}
	s.bound = min(s.bound, bound)
	if need.bytes < s.least.bytes {
		s.least = need
	}
}

// backward is the number of layers of a loop through which the text goes back itself.
func (s *search) backward() int {
	if len(s.wrt) > 0 { // what dm.grad differentiates
		return 0
	}
	o := stacks.Backward(s.fn)
	if o == nil {
		return 0
	}
	n, _ := op.Trips(o)
	trips, _ := n.Int()
	return int(trips)
}

// result are the best plans; modelled says why their figures are those of the model.
func (s *search) result(searched int, best []*candidate, modelled string) *Result {
	layers := 0
	if s.layers != nil {
		layers = s.layers.count
	}
	r := &Result{
		src: s.module.Src, Function: s.text.Name, Target: s.o.Machine.Name, Devices: s.o.Devices, Searched: searched, Bound: s.bound, Modelled: modelled,
		Model: Model{Parameters: s.parameters(), FLOP: s.flop, Samples: s.batch, Tokens: s.tokens, Layers: layers, Batch: s.samples, Whole: s.whole, Backward: s.backward()},
	}
	if s.o.Devices > 0 {
		r.Limit = int64(min(s.memory, math.MaxInt64/2))
	}
	for _, c := range best {
		r.Plans = append(r.Plans, c.Plan)
	}
	r.Floor = s.floor()
	first := r.Plans[0].Modelled
	r.Bound = min(r.Bound, first)
	r.Gap = (first - r.Bound) / first
	for _, p := range r.Plans[1:] {
		p.Why = why(r.Plans[0], p)
	}
	return r
}

// floor is what the products of the step take at the peak rate of all devices: no text that computes them takes less, whatever it
// divides, exchanges and fuses.
func (s *search) floor() float64 {
	t := 0.0
	for _, n := range s.nodes {
		if !isContraction(n) || n.fused == 0 {
			continue
		}
		e := n.o.Operands[0].Elem()
		if n.product != nil && n.product.attention == nil {
			e = n.product.Elem
		}
		if peak := s.target.Peak(true, e); peak > 0 {
			t += n.flop * float64(s.layers.times(n.layer)) / peak / float64(s.o.Devices)
		}
	}
	return t
}

// rounded is a time of which differences below a thousandth do not count.
func rounded(t float64) float64 { return math.Round(math.Log(t) * 1000) }

// complexity is by how many axes, and ways to run, a plan is more than the simplest one.
func (c *candidate) complexity() int {
	n := 0
	if c.whole {
		return n
	}
	n += c.set.several()
	if c.set.pipe > 1 {
		n++
	}
	if c.Recompute != None {
		n++
	}
	return n
}

// name is what plans of the table differ in.
func (c *candidate) name() string {
	if c.whole {
		return "nothing is divided"
	}
	return fmt.Sprint(c.set.form.of, c.set.axes, c.set.pipe, c.Chunks, c.Schedule, c.Recompute)
}

// key is what plans differ in that are kept until they are ranked.
func (c *candidate) key() string { return fmt.Sprint(c.name(), c.other) }
