package cuda

import (
	"fmt"
	"slices"
	"testing"

	"dmir/analysis/machine"
	"dmir/compile/suite"
	"dmir/testkit/need"
)

// pairedTiles are all tiles whose blocks form pairs.
var pairedTiles = slices.DeleteFunc(paired(wgmmaTiles), func(c Config) bool {
	return c.Pair == "" || c.Pair == machine.PairRows && c.BN < 128 || c.Pair == machine.PairCols && c.BM < 128
})

// pairOf is a product of two pairs of tiles whose last rows and columns end inside of a tile.
func pairOf(tile Config, eq string, k int) productCase {
	of := map[byte]int{'m': tile.BM - 24, 'n': tile.BN - 8, 'k': k}
	switch tile.Pair {
	case machine.PairRows:
		of['m'] += 3 * tile.BM
	case machine.PairCols:
		of['n'] += 3 * tile.BN
	}
	shape := func(l string) string { return fmt.Sprintf("tensor<%dx%dxELEM>", of[l[0]], of[l[1]]) }
	return productCase{
		name: fmt.Sprintf("pair_%s_%s_%s_%d", tile.Pair, eq[:2], eq[3:5], k), args: "%x: " + shape(eq[:2]) + ", %w: " + shape(eq[3:5]),
		body: fmt.Sprintf("%%y = dm.einsum %q %%x, %%w : (%s, %s) -> %s", eq, shape(eq[:2]), shape(eq[3:5]), shape(eq[7:])), out: "%y : " + shape(eq[7:]),
	}
}

// Pairs of blocks that share an operand: both operands in both orders, one step and more of them than slots, several tiles of a block, a
// batch, sums that pairs share, two products, reductions.
func TestContractionPairs(t *testing.T) {
	t.Parallel()
	need.Long(t)
	_, _, all := suite.Recording()
	for _, sms := range []int{2, 132} {
		c := newCollection(withSMs(targetOf(t, "sm_90a"), sms))
		for i, tile := range pairedTiles {
			if all || tile.BM*tile.BN <= 128*128 && (sms == 2) == (i%2 == 0) {
				eq := []string{"mk,nk->mn", "mk,kn->mn", "km,nk->mn", "km,kn->mn"}[i%4]
				c.turn(t, pairOf(tile, eq, []int{56, 200, 616}[i%3]).of([]string{"f16", "bf16"}[i%2], tile), 2)
			}
		}
		rows, cols := Config{Path: Wgmma, BM: 128, BN: 128, BK: 64, Stages: 6, Pair: machine.PairRows}, wgmmaTiles[3]
		cols.Pair = machine.PairCols
		if sms == 2 {
			c.turn(t, pairOf(rows, "km,kn->mn", 712).of("f16", split(rows, 3)), 2)
			c.turn(t, batched.of("bf16", cols), 2)
			c.turn(t, pairedGates.of("f16", rows), 2)
			c.turn(t, pairedSums.of("bf16", cols), 2)
		}
		c.emulate(t)
		if sms == 2 {
			c.compile(t, "sm_90a")
		}
		for i, s := range c.out.Steps {
			if k := c.out.KernelOf(&c.out.Steps[i]); k.Block.Cluster == 2 && (s.Launch.Grid[0]%2 != 0 || s.Launch.Grid[0] > sms) || k.Arch != "" && k.Block.Cluster != 2 {
				t.Errorf("%s: clusters of %d, %d blocks", k.Name, k.Block.Cluster, s.Launch.Grid[0])
			}
		}
	}
}

var (
	batched = productCase{
		name: "pair batch", args: "%x: tensor<3x96x72xELEM>, %w: tensor<3x72x120xELEM>",
		body: "%y = dm.matmul %x, %w : (tensor<3x96x72xELEM>, tensor<3x72x120xELEM>) -> tensor<3x96x120xELEM>", out: "%y : tensor<3x96x120xELEM>",
	}
	pairedGates = productCase{
		name: "pair gated", args: "%x: tensor<232x72xELEM>, %w: tensor<72x120xELEM>, %v: tensor<72x120xELEM>",
		body: `%0 = dm.einsum "mk,kn->mn" %x, %w : (tensor<232x72xELEM>, tensor<72x120xELEM>) -> tensor<232x120xELEM>
%1 = dm.einsum "mk,kn->mn" %x, %v : (tensor<232x72xELEM>, tensor<72x120xELEM>) -> tensor<232x120xELEM>
%2 = dm.silu %0 : tensor<232x120xELEM>
%y = dm.mul %2, %1 : tensor<232x120xELEM>`, out: "%y : tensor<232x120xELEM>",
	}
	pairedSums = productCase{
		name: "pair sums", args: "%x: tensor<104x72xELEM>, %w: tensor<120x72xELEM>",
		body: `%y = dm.einsum "mk,nk->mn" %x, %w : (tensor<104x72xELEM>, tensor<120x72xELEM>) -> tensor<104x120xELEM>
%s = dm.reduce %y, kind = max, dims = [1] : (tensor<104x120xELEM>) -> tensor<104xELEM>
%b = dm.reduce %y, kind = max, dims = [0] : (tensor<104x120xELEM>) -> tensor<120xELEM>`, out: "%y, %s, %b : tensor<104x120xELEM>, tensor<104xELEM>, tensor<120xELEM>",
	}
)
