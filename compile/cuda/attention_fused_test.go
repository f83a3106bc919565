package cuda_test

import (
	"fmt"
	"maps"
	"testing"

	"dmir/analysis/machine"
	"dmir/internal/need"
)

func TestAttentionFusedX(t *testing.T) {
	need.Long(t)
	for _, c := range []struct {
		sms   int
		cases []attentionCase
	}{
		{16, []attentionCase{
			{name: "a", elem: "bf16", q: "1x2x520x128", k: "1x1x1100x128", back: true, free: true},
			{name: "b", elem: "f16", q: "1x1x1050x64", k: "1x1x1050x64", back: true, free: true, attributes: ", causal = true"},
		}},
	} {
		t.Run(fmt.Sprint(c.sms), func(t *testing.T) {
			m, _ := machine.Lookup("h200")
			of := *m
			of.SMs = c.sms
			of.Ceilings.Paths = maps.Clone(m.Ceilings.Paths)
			of.Ceilings.Paths[machine.FusedPath], of.Clock, of.L2Bandwidth = 3, 1e15, 1e18
			p, owners := calls(t, c.cases)
			runAttention(t, p, owners, buildAttentionFor(t, p, "sm_90a", &of))
		})
	}
}
