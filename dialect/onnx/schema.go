package onnx

import (
	_ "embed"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// schemas.txt has, for each op in any version of its operator set, the number of its
// inputs, "*" where any number is allowed, and its attributes. Ops of other domains than
// ONNX's have their domain before the name.
//
//go:embed schemas.txt
var schemaText string

// schema is what a node of an op may have.
type schema struct {
	inputs int
	attrs  []string
}

// schemas are those of each op, by name.
var schemas = sync.OnceValue(func() map[string]schema {
	out := map[string]schema{}
	for line := range strings.Lines(schemaText) {
		f := strings.Fields(line)
		inputs, err := strconv.Atoi(f[1])
		if err != nil {
			inputs = math.MaxInt
		}
		out[f[0]] = schema{inputs, f[2:]}
	}
	return out
})

// idle are attributes and inputs, by their numbers, that say nothing about the result
// where the conversion of their op does not read them: of a mode that the node does not
// have, hints, and the seeds of numbers that ONNX leaves open. Those of "" are of every op.
var idle = map[string][]string{
	"":                                {"axis", "broadcast", "consumed_inputs"},
	"Attention":                       {"kv_num_heads", "q_num_heads", "qk_matmul_output_mode", "softmax_precision"},
	"AveragePool":                     {"count_include_pad"},
	"BatchNormalization":              {"is_test", "momentum", "training_mode"},
	"Bernoulli":                       {"seed"},
	"Cast":                            {"round_mode", "saturate"},
	"CastLike":                        {"round_mode", "saturate"},
	"DequantizeLinear":                {"block_size"},
	"Dropout":                         {"is_test", "ratio", "seed", "1"},
	"GRU":                             {"activation_alpha", "activation_beta", "hidden_size", "output_sequence"},
	"GroupNormalization":              {"stash_type"},
	"If":                              {"else_branch", "then_branch"},
	"LSTM":                            {"activation_alpha", "activation_beta", "hidden_size", "output_sequence"},
	"LayerNormalization":              {"stash_type"},
	"MaxPool":                         {"storage_order"},
	"Multinomial":                     {"seed"},
	"Pad":                             {"value"},
	"QuantizeLinear":                  {"block_size", "output_dtype", "saturate"},
	"RMSNormalization":                {"stash_type"},
	"RNN":                             {"activation_alpha", "activation_beta", "hidden_size", "output_sequence"},
	"RandomNormal":                    {"seed"},
	"RandomNormalLike":                {"seed"},
	"RandomUniform":                   {"seed"},
	"RandomUniformLike":               {"seed"},
	"ReduceL1":                        noop,
	"ReduceL2":                        noop,
	"ReduceLogSum":                    noop,
	"ReduceLogSumExp":                 noop,
	"ReduceMax":                       noop,
	"ReduceMean":                      noop,
	"ReduceMin":                       noop,
	"ReduceProd":                      noop,
	"ReduceSum":                       noop,
	"ReduceSumSquare":                 noop,
	"Reshape":                         {"allowzero"},
	"Resize":                          {"cubic_coeff_a", "exclude_outside", "extrapolation_value", "nearest_mode", "1"},
	"RotaryEmbedding":                 {"num_heads"},
	"Split":                           {"num_outputs"},
	"SplitToSequence":                 {"keepdims"},
	"TopK":                            {"sorted"},
	"SimplifiedLayerNormalization":    {"stash_type"},
	microsoft + "GroupQueryAttention": {"rotary_interleaved", "9"},
	microsoft + "MatMulNBits":         {"accuracy_level", "weight_prepacked"},
}

var noop = []string{"noop_with_empty_axes"}

// known ends the import where the node has an attribute or an input that its op lacks.
func (n *node) known(name string) {
	of := schemas()[name]
	if len(n.ins) > of.inputs {
		fail("%d inputs, and %s has %d at most", len(n.ins), name, of.inputs)
	}
	for _, a := range n.p.attrs {
		if !slices.Contains(of.attrs, a.name) {
			fail("%s has no attribute %q", name, a.name)
		}
	}
}

// done ends the import where the conversion did not read an attribute or an input.
func (n *node) done(name string) {
	for _, a := range n.p.attrs {
		if !n.used[a.name] && n.resolve(a) != nil && !slices.Contains(idle[name], a.name) && !slices.Contains(idle[""], a.name) {
			unsupported("the attribute %s of %s", a.name, name)
		}
	}
	for i, v := range n.ins {
		if k := strconv.Itoa(i); v != nil && !n.used[k] && !slices.Contains(idle[name], k) {
			unsupported("input %d of %s", i, name)
		}
	}
}
