package attend_test

import (
	"fmt"
	"math"
	"strings"

	"dmir/compile/tensor"
)

// attention is an attention and its gradient.
type attention struct {
	name          string
	elem          string // f32 if empty
	heads, kv     string // dimensions of the heads, and of the key heads
	queries, keys int
	depth, value  int
	attrs         string
	mask          string // its shape; empty: none
	step          bool
	first         string // of a part of a whole, the number of its first row of scores
	least         bool   // the mask is the least finite number for all keys of some queries
	hidden        bool   // the mask hides each third key
	none          bool   // the mask hides all keys of a query
}

var table = []attention{
	{name: "one", heads: "1x1", kv: "1x1", queries: 1, keys: 1, depth: 1, value: 1},
	{name: "no heads", queries: 5, keys: 7, depth: 3, value: 2},
	{name: "ragged", heads: "2x3", kv: "2x3", queries: 37, keys: 141, depth: 19, value: 33},
	{name: "whole", heads: "1x2", kv: "1x2", queries: 128, keys: 256, depth: 64, value: 64},
	{name: "decode", heads: "2x8", kv: "2x2", queries: 1, keys: 300, depth: 32, value: 48, attrs: ", causal = true"},
	{name: "decode with a mask", heads: "2x8", kv: "2x2", queries: 1, keys: 40, depth: 8, value: 8, mask: "1x8x1x40", attrs: ", dropout = 0.2, seed = 5"},
	{name: "decode with a mask of keys", heads: "2x8", kv: "2x2", queries: 1, keys: 40, depth: 8, value: 8, mask: "2x1x1x40"},
	{name: "few queries", heads: "1x2", kv: "1x2", queries: 3, keys: 300, depth: 16, value: 48, attrs: ", causal = true, dropout = 0.2", mask: "3x300"},
	{name: "few queries in f64", elem: "f64", heads: "1x2", kv: "1x2", queries: 4, keys: 300, depth: 8, value: 24, mask: "300", hidden: true},
	{name: "few queries in half precision", elem: "bf16", heads: "8", kv: "2", queries: 1, keys: 700, depth: 32, value: 32},
	{name: "parts of keys", heads: "1x2", kv: "1x1", queries: 3, keys: 1300, depth: 8, value: 8, attrs: ", causal = true"},
	{name: "parts that are not seen", heads: "2", kv: "2", queries: 1200, keys: 1030, depth: 8, value: 8, attrs: ", causal = true, dropout = 0.1"},
	{name: "parts in half precision", elem: "f16", heads: "1x6", kv: "1x2", queries: 1, keys: 1100, depth: 8, value: 16, mask: "1100"},
	{name: "groups", heads: "2x6", kv: "2x2", queries: 70, keys: 70, depth: 16, value: 24, attrs: ", causal = true"},
	{name: "many batches", heads: "2x3x4", kv: "2x3x1", queries: 9, keys: 20, depth: 8, value: 8},
	{name: "long", heads: "1x2", kv: "1x1", queries: 200, keys: 1100, depth: 8, value: 40, attrs: ", causal = true"},
	{name: "few keys", heads: "1x2", kv: "1x2", queries: 90, keys: 3, depth: 20, value: 20},
	{name: "causal, fewer queries", heads: "1x2", kv: "1x2", queries: 33, keys: 150, depth: 8, value: 8, attrs: ", causal = true"},
	{name: "causal, more queries", heads: "1x2", kv: "1x2", queries: 150, keys: 33, depth: 8, value: 8, attrs: ", causal = true"},
	{name: "wide", heads: "1", kv: "1", queries: 20, keys: 30, depth: 260, value: 300},
	{name: "scale", heads: "2", kv: "2", queries: 20, keys: 30, depth: 8, value: 8, attrs: ", scale = -0.7"},
	{name: "scale 0", heads: "2", kv: "2", queries: 20, keys: 30, depth: 8, value: 8, attrs: ", scale = 0.0"},
	{name: "mask", heads: "2x2", kv: "2x1", queries: 70, keys: 150, depth: 16, value: 16, mask: "2x2x70x150", hidden: true},
	{name: "mask of all", heads: "2x2", kv: "2x2", queries: 70, keys: 150, depth: 16, value: 16, mask: "70x150", attrs: ", causal = true"},
	{name: "mask of keys", heads: "2x4", kv: "2x2", queries: 21, keys: 150, depth: 16, value: 16, mask: "2x1x1x150", hidden: true},
	{name: "mask of queries", heads: "2x4", kv: "2x2", queries: 70, keys: 35, depth: 16, value: 16, mask: "1x4x70x1"},
	{name: "mask of heads", heads: "2x4", kv: "2x2", queries: 21, keys: 35, depth: 16, value: 16, mask: "4x1x1"},
	{name: "mask of one dimension", heads: "3", kv: "1", queries: 21, keys: 35, depth: 16, value: 16, mask: "35"},
	{name: "mask of one number", heads: "3", kv: "1", queries: 21, keys: 35, depth: 16, value: 16, mask: ""},
	{name: "least numbers", heads: "1x2", kv: "1x2", queries: 40, keys: 50, depth: 16, value: 16, mask: "40x50", least: true},
	{name: "nothing seen", heads: "1x2", kv: "1x2", queries: 40, keys: 50, depth: 16, value: 16, mask: "40x50", none: true},
	{name: "dropout", heads: "2x4", kv: "2x2", queries: 50, keys: 141, depth: 16, value: 16, attrs: ", dropout = 0.3, seed = 7"},
	{name: "dropout with a step", heads: "1x2", kv: "1x2", queries: 50, keys: 40, depth: 16, value: 16, attrs: ", causal = true, dropout = 0.5, seed = 3", step: true, mask: "50x40"},
	{name: "dropout in a part of a whole", heads: "2x4", kv: "2x2", queries: 50, keys: 41, depth: 16, value: 16, attrs: ", dropout = 0.3, seed = 7, whole = [7000000000, 6, 70]", first: "420000000147"},
	{name: "decode of a part of a whole", heads: "2x8", kv: "2x2", queries: 1, keys: 40, depth: 8, value: 8, attrs: ", dropout = 0.2, seed = 5, whole = [5, 9, 3]", step: true, first: "29"},
	{name: "f64", elem: "f64", heads: "2x2", kv: "2x1", queries: 37, keys: 141, depth: 19, value: 33, attrs: ", causal = true", mask: "37x141"},
	{name: "f16", elem: "f16", heads: "2x2", kv: "2x1", queries: 37, keys: 141, depth: 32, value: 48, attrs: ", causal = true"},
	{name: "bf16", elem: "bf16", heads: "2x2", kv: "2x1", queries: 37, keys: 141, depth: 19, value: 33, mask: "2x1x1x141", hidden: true},
}

func (a attention) elemName() string {
	if a.elem == "" {
		return "f32"
	}
	return a.elem
}

// of is the type of a tensor with these dimensions, the first ones as text.
func (a attention) of(elem, first string, dims ...int) string {
	all := []string{}
	if first != "" {
		all = append(all, first)
	}
	for _, d := range dims {
		all = append(all, fmt.Sprint(d))
	}
	return "tensor<" + strings.Join(append(all, elem), "x") + ">"
}

// text is the function. The gradient takes a y that is not the attention's, so that no
// sums cancel out.
func (a attention) text() string {
	e, sums := a.elemName(), "f32"
	if e == "f64" {
		sums = e
	}
	q, k, v := a.of(e, a.heads, a.queries, a.depth), a.of(e, a.kv, a.keys, a.depth), a.of(e, a.kv, a.keys, a.value)
	y, lse := a.of(e, a.heads, a.queries, a.value), a.of(sums, a.heads, a.queries)
	params, names, types, results := "", "", "", []string{q, k, v}
	if a.mask != "" || strings.HasPrefix(a.name, "mask of one number") {
		m := a.of(e, a.mask)
		params, names, types, results = ", %m: "+m, ", %m", ", "+m, append(results, m)
	}
	if a.step {
		params, names, types = params+", %s: tensor<i64>", names+", %s", types+", tensor<i64>"
	}
	first := ""
	if a.first != "" {
		first = "  %n = dm.constant dense<" + a.first + "> : tensor<i64>\n"
		names, types = names+", %n", types+", tensor<i64>"
	}
	var grads []string
	for i := range results {
		grads = append(grads, fmt.Sprintf("%%d%d", i))
	}
	all := strings.Join(append([]string{y, lse}, results...), ", ")
	return fmt.Sprintf(`func.func @f(%%q: %[1]s, %%k: %[2]s, %%v: %[3]s, %%dy: %[4]s, %%z: %[4]s%[6]s) -> (%[9]s) {
%[13]s  %%y, %%l = dm.attention %%q, %%k, %%v%[7]s%[8]s : (%[1]s, %[2]s, %[3]s%[10]s) -> (%[4]s, %[5]s)
  %[11]s = dm.attention_grad %%q, %%k, %%v, %%z, %%l, %%dy%[7]s%[8]s : (%[1]s, %[2]s, %[3]s, %[4]s, %[5]s, %[4]s%[10]s) -> (%[12]s)
  return %%y, %%l, %[11]s : %[9]s
}`, q, k, v, y, lse, params, names, a.attrs, all, types, strings.Join(grads, ", "), strings.Join(results, ", "), first)
}

// edit puts special numbers into the mask.
func (a attention) edit(m *tensor.Tensor) {
	for i := range m.Len() {
		row := i / a.keys % a.queries
		switch {
		case a.hidden && i%3 == 1, a.none && row == 4:
			m.SetFloat(i, math.Inf(-1))
		case a.least && row%7 == 3:
			m.SetFloat(i, -math.MaxFloat32)
		}
	}
}

const views = `!packed = tensor<2x37x3x4x24xf32>
!one = tensor<2x37x1x4x24xf32>
!token = tensor<2x37x4x24xf32>
!heads = tensor<2x4x37x24xf32>
func.func @f(%x: !packed, %z: !heads, %dy: !heads, %l: tensor<2x4x37xSUM>) -> (!heads, !packed) {
  %q1 = dm.slice %x, start_indices = [0, 0, 0, 0, 0], limit_indices = [2, 37, 1, 4, 24] : (!packed) -> !one
  %k1 = dm.slice %x, start_indices = [0, 0, 1, 0, 0], limit_indices = [2, 37, 2, 4, 24] : (!packed) -> !one
  %v1 = dm.slice %x, start_indices = [0, 0, 2, 0, 0], limit_indices = [2, 37, 3, 4, 24] : (!packed) -> !one
  %q2 = dm.reshape %q1 : (!one) -> !token
  %k2 = dm.reshape %k1 : (!one) -> !token
  %v2 = dm.reshape %v1 : (!one) -> !token
  %q = dm.transpose %q2, dims = [0, 2, 1, 3] : (!token) -> !heads
  %k = dm.transpose %k2, dims = [0, 2, 1, 3] : (!token) -> !heads
  %v = dm.transpose %v2, dims = [0, 2, 1, 3] : (!token) -> !heads
  %y = dm.attention %q, %k, %v, causal = true : (!heads, !heads, !heads) -> !heads
  %dq, %dk, %dv = dm.attention_grad %q, %k, %v, %z, %l, %dy, causal = true : (!heads, !heads, !heads, !heads, tensor<2x4x37xSUM>, !heads) -> (!heads, !heads, !heads)
  %dq1 = dm.transpose %dq, dims = [0, 2, 1, 3] : (!heads) -> !token
  %dk1 = dm.transpose %dk, dims = [0, 2, 1, 3] : (!heads) -> !token
  %dv1 = dm.transpose %dv, dims = [0, 2, 1, 3] : (!heads) -> !token
  %dq2 = dm.reshape %dq1 : (!token) -> !one
  %dk2 = dm.reshape %dk1 : (!token) -> !one
  %dv2 = dm.reshape %dv1 : (!token) -> !one
  %dx = dm.concatenate %dq2, %dk2, %dv2, dim = 2 : (!one, !one, !one) -> !packed
  return %y, %dx : !heads, !packed
}`
