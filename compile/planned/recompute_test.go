package planned

import (
	"fmt"
	"strings"
	"testing"

	"dmir/analysis/machine"
	planner "dmir/analysis/plan"
	"dmir/analysis/plan/request"
	"dmir/analysis/program"
	"dmir/syntax/source"
)

// twoKinds is a step of some wide layers, then of more narrow ones, each kind a function.
func twoKinds(wide, narrow int) string {
	const x, up, down, square = "tensor<4096x1024xf32>", "tensor<1024x4096xf32>", "tensor<4096x1024xf32>", "tensor<1024x1024xf32>"
	var params, types, calls []string
	at := "%x"
	param := func(t string) string {
		name := fmt.Sprintf("w%d", len(params))
		params, types = append(params, name), append(types, t)
		return "%" + name
	}
	for i := range wide {
		a, b := param(up), param(down)
		calls = append(calls, fmt.Sprintf("  %%f%d = func.call @wide(%s, %s, %s) : (%s, %s, %s) -> %[5]s", i, at, a, b, x, up, down))
		at = fmt.Sprintf("%%f%d", i)
	}
	for i := range narrow {
		w := param(square)
		calls = append(calls, fmt.Sprintf("  %%l%d = func.call @narrow(%s, %s) : (%s, %s) -> %[4]s", i, at, w, x, square))
		at = fmt.Sprintf("%%l%d", i)
	}
	each := func(format string) string {
		parts := make([]string, len(params))
		for i, p := range params {
			parts[i] = strings.NewReplacer("N", p, "T", types[i], "I", fmt.Sprint(i+1)).Replace(format)
		}
		return strings.Join(parts, ", ")
	}
	return strings.NewReplacer("$x", x, "$up", up, "$down", down, "$square", square, "$types", each("T"), "$calls", strings.Join(calls, "\n"), "$last", at).Replace(
		"func.func @train(%x: $x, " + each("%N: T {dm.stddev = 0.02}") + ") -> (tensor<f32>, " + each(`T {dm.state = "N"}`) + ") {\n" +
			"  %loss, " + each("%d_N") + " = dm.grad @loss %x, " + each("%N") + ", wrt = [" + each("I") + "] : ($x, $types) -> (tensor<f32>, $types)\n" +
			strings.ReplaceAll(each("  %n_N = dm.sgd %N, %d_N, lr = 0.1 : T"), ",   %n", "\n  %n") +
			"\n  return %loss, " + each("%n_N") + " : tensor<f32>, $types\n}\n" +
			"func.func private @loss(%x: $x, " + each("%N: T") + `) -> tensor<f32> {
$calls
  %q = dm.mul $last, $last : $x
  %loss = dm.mean %q : ($x) -> tensor<f32>
  return %loss : tensor<f32>
}
func.func private @wide(%x: $x, %a: $up, %b: $down) -> $x {
  %h = dm.matmul %x, %a : ($x, $up) -> tensor<4096x4096xf32>
  %g = dm.gelu %h : tensor<4096x4096xf32>
  %y = dm.matmul %g, %b : (tensor<4096x4096xf32>, $down) -> $x
  %r = dm.add %x, %y : $x
  return %r : $x
}
func.func private @narrow(%x: $x, %w: $square) -> $x {
  %h = dm.matmul %x, %w : ($x, $square) -> $x
  %t = dm.tanh %h : $x
  %r = dm.add %x, %t : $x
  return %r : $x
}
`)
}

// Layers of every kind are computed again in the backward pass, not only the longest run of equal ones: the plan's text marks each, and holds as much
// less as its row says.
func TestEveryKindOfLayerIsRecomputed(t *testing.T) {
	const wide, narrow = 3, 5
	on, _ := machine.Lookup("dgx-h100")
	p := program.Load(source.New("step.dmir", twoKinds(wide, narrow)), program.Options{Target: on, Compiled: Figures})
	if p.HasErrors() {
		t.Fatalf("%v\n%s", p.Diags, twoKinds(wide, narrow))
	}
	q, err := request.New(p, request.Asked{Devices: 2})
	if err != nil {
		t.Fatal(err)
	}
	held := map[string]int64{}
	for _, recompute := range []string{planner.None, planner.Full} {
		q.Options.Top, q.Options.Fix = 1, planner.Setting{Data: 2, Tensor: 1, Pipe: 1, Microbatches: 1, States: planner.StatesWhole, Recompute: recompute}
		found, err := q.Search(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		text, err := found.Write(found.Plans[0])
		if err != nil {
			t.Fatal(err)
		}
		want := 0
		if recompute == planner.Full {
			want = wide + narrow
		}
		if n := strings.Count(text, "dm.recompute"); n != want {
			t.Errorf("recompute %s: %d calls are marked, want %d", recompute, n, want)
		}
		held[recompute] = found.Plans[0].Memory.Total
	}
	if none, full := held[planner.None], held[planner.Full]; full > none*6/10 {
		t.Errorf("a device holds %d bytes, without recomputation %d", full, none)
	}
}
