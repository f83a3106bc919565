package attribution

import (
	"testing"

	"dmir/analysis/machine"
	"dmir/analysis/program"
	"dmir/syntax/source"
)

// An op that does the same for the forward and the backward pass, as the compiler makes one of equal ops, follows from no gradient,
// and neither does what the forward pass computes from it. What the step computes from gradients is its update.
func TestPhases(t *testing.T) {
	const text = `!x = tensor<64x64xf32>
func.func @step(%x: !x, %w: !x) -> (!x, !x) {
  %e = dm.exp %x : !x loc(fused["e"("net.py":1:0), "transpose(loss)/e"("net.py":1:0)])
  %y = dm.matmul %e, %w : (!x, !x) -> !x loc("y"("net.py":2:0))
  %d = dm.matmul %e, %y : (!x, !x) -> !x loc("transpose(loss)/y"("net.py":3:0))
  %n = dm.sub %w, %d : !x loc("n"("net.py":4:0))
  return %y, %n : !x, !x
}
`
	m, _ := machine.Lookup("h200")
	p := program.Load(source.New("step.dmir", text), program.Options{Target: m})
	if p.HasErrors() {
		t.Fatal(p.Diags)
	}
	f, err := Of(p.Funcs[0], m, nil)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]Phase{}
	for _, s := range f.Shares {
		got[s.Op.Name+" "+s.Op.Results[0].Name] = append(got[s.Op.Name+" "+s.Op.Results[0].Name], s.Phase)
	}
	for name, want := range map[string][]Phase{
		"dm.exp %e": {Forward, Backward}, "dm.matmul %y": {Forward}, "dm.matmul %d": {Backward}, "dm.sub %n": {Update},
	} {
		have := got[name]
		if len(have) != len(want) {
			t.Fatalf("%s has the phases %v, not %v; all: %v", name, have, want, got)
		}
		for i := range want {
			if have[i] != want[i] {
				t.Errorf("%s has the phases %v, not %v", name, have, want)
			}
		}
	}
}

// Ops of a gradient share nothing with each other: only what one kernel, or one op at several lines, does is divided among rows.
func TestShared(t *testing.T) {
	const text = `!x = tensor<64x64xf32>
func.func @step(%x: !x, %w: !x) -> (tensor<f32>, !x) {
  %l, %d = dm.grad @loss %x, %w, wrt = [1] : (!x, !x) -> (tensor<f32>, !x) loc("g"("net.py":9:0))
  %n = dm.kernel -> !x {
    %a = dm.exp %d : !x loc("a"("net.py":2:0))
    %b = dm.sub %w, %a : !x loc("b"("net.py":3:0))
    dm.yield %b : !x
  }
  return %l, %n : tensor<f32>, !x
}
func.func private @loss(%x: !x, %w: !x) -> tensor<f32> {
  %y = dm.matmul %x, %w : (!x, !x) -> !x loc("y"("net.py":1:0))
  %l = dm.reduce add %y, dims = [0, 1] : (!x) -> tensor<f32> loc("l"("net.py":4:0))
  return %l : tensor<f32>
}
`
	m, _ := machine.Lookup("h200")
	p := program.Load(source.New("step.dmir", text), program.Options{Target: m})
	if p.HasErrors() {
		t.Fatal(p.Diags)
	}
	f, err := Of(p.Func("step"), m, nil)
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, r := range f.Rows(ByLine, &Sources{Root: t.TempDir()}) {
		line := r.Line
		if line < 1 || line > 4 {
			continue
		}
		seen++
		if want := line == 2 || line == 3; r.Shared != want {
			t.Errorf("line %d shares: %v", line, r.Shared)
		}
	}
	if seen != 4 {
		t.Errorf("%d of 4 lines have rows", seen)
	}
}
