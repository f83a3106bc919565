package models

import (
	"fmt"
	"strings"
)

// layerNorm and rmsNorm normalize x over the hidden size.
func (b *body) layerNorm(result, x string, bias bool) string {
	operands := []string{x, b.scale(result+"_scale", b.m.Hidden)}
	if bias {
		operands = append(operands, b.weight(result+"_bias", "", b.m.Hidden))
	}
	return b.op(result, "!x", "dm.layer_norm", operands...)
}

func (b *body) rmsNorm(result, x string) string {
	return b.op(result, "!x", "dm.rms_norm", x, b.scale(result+"_scale", b.m.Hidden))
}

// llama is a layer with RMS normalization before attention and before the network.
func (b *body) llama(attention, network func(n string) string) {
	r := b.residual("r", attention(b.rmsNorm("norm1", "x")), "x")
	b.done(b.residual("y", network(b.rmsNorm("norm2", r)), r))
}

// biased is x, a value of so many heads of a size, with a bias.
func (b *body) biased(x, name string, heads, size int) string {
	return b.op(x+"_biased", b.types[x], "dm.add", x, b.weight(name, "head, 1, size of a head", heads, 1, size))
}

// attention is causal attention over the sequence, with grouped heads.
func (b *body) attention(x string, bias, turned bool) string {
	c := b.m.Config
	b.note("Attention")
	heads := func(name string, n int) string {
		typ := b.m.alias("heads", c.Element, "batch, head, sequence, size of a head", c.Batch, n, c.Sequence, c.HeadSize)
		y := b.op(name, typ, `dm.einsum "bse,ehd->bhsd"`, x, b.weight("w_"+name, "hidden, head, size of a head", c.Hidden, n, c.HeadSize))
		if bias {
			y = b.biased(y, "b_"+name, n, c.HeadSize)
		}
		return y
	}
	q, k, v := heads("q", c.Heads), heads("k", c.KVHeads), heads("v", c.KVHeads)
	if turned {
		q, k = b.turn(q), b.turn(k)
	}
	if !c.Scores {
		return b.projected(b.op("a", b.types[q], "dm.attention, causal = true", q, k, v), c.HeadSize, bias)
	}
	scores := b.m.alias("scores", c.Element, "batch, head, query, key", c.Batch, c.Heads, c.Sequence, c.Sequence)
	b.op("s", scores, `dm.einsum "bhqd,bhkd->bhqk"`, q, k)
	b.op("p", scores, "dm.softmax, dim = 3", "s") // the kernel scales and masks too, which moves nothing more
	return b.projected(b.op("a", b.types[q], `dm.einsum "bhqk,bhkd->bhqd"`, "p", v), c.HeadSize, bias)
}

// projected is the result of attention on the hidden size.
func (b *body) projected(a string, size int, bias bool) string {
	c := b.m.Config
	o := b.op("o", "!x", `dm.einsum "bhsd,hde->bse"`, a, b.weight("w_o", "head, size of a head, hidden", c.Heads, size, c.Hidden))
	if bias {
		o = b.op("o_biased", "!x", "dm.add", o, b.weight("b_o", "", c.Hidden))
	}
	return o
}

// latent is multi-head latent attention: queries, and keys and values, come from vectors of a lower rank. The part of
// a key that has positions is one for all heads.
func (b *body) latent(x string, l Latent) string {
	c := b.m.Config
	b.note("Latent attention")
	low := func(name string, rank int) string {
		typ := b.m.alias("low_"+name, c.Element, "batch, sequence, rank", c.Batch, c.Sequence, rank)
		y := b.op("low_"+name, typ, `dm.einsum "bse,er->bsr"`, x, b.weight("w_low_"+name, "hidden, rank", c.Hidden, rank))
		return b.op("norm_"+name, typ, "dm.rms_norm", y, b.scale("norm_"+name+"_scale", rank))
	}
	typ := func(heads, size int) string {
		return b.m.alias("heads", c.Element, "batch, head, sequence, size of a head", c.Batch, heads, c.Sequence, size)
	}
	heads := func(name, x string, rank, heads, size int) string {
		w := b.weight("w_"+name, "rank, head, size of a head", rank, heads, size)
		return b.op(name, typ(heads, size), `dm.einsum "bsr,rhd->bhsd"`, x, w)
	}
	q, kv := low("q", l.Query), low("kv", l.KeyValue)
	plainQ := heads("q_plain", q, l.Query, c.Heads, l.Plain)
	turnedQ := b.turn(heads("q_rotary", q, l.Query, c.Heads, l.Rotary))
	plainK := heads("k_plain", kv, l.KeyValue, c.Heads, l.Plain)
	turnedK := b.turn(heads("k_rotary", x, c.Hidden, 1, l.Rotary))
	v := heads("v", kv, l.KeyValue, c.Heads, l.Value)
	all := b.op("k_all", typ(c.Heads, l.Rotary), "dm.broadcast", turnedK)
	whole := typ(c.Heads, l.Plain+l.Rotary)
	b.op("q", whole, "dm.concatenate, dim = 3", plainQ, turnedQ)
	b.op("k", whole, "dm.concatenate, dim = 3", plainK, all)
	a := b.op("a", b.types[v], "dm.attention, causal = true", "q", "k", v)
	return b.projected(a, l.Value, false)
}

// turn is x with rotary positions (Su et al., arXiv 2104.09864), by a function for each type of x.
func (b *body) turn(x string) string {
	typ := b.types[x]
	name := "turn_" + typ[1:]
	m := b.m
	if !m.turning[typ] {
		m.turning[typ] = true
		m.turns = append(m.turns, m.rotation(name, typ))
	}
	return b.call(x+"_turned", typ, name, x, "cos", "sin")
}

// rotation is the text of a function of m: the two halves of each head are the coordinates of points, which it rotates.
func (m *model) rotation(name, typ string) string {
	t := strings.TrimSuffix(m.types[typ], m.Element+">")
	t = t[:strings.LastIndexByte(t[:len(t)-1], 'x')+1]
	half := m.named(typ[1:]+"_half", fmt.Sprintf("%s%dx%s>", t, m.turned/2, m.Element), "")
	b := &body{m: m, types: map[string]string{"x": typ, "cos": "!angles", "sin": "!angles"}}
	h := m.turned / 2
	b.op("a", half, fmt.Sprintf("dm.slice, start_indices = [0], limit_indices = [%d], dims = [3]", h), "x")
	b.op("b", half, fmt.Sprintf("dm.slice, start_indices = [%d], limit_indices = [%d], dims = [3]", h, 2*h), "x")
	b.op("a_cos", half, "dm.mul", "a", "cos")
	b.op("b_sin", half, "dm.mul", "b", "sin")
	b.op("b_cos", half, "dm.mul", "b", "cos")
	b.op("a_sin", half, "dm.mul", "a", "sin")
	b.op("c", half, "dm.sub", "a_cos", "b_sin")
	b.op("d", half, "dm.add", "b_cos", "a_sin")
	b.op("y", typ, "dm.concatenate, dim = 3", "c", "d")
	return fmt.Sprintf("func.func private @%s(%%x: %s, %%cos: !angles, %%sin: !angles) -> %s {\n%s\n  return %%y : %s\n}\n",
		name, typ, typ, strings.Join(b.lines, "\n"), typ)
}

// gelu is the network of two matrices with biases.
func (b *body) gelu(x string) string {
	c := b.m.Config
	b.note("Feed-forward network")
	wide := b.m.alias("wide", c.Element, "batch, sequence, feed-forward", c.Batch, c.Sequence, c.FF)
	b.op("u", wide, `dm.einsum "bse,ef->bsf"`, x, b.weight("w_up", "hidden, feed-forward", c.Hidden, c.FF))
	b.op("u_biased", wide, "dm.add", "u", b.weight("b_up", "", c.FF))
	b.op("g", wide, "dm.gelu", "u_biased")
	b.op("f", "!x", `dm.einsum "bsf,fe->bse"`, "g", b.weight("w_down", "feed-forward, hidden", c.FF, c.Hidden))
	return b.op("f_biased", "!x", "dm.add", "f", b.weight("b_down", "", c.Hidden))
}

// gated is the network of three matrices, one of which gates. prefix distinguishes several of a layer.
func (b *body) gated(x, prefix string, ff int) string {
	c := b.m.Config
	b.note("Gated feed-forward network")
	wide := b.m.alias("wide", c.Element, "batch, sequence, feed-forward", c.Batch, c.Sequence, ff)
	p := prefix
	b.op(p+"gate", wide, `dm.einsum "bse,ef->bsf"`, x, b.weight(p+"w_gate", "hidden, feed-forward", c.Hidden, ff))
	b.op(p+"up", wide, `dm.einsum "bse,ef->bsf"`, x, b.weight(p+"w_up", "hidden, feed-forward", c.Hidden, ff))
	b.op(p+"silu", wide, "dm.silu", p+"gate")
	b.op(p+"gated", wide, "dm.mul", p+"silu", p+"up")
	return b.op(p+"down", "!x", `dm.einsum "bsf,fe->bse"`, p+"gated", b.weight(p+"w_down", "feed-forward, hidden", ff, c.Hidden))
}

// experts is the mixture of experts.
func (b *body) experts(x string, e Experts) string {
	c := b.m.Config
	groups, places := c.Sequence/e.Group, e.places()
	typ := func(name, element, comment string, shape ...int) string {
		return b.m.alias(name, element, comment, append([]int{c.Batch, groups}, shape...)...)
	}
	grouped := typ("grouped", c.Element, "batch, group, token, hidden", e.Group, c.Hidden)
	choice := typ("choice", "f32", "batch, group, token, expert", e.Group, e.Count)
	place := typ("place", "i32", "batch, group, token, expert", e.Group, e.Count)
	slots := typ("slots", c.Element, "batch, group, token, expert, place", e.Group, e.Count, places)
	chosen := typ("chosen", "i32", "batch, group, token, one of its experts", e.Group, e.Chosen)
	values := typ("best", "f32", "batch, group, token, one of its experts", e.Group, e.Chosen)
	hot := typ("hot", "f32", "batch, group, token, one of its experts, expert", e.Group, e.Chosen, e.Count)

	b.note("The affinity of each token to each expert, and the gates of its best ones")
	t := b.op("tokens", grouped, "dm.reshape", x)
	b.op("affinity", choice, `dm.einsum "bgse,en->bgsn"`, t, b.weight("w_router", "hidden, expert", c.Hidden, e.Count))
	b.op("scores", choice, "dm.logistic", "affinity")
	b.lines = append(b.lines, fmt.Sprintf("  %%best, %%chosen = dm.top_k %%scores, k = %d : (%s) -> (%s, %s)", e.Chosen, choice, values, chosen))
	b.types["best"], b.types["chosen"] = values, chosen
	b.op("hot", hot, fmt.Sprintf("dm.one_hot, classes = %d", e.Count), "chosen")
	b.op("mask", choice, "dm.reduce add, dims = [3]", "hot")
	b.op("kept", choice, "dm.mul", "scores", "mask")
	sum := typ("sum", "f32", "batch, group, token", e.Group)
	one := typ("sum1", "f32", "", e.Group, 1)
	b.op("total", sum, "dm.reduce add, dims = [3]", "kept")
	b.op("total1", one, "dm.reshape", "total")
	b.op("gates", choice, "dm.div", "kept", "total1")

	b.note("The place of each token among those of its group that go to the same expert")
	b.op("before", choice, "dm.cumsum, dim = 2, exclusive = true", "mask")
	b.op("place", place, "dm.convert", "before")
	b.op("slot", slots, fmt.Sprintf("dm.one_hot, classes = %d", places), "place")
	marks := "mask"
	gates := "gates"
	if c.Element != "f32" {
		half := typ("choice_half", c.Element, "", e.Group, e.Count)
		marks, gates = b.op("mask_half", half, "dm.convert", "mask"), b.op("gates_half", half, "dm.convert", "gates")
	}
	b.op("dispatch", slots, `dm.einsum "bgsn,bgsnc->bgsnc"`, marks, "slot")
	b.op("combine", slots, `dm.einsum "bgsn,bgsnc->bgsnc"`, gates, "dispatch")

	b.note("Tokens to their experts, and back")
	sent := b.m.alias("sent", c.Element, "expert, batch, group, place, hidden", e.Count, c.Batch, groups, places, c.Hidden)
	inner := b.m.alias("inner", c.Element, "expert, batch, group, place, feed-forward", e.Count, c.Batch, groups, places, e.FF)
	b.op("sent", sent, `dm.einsum "bgsnc,bgse->nbgce"`, "dispatch", t)
	b.op("e_gate", inner, `dm.einsum "nbgce,nef->nbgcf"`, "sent", b.weight("e_w_gate", "expert, hidden, feed-forward", e.Count, c.Hidden, e.FF))
	b.op("e_up", inner, `dm.einsum "nbgce,nef->nbgcf"`, "sent", b.weight("e_w_up", "expert, hidden, feed-forward", e.Count, c.Hidden, e.FF))
	b.op("e_silu", inner, "dm.silu", "e_gate")
	b.op("e_gated", inner, "dm.mul", "e_silu", "e_up")
	b.op("e_down", sent, `dm.einsum "nbgcf,nfe->nbgce"`, "e_gated", b.weight("e_w_down", "expert, feed-forward, hidden", e.Count, e.FF, c.Hidden))
	b.op("back", grouped, `dm.einsum "bgsnc,nbgce->bgse"`, "combine", "e_down")
	y := b.op("routed", "!x", "dm.reshape", "back")
	if e.Shared > 0 {
		return b.residual("mixed", y, b.gated(x, "s_", e.Shared*e.FF))
	}
	return y
}
