package cuda

import (
	"fmt"
	"testing"

	"dmir/testkit/need"
)

// Threads that compute cells of several windows' strides give the gradients of pools that the reference executor gives: of lines that are
// whole cells, whose elements are read and chosen in pairs, and of odd ones.
func TestCellsOfPools(t *testing.T) {
	t.Parallel()
	need.Long(t)
	c := newCollection(withSMs(targetOf(t, "sm_90a"), 1))
	for _, p := range []struct{ kind, elem, x, y, clauses string }{
		{"max", "bf16", "4x4x32x64", "4x4x16x32", "window_dimensions = [1, 1, 3, 3], window_strides = [1, 1, 2, 2], padding = [[0, 0], [0, 0], [1, 1], [1, 1]]"},
		{"min", "f16", "4x4x35x35", "4x4x17x17", "window_dimensions = [1, 1, 3, 3], window_strides = [1, 1, 2, 2]"},
		{"max", "bf16", "4x8x35x33", "4x8x18x17", "window_dimensions = [1, 1, 3, 3], window_strides = [1, 1, 2, 2], padding = [[0, 0], [0, 0], [1, 1], [1, 1]]"},
		{"max", "f32", "4x4x35x35", "4x4x17x17", "window_dimensions = [1, 1, 3, 3], window_strides = [1, 1, 2, 2]"},
	} {
		x, y := fmt.Sprintf("tensor<%sx%s>", p.x, p.elem), fmt.Sprintf("tensor<%sx%s>", p.y, p.elem)
		c.add(t, productCase{
			name: p.kind + " " + p.x, args: "%x: " + x + ", %y: " + y, elements: true, out: "%d : " + x,
			body: fmt.Sprintf("%%d = dm.select_and_scatter %s %%x, %%y, %s : (%s, %s) -> %s", p.kind, p.clauses, x, y, x),
		}, true)
	}
	c.emulate(t)
	for _, arch := range []string{"sm_80", "sm_90a"} {
		c.compile(t, arch)
	}
}
