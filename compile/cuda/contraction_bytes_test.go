package cuda

import (
	"fmt"
	"strings"
	"testing"

	"dmir/analysis/machine"
	"dmir/compile/suite"
	"dmir/testkit/need"
)

// productOfBytes is a product of f8 numbers whose last rows, columns and step end inside of a tile.
func productOfBytes(m, n, k int, left, right, result string) productCase {
	x, w, y := fmt.Sprintf("tensor<%dx%dx%s>", m, k, left), fmt.Sprintf("tensor<%dx%dx%s>", n, k, right), fmt.Sprintf("tensor<%dx%dx%s>", m, n, result)
	return productCase{
		name: strings.Join([]string{"bytes", left, right, result, fmt.Sprint(k)}, "_"), args: "%x: " + x + ", %w: " + w,
		body: fmt.Sprintf(`%%y = dm.einsum "mk,nk->mn" %%x, %%w : (%s, %s) -> %s`, x, w, y), out: "%y : " + y,
	}
}

// Products of f8 numbers on Hopper's tensor cores: both types in all pairs, steps that wrap around, pairs of blocks, sums that blocks
// share, two products, epilogues.
func TestContractionBytes(t *testing.T) {
	t.Parallel()
	need.Long(t)
	const e4, e5 = "f8E4M3FN", "f8E5M2"
	_, _, all := suite.Recording()
	c := newCollection(withSMs(targetOf(t, "sm_90a"), 2))
	for i, tile := range byteTiles {
		types := [][3]string{{e4, e4, "f16"}, {e4, e5, "f32"}, {e5, e4, "bf16"}, {e5, e5, e4}}
		for j, of := range types {
			if all || j == i {
				c.add(t, productOfBytes(2*tile.BM-24, tile.BN-8, []int{48, 272, 1360}[(i+j)%3], of[0], of[1], of[2]).of("", tile), true)
			}
		}
	}
	rows, cols := byteTiles[1], byteTiles[2]
	rows.Pair, cols.Pair = machine.PairRows, machine.PairCols
	c.add(t, productOfBytes(200, 120, 400, e5, e5, e4).of("pair", rows), true)
	c.add(t, productOfBytes(104, 120, 912, e4, e4, "f32").of("pair", cols), true)
	c.add(t, productOfBytes(104, 56, 1616, e4, e4, "f16").of("split", split(byteTiles[2], 3)), true)
	c.add(t, productCase{
		name: "bytes_gated", args: "%x: tensor<72x176xf8E4M3FN>, %w: tensor<56x176xf8E4M3FN>, %v: tensor<56x176xf8E4M3FN>, %b: tensor<56xf32>",
		body: `%0 = dm.einsum "mk,nk->mn" %x, %w : (tensor<72x176xf8E4M3FN>, tensor<56x176xf8E4M3FN>) -> tensor<72x56xf32>
%1 = dm.einsum "mk,nk->mn" %x, %v : (tensor<72x176xf8E4M3FN>, tensor<56x176xf8E4M3FN>) -> tensor<72x56xf32>
%2 = dm.silu %0 : tensor<72x56xf32>
%3 = dm.mul %2, %1 : tensor<72x56xf32>
%y = dm.add %3, %b : (tensor<72x56xf32>, tensor<56xf32>) -> tensor<72x56xf32>`, out: "%y : tensor<72x56xf32>",
	}.of("", byteTiles[1]), true)
	c.emulate(t)
	c.compile(t, "sm_90a")
}

// What tensor maps or wgmma do not take goes to the warps' products: strides that are no multiple of 16 bytes, operands along their rows;
// and all of it where there is no wgmma.
func TestBytesChoice(t *testing.T) {
	for _, c := range []struct {
		eq, left, right string
		k               int
		arch            string
		want            Path
	}{
		{"mk,nk->mn", "f8E4M3FN", "f8E5M2", 4096, "sm_90a", Wgmma},
		{"mk,kn->mn", "f8E4M3FN", "f8E4M3FN", 4096, "sm_90a", Mma},
		{"km,nk->mn", "f8E4M3FN", "f8E4M3FN", 4096, "sm_90a", Mma},
		{"mk,nk->mn", "f8E4M3FN", "f8E4M3FN", 4104, "sm_90a", Mma},
		{"mk,nk->mn", "f16", "f16", 4096, "sm_90a", Wgmma},
		{"mk,nk->mn", "f8E4M3FN", "f8E4M3FN", 4096, "sm_80", Mma},
	} {
		of := map[byte]int{'m': 4096, 'n': 4096, 'k': c.k}
		x, w := fmt.Sprintf("tensor<%dx%dx%s>", of[c.eq[0]], of[c.eq[1]], c.left), fmt.Sprintf("tensor<%dx%dx%s>", of[c.eq[3]], of[c.eq[4]], c.right)
		p := productCase{name: "choice", args: "%x: " + x + ", %w: " + w, body: fmt.Sprintf("%%y = dm.einsum %q %%x, %%w : (%s, %s) -> tensor<4096x4096xf32>", c.eq, x, w), out: "%y : tensor<4096x4096xf32>"}
		if got := Candidates(tiledOf(t, p), targetOf(t, c.arch))[0]; got.Path != c.want || c.want == Wgmma && got.bytes() != (c.left != "f16") {
			t.Errorf("%s of %s and %s on %s: %s", c.eq, c.left, c.right, c.arch, got)
		}
	}
}
