package cuda

import (
	"testing"

	"dmir/compile/assemble"
	"dmir/compile/kernel"
	"dmir/testkit/need"
)

// sums are f, a contraction, as sums over windows, with each of the cells.
func (t Target) sums(tt *testing.T, f *kernel.Form) []*windowSum {
	tt.Helper()
	tiled, err := f.Tiled()
	if err != nil {
		tt.Fatal(err)
	}
	return t.windowSums(f, shapeOf(tiled), assemble.Options{})
}

// Convolutions of few products: sizes that cells do not divide, strides, dilations, phases of a gradient, groups of several channels,
// channels last, and what is computed before and behind the sums.
var windowSums = []productCase{
	{
		name: "depthwise", args: "%x: tensor<2x3x7x9xELEM>, %w: tensor<3x1x3x3xELEM>, %b: tensor<3x1x1xELEM>",
		body: `%a = dm.abs %x : tensor<2x3x7x9xELEM>
%0 = dm.convolution %a, %w, padding = [[1, 1], [2, 0]], feature_group_count = 3 : (tensor<2x3x7x9xELEM>, tensor<3x1x3x3xELEM>) -> tensor<2x3x7x9xELEM>
%1 = dm.add %0, %b : (tensor<2x3x7x9xELEM>, tensor<3x1x1xELEM>) -> tensor<2x3x7x9xELEM>
%y = dm.relu %1 : tensor<2x3x7x9xELEM>`, out: "%y : tensor<2x3x7x9xELEM>",
	},
	{
		name: "depthwise strided", args: "%x: tensor<2x4x11x16xELEM>, %w: tensor<8x1x5x3xELEM>",
		body: "%y = dm.convolution %x, %w, window_strides = [2, 2], rhs_dilation = [1, 2], padding = [[2, 3], [2, 3]], feature_group_count = 4 : (tensor<2x4x11x16xELEM>, tensor<8x1x5x3xELEM>) -> tensor<2x8x6x9xELEM>",
		out:  "%y : tensor<2x8x6x9xELEM>",
	},
	{
		name: "depthwise transposed", args: "%x: tensor<2x3x5x4xELEM>, %w: tensor<3x1x3x3xELEM>",
		body: "%y = dm.convolution %x, %w, lhs_dilation = [2, 3], padding = [[1, 2], [1, 1]], feature_group_count = 3 : (tensor<2x3x5x4xELEM>, tensor<3x1x3x3xELEM>) -> tensor<2x3x10x10xELEM>",
		out:  "%y : tensor<2x3x10x10xELEM>",
	},
	{
		name: "few channels of a group", args: "%x: tensor<2x6x9x8xELEM>, %w: tensor<9x2x3x3xELEM>",
		body: "%y = dm.convolution %x, %w, feature_group_count = 3, padding = [[1, 1], [1, 1]] : (tensor<2x6x9x8xELEM>, tensor<9x2x3x3xELEM>) -> tensor<2x9x9x8xELEM>",
		out:  "%y : tensor<2x9x9x8xELEM>",
	},
	{
		name: "depthwise channels last", args: "%x: tensor<2x12x7x6xELEM, #dm.at<order = [0, 2, 3, 1]>>, %w: tensor<12x1x3x3xELEM>",
		body: "%y = dm.convolution %x, %w, feature_group_count = 12, padding = [[1, 1], [1, 1]] : (tensor<2x12x7x6xELEM, #dm.at<order = [0, 2, 3, 1]>>, tensor<12x1x3x3xELEM>) -> tensor<2x12x7x6xELEM, #dm.at<order = [0, 2, 3, 1]>>",
		out:  "%y : tensor<2x12x7x6xELEM, #dm.at<order = [0, 2, 3, 1]>>",
	},
	{
		name: "depthwise large", args: "%x: tensor<1x2x13x16xELEM>, %w: tensor<2x1x7x7xELEM>",
		body: "%y = dm.convolution %x, %w, feature_group_count = 2, padding = [[3, 3], [3, 3]] : (tensor<1x2x13x16xELEM>, tensor<2x1x7x7xELEM>) -> tensor<1x2x13x16xELEM>",
		out:  "%y : tensor<1x2x13x16xELEM>",
	},
	{
		name: "as many channels as lines, which are last", args: "%x: tensor<1x4x3x3xELEM>, %w: tensor<6x4x3x3xELEM>",
		body: `%0 = dm.convolution %x, %w, lhs_dilation = [2, 2], padding = [[2, 1], [2, 1]] : (tensor<1x4x3x3xELEM>, tensor<6x4x3x3xELEM>) -> tensor<1x6x6x6xELEM>
%y = dm.transpose %0, dims = [0, 2, 3, 1] : (tensor<1x6x6x6xELEM>) -> tensor<1x6x6x6xELEM>`, out: "%y : tensor<1x6x6x6xELEM>",
	},
}

// Cells of sums over windows are computed as the reference does.
func TestWindowSums(t *testing.T) {
	t.Parallel()
	need.Long(t)
	c := newCollection(targetOf(t, "sm_90a"))
	for i, p := range windowSums {
		for _, elem := range []string{"f32", []string{"f16", "bf16", "f64"}[i%3]} {
			p := p.of(elem, Config{})
			m := module(t, p).Funcs[0]
			f, err := kernel.Of(m.Body.Ops[:len(m.Body.Ops)-1], m.Body.Terminator().Operands)
			if err != nil {
				t.Fatal(err)
			}
			n := len(c.target.sums(t, f))
			if n == 0 {
				t.Fatalf("%s is no sum over windows", p.name)
			}
			for k := i % 2; k < n; k += 4 { // each of the sizes in some case
				p.cell = k + 1
				c.add(t, p, true)
			}
		}
	}
	c.emulate(t)
}
