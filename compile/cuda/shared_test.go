package cuda_test

import (
	"slices"
	"strings"
	"testing"

	"dmir/gpu/artifact"
)

const twoLayers = `func.func @f(%first: tensor<64x128xf32>, %w: tensor<128x128xf32>, %v: tensor<128x128xf32>) -> tensor<64x128xf32> {
  %a = dm.matmul %first, %w : (tensor<64x128xf32>, tensor<128x128xf32>) -> tensor<64x128xf32>
  %b = dm.tanh %a : tensor<64x128xf32>
  %c = dm.matmul %b, %v : (tensor<64x128xf32>, tensor<128x128xf32>) -> tensor<64x128xf32>
  %last = dm.tanh %c : tensor<64x128xf32>
  return %last : tensor<64x128xf32>
}
`

// Kernels that differ in the names of values are one; each launch has its own
// buffers and lines.
func TestEqualKernels(t *testing.T) {
	p := compiled(t, twoLayers, "")
	if len(p.Steps) != 2*len(p.Kernels) {
		t.Fatalf("%d steps launch %d kernels\n%s", len(p.Steps), len(p.Kernels), p.Source)
	}
	if n := strings.Count(p.Source, "DM_KERNEL"); n != len(p.Kernels) {
		t.Errorf("the text has %d kernels, not %d", n, len(p.Kernels))
	}
	half := len(p.Kernels)
	for i := range half {
		a, b := &p.Steps[i], &p.Steps[i+half]
		if a.Launch.Kernel != b.Launch.Kernel {
			t.Errorf("%s and %s are launches of different kernels", a.Name, b.Name)
		}
		if slices.EqualFunc(a.Launch.Args, b.Launch.Args, func(x, y artifact.Arg) bool { return x.Buffer == y.Buffer }) {
			t.Errorf("%s and %s have the same buffers", a.Name, b.Name)
		}
		la, lb := p.LinesOf(a), p.LinesOf(b)
		if len(la) == 0 || slices.Max(la) > 3 || len(lb) == 0 || slices.Min(lb) < 4 {
			t.Errorf("%s is of lines %v, %s of %v", a.Name, la, b.Name, lb)
		}
		if all := p.KernelOf(a).Lines; len(all) != len(la)+len(lb) {
			t.Errorf("the kernel of %s is of lines %v", a.Name, all)
		}
	}
	changed := strings.Replace(twoLayers, "%last = dm.tanh %c", "%last = dm.exp %c", 1)
	if q := compiled(t, changed, ""); len(q.Kernels) == len(p.Kernels) {
		t.Error("kernels of different ops are one")
	}
}
