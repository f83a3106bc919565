package schedule

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sort"
	"strings"

	"dmir/analysis/cost"
	"dmir/analysis/machine"
	"dmir/analysis/units"
	"dmir/compile/pass"
	"dmir/dialect/dim"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// Order is the pass "schedule": it finds an order of the steps with low peak
// memory, preferring the order of the text where that is as low; assigns
// streams and waits; and recomputes values where the function has a dm.max_peak
// that no order meets.
//
// On one stream the order does not change the time, so memory decides. A second
// stream is used only if the machine model predicts that it saves time, and if
// the peak stays below that of the order of the text or below the size of the
// last-level cache: then memory is not the bottleneck.
func Order() pass.Pass {
	return pass.Pass{
		Name:    "schedule",
		Summary: "order the kernels for low memory, put them on streams, recompute values under dm.max_peak",
		Run:     order,
	}
}

func order(u *pass.Unit) error {
	body := u.Body()
	if body.Block == nil {
		return pass.Errorf(u.Func.Op, "DM803", "@%s is only declared", u.Func.Name)
	}
	if err := pass.Regions(u, order); err != nil {
		return err
	}
	if !body.IsRegion() {
		sinkState(u.Func)
	}
	g, err := read(body, u.Module, u.Options.Bind)
	if err != nil {
		return err
	}
	t := g.streams() // of an earlier run
	strip(body, StreamAttr, WaitsAttr, OffsetsAttr, ScratchOffsetAttr, WorkspaceAttr, ArgOffsetsAttr)
	m := u.Model()
	ctx := u.Context()
	p := g.problem(true)
	ds := durations(g, u, m)
	for i := range p.tasks {
		p.tasks[i].ns = ds[i].launch + ds[i].busy
	}
	best, _ := p.lowest(ctx, p.textOrder())
	if exact := g.problem(false); exact.peak(best) > exact.peak(p.textOrder()) {
		best = p.textOrder() // better only by rounding
	}
	budget, limited, err := maxPeak(body, u.Options.Bind)
	if err != nil {
		return err
	}
	r := newRematerialized(p, best, func(i int) bool { return g.steps[i].op.Name == op.Kernel })
	if _, peak, _ := r.excess(budget); limited && peak > budget {
		if r, err = fit(ctx, g, r, budget); err != nil {
			return err
		}
	}
	var stream []int
	var waits, extra [][]int
	if slices.ContainsFunc(ds, func(d duration) bool { return d.sends }) {
		allowed := max(m.Memory, m.L2)
		if limited {
			allowed = budget
		}
		found, err := overlapped(g, r, ds, allowed, u.Work)
		if err != nil {
			return pass.Errorf(body.Func.Op, "DM843", "%v", err)
		}
		r, stream, waits, extra = found.rematerialized, found.stream, found.waits, found.extra
	} else {
		stream, waits = parallel(p, r, ds, t, m, budget, limited)
	}
	estimate(body, held(r, stream, waits))
	ops := apply(g, r)
	if slices.Max(append(stream, 0)) > 0 { // in the new order other updates may be in place, and wait for readers
		if g, err = read(body, u.Module, u.Options.Bind); err != nil {
			return err
		}
		now := g.problem(true)
		waits = waitsFor(now, now.textOrder(), stream, extra)
	}
	for k, o := range ops {
		o.SetAttr(StreamAttr, types.Int{V: int64(stream[k])})
		if len(waits[k]) > 0 {
			o.SetAttr(WaitsAttr, op.IntList(waits[k]...))
		}
	}
	return ctx.Err()
}

// maxPeak is the memory budget of b: regions have none of their own.
func maxPeak(b pass.Body, bind map[string]int64) (bytes int64, limited bool, err error) {
	if b.IsRegion() {
		return 0, false, nil
	}
	fn := b.Func
	limits, errs := cost.ParseBudget(fn)
	for _, e := range errs {
		if strings.HasPrefix(e.Error(), cost.MaxPeak) {
			return 0, false, pass.Errorf(fn.Op, "DM842", "%s", e)
		}
	}
	env := dim.Consts(op.Bindings(fn, bind))
	for _, l := range limits {
		if l.Attr != cost.MaxPeak || l.Written {
			continue
		}
		n, ok := l.At.Subst(env).Int()
		if !ok {
			return 0, false, pass.Errorf(fn.Op, "DM801", "%s depends on %s", cost.MaxPeak, strings.Join(l.At.Subst(env).Symbols(), ", "))
		}
		return n, true, nil
	}
	return 0, false, nil
}

// fit recomputes values and reorders until no step holds more than budget.
func fit(ctx context.Context, g *model, r *rematerialized, budget int64) (*rematerialized, error) {
	r = r.fit(ctx, budget)
	if _, peak, top := r.excess(budget); peak > budget {
		return nil, g.overBudget(r, budget, peak, top)
	}
	return r, nil
}

// overBudget lists the values live at position top of r's order.
func (g *model) overBudget(r *rematerialized, budget, peak int64, top int) error {
	if len(r.order) == 0 {
		return pass.Errorf(g.body.Func.Op, "DM841", "the arguments and constants of @%s take %s, %s more than %s allows",
			g.body.Func.Name, units.Bytes(peak), units.Bytes(peak-budget), cost.MaxPeak)
	}
	m := r.start()
	made := map[int]bool{}
	for _, i := range r.order[:top] {
		m.run(i)
		for _, s := range r.tasks[i].makes {
			made[s] = true
		}
	}
	var temps []*root
	for _, x := range g.roots {
		if !x.persistent() {
			temps = append(temps, x)
		}
	}
	type holder struct {
		name  string
		bytes int64
	}
	var hs []holder
	for s, n := range r.size {
		here := slices.Contains(r.tasks[r.order[top]].makes, s)
		if n > 0 && (here || made[s] && (m.left[s] > 0 || r.kept[s])) {
			hs = append(hs, holder{called(temps[r.from[s]].value), n})
		}
	}
	if r.base > 0 {
		hs = append(hs, holder{"arguments and constants", r.base})
	}
	slices.SortStableFunc(hs, func(a, b holder) int { return cmp.Compare(b.bytes, a.bytes) })
	var names []string
	for _, h := range hs[:min(len(hs), 4)] {
		names = append(names, fmt.Sprintf("%s (%s)", h.name, units.Bytes(h.bytes)))
	}
	if n := len(hs) - len(names); n > 0 {
		names = append(names, fmt.Sprintf("%d more", n))
	}
	at := g.steps[r.origin[r.order[top]]].op
	return pass.Errorf(g.body.Func.Op, "DM841", "@%s holds %s at %s, %s more than %s allows, in the best order and with recomputation: %s",
		g.body.Func.Name, units.Bytes(peak), label(at), units.Bytes(peak-budget), cost.MaxPeak, strings.Join(names, ", "))
}

// parallel are streams for kernels that are too small to fill the machine, where they save time and memory allows it, and
// their waits; t is an earlier run.
func parallel(p *problem, r *rematerialized, ds []duration, t *text, m *machine.Machine, budget int64, limited bool) (stream []int, waits [][]int) {
	each := make([]duration, len(r.tasks))
	for i := range each {
		each[i] = ds[r.origin[i]]
	}
	stream, waits = assignStreams(r.problem, r.order, each)
	if slices.Max(append(stream, 0)) > 0 {
		allowed := held(newRematerialized(p, p.textOrder(), nil), t.stream, t.waits)
		if allowed = max(allowed, m.L2); limited {
			allowed = budget
		}
		if held(r, stream, waits) > allowed {
			stream, waits = make([]int, len(r.order)), make([][]int, len(r.order))
		}
	}
	return stream, waits
}

// held is the most memory that can be live at once when r's steps run on
// streams: at a step, all that may be defined and is not known to be dead. Of each stream that is so
// for the steps of a stretch.
func held(r *rematerialized, stream []int, waits [][]int) (most int64) {
	c := newClock(stream, waits)
	on := make([][]int, c.count) // the steps of each stream
	rank := make([]int, len(stream))
	for k, s := range stream {
		rank[k] = len(on[s])
		on[s] = append(on[s], k)
	}
	grows := make([][]int64, c.count) // by stream and rank: what is live from there on, less what no longer is
	for s := range on {
		grows[s] = make([]int64, len(on[s])+1)
	}
	last := make([]int32, c.count)
	add := func(bytes int64, made int, users []int, kept bool) {
		if bytes == 0 {
			return
		}
		for s := range last {
			last[s] = -1
		}
		last[stream[made]] = int32(made)
		for _, k := range users {
			last[stream[k]] = max(last[stream[k]], int32(k))
		}
		for s, list := range on {
			from, to := 0, len(list)
			if n := c.ended[made][s]; n >= 0 {
				from = rank[n] + 1
			}
			if !kept {
				to = sort.Search(len(list), func(n int) bool {
					for q, k := range last {
						if k > c.ended[list[n]][q] {
							return false
						}
					}
					return true
				})
			}
			if from < to {
				grows[s][from] += bytes
				grows[s][to] -= bytes
			}
		}
	}
	readers := make([][]int, len(r.size))
	for k, i := range r.order {
		for _, s := range r.tasks[i].reads {
			readers[s] = append(readers[s], k)
		}
	}
	for k, i := range r.order {
		add(r.tasks[i].scratch, k, nil, false)
		for _, s := range r.tasks[i].makes {
			add(r.size[s], k, readers[s], r.kept[s])
		}
	}
	for _, list := range grows {
		sum := r.base
		for _, n := range list[:len(list)-1] {
			sum += n
			most = max(most, sum)
		}
	}
	return most
}
