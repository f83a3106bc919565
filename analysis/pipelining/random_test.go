package pipelining

import (
	"cmp"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

type trial struct {
	s   Schedule
	sh  Shape
	t   Times
	mem Memory
}

// random is a pipeline with any times, some of which are zero.
func random(r *rand.Rand) trial {
	for {
		c := trial{s: Schedules[r.IntN(len(Schedules))], sh: Shape{1 + r.IntN(8), 1 + r.IntN(4), 1 + r.IntN(30)}}
		if Check(c.s, c.sh) != nil {
			continue
		}
		c.t = randomTimes(r, c.sh)
		n := c.sh.Stages()
		for range n {
			a := r.Int64N(100)
			c.mem.Activations, c.mem.Kept = append(c.mem.Activations, a), append(c.mem.Kept, r.Int64N(a+1))
		}
		return c
	}
}

func randomTimes(r *rand.Rand, sh Shape) Times {
	list := func(size int, scale float64) []float64 {
		if r.IntN(8) == 0 {
			return nil
		}
		out := make([]float64, size)
		spread := r.Float64()
		for i := range out {
			out[i] = scale * (1 - spread*r.Float64())
		}
		return out
	}
	n := sh.Stages()
	return Times{
		Forward: list(n, 1), Backward: list(n, 1.5*r.Float64()), Weight: list(n, 1.5*r.Float64()),
		Transfer: list(n-1, r.Float64()), Once: list(sh.Devices, 3),
	}
}

// Whatever the times are, an order has each task once, on its device, and within the memory of its
// schedule; its timeline keeps what tasks need; no bound is above it, and with other times the order takes no less than
// the chain that it waited for.
func TestRandomPipelines(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 1500 {
		c := random(r)
		order, err := Order(c.s, c.sh)
		if err != nil {
			t.Fatalf("%+v: %v", c, err)
		}
		tl, err := Simulate(order, c.s, c.sh, c.t, c.mem)
		if err != nil {
			t.Fatalf("%+v: %v", c, err)
		}
		check(t, c, tl)
		bound, err := Estimate(c.s, c.sh, c.t)
		if err != nil || bound > tl.Total*(1+1e-9) {
			t.Fatalf("%+v: bound %v (%v), but it takes %v", c, bound, err, tl.Total)
		}
		chain := tl.Chain()
		if takes := chain.of(c); math.Abs(takes-tl.Total) > 1e-9*tl.Total {
			t.Fatalf("%+v: the chain %+v takes %v, the step %v", c, chain, takes, tl.Total)
		}
		other := randomTimes(r, c.sh)
		slow, err := Simulate(order, c.s, c.sh, other, c.mem)
		if err != nil {
			t.Fatalf("%+v: %v", c, err)
		}
		if takes := chain.of(trial{c.s, c.sh, other, c.mem}); takes > slow.Total*(1+1e-9) {
			t.Fatalf("%+v: with the times %+v the chain %+v takes %v, the step %v", c, other, chain, takes, slow.Total)
		}
		for d, lane := range tl.Devices {
			if lane.InFlight > InFlight(c.s, c.sh, d) {
				t.Fatalf("%+v: device %d holds %d micro-batches, not %d", c, d, lane.InFlight, InFlight(c.s, c.sh, d))
			}
		}
	}
}

// of is what a chain takes with the times of a trial.
func (x Chain) of(c trial) float64 {
	takes := at(c.t.Once, x.Device)
	for stage := range c.sh.Stages() {
		takes += float64(x.Tasks[Forward][stage])*at(c.t.Forward, stage) + float64(x.Tasks[Backward][stage])*at(c.t.Backward, stage)
		weights := x.Tasks[Weight][stage]
		if !c.s.Split() {
			weights = x.Tasks[Backward][stage]
		}
		takes += float64(weights)*at(c.t.Weight, stage) + float64(x.Sends[stage])*at(c.t.Transfer, stage)
	}
	return takes
}

func at(list []float64, i int) float64 {
	if i >= len(list) {
		return 0
	}
	return list[i]
}

// check compares a timeline with the rules that Simulate states, each by another way than its own.
func check(t *testing.T, c trial, tl *Timeline) {
	t.Helper()
	ends := map[Task]Span{}
	total, transfers := 0.0, false
	for d, lane := range tl.Devices {
		free, busy := 0.0, 0.0
		for _, s := range lane.Spans {
			if Device(c.s, c.sh, s.Task.Stage) != d {
				t.Fatalf("%+v: %v is on device %d", c, s.Task, d)
			}
			if _, twice := ends[s.Task]; twice || s.Start < free || s.End < s.Start {
				t.Fatalf("%+v: device %d runs %+v when it is free from %v on (twice: %v)", c, d, s, free, twice)
			}
			ends[s.Task], free = s, s.End
			busy += s.End - s.Start
		}
		if gap := free - busy - lane.Idle; gap > 1e-9 || gap < -1e-9 || lane.Exposed > lane.Idle+1e-9 || lane.Exposed < 0 {
			t.Fatalf("%+v: device %d: idle %v, of which exposed %v; busy %v of %v", c, d, lane.Idle, lane.Exposed, busy, free)
		}
		total = max(total, free+at(c.t.Once, d))
		transfers = transfers || lane.Exposed > 0
		if peak := peakBySweep(c, lane); lane.Peak != peak {
			t.Fatalf("%+v: device %d holds %d, not %d", c, d, lane.Peak, peak)
		}
	}
	kinds := 2
	if c.s.Split() {
		kinds = 3
	}
	if len(ends) != kinds*c.sh.Stages()*c.sh.Micro {
		t.Fatalf("%+v: %d tasks of %d", c, len(ends), kinds*c.sh.Stages()*c.sh.Micro)
	}
	if tl.Total != total {
		t.Fatalf("%+v: the step takes %v, its devices %v", c, tl.Total, total)
	}
	if c.t.Transfer == nil && transfers {
		t.Fatalf("%+v: transfers take no time and are exposed", c)
	}
	last := c.sh.Stages() - 1
	for task, s := range ends {
		after := func(stage int, kind Kind) {
			need := ends[Task{stage, task.Micro, kind}].End
			if link := min(stage, task.Stage); stage != task.Stage && Device(c.s, c.sh, stage) != Device(c.s, c.sh, task.Stage) {
				need += at(c.t.Transfer, link)
			}
			if s.Start < need {
				t.Fatalf("%+v: %+v starts before %v, when its %v of stage %d is there", c, s, need, kind, stage)
			}
		}
		switch {
		case task.Kind == Weight:
			after(task.Stage, Backward)
		case task.Kind == Forward && task.Stage > 0:
			after(task.Stage-1, Forward)
		case task.Kind == Backward:
			after(task.Stage, Forward)
			if task.Stage < last {
				after(task.Stage+1, Backward)
			}
		}
	}
	links := map[[2]int][]Send{}
	for _, s := range tl.Sends {
		links[[2]int{s.From, s.To}] = append(links[[2]int{s.From, s.To}], s)
		if s.Start < ends[s.Task].End {
			t.Fatalf("%+v: %+v is sent before it is made", c, s)
		}
	}
	for _, list := range links {
		for i := 1; i < len(list); i++ {
			if list[i].Start < list[i-1].End {
				t.Fatalf("%+v: %+v and %+v are on one link", c, list[i-1], list[i])
			}
		}
	}
}

// peakBySweep is the most that a device holds, from the times alone.
func peakBySweep(c trial, lane Lane) (peak int64) {
	type change struct {
		at    float64
		place int // in the order of the device: what ends frees memory before what starts takes it
		by    int64
	}
	var changes []change
	for i, s := range lane.Spans {
		a, k := c.mem.Activations[s.Task.Stage], c.mem.Kept[s.Task.Stage]
		switch {
		case s.Task.Kind == Forward:
			changes = append(changes, change{s.Start, 2 * i, a})
		case s.Task.Kind == Weight:
			changes = append(changes, change{s.End, 2*i + 1, -k})
		case c.s.Split():
			changes = append(changes, change{s.End, 2*i + 1, k - a})
		default:
			changes = append(changes, change{s.End, 2*i + 1, -a})
		}
	}
	slices.SortFunc(changes, func(x, y change) int { return cmp.Or(cmp.Compare(x.at, y.at), x.place-y.place) })
	var held int64
	for _, ch := range changes {
		held += ch.by
		peak = max(peak, held)
	}
	if held != 0 {
		return -1
	}
	return peak
}

// Any order of the right tasks is played to its end or reported as stuck.
func TestShuffledOrders(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	stuck, played := 0, 0
	for range 1000 {
		c := random(r)
		c.sh.Micro = min(c.sh.Micro, 4)
		order, err := Order(c.s, c.sh)
		if err != nil {
			t.Fatal(err)
		}
		list := order[r.IntN(len(order))]
		for range 1 + r.IntN(2) {
			i := r.IntN(len(list))
			j := max(0, i-1)
			list[i], list[j] = list[j], list[i]
		}
		tl, err := Simulate(order, c.s, c.sh, c.t, c.mem)
		var s *Stuck
		switch {
		case errors.As(err, &s):
			stuck++
			if len(s.Waits) == 0 {
				t.Fatalf("%+v: stuck, and nothing waits", c)
			}
		case err != nil:
			t.Fatalf("%+v: %v", c, err)
		default:
			played++
			check(t, c, tl)
		}
	}
	if stuck == 0 || played == 0 {
		t.Errorf("%d orders were stuck and %d were not", stuck, played)
	}
}

// FuzzShape gives any sizes and times to everything that takes them.
func FuzzShape(f *testing.F) {
	f.Add("1f1b", 4, 1, 8, 1.0, 2.0)
	f.Add("zb-v", 3, 2, 2, 0.0, 1e299)
	f.Add("interleaved", 1, 7, 3, 1e-300, 5.0)
	f.Add("1f1b", 2, 1, 2, -4.0, 1.0)
	f.Add("", -1, 1<<62, 1<<62, -1.0, 0.0)
	f.Fuzz(func(t *testing.T, name string, p, v, m int, a, b float64) {
		s, sh := Schedule(name), Shape{p, v, m}
		if Check(s, sh) != nil {
			if _, err := Order(s, sh); err == nil {
				t.Fatal("an order of an impossible shape")
			}
			return
		}
		if sh.Stages()*m > 1<<12 {
			t.Skip("large")
		}
		times := even(sh, a, b, a)
		order, err := Order(s, sh)
		if err != nil {
			return
		}
		if _, err := Estimate(s, sh, times); err != nil {
			return // the times are none
		}
		tl, err := Simulate(order, s, sh, times, Memory{})
		if err != nil {
			t.Fatal(err)
		}
		if bound, err := Estimate(s, sh, times); err != nil || bound > tl.Total*(1+1e-9) {
			t.Fatalf("bound %v (%v), time %v", bound, err, tl.Total)
		}
		if _, err := json.Marshal(tl); err != nil {
			t.Fatal(err)
		}
	})
}
