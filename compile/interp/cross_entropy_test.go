package interp

import (
	"fmt"
	"math"
	"testing"

	"dmir/compile/tensor"
	"dmir/dialect/types"
)

// A loss is what PyTorch's cross_entropy gives, computed here row by row: ignored
// rows do not count, and other labels out of range are the nearest class.
func TestCrossEntropy(t *testing.T) {
	logits := []float64{1, 2, 3, 0, -1, 0.5, 2, 2, -3, 4, 0, 1}
	const classes = 3
	for _, c := range []struct {
		labels    []int64
		ignore    int64
		smoothing float64
	}{
		{[]int64{0, 1, 2, 0}, -100, 0},
		{[]int64{0, -100, 2, -100}, -100, 0},
		{[]int64{0, -100, 2, 1}, 5, 0.25},
		{[]int64{2, 1, 7, -3}, 7, 0.1},
		{[]int64{2, 1, 1, 0}, 1, 1},
		{[]int64{-100, -100, -100, -100}, -100, 0.1},
	} {
		var rows []float64
		var sum, n float64
		for r, label := range c.labels {
			x := logits[r*classes:][:classes]
			var total, all float64
			for _, v := range x {
				total += math.Exp(v)
			}
			for _, v := range x {
				all += math.Log(total) - v
			}
			loss := (1-c.smoothing)*(math.Log(total)-x[min(max(label, 0), classes-1)]) + c.smoothing*all/classes
			if label == c.ignore {
				loss = 0
			} else {
				n++
			}
			rows, sum = append(rows, loss), sum+loss
		}
		for reduction, want := range map[string][]float64{"none": rows, "sum": {sum}, "mean": {sum / n}} {
			shape, result := []int{}, "tensor<f64>"
			if reduction == "none" {
				shape, result = []int{4}, "tensor<4xf64>"
			}
			got := run(t, fmt.Sprintf(`func.func @f(%%x: tensor<4x3xf64>, %%l: tensor<4xi64>) -> %[1]s {
  %%y = dm.cross_entropy %%x, %%l, reduction = %[2]s, ignore_index = %[3]d, label_smoothing = %[4]f : (tensor<4x3xf64>, tensor<4xi64>) -> %[1]s
  return %%y : %[1]s
}`, result, reduction, c.ignore, c.smoothing), tensor.FromFloats(types.F64, []int{4, 3}, logits), i64([]int{4}, c.labels...))[0]
			if diff := tensor.MaxDiff(got, tensor.FromFloats(types.F64, shape, want)); diff > 1e-12 {
				t.Errorf("%s of %v without %d, smoothing %g: %v, want %v", reduction, c.labels, c.ignore, c.smoothing, got.F64, want)
			}
		}
	}
}
