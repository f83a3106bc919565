// Package models writes training steps of published language models as text of the dialect, from their
// hyperparameters, for benchmarks and tests of whole models.
//
// A step is forward, backward and AdamW in mixed precision (Micikevicius et al., arXiv 1710.03740): weights,
// activations and gradients have the element type of the configuration, master weights and moments are f32, and the
// step returns both. The layers are calls of one private function, each with one tuple of weights, so that the text
// grows by two lines with a layer. Matrices and biases start as random numbers, scales of normalizations as 1, which
// is why these are a tuple of their own; only the former decay.
package models

import (
	"errors"
	"fmt"
)

// A Config is what the families of models have in common.
type Config struct {
	Layers     int    `toml:"layers"`
	Hidden     int    `toml:"hidden"`
	Heads      int    `toml:"heads"`
	KVHeads    int    `toml:"kv_heads"`  // heads of keys and values; 0: as many as heads
	HeadSize   int    `toml:"head_size"` // 0: hidden / heads
	FF         int    `toml:"ff"`        // width inside the feed-forward network; 0: 4 · hidden
	Vocabulary int    `toml:"vocabulary"`
	Sequence   int    `toml:"sequence"` // tokens
	Batch      int    `toml:"batch"`    // sequences of a step, on all devices together
	Element    string `toml:"element"`  // of weights and activations: bf16 (default), f16 or f32, which needs no master weights
	Tied       bool   `toml:"tied"`     // the embedding is the matrix of the output as well
	// Scores is whether attention writes its scores and probabilities to memory, as before FlashAttention (arXiv 2205.14135).
	// The text is for times alone: it does not scale and mask the scores.
	Scores bool `toml:"scores"`
	// Rate is the learning rate; 0: 1e-4.
	Rate float64 `toml:"rate"`
}

// filled is c with its defaults, or what is wrong with it.
func (c Config) filled() (Config, error) {
	for _, p := range []struct {
		name string
		n    int
	}{{"layers", c.Layers}, {"hidden", c.Hidden}, {"heads", c.Heads}, {"vocabulary", c.Vocabulary}, {"sequence", c.Sequence}, {"batch", c.Batch}} {
		if p.n < 1 {
			return c, fmt.Errorf("%s is %d; it must be at least 1", p.name, p.n)
		}
	}
	if c.KVHeads < 0 || c.HeadSize < 0 || c.FF < 0 || c.Rate < 0 {
		return c, errors.New("kv_heads, head_size, ff and rate must not be negative")
	}
	if c.KVHeads == 0 {
		c.KVHeads = c.Heads
	}
	if c.Heads%c.KVHeads != 0 {
		return c, fmt.Errorf("%d heads cannot share %d heads of keys and values evenly", c.Heads, c.KVHeads)
	}
	if c.HeadSize == 0 {
		if c.Hidden%c.Heads != 0 {
			return c, fmt.Errorf("hidden size %d is no multiple of %d heads; give head_size", c.Hidden, c.Heads)
		}
		c.HeadSize = c.Hidden / c.Heads
	}
	if c.FF == 0 {
		c.FF = 4 * c.Hidden
	}
	if c.Rate == 0 {
		c.Rate = 1e-4
	}
	switch c.Element {
	case "":
		c.Element = "bf16"
	case "bf16", "f16", "f32":
	default:
		return c, fmt.Errorf("element type %q; want bf16, f16 or f32", c.Element)
	}
	return c, nil
}

// Experts are the hyperparameters of a mixture of experts.
type Experts struct {
	Count  int `toml:"experts"` // routed experts
	Chosen int `toml:"chosen"`  // of them for each token
	Shared int `toml:"shared"`
	FF     int `toml:"expert_ff"` // width inside an expert
	// Dense is how many layers, the first ones, have a feed-forward network of width Config.FF in place of experts.
	Dense int `toml:"dense"`
	// Group is how many neighbouring tokens of a sequence share the places of an expert; 0: the sequence.
	Group int `toml:"group"`
	// Capacity is how many places an expert has in a group, relative to even use; 0: 1.25. Tokens beyond that do not
	// reach the expert.
	Capacity float64 `toml:"capacity"`
	Latent   Latent  `toml:"latent"` // zero: attention with grouped heads
}

// Latent are the sizes of multi-head latent attention (DeepSeek-V2, arXiv 2405.04434): the ranks of queries and of
// keys and values, and the sizes of a head's query and key without and with positions, and of its value.
type Latent struct {
	Query    int `toml:"query"`
	KeyValue int `toml:"key_value"`
	Plain    int `toml:"plain"`
	Rotary   int `toml:"rotary"`
	Value    int `toml:"value"`
}

// places is how many places an expert has in a group.
func (e Experts) places() int {
	n := int(float64(e.Group*e.Chosen)*e.Capacity/float64(e.Count) + 0.999999)
	return max(1, min(n, e.Group))
}

func (e Experts) filled(c Config) (Experts, error) {
	if e.Group == 0 {
		e.Group = c.Sequence
	}
	if e.Capacity == 0 {
		e.Capacity = 1.25
	}
	l := e.Latent
	switch {
	case e.Count < 1, e.Chosen < 1, e.FF < 1:
		return e, errors.New("experts, chosen and expert_ff must be at least 1")
	case e.Chosen > e.Count:
		return e, fmt.Errorf("%d experts for each token of %d", e.Chosen, e.Count)
	case e.Shared < 0, e.Dense < 0, e.Dense > c.Layers:
		return e, fmt.Errorf("shared %d, dense %d of %d layers; they must not be negative, nor more than there are", e.Shared, e.Dense, c.Layers)
	case e.Group < 1, c.Sequence%e.Group != 0:
		return e, fmt.Errorf("groups of %d tokens do not divide a sequence of %d", e.Group, c.Sequence)
	case !(e.Capacity > 0):
		return e, fmt.Errorf("capacity %v; it must be positive", e.Capacity)
	case l != Latent{} && (l.Query < 1 || l.KeyValue < 1 || l.Plain < 1 || l.Rotary < 2 || l.Rotary%2 != 0 || l.Value < 1):
		return e, fmt.Errorf("latent sizes %+v; all must be positive and rotary even", l)
	}
	return e, nil
}

// GPT is the text of a training step of a model of the GPT-3 and Megatron family (Brown et al., arXiv 2005.14165;
// Narayanan et al., arXiv 2104.04473): learned positions, layer normalization before attention and before a network
// with GELU, biases, causal attention.
func GPT(c Config) (string, error) {
	c, err := c.filled()
	if err != nil {
		return "", err
	}
	m := newModel(c)
	m.positions()
	l := m.layer("layer")
	n := l.layerNorm("norm1", "x", true)
	a := l.attention(n, true, false)
	r := l.residual("r", a, "x")
	f := l.gelu(l.layerNorm("norm2", r, true))
	l.done(l.residual("y", f, r))
	return m.step(l, c.Layers, nil, 0, func(s *body, x string) string { return s.layerNorm("last", x, true) }), nil
}

// rotary is filled, for a model whose positions turn pairs of a head's elements.
func (c Config) rotary() (Config, error) {
	c, err := c.filled()
	if err == nil && c.HeadSize%2 != 0 {
		err = fmt.Errorf("head size %d is odd; rotary positions turn pairs", c.HeadSize)
	}
	return c, err
}

// Llama is the text of a training step of a model of the Llama family (arXiv 2302.13971, 2407.21783): RMS
// normalization, rotary positions, grouped heads, a network gated by SiLU, no biases.
func Llama(c Config) (string, error) {
	c, err := c.rotary()
	if err != nil {
		return "", err
	}
	m := newModel(c)
	m.rotary(c.HeadSize)
	l := m.layer("layer")
	l.llama(func(n string) string { return l.attention(n, false, true) }, func(n string) string { return l.gated(n, "", c.FF) })
	return m.step(l, c.Layers, nil, 0, func(s *body, x string) string { return s.rmsNorm("last", x) }), nil
}

// PaLM is the text of a training step of a model of the PaLM family (Chowdhery et al., arXiv 2204.02311): attention
// and a network gated by SiLU beside each other after one normalization, one head of keys and values (where the
// configuration states no other number), rotary positions, one matrix for embedding and output, no biases.
func PaLM(c Config) (string, error) {
	if c.KVHeads == 0 {
		c.KVHeads = 1
	}
	c.Tied = true
	c, err := c.rotary()
	if err != nil {
		return "", err
	}
	m := newModel(c)
	m.rotary(c.HeadSize)
	l := m.layer("layer")
	n := l.layerNorm("norm", "x", false)
	a := l.attention(n, false, true)
	f := l.gated(n, "", c.FF)
	l.done(l.residual("y", l.residual("both", a, f), "x"))
	return m.step(l, c.Layers, nil, 0, func(s *body, x string) string { return s.layerNorm("last", x, false) }), nil
}

// Mixture is the text of a training step of a mixture of experts like DeepSeek-V3 (arXiv 2412.19437): RMS
// normalization, rotary positions, latent or grouped attention, each token in its best experts by a sigmoid of its
// affinity, gates that add up to 1, and shared experts, which are one wider network. Tokens travel as in GShard
// (Lepikhin et al., arXiv 2006.16668): an expert has so many places in each group of tokens. The bias that balances
// the load, the limit of nodes for each token and the prediction of further tokens are left out.
func Mixture(c Config, e Experts) (string, error) {
	if e.Latent != (Latent{}) {
		c.HeadSize = e.Latent.Plain + e.Latent.Rotary
	}
	c, err := c.filled()
	if err != nil {
		return "", err
	}
	if e, err = e.filled(c); err != nil {
		return "", err
	}
	if e.Latent == (Latent{}) && c.HeadSize%2 != 0 {
		return "", fmt.Errorf("head size %d is odd; rotary positions turn pairs", c.HeadSize)
	}
	m := newModel(c)
	size := c.HeadSize
	if e.Latent != (Latent{}) {
		size = e.Latent.Rotary
	}
	m.rotary(size)
	write := func(l *body, network func(n string) string) {
		l.llama(func(n string) string {
			if e.Latent != (Latent{}) {
				return l.latent(n, e.Latent)
			}
			return l.attention(n, false, true)
		}, network)
	}
	var dense *body
	if e.Dense > 0 {
		dense = m.layer("dense")
		write(dense, func(n string) string { return dense.gated(n, "", c.FF) })
	}
	l := m.layer("layer")
	write(l, func(n string) string { return l.experts(n, e) })
	return m.step(l, c.Layers-e.Dense, dense, e.Dense, func(s *body, x string) string { return s.rmsNorm("last", x) }), nil
}
