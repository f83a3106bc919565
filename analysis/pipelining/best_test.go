package pipelining

import (
	"bytes"
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// A model of 8 layers on 4 devices, whose activations take 10 for a layer and micro-batch.
func options(m int) []Option {
	var all []Option
	for _, s := range Schedules {
		for _, v := range []int{1, 2} {
			sh := Shape{4, v, m}
			if Check(s, sh) != nil {
				continue
			}
			layers := float64(8 / sh.Stages())
			o := Option{Schedule: s, Shape: sh, Times: even(sh, layers, layers, layers)}
			for range sh.Stages() {
				o.Memory.Activations = append(o.Memory.Activations, int64(10*layers))
				o.Memory.Kept = append(o.Memory.Kept, int64(10*layers))
			}
			all = append(all, o)
		}
	}
	return all
}

func TestBest(t *testing.T) {
	names := func(choices []Choice) string {
		var b []string
		for _, c := range choices {
			name := string(c.Option.Schedule)
			if c.Option.Shape.Chunks > 1 && c.Option.Schedule == Interleaved {
				name += "/2"
			}
			if !c.Fits {
				name = "(" + name + ")"
			}
			b = append(b, name)
		}
		return strings.Join(b, " ")
	}
	// ZB-V wastes least and holds as much as 1F1B.
	choices := Best(options(16), 0)
	if got := names(choices); got != "zb-v zb-h1 interleaved/2 gpipe 1f1b interleaved" {
		t.Errorf("without a limit: %s", got)
	}
	if c := choices[0]; c.Why != "" || c.Timeline.Total != 16*6+3 || c.Order == nil || c.Index != 5 {
		t.Errorf("the best: %q, %v", c.Why, c.Timeline.Total)
	}
	if c := choices[1]; c.Timeline != nil || c.Why != "takes at least 1.03 times as long as the best" {
		t.Errorf("the second: %q", c.Why)
	}
	// Within 4 micro-batches (80) GPipe does not fit, nor interleaved with two stages on a device.
	choices = Best([]Option{options(16)[0], options(16)[1], options(16)[3]}, 80)
	if got := names(choices); got != "1f1b (interleaved/2) (gpipe)" {
		t.Errorf("with a limit: %s", got)
	}
	choices = Best(options(16)[:1], 80)
	if c := choices[0]; c.Fits || c.Why != "a device holds 320, which is 240 more than the limit" {
		t.Errorf("none fits: %v, %q", c.Fits, c.Why)
	}
	bad := Option{Schedule: ZBV, Shape: Shape{4, 1, 2}}
	short := options(16)[0]
	short.Memory.Base = []int64{1}
	choices = Best([]Option{bad, short, options(16)[0]}, 0)
	if choices[0].Err != nil || choices[0].Index != 2 || choices[1].Err == nil || choices[2].Err == nil || choices[2].Why == "" {
		t.Errorf("with impossible ones: %+v", choices)
	}
	if got := Best(nil, 0); len(got) != 0 {
		t.Errorf("of nothing: %v", got)
	}
}

// Best agrees with trying all options.
func TestBestOfRandom(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for range 200 {
		var list []Option
		for range 1 + r.IntN(6) {
			c := random(r)
			list = append(list, Option{c.s, c.sh, c.t, c.mem})
		}
		limit := r.Int64N(2000)
		least := math.Inf(1)
		for _, o := range list {
			if tl := simulated(t, o.Schedule, o.Shape, o.Times, o.Memory); limit == 0 || tl.Peak() <= limit {
				least = min(least, tl.Total)
			}
		}
		choices := Best(list, limit)
		if len(choices) != len(list) {
			t.Fatalf("%d choices of %d options", len(choices), len(list))
		}
		first := choices[0]
		if math.IsInf(least, 1) != !first.Fits || first.Fits && first.Timeline.Total != least {
			t.Fatalf("the best is %+v, but the least time is %v", first, least)
		}
		for i, c := range choices[1:] {
			if c.Why == "" || c.Fits && c.time() < least {
				t.Fatalf("choice %d: %q, %v", i+1, c.Why, c.time())
			}
		}
	}
}

// The JSON of a timeline has all of its tasks and sends, in columns of one length.
func TestJSON(t *testing.T) {
	sh := Shape{2, 2, 3}
	times := even(sh, 0.1, 0.2, 1./3)
	times.Transfer = []float64{0.01, 0.01, 0.01}
	times.Bytes = []int64{4, 5, 6}
	times.Once = []float64{1, 2}
	tl := simulated(t, ZBV, sh, times, Memory{Activations: []int64{1, 2, 3, 4}})
	text, err := json.Marshal(tl)
	if err != nil {
		t.Fatal(err)
	}
	type columns struct {
		Kind  string    `json:"kind"`
		Stage []int     `json:"stage"`
		Micro []int     `json:"microbatch"`
		Start []float64 `json:"start_s"`
		End   []float64 `json:"end_s"`
	}
	var got struct {
		Schedule Schedule `json:"schedule"`
		Devices  int      `json:"devices"`
		Chunks   int      `json:"chunks"`
		Micro    int      `json:"microbatches"`
		Total    float64  `json:"total_s"`
		Lanes    []struct {
			Stages  []int   `json:"stages"`
			Tasks   columns `json:"tasks"`
			OnceEnd float64 `json:"once_end_s"`
			Peak    int64   `json:"peak_bytes"`
		} `json:"lanes"`
		Sends struct {
			columns
			From  []int   `json:"from"`
			To    []int   `json:"to"`
			Bytes []int64 `json:"bytes"`
		} `json:"sends"`
	}
	d := json.NewDecoder(bytes.NewReader(text))
	if err := d.Decode(&got); err != nil {
		t.Fatal(err)
	}
	if got.Schedule != ZBV || (Shape{got.Devices, got.Chunks, got.Micro}) != sh || got.Total != tl.Total {
		t.Errorf("%s", text)
	}
	near := func(a, b float64) bool { return math.Abs(a-b) <= 1e-6*math.Abs(b) }
	for d, lane := range tl.Devices {
		c := got.Lanes[d].Tasks
		if len(c.Kind) != len(lane.Spans) || got.Lanes[d].OnceEnd != lane.Once.End || got.Lanes[d].Peak != lane.Peak {
			t.Fatalf("device %d: %s", d, text)
		}
		if !slices.Equal(got.Lanes[d].Stages, []int{d, 3 - d}) {
			t.Errorf("device %d has the stages %v", d, got.Lanes[d].Stages)
		}
		for i, s := range lane.Spans {
			if c.Kind[i:i+1] != s.Task.Kind.String() || c.Stage[i] != s.Task.Stage || c.Micro[i] != s.Task.Micro ||
				!near(c.Start[i], s.Start) || !near(c.End[i], s.End) {
				t.Fatalf("device %d, task %d of %s", d, i, text)
			}
		}
	}
	for i, s := range tl.Sends {
		c := got.Sends
		if c.Kind[i:i+1] != s.Task.Kind.String() || c.Stage[i] != s.Task.Stage || c.From[i] != s.From || c.To[i] != s.To ||
			c.Bytes[i] != s.Bytes || !near(c.End[i], s.End) {
			t.Fatalf("send %d of %s", i, text)
		}
	}
	one, err := json.Marshal(simulated(t, GPipe, Shape{1, 1, 1}, Times{}, Memory{}))
	if err != nil || strings.Contains(string(one), "null") {
		t.Errorf("a list without entries: %s (%v)", one, err)
	}
}

// A pipeline of the size of a large cluster: 64 devices and 512 micro-batches.
func BenchmarkLarge(b *testing.B) {
	for _, s := range Schedules {
		b.Run(string(s), func(b *testing.B) {
			sh := Shape{64, 1, 512}
			if s == ZBV || s == Interleaved {
				sh.Chunks = 2
			}
			times := even(sh, 1, 1.1, 0.8)
			for i := range times.Forward {
				times.Forward[i] += float64(i*7%11) * 0.03
			}
			for b.Loop() {
				order, err := Order(s, sh)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := Simulate(order, s, sh, times, Memory{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
