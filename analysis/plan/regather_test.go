package plan

import (
	"fmt"
	"strings"
	"testing"
)

// wide is a step of n layers whose parameters are most of what it holds.
func wide(n int) string {
	const x, w = "tensor<64x1024xf32>", "tensor<1024x1024xf32>"
	list := func(sep, format string) string {
		parts := make([]string, n)
		for i := range parts {
			parts[i] = strings.NewReplacer("N", fmt.Sprint(i), "W", w, "I", fmt.Sprint(i+1)).Replace(format)
		}
		return strings.Join(parts, sep)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "func.func @train(%%x: %s, %s) -> (tensor<f32>, %s) {\n", x, list(", ", "%wN: W {dm.stddev = 0.02}"), list(", ", `W {dm.state = "wN"}`))
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

// Whether parameters are gathered once or for each pass is one choice of the search with all others: with memory to spare they are
// not gathered again, with little they are, the bound of all holds for those that are asked for, and the text states what is chosen.
func TestParametersGatheredAgain(t *testing.T) {
	m := loadText(t, wide(6))
	search := func(memory int64, fix Setting) *Result {
		t.Helper()
		fix.Data, fix.Tensor, fix.Pipe = 4, 1, 1
		r, err := Search(t.Context(), m, m.Func("train"), Options{Machine: cluster(t, "dgx-h100"), Devices: 4, Memory: memory, Fix: fix, Top: 1})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	regathered := func(r *Result) (n int) {
		for _, again := range r.Plans[0].Regathered {
			if again {
				n++
			}
		}
		text, err := r.Write(r.Plans[0])
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(text, ", dm.regather"); got != n {
			t.Errorf("%d parameters are gathered again, and the text states it of %d\n%s", n, got, text)
		}
		return n
	}
	for _, micro := range []int{1, 4} {
		free := search(0, Setting{Microbatches: micro})
		asked := search(0, Setting{Microbatches: micro, States: StatesParameters})
		if n := regathered(free); n != 0 {
			t.Errorf("%d micro-batches: with memory to spare %d parameters are gathered again", micro, n)
		}
		if n := regathered(asked); n < 5 || !strings.Contains(strings.Join(asked.Plans[0].Names, "; "), "(ZeRO-3)") {
			t.Errorf("%d micro-batches: %d parameters are gathered again: %v", micro, n, asked.Plans[0].Names)
		}
		if asked.Plans[0].Time < free.Bound {
			t.Errorf("%d micro-batches: %g s, less than the bound %g of all", micro, asked.Plans[0].Time, free.Bound)
		}
		least, all := asked.Plans[0].Memory.Total, free.Plans[0].Memory.Total
		if saved := float64(all-least) / (1024 * 1024 * 4); saved < 3 {
			t.Errorf("%d micro-batches: memory of %.2f parameters less", micro, saved)
		}
		tight := search((least+all)/2, Setting{Microbatches: micro, Recompute: None})
		if p := tight.Plans[0]; p.Memory.Total > (least+all)/2 || p.Time < free.Bound || p.Time > 1.01*max(asked.Plans[0].Time, free.Plans[0].Time) {
			t.Errorf("%d micro-batches: %d bytes and %g s; with memory to spare %g, all gathered again %g", micro, p.Memory.Total, p.Time, free.Plans[0].Time, asked.Plans[0].Time)
		}
	}
	// Each micro-batch gathers all in the forward pass, and all but the first in the backward pass; gradients are reduced once.
	one := search(0, Setting{Microbatches: 1, States: StatesParameters}).Plans[0].Sent["data"]
	four := search(0, Setting{Microbatches: 4, States: StatesParameters}).Plans[0].Sent["data"]
	const piece = 1024 * 1024 * 4 * 3 / 4
	if one != (11+6)*piece || four != (4*11+6)*piece {
		t.Errorf("one micro-batch sends %d bytes and four %d", one, four)
	}
}
