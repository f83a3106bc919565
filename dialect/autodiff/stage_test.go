package autodiff_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"dmir/dialect/autodiff"
	"dmir/dialect/ir"
	"dmir/dialect/lower"
	"dmir/dialect/op"
	"dmir/dialect/print"
	"dmir/syntax/parse"
	"dmir/syntax/source"
)

// staged is a model of two stages: the second begins with a call; a value and an argument are used in both, and the
// called function has a stage of its own for its end.
const staged = `func.func @f(%x: tensor<4xf64>, %w: tensor<4xf64>) -> tensor<f64> {
  %0 = dm.mul %x, %w {dm.stage = 0} : tensor<4xf64>
  %1 = dm.exp %0 : tensor<4xf64>
  %2 = func.call @g(%1, %w) {dm.recompute, dm.stage = 1} : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
  %3 = dm.mul %2, %1 {dm.stage = 2} : tensor<4xf64>
  %4 = dm.reduce add %3 : (tensor<4xf64>) -> tensor<f64>
  return %4 : tensor<f64>
}
func.func private @g(%x: tensor<4xf64>, %w: tensor<4xf64>) -> tensor<4xf64> {
  %0 = dm.sin %x : tensor<4xf64>
  %1 = dm.tanh %0 : tensor<4xf64>
  %2 = dm.mul %1, %w {dm.stage = 2} : tensor<4xf64>
  return %2 : tensor<4xf64>
}
`

// TestStages: each op of a gradient has the stage of the op that it stands for; sums of what flows to a value have that of
// the value, and what a call has computed inside is computed again in front of the derivative that reads it.
func TestStages(t *testing.T) {
	src := source.New("x.dmir", staged)
	m := lower.File(parse.File(src))[0]
	g, err := autodiff.Function(m, m.Func("f"), autodiff.Options{Joint: true})
	if err != nil {
		t.Fatal(err)
	}
	out := &ir.Module{Ops: []*ir.Op{g.Op}}
	text, err := print.Pretty(out)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(stagedGradient, text); d != "" {
		t.Errorf("%s\n%s", d, text)
	}
	for _, o := range m.Func("f").Body.Ops[1:2] {
		if o.Attr(op.StageAttr) != nil {
			t.Error("the text of the function has changed")
		}
	}
}

const stagedGradient = `func.func @f_grad(%x: tensor<4xf64>, %w: tensor<4xf64>) -> (tensor<f64>, tensor<4xf64>, tensor<4xf64>) {
  %0 = dm.mul %x, %w {dm.stage = 0} : tensor<4xf64>
  %1 = dm.exp %0 {dm.stage = 0} : tensor<4xf64>
  %2 = dm.sin %1 {dm.stage = 1} : tensor<4xf64>
  %3 = dm.tanh %2 {dm.stage = 1} : tensor<4xf64>
  %4 = dm.mul %3, %w {dm.stage = 2} : tensor<4xf64>
  %5 = dm.mul %4, %1 {dm.stage = 2} : tensor<4xf64>
  %6 = dm.reduce add %5 {dm.stage = 2} : (tensor<4xf64>) -> tensor<f64>
  %d_4 = dm.constant dense<1.0> {dm.backward, dm.stage = 2} : tensor<f64>
  %7 = dm.reshape %d_4 {dm.backward, dm.stage = 2} : (tensor<f64>) -> tensor<1xf64>
  %d_3 = dm.broadcast %7 {dm.backward, dm.stage = 2} : (tensor<1xf64>) -> tensor<4xf64>
  %d_2 = dm.mul %d_3, %1 {dm.backward, dm.stage = 2} : tensor<4xf64>
  %8 = dm.mul %d_3, %4 {dm.backward, dm.stage = 2} : tensor<4xf64>
  %d_1 = dm.mul %d_2, %w {dm.backward, dm.stage = 2} : tensor<4xf64>
  %9 = dm.sin %1 {dm.backward, dm.recomputed, dm.stage = 1} : tensor<4xf64>
  %10 = dm.tanh %9 {dm.backward, dm.recomputed, dm.stage = 1} : tensor<4xf64>
  %11 = dm.mul %d_2, %10 {dm.backward, dm.stage = 2} : tensor<4xf64>
  %12 = dm.constant dense<1.0> {dm.backward, dm.stage = 1} : tensor<f64>
  %13 = dm.mul %10, %10 {dm.backward, dm.stage = 1} : tensor<4xf64>
  %14 = dm.sub %12, %13 {dm.backward, dm.stage = 1} : (tensor<f64>, tensor<4xf64>) -> tensor<4xf64>
  %d_0 = dm.mul %d_1, %14 {dm.backward, dm.stage = 1} : tensor<4xf64>
  %15 = dm.cos %1 {dm.backward, dm.stage = 1} : tensor<4xf64>
  %16 = dm.mul %d_0, %15 {dm.backward, dm.stage = 1} : tensor<4xf64>
  %d_1_1 = dm.add %8, %16 {dm.backward, dm.stage = 0} : tensor<4xf64>
  %d_0_1 = dm.mul %d_1_1, %1 {dm.backward, dm.stage = 0} : tensor<4xf64>
  %d_x = dm.mul %d_0_1, %w {dm.backward, dm.stage = 0} : tensor<4xf64>
  %17 = dm.mul %d_0_1, %x {dm.backward, dm.stage = 0} : tensor<4xf64>
  %d_w = dm.add %11, %17 {dm.backward} : tensor<4xf64>
  return %6, %d_x, %d_w : tensor<f64>, tensor<4xf64>, tensor<4xf64>
}
`
