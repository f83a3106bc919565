package main

const (
	secondPass = "the kernel of the attention's gradient reads its operands in two passes; without that the same"
	copied     = "queries, keys and values are copied out of the stacked product; Inductor's attention reads them in place"
	partials   = "each thread block stores its partial sum once; without that the same"
)

// entries are the programs, in the order of the table.
var entries = []entry{
	{name: "gpt2_fused"},
	{name: "gpt2_written"},
	{name: "bert", constant: []string{"mask"}},
	{name: "bert_dropout", constant: []string{"mask"}},
	{name: "llama", constant: []string{"cos", "sin"}},
	{name: "t5_attention"},
	{name: "alibi_attention", constant: []string{"slopes"}},
	{name: "attention_fused", both: secondPass},
	{name: "attention_written", both: secondPass},
	{name: "stacked_qkv", forward: copied, both: copied},
	{name: "mlp"},
	{name: "mlp_gelu"},
	{name: "mlp_gated"},
	{name: "language_model_head"},
	{name: "cross_entropy"},
	{name: "cross_entropy_written"},
	{name: "label_smoothing"},
	{name: "mse", constant: []string{"target"}, forward: partials},
	{name: "kl", constant: []string{"teacher"}},
	{name: "layer_norm"},
	{name: "layer_norm_written"},
	{name: "rms_norm"},
	{name: "add_norm"},
	{name: "norm_amax", forward: partials},
	{name: "batch_norm"},
	{name: "group_norm"},
	{name: "max_pool"},
	{name: "resnet_basic"},
	{name: "resnet_bottleneck"},
	{name: "softmax"},
	{name: "softmax_dropout"},
	{name: "log_sum_exp"},
	{name: "row_moments"},
	{name: "row_and_column_sums"},
	{name: "embedding"},
	{name: "embedding_bag", both: "the gradient of each row, repeated for each of its ids, is stored for the scatter, whose kernel holds no other op"},
	{name: "gather_columns"},
	{name: "sgd_momentum", noGrad: true},
	{name: "adamw", noGrad: true},
	{name: "adamw_half", noGrad: true},
	{name: "clip_by_norm", noGrad: true},
}
