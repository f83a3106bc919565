// Package gpt2 writes a model of many layers for benchmarks of whole models.
package gpt2

import (
	"fmt"
	"strings"
)

// parameter is a parameter of the model.
type parameter struct{ name, shape string }

// The parameters of one layer of GPT-2 small, and of the rest.
var (
	ofLayer = []parameter{
		{"scale1", "768"},
		{"shift1", "768"},
		{"w_qkv", "768x3x12x64"},
		{"b_qkv", "3x12x64"},
		{"w_out", "12x64x768"},
		{"b_out", "768"},
		{"scale2", "768"},
		{"shift2", "768"},
		{"w_up", "768x3072"},
		{"b_up", "3072"},
		{"w_down", "3072x768"},
		{"b_down", "768"},
	}
	ofModel = []parameter{{"tokens", "50304x768"}, {"positions", "1024x768"}, {"scale", "768"}, {"shift", "768"}}
)

func bf16(shape string) string { return "tensor<" + shape + "xbf16>" }
func f32(shape string) string  { return "tensor<" + shape + "xf32>" }

// list is format with each parameter's name and shape, joined by commas.
func list(ps []parameter, each func(p parameter) string) string {
	var parts []string
	for _, p := range ps {
		parts = append(parts, each(p))
	}
	return strings.Join(parts, ", ")
}

const (
	x   = "tensor<4x1024x768xbf16>"
	qkv = "tensor<4x1024x3x12x64xbf16>"
	all = "tensor<3x4x12x1024x64xbf16>"
	one = "tensor<1x4x12x1024x64xbf16>"
	q   = "tensor<4x12x1024x64xbf16>"
	up  = "tensor<4x1024x3072xbf16>"
	ids = "tensor<4x1024xi64>"
)

// Step is the text of a training step of GPT-2 with so many layers, each a call of
// one private function: forward, backward and AdamW with f32 master weights, for a
// batch of 4 sequences of 1,024 tokens.
func Step(layers int) string {
	params := append([]parameter(nil), ofModel...)
	for l := range layers {
		for _, p := range ofLayer {
			params = append(params, parameter{fmt.Sprintf("%s_%d", p.name, l), p.shape})
		}
	}
	names := func(p parameter) string { return "%" + p.name }
	types := func(p parameter) string { return bf16(p.shape) }
	typed := func(p parameter) string { return "%" + p.name + ": " + bf16(p.shape) }
	states := func(p parameter) string {
		return strings.Join([]string{bf16(p.shape), f32(p.shape), f32(p.shape), f32(p.shape)}, ", ")
	}
	var b strings.Builder
	w := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }

	w("func.func @train(%%ids: %s, %%labels: %s, %%step: tensor<i64>, %s) -> (tensor<f32>, %s) {", ids, ids,
		list(params, func(p parameter) string {
			return fmt.Sprintf("%%%[1]s: %[2]s, %%%[1]s_f32: %[3]s, %%%[1]s_m: %[3]s, %%%[1]s_v: %[3]s", p.name, bf16(p.shape), f32(p.shape))
		}), list(params, states))
	var wrt []string
	for i := range params {
		wrt = append(wrt, fmt.Sprint(i+2))
	}
	w("  %%loss, %s = dm.grad @loss %%ids, %%labels, %s, wrt = [%s] : (%s, %s, %s) -> (tensor<f32>, %s)",
		list(params, func(p parameter) string { return "%d_" + p.name }), list(params, names), strings.Join(wrt, ", "),
		ids, ids, list(params, types), list(params, types))
	for _, p := range params {
		w("  %%%[1]s_next_f32, %%%[1]s_next_m, %%%[1]s_next_v, %%%[1]s_next = dm.adam %%%[1]s_f32, %%d_%[1]s, %%%[1]s_m, %%%[1]s_v, %%step, lr = 0.0001 : (%[3]s, %[2]s, %[3]s, %[3]s, tensor<i64>) -> (%[3]s, %[3]s, %[3]s, %[2]s)",
			p.name, bf16(p.shape), f32(p.shape))
	}
	w("  return %%loss, %s : tensor<f32>, %s\n}", list(params, func(p parameter) string {
		return fmt.Sprintf("%%%[1]s_next, %%%[1]s_next_f32, %%%[1]s_next_m, %%%[1]s_next_v", p.name)
	}), list(params, states))

	w("func.func private @layer(%%x: %s, %s) -> %s {", x, list(ofLayer, typed), x)
	w("  %%n1 = dm.layer_norm %%x, %%scale1, %%shift1 : (%s, %s, %s) -> %s", x, bf16("768"), bf16("768"), x)
	w(`  %%qkv0 = dm.einsum "bne,echp->bnchp" %%n1, %%w_qkv : (%s, %s) -> %s`, x, bf16("768x3x12x64"), qkv)
	w("  %%qkv1 = dm.add %%qkv0, %%b_qkv : (%s, %s) -> %s", qkv, bf16("3x12x64"), qkv)
	w("  %%qkv = dm.transpose %%qkv1, dims = [2, 0, 3, 1, 4] : (%s) -> %s", qkv, all)
	for i, n := range []string{"q", "k", "v"} {
		w("  %%%s0 = dm.slice %%qkv, start_indices = [%d], limit_indices = [%d], dims = [0] : (%s) -> %s", n, i, i+1, all, one)
		w("  %%%[1]s = dm.reshape %%%[1]s0 : (%[2]s) -> %[3]s", n, one, q)
	}
	w("  %%a = dm.attention %%q, %%k, %%v, causal = true : (%[1]s, %[1]s, %[1]s) -> %[1]s", q)
	w(`  %%o0 = dm.einsum "bhnp,hpe->bne" %%a, %%w_out : (%s, %s) -> %s`, q, bf16("12x64x768"), x)
	w("  %%o = dm.add %%o0, %%b_out : (%s, %s) -> %s", x, bf16("768"), x)
	w("  %%r = dm.add %%o, %%x : %s", x)
	w("  %%n2 = dm.layer_norm %%r, %%scale2, %%shift2 : (%s, %s, %s) -> %s", x, bf16("768"), bf16("768"), x)
	w(`  %%u0 = dm.einsum "bne,eu->bnu" %%n2, %%w_up : (%s, %s) -> %s`, x, bf16("768x3072"), up)
	w("  %%u1 = dm.add %%u0, %%b_up : (%s, %s) -> %s", up, bf16("3072"), up)
	w("  %%u = dm.gelu %%u1 : %s", up)
	w(`  %%d0 = dm.einsum "bnu,ue->bne" %%u, %%w_down : (%s, %s) -> %s`, up, bf16("3072x768"), x)
	w("  %%d = dm.add %%d0, %%b_down : (%s, %s) -> %s", x, bf16("768"), x)
	w("  %%y = dm.add %%d, %%r : %s\n  return %%y : %s\n}", x, x)

	logits, wide := bf16("4x1024x50304"), f32("4x1024x50304")
	w("func.func private @loss(%%ids: %s, %%labels: %s, %s) -> tensor<f32> {", ids, ids, list(params, typed))
	w("  %%e = dm.embedding %%tokens, %%ids : (%s, %s) -> %s", bf16("50304x768"), ids, x)
	w("  %%h0 = dm.add %%e, %%positions : (%s, %s) -> %s", x, bf16("1024x768"), x)
	for l := range layers {
		w("  %%h%d = func.call @layer(%%h%d, %s) : (%s, %s) -> %s", l+1, l,
			list(ofLayer, func(p parameter) string { return fmt.Sprintf("%%%s_%d", p.name, l) }), x, list(ofLayer, types), x)
	}
	w("  %%n = dm.layer_norm %%h%d, %%scale, %%shift : (%s, %s, %s) -> %s", layers, x, bf16("768"), bf16("768"), x)
	w(`  %%logits = dm.einsum "bne,ve->bnv" %%n, %%tokens : (%s, %s) -> %s`, x, bf16("50304x768"), logits)
	w("  %%wide = dm.convert %%logits : (%s) -> %s", logits, wide)
	w("  %%loss = dm.cross_entropy %%wide, %%labels, dim = 2 : (%s, %s) -> tensor<f32>", wide, ids)
	w("  return %%loss : tensor<f32>\n}")
	return b.String()
}
