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

// Cells of sums over windows are whole along the dimensions that windows do not move along, where memory has them: bounds of windows
// say nothing there of what is read.
func TestSumCells(t *testing.T) {
	cube := "%x: tensor<1x4x3x3xf32>, %w: tensor<6x4x3x3xf32>"
	spread := "%c = dm.convolution %x, %w, lhs_dilation = [2, 2], padding = [[2, 1], [2, 1]] : (tensor<1x4x3x3xf32>, tensor<6x4x3x3xf32>) -> tensor<1x6x6x6xf32>\n"
	for _, c := range []struct{ name, in, body, result, moves string }{
		{"as it is", cube, spread + "%y = dm.relu %c : tensor<1x6x6x6xf32>", "tensor<1x6x6x6xf32>", "0011"},
		{"channels last, of as many lines and columns", cube, spread + "%y = dm.transpose %c, dims = [0, 2, 3, 1] : (tensor<1x6x6x6xf32>) -> tensor<1x6x6x6xf32>", "tensor<1x6x6x6xf32>", "0000"},
		{"ops behind a transpose", cube, spread + "%d = dm.transpose %c, dims = [0, 3, 2, 1] : (tensor<1x6x6x6xf32>) -> tensor<1x6x6x6xf32>\n%y = dm.abs %d : tensor<1x6x6x6xf32>", "tensor<1x6x6x6xf32>", "0000"},
		{"channels last in memory", cube, spread + "%y = dm.relu %c : (tensor<1x6x6x6xf32>) -> tensor<1x6x6x6xf32, #dm.at<order = [0, 2, 3, 1]>>", "tensor<1x6x6x6xf32, #dm.at<order = [0, 2, 3, 1]>>", "0110"},
	} {
		t.Run(c.name, func(t *testing.T) {
			fn := load(t, "func.func @f("+c.in+") -> "+c.result+" {\n"+c.body+"\nreturn %y : "+c.result+"\n}\n")
			f, err := Of(fn.Body.Ops[:len(fn.Body.Ops)-1], fn.Body.Terminator().Operands)
			if err != nil {
				t.Fatal(err)
			}
			all := f.Sums().SumCells(4)
			if len(all) < 2 {
				t.Fatalf("%d sizes of cells", len(all))
			}
			for _, cells := range all {
				for d, a := range cells.Axes {
					if c.moves[d] == '0' && cells.shape[d]%(a.N*a.Stride) != 0 {
						t.Errorf("%v of %v are not whole along dimension %d", cells.Axes, cells.shape, d)
					}
				}
			}
		})
	}
}
