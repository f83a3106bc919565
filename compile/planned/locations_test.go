package planned

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"dmir/analysis/machine"
	"dmir/analysis/program"
	"dmir/dialect/ir"
	"dmir/dialect/loc"
	"dmir/dialect/op"
	"dmir/internal/need"
	"dmir/syntax/source"
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
					c, err := Cost(t.Context(), p, f.Func, target)
					if err != nil {
						t.Logf("@%s: %v", f.Func.Name, err)
						continue
					}
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
