package cuda_test

import (
	"slices"
	"strings"
	"testing"

	"dmir/compile/cuda"
	"dmir/testkit/need"
)

// inTF32 are cases of f32 whose products may round their operands.
func inTF32(cases []attentionCase) []attentionCase {
	cases = slices.Clone(cases)
	for i := range cases {
		cases[i].elem = "f32"
		cases[i].attributes += ", precision = tf32"
		cases[i].noMaskGrad = true // its kernel is on vector units
	}
	return cases
}

// Attention and its gradient round operands of f32 to TF32 for the tensor cores where that is asked for: by mma.sync on every
// architecture, with all tiles and options.
func TestAttentionTF32(t *testing.T) {
	t.Parallel()
	need.Long(t)
	for i, c := range []struct {
		name, arch string
		cases      []attentionCase
		sms        int
	}{
		{"depths", "sm_80", depths(t, "f32"), 1},
		{"small tiles", "sm_90a", append(depths(t, "f32")[1:4], fewQueries...), 1 << 20},
		{"variants", "sm_80", slices.DeleteFunc(slices.Clone(variants), func(c attentionCase) bool { return c.name == "odd depth" }), 1},
	} {
		if !cuda.Turn(t, i, 3) {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			cases := inTF32(slices.DeleteFunc(c.cases, func(c attentionCase) bool { return strings.HasSuffix(c.q, "x7") }))
			p, _ := calls(t, cases)
			if built := buildAttention(t, p, c.arch, c.sms); strings.Contains(built.Source, "_fma<") || !strings.Contains(built.Source, "dm::attention_grad_mma<") {
				t.Error("not all of them are on tensor cores")
			}
			agreesOn(t, c.arch, cases, c.sms)
		})
	}
}
