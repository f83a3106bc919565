package plan

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"dmir/analysis/plan/solve"
	"dmir/base/work"
	"dmir/bench/models"
)

// Of most settings the least time of each op alone says that they are not among the best ones.
func TestWorkOfSettings(t *testing.T) {
	m := loadText(t, gpt(t, 12))
	counts := &work.Counts{}
	r, err := Search(t.Context(), m, m.Func("train"), Options{Machine: cluster(t, "dgx-a100"), Devices: 4, Fix: Setting{Recompute: None}, Top: 2, Work: counts})
	if err != nil {
		t.Fatal(err)
	}
	did := counts.Take()
	if did["bounded settings"] == 0 || 2*did["bounded settings"] > r.Searched || did["settings"] > did["bounded settings"] {
		t.Errorf("of %d settings %d are bounded with all ops together, and %d are looked at", r.Searched, did["bounded settings"], did["settings"])
	}
	if did["quickened"] == 0 || did["quickened"] > mostQuickened*did["settings"] || did["chains"] > mostChains*did["bounded settings"] {
		t.Errorf("%d plans of %d settings are made quicker, %d chains of %d are weighed", did["quickened"], did["settings"], did["chains"], did["bounded settings"])
	}
}

// No plan of a setting takes less than the setting's bounds, whatever its schedule and whatever is computed again: neither one that is found,
// nor one in which some op is divided otherwise. Of pipelines the bounds are near. Stages have equally many layers, and where these do not divide, nearly.
func TestBoundsOfSettings(t *testing.T) {
	m := loadText(t, gpt(t, 6))
	counts := &work.Counts{}
	s, err := newSearch(m, m.Func("train"), Options{Machine: cluster(t, "dgx-a100"), Devices: 8, Fix: Setting{Tensor: 2, Context: 1}, Work: counts})
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	s.memory = math.Inf(1)
	filled, tight, pipes := 0, 0, 0
	for _, set := range s.settings() {
		s.apart(&set)
		together := s.optimistic(t.Context(), set, math.Inf(1), false)
		if set.pipe > 1 {
			counts.Take()
			together = max(together, s.optimistic(t.Context(), set, math.Inf(1), true))
			if did := counts.Take()["chains"]; did == 0 || did > mostChains {
				t.Errorf("%d chains", did)
			}
		}
		found, bound, _ := s.look(t.Context(), set)
		check := func(c *candidate) {
			if least := max(bound, set.least, together); c.Time < least*(1-1e-9) {
				t.Errorf("%v × pipe %d, %d micro-batches, %s of %d chunks takes %g; bounds %g, %g and, by op, %g", set.axes, set.pipe, set.micro, c.Schedule, c.Chunks, c.Time, bound, together, set.least)
			}
		}
		best := math.Inf(1)
		for _, c := range found {
			best = min(best, c.Time)
			check(c)
			if set.pipe > 1 && set.filling > 0.01*c.Time {
				filled++
			}
		}
		c := found[0]
		p := c.m.problem(c.load)
		for range 8 {
			choice := slices.Clone(c.choice)
			v := r.IntN(len(choice))
			choice[v] = r.IntN(c.m.vars[v].size())
			if math.IsInf(p.Value(choice), 1) {
				continue
			}
			for _, recompute := range []string{None, Selective, Full} {
				l, again := c.load, set
				l.recompute, again.recompute = recompute, recompute
				others, _ := s.schedule(c.m, l, &solve.Solution{Choice: choice}, again)
				for _, c := range others {
					check(c)
				}
			}
		}
		if set.pipe > 1 {
			pipes++
		}
		if set.pipe > 1 && together > 0.98*best {
			tight++
		}
	}
	if filled == 0 || tight < pipes*3/4 {
		t.Errorf("%d pipelines of %d take time to fill, of %d the bound is near", filled, pipes, tight)
	}
}

// Where a step has fewer samples than there are devices, a third axis along the sequence is found without being asked for, and left out
// where it is asked for one device along it.
func TestThirdAxisIsFound(t *testing.T) {
	text, err := models.Llama(models.Config{Layers: 2, Hidden: 12288, Heads: 96, KVHeads: 8, Vocabulary: 51200, Sequence: 131072, Batch: 16})
	if err != nil {
		t.Fatal(err)
	}
	m := loadText(t, text)
	find := func(fix Setting) *Plan {
		fix.Tensor, fix.Pipe, fix.Microbatches, fix.Recompute = 8, 1, 1, Selective
		r, err := Search(t.Context(), m, m.Func("train"), Options{Machine: cluster(t, "dgx-h100"), Devices: 256, Fix: fix, Top: 1})
		if err != nil {
			t.Fatal(err)
		}
		if r.Gap > 0.02 {
			t.Errorf("%+v: the gap is %g", fix, r.Gap)
		}
		return r.Plans[0]
	}
	three, two := find(Setting{}), find(Setting{Context: 1})
	if want := []Axis{{"data", 16}, {"sequence", 2}, {"tensor", 8}}; !slices.Equal(three.Axes, want) {
		t.Errorf("axes %v; want %v", three.Axes, want)
	}
	if len(two.Axes) != 2 || two.Time < 1.1*three.Time {
		t.Errorf("%v takes %g, %v %g", two.Axes, two.Time, three.Axes, three.Time)
	}
}

// A third axis is looked at where what it divides is there: experts in equal parts, and positions where there is a device for each
// sample of a micro-batch.
func TestSettingsOfThree(t *testing.T) {
	long := func(batch int) string {
		text, err := models.Llama(models.Config{Layers: 2, Hidden: 512, Heads: 8, Vocabulary: 1024, Sequence: 256, Batch: batch})
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	experts := strings.NewReplacer(
		"64x256xf32", "8x6x16x32xf32", "256x256xf32", "6x32x32xf32",
		"dm.matmul %x, %w", `dm.einsum "beci,eij->becj" %x, %w`, "dm.matmul %h, %v", `dm.einsum "beci,eij->becj" %h, %v`,
	).Replace(twoProducts)
	for _, c := range []struct {
		name, text string
		fix        Setting
		want       []string // axes and micro-batches
	}{
		{"neither", twoProducts, Setting{}, nil},
		{"experts", experts, Setting{}, []string{
			"data 4 × expert 2 × tensor 2 / 1", "data 2 × expert 2 × tensor 4 / 1", "data 2 × expert 2 × tensor 4 / 2",
		}},
		{"experts, fixed", experts, Setting{Data: 4}, []string{"data 4 × expert 2 × tensor 2 / 1"}},
		{"experts on one device", experts, Setting{Expert: 1}, nil},
		{"positions", long(4), Setting{Microbatches: 1}, []string{"data 4 × context 2 × tensor 2 / 1"}},
		{"positions, in micro-batches", long(4), Setting{Tensor: 2}, []string{"data 4 × context 2 × tensor 2 / 1", "data 2 × context 4 × tensor 2 / 2"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := loadText(t, c.text)
			c.fix.Pipe = 1
			s, err := newSearch(m, m.Func("train"), Options{Machine: cluster(t, "dgx-h100"), Devices: 16, Fix: c.fix})
			if err != nil {
				t.Fatal(err)
			}
			var have []string
			for _, set := range s.settings() {
				if set.several() == 3 {
					have = append(have, fmt.Sprint(axesText(set.axes), " / ", set.micro))
				}
			}
			if !slices.Equal(have, c.want) {
				t.Errorf("%q; want %q", have, c.want)
			}
		})
	}
}

// Without time the answer is the first plan that is found, and the bound is that of all settings.
func TestLimit(t *testing.T) {
	m := loadText(t, gpt(t, 12))
	counts := &work.Counts{}
	o := Options{Machine: cluster(t, "dgx-a100"), Devices: 4, Fix: Setting{Recompute: None}, Top: 2, Work: counts}
	all, err := Search(t.Context(), m, m.Func("train"), o)
	if err != nil {
		t.Fatal(err)
	}
	did := counts.Take()
	o.Limit = 1
	first, err := Search(t.Context(), m, m.Func("train"), o)
	if err != nil {
		t.Fatal(err)
	}
	if now := counts.Take(); now["settings"] >= did["settings"] {
		t.Errorf("%d settings are looked at without time, %d with all", now["settings"], did["settings"])
	}
	if first.Bound > all.Bound || first.Plans[0].Time < all.Plans[0].Time || first.Searched != all.Searched {
		t.Errorf("without time %g of at least %g, of %d settings; with all %g of at least %g, of %d",
			first.Plans[0].Time, first.Bound, first.Searched, all.Plans[0].Time, all.Bound, all.Searched)
	}
}
