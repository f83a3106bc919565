package export

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"dmir/analysis/plan"
	"dmir/dialect/op"
)

// titanSchedules are the names that torchtitan has for schedules.
var titanSchedules = map[string]string{
	op.ScheduleGPipe: "GPipe", op.Schedule1F1B: "1F1B", op.ScheduleInterleaved: "Interleaved1F1B",
	op.ScheduleZBH1: "InterleavedZeroBubble", op.ScheduleZBV: "ZBVZeroBubble",
}

// writeTorchTitan writes a function that puts the plan into a configuration of torchtitan, which are made by Python.
func writeTorchTitan(w io.Writer, p *Portable) error {
	r := recipeOf(p, "torchtitan")
	each := r.each()
	shard, replicate := 1, r.data
	if r.context > 1 {
		r.note("FSDP2 divides parameters over the axis of context parallelism too.")
	}
	if r.states || r.parameters || r.expert > 1 {
		shard, replicate = r.data/r.copies, r.copies
		if !r.parameters {
			r.note("Parameters lie in pieces as their optimizer states do (FSDP2 has them together); \"never\" keeps gathered ones until the step ends, as the plan does.")
		}
	}
	var b strings.Builder
	set := func(key string, value any) { fmt.Fprintf(&b, "    config.%s = %v\n", key, value) }
	set("parallelism.data_parallel_replicate_degree", replicate)
	set("parallelism.data_parallel_shard_degree", shard)
	reshard := `"never"`
	if r.again {
		reshard = `"always"`
	}
	set("parallelism.fsdp_reshard_after_forward", reshard)
	set("parallelism.tensor_parallel_degree", r.tensor)
	set("parallelism.enable_sequence_parallel", pyBool(r.sequence))
	set("parallelism.context_parallel_degree", r.context)
	set("parallelism.expert_parallel_degree", r.expert)
	set("parallelism.pipeline_parallel_degree", r.pipe)
	if r.pipe > 1 {
		set("training.disable_cuda_graphs", "True") // it captures no pipelines
		set("parallelism.pipeline_parallel_schedule", pyString(titanSchedules[r.schedule]))
		switch parts := modulesOf(p); {
		case parts != nil:
			fmt.Fprintf(&b, "    config.parallelism.module_fqns_per_model_part = [\n")
			for _, part := range parts {
				fmt.Fprintf(&b, "        [%s],\n", strings.Trim(strings.TrimSuffix(pyNames(part), ",)"), "()"))
			}
			b.WriteString("    ]\n")
		default:
			if unequal, known := r.unequal(); known && !unequal {
				set("parallelism.pipeline_parallel_layers_per_stage", p.Stages[0].Layers)
				set("parallelism.pipeline_parallel_first_stage_less_layers", 0)
				set("parallelism.pipeline_parallel_last_stage_less_layers", 0)
			} else {
				r.lack("which layers a stage has: torchtitan cuts them by itself")
			}
		}
	}
	if each > 0 {
		b.WriteString("    if hasattr(config.training, \"local_batch_size\"):  # of versions up to 0.3\n")
		fmt.Fprintf(&b, "        config.training.local_batch_size = %d\n", titanLocal(r, each))
		fmt.Fprintf(&b, "        config.training.global_batch_size = %d\n", p.Samples)
		if r.pipe > 1 {
			fmt.Fprintf(&b, "        config.parallelism.pipeline_parallel_microbatch_size = %d\n", each)
		}
		b.WriteString("    else:\n")
		b.WriteString("        length = config.training.max_context_length\n")
		fmt.Fprintf(&b, "        config.training.num_tokens_per_microbatch_per_dp_rank = %d * length\n", each)
		fmt.Fprintf(&b, "        config.training.num_tokens_per_train_step = %d * length\n", p.Samples)
		if r.pipe > 1 {
			fmt.Fprintf(&b, "        config.parallelism.num_pp_microbatches = %d\n", r.micro)
		}
	}
	policy := "None"
	switch r.recompute {
	case plan.Full:
		policy = "FullAC.Config()"
	case plan.Selective:
		policy = "SelectiveAC.Config()"
		r.note("torchtitan's selective policy also computes every second contraction again; the plan computes none again.")
	}
	set("activation_checkpoint", policy)
	set("compile.enable", "True")
	head := r.finish(
		"Save this file as plan.py where Python finds it, and put the plan into your configuration:",
		"",
		"    def planned():",
		"        return plan.configure(llama3_8b())",
		"",
		fmt.Sprintf("    NGPU=%d MODULE=my_runs CONFIG=planned ./run_train.sh", p.Devices/nodes(p)),
	)
	text := commented(head)
	if r.recompute != plan.None {
		name, _, _ := strings.Cut(policy, ".")
		text += "from torchtitan.distributed.activation_checkpoint import " + name + "\n\n\n"
	}
	text += "def configure(config):\n    \"\"\"The configuration, with the plan's parallelism, batch and recomputation.\"\"\"\n" + b.String() + "    return config\n"
	_, err := io.WriteString(w, text)
	return err
}

// titanLocal is the samples of a device between two of torchtitan's accumulations: a pipeline's micro-batches are parts of them.
func titanLocal(r *recipe, each int64) int64 {
	if r.pipe > 1 {
		return each * int64(r.micro)
	}
	return each
}

// modulesOf are the modules of each stage: layers, and what stands beside them. It is nil where names do not say them.
func modulesOf(p *Portable) [][]string {
	parameters := Named(p.Arguments, plan.Parameter)
	if len(layersOf(parameters)) == 0 {
		return nil
	}
	out := make([][]string, len(p.Stages))
	for _, a := range parameters {
		module, _ := layerOf(a.Path)
		if module == "" {
			at := strings.LastIndexByte(a.Path, '.')
			if at < 0 {
				return nil
			}
			module = a.Path[:at]
		}
		for _, k := range a.Stages {
			if !slices.Contains(out[k], module) {
				out[k] = append(out[k], module)
			}
		}
	}
	if slices.ContainsFunc(out, func(part []string) bool { return len(part) == 0 }) {
		return nil
	}
	return out
}
