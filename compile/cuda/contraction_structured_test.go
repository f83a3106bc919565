package cuda

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"dmir/testkit/need"
)

// structuredCases are products with a 2:4 operand: of the rows, of the columns, with edges, in a batch, with prologues and epilogues.
var structuredCases = func() (out []productCase) {
	for _, c := range []struct {
		name, equation, w, x, e, y string
		words                      int
	}{
		{"rows", "mk,kn->mn", "72x96", "192x40", "72x6xui32", "72x40", 72 * 6},
		{"columns", "nk,mk->mn", "136x160", "24x320", "136x10xui32", "24x136", 136 * 10},
		{"columns of rows along k", "nk,km->mn", "40x64", "128x72", "40x4xui32", "72x40", 40 * 4},
		{"batch", "zmk,zkn->zmn", "2x40x32", "2x64x24", "2x40x2xui32", "2x40x24", 80 * 2},
	} {
		out = append(out, productCase{
			name: c.name, args: fmt.Sprintf("%%w: tensor<%sxELEM>, %%x: tensor<%sxELEM>, %%e: tensor<%s>", c.w, c.x, c.e),
			body: fmt.Sprintf("%%y = dm.structured_einsum %q %%w, %%x, %%e : (tensor<%sxELEM>, tensor<%sxELEM>, tensor<%s>) -> tensor<%sxELEM>", c.equation, c.w, c.x, c.e, c.y),
			out:  fmt.Sprintf("%%y : tensor<%sxELEM>", c.y), positions: rising(c.words),
		})
	}
	return append(out, productCase{
		name: "around", args: "%v: tensor<64x64xf32>, %x: tensor<48x128xELEM>, %b: tensor<64xELEM>, %e: tensor<64x4xui32>",
		body: `%w = dm.convert %v : (tensor<64x64xf32>) -> tensor<64x64xELEM>
%0 = dm.structured_einsum "nk,mk->mn" %w, %x, %e : (tensor<64x64xELEM>, tensor<48x128xELEM>, tensor<64x4xui32>) -> tensor<48x64xELEM>
%1 = dm.add %0, %b : (tensor<48x64xELEM>, tensor<64xELEM>) -> tensor<48x64xELEM>
%y = dm.relu %1 : tensor<48x64xELEM>`,
		out: "%y : tensor<48x64xELEM>", positions: rising(64 * 4),
	})
}()

// rising are words of metadata, of groups whose places rise.
func rising(words int) []int {
	r := rand.New(rand.NewPCG(24, 1))
	out := make([]int, words)
	for i := range out {
		for k := range 8 {
			out[i] |= []int{0b0100, 0b1000, 0b1100, 0b1001, 0b1101, 0b1110}[r.IntN(6)] << (4 * k)
		}
	}
	return out
}

func structuredIn(t *testing.T, c *collection, add func(p productCase)) {
	t.Helper()
	n, all := 0, map[string]bool{}
	for i, p := range structuredCases {
		for j, tile := range structuredTiles {
			q := p.of([]string{"f16", "bf16"}[(i+j)%2], tile)
			if !c.takes(t, q) {
				continue
			}
			all[tile.String()] = true
			if n++; need.Turn(t, n, 4) {
				add(q)
			}
		}
	}
	if len(all) != len(structuredTiles) {
		t.Errorf("%d of %d tiles compute a product", len(all), len(structuredTiles))
	}
}

// Products with 2:4 operands by mma.sp, in all tiles.
func TestContractionStructured(t *testing.T) {
	t.Parallel()
	c := newCollection(targetOf(t, "sm_80"))
	structuredIn(t, c, func(p productCase) { c.add(t, p, true) })
	c.emulate(t)
}

// None of them spills, and the checker finds nothing.
func TestContractionStructuredCompiles(t *testing.T) {
	t.Parallel()
	need.Long(t)
	c := newCollection(targetOf(t, "sm_80"))
	structuredIn(t, c, func(p productCase) { c.add(t, p, false) })
	c.compile(t, "sm_80")
}
