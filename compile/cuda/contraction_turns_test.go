package cuda

import (
	"testing"

	"dmir/testkit/need"
)

// withSMs is the target with so many multiprocessors, so that each block computes several tiles.
func withSMs(t Target, sms int) Target {
	m := *t.Machine
	m.SMs = sms
	t.Machine = &m
	return t
}

// Consumers that take turns: more and fewer tiles than consumers, sums of several lengths, two products, reductions.
func TestContractionTurns(t *testing.T) {
	t.Parallel()
	need.Long(t)
	for _, sms := range []int{1, 2} {
		c := newCollection(withSMs(targetOf(t, "sm_90a"), sms))
		for i, tile := range wgmmaTiles[4:] {
			c.add(t, long[(i+sms)%2].of([]string{"f16", "bf16"}[sms-1], tile), true)
		}
		c.add(t, reducing[0].of("f16", wgmmaTiles[3+sms]), true)
		c.add(t, reducing[3].of("bf16", wgmmaTiles[5]), true)
		c.add(t, long[0].of("bf16", split(wgmmaTiles[6], 3)), true)
		c.emulate(t)
		if sms == 1 {
			c.compile(t, "sm_90a")
		}
	}
}
