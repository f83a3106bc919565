package planned

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"dmir/analysis/attribution"
	"dmir/analysis/cost"
	"dmir/analysis/machine"
	"dmir/analysis/program"
	"dmir/dialect/ir"
	"dmir/dialect/loc"
	"dmir/dialect/op"
	"dmir/syntax/source"
	"dmir/testkit/need"
)

// Every pass keeps where ops come from: what a compiled function computes or moves has a location, and each line of the text
// whose op is needed is one of some op's, unless what it does is only another way to see a value.
func TestLocationsStay(t *testing.T) {
	need.Long(t)
	files, err := filepath.Glob("../../examples/*.dmir")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, on := range []string{"h200", "cpu"} {
		target, known := machine.Lookup(on)
		if !known {
			t.Fatal(on)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			t.Run(on+"/"+strings.TrimSuffix(filepath.Base(file), ".dmir"), func(t *testing.T) {
				p := program.Load(source.New(file, string(text)), program.Options{Target: target, Bind: map[string]int64{"n": 256, "b": 4, "l": 256, "s": 256}})
				lines := map[string]*ir.Op{}
				for _, m := range p.Modules {
					ir.Walk(m.Ops, func(o *ir.Op) bool {
						line, _ := m.Src.Human(o.Span.Start)
						o.Loc = loc.At("model.py", line, 1)
						lines[fmt.Sprint(line)] = o
						return true
					})
				}
				for _, f := range p.Funcs {
					if f.Func.Private {
						continue
					}
					addsUp(t, f, target)
					c, err := Cost(t.Context(), p, f.Func, target)
					if err != nil {
						t.Logf("@%s: %v", f.Func.Name, err)
						continue
					}
					addsUp(t, c, target)
					kept := map[int]bool{}
					ir.Walk(c.Func.Body.Ops, func(o *ir.Op) bool {
						parts := loc.Parts(o.Loc)
						for _, part := range parts {
							for _, frame := range loc.TraceOf(part.Loc).Frames {
								kept[frame.Line] = true
							}
						}
						if len(parts) == 0 && !op.Ends(o) && o.Name != op.Constant {
							t.Errorf("@%s: %s has no location", f.Func.Name, o.Name)
						}
						return true
					})
					var lost []string
					for _, e := range f.Entries {
						line := e.Line()
						if n, _ := e.Moved().Int(); n > 0 && !kept[line] && !e.Fused { // the ops in a kernel have lines of their own
							lost = append(lost, fmt.Sprintf("%d %s", line, e.Op.Name))
						}
					}
					if len(lost) > 0 {
						slices.Sort(lost)
						t.Errorf("@%s: lost %s", f.Func.Name, strings.Join(lost, ", "))
					}
				}
			})
		}
	}
}

// addsUp checks that what is due to lines, functions and modules adds up to what JSON says of f, to the byte, the FLOP and the
// nanosecond.
func addsUp(t *testing.T, f *cost.Func, on *machine.Machine) {
	t.Helper()
	x, err := attribution.Of(f, on, nil)
	if err != nil {
		return // sizes are open
	}
	r := cost.JSON(on, []*cost.Func{f}).Functions[0]
	if r.TimeNs == nil || r.FLOP == nil {
		return
	}
	want := cost.Amount{TimeNs: *r.TimeNs, FLOP: *r.FLOP, Read: *r.Read, Written: *r.Written, Sent: x.Total.Sent}
	for _, bytes := range r.Sent {
		want.Sent -= bytes
	}
	if want.Sent != 0 {
		t.Errorf("@%s: %d bytes sent are not those of the report", f.Func.Name, x.Total.Sent)
	}
	want.Sent = x.Total.Sent
	if x.Total != want {
		t.Errorf("@%s: the total is %+v, the report has %+v", f.Func.Name, x.Total, want)
	}
	sources := &attribution.Sources{}
	sources.Look(x)
	for _, by := range []attribution.By{attribution.ByLine, attribution.ByFunction, attribution.ByModule} {
		var sum, phases cost.Amount
		held := x.Given
		for _, row := range x.Rows(by, sources) {
			sum = sum.Plus(row.Amount)
			for _, p := range row.Phases {
				phases = phases.Plus(p)
			}
			held += row.Held
		}
		if sum != want || phases != want {
			t.Errorf("@%s by %s: the rows add up to %+v, their phases to %+v; the total is %+v", f.Func.Name, by, sum, phases, want)
		}
		if x.Held != nil && held != x.Peak {
			t.Errorf("@%s by %s: lines hold %d bytes of %d", f.Func.Name, by, held, x.Peak)
		}
	}
}
