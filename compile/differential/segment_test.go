package differential

import (
	"fmt"
	"strings"
	"testing"

	"dmir/testkit/need"
)

// segmentCase is a reduction of segments of n elements along a dimension of x.
type segmentCase struct {
	name      string
	x         string // shape; n stands for the elements
	n, m      int
	dim       int
	positions string // the op that makes them; "": random ones, sorted
	kind      string // "": add
	elem      string // "": f32
	position  string // "": i32
}

// Lengths of segments of all kinds, and dimensions around them.
var segmentCases = []segmentCase{
	{name: "rows of numbers", x: "n", n: 700, m: 90},
	{name: "rows of vectors", x: "nx7", n: 300, m: 41},
	{name: "rows of four", x: "nx4", n: 700, m: 90},
	{name: "rows of many", x: "nx70", n: 300, m: 41},
	{name: "rows of a strip and a half", x: "nx96", n: 200, m: 17},
	{name: "a column", x: "6xn", n: 500, m: 33, dim: 1},
	{name: "a middle dimension", x: "3xnx8", n: 200, m: 21, dim: 1, position: "i64"},
	{name: "one huge segment", x: "n", n: 9000, m: 5, positions: "constant dense<[0, 3, 8990, 8990, 9000, 9000]>"},
	{name: "one huge segment of vectors", x: "nx4", n: 3000, m: 5, positions: "constant dense<[0, 3, 2990, 2990, 3000, 3000]>", position: "i64"},
	{name: "one huge segment of columns", x: "nx16", n: 2000, m: 7, positions: "constant dense<[0, 3, 1990, 1990, 1994, 1997, 1999, 2000]>"},
	{name: "one segment", x: "nx5", n: 400, m: 1, positions: "constant dense<[0, 400]>"},
	{name: "all empty", x: "nx5", n: 40, m: 60, positions: "constant dense<7>"},
	{name: "more segments than elements", x: "nx3", n: 37, m: 500},
	{name: "padding behind the last", x: "nx3", n: 90, m: 4, positions: "constant dense<[0, 10, 11, 40, 52]>"},
	{name: "in front of the first", x: "n", n: 90, m: 3, positions: "constant dense<[20, 30, 31, 90]>"},
	{name: "outside", x: "nx3", n: 50, m: 4, positions: "constant dense<[-9, 10, 20, 49, 70]>", position: "i64"},
	{name: "falling", x: "nx3", n: 50, m: 5, positions: "constant dense<[30, 10, 90, 20, -4, 50]>"},
	{name: "one element", x: "nx3", n: 1, m: 2, positions: "constant dense<[0, 0, 1]>"},
	{name: "f16", x: "nx6", n: 450, m: 60, elem: "f16"},
	{name: "bf16", x: "n", n: 450, m: 60, elem: "bf16"},
	{name: "f64", x: "nx6", n: 450, m: 60, elem: "f64", position: "i64"},
	{name: "i32", x: "nx6", n: 450, m: 60, elem: "i32"},
	{name: "max", x: "nx6", n: 450, m: 60, kind: "max"},
	{name: "max of halves", x: "n", n: 450, m: 60, kind: "max", elem: "f16"},
	{name: "min of i8", x: "nx3", n: 450, m: 60, kind: "min", elem: "i8"},
	{name: "mul", x: "nx3", n: 60, m: 30, kind: "mul"},
}

// text is the program; uses says what is around the reduction: "", nothing; "product", the
// elements are products of weights and of rows that a gather picks, and something is added to the
// result; "softmax", the reductions of a softmax of each segment and its gradient; "pair", two
// reductions of the same segments.
func (c segmentCase) text(uses string) string {
	or := func(s, otherwise string) string {
		if s == "" {
			return otherwise
		}
		return s
	}
	kind, elem, position := or(c.kind, "add"), or(c.elem, "f32"), or(c.position, "i32")
	x := of(strings.Replace(c.x, "n", fmt.Sprint(c.n), 1), elem)
	y := of(strings.Replace(c.x, "n", fmt.Sprint(c.m), 1), elem)
	table := of(strings.Replace(c.x, "n", "9", 1), elem)
	p, ids := of(fmt.Sprint(c.m+1), position), of(fmt.Sprint(c.n), "i32")
	var b strings.Builder
	fmt.Fprintf(&b, "func.func @f(%%x: %s, %%t: %s, %%z: %s) -> %s {\n", x, table, y, map[bool]string{false: y, true: x}[uses == "ids"])
	if c.positions == "" {
		fmt.Fprintf(&b, "  %%u = dm.rng uniform, seed = %d, low = 0, high = %d : %s\n  %%p = dm.sort %%u : %s\n", c.n, c.n+1, p, p)
	} else {
		fmt.Fprintf(&b, "  %%p = dm.%s : %s\n", c.positions, p)
	}
	reduce := func(result, of string) {
		fmt.Fprintf(&b, "  %s = dm.segment_reduce %s %s, %%p, dim = %d : (%s, %s) -> %s\n", result, kind, of, c.dim, x, p, y)
	}
	gather := func(result, from, of string) {
		fmt.Fprintf(&b, "  %s = dm.gather %s, %%i, dim = %d : (%s, %s) -> %s\n", result, from, c.dim, of, ids, x)
	}
	switch uses {
	case "product":
		fmt.Fprintf(&b, "  %%i = dm.rng uniform, seed = 5, low = 0, high = 9 : %s\n", ids)
		gather("%g", "%t", table)
		fmt.Fprintf(&b, "  %%v = dm.mul %%g, %%x : %s\n", x)
		reduce("%s", "%v")
		fmt.Fprintf(&b, "  %%y = dm.add %%s, %%z : %s\n", y)
	case "ids":
		fmt.Fprintf(&b, "  %%i = dm.segment_ids %%p : (%s) -> %s\n", p, ids)
		reduce("%s", "%x")
		gather("%g", "%s", y)
		fmt.Fprintf(&b, "  %%y = dm.mul %%g, %%x : %s\n", x)
	case "pair":
		fmt.Fprintf(&b, "  %%i = dm.segment_ids %%p : (%s) -> %s\n", p, ids)
		gather("%g", "%z", y)
		fmt.Fprintf(&b, "  %%v = dm.mul %%g, %%x : %s\n", x)
		reduce("%s", "%v")
		reduce("%r", "%x")
		fmt.Fprintf(&b, "  %%y = dm.sub %%s, %%r : %s\n", y)
	default:
		reduce("%y", "%x")
	}
	result := y
	if uses == "ids" {
		result = x
	}
	fmt.Fprintf(&b, "  return %%y : %s\n}\n", result)
	return b.String()
}

// Reductions of segments of all shapes agree with the reference, alone and fused: on the processor a third of them in turn.
func TestSegments(t *testing.T) {
	need.Long(t)
	needEmulator(t)
	needCPU(t)
	var cases []Case
	for i, c := range segmentCases {
		for n, uses := range []string{"", "product", "ids", "pair"} {
			x := Case{Name: c.name + ", " + uses, Text: c.text(uses), Seed: 7}
			if i%4 == n || uses == "product" {
				cases = append(cases, x)
			}
			x.Device = "cpu"
			if i%2 == n%2 && need.Turn(t, i/2+n/2, 3) { // each is compiled alone
				cases = append(cases, x)
			}
		}
	}
	agree(t, cases)
}

// What a product with a sparse matrix reads grows with what is stored and with its rows, and not with
// their product; nor does the longest loop of a thread with the longest row.
func TestSegmentReads(t *testing.T) {
	need.Long(t)
	needEmulator(t)
	const n = 60000
	type size struct {
		m, n      int
		positions string
		longest   int64 // of a thread's accesses at most; 0: what is requested is compared with the first size
	}
	// A thread has a part of a long row, with up to five accesses for each element.
	sizes := []size{
		{200, 2000, "", 0}, {800, 2000, "", 0}, {200, 8000, "", 0}, {800, 8000, "", 0},
		{400, n, fmt.Sprintf("iota dim = 0, start = %d, step = 1", n-400), 5 * teamMost},
		{3, n, fmt.Sprintf("constant dense<[0, 1, %d, %d]>", n-1, n), 5 * n / 16},
	}
	var cases []Case
	for _, x := range []string{"n", "nx16"} {
		for _, s := range sizes {
			c := segmentCase{x: x, m: s.m, n: s.n, positions: s.positions}
			cases = append(cases, Case{Name: fmt.Sprintf("%s: %d segments of %d elements", x, s.m, s.n), Text: c.text("product"), Seed: 7})
		}
	}
	base := int64(0)
	for i, r := range emulated(t, cases) {
		requested, longest := int64(0), int64(0)
		for _, s := range r.Steps {
			if s.Name == "y" {
				requested, longest = requested+s.Requested, max(longest, s.Longest)
			}
		}
		name, of := cases[i].Name, sizes[i%len(sizes)]
		t.Logf("%s: %d bytes requested, %d accesses of a thread", name, requested, longest)
		if i%len(sizes) == 0 {
			base = requested
		}
		if of.longest == 0 && requested > 4*base*5/4 {
			t.Errorf("%s: %d bytes are requested, of 200 of 2000 elements %d", name, requested, base)
		}
		if of.longest > 0 && longest > of.longest {
			t.Errorf("%s: a thread makes %d accesses, in rows of which one is %s", name, longest, of.positions)
		}
	}
}

// teamMost is more than what a thread takes of segments of a usual length.
const teamMost = 100
