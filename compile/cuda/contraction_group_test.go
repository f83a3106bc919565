package cuda

import (
	"slices"
	"testing"

	"dmir/testkit/need"
)

// inGroups are products of groups, one of them empty, which begin and end anywhere: of rows, with a matrix each, and of parts of the sum.
var inGroups = []productCase{
	{
		name: "rows", args: "%x: tensor<300x128xELEM>, %w: tensor<5x128x256xELEM>, %p: tensor<6xi32>",
		body: "%y = dm.grouped_matmul %x, %w, %p : (tensor<300x128xELEM>, tensor<5x128x256xELEM>, tensor<6xi32>) -> tensor<300x256xELEM>", out: "%y : tensor<300x256xELEM>",
		positions: []int{3, 70, 75, 75, 231, 290},
	},
	{
		name: "rows by turned matrices", args: "%x: tensor<300x200xELEM>, %w: tensor<5x256x200xELEM>, %p: tensor<6xi32>",
		body: "%y = dm.grouped_matmul %x, %w, %p, transpose_b = true : (tensor<300x200xELEM>, tensor<5x256x200xELEM>, tensor<6xi32>) -> tensor<300x256xELEM>", out: "%y : tensor<300x256xELEM>",
		positions: []int{0, 1, 129, 200, 200, 300},
	},
	{
		name: "two products of rows", args: "%x: tensor<300x64xELEM>, %w: tensor<5x64x256xELEM>, %v: tensor<5x64x256xELEM>, %p: tensor<6xi32>",
		body: `%a = dm.grouped_matmul %x, %w, %p : (tensor<300x64xELEM>, tensor<5x64x256xELEM>, tensor<6xi32>) -> tensor<300x256xELEM>
%b = dm.grouped_matmul %x, %v, %p : (tensor<300x64xELEM>, tensor<5x64x256xELEM>, tensor<6xi32>) -> tensor<300x256xELEM>
%y = dm.mul %a, %b : tensor<300x256xELEM>`, out: "%y : tensor<300x256xELEM>",
		positions: []int{0, 299, 299, 299, 299, 300},
	},
	{
		name: "parts of the sum", args: "%x: tensor<320x136xELEM>, %w: tensor<320x256xELEM>, %p: tensor<4xi32>",
		body: "%y = dm.grouped_matmul %x, %w, %p : (tensor<320x136xELEM>, tensor<320x256xELEM>, tensor<4xi32>) -> tensor<3x136x256xELEM>", out: "%y : tensor<3x136x256xELEM>",
		positions: []int{7, 7, 200, 301},
	},
}

// takenInGroups calls add with each product of groups and each tile that tensor maps or copies feed.
func takenInGroups(t *testing.T, c *collection, add func(p productCase)) {
	t.Helper()
	taken := make([]int, len(inGroups))
	for i, p := range inGroups {
		for j, tile := range slices.Concat(wgmmaTiles, gatherTiles, tf32Tiles(wgmmaTiles)) {
			elem := []string{"f16", "bf16"}[(i+j)%2]
			if tile.TF32 {
				elem = "tf32"
			}
			if q := p.of(elem, tile); c.takes(t, q) {
				taken[i]++
				add(q)
			}
		}
	}
	if want := []int{len(wgmmaTiles), 2 * len(wgmmaTiles), 6, len(gatherTiles)}; !slices.Equal(taken, want) {
		t.Errorf("%v tiles, want %v", taken, want)
	}
}

// Groups on Hopper's tensor cores in all tiles, with few blocks that have many tiles each, some of them empty, and with many.
func TestContractionInGroups(t *testing.T) {
	t.Parallel()
	need.Long(t)
	for _, sms := range []int{3, 132} {
		c := newCollection(withSMs(targetOf(t, "sm_90a"), sms))
		n := 0
		takenInGroups(t, c, func(p productCase) {
			if n++; (n%2 == 0) == (sms == 3) {
				c.add(t, p, true)
			}
		})
		c.emulate(t)
	}
}

// None of them spills, and the checker finds nothing.
func TestContractionInGroupsCompiles(t *testing.T) {
	t.Parallel()
	need.Long(t)
	c := newCollection(targetOf(t, "sm_90a"))
	n := 0
	takenInGroups(t, c, func(p productCase) {
		if n++; need.Turn(t, n, 4) {
			c.add(t, p, false)
		}
	})
	c.compile(t, "sm_90a")
}
