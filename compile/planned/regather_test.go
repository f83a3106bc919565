package planned

import (
	"fmt"
	"strings"
	"testing"

	"dmir/analysis/cost"
	"dmir/analysis/machine"
	"dmir/analysis/program"
	"dmir/syntax/source"
)

// perceptron is a step of n layers of so many features on so many samples, divided over four devices, and its parameters stored in
// pieces and with attr.
func perceptron(n, samples, features int, attr string) string {
	x, w := fmt.Sprintf("tensor<%dx%dxf32>", samples, features), fmt.Sprintf("tensor<%dx%[1]dxf32>", features)
	list := func(sep, format string) string {
		parts := make([]string, n)
		for i := range parts {
			parts[i] = strings.NewReplacer("N", fmt.Sprint(i), "W", w, "I", fmt.Sprint(i+1)).Replace(format)
		}
		return strings.Join(parts, sep)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "dm.mesh @m {data = 4}\n#d = #dm.at<split = @m[{data}, {}]>\n")
	fmt.Fprintf(&b, "func.func @train(%%x: %s {dm.sharding = #d}, %s) -> (tensor<f32>, %s) {\n", x, list(", ", "%wN: W {dm.stddev = 0.02, dm.sharding = #d"+attr+"}"), list(", ", `W {dm.state = "wN"}`))
	fmt.Fprintf(&b, "  %%loss, %s = dm.grad @loss %%x, %s, wrt = [%s] : (%s, %s) -> (tensor<f32>, %[5]s)\n", list(", ", "%dN"), list(", ", "%wN"), list(", ", "I"), x, list(", ", "W"))
	fmt.Fprintf(&b, "%s\n  return %%loss, %s : tensor<f32>, %s\n}\n", list("\n", "  %nN = dm.sgd %wN, %dN, lr = 0.1 : W"), list(", ", "%nN"), list(", ", "W"))
	fmt.Fprintf(&b, "func.func private @loss(%%h: %s, %s) -> tensor<f32> {\n", x, list(", ", "%wN: W"))
	h := "%h"
	for i := range n {
		fmt.Fprintf(&b, "  %%p%d = dm.matmul %[2]s, %%w%[1]d : (%[3]s, %[4]s) -> %[3]s\n  %%h%[1]d = dm.tanh %%p%[1]d : %[3]s\n", i, h, x, w)
		h = fmt.Sprintf("%%h%d", i)
	}
	fmt.Fprintf(&b, "  %%q = dm.mul %s, %[1]s : %s\n  %%l = dm.mean %%q : (%[2]s) -> tensor<f32>\n  return %%l : tensor<f32>\n}\n", h, x)
	return b.String()
}

// Of parameters that are gathered again for the backward pass a device holds one or two that are gathered, where it otherwise holds
// those of all layers; it gathers each once more, beside its computation.
func TestRegathered(t *testing.T) {
	const layers, features = 6, 4096
	const parameter = features * features * 4
	on, _ := machine.Lookup("dgx-h100")
	figures := func(attr string) cost.Figures {
		text := perceptron(layers, 32768, features, attr)
		p := program.Load(source.New("step.dmir", text), program.Options{Target: on})
		if p.HasErrors() {
			t.Fatalf("%v\n%s", p.Diags, text)
		}
		x, err := Figures(t.Context(), p, p.Func("train").Func, on)
		if err != nil {
			t.Fatal(err)
		}
		d, problem := p.Func("train").Divide()
		if problem != nil {
			t.Fatal(problem.Msg)
		}
		if lines, known := d.Device.Sent(); !known || cost.TotalSent(lines) != *x.Sent {
			t.Errorf("%q: the lines of the text send %v, what is compiled %d bytes", attr, lines, *x.Sent)
		}
		return x
	}
	once, again := figures(""), figures(", dm.regather")
	saved := float64(peak(once)-peak(again)) / parameter
	t.Logf("%d bytes and %.4g ns, against %d and %.4g: %.2f parameters", peak(again), again.Time.Ns, peak(once), once.Time.Ns, saved)
	if want := float64(layers - 1 - 2); saved < want-0.5 || saved > want+2 {
		t.Errorf("memory of %.2f parameters less, want about %v", saved, want)
	}
	// The first layer's is needed in the forward pass alone.
	if more, want := *again.Sent-*once.Sent, int64((layers-1)*parameter*3/4); more != want {
		t.Errorf("%d bytes more are sent, want %d", more, want)
	}
	if again.Time.Ns > 1.02*once.Time.Ns {
		t.Errorf("a step takes %.4g ns, of parameters that stay %.4g", again.Time.Ns, once.Time.Ns)
	}
}
