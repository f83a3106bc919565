package cost_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"dmir/analysis/program"
)

// TestOverlappingSlices holds what a function must read of an argument to the
// elements that its slices take, counted one by one.
func TestOverlappingSlices(t *testing.T) {
	overlaps := 0
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 7))
		shape := [3]int{1 + r.IntN(12), 1 + r.IntN(9), 1 + r.IntN(5)}
		var body, results, kinds strings.Builder
		taken := map[[3]int]bool{}
		each, out := 0, 0
		for i := range 1 + r.IntN(5) {
			var start, limit, stride, size [3]int
			for d, n := range shape {
				start[d] = r.IntN(n)
				limit[d] = start[d] + 1 + r.IntN(n-start[d])
				if stride[d] = 1 + r.IntN(3); r.IntN(3) == 0 {
					start[d], limit[d], stride[d] = 0, n, 1
				}
				size[d] = (limit[d] - start[d] + stride[d] - 1) / stride[d]
			}
			for x := start[0]; x < limit[0]; x += stride[0] {
				for y := start[1]; y < limit[1]; y += stride[1] {
					for z := start[2]; z < limit[2]; z += stride[2] {
						taken[[3]int{x, y, z}] = true
						each++
					}
				}
			}
			list := func(v [3]int) string { return strings.ReplaceAll(fmt.Sprint(v), " ", ", ") }
			kind := fmt.Sprintf("tensor<%dx%dx%dxf32>", size[0], size[1], size[2])
			fmt.Fprintf(&body, "  %%s%d = dm.slice %%x, start_indices = %s, limit_indices = %s, strides = %s : (!x) -> %s\n  %%y%d = dm.exp %%s%d : %s\n", i, list(start), list(limit), list(stride), kind, i, i, kind)
			if i > 0 {
				results.WriteString(", ")
				kinds.WriteString(", ")
			}
			fmt.Fprintf(&results, "%%y%d", i)
			kinds.WriteString(kind)
			out += size[0] * size[1] * size[2]
		}
		text := fmt.Sprintf("!x = tensor<%dx%dx%dxf32>\nfunc.func @f(%%x: !x) -> (%s) {\n%s  return %s : %s\n}\n", shape[0], shape[1], shape[2], kinds.String(), body.String(), results.String(), kinds.String())
		f := only(t, load(t, "slices.dmir", text, program.Options{}))
		if want := int64(4 * (len(taken) + out)); number(t, f.Minimum()) != want {
			t.Errorf("a minimum of %s, want %d:\n%s", f.Minimum(), want, text)
		}
		if each > len(taken) {
			overlaps++
		}
	}
	if overlaps < 50 {
		t.Errorf("only %d programs have overlaps", overlaps)
	}
}

// Very many slices cost no more than they are long, whether they are apart or not.
func TestManySlices(t *testing.T) {
	const n = 3000
	var body strings.Builder
	for i := range n {
		fmt.Fprintf(&body, "  %%s%d = dm.slice %%x, start_indices = [%d], limit_indices = [%d], dims = [0] : (tensor<3001x?xf32, #dm.at<dims = [n]>>) -> tensor<2x?xf32, #dm.at<dims = [n]>>\n", i, i, i+2)
	}
	text := "func.func @f(%x: tensor<3001x?xf32, #dm.at<dims = [n]>>) {\n" + body.String() + "  return\n}\n"
	f := only(t, load(t, "slices.dmir", text, program.Options{}))
	if got := f.Minimum().String(); got != "12004*n" {
		t.Errorf("a minimum of %s, want 12004*n", got)
	}
}
