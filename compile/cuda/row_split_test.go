package cuda

import "testing"

// longRows are reductions over few long rows, which several blocks share.
var longRows = []productCase{
	{
		name: "all", args: "%x: tensor<3x7001xf32>", out: "%y : tensor<f32>",
		body: "%y = dm.reduce add %x, dims = [0, 1] : (tensor<3x7001xf32>) -> tensor<f32>",
	},
	{name: "mean_of_squares", args: "%x: tensor<4x8x1024xbf16>, %w: tensor<4x8x1024xbf16>", out: "%y : tensor<f32>", body: `
%d = dm.sub %x, %w : tensor<4x8x1024xbf16>
%f = dm.convert %d : (tensor<4x8x1024xbf16>) -> tensor<4x8x1024xf32>
%s = dm.mul %f, %f : tensor<4x8x1024xf32>
%y = dm.reduce add %s, dims = [0, 1, 2] : (tensor<4x8x1024xf32>) -> tensor<f32>`},
	{name: "greatest_and_sum", args: "%x: tensor<2x20480xf32>, %b: tensor<2xf32>", out: "%y, %z : tensor<2xf32>, tensor<2xf32>", body: `
%m = dm.reduce max %x, dims = [1] : (tensor<2x20480xf32>) -> tensor<2xf32>
%y = dm.add %m, %b : tensor<2xf32>
%z = dm.reduce add %x, dims = [1] : (tensor<2x20480xf32>) -> tensor<2xf32>`},
	{
		name: "whole_numbers", args: "%x: tensor<9001xi32>", out: "%y : tensor<i32>",
		body: "%y = dm.reduce add %x, dims = [0] : (tensor<9001xi32>) -> tensor<i32>",
	},
}

func TestLongRows(t *testing.T) {
	c := newCollection(targetOf(t, "sm_90a"))
	for _, p := range longRows {
		p.rows = true
		c.add(t, p, true)
	}
	if n := len(c.out.Steps); n != 2*len(longRows) {
		t.Errorf("%d steps for %d reductions of rows that several blocks share", n, len(longRows))
	}
	c.emulate(t)
	c.compile(t, "sm_80", "sm_90a")
}
