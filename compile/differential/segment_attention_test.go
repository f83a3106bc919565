package differential

import (
	"fmt"
	"strings"
	"testing"

	"dmir/testkit/need"
)

// segmentAttentionCase is a dm.segment_attention with m segments.
type segmentAttentionCase struct {
	heads, keyHeads int // 0: 1
	m, keys, depth  int
	value           int
	rows, columns   int    // of a block; 0: 1
	entries         int    // coordinates
	positions       string // the op that makes them; "": random ones, sorted
	position        string // "": i32
	coordinate      string // "": i32
	bias            string // the op that makes it; "": none
	biasHeads       bool
	elem            string // "": f32
	lse             bool
	scale           string // "": none is stated
	attrs           string // others
	weights         string // the shape of weights in front of the depth; "": none
	moved           bool   // heads lie within rows, as views
}

var segmentAttentionCases = []segmentAttentionCase{
	{m: 70, keys: 50, depth: 64, value: 64, entries: 600, scale: "0.125"},
	{m: 9, keys: 50, depth: 7, value: 5, entries: 90, lse: true}, // odd sizes
	{m: 40, keys: 30, depth: 1, value: 1, entries: 200},
	{m: 3, keys: 300, depth: 32, value: 24, entries: 900, lse: true, positions: "constant dense<[0, 1, 890, 900]>"}, // several warps for a query
	{m: 4, keys: 40, depth: 16, value: 16, entries: 90, positions: "constant dense<[0, 10, 11, 11, 52]>"},           // padding behind the last
	{m: 4, keys: 40, depth: 16, value: 16, entries: 60, lse: true, positions: "constant dense<7>"},                  // empty
	{m: 5, keys: 40, depth: 8, value: 12, entries: 50, lse: true, positions: "constant dense<[30, 10, 90, 20, -4, 50]>", position: "i64"},
	{heads: 6, keyHeads: 2, m: 17, keys: 20, depth: 24, value: 40, entries: 100, lse: true, moved: true},
	{heads: 3, keyHeads: 3, m: 17, keys: 20, depth: 24, value: 4, entries: 100, moved: true, elem: "f16", coordinate: "i64"},
	{m: 5, keys: 64, depth: 20, value: 36, rows: 8, columns: 16, entries: 14, lse: true},
	{heads: 4, keyHeads: 1, m: 6, keys: 40, depth: 16, value: 16, rows: 4, columns: 8, entries: 18, bias: "rng normal, seed = 3", biasHeads: true, lse: true},
	{m: 6, keys: 40, depth: 16, value: 16, rows: 2, columns: 4, entries: 18, bias: "rng normal, seed = 4", elem: "bf16", lse: true},
	{m: 3, keys: 8, depth: 4, value: 4, entries: 6, lse: true, positions: "constant dense<[0, 3, 5, 6]>", bias: "constant dense<[[[[0xFF800000]], [[0.0]], [[0xFF800000]], [[0xFF800000]], [[0xFF800000]], [[1.0]]]]>"}, // all of a row, and the first
	{heads: 4, keyHeads: 2, m: 5, keys: 96, depth: 40, value: 24, rows: 16, columns: 16, entries: 14, elem: "f16", lse: true, moved: true},                                                                              // on tensor cores
	{m: 3, keys: 128, depth: 64, value: 64, rows: 32, columns: 32, entries: 7, elem: "bf16", lse: true, bias: "rng normal, seed = 5", positions: "constant dense<[1, 4, 4, 6]>"},
	{heads: 2, m: 2, keys: 192, depth: 18, value: 6, rows: 48, columns: 96, entries: 4, elem: "f16", scale: "-1.5", bias: "rng normal, seed = 6", biasHeads: true, coordinate: "i64"},
	{m: 4, keys: 20, depth: 300, value: 520, entries: 40, lse: true},              // columns of two blocks
	{m: 2, keys: 9, depth: 1100, value: 6, entries: 10, lse: true, scale: "0.03"}, // queries that registers do not hold
	{m: 20, keys: 20, depth: 10, value: 10, entries: 100, elem: "f64", lse: true, scale: "-2.0"},
	{m: 70, keys: 50, depth: 1, value: 20, entries: 600, lse: true, scale: "-2.0", attrs: ", scores = sum, slope = 0.2"},
	{heads: 4, keyHeads: 2, m: 6, keys: 64, depth: 1, value: 64, rows: 16, columns: 16, entries: 9, elem: "f16", lse: true, bias: "rng normal, seed = 7", attrs: ", scores = sum, slope = 0.5", moved: true},
	{m: 3, keys: 64, depth: 16, value: 16, rows: 16, columns: 16, entries: 7, elem: "bf16", lse: true, bias: "rng normal, seed = 8", attrs: ", slope = -0.5"}, // on tensor cores
	{m: 70, keys: 50, depth: 24, value: 20, entries: 600, lse: true, attrs: ", scores = sum, leak = 0.2", weights: "1x1"},
	{heads: 4, keyHeads: 2, m: 6, keys: 64, depth: 16, value: 16, rows: 16, columns: 16, entries: 9, elem: "f16", lse: true, scale: "0.25", bias: "rng normal, seed = 9", attrs: ", scores = sum, leak = -0.5, slope = 0.5", weights: "4x3", moved: true},
	{m: 2, keys: 9, depth: 1100, value: 6, entries: 10, lse: true, scale: "0.03", attrs: ", scores = sum, leak = 0.2", weights: "1x2"}, // queries that registers do not hold
	{m: 3, keys: 300, depth: 7, value: 24, entries: 900, positions: "constant dense<[0, 1, 890, 900]>", elem: "f64", attrs: ", scores = sum, leak = 1.5", weights: "1x3"},
}

// text is a function of all cases.
func segmentAttentions(cases []segmentAttentionCase) string {
	var params, values, kinds []string
	var b strings.Builder
	for i, c := range cases {
		or := func(s, otherwise string) string {
			if s == "" {
				return otherwise
			}
			return s
		}
		c.heads, c.keyHeads, c.rows, c.columns = max(c.heads, 1), max(c.keyHeads, 1), max(c.rows, 1), max(c.columns, 1)
		elem, wide := or(c.elem, "f32"), "f32"
		if elem == "f64" {
			wide = "f64"
		}
		shape := func(heads, rows, n int) string { return fmt.Sprintf("tensor<%dx%dx%dx%s>", heads, rows, n, elem) }
		types := []string{shape(c.heads, c.m*c.rows, c.depth), shape(c.keyHeads, c.keys, c.depth), shape(c.keyHeads, c.keys, c.value)}
		var operands []string
		for j, name := range []string{"q", "k", "v"} {
			v := fmt.Sprintf("%%%s%d", name, i)
			operands = append(operands, v)
			if !c.moved {
				params = append(params, v+": "+types[j])
				continue
			}
			heads, rows, n := 0, 0, 0
			_, _ = fmt.Sscanf(types[j], "tensor<%dx%dx%dx", &heads, &rows, &n)
			lies := shape(rows, heads, n)
			params = append(params, v+".m: "+lies)
			fmt.Fprintf(&b, "  %s = dm.transpose %s.m, dims = [1, 0, 2] : (%s) -> %s\n", v, v, lies, types[j])
		}
		p, at := of(fmt.Sprint(c.m+1), or(c.position, "i32")), of(fmt.Sprint(c.entries), or(c.coordinate, "i32"))
		if c.positions == "" {
			fmt.Fprintf(&b, "  %%u%d = dm.rng uniform, seed = %d, low = 0, high = %d : %s\n  %%p%d = dm.sort %%u%d : %s\n", i, i, c.entries+1, p, i, i, p)
		} else {
			fmt.Fprintf(&b, "  %%p%d = dm.%s : %s\n", i, c.positions, p)
		}
		fmt.Fprintf(&b, "  %%c%d = dm.rng uniform, seed = %d, low = -1, high = %d : %s\n", i, i+50, c.keys/c.columns+1, at) // some are outside
		operands, types = append(operands, fmt.Sprintf("%%p%d", i), fmt.Sprintf("%%c%d", i)), append(types, p, at)
		if c.bias != "" {
			n := 1
			if c.biasHeads {
				n = c.heads
			}
			bias := fmt.Sprintf("tensor<%dx%dx%dx%dx%s>", n, c.entries, c.rows, c.columns, elem)
			fmt.Fprintf(&b, "  %%b%d = dm.%s : %s\n", i, c.bias, bias)
			operands, types = append(operands, fmt.Sprintf("%%b%d", i)), append(types, bias)
		}
		if c.weights != "" {
			weights := fmt.Sprintf("tensor<%sx%dx%s>", c.weights, c.depth, elem)
			params = append(params, fmt.Sprintf("%%w%d: %s", i, weights))
			operands, types = append(operands, fmt.Sprintf("%%w%d", i)), append(types, weights)
		}
		y := shape(c.heads, c.m*c.rows, c.value)
		result, kind := fmt.Sprintf("%%y%d", i), y
		values, kinds = append(values, result), append(kinds, y)
		if c.lse {
			lse := fmt.Sprintf("tensor<%dx%dx%s>", c.heads, c.m*c.rows, wide)
			result, kind = result+fmt.Sprintf(", %%l%d", i), "("+y+", "+lse+")"
			values, kinds = append(values, fmt.Sprintf("%%l%d", i)), append(kinds, lse)
		}
		fmt.Fprintf(&b, "  %s = dm.segment_attention %s, block = [%d, %d], scale = %s%s : (%s) -> %s\n", result, strings.Join(operands, ", "), c.rows, c.columns, or(c.scale, "1.0"), c.attrs, strings.Join(types, ", "), kind)
	}
	return fmt.Sprintf("func.func @f(%s) -> (%s) {\n%s  return %s : %s\n}\n", strings.Join(params, ", "), strings.Join(kinds, ", "), b.String(), strings.Join(values, ", "), strings.Join(kinds, ", "))
}

// Attention to segments of all shapes agrees with the reference.
func TestSegmentAttention(t *testing.T) {
	need.Long(t)
	needEmulator(t)
	needCPU(t)
	text := segmentAttentions(segmentAttentionCases)
	agree(t, []Case{{Name: "emulator", Text: text, Seed: 7}, {Name: "processor", Text: text, Seed: 7, Device: "cpu"}})
}
