package cuda

import (
	"slices"
	"strings"
	"testing"

	"dmir/testkit/need"
)

// linesOfK reports whether both operands of an order of orders are contiguous along k, in lines that a tensor map can copy.
func linesOfK(p productCase) bool {
	return strings.HasPrefix(p.name, "mk_nk") && strings.HasSuffix(p.name, "even")
}

// Operands rounded to TF32 give what the reference executor gives, which rounds them the same: by warps in every order, with partial tiles,
// windows, prologues and epilogues, and on Hopper by warpgroups where operands are contiguous along k.
func TestContractionTF32(t *testing.T) {
	t.Parallel()
	need.Long(t)
	c := newCollection(targetOf(t, "sm_80"))
	for i, p := range orders {
		c.turn(t, p.of("tf32", mmaTF32Tiles[i%len(mmaTF32Tiles)]), 2)
		c.turn(t, p.of("tf32", mmaTF32Tiles[(i+5)%len(mmaTF32Tiles)]), 2)
	}
	for i, p := range long {
		c.turn(t, p.of("tf32", mmaTF32Tiles[i]), 2)
		c.turn(t, p.of("tf32", mmaTF32Tiles[6+i]), 2)
		p.name += "_split"
		c.turn(t, p.of("tf32", split(mmaTF32Tiles[5], 4)), 2)
	}
	for i, p := range slices.Concat(convolutions, gathered, groups, around, reducing) {
		if need.Turn(t, i, 2) { // of f16 and f32, whose loads and stores are the same, every test computes all
			c.add(t, p.of("tf32", Config{}), true)
		}
	}
	c.emulate(t)

	c = newCollection(targetOf(t, "sm_90a"))
	for _, p := range orders {
		for _, tile := range tf32Tiles(wgmmaTiles) {
			if linesOfK(p) {
				c.turn(t, p.of("tf32", tile), 2)
			}
		}
	}
	for _, tile := range tf32Tiles(wgmmaTiles) {
		p := long[0]
		c.turn(t, p.of("tf32", tile), 2)
		p.name += "_split"
		c.turn(t, p.of("tf32", split(tile, 3)), 2)
	}
	for i, p := range slices.Concat(groups, around, reducing) {
		if need.Turn(t, i, 3) { // most are computed by warps, as those of sm_80 above
			c.add(t, p.of("tf32", Config{}), true)
		}
	}
	c.emulate(t)
}
