package driver_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"dmir/analysis/program"
	"dmir/compile/driver"
	"dmir/compile/pass"
	"dmir/compile/tensor"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

// piecesFormats are formats whose outermost level devices divide, and the dimension that it walks.
var piecesFormats = []struct {
	name  string
	outer int
	block int
}{
	{"#dm.csr<nnz = e>", 0, 1},
	{"#dm.csc<nnz = e>", 1, 1},
	{"#dm.coo<nnz = e>", 0, 1},
	{"#dm.dcsr<nnz = [r, e]>", 0, 1},
	{"#dm.bsr<2x3, nnz = b>", 0, 6},
	{"#dm.sparse<map = (d0, d1) -> (d0 : dense, d1 : compressed), nnz = e, crdWidth = 16>", 0, 1},
}

// dividedProgram is a random program of a sparse tensor, with its rows divided if divided is set: ops of elements, then
// products, sums and what is sampled, and the gradient of their sum.
func dividedProgram(r *rand.Rand, divided bool, devices int) string {
	f := piecesFormats[r.IntN(len(piecesFormats))]
	m, n, k := (devices+r.IntN(9))*f.block, (devices+r.IntN(9))*f.block, 1+r.IntN(5)
	cells := m * n / (f.block * f.block / max(1, f.block/6*6))
	if f.block > 1 {
		cells = m * n / 6
	}
	e := 1 + r.IntN(cells)
	sharding := ""
	if divided {
		dims := []string{"{}", "{}"}
		dims[f.outer] = "{data}"
		sharding = "dm.sharding = #dm.at<split = @pod[" + strings.Join(dims, ", ") + "]>, "
	}
	pattern := []string{"uniform", "power_law", "band"}[r.IntN(3)]
	if f.block > 1 || pattern == "band" {
		pattern = "uniform"
	}
	binds := map[bool]string{true: fmt.Sprintf("b = %d", e), false: fmt.Sprintf("e = %d", e)}[f.block > 1]
	if strings.Contains(f.name, "[r,") {
		binds += fmt.Sprintf(", r = %d", m)
	}
	bind := " attributes {dm.bind = {" + binds + "}} "
	var b strings.Builder
	types := strings.NewReplacer("A", fmt.Sprintf("tensor<%dx%dxf32, %s>", m, n, f.name), "ROW", fmt.Sprintf("tensor<%dx1xf32>", m), "COL", fmt.Sprintf("tensor<%dxf32>", n),
		"B", fmt.Sprintf("tensor<%dx%dxf32>", n, k), "Q", fmt.Sprintf("tensor<%dx%dxf32>", m, k), "F", "tensor<f32>")
	fmt.Fprintf(&b, "dm.mesh @pod {data = %d}\n!a = tensor<%dx%dxf32, %s>\n!row = tensor<%dx1xf32>\n!col = tensor<%dxf32>\n!b = tensor<%dx%dxf32>\n!q = tensor<%dx%dxf32>\n", devices, m, n, f.name, m, n, n, k, m, k)
	_ = types
	fmt.Fprintf(&b, "func.func @f(%%a: !a {%sdm.pattern = %q}, %%b: !b, %%q: !q, %%row: !row, %%col: !col) -> (tensor<f32>, !a, !b, !q, !row, !a, !q)%s{\n", sharding, pattern, bind)
	b.WriteString("  %l, %da, %db, %dq, %drow = dm.grad @loss %a, %b, %q, %row, %col, wrt = [0, 1, 2, 3] : (!a, !b, !q, !row, !col) -> (tensor<f32>, !a, !b, !q, !row)\n")
	b.WriteString("  %t = dm.tanh %a : !a\n  %u = dm.add %t, %a : (!a, !a) -> !a\n  %y = dm.matmul %u, %b : (!a, !b) -> !q\n")
	b.WriteString("  return %l, %da, %db, %dq, %drow, %u, %y : tensor<f32>, !a, !b, !q, !row, !a, !q\n}\n")
	fmt.Fprintf(&b, "func.func private @loss(%%a: !a, %%b: !b, %%q: !q, %%row: !row, %%col: !col) -> tensor<f32>%s{\n", bind)
	x := "%a"
	for i := range 1 + r.IntN(3) {
		y := fmt.Sprintf("%%x%d", i)
		switch c := r.IntN(6); {
		case c == 0:
			fmt.Fprintf(&b, "  %s = dm.tanh %s : !a\n", y, x)
		case c == 1:
			fmt.Fprintf(&b, "  %s = dm.mul %s, %%row : (!a, !row) -> !a\n", y, x)
		case c == 2:
			fmt.Fprintf(&b, "  %s = dm.mul %s, %%col : (!a, !col) -> !a\n", y, x)
		case c == 3:
			fmt.Fprintf(&b, "  %s = dm.sub %s, %%a : (!a, !a) -> !a\n", y, x)
		case c == 4:
			fmt.Fprintf(&b, "  %s = dm.softmax %s, dim = %d : !a\n", y, x, 1-f.outer)
		default:
			fmt.Fprintf(&b, "  %s = dm.sample \"ik,jk->ij\" %s, %%q, %%b : (!a, !q, !b) -> !a\n", y, x)
		}
		x = y
	}
	sum := "%zero"
	b.WriteString("  %zero = dm.constant dense<0.0> : tensor<f32>\n")
	total := func(i int, v, t string) {
		fmt.Fprintf(&b, "  %%w%d = dm.tanh %s : %s\n  %%p%d = dm.reduce add %%w%d : (%s) -> tensor<f32>\n  %%s%d = dm.add %s, %%p%d : tensor<f32>\n", i, v, t, i, i, t, i, sum, i)
		sum = fmt.Sprintf("%%s%d", i)
	}
	for i := range 1 + r.IntN(3) {
		v := fmt.Sprintf("%%v%d", i)
		switch r.IntN(5) {
		case 0:
			fmt.Fprintf(&b, "  %s = dm.matmul %s, %%b : (!a, !b) -> !q\n", v, x)
			total(i, v, "!q")
		case 1:
			fmt.Fprintf(&b, "  %s = dm.einsum \"ij,ik->jk\" %s, %%q : (!a, !q) -> !b\n", v, x)
			total(i, v, "!b")
		case 2:
			fmt.Fprintf(&b, "  %s = dm.reduce add %s, dims = [1], keep_dims = true : (!a) -> !row\n", v, x)
			total(i, v, "!row")
		case 3:
			fmt.Fprintf(&b, "  %s = dm.reduce add %s, dims = [0] : (!a) -> !col\n", v, x)
			total(i, v, "!col")
		default:
			fmt.Fprintf(&b, "  %s = dm.einsum \"ij,ik,jk->ik\" %s, %%q, %%b : (!a, !q, !b) -> !q\n", v, x)
			total(i, v, "!q")
		}
	}
	fmt.Fprintf(&b, "  return %s : tensor<f32>\n}\n", sum)
	return b.String()
}

// ran is the results of a text on the reference executor, or on d.
func ran(t *testing.T, text string, devices int, d string) []driver.Output {
	t.Helper()
	p := program.Load(source.New("pieces.dmir", text), program.Options{})
	for _, d := range p.Diags {
		if d.Severity == diag.Error {
			t.Fatalf("%s %s\n%s", d.Code, d.Message, text)
		}
	}
	m, fn, err := driver.Pick(p, "f")
	if err != nil {
		t.Fatal(err)
	}
	res, err := driver.Run(t.Context(), driver.Job{Program: p, Module: m, Fn: fn, Seed: 7, Device: d, On: driver.Distribution{Devices: devices}}, nil)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return res.Outputs
}

// TestPieces: random programs of sparse tensors that devices divide compute what they do on one device.
func TestPieces(t *testing.T) {
	programs := 120
	if testing.Short() {
		programs = 40
	}
	for seed := range uint64(programs) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			devices := 1 + int(seed%5)
			kind := map[uint64]string{3: "emulator", 13: "emulator", 4: "cpu", 14: "cpu"}[seed]
			if kind == "cpu" && cpu.Check() != nil || kind == "emulator" && emulator.Check() != nil {
				kind = "auto"
			}
			want := ran(t, dividedProgram(rand.New(rand.NewPCG(seed, 3)), false, devices), 0, "reference")
			text := dividedProgram(rand.New(rand.NewPCG(seed, 3)), true, devices)
			got := ran(t, text, pass.AllDevices, kind)
			for i, w := range want {
				if diff := tensor.MaxDiff(got[i].Tensor, w.Tensor); !(diff <= 1e-4) {
					t.Errorf("%s differs by %g\n%s", w.Name, diff, text)
				}
			}
		})
	}
}
