package present

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"dmir/analysis/machine"
	"dmir/analysis/plan"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// A step of a model of 7e9 parameters in plans with and without a pipeline, and one plan that is
// as fast as none of them needs to be explained.
func result(devices int) *plan.Result {
	scale := 64 / float64(devices)
	pipe := &plan.Plan{
		Axes:   []plan.Axis{{Name: "pipe", Size: 2}, {Name: "data", Size: devices / 8}, {Name: "tensor", Size: 4}},
		Names:  []string{fmt.Sprintf("pipe 2 × data %d × tensor 4", devices/8), "optimizer states split over data (ZeRO-1)", "sequence split between norms"},
		Stages: []plan.Stage{{Line: 12, Layers: 16, Forward: 2e-3, Backward: 4e-3, Transfer: 1e-5, Once: 1e-2, Memory: 61e9}, {Line: 80, Layers: 16, Forward: 2.1e-3, Backward: 4.2e-3, Once: 1e-2, Memory: 55e9}},
		Chunks: 1, Microbatches: 16, Schedule: "1f1b", Recompute: "selective",
		Time: 0.35 * scale, Modelled: 0.35 * scale, Compute: 0.28 * scale, Exposed: 0.02 * scale, Bubble: 0.06, Tokens: 1048576 / (0.35 * scale), MFU: 0.523,
		Memory: plan.Memory{Parameters: 3e9, Gradients: 6e9, States: 12e9, Activations: 35e9, Working: 5e9, Total: 61e9},
		Sent:   map[string]int64{"data": 4e9, "tensor": 9e9},
	}
	flat := &plan.Plan{
		Axes: []plan.Axis{{Name: "data", Size: devices / 4}, {Name: "tensor", Size: 4}}, Names: []string{fmt.Sprintf("data %d × tensor 4", devices/4)},
		Stages: []plan.Stage{{Line: 12, Layers: 32, Memory: 70e9}}, Chunks: 1, Microbatches: 1, Recompute: "full",
		Time: 0.37 * scale, Compute: 0.33 * scale, Exposed: 0.04 * scale, Tokens: 1048576 / (0.37 * scale), MFU: 0.495,
		Memory: plan.Memory{Parameters: 3e9, Gradients: 6e9, States: 12e9, Activations: 44e9, Working: 5e9, Total: 70e9},
		Sent:   map[string]int64{"data": 4e9, "tensor": 18e9},
	}
	return &plan.Result{
		Function: "step", Target: "dgx-h100", Devices: devices, Limit: 80e9, Model: plan.Model{Parameters: 6_738_000_000, FLOP: 42_000_000_000_000_000, Samples: 256, Tokens: 1048576, Layers: 32},
		Plans: []*plan.Plan{pipe, flat}, Searched: 1234, Bound: 0.34 * scale, Gap: 0.01 / 0.35,
	}
}

func dgx(t *testing.T) *machine.Machine {
	m, ok := machine.Lookup("dgx-h100")
	if !ok {
		t.Fatal("no machine")
	}
	return m
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.ReplaceAll(string(want), "\r\n", "\n"), got); diff != "" {
		t.Errorf("%s:\n%s", name, diff)
	}
}

func points() []Point {
	var out []Point
	for _, n := range []int{8, 16, 32, 64} {
		out = append(out, Point{Devices: n, Result: result(n)})
	}
	out[0] = Point{Devices: 8, Err: &plan.Error{Code: plan.CodeMemory, Msg: "no plan fits", Help: "use more devices"}}
	return out
}

func TestTables(t *testing.T) {
	m := dgx(t)
	for name, draw := range map[string]func(*bytes.Buffer, Options){
		"table":   func(b *bytes.Buffer, o Options) { Table(b, m, result(64), o) },
		"explain": func(b *bytes.Buffer, o Options) { Explain(b, result(64), o) },
		"sweep":   func(b *bytes.Buffer, o Options) { Sweep(b, m, points(), o) },
	} {
		for _, width := range []int{0, 120, 60} {
			var b bytes.Buffer
			draw(&b, Options{Width: width})
			golden(t, fmt.Sprintf("%s-%d.txt", name, width), b.String())
			for line := range strings.Lines(b.String()) {
				if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); width == 120 && n > width && !strings.HasPrefix(line, "@") {
					t.Errorf("%s: %d characters: %s", name, n, line)
				}
			}
		}
	}
}

// The batch is said where other arguments may have been meant.
func TestBatch(t *testing.T) {
	for _, c := range []struct {
		batch, whole []string
		want         string
	}{
		{[]string{"%x"}, nil, ""},
		{[]string{"%x", "%y (dimension 1)"}, []string{"%mask"}, "the samples are those of %x and %y (dimension 1), and all share %mask; --batch NAMES names others"},
		{nil, []string{"%a", "%b", "%c", "%d", "%e"}, "none was found; if one of %a, %b, %c and 2 more has samples, name it with --batch"},
	} {
		if got := Batch(&plan.Result{Model: plan.Model{Batch: c.batch, Whole: c.whole}}); got != c.want {
			t.Errorf("%v, %v: %q", c.batch, c.whole, got)
		}
	}
}

// Why a loop has no stages is said where the step goes back through it itself.
func TestStages(t *testing.T) {
	for layers, want := range map[int]string{0: "", 8: "none, since the step goes back through its loop of 8 layers itself"} {
		if got := Stages(&plan.Result{Model: plan.Model{Backward: layers}}); !strings.HasPrefix(got, want) || (got == "") != (want == "") {
			t.Errorf("%d layers: %q", layers, got)
		}
	}
}

// The shares of the time add up to it, whatever a planner states.
func TestShares(t *testing.T) {
	for _, p := range result(64).Plans {
		sum := 0.0
		for _, s := range shares {
			sum += s.of(p)
		}
		if d := sum - p.Time; d < -1e-12 || d > 1e-12 {
			t.Errorf("%s: shares of %g in %g", Sentence(p), sum, p.Time)
		}
	}
}

// The planner's own reason comes first, and without one the term that grows most.
func TestReason(t *testing.T) {
	r := result(64)
	var b bytes.Buffer
	Explain(&b, r, Options{})
	if want := "plan 2 loses: its compute takes 50.0 ms more\n"; !strings.Contains(b.String(), want) {
		t.Errorf("not %q in\n%s", want, &b)
	}
	b.Reset()
	r.Plans[1].Why = "the layer in line 12 sends twice as much"
	Explain(&b, r, Options{})
	if !strings.Contains(b.String(), r.Plans[1].Why) {
		t.Errorf("not the planner's reason in\n%s", &b)
	}
}

func TestJSON(t *testing.T) {
	text, err := json.Marshal(points())
	if err != nil {
		t.Fatal(err)
	}
	var got []struct {
		Devices int
		Error   *struct{ Code, Message, Help string }
		Plans   []plan.Plan
	}
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if len(got) != 4 || got[0].Error == nil || *got[0].Error != struct{ Code, Message, Help string }{plan.CodeMemory, "no plan fits", "use more devices"} {
		t.Errorf("got %s", text)
	}
	if got[0].Devices != 8 || got[3].Devices != 64 || got[3].Error != nil || got[3].Plans[0].Time != 0.35 {
		t.Errorf("got %s", text)
	}
}

// Names from a program have no effect on a terminal.
func TestHostile(t *testing.T) {
	bad := "<script>\x1b[2J\n"
	r := result(64)
	r.Function, r.Plans[0].Names, r.Plans[1].Why = bad, []string{bad}, bad
	var b bytes.Buffer
	Table(&b, dgx(t), r, Options{})
	Explain(&b, r, Options{})
	Sweep(&b, dgx(t), []Point{{Devices: 64, Result: r}, {Devices: 8, Err: &plan.Error{Msg: bad}}}, Options{})
	if strings.Contains(b.String(), "\x1b") {
		t.Errorf("an escape sequence in\n%q", &b)
	}
}

// Every chart draws, for all counts and values that sweeps can have.
func FuzzChart(f *testing.F) {
	f.Add(8, 16, 1.0, 0.5, 80)
	f.Add(1, 4096, 1e-9, 1e9, 0)
	f.Add(3, 4, 1.0, 1.0, 1)
	f.Fuzz(func(t *testing.T, a, b int, x, y float64, width int) {
		if a < 1 || b <= a || !(x > 1e-12) || !(y > 1e-12) || x > 1e15 || y > 1e15 || a > 1<<40 || b > 1<<40 {
			t.Skip("no chart: two counts in order and values above 0")
		}
		c := chart{title: "t", show: seconds, slope: -1}
		c.add(a, x)
		c.add(b, y)
		var out bytes.Buffer
		c.text(&out, Options{Width: width})
		if n := strings.Count(out.String(), "●"); n != 2 {
			t.Errorf("%d points in\n%s", n, &out)
		}
	})
}
