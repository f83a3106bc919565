package microbatch_test

import (
	"fmt"
	"strings"
	"testing"

	"dmir/compile/pass"
	"dmir/compile/pass/passtest"
	"dmir/compile/pipeline"
	"dmir/dialect/op"
)

const staged = `dm.mesh @plan {pipe = 2}
func.func @f(%%x: tensor<8x3xf64>, %%y: tensor<8x3xf64>, %%w: tensor<3x3xf64> {dm.stddev = 0.5}, %%v: tensor<3x3xf64> {dm.stddev = 0.5})
    -> (tensor<f64>, tensor<3x3xf64> {dm.state = "w"}, tensor<3x3xf64> {dm.state = "v"}) attributes {dm.microbatches = %d, dm.pipeline = "pipe"} {
  %%loss, %%dw, %%dv = dm.grad @l %%x, %%y, %%w, %%v, wrt = [2, 3] : (tensor<8x3xf64>, tensor<8x3xf64>, tensor<3x3xf64>, tensor<3x3xf64>) -> (tensor<f64>, tensor<3x3xf64>, tensor<3x3xf64>)
  %%nw = dm.sub %%w, %%dw : tensor<3x3xf64>
  %%nv = dm.sub %%v, %%dv : tensor<3x3xf64>
  return %%loss, %%nw, %%nv : tensor<f64>, tensor<3x3xf64>, tensor<3x3xf64>
}
func.func private @l(%%x: tensor<8x3xf64>, %%y: tensor<8x3xf64>, %%w: tensor<3x3xf64>, %%v: tensor<3x3xf64>) -> tensor<f64> {
  %%a = dm.matmul %%x, %%w {dm.stage = 0} : (tensor<8x3xf64>, tensor<3x3xf64>) -> tensor<8x3xf64>
  %%h = dm.tanh %%a : tensor<8x3xf64>
  %%b = dm.matmul %%h, %%v {dm.stage = 1} : (tensor<8x3xf64>, tensor<3x3xf64>) -> tensor<8x3xf64>
  %%e = dm.sub %%b, %%y : tensor<8x3xf64>
  %%q = dm.mul %%e, %%e : tensor<8x3xf64>
  %%loss = dm.mean %%q : (tensor<8x3xf64>) -> tensor<f64>
  return %%loss : tensor<f64>
}`

// Ops of micro-batches have their stage and what they are for the derivative, and so have sums of gradients and the rows
// of the batch; a single micro-batch of a pipeline is the step itself with marks.
func TestStages(t *testing.T) {
	for _, n := range []int{1, 2} {
		u := passtest.Unit(t, fmt.Sprintf(staged, n), "", nil)
		var text string
		for _, p := range pipeline.For(nil) {
			if err := pass.Run(u, []pass.Pass{p}, nil); err != nil {
				t.Fatal(err)
			}
			if p.Name == "microbatch" {
				text = passtest.Text(t, u)
				break
			}
		}
		count := map[string]int{}
		for _, o := range u.Func.Body.Ops {
			micro, stage := o.Attr(op.MicroAttr), o.Attr(op.StageAttr)
			if micro == nil {
				if o.Name == "dm.matmul" || strings.HasPrefix(o.Name, "dm.slice") {
					t.Errorf("%s has no micro-batch", o.Name)
				}
				continue
			}
			if stage == nil {
				t.Errorf("%s of micro-batch %s has no stage", o.Name, micro)
				continue
			}
			if o.Name == "dm.matmul" {
				count[fmt.Sprintf("%d %d %v", o.Int(op.MicroAttr, -1), o.Int(op.StageAttr, -1), o.Attr(op.BackwardAttr) != nil)]++
			}
			if o.Name == "dm.add" && strings.HasPrefix(o.Results[0].Name, "%dw") && o.Int(op.StageAttr, -1) != 0 {
				t.Errorf("the sum %s is of stage %s", o.Results[0].Name, stage)
			}
		}
		for i := range n { // a product forward in each stage; backward one in the first and two in the second
			for key, want := range map[string]int{"0 false": 1, "1 false": 1, "0 true": 1, "1 true": 2} {
				if got := count[fmt.Sprint(i, " ", key)]; got != want {
					t.Errorf("%d products of %d %s, want %d", got, i, key, want)
				}
			}
		}
		if t.Failed() {
			t.Fatalf("%s", text)
		}
		if n > 1 {
			same(t, strings.Replace(fmt.Sprintf(staged, n), `, dm.pipeline = "pipe"`, "", 1), n, 3, 1e-12)
		}
	}
}
