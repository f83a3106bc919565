package cost_test

import (
	"fmt"
	"testing"

	"dmir/analysis/cost"
	"dmir/analysis/machine"
	"dmir/analysis/program"
	"dmir/syntax/source"
)

// rowsOf is what the only function of a text reads row by row on the H100, and its time.
func rowsOf(t *testing.T, text string) (near, again int64, ns float64) {
	t.Helper()
	m, _ := machine.Lookup("h100")
	p := program.Load(source.New("rows.dmir", text), program.Options{Target: m})
	if p.HasErrors() {
		t.Fatal(p.Diags[0].Message)
	}
	f := p.Funcs[0]
	near, again = f.Rows(m)
	return near, again, f.Time(m).Ns
}

// Rows that are read by number come from the level-2 cache as often as they are read; what of them comes from the memory again follows from the
// pattern. A kernel that gathers, multiplies and sums has the bytes of the product that it computes.
func TestRowsRead(t *testing.T) {
	product := func(pattern string) string {
		const a = "tensor<1000000x1000000xf32, #dm.csr<nnz = 20000000>>"
		return fmt.Sprintf(`func.func @f(%%a: %[1]s%[2]s, %%x: tensor<1000000x64xf32>) -> tensor<1000000x64xf32> {
  %%y = dm.matmul %%a, %%x : (%[1]s, tensor<1000000x64xf32>) -> tensor<1000000x64xf32>
  return %%y : tensor<1000000x64xf32>
}`, a, pattern)
	}
	const all = 20000000 * 256
	for _, c := range []struct {
		name, pattern string
		least, most   float64 // of the reads, those that come from the memory again
	}{
		{"no pattern", "", 0.7, 0.8},
		{"uniform", ` {dm.pattern = "uniform"}`, 0.7, 0.8},
		{"power law", ` {dm.pattern = "power_law"}`, 0.7, 0.8},
		{"band", ` {dm.pattern = "band"}`, 0, 0},
		{"wide band", ` {dm.pattern = {kind = "band", width = 400000}}`, 0.6, 0.8},
		{"blocks", ` {dm.pattern = "blocks"}`, 0, 0.03},
	} {
		near, again, ns := rowsOf(t, product(c.pattern))
		if part := float64(again) / all; part < c.least || part > c.most || near < all*9/10 || near > all {
			t.Errorf("%s: %d bytes from the cache, of which %.3f from the memory again", c.name, near, part)
		}
		_, _, least := rowsOf(t, product(` {dm.pattern = "band"}`))
		if ns < least {
			t.Errorf("%s takes %g ns, a band %g", c.name, ns, least)
		}
	}
	const apart = `func.func @f(%p: tensor<1001xi32>, %c: tensor<30000xi32>, %x: tensor<1000x64xf32>) -> tensor<1000x64xf32> {
  %y = dm.kernel -> tensor<1000x64xf32> {
    %i = dm.segment_ids %p : (tensor<1001xi32>) -> tensor<30000xi32>
    %g = dm.gather %x, %c : (tensor<1000x64xf32>, tensor<30000xi32>) -> tensor<30000x64xf32>
    %h = dm.gather %x, %c : (tensor<1000x64xf32>, tensor<30000xi32>) -> tensor<30000x64xf32>
    %o = dm.gather %x, %i : (tensor<1000x64xf32>, tensor<30000xi32>) -> tensor<30000x64xf32>
    %v = dm.mul %g, %h : tensor<30000x64xf32>
    %w = dm.mul %v, %o : tensor<30000x64xf32>
    %s = dm.segment_reduce add %w, %p : (tensor<30000x64xf32>, tensor<1001xi32>) -> tensor<1000x64xf32>
    dm.yield %s : tensor<1000x64xf32>
  }
  return %y : tensor<1000x64xf32>
}`
	// Of the gathers with the same numbers one counts, and that by segments once for each of these.
	if near, again, _ := rowsOf(t, apart); near < 30000*256*99/100 || near > 31000*256 || again != 0 {
		t.Errorf("a kernel reads %d rows of 256 bytes, %d bytes again", near/256, again)
	}
	m, _ := machine.Lookup("h100")
	p := program.Load(source.New("rows.dmir", apart), program.Options{Target: m})
	if r := cost.JSON(m, p.Funcs).Functions[0]; r.Rows == 0 || r.Ops[0].Rows != r.Rows {
		t.Errorf("the report has %d, and its op %d", r.Rows, r.Ops[0].Rows)
	}
}

// TestGradientWithoutMasks: the gradient of a product counts what that of its gather, multiplication and sum does: what keeps padding out of
// both runs in no kernel.
func TestGradientWithoutMasks(t *testing.T) {
	moved := func(text string) int64 {
		f := load(t, "gradient.dmir", text, program.Options{}).Funcs[0]
		n, ok := f.Moved().Int()
		if !ok {
			t.Fatalf("moved is %s", f.Moved())
		}
		return n
	}
	const gradient = `func.func @train(%[1]s, %%x: tensor<256x16xf32>) -> (tensor<f32>, tensor<256x16xf32>) {
  %%l, %%d = dm.grad @loss %[2]s, %%x, wrt = [%[3]d] : (%[4]s, tensor<256x16xf32>) -> (tensor<f32>, tensor<256x16xf32>)
  return %%l, %%d : tensor<f32>, tensor<256x16xf32>
}
func.func private @loss(%[1]s, %%x: tensor<256x16xf32>) -> tensor<f32> {
  %[5]s
  %%s = dm.tanh %%y : tensor<256x16xf32>
  %%l = dm.reduce add %%s : (tensor<256x16xf32>) -> tensor<f32>
  return %%l : tensor<f32>
}`
	const a = "tensor<256x256xf32, #dm.csr<nnz = 4096>>"
	sparse := moved(fmt.Sprintf(gradient, "%a: "+a, "%a", 1, a, "%y = dm.matmul %a, %x : ("+a+", tensor<256x16xf32>) -> tensor<256x16xf32>"))
	dense := moved(fmt.Sprintf(gradient, "%p: tensor<257xi32>, %c: tensor<4096xi32>, %v: tensor<4096xf32>", "%p, %c, %v", 3, "tensor<257xi32>, tensor<4096xi32>, tensor<4096xf32>",
		`%g = dm.gather %x, %c, dim = 0 : (tensor<256x16xf32>, tensor<4096xi32>) -> tensor<4096x16xf32>
  %w = dm.reshape %v : (tensor<4096xf32>) -> tensor<4096x1xf32>
  %m = dm.mul %w, %g : (tensor<4096x1xf32>, tensor<4096x16xf32>) -> tensor<4096x16xf32>
  %y = dm.segment_reduce add %m, %p : (tensor<4096x16xf32>, tensor<257xi32>) -> tensor<256x16xf32>`))
	if sparse != dense {
		t.Errorf("the gradient of a sparse product moves %d bytes, that of what it is written out as %d", sparse, dense)
	}
}
