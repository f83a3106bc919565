package cuda

import (
	"fmt"
	"slices"
	"testing"

	"dmir/compile/suite"
	"dmir/gpu/artifact"
	"dmir/testkit/need"
)

func clustered(c Config, n int) Config {
	c.Splits, c.Cluster = n, true
	return c
}

// sharedSum is a product whose last rows, columns and step end inside of a tile, of which blocks of a cluster share the sums.
func sharedSum(eq string, m, n, k int, result string) productCase {
	of := map[byte]int{'m': m, 'n': n, 'k': k}
	shape := func(l, elem string) string { return fmt.Sprintf("tensor<%dx%dx%s>", of[l[0]], of[l[1]], elem) }
	x, w, y := shape(eq[:2], "ELEM"), shape(eq[3:5], "ELEM"), shape(eq[7:], result)
	return productCase{
		name: fmt.Sprintf("cluster_%s_%s_%d", eq[:2], eq[3:5], k), args: "%x: " + x + ", %w: " + w,
		body: fmt.Sprintf("%%y = dm.einsum %q %%x, %%w : (%s, %s) -> %s", eq, x, w, y), out: "%y : " + y,
	}
}

// Blocks of a cluster that add their sums up on the chip, on every path: fewer rows than blocks, several tiles and matrices, sums of which
// some blocks have one step or none, single elements and vectors, two products, operands and results that are computed.
func TestContractionClusters(t *testing.T) {
	t.Parallel()
	need.Long(t)
	_, _, all := suite.Recording()
	for n, arch := range []string{"sm_90a", "sm_100"} {
		c := newCollection(targetOf(t, arch))
		for i, tile := range slices.Concat(mmaTiles, fmaTiles[:2]) {
			if !all && i%2 == 0 != (arch == "sm_90a") {
				continue
			}
			elem := []string{"f16", "bf16"}[i%2]
			if tile.Path == Fma {
				elem = "f32"
			}
			eq := []string{"mk,nk->mn", "mk,kn->mn", "km,nk->nm", "km,kn->mn"}[(i+i/4)%4]
			m, n := []int{3, tile.BM - 8, tile.BM + 5}[i%3], []int{tile.BN - 8, 2*tile.BN - 9, tile.BN}[i%3]
			c.add(t, sharedSum(eq, m, n, []int{333, 520, 41}[i%3], "ELEM").of(elem, clustered(tile, []int{2, 4, 8}[i%3])), true)
		}
		if arch == "sm_90a" {
			for i, tile := range slices.Concat(wgmmaTiles[:4], byteTiles[2:], wgmmaTiles[5:6]) {
				elem, result := []string{"f16", "bf16"}[i%2], "ELEM"
				if tile.bytes() {
					elem, result = "f8E4M3FN", "bf16"
				}
				if all || i != 1 {
					c.add(t, sharedSum("mk,nk->mn", tile.BM-24, tile.BN+8, []int{720, 400, 720, 400, 720, 1024}[i], result).of(elem, clustered(tile, []int{4, 2, 8, 4, 2, 8}[i])), true)
				}
			}
			c.add(t, gathered[1].of("f16", clustered(gatherTiles[4], 4)), true)
			c.add(t, batched.of("bf16", clustered(wgmmaTiles[3], 2)), true)
			c.add(t, pairedGates.of("f16", clustered(wgmmaTiles[2], 2)), true)
			c.add(t, around[1].of("f32", clustered(fmaTiles[1], 2)), true)
			c.add(t, around[4].of("bf16", clustered(mmaTiles[5], 2)), true)
		} else {
			c.add(t, around[1].of("f16", clustered(mmaTiles[5], 2)), true)
			c.add(t, around[9].of("bf16", clustered(mmaTiles[5], 2)), true)
			c.add(t, around[9].of("f32", clustered(fmaTiles[3], 2)), true)
			c.add(t, sharedSum("mk,nk->mn", 35, 69, 200, "ELEM").of("f64", clustered(fmaTiles[1], 4)), true)
			c.add(t, sharedSum("mk,kn->mn", 35, 69, 200, "ELEM").of("i64", clustered(fmaTiles[2], 2)), true)
		}
		c.emulate(t)
		if need.Turn(t, n, 2) {
			c.compile(t, arch)
		}
		if len(c.out.Steps) != len(c.cases) || slices.ContainsFunc(c.out.Kernels, func(k artifact.Kernel) bool { return k.Block.Cluster < 2 }) {
			t.Errorf("%s: %d launches of %d products", arch, len(c.out.Steps), len(c.cases))
		}
	}
}
