package devices_test

import (
	"fmt"
	"strings"
	"testing"

	"dmir/analysis/program"
	"dmir/compile/pass"
	"dmir/compile/pass/passtest"
	"dmir/compile/pipeline"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/syntax/source"
)

// twoLayers is a step whose parameters are one tuple, divided over two devices.
const twoLayers = `dm.mesh @m {data = 2}
#d = #dm.at<split = @m[{data}, {}]>
!x = tensor<8x4xf32>
!w = tensor<4x4xf32>
!p = tuple<!w, !w>
func.func @train(%%x: !x {dm.sharding = #d}, %%p: !p {dm.stddev = 0.5, dm.sharding = [#d, #d]%s}) -> (tensor<f32>, !p {dm.state = "p"}) attributes {dm.microbatches = %d : i64} {
  %%loss, %%d = dm.grad @loss %%x, %%p, wrt = [1] : (!x, !p) -> (tensor<f32>, !p)
  %%n = dm.sgd %%p, %%d, lr = 0.1 : !p
  return %%loss, %%n : tensor<f32>, !p
}
func.func private @loss(%%x: !x, %%p: !p) -> tensor<f32> {
  %%w, %%v = dm.unpack %%p : (!p) -> (!w, !w)
  %%a = dm.matmul %%x, %%w : (!x, !w) -> !x
  %%h = dm.tanh %%a : !x
  %%b = dm.matmul %%h, %%v : (!x, !w) -> !x
  %%q = dm.mul %%b, %%b : !x
  %%loss = dm.mean %%q : (!x) -> tensor<f32>
  return %%loss : tensor<f32>
}
`

// How often parameters are gathered: once, or once for each pass of each micro-batch that reads them. The first is read by the forward
// pass alone. No two gatherings become one, and nothing else keeps a mark.
func TestRegather(t *testing.T) {
	for _, c := range []struct {
		attr            string
		micro, gathered int
	}{
		{"", 1, 2},
		{", dm.regather", 1, 3},
		{", dm.regather = [true, false]", 1, 2},
		{", dm.regather = [false, true]", 1, 3},
		{"", 2, 2},
		{", dm.regather", 2, 6},
		{", dm.regather = [false, true]", 2, 5},
	} {
		u := passtest.Unit(t, fmt.Sprintf(twoLayers, c.attr, c.micro), "train", nil)
		u.Options.Devices = pass.AllDevices
		if err := pass.Run(u, pipeline.Until(nil, "simplify"), nil); err != nil {
			t.Fatal(err)
		}
		n := 0
		ir.Walk(u.Func.Body.Ops, func(o *ir.Op) bool {
			if o.Name == op.AllGather {
				n++
			}
			if o.Attr(op.BackwardAttr) != nil {
				t.Errorf("%q: %s has %s", c.attr, o.Name, op.BackwardAttr)
			}
			return true
		})
		if n != c.gathered {
			t.Errorf("%q, %d micro-batches: %d gatherings, want %d\n%s", c.attr, c.micro, n, c.gathered, passtest.Text(t, u))
		}
	}
}

// A list that is not one of a boolean for each tensor is one error.
func TestRegatherOfOthers(t *testing.T) {
	for attr, want := range map[string]string{
		", dm.regather = [true]":       "it has 1 entries, and tuple<tensor<4x4xf32>, tensor<4x4xf32>> has 2 tensors",
		", dm.regather = [true, 2]":    "dm.regather takes no value",
		", dm.regather = \"backward\"": "dm.regather takes no value",
	} {
		p := program.Load(source.New("step.dmir", fmt.Sprintf(twoLayers, attr, 1)), program.Options{})
		if len(p.Diags) != 1 || p.Diags[0].Code != "DM133" || !strings.Contains(p.Diags[0].Message, want) || p.Diags[0].Help == "" {
			t.Errorf("%q: %v", attr, p.Diags)
		}
	}
}
