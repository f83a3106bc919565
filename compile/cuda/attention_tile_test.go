package cuda

import (
	"fmt"
	"strings"
	"testing"

	"dmir/compile/assemble"
)

// Which attentions run on warpgroup products, and with which tiles: of 3 warpgroups
// where 160 registers are enough, of as many keys as there is room for; on mma.sync
// where tensor maps cannot copy an operand.
func TestAttentionTile(t *testing.T) {
	for _, c := range []struct {
		name, arch, elem, q, k string
		attributes, want       string
	}{
		{"depth 64", "sm_90a", "f16", "8x1024x64", "8x1024x64", "", "wgmma 128x128x64 / 2"},
		{"depth 64 of many heads", "sm_90a", "f16", "64x1024x64", "64x1024x64", "", "wgmma 192x128x64"},
		{"depth 128", "sm_90a", "bf16", "64x1024x128", "64x1024x128", ", causal = true", "wgmma 128x128x128"},
		{"depth 192", "sm_90a", "bf16", "64x1024x192", "64x1024x192", "", "wgmma 128x112x192"},
		{"depth 256", "sm_90a", "bf16", "64x1024x256", "64x1024x256", "", "wgmma 128x64x256"},
		{"dropout", "sm_90a", "f16", "64x1024x64", "64x1024x64", ", dropout = 0.1", "wgmma 128x128x64"},
		{"few keys", "sm_90a", "f16", "64x1024x64", "64x77x64", "", "wgmma 192x80x64"},
		{"one query", "sm_90a", "f16", "8x1x64", "8x4096x64", "", "wgmma 128x128x64 / 16"},
		{"rows of 40 bytes", "sm_90a", "f16", "64x1024x20", "64x1024x20", "", "mma 128x64x20"},
		{"another architecture", "sm_80", "f16", "64x1024x64", "64x1024x64", "", "mma 128x64x64"},
		{"TF32", "sm_90a", "f32", "64x1024x64", "64x1024x64", ", precision = tf32", "mma 128x64x64"},
		{"TF32, deep, with little shared memory", "sm_89", "f32", "64x1024x256", "64x1024x256", ", precision = tf32", ""},
		{"TF32, of an odd depth", "sm_80", "f32", "64x1024x7", "64x1024x7", ", precision = tf32", ""},
		{"f32", "sm_90a", "f32", "64x1024x64", "64x1024x64", "", ""},
	} {
		rows := c.q[:strings.LastIndexByte(c.q, 'x')]
		depth := c.q[len(rows):]
		keys := c.k[:strings.LastIndexByte(c.k, 'x')]
		tensor := func(rows string) string { return fmt.Sprintf("tensor<%s%sx%s>", rows, depth, c.elem) }
		q, k := tensor(rows), tensor(keys)
		f := formed(t, productCase{
			name: c.name, args: "%q: " + q + ", %k: " + k,
			body: fmt.Sprintf("%%1 = dm.attention %%q, %%k, %%k%s : (%s, %s, %s) -> %s", c.attributes, q, k, k, q), out: "%1 : " + q,
		})
		p, err := targetOf(t, c.arch).plan(f, assemble.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := p.Tile(); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}
