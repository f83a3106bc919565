package kernel

import (
	"fmt"
	"testing"
)

// The cells that results are divided into: elements of each dimension and their distance.
func TestFit(t *testing.T) {
	for _, c := range []struct {
		name, in, body, result string
		neighbours             int64
		times                  [2]int64
		want                   string
	}{
		{"element-wise", "%x: tensor<8x16xf32>", "%y = dm.exp %x : tensor<8x16xf32>", "tensor<8x16xf32>", 4, [2]int64{1, 1}, "[]"},
		{"two halves side by side", "%x: tensor<8x16xf32>, %w: tensor<8x16xf32>", "%y = dm.concatenate %x, %w, dim = 1 : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x32xf32>", "tensor<8x32xf32>", 4, [2]int64{1, 1}, "[{1 8} {2 16}]"},
		{"two halves below each other", "%x: tensor<8x16xf32>, %w: tensor<8x16xf32>", "%y = dm.concatenate %x, %w, dim = 0 : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<16x16xf32>", "tensor<16x16xf32>", 4, [2]int64{1, 1}, "[{2 8} {1 16}]"},
		{"parts of other sizes", "%x: tensor<8x5xf32>, %w: tensor<8x6xf32>", "%y = dm.concatenate %x, %w, dim = 1 : (tensor<8x5xf32>, tensor<8x6xf32>) -> tensor<8x11xf32>", "tensor<8x11xf32>", 1, [2]int64{1, 1}, "[]"},
		{"zeros between", "%x: tensor<8x16xf32>, %z: tensor<f32>", "%y = dm.pad %x, %z, interior = [1, 0] : (tensor<8x16xf32>, tensor<f32>) -> tensor<15x16xf32>", "tensor<15x16xf32>", 4, [2]int64{1, 1}, "[{2 1} {1 16}]"},
		{"windows", "%x: tensor<2x16x16xf32>", "%y = dm.reduce_window add %x, window_dimensions = [1, 3, 3], padding = [[0, 0], [1, 1], [1, 1]] : (tensor<2x16x16xf32>) -> tensor<2x16x16xf32>", "tensor<2x16x16xf32>", 4, [2]int64{1, 2}, "[{1 1} {1 1} {4 1}]"},
		{"the gradient of windows", "%x: tensor<2x16x16xf32>, %s: tensor<2x8x8xf32>", "%y = dm.select_and_scatter max %x, %s, window_dimensions = [1, 2, 2], window_strides = [1, 2, 2] : (tensor<2x16x16xf32>, tensor<2x8x8xf32>) -> tensor<2x16x16xf32>", "tensor<2x16x16xf32>", 2, [2]int64{2, 1}, "[{1 1} {4 1} {2 1}]"},
		{"of overlapping windows", "%x: tensor<2x17x17xf32>, %s: tensor<2x8x8xf32>", "%y = dm.select_and_scatter max %x, %s, window_dimensions = [1, 3, 3], window_strides = [1, 2, 2] : (tensor<2x17x17xf32>, tensor<2x8x8xf32>) -> tensor<2x17x17xf32>", "tensor<2x17x17xf32>", 1, [2]int64{1, 2}, "[{1 1} {2 1} {2 1}]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			fn := load(t, "func.func @f("+c.in+") -> "+c.result+" {\n"+c.body+"\nreturn %y : "+c.result+"\n}\n")
			f, err := Of(fn.Body.Ops[:len(fn.Body.Ops)-1], fn.Body.Terminator().Operands)
			if err != nil {
				t.Fatal(err)
			}
			got := "[]"
			for _, cells := range f.Fit(c.neighbours, c.times) {
				got = fmt.Sprint(cells.Axes)
			}
			if got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}
