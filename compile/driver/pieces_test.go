package driver_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"dmir/analysis/program"
	"dmir/compile/driver"
	"dmir/compile/pass"
	"dmir/compile/tensor"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/gpu/emulator"
	"dmir/gpu/native"
	"dmir/syntax/diag"
	"dmir/syntax/source"
	"dmir/testkit/need"
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

// blocks: devices of a mesh with two axes divide rows along one, and columns along the other.
const blocks = "blocks"

// dividedProgram is a random program of a sparse tensor, with its rows, its entries, or blocks of both dimensions divided if divided is
// set: ops of elements, then products, sums and what is sampled, and the gradient of their sum.
func dividedProgram(r *rand.Rand, divided bool, devices int) string {
	f := piecesFormats[r.IntN(len(piecesFormats))]
	m, n, k := (max(devices, 2)+r.IntN(9))*f.block, (max(devices, 2)+r.IntN(9))*f.block, 1+r.IntN(5)
	e := 1 + r.IntN(m*n/f.block)
	sharding, by := "", append(slices.Clone(op.Divisions), blocks)[r.IntN(3)]
	if divided {
		dims := []string{"{}", "{}"}
		dims[f.outer] = "{data}"
		if by == blocks {
			dims[1-f.outer] = "{model}"
		}
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
	fmt.Fprintf(&b, "dm.mesh @pod {data = %d, model = 2}\n!a = tensor<%dx%dxf32, %s>\n!row = tensor<%dx1xf32>\n!col = tensor<%dxf32>\n!b = tensor<%dx%dxf32>\n!q = tensor<%dx%dxf32>\n", devices, m, n, f.name, m, n, n, k, m, k)
	divide := by
	if by == blocks {
		divide = op.Divisions[0]
	}
	fmt.Fprintf(&b, "func.func @f(%%a: !a {%sdm.divide_by = %q, dm.pattern = %q}, %%b: !b, %%q: !q, %%row: !row, %%col: !col) -> (tensor<f32>, !a, !b, !q, !row, !a, !q)%s{\n", sharding, divide, pattern, bind)
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
		case c == 4 && by == op.Divisions[0]:
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
			switch kind {
			case "emulator":
				need.OK(t, emulator.Check())
			case "cpu":
				_, err := native.Find(t.Context())
				need.OK(t, err)
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

// TestPiecesOfAttention: what one device computes as one op, of rows that devices divide is computed op by op.
func TestPiecesOfAttention(t *testing.T) {
	for name, scores := range map[string]string{
		"product": `  %e = dm.sample "ik,jk->ij" %a, %h, %h : (!a, !h, !h) -> !a`,
		"sum": `  %si = dm.sample "i->ij" %a, %s : (!a, !s) -> !a
  %tj = dm.sample "j->ij" %a, %t : (!a, !s) -> !a
  %e = dm.add %si, %tj : !a`,
	} {
		text := "dm.mesh @pod {data = 4}\n!a = tensor<32x32xf32, #dm.csr<nnz = 90>>\n!h = tensor<32x4xf32>\n!s = tensor<32xf32>\n" +
			"func.func @f(%a: !a {dm.sharding = #dm.at<split = @pod[{data}, {}]>}, %h: !h, %s: !s, %t: !s) -> !h {\n" + scores + `
  %p = dm.softmax %e, dim = 1 : !a
  %y = dm.matmul %p, %h : (!a, !h) -> !h
  return %y : !h
}
`
		want := ran(t, strings.Replace(text, "dm.sharding = #dm.at<split = @pod[{data}, {}]>", "", 1), 0, "reference")
		got := ran(t, text, pass.AllDevices, "reference")
		if diff := tensor.MaxDiff(got[0].Tensor, want[0].Tensor); !(diff <= 1e-5) {
			t.Errorf("%s: differs by %g", name, diff)
		}
	}
}

// dividedGCN is the training step of a graph network with its nodes divided.
func dividedGCN(t *testing.T) (one, divided string) {
	t.Helper()
	b, err := os.ReadFile("../../examples/gcn_train.dmir")
	if err != nil {
		t.Fatal(err)
	}
	by := "dm.sharding = #dm.at<split = @pod[{data}, {}]>"
	text := strings.NewReplacer(`dm.pattern = "power_law"}, %x: !x`, `dm.pattern = "power_law", `+by+`}, %x: !x {`+by+`}`).Replace(string(b))
	if text == string(b) {
		t.Fatal("the example has other arguments")
	}
	return string(b), "dm.mesh @pod {data = 4}\n" + text
}

// TestPiecesOfGCN: the step divided over nodes gathers what the layers read of other devices' nodes, scatters its gradients and reduces
// those of the weights; and it is the step of one device.
func TestPiecesOfGCN(t *testing.T) {
	one, divided := dividedGCN(t)
	want := ran(t, strings.ReplaceAll(one, "@train", "@f"), 0, "reference")
	for _, by := range append(slices.Clone(op.Divisions), blocks) {
		text := strings.Replace(divided, `dm.pattern = "power_law"`, `dm.divide_by = "`+by+`", dm.pattern = "power_law"`, 1)
		if by == blocks {
			text = strings.Replace(divided, `"power_law", dm.sharding = #dm.at<split = @pod[{data}, {}]>`, `"power_law", dm.sharding = #dm.at<split = @pod[{data}, {model}]>`, 1)
			text = strings.Replace(text, "{data = 4}", "{data = 2, model = 2}", 1)
		}
		for i, got := range ran(t, strings.ReplaceAll(text, "@train", "@f"), pass.AllDevices, "auto") {
			if diff := tensor.MaxDiff(got.Tensor, want[i].Tensor); !(diff <= 1e-4) {
				t.Errorf("by %s %s differs by %g", by, got.Name, diff)
			}
		}
	}
	p := program.Load(source.New("gcn.dmir", divided), program.Options{})
	m, fn, err := driver.Pick(p, "train")
	if err != nil {
		t.Fatal(err)
	}
	q, err := driver.Divide(t.Context(), m, fn, nil, driver.Distribution{Devices: pass.AllDevices})
	if err != nil {
		t.Fatal(err)
	}
	sent := map[string]int{}
	ir.Walk(q.Functions()[0].Body.Ops, func(o *ir.Op) bool {
		if op.Of(o) != nil && op.Of(o).Is(op.Collective) {
			sent[strings.TrimPrefix(o.Name, op.Prefix)]++
		}
		return true
	})
	if want := map[string]int{"all_gather": 3, "reduce_scatter": 2, "all_reduce": 5}; !maps.Equal(sent, want) {
		t.Errorf("the devices exchange %v, not %v", sent, want)
	}
}

// TestPiecesRefused: what cannot be divided is one error.
func TestPiecesRefused(t *testing.T) {
	const rows = "dm.sharding = #dm.at<split = @pod[{data}, {}]>"
	const blocked = "dm.sharding = #dm.at<split = @pod[{data}, {model}]>"
	for _, c := range []struct{ name, args, body, code, says string }{
		{"other pattern", "%a: !a {" + rows + "}, %b: !a", "%y = dm.einsum \"ij,jk->ik\" %a, %b : (!a, !a) -> tensor<8x8xf32>\n return %y : tensor<8x8xf32>", "DM831", "%b is not divided as %a is"},
		{"softmax", "%a: !a {" + rows + "}", "%s = dm.softmax %a, dim = 0 : !a\n %y = dm.convert_format %s : (!a) -> tensor<8x8xf32>\n return %y : tensor<8x8xf32>", "DM831", "needs all of its pieces"},
		{"softmax of blocks", "%a: !a {" + blocked + "}", "%s = dm.softmax %a, dim = 1 : !a\n %y = dm.convert_format %s : (!a) -> tensor<8x8xf32>\n return %y : tensor<8x8xf32>", "DM831", "needs all of its pieces"},
		{"entries of blocks", "%a: !a {dm.divide_by = \"entries\", " + blocked + "}", "%y = dm.convert_format %a : (!a) -> tensor<8x8xf32>\n return %y : tensor<8x8xf32>", "DM831", "both dimensions"},
		{"blocks and rows", "%a: !a {" + blocked + "}, %b: !a {" + rows + "}", "%s = dm.add %a, %b : (!a, !a) -> !a\n %y = dm.convert_format %s : (!a) -> tensor<8x8xf32>\n return %y : tensor<8x8xf32>", "DM831", "is not divided as"},
		{"maximum", "%a: !a {" + rows + "}", "%m = dm.reduce max %a, dims = [0] : (!a) -> tensor<8xf32>\n %y = dm.broadcast %m : (tensor<8xf32>) -> tensor<8x8xf32>\n return %y : tensor<8x8xf32>", "DM831", "only a sum is taken"},
		{"slice", "%a: !a {" + rows + "}", "%s = dm.slice %a, start_indices = [0, 0], limit_indices = [8, 8] : (!a) -> !a\n %y = dm.convert_format %s : (!a) -> tensor<8x8xf32>\n return %y : tensor<8x8xf32>", "DM831", "no form for sparse tensors that devices divide"},
		{"softmax of entries", "%a: !a {dm.divide_by = \"entries\", " + rows + "}", "%s = dm.softmax %a, dim = 1 : !a\n %y = dm.convert_format %s : (!a) -> tensor<8x8xf32>\n return %y : tensor<8x8xf32>", "DM831", "two may have some of one row"},
		{"other division", "%a: !a {dm.divide_by = \"entries\", " + rows + "}, %b: !a {" + rows + "}", "%s = dm.add %a, %b : (!a, !a) -> !a\n %y = dm.convert_format %s : (!a) -> tensor<8x8xf32>\n return %y : tensor<8x8xf32>", "DM831", "is not divided as"},
		{"room", "%a: !a {dm.piece_room = 1, " + rows + "}", "%y = dm.convert_format %a : (!a) -> tensor<8x8xf32>\n return %y : tensor<8x8xf32>", "DM712", "has room for 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := "dm.mesh @pod {data = 4, model = 2}\n!a = tensor<8x8xf32, #dm.csr<nnz = 40>>\nfunc.func @f(" + c.args + ") -> tensor<8x8xf32> {\n " + c.body + "\n}\n"
			p := program.Load(source.New("bad.dmir", text), program.Options{})
			m, fn, err := driver.Pick(p, "f")
			if err != nil {
				t.Fatal(err)
			}
			_, err = driver.Run(t.Context(), driver.Job{Program: p, Module: m, Fn: fn, Device: "auto", On: driver.Distribution{Devices: pass.AllDevices}}, nil)
			if err == nil {
				t.Fatal("it runs")
			}
			d, ok := driver.Diagnostic(err, p.Src)
			if !ok || d.Code != c.code || !strings.Contains(d.Message, c.says) || d.Help == "" {
				t.Errorf("%s %s (%s), not %s with %q", d.Code, d.Message, d.Help, c.code, c.says)
			}
		})
	}
}
