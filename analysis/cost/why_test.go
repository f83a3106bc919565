package cost_test

import (
	"math"
	"path/filepath"
	"testing"

	"dmir/analysis/cost"
	"dmir/analysis/program"
	"dmir/dialect/dim"
	"dmir/dialect/op"
	"dmir/syntax/source"
)

// What explains a number adds up to it: over every op of the registry and every
// example, with and without sizes for the symbols.
func TestExplained(t *testing.T) {
	var programs []*program.Program
	for _, d := range op.All() {
		programs = append(programs, program.Load(source.New(d.Name, d.Example), program.Options{}))
	}
	files, err := filepath.Glob("../../examples/*.dmir")
	if err != nil || len(files) == 0 {
		t.Fatal("no examples", err)
	}
	for _, f := range files {
		programs = append(programs, loadFile(t, f))
	}
	terms, times, factors := 0, 0, 0
	sum := func(ts []cost.Term) (n dim.Dim) {
		for _, x := range ts {
			n = n.Add(x.Bytes)
		}
		return n
	}
	for _, p := range programs {
		m := lookup(t, "h200")
		for _, mod := range p.Modules {
			for _, fn := range mod.Funcs {
				f := p.Cost(fn)
				if f == nil {
					continue
				}
				if got := sum(cost.ExplainMinimum(mod, fn, p.Bind)); !got.Equal(f.Minimum()) {
					t.Errorf("%s: the minimum of @%s is %s, its terms are %s", p.Src.Path, fn.Name, f.Minimum(), got)
				}
				f.Walk(func(e *cost.Entry) {
					why := cost.Explain(mod, fn, p.Bind, e)
					if why.Read != nil || why.Written != nil {
						terms++
						if got := sum(why.Read); !got.Equal(e.Read) {
							t.Errorf("%s: %s reads %s, its terms are %s", p.Src.Path, e.Op.Name, e.Read, got)
						}
						if got := sum(why.Written); !got.Equal(e.Written) {
							t.Errorf("%s: %s writes %s, its terms are %s", p.Src.Path, e.Op.Name, e.Written, got)
						}
					}
					if why.Each > 0 {
						factors++
						if got := why.Over.Scale(why.Each); !got.Equal(e.FLOP) {
							t.Errorf("%s: %s is %s FLOP, explained as %s", p.Src.Path, e.Op.Name, e.FLOP, got)
						}
					}
					if tt, ok := e.TimeTerms(m); ok {
						times++
						if got, want := tt.Ns(), e.Time(m).Ns; math.Abs(got-want) > 1e-9*want {
							t.Errorf("%s: %s takes %v, its terms make %v", p.Src.Path, e.Op.Name, want, got)
						}
					}
				})
			}
		}
	}
	if terms < 100 || times < 100 || factors < 80 {
		t.Errorf("explained: the bytes of %d entries, the time of %d, the FLOP of %d", terms, times, factors)
	}
}

// The waste of a straight function is that of its lines: here an intermediate
// value, written once and read once, and an argument that is read twice, once as
// another shape.
func TestWasteOfLines(t *testing.T) {
	p := load(t, "waste.dmir", `func.func @f(%a: tensor<4x256xf32>, %b: tensor<1024xf32>) -> (tensor<1024xf32>, tensor<1024xf32>) {
  %0 = dm.reshape %a : (tensor<4x256xf32>) -> tensor<1024xf32>
  %1 = dm.exp %0 : tensor<1024xf32>
  %2 = dm.add %0, %1 : tensor<1024xf32>
  %3 = dm.kernel -> tensor<1024xf32> {
    %4 = dm.mul %b, %2 : tensor<1024xf32>
    dm.yield %4 : tensor<1024xf32>
  }
  return %2, %3 : tensor<1024xf32>, tensor<1024xf32>
}
`, program.Options{})
	f := only(t, p)
	w := cost.NewWaster(p.Modules[0], f.Func, nil)
	var all dim.Dim
	for i, want := range []int64{0, 4096, 8192, 4096} {
		got := w.Of(f.Entries[i], 1)
		if n := number(t, got); n != want {
			t.Errorf("line %d wastes %d B, want %d", i+2, n, want)
		}
		all = all.Add(got)
	}
	if !all.Equal(f.Waste()) {
		t.Errorf("the lines waste %s, the function %s", all, f.Waste())
	}
}
