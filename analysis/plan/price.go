package plan

import (
	"cmp"
	"context"
	"errors"
	"math"
	"runtime"
	"slices"

	"dmir/analysis/cost"
	"dmir/base/parallel"
	"dmir/dialect/budget"
)

// A Price gives the figures of a file in which a plan is written: of the step as it is compiled for the cluster.
type Price func(ctx context.Context, text string) (cost.Figures, error)

// mostPriced bounds the ops of the texts that are priced in any case, micro-batches written out, and mostMore how many there are
// before more are.
const (
	mostPriced = 2500
	mostMore   = 1000
)

// group is how many texts are priced at a time behind those that are shown.
const group = 4

// rank is the plans that are shown, the best one first. The search's model chooses which texts are written and priced: the
// first ones by its time, and further ones until none that is left would take less than the best one if its text took as much
// less, or as little more, than by the model as any that was priced. why says why the figures are those of the model, "" where
// they are those of the texts.
func (s *search) rank(ctx context.Context, progress func(done, total int)) (best []*candidate, why string) {
	all := s.distinct()
	n := min(s.shown(), len(all))
	first := min(s.kept(), len(all)) // how many are priced before it is asked whether these are enough
	for first > n && s.work(all[:first]) > mostPriced {
		first--
	}
	switch {
	case s.o.Price == nil:
		why = cmp.Or(s.o.Unpriced, "texts are not compiled here")
	case s.late():
		why = "the time of the search was spent"
	case s.work(all[:first]) > mostPriced:
		why = "the step is too long to be compiled for each plan"
	}
	if why != "" {
		for _, c := range all[:n] {
			s.finish(c)
		}
		return all[:n], why
	}
	if i := slices.IndexFunc(all, func(c *candidate) bool { return c.whole }); i >= first {
		// Whether dividing gains anything shows beside the plan that divides nothing.
		c := all[i]
		all = slices.Insert(slices.Delete(all, i, i+1), first, c)
		first++
	}
	ratio, done := math.Inf(1), 0
	try := func(next []*candidate) {
		failed := make([]error, len(next))
		for _, c := range next {
			s.finish(c)
		}
		parallel.Each(runtime.GOMAXPROCS(0), len(next), func(i int) { failed[i] = s.price(ctx, next[i].Plan) })
		for i, c := range next {
			if failed[i] != nil {
				why = failed[i].Error()
				continue
			}
			if lacks := float64(c.Memory.Total) - s.memory; lacks > 0 {
				if lacks < s.least.bytes {
					s.least = shortage{bytes: lacks, setting: c.set}
				}
				continue
			}
			best = append(best, c)
			ratio = min(ratio, c.Time/c.Modelled)
		}
		done += len(next)
		slices.SortStableFunc(best, before)
		progress(done, len(all))
	}
	if len(all) == 0 {
		return nil, ""
	}
	try(all[:first])
	left := mostMore - s.work(all[:first])
	for more := all[first:]; len(more) > 0; {
		next := more[:min(len(more), group)]
		if left -= s.work(next); left < 0 || len(best) > 0 && next[0].Modelled*ratio >= best[0].Time {
			break
		}
		try(next)
		more = more[len(next):]
	}
	if len(best) == 0 && why != "" {
		return all[:n], why // they are among those that were finished
	}
	seen := map[string]bool{}
	best = slices.DeleteFunc(best, func(c *candidate) bool {
		name := c.name()
		again := seen[name]
		seen[name] = true
		return again
	})
	if best = onePerPlan(best); len(best) > 0 {
		best[0] = s.leaner(ctx, best[0])
	}
	return best[:min(n, len(best))], ""
}

// leaner is c, or, where that takes less, c with a text that leaves it to propagation how gradients are divided.
func (s *search) leaner(ctx context.Context, c *candidate) *candidate {
	if !c.gradients {
		return c
	}
	p, d := *c.Plan, *c
	d.Plan = &p
	w := newWriter(s, &d)
	w.leave = true
	d.writes(w)
	if s.price(ctx, d.Plan) != nil || d.Time >= c.Time || float64(d.Memory.Total) > s.memory {
		return c
	}
	return &d
}

var errUnknown = errors.New("its figures are not known")

// work is the ops of the texts of plans.
func (s *search) work(list []*candidate) int {
	ops, all := budget.SizesOf(s.module).Of(s.text), 0
	for _, c := range list {
		all += ops * c.Microbatches
	}
	return all
}

// distinct are the plans that differ in more than the number of micro-batches and the names of axes, in the order of their time.
func (s *search) distinct() []*candidate {
	slices.SortStableFunc(s.found, before)
	var out []*candidate
	seen := map[string]bool{}
	for _, c := range s.found {
		if !seen[c.key()] {
			seen[c.key()] = true
			out = append(out, c)
		}
	}
	return onePerPlan(out)
}

// before is the order of plans: of those that take as long the simpler one is the first.
func before(a, b *candidate) int {
	return cmp.Or(cmp.Compare(rounded(a.Time), rounded(b.Time)), cmp.Compare(a.complexity(), b.complexity()), cmp.Compare(a.Time, b.Time),
		cmp.Compare(a.Memory.Total, b.Memory.Total), cmp.Compare(a.Microbatches, b.Microbatches), cmp.Compare(a.key(), b.key()))
}

// price gives p the figures of its text.
func (s *search) price(ctx context.Context, p *Plan) error {
	x, err := s.o.Price(ctx, written(s.module.Src, p.Edits()))
	if err != nil {
		return err
	}
	if !x.Time.Known || x.Sent == nil || len(x.Peaks) != 1 {
		return errUnknown
	}
	peak, ok := x.Peaks[0].Int()
	if !ok {
		return errUnknown
	}
	p.Time = x.Time.Ns / 1e9
	p.Compute, p.Exposed, p.Bubble = (x.Time.Ns-x.ExposedNs)/1e9, x.ExposedNs/1e9, 0
	if len(x.Stages) > 0 { // what is not computed is waited for, be it another stage or what devices exchange
		busy := 0.0
		for _, stage := range x.Stages {
			busy = max(busy, stage.BusyNs)
		}
		p.Compute, p.Exposed, p.Bubble = busy/1e9, 0, 1-busy/x.Time.Ns
	}
	p.Sent = map[string]int64{}
	for _, along := range x.Along {
		p.Sent[along.Axes] += along.Bytes
	}
	p.Memory.become(peak)
	s.rates(p)
	return nil
}

// become gives m the total of the text. Parameters and states lie there as in the model; activations, gradients and what
// ops work with have the rest, in the ratio that they have in the model.
func (m *Memory) become(total int64) {
	kept := min(m.Parameters+m.States, total)
	scale := func(parts []*int64, to int64) {
		sum := int64(0)
		for _, p := range parts {
			sum += *p
		}
		left := to
		for i, p := range parts {
			if sum == 0 || i == len(parts)-1 {
				*p, left = left, 0
				continue
			}
			*p = int64(float64(*p) / float64(sum) * float64(to))
			left -= *p
		}
	}
	scale([]*int64{&m.Parameters, &m.States}, kept)
	scale([]*int64{&m.Gradients, &m.Activations, &m.Working}, total-kept)
	m.Total = total
}
