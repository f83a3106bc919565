package feature_test

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dmir/analysis/cost"
	"dmir/analysis/diff"
	"dmir/analysis/machine"
	"dmir/analysis/program"
	"dmir/analysis/report"
	"dmir/analysis/units"
	"dmir/lsp/feature"
	"dmir/syntax/source"
)

// All views of a program show the same totals: lens, table, JSON, hover, every panel and both sides of a
// comparison with itself; of a divided function those of each device, and of the undivided function where it is asked for.
func TestViewsAgree(t *testing.T) {
	for _, name := range []string{"ffn", "lstm_train", "mlp_megatron", "mlp_accumulate", "llama_fsdp"} {
		text, err := os.ReadFile(filepath.Join("../../examples", name+".dmir"))
		if err != nil {
			t.Fatal(err)
		}
		for _, target := range []string{"h200", "hgx-h200"} {
			t.Run(name+"/"+target, func(t *testing.T) {
				m, _ := machine.Lookup(target)
				p := program.Load(source.New(name+".dmir", string(text)), program.Options{Target: m})
				for _, f := range p.Funcs {
					if !f.Func.Private && len(f.Unbound()) == 0 {
						agree(t, p, f)
					}
				}
			})
		}
	}
}

func agree(t *testing.T, p *program.Program, f *cost.Func) {
	t.Helper()
	name := f.Func.Name
	each := f.PerDevice()
	ns, moved, peak := each.Time(p.Target).Ns, each.Moved(), each.Peak()
	near := func(what string, got, want float64) {
		if math.Abs(got-want) > 1e-6*math.Abs(want)+2 {
			t.Errorf("@%s: %s is %v, want %v", name, what, got, want)
		}
	}
	bytes, _ := moved.Int()
	held, _ := peak.Int()

	kept := new(feature.Kept)
	lens := feature.Totals(p, kept, name)
	for _, part := range []string{units.Time(ns), units.DimBytes(moved)} {
		if !strings.Contains(lens, part) {
			t.Errorf("@%s: the lens %q has no %q", name, lens, part)
		}
	}
	var table strings.Builder
	if err := cost.Table(&table, p.Target, []*cost.Func{f}, cost.TableOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"moved      " + units.DimBytes(moved), "peak       " + units.DimBytes(peak)} {
		if !strings.Contains(table.String(), part) {
			t.Errorf("@%s: the table has no %q\n%s", name, part, table.String())
		}
	}
	r := cost.JSON(p.Target, []*cost.Func{f}).Functions[0]
	near("time in JSON", float64(*r.TimeNs), ns)
	near("bytes in JSON", float64(*r.Moved), float64(bytes))
	near("peak in JSON", float64(*r.Peak), float64(held))
	if h := feature.HoverAt(p, p.Names(), f.Func.Op.Head.Start+1, false); h == nil || !strings.Contains(h.Text, units.DimBytes(moved)) || !strings.Contains(h.Text, units.Time(ns)) {
		t.Errorf("@%s: the hover has other totals", name)
	}

	for _, kind := range report.KindsOf(p, name) {
		d, err := report.Build(p, kind, name, report.Options{Both: true})
		if err != nil {
			t.Fatal(err)
		}
		panel(t, d, ns, bytes, held)
		text, err := report.JSON(d)
		if err != nil {
			t.Fatal(err)
		}
		var back report.Data
		if err := json.Unmarshal(text, &back); err != nil {
			t.Fatal(err)
		}
		panel(t, back, ns, bytes, held)
		if divided, _ := f.Divide(); divided == nil || kind == report.KindMesh || kind == report.KindTimeline {
			continue
		}
		if d.Undivided == nil || d.Devices == nil || !d.Devices.Each || d.Undivided.Devices.Each {
			t.Fatalf("@%s: the %s does not say what it is of: %+v", name, kind, d.Devices)
		}
		all, _ := f.Moved().Int()
		high, _ := f.Peak().Int()
		panel(t, *d.Undivided, f.Time(p.Target).Ns, all, high)
	}

	for _, x := range diff.Programs(p, p) {
		if x.New.Func != f.Func {
			continue
		}
		if n, _ := x.New.Moved().Int(); n != bytes {
			t.Errorf("@%s: the comparison moves %d, want %d", name, n, bytes)
		}
	}
}

// panel compares the totals of a panel, and what its parts add up to, with those given.
func panel(t *testing.T, d report.Data, ns float64, bytes, held int64) {
	t.Helper()
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-3*math.Abs(want)+float64(d.Totals.Ops) { // each part is rounded
			t.Errorf("@%s: %s of the %s is %v, want %v", d.Function, what, d.Kind, got, want)
		}
	}
	near("the time", float64(*d.Totals.TimeNs), ns)
	if *d.Totals.Moved != bytes || *d.Totals.Peak != held {
		t.Errorf("@%s: %s shows %d bytes, peak %d; want %d, %d", d.Function, d.Kind, *d.Totals.Moved, *d.Totals.Peak, bytes, held)
	}
	switch d.Kind {
	case report.KindRoofline:
		var sum int64
		for _, x := range append(d.Roofline.Dots, d.Roofline.Rest...) {
			if x.Moved != nil {
				sum += *x.Moved * x.Runs
			}
		}
		near("the sum of bytes", float64(sum), float64(bytes))
	case report.KindMemory:
		if d.Memory.Bound != held {
			t.Errorf("@%s: the memory holds %d, want %d", d.Function, d.Memory.Bound, held)
		}
	case report.KindTimeline:
		near("the end", float64(d.Timeline.TimeNs), ns)
	case report.KindGraph:
		var sum int64
		for _, n := range d.Graph.Nodes {
			if n.Parent < 0 && n.Moved != nil {
				sum += *n.Moved
			}
		}
		near("the sum of bytes", float64(sum), float64(bytes))
	}
}
