package cuda

import (
	"fmt"
	"strings"
)

// Every order of the operands and the result, with partial tiles.
var orders = func() []productCase {
	var out []productCase
	for _, eq := range []string{"mk,nk->mn", "mk,kn->mn", "km,nk->mn", "km,kn->mn", "mk,nk->nm", "km,kn->nm"} {
		for _, size := range []struct {
			name    string
			m, n, k int
		}{{"even", 72, 88, 40}, {"odd", 35, 69, 37}} {
			of := map[byte]int{'m': size.m, 'n': size.n, 'k': size.k}
			shape := func(letters string) string {
				return fmt.Sprintf("tensor<%dx%dxELEM>", of[letters[0]], of[letters[1]])
			}
			left, right := shape(eq[:2]), shape(eq[3:5])
			y := shape(eq[7:])
			out = append(out, productCase{
				name: strings.NewReplacer(",", "_", "->", "_").Replace(eq) + "_" + size.name,
				args: "%x: " + left + ", %w: " + right,
				body: fmt.Sprintf("%%y = dm.einsum %q %%x, %%w : (%s, %s) -> %s", eq, left, right, y),
				out:  "%y : " + y,
			})
		}
	}
	return out
}()

// Longer than the pipeline: slots are used again.
var long = func() []productCase {
	var out []productCase
	for _, eq := range []string{"mk,nk->mn", "km,kn->mn"} {
		of := map[byte]string{'m': "136", 'n': "72", 'k': "712"}
		shape := func(l string) string { return "tensor<" + of[l[0]] + "x" + of[l[1]] + "xELEM>" }
		out = append(out, productCase{
			name: "long_" + eq[:2] + "_" + eq[3:5], args: "%x: " + shape(eq[:2]) + ", %w: " + shape(eq[3:5]),
			body: fmt.Sprintf("%%y = dm.einsum %q %%x, %%w : (%s, %s) -> %s", eq, shape(eq[:2]), shape(eq[3:5]), shape(eq[7:])),
			out:  "%y : " + shape(eq[7:]),
		})
	}
	return out
}()

// Prologues and epilogues of a product, and how its letters group. Sizes are small and
// mostly odd; the model chooses the tile.
var groups = []productCase{
	{
		name: "batch", args: "%x: tensor<3x20x40xELEM>, %w: tensor<3x40x24xELEM>",
		body: "%y = dm.matmul %x, %w : (tensor<3x20x40xELEM>, tensor<3x40x24xELEM>) -> tensor<3x20x24xELEM>", out: "%y : tensor<3x20x24xELEM>",
	},
	{
		name: "batch broadcast", args: "%x: tensor<2x1x20x40xELEM>, %w: tensor<3x24x40xELEM>",
		body: "%y = dm.matmul %x, %w, transpose_b = true : (tensor<2x1x20x40xELEM>, tensor<3x24x40xELEM>) -> tensor<2x3x20x24xELEM>", out: "%y : tensor<2x3x20x24xELEM>",
	},
	{
		name: "heads out", args: "%x: tensor<2x9x48xELEM>, %w: tensor<3x16x48xELEM>",
		body: `%y = dm.einsum "bln,hpn->bhlp" %x, %w : (tensor<2x9x48xELEM>, tensor<3x16x48xELEM>) -> tensor<2x3x9x16xELEM>`, out: "%y : tensor<2x3x9x16xELEM>",
	},
	{
		name: "heads in", args: "%x: tensor<2x3x9x16xELEM>, %w: tensor<24x3x16xELEM>",
		body: `%y = dm.einsum "bhlp,nhp->bln" %x, %w : (tensor<2x3x9x16xELEM>, tensor<24x3x16xELEM>) -> tensor<2x9x24xELEM>`, out: "%y : tensor<2x9x24xELEM>",
	},
	{
		name: "weights gradient", args: "%x: tensor<2x24x40xELEM>, %g: tensor<2x24x32xELEM>",
		body: `%y = dm.einsum "bln,blu->nu" %x, %g : (tensor<2x24x40xELEM>, tensor<2x24x32xELEM>) -> tensor<40x32xELEM>`, out: "%y : tensor<40x32xELEM>",
	},
	{
		name: "scores", args: "%q: tensor<2x10x2x16xELEM>, %k: tensor<2x12x2x16xELEM>",
		body: `%y = dm.einsum "blhp,bmhp->bhlm" %q, %k : (tensor<2x10x2x16xELEM>, tensor<2x12x2x16xELEM>) -> tensor<2x2x10x12xELEM>`, out: "%y : tensor<2x2x10x12xELEM>",
	},
	{
		name: "vector", args: "%x: tensor<33x70xELEM>, %v: tensor<70xELEM>",
		body: `%y = dm.einsum "mk,k->m" %x, %v : (tensor<33x70xELEM>, tensor<70xELEM>) -> tensor<33xELEM>`, out: "%y : tensor<33xELEM>",
	},
	{
		name: "dot", args: "%x: tensor<70xELEM>, %v: tensor<70xELEM>",
		body: `%y = dm.einsum "k,k->" %x, %v : (tensor<70xELEM>, tensor<70xELEM>) -> tensor<ELEM>`, out: "%y : tensor<ELEM>",
	},
	{
		name: "outer", args: "%x: tensor<33xELEM>, %v: tensor<17xELEM>",
		body: `%y = dm.einsum "m,n->mn" %x, %v : (tensor<33xELEM>, tensor<17xELEM>) -> tensor<33x17xELEM>`, out: "%y : tensor<33x17xELEM>",
	},
	{
		name: "element by element", args: "%x: tensor<5x9xELEM>, %v: tensor<9xELEM>",
		body: `%y = dm.einsum "ab,b->ba" %x, %v : (tensor<5x9xELEM>, tensor<9xELEM>) -> tensor<9x5xELEM>`, out: "%y : tensor<9x5xELEM>",
	},
	{
		name: "diagonal", args: "%x: tensor<9x9x20xELEM>, %w: tensor<20x7xELEM>",
		body: `%y = dm.einsum "aak,kn->an" %x, %w : (tensor<9x9x20xELEM>, tensor<20x7xELEM>) -> tensor<9x7xELEM>`, out: "%y : tensor<9x7xELEM>",
	},
	{
		name: "summed alone", args: "%x: tensor<9x5x20xELEM>, %w: tensor<20x7x3xELEM>",
		body: `%y = dm.einsum "ajk,knq->an" %x, %w : (tensor<9x5x20xELEM>, tensor<20x7x3xELEM>) -> tensor<9x7xELEM>`, out: "%y : tensor<9x7xELEM>",
	},
	{
		name: "placements", args: "%x: tensor<24x40xELEM, #dm.at<order = [1, 0]>>, %w: tensor<40x16xELEM>",
		body: `%y = dm.einsum "mk,kn->mn" %x, %w : (tensor<24x40xELEM, #dm.at<order = [1, 0]>>, tensor<40x16xELEM>) -> tensor<24x16xELEM, #dm.at<order = [1, 0]>>`,
		out:  "%y : tensor<24x16xELEM, #dm.at<order = [1, 0]>>",
	},
}

var around = []productCase{
	{
		name: "bias relu", args: "%x: tensor<24x40xELEM>, %w: tensor<40x48xELEM>, %b: tensor<48xELEM>",
		body: `%0 = dm.einsum "mk,kn->mn" %x, %w : (tensor<24x40xELEM>, tensor<40x48xELEM>) -> tensor<24x48xELEM>
%1 = dm.add %0, %b : (tensor<24x48xELEM>, tensor<48xELEM>) -> tensor<24x48xELEM>
%y = dm.relu %1 : tensor<24x48xELEM>`, out: "%y : tensor<24x48xELEM>",
	},
	{
		name: "gelu residual two results", args: "%x: tensor<21x37xELEM>, %w: tensor<19x37xELEM>, %r: tensor<21x19xELEM>",
		body: `%0 = dm.einsum "mk,nk->mn" %x, %w : (tensor<21x37xELEM>, tensor<19x37xELEM>) -> tensor<21x19xELEM>
%1 = dm.gelu %0 : tensor<21x19xELEM>
%2 = dm.add %1, %r : tensor<21x19xELEM>`, out: "%1, %2 : tensor<21x19xELEM>, tensor<21x19xELEM>",
	},
	{
		name: "dropout", args: "%x: tensor<24x40xELEM>, %w: tensor<32x40xELEM>",
		body: `%0 = dm.einsum "mk,nk->mn" %x, %w : (tensor<24x40xELEM>, tensor<32x40xELEM>) -> tensor<24x32xELEM>
%1, %2 = dm.dropout %0, rate = 0.25, seed = 3 : (tensor<24x32xELEM>) -> (tensor<24x32xELEM>, tensor<24x32xi1>)`, out: "%1, %2 : tensor<24x32xELEM>, tensor<24x32xi1>",
	},
	{
		name: "dropout of a step", args: "%x: tensor<24x40xELEM>, %w: tensor<32x40xELEM>, %s: tensor<i32>",
		body: `%0 = dm.einsum "mk,nk->mn" %x, %w : (tensor<24x40xELEM>, tensor<32x40xELEM>) -> tensor<24x32xELEM>
%1, %2 = dm.dropout %0, %s, rate = 0.25, seed = 3 : (tensor<24x32xELEM>, tensor<i32>) -> (tensor<24x32xELEM>, tensor<24x32xi1>)`, out: "%1, %2 : tensor<24x32xELEM>, tensor<24x32xi1>",
	},
	{
		name: "computed operands", args: "%x: tensor<24x40xELEM>, %s: tensor<40xELEM>, %w: tensor<40x48xELEM>",
		body: `%a = dm.relu %x : tensor<24x40xELEM>
%b = dm.mul %a, %s : (tensor<24x40xELEM>, tensor<40xELEM>) -> tensor<24x40xELEM>
%c = dm.tanh %w : tensor<40x48xELEM>
%y = dm.einsum "mk,kn->mn" %b, %c : (tensor<24x40xELEM>, tensor<40x48xELEM>) -> tensor<24x48xELEM>`, out: "%y : tensor<24x48xELEM>",
	},
	{
		name: "parts of tensors", args: "%x: tensor<2x40x3x4x16xELEM>",
		body: `%0 = dm.slice %x, start_indices = [0, 0, 0, 0, 0], limit_indices = [2, 40, 1, 4, 16] : (tensor<2x40x3x4x16xELEM>) -> tensor<2x40x1x4x16xELEM>
%1 = dm.slice %x, start_indices = [0, 8, 1, 0, 0], limit_indices = [2, 40, 2, 4, 16] : (tensor<2x40x3x4x16xELEM>) -> tensor<2x32x1x4x16xELEM>
%q = dm.reshape %0 : (tensor<2x40x1x4x16xELEM>) -> tensor<2x40x4x16xELEM>
%k = dm.reshape %1 : (tensor<2x32x1x4x16xELEM>) -> tensor<2x32x4x16xELEM>
%y = dm.einsum "bihp,bjhp->bhij" %q, %k : (tensor<2x40x4x16xELEM>, tensor<2x32x4x16xELEM>) -> tensor<2x4x40x32xELEM>`, out: "%y : tensor<2x4x40x32xELEM>",
	},
	{
		name: "moved operand", args: "%x: tensor<2x8x3x16xELEM>, %w: tensor<48x40xELEM>",
		body: `%a = dm.transpose %x, dims = [0, 2, 1, 3] : (tensor<2x8x3x16xELEM>) -> tensor<2x3x8x16xELEM>
%b = dm.transpose %a, dims = [0, 2, 1, 3] : (tensor<2x3x8x16xELEM>) -> tensor<2x8x3x16xELEM>
%c = dm.reshape %b : (tensor<2x8x3x16xELEM>) -> tensor<16x48xELEM>
%y = dm.einsum "mk,kn->mn" %c, %w : (tensor<16x48xELEM>, tensor<48x40xELEM>) -> tensor<16x40xELEM>`, out: "%y : tensor<16x40xELEM>",
	},
	{
		name: "moved result", args: "%x: tensor<18x40xELEM>, %w: tensor<48x40xELEM>, %b: tensor<48xELEM>",
		body: `%0 = dm.einsum "mk,nk->mn" %x, %w : (tensor<18x40xELEM>, tensor<48x40xELEM>) -> tensor<18x48xELEM>
%1 = dm.add %0, %b : (tensor<18x48xELEM>, tensor<48xELEM>) -> tensor<18x48xELEM>
%2 = dm.reshape %1 : (tensor<18x48xELEM>) -> tensor<2x9x3x16xELEM>
%y = dm.transpose %2, dims = [0, 2, 1, 3] : (tensor<2x9x3x16xELEM>) -> tensor<2x3x9x16xELEM>`, out: "%y : tensor<2x3x9x16xELEM>",
	},
	{
		name: "gated", args: "%x: tensor<24x40xELEM>, %w: tensor<40x48xELEM>, %v: tensor<40x48xELEM>",
		body: `%0 = dm.einsum "mk,kn->mn" %x, %w : (tensor<24x40xELEM>, tensor<40x48xELEM>) -> tensor<24x48xELEM>
%1 = dm.einsum "mk,kn->mn" %x, %v : (tensor<24x40xELEM>, tensor<40x48xELEM>) -> tensor<24x48xELEM>
%2 = dm.silu %0 : tensor<24x48xELEM>
%y = dm.mul %2, %1 : tensor<24x48xELEM>`, out: "%y : tensor<24x48xELEM>",
	},
	{
		name: "gated odd", args: "%x: tensor<23x37xELEM>, %w: tensor<45x37xELEM>, %v: tensor<45x37xELEM>",
		body: `%0 = dm.einsum "mk,nk->mn" %x, %w : (tensor<23x37xELEM>, tensor<45x37xELEM>) -> tensor<23x45xELEM>
%1 = dm.einsum "mk,nk->mn" %x, %v : (tensor<23x37xELEM>, tensor<45x37xELEM>) -> tensor<23x45xELEM>
%y = dm.mul %1, %0 : tensor<23x45xELEM>`, out: "%y : tensor<23x45xELEM>",
	},
	{
		name: "wider result", args: "%x: tensor<24x40xELEM>, %w: tensor<32x40xELEM>",
		body: `%y = dm.einsum "mk,nk->mn" %x, %w : (tensor<24x40xELEM>, tensor<32x40xELEM>) -> tensor<24x32xf32>`, out: "%y : tensor<24x32xf32>",
	},
}

// Convolutions are products of a place and a window.
var convolutions = []productCase{
	{
		name: "conv padded", args: "%x: tensor<2x3x9x10xELEM>, %w: tensor<12x3x3x3xELEM>, %b: tensor<12x1x1xELEM>",
		body: `%0 = dm.convolution %x, %w, padding = [[1, 1], [1, 1]] : (tensor<2x3x9x10xELEM>, tensor<12x3x3x3xELEM>) -> tensor<2x12x9x10xELEM>
%1 = dm.add %0, %b : (tensor<2x12x9x10xELEM>, tensor<12x1x1xELEM>) -> tensor<2x12x9x10xELEM>
%y = dm.relu %1 : tensor<2x12x9x10xELEM>`, out: "%y : tensor<2x12x9x10xELEM>",
	},
	{
		name: "conv strided", args: "%x: tensor<2x8x12x12xELEM>, %w: tensor<16x8x3x3xELEM>",
		body: "%y = dm.convolution %x, %w, window_strides = [2, 2], padding = [[0, 1], [1, 0]] : (tensor<2x8x12x12xELEM>, tensor<16x8x3x3xELEM>) -> tensor<2x16x6x6xELEM>",
		out:  "%y : tensor<2x16x6x6xELEM>",
	},
	{
		name: "conv of one place", args: "%x: tensor<2x24x8x4xELEM>, %w: tensor<16x24x1x1xELEM>",
		body: "%y = dm.convolution %x, %w : (tensor<2x24x8x4xELEM>, tensor<16x24x1x1xELEM>) -> tensor<2x16x8x4xELEM>", out: "%y : tensor<2x16x8x4xELEM>",
	},
	{
		name: "conv in groups", args: "%x: tensor<2x6x7x7xELEM>, %w: tensor<9x2x3x3xELEM>",
		body: "%y = dm.convolution %x, %w, feature_group_count = 3 : (tensor<2x6x7x7xELEM>, tensor<9x2x3x3xELEM>) -> tensor<2x9x5x5xELEM>", out: "%y : tensor<2x9x5x5xELEM>",
	},
	{
		name: "conv transposed", args: "%x: tensor<2x8x6x5xELEM>, %w: tensor<16x8x4x4xELEM>",
		body: "%y = dm.convolution %x, %w, lhs_dilation = [2, 2], padding = [[2, 2], [2, 2]] : (tensor<2x8x6x5xELEM>, tensor<16x8x4x4xELEM>) -> tensor<2x16x12x10xELEM>", out: "%y : tensor<2x16x12x10xELEM>",
	},
	{
		name: "conv depthwise dilated", args: "%x: tensor<2x6x20xELEM>, %w: tensor<6x1x3xELEM>",
		body: "%y = dm.convolution %x, %w, feature_group_count = 6, rhs_dilation = [3], padding = [[3, 3]] : (tensor<2x6x20xELEM>, tensor<6x1x3xELEM>) -> tensor<2x6x20xELEM>", out: "%y : tensor<2x6x20xELEM>",
	},
}

// Operands that tensor maps cannot copy, whose elements lie side by side in eights: images and filters with channels last, and rows
// that a box would cross. Rows, columns and depths end inside of tiles and steps.
var gathered = []productCase{
	{
		name: "conv last", args: "%x: tensor<2x40x13x11xELEM, #dm.at<order = [0, 2, 3, 1]>>, %w: tensor<72x40x3x3xELEM, #dm.at<order = [0, 2, 3, 1]>>, %b: tensor<72x1x1xELEM>",
		body: `%0 = dm.convolution %x, %w, padding = [[1, 1], [1, 1]] : (tensor<2x40x13x11xELEM, #dm.at<order = [0, 2, 3, 1]>>, tensor<72x40x3x3xELEM, #dm.at<order = [0, 2, 3, 1]>>) -> tensor<2x72x13x11xELEM, #dm.at<order = [0, 2, 3, 1]>>
%1 = dm.add %0, %b : (tensor<2x72x13x11xELEM, #dm.at<order = [0, 2, 3, 1]>>, tensor<72x1x1xELEM>) -> tensor<2x72x13x11xELEM, #dm.at<order = [0, 2, 3, 1]>>
%y = dm.relu %1 : tensor<2x72x13x11xELEM, #dm.at<order = [0, 2, 3, 1]>>`, out: "%y : tensor<2x72x13x11xELEM, #dm.at<order = [0, 2, 3, 1]>>",
	},
	{
		name: "conv last of whole steps", args: "%x: tensor<3x64x9x10xELEM, #dm.at<order = [0, 2, 3, 1]>>, %w: tensor<136x64x3x3xELEM, #dm.at<order = [2, 3, 1, 0]>>",
		body: "%y = dm.convolution %x, %w, padding = [[1, 1], [0, 2]] : (tensor<3x64x9x10xELEM, #dm.at<order = [0, 2, 3, 1]>>, tensor<136x64x3x3xELEM, #dm.at<order = [2, 3, 1, 0]>>) -> tensor<3x136x9x10xELEM>",
		out:  "%y : tensor<3x136x9x10xELEM>",
	},
	{
		name: "conv last strided", args: "%x: tensor<2x16x12x13xELEM, #dm.at<order = [0, 2, 3, 1]>>, %w: tensor<24x16x3x2xELEM, #dm.at<order = [0, 2, 3, 1]>>",
		body: "%y = dm.convolution %x, %w, window_strides = [2, 3], rhs_dilation = [1, 2], padding = [[0, 1], [1, 0]] : (tensor<2x16x12x13xELEM, #dm.at<order = [0, 2, 3, 1]>>, tensor<24x16x3x2xELEM, #dm.at<order = [0, 2, 3, 1]>>) -> tensor<2x24x6x4xELEM, #dm.at<order = [0, 2, 3, 1]>>",
		out:  "%y : tensor<2x24x6x4xELEM, #dm.at<order = [0, 2, 3, 1]>>",
	},
	{
		name: "conv last transposed", args: "%x: tensor<2x24x6x5xELEM, #dm.at<order = [0, 2, 3, 1]>>, %w: tensor<16x24x4x4xELEM, #dm.at<order = [2, 3, 0, 1]>>",
		body: "%y = dm.convolution %x, %w, lhs_dilation = [2, 3], padding = [[2, 2], [2, 1]] : (tensor<2x24x6x5xELEM, #dm.at<order = [0, 2, 3, 1]>>, tensor<16x24x4x4xELEM, #dm.at<order = [2, 3, 0, 1]>>) -> tensor<2x16x12x13xELEM, #dm.at<order = [0, 2, 3, 1]>>",
		out:  "%y : tensor<2x16x12x13xELEM, #dm.at<order = [0, 2, 3, 1]>>",
	},
	{
		name: "conv last in groups", args: "%x: tensor<2x48x7x6xELEM, #dm.at<order = [0, 2, 3, 1]>>, %w: tensor<72x16x3x3xELEM, #dm.at<order = [0, 2, 3, 1]>>",
		body: "%y = dm.convolution %x, %w, feature_group_count = 3, padding = [[1, 1], [1, 1]] : (tensor<2x48x7x6xELEM, #dm.at<order = [0, 2, 3, 1]>>, tensor<72x16x3x3xELEM, #dm.at<order = [0, 2, 3, 1]>>) -> tensor<2x72x7x6xELEM, #dm.at<order = [0, 2, 3, 1]>>",
		out:  "%y : tensor<2x72x7x6xELEM, #dm.at<order = [0, 2, 3, 1]>>",
	},
	{ // the gradient of a filter: images are summed over, and lie along rows and columns
		name: "conv images last", args: "%x: tensor<24x3x10x9xELEM, #dm.at<order = [1, 2, 3, 0]>>, %w: tensor<16x3x8x7xELEM, #dm.at<order = [1, 2, 3, 0]>>",
		body: "%y = dm.convolution %x, %w, padding = [[1, 1], [1, 1]] : (tensor<24x3x10x9xELEM, #dm.at<order = [1, 2, 3, 0]>>, tensor<16x3x8x7xELEM, #dm.at<order = [1, 2, 3, 0]>>) -> tensor<24x16x5x5xELEM, #dm.at<order = [2, 3, 0, 1]>>",
		out:  "%y : tensor<24x16x5x5xELEM, #dm.at<order = [2, 3, 0, 1]>>",
	},
	{
		name: "rows of many boxes", args: "%x: tensor<2x3x9x16xELEM>, %w: tensor<24x3x16xELEM>",
		body: `%y = dm.einsum "bhlp,nhp->bln" %x, %w : (tensor<2x3x9x16xELEM>, tensor<24x3x16xELEM>) -> tensor<2x9x24xELEM>`, out: "%y : tensor<2x9x24xELEM>",
	},
	{
		name: "gated rows of many boxes", args: "%x: tensor<2x3x9x16xELEM>, %w: tensor<40x3x16xELEM>, %v: tensor<40x3x16xELEM>",
		body: `%0 = dm.einsum "bhlp,nhp->bln" %x, %w : (tensor<2x3x9x16xELEM>, tensor<40x3x16xELEM>) -> tensor<2x9x40xELEM>
%1 = dm.einsum "bhlp,nhp->bln" %x, %v : (tensor<2x3x9x16xELEM>, tensor<40x3x16xELEM>) -> tensor<2x9x40xELEM>
%2 = dm.silu %0 : tensor<2x9x40xELEM>
%y = dm.mul %2, %1 : tensor<2x9x40xELEM>
%s = dm.reduce %y, kind = max, dims = [2] : (tensor<2x9x40xELEM>) -> tensor<2x9xELEM>`, out: "%y, %s : tensor<2x9x40xELEM>, tensor<2x9xELEM>",
	},
}

// A convolution whose steps go through all taps of 64 channels, plane by plane, and then of the others.
var gatheredTaps = productCase{
	name: "conv of taps", args: "%x: tensor<1x128x7x8xELEM, #dm.at<order = [0, 2, 3, 1]>>, %w: tensor<24x128x3x3xELEM, #dm.at<order = [0, 2, 3, 1]>>",
	body: "%y = dm.convolution %x, %w, window_strides = [2, 1], padding = [[1, 1], [1, 1]] : (tensor<1x128x7x8xELEM, #dm.at<order = [0, 2, 3, 1]>>, tensor<24x128x3x3xELEM, #dm.at<order = [0, 2, 3, 1]>>) -> tensor<1x24x4x8xELEM, #dm.at<order = [0, 2, 3, 1]>>",
	out:  "%y : tensor<1x24x4x8xELEM, #dm.at<order = [0, 2, 3, 1]>>",
}

// Results that reduce elements: over rows, over columns, with and without a
// batch.
var reducing = []productCase{
	{
		name: "bias gradient", args: "%x: tensor<2x40x40xELEM>, %w: tensor<48x40xELEM>, %m: tensor<2x40x48xELEM>",
		body: `%0 = dm.einsum "blk,nk->bln" %x, %w : (tensor<2x40x40xELEM>, tensor<48x40xELEM>) -> tensor<2x40x48xELEM>
%1 = dm.mul %0, %m : tensor<2x40x48xELEM>
%b = dm.reduce %1, kind = add, dims = [0, 1] : (tensor<2x40x48xELEM>) -> tensor<48xELEM>`, out: "%1, %b : tensor<2x40x48xELEM>, tensor<48xELEM>",
	},
	{
		name: "row sums and largest", args: "%x: tensor<21x37xELEM>, %w: tensor<37x75xELEM>",
		body: `%y = dm.einsum "mk,kn->mn" %x, %w : (tensor<21x37xELEM>, tensor<37x75xELEM>) -> tensor<21x75xELEM>
%2 = dm.mul %y, %y : tensor<21x75xELEM>
%s = dm.reduce %2, kind = add, dims = [1], keep_dims = true : (tensor<21x75xELEM>) -> tensor<21x1xELEM>
%b = dm.reduce %y, kind = max, dims = [1] : (tensor<21x75xELEM>) -> tensor<21xELEM>
%c = dm.reduce %y, kind = min, dims = [0] : (tensor<21x75xELEM>) -> tensor<75xELEM>`,
		out: "%y, %s, %b, %c : tensor<21x75xELEM>, tensor<21x1xELEM>, tensor<21xELEM>, tensor<75xELEM>",
	},
	{
		name: "batches", args: "%x: tensor<3x20x40xELEM>, %w: tensor<3x40x24xELEM>",
		body: `%y = dm.matmul %x, %w : (tensor<3x20x40xELEM>, tensor<3x40x24xELEM>) -> tensor<3x20x24xELEM>
%a = dm.reduce %y, kind = add, dims = [1] : (tensor<3x20x24xELEM>) -> tensor<3x24xELEM>
%b = dm.reduce %y, kind = max, dims = [2] : (tensor<3x20x24xELEM>) -> tensor<3x20xELEM>
%c = dm.reduce %y, kind = add, dims = [0, 1] : (tensor<3x20x24xELEM>) -> tensor<24xELEM>`,
		out: "%y, %a, %b, %c : tensor<3x20x24xELEM>, tensor<3x24xELEM>, tensor<3x20xELEM>, tensor<24xELEM>",
	},
	{
		name: "gated sums", args: "%x: tensor<24x40xELEM>, %w: tensor<40x48xELEM>, %v: tensor<40x48xELEM>",
		body: `%0 = dm.einsum "mk,kn->mn" %x, %w : (tensor<24x40xELEM>, tensor<40x48xELEM>) -> tensor<24x48xELEM>
%1 = dm.einsum "mk,kn->mn" %x, %v : (tensor<24x40xELEM>, tensor<40x48xELEM>) -> tensor<24x48xELEM>
%y = dm.mul %0, %1 : tensor<24x48xELEM>
%s = dm.reduce %y, kind = max, dims = [0] : (tensor<24x48xELEM>) -> tensor<48xELEM>
%r = dm.reduce %y, kind = max, dims = [1] : (tensor<24x48xELEM>) -> tensor<24xELEM>`, out: "%y, %s, %r : tensor<24x48xELEM>, tensor<48xELEM>, tensor<24xELEM>",
	},
}

// Element types that tensor cores support after a conversion, or not at all.
var exactTypes = []productCase{
	{
		name: "both f8", args: "%x: tensor<24x40xf8E4M3FN>, %w: tensor<16x40xf8E5M2>",
		body: `%y = dm.einsum "mk,nk->mn" %x, %w : (tensor<24x40xf8E4M3FN>, tensor<16x40xf8E5M2>) -> tensor<24x16xf16>`, out: "%y : tensor<24x16xf16>",
	},
	{
		name: "f8 to f32", args: "%x: tensor<40x24xf8E5M2>, %w: tensor<40x18xf8E5M2>",
		body: `%y = dm.einsum "km,kn->mn" %x, %w : (tensor<40x24xf8E5M2>, tensor<40x18xf8E5M2>) -> tensor<24x18xf32>`, out: "%y : tensor<24x18xf32>",
	},
	{
		name: "f16 sums", args: "%x: tensor<24x40xf16>, %w: tensor<40x16xf16>",
		body: `%y = dm.einsum "mk,kn->mn" %x, %w {accumulate = f16} : (tensor<24x40xf16>, tensor<40x16xf16>) -> tensor<24x16xf16>`, out: "%y : tensor<24x16xf16>",
	},
	{
		name: "wider integers", args: "%x: tensor<24x40xi8>, %w: tensor<40x16xi8>",
		body: `%y = dm.einsum "mk,kn->mn" %x, %w : (tensor<24x40xi8>, tensor<40x16xi8>) -> tensor<24x16xi32>`, out: "%y : tensor<24x16xi32>",
	},
	{
		name: "unsigned", args: "%x: tensor<24x40xui16>, %w: tensor<40x16xui16>",
		body: `%y = dm.einsum "mk,kn->nm" %x, %w : (tensor<24x40xui16>, tensor<40x16xui16>) -> tensor<16x24xui16>`, out: "%y : tensor<16x24xui16>",
	},
}
