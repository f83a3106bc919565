package stablehlo_test

import (
	"fmt"
	"strings"
	"testing"

	"dmir/dialect/stablehlo"
	"dmir/syntax/parse"
	"dmir/syntax/source"
)

// What an import allocates for an op does not grow with the number of ops: of primitive ones, of composites that are
// written out, and of complex numbers.
func TestLinear(t *testing.T) {
	for _, kind := range []struct{ name, elem, step string }{
		{"primitive", "f32", "  %%v%[1]d = stablehlo.add %%v%[2]d, %%v%[2]d : T\n"},
		{"softmax", "f32", "  %%m%[1]d = stablehlo.reduce(%%v%[2]d init: %%low) applies stablehlo.maximum across dimensions = [1] : (T, tensor<f32>) -> tensor<4xf32>\n" +
			"  %%b%[1]d = stablehlo.broadcast_in_dim %%m%[1]d, dims = [0] : (tensor<4xf32>) -> T\n  %%d%[1]d = stablehlo.subtract %%v%[2]d, %%b%[1]d : T\n  %%e%[1]d = stablehlo.exponential %%d%[1]d : T\n" +
			"  %%s%[1]d = stablehlo.reduce(%%e%[1]d init: %%zero) applies stablehlo.add across dimensions = [1] : (T, tensor<f32>) -> tensor<4xf32>\n" +
			"  %%c%[1]d = stablehlo.broadcast_in_dim %%s%[1]d, dims = [0] : (tensor<4xf32>) -> T\n  %%v%[1]d = stablehlo.divide %%e%[1]d, %%c%[1]d : T\n"},
		{"complex", "complex<f32>", "  %%v%[1]d = stablehlo.multiply %%v%[2]d, %%v%[2]d : T\n"},
	} {
		perStep := func(n int) float64 {
			var b strings.Builder
			b.WriteString("func.func @main(%v0: T) -> T {\n  %zero = stablehlo.constant dense<0.0> : tensor<f32>\n  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>\n")
			for i := range n {
				fmt.Fprintf(&b, kind.step, i+1, i)
			}
			fmt.Fprintf(&b, "  return %%v%d : T\n}\n", n)
			tree := parse.File(source.New("x.mlir", strings.ReplaceAll(b.String(), "T", "tensor<4x8x"+kind.elem+">")))
			return testing.AllocsPerRun(1, func() {
				for _, m := range stablehlo.Import(tree) {
					for _, d := range m.Diags {
						t.Fatal(d.Message)
					}
				}
			}) / float64(n)
		}
		few, many := perStep(200), perStep(2000)
		if many > 1.3*few {
			t.Errorf("%s: %.0f allocations for each of 2,000, %.0f for each of 200", kind.name, many, few)
		}
	}
}
