package cuda

import (
	"slices"
	"testing"

	"dmir/testkit/need"
)

// ofBlocks are products of rows of blocks, one of them empty, with rows that their coordinates name, and those of blocks alone.
var ofBlocks = []productCase{
	{
		name: "rows of blocks", args: "%v: tensor<20x32x16xELEM>, %w: tensor<11x16x72xELEM>, %p: tensor<5xi32>",
		body: `%i = dm.iota dim = 0 : tensor<20xi32>
%m = dm.mul %i, %i : tensor<20xi32>
%n = dm.constant dense<11> : tensor<i32>
%c = dm.rem %m, %n : (tensor<20xi32>, tensor<i32>) -> tensor<20xi32>
%t = dm.transpose %v, dims = [0, 2, 1] : (tensor<20x32x16xELEM>) -> tensor<20x16x32xELEM>
%x = dm.reshape %t : (tensor<20x16x32xELEM>) -> tensor<320x32xELEM>
%g = dm.gather %w, %c, dim = 0 : (tensor<11x16x72xELEM>, tensor<20xi32>) -> tensor<20x16x72xELEM>
%b = dm.reshape %g : (tensor<20x16x72xELEM>) -> tensor<320x72xELEM>
%y = dm.grouped_matmul %x, %b, %p, block = 16 : (tensor<320x32xELEM>, tensor<320x72xELEM>, tensor<5xi32>) -> tensor<4x32x72xELEM>`,
		out: "%y : tensor<4x32x72xELEM>", positions: []int{0, 3, 3, 9, 18},
	},
	{
		name: "blocks", args: "%q: tensor<4x32x72xELEM>, %w: tensor<11x16x72xELEM>, %p: tensor<5xi32>",
		body: `%i = dm.iota dim = 0 : tensor<20xi32>
%m = dm.mul %i, %i : tensor<20xi32>
%n = dm.constant dense<11> : tensor<i32>
%c = dm.rem %m, %n : (tensor<20xi32>, tensor<i32>) -> tensor<20xi32>
%g = dm.gather %w, %c, dim = 0 : (tensor<11x16x72xELEM>, tensor<20xi32>) -> tensor<20x16x72xELEM>
%b = dm.reshape %g : (tensor<20x16x72xELEM>) -> tensor<320x72xELEM>
%s = dm.grouped_matmul %b, %q, %p, transpose_b = true, block = 16 : (tensor<320x72xELEM>, tensor<4x32x72xELEM>, tensor<5xi32>) -> tensor<320x32xELEM>
%r = dm.reshape %s : (tensor<320x32xELEM>) -> tensor<20x16x32xELEM>
%y = dm.transpose %r, dims = [0, 2, 1] : (tensor<20x16x32xELEM>) -> tensor<20x32x16xELEM>`,
		out: "%y : tensor<20x32x16xELEM>", positions: []int{0, 5, 5, 6, 19},
	},
}

// ofBlocksIn calls add with each product of blocks and each tile of mma.sync.
func ofBlocksIn(t *testing.T, c *collection, add func(p productCase)) {
	t.Helper()
	n := 0
	for i, p := range ofBlocks {
		for j, tile := range slices.Concat(mmaTiles, blockTiles, mmaTF32Tiles, tf32Tiles(blockTiles)) {
			elem := []string{"f16", "bf16"}[(i+j)%2]
			if tile.TF32 {
				elem = "tf32"
			}
			q := p.of(elem, tile)
			if !c.takes(t, q) {
				t.Errorf("%s takes no %s", p.name, tile)
				continue
			}
			if n++; need.Turn(t, n, 4) {
				add(q)
			}
		}
	}
}

// Products of blocks on tensor cores, in all tiles.
func TestContractionOfBlocks(t *testing.T) {
	t.Parallel()
	need.Long(t)
	c := newCollection(targetOf(t, "sm_80"))
	ofBlocksIn(t, c, func(p productCase) { c.add(t, p, true) })
	c.emulate(t)
}

// None of them spills, and the checker finds nothing.
func TestContractionOfBlocksCompiles(t *testing.T) {
	t.Parallel()
	need.Long(t)
	c := newCollection(targetOf(t, "sm_90a"))
	ofBlocksIn(t, c, func(p productCase) { c.add(t, p, false) })
	c.compile(t, "sm_90a")
}
