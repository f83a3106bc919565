package microbatch_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dmir/compile/distribute"
	"dmir/compile/interp"
	"dmir/compile/pass"
	"dmir/compile/pass/passtest"
	"dmir/compile/pipeline"
	"dmir/dialect/op"
	"dmir/dialect/shard/shardtest"
	"dmir/dialect/types"
	"dmir/testkit/need"
)

// onMesh is the first function of text, cut into n micro-batches, as each device of its mesh runs it.
func onMesh(t testing.TB, text string, n int) (*pass.Unit, *distribute.Program) {
	t.Helper()
	u := passtest.Unit(t, text, "", nil)
	u.Options.Devices = pass.AllDevices
	u.Func.Op.SetAttr(op.MicrobatchesAttr, types.Int{V: int64(n), Elem: types.I64})
	if err := pass.Run(u, pipeline.Divide(), nil); err != nil {
		t.Fatal(err)
	}
	p, err := distribute.Of(u.Module, u.Func)
	if err != nil {
		t.Fatal(err)
	}
	return u, p
}

// together compares a step of text, divided over its mesh and cut into micro-batches, with that of the whole batch on one
// device, and returns the bytes that are sent in one and in n micro-batches.
func together(t testing.TB, text string, n int, tolerance float64) (once, cut map[string]int64) {
	t.Helper()
	whole, err := passed(t, text, 0)
	if err != nil {
		t.Fatal(err)
	}
	args, err := interp.Inputs(t.Context(), whole.Func, nil, 7, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := run(t, whole, args, 1)[0]
	u, p := onMesh(t, text, n)
	got, _, err := p.Run(t.Context(), args, interp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range want {
		if d := farthest(t, want[i], got[i]); d > tolerance {
			t.Errorf("%d micro-batches: result %d differs by %.3g of its largest element", n, i, d)
		}
	}
	one, _ := onMesh(t, text, 1)
	if t.Failed() {
		t.Log(passtest.Text(t, u))
	}
	return shardtest.Traffic(one.Func, p.Mesh), shardtest.Traffic(u.Func, p.Mesh)
}

const meshed = `dm.mesh @pod {data = %d, model = %d}
!x = tensor<16x6xf64, #dm.at<split = @pod[{data}, {}]>>
!w = tensor<6x8xf64, #dm.at<split = @pod[{}, {model}]>>
!v = tensor<8x4xf64, #dm.at<split = @pod[{model}, {}]>>
func.func @f(%%x: !x, %%y: tensor<16xi64> {dm.init = 2}, %%s: tensor<i32> {dm.init = 3}, %%w: !w {dm.stddev = 0.5}, %%v: !v {dm.stddev = 0.5})
    -> (tensor<f64>, tensor<16x4xf64>, !w {dm.state = "w"}, !v {dm.state = "v"}) {
  %%loss, %%p, %%dw, %%dv = dm.grad @l %%x, %%y, %%s, %%w, %%v, wrt = [3, 4] : (!x, tensor<16xi64>, tensor<i32>, !w, !v) -> (tensor<f64>, tensor<16x4xf64>, !w, !v)
  %%nw = dm.sub %%w, %%dw : !w
  %%nv = dm.sub %%v, %%dv : !v
  return %%loss, %%p, %%nw, %%nv : tensor<f64>, tensor<16x4xf64>, !w, !v
}
func.func private @l(%%x: !x, %%y: tensor<16xi64>, %%s: tensor<i32>, %%w: !w, %%v: !v) -> (tensor<f64>, tensor<16x4xf64>) {
  %%a = dm.matmul %%x, %%w : (!x, !w) -> tensor<16x8xf64>
  %%h = dm.gelu %%a : tensor<16x8xf64>
  %s
  %%p = dm.matmul %%k, %%v : (tensor<16x8xf64>, !v) -> tensor<16x4xf64>
  %%loss = dm.cross_entropy %%p, %%y : (tensor<16x4xf64>, tensor<16xi64>) -> tensor<f64>
  return %%loss, %%p : tensor<f64>, tensor<16x4xf64>
}`

// On a mesh a micro-batch is rows that each device has already: no more is sent than for the whole batch, so that
// gradients are reduced once for all micro-batches.
func TestMesh(t *testing.T) {
	for _, c := range []struct {
		name        string
		data, model int
		extra       string
	}{
		{"data", 2, 1, "%k = dm.neg %h : tensor<16x8xf64>"},
		{"data and model", 2, 2, "%k = dm.neg %h : tensor<16x8xf64>"},
		{"four devices", 4, 1, "%k = dm.neg %h : tensor<16x8xf64>"},
		{"dropout, of the rows of the whole batch", 2, 1, "%k = dm.dropout %h, %s, rate = 0.3, seed = 5 : (tensor<16x8xf64>, tensor<i32>) -> tensor<16x8xf64>"},
	} {
		for _, n := range []int{2, 4} {
			t.Run(fmt.Sprint(c.name, " ", n), func(t *testing.T) {
				once, cut := together(t, fmt.Sprintf(meshed, c.data, c.model, c.extra), n, 1e-12)
				for axes, bytes := range once {
					if cut[axes] > bytes {
						t.Errorf("along %s %d bytes are sent in %d micro-batches, and %d in one", axes, cut[axes], n, bytes)
					}
				}
				if len(once) == 0 || len(cut) > len(once) {
					t.Errorf("one micro-batch sends %v, several %v", once, cut)
				}
			})
		}
	}
}

// Shardings that attributes state hold for micro-batches as those in types do.
func TestMeshAttributes(t *testing.T) {
	text := fmt.Sprintf(meshed, 2, 2, "%k = dm.neg %h : tensor<16x8xf64>")
	for from, to := range map[string]string{
		"!x = tensor<16x6xf64, #dm.at<split = @pod[{data}, {}]>>": "!x = tensor<16x6xf64>",
		"%x: !x, %y: tensor<16xi64> {dm.init = 2}":                "%x: !x {dm.sharding = #dm.at<split = @pod[{data}, {}]>}, %y: tensor<16xi64> {dm.init = 2}",
		"%a = dm.matmul %x, %w :":                                 "%a = dm.matmul %x, %w {dm.sharding = #dm.at<split = @pod[{data}, {model}]>} :",
	} {
		if !strings.Contains(text, from) {
			t.Fatalf("no %s in the text", from)
		}
		text = strings.Replace(text, from, to, 1)
	}
	once, cut := together(t, text, 2, 1e-12)
	for axes, bytes := range once {
		if cut[axes] > bytes {
			t.Errorf("along %s %d bytes are sent in two micro-batches, and %d in one", axes, cut[axes], bytes)
		}
	}
}

// Where ops count positions in the batch, micro-batches are rows next to each other, whatever the devices have.
func TestMeshPositions(t *testing.T) {
	extra := `%i = dm.iota dim = 0 : tensor<16x1xf64>
  %k = dm.mul %h, %i : (tensor<16x8xf64>, tensor<16x1xf64>) -> tensor<16x8xf64>`
	together(t, fmt.Sprintf(meshed, 2, 1, extra), 2, 1e-12)
	together(t, fmt.Sprintf(meshed, 2, 2, extra), 3, 1e-12) // 6, 6 and 4 of them
	extra = `%q = dm.reshape %h : (tensor<16x8xf64>) -> tensor<16x2x1x4xf64>
  %y0 = dm.attention %q, %q, %q, %s, dropout = 0.5, seed = 5 : (tensor<16x2x1x4xf64>, tensor<16x2x1x4xf64>, tensor<16x2x1x4xf64>, tensor<i32>) -> tensor<16x2x1x4xf64>
  %k = dm.reshape %y0 : (tensor<16x2x1x4xf64>) -> tensor<16x8xf64>`
	together(t, fmt.Sprintf(meshed, 2, 2, extra), 4, 1e-12)
}

func TestMeshExamples(t *testing.T) {
	need.Long(t)
	for _, name := range []string{"llama_fsdp", "mlp_megatron"} {
		text, err := os.ReadFile(filepath.Join("..", "..", "examples", name+".dmir"))
		if err != nil {
			t.Fatal(err)
		}
		t.Run(name, func(t *testing.T) {
			s := string(text)
			if name == "llama_fsdp" { // a row for each micro-batch on each device
				s = strings.ReplaceAll(s, "data = 8", "data = 4")
			}
			once, cut := together(t, s, 2, 1e-3)
			for axes, bytes := range once {
				if cut[axes] > bytes+bytes/100 { // of scales, which micro-batches use in other shapes
					t.Errorf("along %s %d bytes are sent in two micro-batches, and %d in one", axes, cut[axes], bytes)
				}
			}
		})
	}
}
