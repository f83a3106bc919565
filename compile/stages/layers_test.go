package stages_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"dmir/compile/pass"
	"dmir/compile/pass/passtest"
	"dmir/compile/pipeline"
	"dmir/dialect/ir"
	"dmir/dialect/op"
)

// layered is the step of a loop over layers with replacements.
func layered(t *testing.T, with ...string) string {
	t.Helper()
	b, err := os.ReadFile("testdata/layers.dmir")
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	for i := 0; i < len(with); i += 2 {
		if !strings.Contains(text, with[i]) {
			t.Fatalf("no %q in the text", with[i])
		}
		text = strings.ReplaceAll(text, with[i], with[i+1])
	}
	return text
}

// A loop over layers that is cut into stages makes the steps that one device makes of it, and each device has the part of the stacks that
// belongs to its layers, with its part of the states of the optimizer: arguments and results are pieces of those of the text.
func TestLayers(t *testing.T) {
	want, state := one(t, layered(t), 3)
	for _, c := range []struct {
		name  string
		with  []string
		stack string // of weights, on a device
	}{
		{"a layer in each stage", nil, "tensor<1x6x6xf64>"},
		{"two layers in each stage", []string{"pipe = 4", "pipe = 2", "dm.stages = 4", "dm.stages = 2"}, "tensor<2x6x6xf64>"},
		{"gpipe", []string{"1f1b", "gpipe"}, "tensor<1x6x6xf64>"},
		{"zb-h1", []string{"1f1b", "zb-h1"}, "tensor<1x6x6xf64>"},
		{"one micro-batch", []string{"dm.microbatches = 4", "dm.microbatches = 1"}, "tensor<1x6x6xf64>"},
		{"contractions computed again", []string{"carries = 1 {", "carries = 1, save = carries {", "pipe = 4", "pipe = 2", "dm.stages = 4", "dm.stages = 2"}, "tensor<2x6x6xf64>"},
		{"over data", []string{"pipe = 4", "pipe = 4, data = 2", "%x: !x, %y: tensor<8xi64> {", "%x: !x {dm.sharding = #dm.at<split = @plan[{data}, {}]>}, %y: tensor<8xi64> {"}, "tensor<1x6x6xf64>"},
		{"over tensor", []string{"pipe = 4", "pipe = 4, tensor = 2", "%w: !w {", "%w: !w {dm.sharding = #dm.at<split = @plan[{}, {}, {tensor}]>, "}, "tensor<1x6x3xf64>"},
		{"over the layers of a stage", []string{
			"pipe = 4", "pipe = 2, data = 2", "dm.stages = 4", "dm.stages = 2",
			"%w: !w {", "%w: !w {dm.sharding = #dm.at<split = @plan[{data}, {}, {}]>, ", "%v: !w {", "%v: !w {dm.sharding = #dm.at<split = @plan[{data}, {}, {}]>, ",
		}, "tensor<1x6x6xf64>"},
		{"weights that are needed whole", []string{"%square = dm.mul %dw, %dw : !w", "%t2 = dm.transpose %w, dims = [0, 2, 1] : (!w) -> !w\n  %t3 = dm.sub %t2, %t2 : !w\n  %dw2 = dm.add %dw, %t3 : !w\n  %square = dm.mul %dw2, %dw2 : !w"}, "tensor<4x6x6xf64>"},
		{"a loop in a function that is called", []string{
			"%h, %all = dm.scan %h0, %wh, %b, carries = 1 {dm.stages = 4} : (!x, !w, !b) -> (!x, tensor<4x8x6xf64>) {", "%h, %all = func.call @layers(%h0, %wh, %b) : (!x, !w, !b) -> (!x, tensor<4x8x6xf64>)\n",
			"  ^bb0(%c", "//", "    %z = ", "//", "    %z1 = ", "//", "    %a = ", "//", "    %r = ", "//", "    dm.yield", "//", "  }\n  %few = dm.reduce", "  %few = dm.reduce", "dims = [0] :", "dims = [0] {dm.stage = 3} :",
			"func.func private @loss", `func.func private @layers(%h0: !x, %wh: !w, %b: !b) -> (!x, tensor<4x8x6xf64>) {
  %h, %all = dm.scan %h0, %wh, %b, carries = 1 {dm.stages = 4} : (!x, !w, !b) -> (!x, tensor<4x8x6xf64>) {
  ^bb0(%cc: !x, %wi: tensor<6x6xf64>, %bi: tensor<6xf64>):
    %zz = dm.matmul %cc, %wi : (!x, tensor<6x6xf64>) -> !x
    %zz1 = dm.add %zz, %bi : (!x, tensor<6xf64>) -> !x
    %aa = dm.tanh %zz1 : !x
    %rr = dm.add %cc, %aa : !x
    dm.yield %rr, %aa : !x, !x
  }
  return %h, %all : !x, tensor<4x8x6xf64>
}

func.func private @loss`,
		}, "tensor<1x6x6xf64>"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := layered(t, c.with...)
			p, u := split(t, text)
			for _, f := range p.Functions() {
				at := slices.IndexFunc(f.Args, func(a *ir.Value) bool { return a.Name == "%w" })
				if got := f.Args[max(0, at)].Type.String(); got != c.stack {
					t.Errorf("@%s has %s of the weights, not %s", f.Name, got, c.stack)
				}
			}
			if a := u.Func.Args[3]; !strings.HasPrefix(a.Type.String(), "tensor<4x6x6xf64") || a.Name != "%w" || op.State(u.Func.Op)[2] != 3 {
				t.Errorf("the program has %s: %s for the weights, and the state %d", a.Name, a.Type, op.State(u.Func.Op))
			}
			got, gotState := together(t, text, 3)
			for i := range want {
				if far(want[i], got[i], 1e-12) {
					t.Fatalf("losses %v, want %v", got, want)
				}
			}
			if len(gotState) != len(state) {
				t.Fatalf("%d results, want %d", len(gotState), len(state))
			}
			for i := range state {
				for k := range state[i].Len() {
					if state[i].Elem.IsFloat() && far(state[i].Float(k), gotState[i].Float(k), 1e-9) {
						t.Fatalf("result %d: %s, want %s", i, gotState[i], state[i])
					}
				}
			}
		})
	}
}

// Of samples that the micro-batches do not divide the last one has fewer: steps are those of the whole batch.
func TestUnevenMicrobatches(t *testing.T) {
	rows := strings.NewReplacer("8x6xf64", "10x6xf64", "8xi64", "10xi64", "8x5xf64", "10x5xf64", "4x8x6", "4x10x6")
	for _, c := range []struct {
		name string
		with []string
	}{
		{"3, 3, 3 and 1", nil},
		{"4, 4 and 2", []string{"dm.microbatches = 4", "dm.microbatches = 3"}},
		{"loops in the stages", []string{"pipe = 4", "pipe = 2", "dm.stages = 4", "dm.stages = 2"}},
		{"over data", []string{"pipe = 4", "pipe = 2, data = 2", "dm.stages = 4", "dm.stages = 2", "(%x: !x, %y", "(%x: !x {dm.sharding = #dm.at<split = @plan[{data}, {}]>}, %y"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := strings.NewReplacer(c.with...).Replace(rows.Replace(layered(t)))
			want, state := one(t, text, 2)
			got, gotState := together(t, text, 2)
			for i := range want {
				if far(want[i], got[i], 1e-12) {
					t.Fatalf("losses %v, want %v", got, want)
				}
			}
			for i := range state {
				for k := range state[i].Len() {
					if state[i].Elem.IsFloat() && far(state[i].Float(k), gotState[i].Float(k), 1e-9) {
						t.Fatalf("result %d: %s, want %s", i, gotState[i], state[i])
					}
				}
			}
		})
	}
}

// Of layers that the stages do not divide the last stage has fewer. Its devices have pieces of the size of the others', of which they use the
// first layers.
func TestUnevenStages(t *testing.T) {
	for _, c := range []struct{ layers, stages, piece int }{{5, 3, 2}, {3, 2, 2}, {7, 4, 2}, {5, 2, 3}} {
		t.Run(fmt.Sprintf("%d layers in %d stages", c.layers, c.stages), func(t *testing.T) {
			text := layered(t, "tensor<4x6", fmt.Sprintf("tensor<%dx6", c.layers), "4x8x6", fmt.Sprintf("%dx8x6", c.layers),
				"pipe = 4", fmt.Sprintf("pipe = %d", c.stages), "dm.stages = 4", fmt.Sprintf("dm.stages = %d", c.stages))
			p, u := split(t, text)
			for _, f := range p.Functions() {
				at := slices.IndexFunc(f.Args, func(a *ir.Value) bool { return a.Name == "%w" })
				if got, want := f.Args[max(0, at)].Type.String(), fmt.Sprintf("tensor<%dx6x6xf64>", c.piece); got != want {
					t.Errorf("@%s has %s of the weights, not %s", f.Name, got, want)
				}
			}
			if got := u.Func.Args[3].Type.String(); !strings.HasPrefix(got, fmt.Sprintf("tensor<%dx6x6xf64", c.layers)) {
				t.Errorf("the program has %s for the weights", got)
			}
			want, state := one(t, text, 3)
			got, gotState := together(t, text, 3)
			for i := range want {
				if far(want[i], got[i], 1e-12) {
					t.Fatalf("losses %v, want %v", got, want)
				}
			}
			for i := range state {
				if state[i].Type() != gotState[i].Type() {
					t.Fatalf("result %d is %s, want %s", i, gotState[i].Type(), state[i].Type())
				}
				for k := range state[i].Len() {
					if state[i].Elem.IsFloat() && far(state[i].Float(k), gotState[i].Float(k), 1e-9) {
						t.Fatalf("result %d: %s, want %s", i, gotState[i], state[i])
					}
				}
			}
		})
	}
}

// Loops that cannot be cut into stages have an error at the loop, or at the step.
func TestLayersErrors(t *testing.T) {
	for _, c := range []struct {
		name       string
		with       []string
		code, want string
	}{
		{"several stages on a device", []string{"pipe = 4", "pipe = 2", "1f1b", "interleaved"}, "DM835", "a loop of @f is cut into 4 stages, and there are 2 positions along pipe, each of which holds the layers of one stage"},
		{"stages of the text behind the loop", []string{"pipe = 4", "pipe = 5", "%p = dm.matmul %h2, %out :", "%p = dm.matmul %h2, %out {dm.stage = 4} :"}, "DM835", "a loop of @f is cut into 4 stages, and the step has 5"},
		{"divided unevenly", []string{
			"pipe = 4", "pipe = 2, data = 3", "dm.stages = 4", "dm.stages = 2", "4x6x6", "8x6x6", "4x6x", "8x6x", "4x8x6", "8x8x6",
			"%w: !w {", "%w: !w {dm.sharding = #dm.at<split = @plan[{data}, {}, {}]>, ",
		}, "DM835", "%w.0 has 4 layers in each stage, which its sharding over 3 devices does not divide evenly"},
	} {
		t.Run(c.name, func(t *testing.T) {
			u := passtest.Unit(t, layered(t, c.with...), "f", nil)
			u.Options.Devices = pass.AllDevices
			err := pass.Run(u, pipeline.Divide(), nil)
			e, ok := err.(*pass.Error)
			if !ok || e.Code != c.code || !strings.Contains(e.Msg, c.want) {
				t.Fatalf("%v, want %s %s", err, c.code, c.want)
			}
		})
	}
}
