package streams

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func compute(d float64, after ...int) Step { return Step{Duration: d, After: after} }
func comm(d float64, after ...int) Step {
	return Step{Communication: true, Duration: d, After: after}
}

func alone(d float64, after ...int) Step { return Step{Duration: d, After: after, Alone: true} }

func TestTimeline(t *testing.T) {
	for _, c := range []struct {
		name           string
		steps          []Step
		spans          string // start-end and (exposed) of communication
		total, exposed float64
	}{
		{"nothing", nil, "", 0, 0},
		{"computation alone", []Step{compute(2), compute(3)}, "0-2 2-5", 5, 0},
		{"in the way", []Step{compute(2), comm(3, 0), compute(1, 1)}, "0-2 2-5(3) 5-6", 6, 3},
		{"hidden", []Step{compute(2), comm(3, 0), compute(4), compute(1, 1)}, "0-2 2-5 2-6 6-7", 7, 0},
		{"half hidden", []Step{compute(2), comm(3, 0), compute(1), compute(1, 1)}, "0-2 2-5(2) 2-3 5-6", 6, 2},
		{"at the end", []Step{compute(2), comm(3, 0)}, "0-2 2-5(3)", 5, 3},
		{"at the beginning", []Step{comm(3), compute(2, 0)}, "0-3(3) 3-5", 5, 3},
		{"one after the other", []Step{compute(1), comm(2, 0), comm(2, 0), compute(3), compute(1, 2)}, "0-1 1-3 3-5(1) 1-4 5-6", 6, 1},
		// All devices send in the order of the program, whatever is ready first.
		{"in order", []Step{compute(1), compute(4), comm(2, 1), comm(3, 0)}, "0-1 1-5 5-7(2) 7-10(3)", 10, 5},
		{"a loop", []Step{compute(1), comm(3, 0), alone(2), comm(1), compute(4), compute(1, 3)}, "0-1 1-4(3) 4-6 6-7 6-10 10-11", 11, 3},
		{"two loops", []Step{comm(1), alone(2), alone(2), comm(1), compute(2)}, "0-1(1) 1-3 3-5 5-6 5-7", 7, 1},
		{"behind what is ready", []Step{compute(1), comm(5, 0), compute(1), comm(1, 2), compute(1, 3)}, "0-1 1-6(4) 1-2 6-7(1) 7-8", 8, 5},
		{"two gaps in one communication", []Step{comm(2), compute(1), comm(6), compute(1, 0), compute(1, 2)}, "0-2(1) 0-1 2-8(5) 2-3 8-9", 9, 6},
		{"of no duration", []Step{compute(0), comm(0, 0), compute(0, 1)}, "0-0 0-0 0-0", 0, 0},
		{"a chain of communication", []Step{comm(1), comm(2, 0), compute(1, 1)}, "0-1(1) 1-3(2) 3-4", 4, 3},
	} {
		got, err := Timeline(c.steps)
		if err != nil {
			t.Fatal(err)
		}
		var spans []string
		for _, s := range got.Spans {
			text := fmt.Sprintf("%v-%v", s.Start, s.End)
			if s.Exposed > 0 {
				text += fmt.Sprintf("(%v)", s.Exposed)
			}
			spans = append(spans, text)
		}
		if s := strings.Join(spans, " "); s != c.spans || got.Total != c.total || got.Exposed != c.exposed {
			t.Errorf("%s: %s, %v in all, %v exposed; want %s, %v, %v", c.name, s, got.Total, got.Exposed, c.spans, c.total, c.exposed)
		}
	}
}

// What one device sends another waits for, beside its own steps; all end with the last.
func TestTimelines(t *testing.T) {
	link := func(d, i, e, k int) Link { return Link{At{d, i}, At{e, k}} }
	for _, c := range []struct {
		name     string
		programs [][]Step
		links    []Link
		spans    string // of all devices
		total    float64
	}{
		{"nothing", [][]Step{nil, nil}, nil, "| ", 0},
		{"apart", [][]Step{{compute(2)}, {compute(3)}}, nil, "0-2 | 0-3", 3},
		{"one behind the other", [][]Step{{compute(2), comm(1, 0)}, {compute(3)}}, []Link{link(0, 1, 1, 0)}, "0-2 2-3 | 3-6", 6},
		{"back", [][]Step{{compute(2), comm(1, 0), compute(1)}, {compute(3), comm(1, 0)}}, []Link{link(0, 1, 1, 0), link(1, 1, 0, 2)}, "0-2 2-3 7-8 | 3-6 6-7", 8},
		// Two micro-batches: the second is computed while the first travels.
		{"in turn", [][]Step{{compute(2), comm(1, 0), compute(2), comm(1, 2)}, {compute(2), compute(2)}}, []Link{link(0, 1, 1, 0), link(0, 3, 1, 1)}, "0-2 2-3 2-4 4-5 | 3-5 5-7", 7},
		{"to two", [][]Step{{comm(1)}, {compute(1), compute(2)}, {compute(5)}}, []Link{link(0, 0, 1, 1), link(0, 0, 2, 0)}, "0-1 | 0-1 1-3 | 1-6", 6},
	} {
		got, err := Timelines(c.programs, c.links)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		var devices []string
		for _, s := range got {
			var spans []string
			for _, x := range s.Spans {
				spans = append(spans, fmt.Sprintf("%v-%v", x.Start, x.End))
			}
			devices = append(devices, strings.Join(spans, " "))
			if s.Total != c.total {
				t.Errorf("%s: %+v, want %v in all", c.name, s, c.total)
			}
		}
		if s := strings.Join(devices, " | "); strings.TrimSpace(s) != strings.TrimSpace(c.spans) {
			t.Errorf("%s: %s, want %s", c.name, s, c.spans)
		}
	}
	crossed := [][]Step{{compute(1), comm(1, 0)}, {compute(1), comm(1, 0)}}
	if _, err := Timelines(crossed, []Link{link(0, 1, 1, 0), link(1, 1, 0, 0)}); err == nil {
		t.Error("two devices wait for each other, and there is a timeline")
	}
}

func TestBadSteps(t *testing.T) {
	for _, c := range []struct {
		steps []Step
		want  string
	}{
		{[]Step{compute(-1)}, "step 0: a duration of -1 s"},
		{[]Step{compute(math.NaN())}, "step 0: a duration of NaN s"},
		{[]Step{compute(math.Inf(1))}, "step 0: a duration of +Inf s"},
		{[]Step{compute(1), compute(1, 1)}, "step 1 uses the result of step 1, which is no earlier step"},
		{[]Step{compute(1), compute(1, -1)}, "step 1 uses the result of step -1, which is no earlier step"},
	} {
		if _, err := Timeline(c.steps); err == nil || err.Error() != c.want {
			t.Errorf("%v: %v, want %s", c.steps, err, c.want)
		}
	}
}

// naive moves a clock by one and looks at all steps at each tick.
func naive(steps []Step) (spans []Span, exposed int) {
	spans = make([]Span, len(steps))
	done, begun := make([]bool, len(steps)), make([]bool, len(steps))
	ready := func(i int) bool {
		for k := range i {
			if !done[k] && (slices.Contains(steps[i].After, k) || steps[k].Alone || steps[i].Alone) {
				return false
			}
		}
		return true
	}
	for now := 0; slices.Contains(done, false); now++ {
		for i := range steps {
			done[i] = done[i] || begun[i] && spans[i].End <= float64(now)
		}
		var runs, more [2]bool // by stream: a step does; there is one left
		for i, s := range steps {
			lane := 0
			if s.Communication {
				lane = 1
			}
			if done[i] || more[lane] {
				continue
			}
			more[lane] = true
			if !begun[i] && ready(i) {
				begun[i], spans[i] = true, Span{Start: float64(now), End: float64(now) + s.Duration}
			}
			runs[lane] = begun[i]
		}
		if runs[1] && !runs[0] {
			exposed++
		} else if !runs[0] && (more[0] || more[1]) {
			panic("nothing runs")
		}
	}
	return spans, exposed
}

// Random programs run as on a clock that looks at everything. Durations are such that no
// two steps end at the same time, where the two could order communication in two ways.
func TestTimelineAgainstClock(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for trial := range 400 {
		steps := make([]Step, 1+r.IntN(9))
		for i := range steps {
			steps[i] = Step{Communication: r.IntN(2) == 0, Duration: float64(int(1) << i)}
			steps[i].Alone = !steps[i].Communication && r.IntN(8) == 0
			for range r.IntN(3) {
				if i > 0 {
					if d := r.IntN(i); !slices.Contains(steps[i].After, d) {
						steps[i].After = append(steps[i].After, d)
					}
				}
			}
		}
		r.Shuffle(len(steps), func(i, j int) {
			steps[i].Duration, steps[j].Duration = steps[j].Duration, steps[i].Duration
		})
		got, err := Timeline(steps)
		if err != nil {
			t.Fatal(err)
		}
		spans, exposed := naive(steps)
		for i := range spans {
			if g, w := got.Spans[i], spans[i]; g.Start != w.Start || g.End != w.End || got.Exposed != float64(exposed) {
				t.Fatalf("trial %d: %v\n%+v\nwant %v %v", trial, steps, got, spans, exposed)
			}
		}
		if got.Total != got.Compute+got.Exposed {
			t.Fatalf("trial %d: %v is not %v + %v", trial, got.Total, got.Compute, got.Exposed)
		}
	}
}

// A step is looked at once for each step that uses it, however many there are.
func TestTimelineOfManySteps(t *testing.T) {
	const n = 200_000
	steps := make([]Step, 0, 2*n)
	for i := range n {
		steps = append(steps, compute(2), comm(1, 2*i))
	}
	got, err := Timeline(steps)
	if err != nil || got.Total != 2*n+1 || got.Exposed != 1 {
		t.Errorf("%v: %v in all, %v exposed", err, got.Total, got.Exposed)
	}
}
