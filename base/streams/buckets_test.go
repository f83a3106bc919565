package streams

import (
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"dmir/base/work"
)

// latency is what each step of communication takes beside what grows with its size.
const latency = 4

// asOne is how long steps of communication, each of latency and what it sends, take as one.
func asOne(steps []Step) func([]int) float64 {
	return func(members []int) float64 {
		total := float64(latency)
		for _, i := range members {
			total += steps[i].Duration - latency
		}
		return total
	}
}

// kindsOf are 1 for communication.
func kindsOf(steps []Step) []int {
	out := make([]int, len(steps))
	for i, s := range steps {
		if s.Communication {
			out[i] = 1
		}
	}
	return out
}

func bucketed(t *testing.T, steps []Step, kinds []int, counts *work.Counts) (sets [][]int, s, given Schedule) {
	t.Helper()
	var b Bucketed
	given, err := Timeline(steps)
	if err == nil {
		given, err = Hidden(steps, given, nil)
	}
	if err == nil {
		b, err = Buckets(steps, kinds, asOne(steps), given, counts)
	}
	if err != nil {
		t.Fatal(err)
	}
	if b.Order != nil {
		if _, err := Timeline(InOrder(steps, b.Order)); err != nil {
			t.Fatal(err)
		}
	}
	return b.Sets, b.Schedule, given
}

func TestBuckets(t *testing.T) {
	gradients := func(n int, compute1, comm1 float64) (steps []Step) { // each sent when it is there
		for range n {
			at := len(steps)
			after := []int{}
			if at > 0 {
				after = []int{at - 2}
			}
			steps = append(steps, compute(compute1, after...), comm(comm1, at))
		}
		return steps
	}
	critical := []Step{ // what is computed needs each at once
		compute(5), comm(5, 0), compute(5, 1), comm(5, 2), compute(5, 3),
	}
	crossed := []Step{ // of two kinds, each second one needs the first of the other
		comm(5), comm(5), compute(1, 0), compute(1, 1), comm(5, 3), comm(5, 2),
	}
	loop := []Step{comm(5), comm(5), alone(2), comm(5), comm(5)}
	for _, c := range []struct {
		name  string
		steps []Step
		kinds []int
		want  [][]int
		total float64
	}{
		{"all at once behind the last", gradients(4, 1, 5), nil, [][]int{{1, 3, 5, 7}}, 12},
		{"hidden but for the last", gradients(4, 6, 5), nil, nil, 29},
		{"what stands in the queue", gradients(3, 4, 12), nil, [][]int{{3, 5}}, 36},
		{"one behind the other", critical, nil, nil, 25},
		{"of two kinds", []Step{comm(5), comm(5), comm(5), comm(5)}, []int{1, 2, 1, 2}, [][]int{{0, 2}, {1, 3}}, 12},
		{"each needs the other kind", crossed, []int{1, 2, 0, 0, 1, 2}, [][]int{{0, 4}}, 18},
		{"not around a loop", loop, nil, [][]int{{0, 1}, {3, 4}}, 14},
		{"not over a barrier", []Step{comm(5), comm(5), comm(5), comm(5)}, []int{1, 1, Barrier, 1}, [][]int{{0, 1}}, 16},
		{"of no kind", []Step{comm(5), comm(5)}, []int{0, 0}, nil, 10},
	} {
		kinds := c.kinds
		if kinds == nil {
			kinds = kindsOf(c.steps)
		}
		sets, s, given := bucketed(t, c.steps, kinds, nil)
		if !slices.EqualFunc(sets, c.want, slices.Equal) || s.Total != c.total {
			t.Errorf("%s: %v in %v, want %v in %v; %v by themselves", c.name, sets, s.Total, c.want, c.total, given.Total)
		}
	}
}

// Of random steps no bucket has a step that needs another of it, all steps run once what they wait for has ended, and none of
// the programs takes longer.
func TestBucketsOfRandomSteps(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	found, faster := 0, 0
	for range 2000 {
		n := 2 + r.IntN(40)
		steps, kinds := make([]Step, n), make([]int, n)
		for i := range steps {
			steps[i] = Step{Communication: r.IntN(2) == 0, Duration: latency + float64(r.IntN(9))}
			if steps[i].Communication {
				kinds[i] = r.IntN(4) - 1
			} else {
				steps[i].Alone = r.IntN(20) == 0
			}
			for range r.IntN(3) {
				if d := r.IntN(i + 1); d < i && !slices.Contains(steps[i].After, d) {
					steps[i].After = append(steps[i].After, d)
				}
			}
		}
		sets, s, given := bucketed(t, steps, kinds, nil)
		if s.Total > given.Total {
			t.Fatalf("%v in place of %v", s.Total, given.Total)
		}
		if found += len(sets); s.Total < given.Total {
			faster++
		}
		of := make([]int, n)
		for i := range of {
			of[i] = -1
		}
		ends := make([]float64, n)
		for i := range ends {
			ends[i] = s.Spans[i].End
		}
		for k, set := range sets {
			for _, i := range set {
				if of[i] >= 0 || kinds[i] != kinds[set[0]] || kinds[i] <= 0 {
					t.Fatalf("%v of the kinds %v", sets, kinds)
				}
				of[i] = k
				ends[i] = s.Spans[set[len(set)-1]].End
			}
		}
		for i := range steps {
			start := s.Spans[i].Start
			if k := of[i]; k >= 0 {
				start = s.Spans[sets[k][0]].Start
			}
			for _, d := range steps[i].After {
				if ends[d] > start+1e-9 || of[d] >= 0 && of[d] == of[i] {
					t.Fatalf("step %d begins at %v, and step %d, which it uses, ends at %v: %v", i, start, d, ends[d], sets)
				}
			}
		}
	}
	if t.Logf("%d buckets in 2,000 programs, %d of which are faster", found, faster); faster < 200 {
		t.Error("few programs are faster")
	}
}

// What is visited grows with the steps, times their logarithm.
func TestBucketsOfManySteps(t *testing.T) {
	visits := func(layers int) int {
		var steps []Step
		for i := range layers {
			at := len(steps)
			var after []int
			if i > 0 {
				after = []int{at - 3}
			}
			steps = append(steps, compute(2, after...), comm(5, at), comm(5, at))
		}
		kinds := make([]int, len(steps))
		for i := range kinds {
			kinds[i] = i % 3
		}
		var counts work.Counts
		if sets, _, _ := bucketed(t, steps, kinds, &counts); len(sets) == 0 {
			t.Fatal("no bucket")
		}
		return counts.Take()["buckets"]
	}
	each := func(layers int) int { return visits(layers) / layers / bits.Len(uint(3*layers)) }
	if few, many := each(50), each(1600); many > few+few/4 || few == 0 {
		t.Errorf("%d visits for each layer and bit of their number, of 32 times as many %d", few, many)
	}
}
