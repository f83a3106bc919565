package plan

import (
	"context"
	"errors"
	"strings"
	"testing"
)

// bothWays is a step that goes back through its loop over layers itself, as JAX writes one.
const bothWays = `func.func @f(%x: tensor<8x4xf32>, %w: tensor<3x4x4xf32> {dm.stddev = 0.1}) -> (tensor<8x4xf32>, tensor<3x4x4xf32> {dm.state = "w"}) {
  %h, %kept = dm.scan %x, %w, carries = 1 : (tensor<8x4xf32>, tensor<3x4x4xf32>) -> (tensor<8x4xf32>, tensor<3x8x4xf32>) {
  ^bb0(%c: tensor<8x4xf32>, %wi: tensor<4x4xf32>):
    %a = dm.matmul %c, %wi : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
    dm.yield %a, %c : tensor<8x4xf32>, tensor<8x4xf32>
  }
  %g, %dw = dm.scan %h, %w, KEPT, carries = 1, reverse = true : (tensor<8x4xf32>, tensor<3x4x4xf32>, tensor<3x8x4xf32>) -> (tensor<8x4xf32>, tensor<3x4x4xf32>) {
  ^bb0(%d: tensor<8x4xf32>, %wi: tensor<4x4xf32>, %k: tensor<8x4xf32>):
    %dwi = dm.einsum "bi,bj->ij" %k, %d : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
    %dc = dm.einsum "bj,ij->bi" %d, %wi : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
    dm.yield %dc, %dwi : tensor<8x4xf32>, tensor<4x4xf32>
  }
  %n = dm.sub %w, %dw : tensor<3x4x4xf32>
  return %g, %n : tensor<8x4xf32>, tensor<3x4x4xf32>
}
`

// A step that goes back through its layers itself has no stages, and that is said; of other loops it is not.
func TestBackwardLoop(t *testing.T) {
	for _, c := range []struct {
		kept   string // what the second loop reads
		layers int
	}{{"%kept", 3}, {"%kept2", 0}} {
		text := strings.Replace(bothWays, "KEPT", c.kept, 1)
		text = strings.Replace(text, "  %g, %dw", "  %kept2 = dm.neg %kept : tensor<3x8x4xf32>\n  %g, %dw", 1)
		m := loadText(t, text)
		o := Options{Machine: cluster(t, "dgx-h100"), Devices: 2}
		r, err := Search(context.Background(), m, m.Func("f"), o)
		if err != nil {
			t.Fatal(err)
		}
		if r.Model.Backward != c.layers {
			t.Errorf("a loop over %s goes back through %d layers, not %d", c.kept, r.Model.Backward, c.layers)
		}
		o.Fix.Pipe = 2
		var e *Error
		if _, err := Search(context.Background(), m, m.Func("f"), o); !errors.As(err, &e) || !strings.Contains(e.Help, `gradient="dmir"`) {
			t.Errorf("with stages: %v", err)
		}
	}
}
