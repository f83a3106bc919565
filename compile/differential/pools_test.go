package differential

import (
	"fmt"
	"strings"
	"testing"

	"dmir/testkit/need"
)

// pooled is a pool over windows and its gradient. Elements are those of x, zero where they
// are negative, so that windows have several largest ones, or NaN there, of either sign, or zeros of both signs.
type pooled struct {
	name, kind, elem string
	x, y             []int
	clauses          string
}

var pooledCases = []pooled{
	{"windows side by side", "max", "f32", []int{2, 3, 8, 12}, []int{2, 3, 4, 6}, "window_dimensions = [1, 1, 2, 2], window_strides = [1, 1, 2, 2]"},
	{"windows that overlap", "max", "bf16", []int{2, 3, 16, 32}, []int{2, 3, 8, 16}, "window_dimensions = [1, 1, 3, 3], window_strides = [1, 1, 2, 2], padding = [[0, 0], [0, 0], [1, 1], [1, 1]]"},
	{"odd sizes of halves", "max", "f16", []int{1, 3, 35, 17}, []int{1, 3, 17, 8}, "window_dimensions = [1, 1, 3, 3], window_strides = [1, 1, 2, 2]"},
	{"odd sizes", "max", "f32", []int{1, 3, 35, 17}, []int{1, 3, 17, 8}, "window_dimensions = [1, 1, 3, 3], window_strides = [1, 1, 2, 2]"},
	{"least, of steps of three", "min", "f16", []int{2, 2, 11, 18}, []int{2, 2, 4, 6}, "window_dimensions = [1, 1, 3, 2], window_strides = [1, 1, 3, 3], padding = [[0, 0], [0, 0], [2, 0], [0, 0]]"},
	{"taps apart", "max", "f32", []int{2, 2, 9, 12}, []int{2, 2, 3, 6}, "window_dimensions = [1, 1, 2, 3], window_strides = [1, 1, 3, 2], window_dilations = [1, 1, 2, 2], padding = [[0, 0], [0, 0], [1, 0], [2, 1]]"},
	{"steps of one", "max", "f32", []int{2, 2, 7, 8}, []int{2, 2, 7, 8}, "window_dimensions = [1, 1, 3, 3], padding = [[0, 0], [0, 0], [1, 1], [1, 1]]"},
	{"channels last", "max", "bf16", []int{2, 9, 8, 16}, []int{2, 5, 4, 16}, "window_dimensions = [1, 3, 3, 1], window_strides = [1, 2, 2, 1], padding = [[0, 0], [1, 1], [1, 0], [0, 0]]"},
	{"means", "add", "f32", []int{2, 3, 9, 16}, []int{2, 3, 5, 8}, "window_dimensions = [1, 1, 3, 3], window_strides = [1, 1, 2, 2], padding = [[0, 0], [0, 0], [1, 1], [1, 1]]"},
	{"sums of channels last", "add", "f16", []int{2, 8, 7, 8}, []int{2, 4, 3, 8}, "window_dimensions = [1, 2, 3, 1], window_strides = [1, 2, 2, 1]"},
}

func (p pooled) text() string {
	x, y := tensorOf(p.x, p.elem), tensorOf(p.y, p.elem)
	gradient := func(of string) string {
		return fmt.Sprintf("  %%p%[1]s, %%d%[1]s = dm.grad @pool %%%[1]s, %%g, wrt = [0], cotangents = 1 : (%[2]s, %[3]s) -> (%[3]s, %[2]s)\n", of, x, y)
	}
	return strings.NewReplacer("X", x, "Y", y).Replace("func.func private @pool(%x: X) -> Y {\n  %y = dm.reduce_window "+p.kind+" %x, "+p.clauses+` : (X) -> Y
  return %y : Y
}
func.func @main(%x: X, %g: Y) -> (Y, X, Y, X, Y, X, X, X) {
  %r = dm.relu %x : X
  %n = dm.div %r, %r : X
  %m = dm.neg %n : X
  %z = dm.round %x : X
`) + gradient("x") + gradient("r") + gradient("n") + gradient("m") + gradient("z") + strings.NewReplacer("X", x, "Y", y).Replace("  return %px, %dx, %pr, %dr, %pn, %dn, %dm, %dz : Y, X, Y, X, Y, X, X, X\n}\n")
}

// Pools and their gradients agree with the reference where threads compute the elements of
// several windows: at edges, with windows partly outside, and with elements of equal size.
func TestPools(t *testing.T) {
	need.Long(t)
	needEmulator(t)
	var cases []Case
	for _, p := range pooledCases {
		cases = append(cases, Case{Name: p.name, Text: p.text(), Seed: 7, Func: "main"})
	}
	agree(t, cases)
}
