package cuda_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"dmir/analysis/program"
	"dmir/gpu/nvrtc"
	"dmir/gpu/nvrtc/nvrtctest"
	"dmir/gpu/prelude"
	"dmir/gpu/ptx/ptxtest"
	"dmir/syntax/source"
	"dmir/testkit/need"
)

// The CUDA compiler compiles attention to segments without spills, at the depths with the most registers too, and keeps its protocol.
func TestSegmentAttentionCompiles(t *testing.T) {
	t.Parallel()
	need.Long(t)
	const weighted = ", scores = sum, leak = 0.2"
	var ops, params, values, kinds []string
	for i, c := range []struct {
		elem, wide          string
		heads, m, depth, of int
		rows, columns       int
		entries             int
		bias                bool
		attrs               string
	}{
		{"f32", "f32", 1, 4000, 64, 64, 1, 1, 60000, false, ""},
		{"f32", "f32", 1, 4000, 1, 64, 1, 1, 60000, true, ", scores = sum, slope = 0.2"},
		{"f16", "f32", 8, 16, 128, 128, 32, 32, 64, true, ", slope = 0.5"},
		{"f32", "f32", 4, 900, 64, 64, 1, 1, 9000, false, weighted},
		{"f16", "f32", 4, 9, 512, 512, 16, 16, 90, true, weighted},
		{"f32", "f32", 1, 900, 2500, 40, 1, 1, 900, false, weighted},
		{"bf16", "f32", 2, 6, 256, 256, 64, 64, 20, true, ""}, // the most registers and shared memory of a tile
		{"f16", "f32", 4, 10, 64, 64, 16, 32, 40, false, ""},
		{"f32", "f32", 2, 30, 300, 1000, 1, 1, 3000, false, ""}, // many warps of a query
		{"f64", "f64", 1, 900, 512, 512, 2, 2, 9000, true, ""},
		{"bf16", "f32", 1, 900, 7, 5, 1, 1, 9000, false, ""},
		{"f32", "f32", 1, 900, 2500, 40, 1, 1, 900, false, ""}, // queries that registers do not hold
	} {
		q, k, v := fmt.Sprintf("tensor<%dx%dx%dx%s>", c.heads, c.m*c.rows, c.depth, c.elem), fmt.Sprintf("tensor<1x640x%dx%s>", c.depth, c.elem), fmt.Sprintf("tensor<1x640x%dx%s>", c.of, c.elem)
		y, lse := fmt.Sprintf("tensor<%dx%dx%dx%s>", c.heads, c.m*c.rows, c.of, c.elem), fmt.Sprintf("tensor<%dx%dx%s>", c.heads, c.m*c.rows, c.wide)
		types := []string{q, k, v, fmt.Sprintf("tensor<%dxi32>", c.m+1), fmt.Sprintf("tensor<%dxi64>", c.entries)}
		if c.bias {
			types = append(types, fmt.Sprintf("tensor<1x%dx%dx%dx%s>", c.entries, c.rows, c.columns, c.elem))
		}
		if c.attrs == weighted {
			types = append(types, fmt.Sprintf("tensor<%dx3x%dx%s>", c.heads, c.depth, c.elem))
		}
		var operands []string
		for j, of := range types {
			operands = append(operands, fmt.Sprintf("%%a%d_%d", i, j))
			params = append(params, operands[j]+": "+of)
		}
		values, kinds = append(values, fmt.Sprintf("%%y%d, %%l%d", i, i)), append(kinds, y, lse)
		ops = append(ops, fmt.Sprintf("  %s = dm.segment_attention %s, block = [%d, %d], scale = 0.125%s : (%s) -> (%s, %s)\n", values[i], strings.Join(operands, ", "), c.rows, c.columns, c.attrs, strings.Join(types, ", "), y, lse))
	}
	text := fmt.Sprintf("func.func @all(%s) -> (%s) {\n%s  return %s : %s\n}\n", strings.Join(params, ", "), strings.Join(kinds, ", "), strings.Join(ops, ""), strings.Join(values, ", "), strings.Join(kinds, ", "))
	p := program.Load(source.New("segments.dmir", text), program.Options{})
	for _, d := range p.Diags {
		t.Fatalf("%s %s", d.Code, d.Message)
	}
	var headers []nvrtc.Header
	for _, h := range prelude.Files() {
		headers = append(headers, nvrtc.Header(h))
	}
	for _, arch := range []string{"sm_80", "sm_90a", "sm_100"} {
		t.Run(arch, func(t *testing.T) {
			t.Parallel()
			built := buildAttention(t, p, arch, 0)
			r, err := nvrtc.Compile(context.Background(), built.Source, headers, arch, nvrtc.Options{})
			if missing := (*nvrtc.NotFound)(nil); errors.As(err, &missing) {
				need.OK(t, err)
			}
			if err != nil {
				t.Fatal(err)
			}
			nvrtctest.Clean(t, r)
			ptxtest.Check(t, built, r)
			for _, k := range r.Kernels {
				t.Logf("%s %3d registers: %s", arch, k.Registers, k.Name)
			}
		})
	}
}
