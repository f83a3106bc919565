package planned

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"dmir/analysis/cost"
	"dmir/analysis/machine"
	"dmir/analysis/pipelining"
	planner "dmir/analysis/plan"
	"dmir/analysis/plan/request"
	"dmir/analysis/program"
	"dmir/syntax/source"
	"dmir/testkit/need"
	"dmir/testkit/randprog"
)

// compared are the steps and clusters of a run of all.
const compared = 200

// The figures of each row of a table are those that the text of its plan has when it is costed by itself, and the rows are in the
// order of their time.
func TestRowsCostWhatTheirTextsDo(t *testing.T) {
	clusters := []string{"dgx-h100", "dgx-a100"}
	schedules := []pipelining.Schedule{pipelining.OneFOneB, pipelining.GPipe, pipelining.ZBH1, pipelining.ZBV}
	for i := range compared {
		if !need.Turn(t, i, 20) {
			continue
		}
		r := rand.New(rand.NewPCG(uint64(i), 33))
		text := randprog.Step(r)
		cluster, _ := machine.Lookup(clusters[i%2])
		devices := []int{2, 2, 4, 4, 4, 8, 8, 16}[r.IntN(8)]
		var fix planner.Setting
		switch r.IntN(4) {
		case 0:
			fix.Pipe, fix.Microbatches, fix.Schedule = 2, 4, string(schedules[r.IntN(len(schedules))])
		case 1:
			fix.Tensor, fix.Pipe = 2, 1
		case 2:
			fix.Pipe, fix.Microbatches = 1, 1
		}
		t.Run(fmt.Sprintf("%d on %d %s %+v", i, devices, cluster.Name, fix), func(t *testing.T) {
			p := program.Load(source.New("step.dmir", text), program.Options{Target: cluster, Compiled: Figures})
			if p.HasErrors() {
				t.Fatalf("%v\n%s", p.Diags, text)
			}
			q, err := request.New(p, request.Asked{Devices: devices})
			if err != nil {
				t.Fatal(err)
			}
			q.Options.Top, q.Options.Fix = 3, fix
			found, err := q.Search(t.Context())
			if err != nil && fix.Pipe == 2 { // there are not enough layers for such stages
				q.Options.Fix = planner.Setting{Pipe: 1, Microbatches: 1}
				found, err = q.Search(t.Context())
			}
			if err != nil {
				t.Fatal(err)
			}
			if found.Modelled != "" {
				t.Fatalf("the figures are those of the model: %s\n%s", found.Modelled, text)
			}
			for n, row := range found.Plans {
				compare(t, found, n, row, cluster, 0.1)
			}
			if !slices.IsSortedFunc(found.Plans, func(a, b *planner.Plan) int { return int(1000 * (a.Time - b.Time) / b.Time) }) {
				t.Errorf("the rows are not in the order of their time")
			}
		})
	}
}

// The same of a step on sparse tensors, whose components are arguments of the search and not of the text: whole on each device, and
// divided by rows.
func TestSparseRowsCostWhatTheirTextsDo(t *testing.T) {
	text, err := os.ReadFile("../../examples/gcn_train.dmir")
	if err != nil {
		t.Fatal(err)
	}
	cluster, _ := machine.Lookup("dgx-h100")
	for i, devices := range []int{2, 4, 8} {
		if !need.Turn(t, i, 3) {
			continue
		}
		t.Run(fmt.Sprint(devices), func(t *testing.T) {
			p := program.Load(source.New("gcn_train.dmir", string(text)), program.Options{Target: cluster, Compiled: Figures})
			q, err := request.New(p, request.Asked{Devices: devices})
			if err != nil {
				t.Fatal(err)
			}
			found, err := q.Search(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if found.Modelled != "" {
				t.Fatalf("the figures are those of the model: %s", found.Modelled)
			}
			byRows := 0
			for n, row := range found.Plans {
				compare(t, found, n, row, cluster, 0.25) // the search looks at the components, of which kernels fuse fewer
				if strings.Contains(strings.Join(row.Names, "; "), "%adj divided by rows") {
					byRows++
				}
			}
			if byRows == 0 {
				t.Error("no plan divides the graph by rows")
			}
		})
	}
}

// compare costs the text of a row by itself. The model of a step that is not divided, which has the times of its kernels, is
// within such a part of it.
func compare(t *testing.T, found *planner.Result, n int, row *planner.Plan, on *machine.Machine, within float64) {
	t.Helper()
	text, err := found.Write(row)
	if err != nil {
		t.Fatal(err)
	}
	p := program.Load(source.New("planned.dmir", text), program.Options{Target: on})
	if p.HasErrors() {
		t.Fatalf("%v\n%s", p.Diags, text)
	}
	kept.mu.Lock()
	kept.list = nil // what the search found is no answer
	kept.mu.Unlock()
	x, err := Figures(t.Context(), p, p.Func("train").Func, on)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	sent := int64(0)
	for _, bytes := range row.Sent {
		sent += bytes
	}
	near := func(what string, promised, costs float64) {
		if math.Abs(promised-costs) > 0.01*max(promised, costs) {
			t.Errorf("row %d, %v: %s is %g in the table, and that of its text %g\n%s", n+1, row.Names, what, promised, costs, text)
		}
	}
	near("time", row.Time, x.Time.Ns/1e9)
	near("memory", float64(row.Memory.Total), float64(peak(x)))
	near("sent", float64(sent), float64(*x.Sent))
	parts := row.Memory
	if parts.Parameters+parts.Gradients+parts.States+parts.Activations+parts.Working != parts.Total || min(parts.Parameters, parts.Gradients, parts.States, parts.Activations, parts.Working) < 0 {
		t.Errorf("row %d: parts of its memory are not the total: %+v", n+1, parts)
	}
	if strings.Contains(strings.Join(row.Names, " "), "nothing is divided") {
		if *x.Sent != 0 {
			t.Errorf("row %d: nothing is divided, and its text sends %d bytes\n%s", n+1, *x.Sent, text)
		}
		if strings.Contains(strings.Join(row.Names, " "), "micro-batches") {
			within = 0.25 // of micro-batches that of one for all
		}
		if math.Abs(row.Modelled-row.Time) > within*row.Time {
			t.Errorf("row %d: nothing is divided, and the model has %g s, the text %g s", n+1, row.Modelled, row.Time)
		}
	}
	t.Logf("%d: %.6g s, %-44s time %.2f of the model's", n+1, row.Time, strings.Join(row.Names, "; "), row.Time/row.Modelled)
}

func peak(x cost.Figures) int64 {
	n, _ := x.Peaks[0].Int()
	return n
}

// One plan has one row: no two give devices as much to do, to hold and to send, as those that differ in the order of their axes would,
// and as few texts are compiled.
func TestOnePlanHasOneRow(t *testing.T) {
	cluster, _ := machine.Lookup("dgx-h100")
	for i, x := range []struct {
		step           string
		devices        int
		rows, compiled int64
		most           float64 // µs that the first row takes
	}{
		{"gcn_train", 4, 6, 13, 36.5}, {"gcn_train", 8, 7, 12, 36.5}, {"gcn_train", 16, 7, 15, 36.5},
		{"mlp_train", 4, 3, 6, 465}, {"mlp_train", 8, 3, 6, 285}, {"mlp_train", 16, 5, 10, 240},
	} {
		if !need.Turn(t, i, 6) {
			continue
		}
		t.Run(fmt.Sprintf("%s on %d", x.step, x.devices), func(t *testing.T) {
			text, err := os.ReadFile("../../examples/" + x.step + ".dmir")
			if err != nil {
				t.Fatal(err)
			}
			p := program.Load(source.New(x.step+".dmir", string(text)), program.Options{Target: cluster, Compiled: Figures})
			q, err := request.New(p, request.Asked{Devices: x.devices})
			if err != nil {
				t.Fatal(err)
			}
			t.Setenv("DMIR_CACHE", t.TempDir()) // what other tests have left there is not compiled again
			kept.mu.Lock()
			kept.list = nil
			kept.mu.Unlock()
			before := searches.Load()
			found, err := q.Search(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if n := searches.Load() - before; n != x.compiled {
				t.Errorf("%d texts are compiled, not %d", n, x.compiled)
			}
			if n := int64(len(found.Plans)); n != x.rows {
				t.Errorf("%d rows, not %d", n, x.rows)
			}
			first := found.Plans[0]
			if us := first.Time * 1e6; us > x.most {
				t.Errorf("the first row takes %.4g µs, more than %g", us, x.most)
			}
			seen := map[string]int{}
			for n, row := range found.Plans {
				sent := int64(0)
				for _, bytes := range row.Sent {
					sent += bytes
				}
				all := fmt.Sprintf("%.4g s, %d bytes, %d sent, %s, %d chunks", row.Time, row.Memory.Total, sent, row.Schedule, row.Chunks)
				if other := seen[all]; other > 0 {
					t.Errorf("rows %d and %d are one plan: %v, %s", other, n+1, row.Names, all)
				}
				seen[all] = n + 1
				t.Logf("%v %s, %.2f of the model's", row.Names, all, row.Time/row.Modelled)
			}
		})
	}
}
