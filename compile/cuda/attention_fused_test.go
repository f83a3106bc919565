package cuda_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"dmir/analysis/machine"
	"dmir/compile/suite"
	"dmir/internal/need"
)

// fusedCases are gradients by one kernel, and their tiles on eight multiprocessors.
var fusedCases = []struct {
	attentionCase
	tile string
}{
	{attentionCase{name: "eight blocks, causal", elem: "f16", q: "1x1x1050x32", k: "1x1x1050x32", attributes: ", causal = true"}, "fused 128x128x32 / 8"},
	{attentionCase{name: "heads that share keys", elem: "bf16", q: "1x2x300x128", k: "1x1x600x128"}, "fused 128x64x128 / 4"},
	{attentionCase{name: "dropout and mask", elem: "bf16", q: "1x1x200x64", k: "1x1x300x64", mask: "200x300", attributes: ", dropout = 0.3, seed = 11"}, "fused 128x64x64 / 2"},
	{attentionCase{name: "an odd number of keys", elem: "f16", q: "1x2x150x16", k: "1x1x263x16", value: "40", attributes: ", causal = true, dropout = 0.2, seed = 5"}, "fused 128x64x16 / 2"},
	{attentionCase{name: "dropout of a step", elem: "f16", q: "1x1x90x80", k: "1x1x120x80", attributes: ", dropout = 0.3, seed = 11", step: "i64"}, "fused 128x64x80"},
	{attentionCase{name: "queries that see nothing", elem: "bf16", q: "1x1x300x24", k: "1x1x260x24", attributes: ", causal = true"}, "fused 128x128x24 / 2"},
	{attentionCase{name: "queries behind the first keys", elem: "bf16", q: "1x1x260x64", k: "1x1x420x64", attributes: ", causal = true"}, "fused 128x128x64 / 2"},
}

// fast is an H200 on which fused gradients are predicted to be the fastest, whatever their sizes.
func fast(sms int) *machine.Machine {
	m, _ := machine.Lookup("h200")
	of := *m
	of.SMs, of.Clock, of.L2Bandwidth, of.MemoryLatency = sms, 1e15, 1e18, 1e-15
	of.Ceilings.Paths = maps.Clone(m.Ceilings.Paths)
	of.Ceilings.Paths[machine.FusedPath] = 1000
	return &of
}

// The gradient by one kernel: with clusters of all sizes, several rounds of keys, hidden tiles of queries, and
// everything that scores have.
func TestAttentionFused(t *testing.T) {
	t.Parallel()
	need.Long(t)
	if _, _, ok := suite.Recording(); ok {
		t.Skip("the other tests' cases are recorded, and built for the card's architecture")
	}
	var cases []attentionCase
	var want []string
	for _, c := range fusedCases {
		c.back, c.free, c.noMaskGrad = true, true, true
		cases, want = append(cases, c.attentionCase), append(want, c.tile)
	}
	p, owners := calls(t, cases)
	built := buildAttentionFor(t, p, "sm_90a", fast(8))
	var tiles []string
	for _, s := range built.Steps {
		if strings.HasPrefix(s.Tile, machine.FusedPath) {
			tiles = append(tiles, s.Tile)
		}
	}
	if !slices.Equal(tiles, want) {
		t.Errorf("tiles %q, want %q", tiles, want)
	}
	runAttention(t, p, owners, built)
}
