package gradient_test

import (
	"strings"
	"testing"

	"dmir/compile/gradient"
	"dmir/compile/pass/passtest"
)

// The gradient by the result of an op is divided as dm.gradient_sharding of the op states: where it is computed, behind a dm.reshard
// where the same value is the gradient of one that states another sharding, through a call and in front of one for a composite op.
func TestStatedGradients(t *testing.T) {
	const head = `dm.mesh @pod {data = 2, model = 2}
#rows = #dm.at<split = @pod[{data}, {}]>
#columns = #dm.at<split = @pod[{}, {model}]>
func.func @f(%x: tensor<4x4xf32>, %w: tensor<4x4xf32>) -> (tensor<f32>, tensor<4x4xf32>) {
  %l, %d = dm.grad @loss %x, %w, wrt = [1] : (tensor<4x4xf32>, tensor<4x4xf32>) -> (tensor<f32>, tensor<4x4xf32>)
  return %l, %d : tensor<f32>, tensor<4x4xf32>
}
func.func private @loss(%x: tensor<4x4xf32>, %w: tensor<4x4xf32>) -> tensor<f32> {
`
	const tail = `
  %l = dm.reduce add %y : (tensor<4x4xf32>) -> tensor<f32>
  return %l : tensor<f32>
}
`
	for _, c := range []struct {
		name, body string
		more       string
		want       []string // in this order
	}{
		{"computed so", `  %h = dm.matmul %x, %w {dm.gradient_sharding = #rows} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %y = dm.exp %h : tensor<4x4xf32>`, "", []string{`%d_h = dm.mul`, `{dm.sharding = #dm.at<split = @pod[{data}, {}]>}`}},
		{"one value by two", `  %h = dm.matmul %x, %w {dm.gradient_sharding = #columns} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %s = dm.add %h, %x {dm.gradient_sharding = #rows} : tensor<4x4xf32>
  %y = dm.exp %s : tensor<4x4xf32>`, "", []string{`%d_s = dm.mul`, `{dm.sharding = #dm.at<split = @pod[{data}, {}]>}`, `%d_h = dm.reshard %d_s {dm.sharding = #dm.at<split = @pod[{}, {model}]>}`}},
		{"a call", `  %h = func.call @g(%x, %w) {dm.gradient_sharding = #rows} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %y = dm.exp %h : tensor<4x4xf32>`, `func.func private @g(%x: tensor<4x4xf32>, %w: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %h = dm.matmul %x, %w : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %h : tensor<4x4xf32>
}
`, []string{`%d_h = dm.mul`, `{dm.sharding = #dm.at<split = @pod[{data}, {}]>}`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := passtest.Apply(t, head+c.body+tail+c.more, "f", nil, gradient.Pass())
			if err != nil {
				t.Fatal(err)
			}
			at := 0
			for _, want := range c.want {
				k := strings.Index(got[at:], want)
				if k < 0 {
					t.Fatalf("no %q in\n%s", want, got[at:])
				}
				at += k
			}
			if strings.Contains(got, "gradient_sharding") {
				t.Errorf("the attribute is left:\n%s", got)
			}
		})
	}
}
