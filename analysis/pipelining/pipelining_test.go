package pipelining

import (
	"errors"
	"math"
	"strings"
	"testing"
)

// even is the times of stages that are all the same.
func even(sh Shape, forward, backward, weight float64) Times {
	n := sh.Stages()
	t := Times{Forward: make([]float64, n), Backward: make([]float64, n), Weight: make([]float64, n)}
	for s := range n {
		t.Forward[s], t.Backward[s], t.Weight[s] = forward, backward, weight
	}
	return t
}

// simulated is the timeline of the order of a schedule.
func simulated(t *testing.T, s Schedule, sh Shape, times Times, mem Memory) *Timeline {
	t.Helper()
	order, err := Order(s, sh)
	if err != nil {
		t.Fatalf("%s %+v: %v", s, sh, err)
	}
	tl, err := Simulate(order, s, sh, times, mem)
	if err != nil {
		t.Fatalf("%s %+v: %v\n%s", s, sh, err, Text(order))
	}
	return tl
}

// The orders as the papers draw them.
func TestOrdersOfThePapers(t *testing.T) {
	for _, c := range []struct {
		s    Schedule
		sh   Shape
		want string
	}{
		{GPipe, Shape{2, 1, 3}, `
device 0: F0 F1 F2 B0 B1 B2
device 1: F0 F1 F2 B0 B1 B2
`},
		{OneFOneB, Shape{3, 1, 4}, `
device 0: F0 F1 F2 B0 F3 B1 B2 B3
device 1: F0 F1 B0 F2 B1 F3 B2 B3
device 2: F0 B0 F1 B1 F2 B2 F3 B3
`},
		{OneFOneB, Shape{4, 1, 2}, `
device 0: F0 F1 B0 B1
device 1: F0 F1 B0 B1
device 2: F0 F1 B0 B1
device 3: F0 B0 F1 B1
`},
		{Interleaved, Shape{2, 2, 4}, `
device 0: 0F0 0F1 2F0 2F1 0F2 2B0 0F3 2B1 2F2 0B0 2F3 0B1 2B2 2B3 0B2 0B3
device 1: 1F0 1F1 3F0 3B0 3F1 3B1 1F2 1B0 1F3 1B1 3F2 3B2 3F3 3B3 1B2 1B3
`},
		{ZBH1, Shape{3, 1, 4}, `
device 0: F0 F1 F2 B0 W0 F3 B1 W1 B2 W2 B3 W3
device 1: F0 F1 B0 F2 B1 W0 F3 B2 W1 B3 W2 W3
device 2: F0 B0 F1 B1 F2 B2 W0 F3 B3 W1 W2 W3
`},
		{ZBV, Shape{2, 2, 3}, `
device 0: 0F0 0F1 0F2 3F0 3B0 3W0 3F1 3B1 3W1 0B0 0W0 3F2 3B2 3W2 0B1 0W1 0B2 0W2
device 1: 1F0 2F0 1F1 2F1 2B0 2W0 1F2 1B0 1W0 2F2 2B1 2W1 1B1 2B2 1B2 1W1 2W2 1W2
`},
	} {
		order, err := Order(c.s, c.sh)
		if err != nil {
			t.Fatal(err)
		}
		if got := Text(order); got != strings.TrimPrefix(c.want, "\n") {
			t.Errorf("%s %+v:\n%swant%s", c.s, c.sh, got, c.want)
		}
	}
}

// With equal stages, the simulation and the closed forms of the papers agree: the time of the step, the
// bubble of the device that waits longest, and the activations that each device holds.
func TestClosedForms(t *testing.T) {
	tasks := [][3]float64{{1, 1, 1}, {1, 2, 0}, {1, 1.5, 0.5}, {2, 1, 1}, {1, 1, 2}, {0.5, 1.5, 1}, {1.5, 1, 1.25}}
	compared := map[Schedule]int{}
	for _, s := range Schedules {
		for p := 1; p <= 8; p++ {
			for m := 1; m <= 4*p; m++ {
				for v := 1; v <= 4; v++ {
					sh := Shape{p, v, m}
					if Check(s, sh) != nil {
						continue
					}
					for _, f := range tasks {
						times := even(sh, f[0], f[1], f[2])
						tl := simulated(t, s, sh, times, Memory{})
						most := 0
						for d, lane := range tl.Devices {
							limit := InFlight(s, sh, d)
							if lane.InFlight > limit || !s.Split() && lane.InFlight != limit {
								t.Fatalf("%s %+v: device %d holds %d, not %d", s, sh, d, lane.InFlight, limit)
							}
							most = max(most, lane.InFlight)
						}
						if f == tasks[0] && m >= p && most != InFlight(s, sh, 0) {
							t.Fatalf("%s %+v: devices hold %d at most, not %d", s, sh, most, InFlight(s, sh, 0))
						}
						bubble, ok := Bubble(s, sh, f[0], f[1], f[2])
						if !ok {
							continue
						}
						compared[s]++
						work := float64(m*v) * (f[0] + f[1] + f[2])
						if want := work * (1 + bubble); math.Abs(tl.Total-want) > 1e-9*want {
							t.Fatalf("%s %+v %v: %v, not %v", s, sh, f, tl.Total, want)
						}
						if want := bubble * work / tl.Total; math.Abs(tl.MaxBubble-want) > 1e-9 {
							t.Fatalf("%s %+v %v: the largest bubble is %v, not %v", s, sh, f, tl.MaxBubble, want)
						}
					}
				}
			}
		}
	}
	for _, s := range Schedules {
		if compared[s] < 100 {
			t.Errorf("%s: compared %d times only", s, compared[s])
		}
	}
}

// Figures that the papers state in words.
func TestFigures(t *testing.T) {
	sh := Shape{4, 1, 8}
	of := func(s Schedule, sh Shape) float64 {
		b, ok := Bubble(s, sh, 1, 1, 1)
		if !ok {
			t.Fatalf("%s has no closed form for %+v", s, sh)
		}
		return b
	}
	if a, b := of(OneFOneB, sh), of(ZBH1, sh); math.Abs(a-3*b) > 1e-12 {
		t.Errorf("the bubble of ZB-H1 is %v, not a third of %v", b, a)
	}
	if a, b := of(OneFOneB, sh), of(Interleaved, Shape{4, 2, 8}); math.Abs(a-2*b) > 1e-12 {
		t.Errorf("the bubble with two chunks is %v, not half of %v", b, a)
	}
	// Between its first and its last task no device of ZB-V waits.
	tl := simulated(t, ZBV, Shape{4, 2, 8}, even(Shape{4, 2, 8}, 1, 1, 1), Memory{})
	for d, lane := range tl.Devices {
		if gap := lane.Idle - lane.Spans[0].Start; gap != 0 {
			t.Errorf("device %d of ZB-V waits %v after its first task", d, gap)
		}
	}
	for _, c := range []struct {
		s       Schedule
		sh      Shape
		f, b, w float64
	}{
		{ZBV, Shape{4, 2, 8}, 1, 2, 1},
		{ZBH1, Shape{4, 1, 3}, 1, 1, 1},
		{Interleaved, Shape{4, 2, 3}, 1, 1, 1},
		{GPipe, Shape{0, 1, 1}, 1, 1, 1},
		{GPipe, Shape{1, 1, 1}, 0, 0, 0},
	} {
		if b, ok := Bubble(c.s, c.sh, c.f, c.b, c.w); ok {
			t.Errorf("%s %+v has a closed form, %v", c.s, c.sh, b)
		}
	}
}

func TestStagesOnDevices(t *testing.T) {
	for _, s := range Schedules {
		for p := 1; p <= 5; p++ {
			for v := 1; v <= 3; v++ {
				sh := Shape{p, v, 1}
				if Check(s, sh) != nil {
					continue
				}
				seen := map[int]bool{}
				for d := range p {
					for _, stage := range StagesOf(s, sh, d) {
						if Device(s, sh, stage) != d || seen[stage] || stage < 0 || stage >= sh.Stages() {
							t.Errorf("%s %+v: stage %d of device %d is on device %d", s, sh, stage, d, Device(s, sh, stage))
						}
						seen[stage] = true
					}
				}
				if len(seen) != sh.Stages() {
					t.Errorf("%s %+v: %d stages of %d lie on devices", s, sh, len(seen), sh.Stages())
				}
			}
		}
	}
	if d := Device(ZBV, Shape{4, 2, 1}, 5); d != 2 {
		t.Errorf("stage 5 of a V of 4 devices is on device %d, not 2", d)
	}
}

func TestErrors(t *testing.T) {
	ok := Shape{2, 1, 2}
	for _, c := range []struct {
		s         Schedule
		sh        Shape
		t         Times
		msg, help string
	}{
		{"1f2b", ok, Times{}, `no schedule "1f2b"`, "zb-v"},
		{GPipe, Shape{0, 1, 1}, Times{}, "0 devices", "at least 1"},
		{GPipe, Shape{1, 1, 0}, Times{}, "0 micro-batches", "at least 1"},
		{GPipe, Shape{1, 0, 1}, Times{}, "0 stages", "at least 1"},
		{OneFOneB, Shape{2, 2, 1}, Times{}, "1 stage on each device, not 2", `"interleaved"`},
		{ZBV, Shape{3, 1, 1}, Times{}, "2 stages on each device, not 1", "into 6 stages"},
		{GPipe, Shape{math.MaxInt, 1, math.MaxInt}, Times{}, "more than", "fewer"},
		{Interleaved, Shape{1 << 20, 1 << 20, 1 << 40}, Times{}, "more than", "fewer"},
		{GPipe, ok, Times{Forward: []float64{1}}, "Times.Forward has 1 entries, not 2", "one time"},
		{GPipe, ok, Times{Transfer: []float64{1, 1, 1}}, "Times.Transfer has 3 entries, not 1", "one time"},
		{GPipe, ok, Times{Weight: []float64{1, math.NaN()}}, "Times.Weight[1] is NaN", "finite time of 0 or more"},
		{GPipe, ok, Times{Once: []float64{-1, 1}}, "Times.Once[0] is -1", "finite time of 0 or more"},
		{GPipe, ok, Times{Bytes: make([]int64, 3)}, "Times.Bytes has 3 entries, not 1", "one size"},
	} {
		_, err := Estimate(c.s, c.sh, c.t)
		var e *Error
		if !errors.As(err, &e) || !strings.Contains(e.Msg, c.msg) || !strings.Contains(e.Help, c.help) {
			t.Errorf("%q %+v: %#v, want %q and %q", c.s, c.sh, err, c.msg, c.help)
		}
		if _, second := Simulate(nil, c.s, c.sh, c.t, Memory{}); second == nil || second.Error() != err.Error() {
			t.Errorf("Simulate reports %v, not %v", second, err)
		}
		if _, third := Order(c.s, c.sh); Check(c.s, c.sh) != nil && (third == nil || third.Error() != err.Error()) {
			t.Errorf("Order reports %v, not %v", third, err)
		}
	}
}

func TestOrdersThatAreNotOnes(t *testing.T) {
	sh := Shape{2, 1, 2}
	f, b, w := Forward, Backward, Weight
	good := [][]Task{{{0, 0, f}, {0, 1, f}, {0, 0, b}, {0, 1, b}}, {{1, 0, f}, {1, 0, b}, {1, 1, f}, {1, 1, b}}}
	if _, err := Simulate(good, OneFOneB, sh, Times{}, Memory{}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		order [][]Task
		mem   Memory
		want  string
	}{
		{good[:1], Memory{}, "1 devices for a pipeline of 2"},
		{[][]Task{good[1], good[0]}, Memory{}, "device 0 has the task 1F0, whose stage is on device 1"},
		{[][]Task{good[0], good[1][:3]}, Memory{}, "7 tasks of 8"},
		{[][]Task{good[0], append(good[1][:3:3], Task{1, 0, b})}, Memory{}, "the task 1B0 twice"},
		{[][]Task{good[0], append(good[1][:3:3], Task{1, 0, w})}, Memory{}, "no task 1W0 in 1f1b"},
		{[][]Task{good[0], append(good[1][:3:3], Task{1, 2, b})}, Memory{}, "no task 1B2"},
		{[][]Task{good[0], append(good[1][:3:3], Task{1, 0, 7})}, Memory{}, "no task 1Kind(7)0"},
		{good, Memory{Kept: []int64{1}}, "Memory.Kept has 1 entries, not 2"},
		// Each device begins with what the other one must do first.
		{
			[][]Task{{{0, 0, b}, {0, 0, f}, {0, 1, f}, {0, 1, b}}, good[1]},
			Memory{},
			"cannot go on: device 0 has 0B0, which waits for 0F0, device 1 has 1F0, which waits for 0F0",
		},
		{
			[][]Task{{{0, 0, f}, {0, 0, b}, {0, 1, f}, {0, 1, b}}, {{1, 0, f}, {1, 1, f}, {1, 0, b}, {1, 1, b}}},
			Memory{},
			"cannot go on: device 0 has 0B0, which waits for 1B0, device 1 has 1F1, which waits for 0F1",
		},
	} {
		_, err := Simulate(c.order, OneFOneB, sh, Times{}, c.mem)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}

// A pipeline of two stages, by hand: transfers of 2 run beside computation, and wait for each other on a link.
func TestTransfers(t *testing.T) {
	sh := Shape{2, 1, 2}
	times := Times{
		Forward: []float64{1, 1}, Backward: []float64{1, 1}, Weight: []float64{1, 1},
		Transfer: []float64{2}, Bytes: []int64{7}, Once: []float64{5, 1},
	}
	tl := simulated(t, OneFOneB, sh, times, Memory{Activations: []int64{10, 4}, Base: []int64{100, 200}})
	// Device 0: F0 0–1, F1 1–2; sends F0 1–3, F1 3–5. Device 1: F0 3–4, B0 4–6, F1 6–7, B1 7–9; sends B0
	// 6–8, B1 9–11. Device 0: B0 8–10, B1 11–13, once 13–18.
	spans := func(d int) (all []float64) {
		for _, s := range tl.Devices[d].Spans {
			all = append(all, s.Start, s.End)
		}
		return all
	}
	equal := func(what string, got, want []float64) {
		t.Helper()
		if len(got) != len(want) {
			t.Fatalf("%s: %v, want %v", what, got, want)
		}
		for i := range got {
			if got[i] != want[i] {
				t.Errorf("%s: %v, want %v", what, got, want)
				return
			}
		}
	}
	equal("device 0", spans(0), []float64{0, 1, 1, 2, 8, 10, 11, 13})
	equal("device 1", spans(1), []float64{3, 4, 4, 6, 6, 7, 7, 9})
	var sends []float64
	for _, from := range []int{0, 1} {
		for _, s := range tl.Sends {
			if s.From == from {
				sends = append(sends, s.Start, s.End)
			}
			if s.Bytes != 7 || s.To != 1-s.From {
				t.Errorf("%+v", s)
			}
		}
	}
	equal("sends", sends, []float64{1, 3, 3, 5, 6, 8, 9, 11})
	a, b := tl.Devices[0], tl.Devices[1]
	equal("idle, exposed", []float64{a.Idle, a.Exposed, b.Idle, b.Exposed}, []float64{7, 3, 3, 2})
	equal("once, total", []float64{a.Once.Start, a.Once.End, b.Once.End, tl.Total}, []float64{13, 18, 10, 18})
	equal("bubble", []float64{a.Bubble, b.Bubble, tl.Bubble, tl.MaxBubble}, []float64{7. / 18, 3. / 18, 5. / 18, 7. / 18})
	if a.Peak != 120 || b.Peak != 204 || tl.Peak() != 204 || a.InFlight != 2 || b.InFlight != 1 {
		t.Errorf("peak %d and %d, in flight %d and %d", a.Peak, b.Peak, a.InFlight, b.InFlight)
	}
}
