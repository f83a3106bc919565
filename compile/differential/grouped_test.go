package differential

import (
	"fmt"
	"strings"
	"testing"

	"dmir/testkit/need"
)

// groupedCase is a grouped product of t rows of k elements and n columns.
type groupedCase struct {
	name      string
	t, k, n   int
	groups    int
	positions string // the op that makes them; "": random ones, sorted
	elem      string // "": f32
	position  string // "": i32
	turned    bool   // matrices are [e, n, k]
	tf32      bool
	block     int // rows that a position counts; 0: one
}

// Groups of all lengths, sizes that tiles divide and do not, and element types of each main loop.
var groupedCases = []groupedCase{
	{name: "some rows", t: 70, k: 33, n: 41, groups: 5},
	{name: "tiles of halves", t: 300, k: 64, n: 128, groups: 4, elem: "f16"},
	{name: "turned matrices", t: 300, k: 64, n: 128, groups: 4, elem: "bf16", turned: true, position: "i64"},
	{name: "odd halves", t: 131, k: 27, n: 35, groups: 6, elem: "f16", turned: true},
	{name: "tf32", t: 140, k: 48, n: 64, groups: 3, tf32: true},
	{name: "more groups than a warp has lanes", t: 90, k: 16, n: 16, groups: 75},
	{name: "one group", t: 40, k: 16, n: 24, groups: 1},
	{name: "empty groups", t: 60, k: 16, n: 24, groups: 6, positions: "constant dense<[0, 0, 20, 20, 20, 60, 60]>"},
	{name: "rows in no group", t: 60, k: 16, n: 24, groups: 3, positions: "constant dense<[7, 20, 31, 50]>"},
	{name: "no rows in groups", t: 60, k: 16, n: 24, groups: 2, positions: "constant dense<[5, 5, 5]>"},
	{name: "outside", t: 50, k: 16, n: 24, groups: 2, positions: "constant dense<[-9, 20, 90]>", position: "i64"},
	{name: "one row", t: 1, k: 8, n: 8, groups: 3},
	{name: "one column", t: 50, k: 30, n: 1, groups: 4},
	{name: "a long sum", t: 40, k: 1200, n: 20, groups: 3},
	{name: "long groups", t: 1500, k: 10, n: 12, groups: 2},
	{name: "blocks", t: 96, k: 16, n: 24, groups: 4, elem: "f16", block: 16},
	{name: "blocks in no group", t: 60, k: 16, n: 24, groups: 3, block: 4, positions: "constant dense<[1, 5, 5, 12]>"},
	{name: "f64", t: 70, k: 20, n: 22, groups: 4, elem: "f64"},
	{name: "i32", t: 70, k: 20, n: 22, groups: 4, elem: "i32"},
}

// text is the program; uses says what is computed: "rows", a matrix for each group; "epilogue", the same between element-wise ops; "pair", two
// products of the same rows; "sums", a product for each group; "gradient", those of all operands.
func (c groupedCase) text(uses string) string {
	elem, position, attrs := "f32", "i32", ""
	if c.elem != "" {
		elem = c.elem
	}
	if c.position != "" {
		position = c.position
	}
	if c.tf32 {
		attrs = ", precision = tf32"
	}
	most := c.t
	if c.block > 0 {
		attrs, most = fmt.Sprintf(", block = %d", c.block), c.t/c.block
	}
	x, y, p := of(fmt.Sprintf("%dx%d", c.t, c.k), elem), of(fmt.Sprintf("%dx%d", c.t, c.n), elem), of(fmt.Sprint(c.groups+1), position)
	w, turned := of(fmt.Sprintf("%dx%dx%d", c.groups, c.k, c.n), elem), ""
	dw := w
	if c.turned {
		w, turned = of(fmt.Sprintf("%dx%dx%d", c.groups, c.n, c.k), elem), ", transpose_b = true"
	}
	var b strings.Builder
	product := func(result, x, w, types, to string, more string) {
		fmt.Fprintf(&b, "  %s = dm.grouped_matmul %s, %s, %%p%s%s : (%s, %s) -> %s\n", result, x, w, more, attrs, types, p, to)
	}
	positions := func() {
		if c.positions == "" {
			fmt.Fprintf(&b, "  %%u = dm.rng uniform, seed = %d, low = 0, high = %d : %s\n  %%p = dm.sort %%u : %s\n", c.t, most+1, p, p)
		} else {
			fmt.Fprintf(&b, "  %%p = dm.%s : %s\n", c.positions, p)
		}
	}
	switch uses {
	case "sums":
		fmt.Fprintf(&b, "func.func @f(%%x: %s, %%g: %s) -> %s {\n", x, y, dw)
		positions()
		product("%y", "%x", "%g", x+", "+y, dw, "")
		fmt.Fprintf(&b, "  return %%y : %s\n}\n", dw)
	case "gradient":
		fmt.Fprintf(&b, "func.func @f(%%x: %s, %%w: %s) -> (tensor<f32>, %s, %s) {\n", x, w, x, w)
		positions()
		fmt.Fprintf(&b, "  %%l, %%dx, %%dw = dm.grad @loss %%x, %%w, %%p, wrt = [0, 1] : (%s, %s, %s) -> (tensor<f32>, %s, %s)\n", x, w, p, x, w)
		fmt.Fprintf(&b, "  return %%l, %%dx, %%dw : tensor<f32>, %s, %s\n}\nfunc.func private @loss(%%x: %s, %%w: %s, %%p: %s) -> tensor<f32> {\n", x, w, x, w, p)
		product("%y", "%x", "%w", x+", "+w, y, turned)
		fmt.Fprintf(&b, "  %%q = dm.mul %%y, %%y : %s\n", y)
		wide := y
		if elem != "f32" {
			wide = of(fmt.Sprintf("%dx%d", c.t, c.n), "f32")
			fmt.Fprintf(&b, "  %%q32 = dm.convert %%q : (%s) -> %s\n  %%s = dm.reduce add %%q32 : (%s) -> tensor<f32>\n", y, wide, wide)
		} else {
			fmt.Fprintf(&b, "  %%s = dm.reduce add %%q : (%s) -> tensor<f32>\n", wide)
		}
		b.WriteString("  return %s : tensor<f32>\n}\n")
	case "pair":
		fmt.Fprintf(&b, "func.func @f(%%x: %s, %%w: %s, %%v: %s) -> %s {\n", x, w, w, y)
		positions()
		product("%a", "%x", "%w", x+", "+w, y, turned)
		product("%b", "%x", "%v", x+", "+w, y, turned)
		fmt.Fprintf(&b, "  %%y = dm.mul %%a, %%b : %s\n  return %%y : %s\n}\n", y, y)
	case "epilogue":
		fmt.Fprintf(&b, "func.func @f(%%x: %s, %%w: %s, %%z: %s) -> %s {\n", x, w, y, y)
		positions()
		fmt.Fprintf(&b, "  %%x2 = dm.add %%x, %%x : %s\n", x)
		product("%a", "%x2", "%w", x+", "+w, y, turned)
		fmt.Fprintf(&b, "  %%y = dm.add %%a, %%z : %s\n  return %%y : %s\n}\n", y, y)
	default:
		fmt.Fprintf(&b, "func.func @f(%%x: %s, %%w: %s) -> %s {\n", x, w, y)
		positions()
		product("%y", "%x", "%w", x+", "+w, y, turned)
		fmt.Fprintf(&b, "  return %%y : %s\n}\n", y)
	}
	return b.String()
}

// Grouped products of all shapes agree with the reference, alone, fused and differentiated.
func TestGroupedProducts(t *testing.T) {
	need.Long(t)
	needEmulator(t)
	needCPU(t)
	var cases []Case
	for i, c := range groupedCases {
		uses := []string{"gradient", "epilogue"}
		switch {
		case c.elem == "i32" || c.elem == "f64":
			uses = []string{"rows", "sums"}
		case i%2 == 1:
			uses[1] = "pair"
		}
		for n, uses := range uses {
			if !need.Turn(t, 2*i+n, 2) {
				continue
			}
			for _, k := range kinds(t, Case{Name: c.name + ", " + uses, Text: c.text(uses), Seed: 7}, 2*i+n) {
				if c.tf32 && k.Device == "cpu" {
					continue // its products are more precise
				}
				cases = append(cases, k)
			}
		}
	}
	agree(t, cases)
}
