package export

import (
	"fmt"
	"io"
	"strings"

	"dmir/analysis/plan"
	"dmir/dialect/op"
)

// megatronOf is p as Megatron runs plans: 1F1B, interleaved or not, and recomputation of whole layers or of their normalizations.
func megatronOf(p *Portable, tool string) *recipe {
	r := recipeOf(p, tool)
	r.schedules(op.Schedule1F1B, op.ScheduleInterleaved)
	if r.recompute == plan.Selective {
		r.note("The plan computes all but contractions and attention again; %s does so with normalizations, and keeps activation functions' inputs.", tool)
	}
	if r.parameters && !r.again {
		r.note("Parameters that lie in pieces are gathered once for each step by the plan; %s's FSDP gathers them again for the backward pass.", tool)
	}
	return r
}

// megatronLayout is which layers each stage has, as --pipeline-model-parallel-layout takes it; "" where stages are equal, or their
// numbers are not known.
func (r *recipe) megatronLayout() string {
	unequal, known := r.unequal()
	if !unequal || !known || len(r.p.Stages) != r.pipe*r.chunks {
		return ""
	}
	parts := make([]string, len(r.p.Stages))
	for i, s := range r.p.Stages {
		parts[i] = fmt.Sprintf("t*%d", s.Layers)
	}
	parts[0] = "E," + parts[0]
	parts[len(parts)-1] += ",L"
	return strings.Join(parts, "|")
}

// order says that ranks lie otherwise than on the plan's mesh, where they do: Megatron numbers them along tensor, context, expert, data and
// pipe, the innermost first.
func (r *recipe) order() {
	rank := map[Role]int{Pipe: 0, Replica: 1, Data: 1, Expert: 2, Sequence: 3, Tensor: 4}
	last, at := 0, ""
	for _, a := range r.p.Axes {
		switch {
		case a.Size == 1:
		case rank[a.Role] < last:
			r.lack("axis %s inside of %s: neighbours are along tensor, then along the sequence, then along experts, then with other samples", comment(a.Name), at)
			return
		default:
			last, at = rank[a.Role], comment(a.Name)
		}
	}
}

// writeMegatron writes the flags of Megatron-LM as an array of a shell.
func writeMegatron(w io.Writer, p *Portable) error {
	r := megatronOf(p, "Megatron-LM")
	r.order()
	each := r.each()
	var flags []string
	add := func(flag string, value any) { flags = append(flags, fmt.Sprintf("--%s %v", flag, value)) }
	is := func(flag string) { flags = append(flags, "--"+flag) }
	add("tensor-model-parallel-size", r.tensor)
	if r.sequence {
		is("sequence-parallel")
	}
	if r.context > 1 {
		add("context-parallel-size", r.context)
	}
	if r.expert > 1 {
		add("expert-model-parallel-size", r.expert)
	}
	add("pipeline-model-parallel-size", r.pipe)
	switch layout := r.megatronLayout(); {
	case layout != "":
		add("pipeline-model-parallel-layout", ShellWord(layout))
	case r.chunks > 1:
		add("num-virtual-stages-per-pipeline-rank", r.chunks)
	}
	if each > 0 {
		add("micro-batch-size", each)
		add("global-batch-size", p.Samples)
	}
	switch {
	case r.parameters:
		is("use-megatron-fsdp")
		add("data-parallel-sharding-strategy", "optim_grads_params")
	case r.states:
		is("use-distributed-optimizer")
		if r.copies > 1 {
			add("num-distributed-optimizer-instances", r.copies)
		}
		is("overlap-grad-reduce")
		is("overlap-param-gather")
	case r.data > 1:
		is("overlap-grad-reduce")
	}
	switch r.recompute {
	case plan.Full:
		add("recompute-granularity", "full")
		add("recompute-method", "uniform")
		add("recompute-num-layers", 1)
	case plan.Selective:
		add("recompute-granularity", "selective")
		add("recompute-modules", "layernorm")
	}
	head := r.finish(
		"Source this file, and give the flags to the training script beside those of the model and its data:",
		"",
		"    . plan.sh",
		fmt.Sprintf("    torchrun --nnodes %d --nproc-per-node %d pretrain_gpt.py \"${PLAN[@]}\" ...", nodes(p), p.Devices/nodes(p)),
	)
	_, err := io.WriteString(w, commented(head)+"PLAN=(\n  "+strings.Join(flags, "\n  ")+"\n)\n")
	return err
}

// nodes is among how many machines the devices are.
func nodes(p *Portable) int {
	each := max(p.Target.PerNode, 1)
	if p.Devices%each != 0 {
		return 1
	}
	return max(p.Devices/each, 1)
}

// writeNeMo writes what recipes of NeMo's Megatron Bridge are overridden with.
func writeNeMo(w io.Writer, p *Portable) error {
	r := megatronOf(p, "NeMo")
	r.order()
	each := r.each()
	var b strings.Builder
	add := func(key string, value any) { fmt.Fprintf(&b, "  %s: %v\n", key, value) }
	b.WriteString("model:\n")
	add("tensor_model_parallel_size", r.tensor)
	add("sequence_parallel", r.sequence)
	add("context_parallel_size", r.context)
	add("expert_model_parallel_size", r.expert)
	add("pipeline_model_parallel_size", r.pipe)
	switch layout := r.megatronLayout(); {
	case layout != "":
		add("pipeline_model_parallel_layout", yamlString(layout))
	case r.chunks > 1:
		add("virtual_pipeline_model_parallel_size", r.chunks)
	default:
		add("virtual_pipeline_model_parallel_size", "null")
	}
	switch r.recompute {
	case plan.Full:
		add("recompute_granularity", "full")
		add("recompute_method", "uniform")
		add("recompute_num_layers", 1)
	case plan.Selective:
		add("recompute_granularity", "selective")
		add("recompute_modules", "[layernorm]")
	default:
		add("recompute_granularity", "null")
	}
	if each > 0 {
		b.WriteString("train:\n")
		add("micro_batch_size", each)
		add("global_batch_size", p.Samples)
	}
	b.WriteString("ddp:\n")
	add("use_distributed_optimizer", r.states || r.parameters)
	if r.copies > 1 && r.states {
		add("num_distributed_optimizer_instances", r.copies)
	}
	add("overlap_grad_reduce", r.data > 1)
	add("overlap_param_gather", r.states && !r.parameters)
	if r.parameters {
		add("use_megatron_fsdp", true)
		add("data_parallel_sharding_strategy", "optim_grads_params")
	}
	b.WriteString("optimizer:\n")
	add("use_distributed_optimizer", r.states || r.parameters)
	if r.parameters {
		b.WriteString("dist:\n")
		add("use_megatron_fsdp", true)
	}
	head := r.finish(
		"Give this file to a script of Megatron Bridge, NeMo's training of language models, in place of the recipe's own values:",
		"",
		"    OmegaConf.merge(config, OmegaConf.load(\"plan.yaml\"))",
		"",
		"NeMo 2's MegatronStrategy takes the keys under model, but for those of recomputation, which its model's configuration has.",
	)
	_, err := io.WriteString(w, commented(head)+b.String())
	return err
}
