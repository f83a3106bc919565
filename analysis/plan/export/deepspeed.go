package export

import (
	"encoding/json"
	"io"
	"strings"

	"dmir/analysis/plan"
	"dmir/dialect/op"
)

// A deepSpeed is a configuration of DeepSpeed; JSON has no comments, and what is under _dmir DeepSpeed does not read.
type deepSpeed struct {
	Comment      deepSpeedComment     `json:"_dmir"`
	Batch        int64                `json:"train_batch_size,omitempty"`
	Micro        int64                `json:"train_micro_batch_size_per_gpu,omitempty"`
	Accumulation int                  `json:"gradient_accumulation_steps"`
	Sequence     int                  `json:"sequence_parallel_size,omitempty"`
	Zero         deepSpeedZero        `json:"zero_optimization"`
	Tensor       *deepSpeedTensor     `json:"tensor_parallel,omitempty"`
	Pipeline     *deepSpeedPipeline   `json:"pipeline,omitempty"`
	Checkpoints  *deepSpeedActivation `json:"activation_checkpointing,omitempty"`
}

type (
	deepSpeedComment struct {
		Comment []string `json:"comment"`
	}
	deepSpeedZero struct {
		Stage   int  `json:"stage"`
		Overlap bool `json:"overlap_comm"`
	}
	deepSpeedTensor struct {
		Size int `json:"autotp_size"`
	}
	deepSpeedPipeline struct {
		Stages   int `json:"stages"`
		Interval int `json:"activation_checkpoint_interval"`
	}
	deepSpeedActivation struct {
		Partition bool `json:"partition_activations"`
	}
)

// writeDeepSpeed writes a configuration of DeepSpeed.
func writeDeepSpeed(w io.Writer, p *Portable) error {
	r := recipeOf(p, "DeepSpeed")
	r.schedules(op.Schedule1F1B)
	c := deepSpeed{Batch: p.Samples}
	if r.pipe > 1 {
		c.Pipeline = &deepSpeedPipeline{Stages: r.pipe}
		r.note("PipelineModule, your model as a list of layers, takes num_stages=%d; the plan's stages begin with equal layers, partition_method=\"uniform\".", r.pipe)
		if unequal, _ := r.unequal(); unequal {
			r.lack("stages with different numbers of layers, unless PipelineModule is told them")
		}
		if r.parameters {
			r.lack("parameters in pieces in a pipeline, which takes ZeRO of stage 1 at most")
			r.parameters, r.states = false, true
		}
	}
	if r.tensor > 1 {
		c.Tensor = &deepSpeedTensor{r.tensor}
		if r.pipe > 1 {
			r.note("In a pipeline DeepSpeed divides no layers: give PipelineModule layers of Megatron, and its topology PipeModelDataParallelTopology(%d, %d, %d).", r.pipe, r.tensor, r.data)
			c.Tensor = nil
		}
	}
	if r.sequence {
		r.lack("normalizations divided along the sequence over the axis of tensor parallelism")
	}
	if r.context > 1 {
		c.Sequence = r.context
		r.note("DeepSpeed divides the sequence by all-to-all between heads and positions (Ulysses); the plan passes keys and values round a ring.")
	}
	if r.expert > 1 {
		r.note("MoE layers take ep_size=%d.", r.expert)
	}
	switch r.recompute {
	case plan.Full:
		c.Checkpoints = &deepSpeedActivation{}
		if c.Pipeline != nil {
			c.Pipeline.Interval = 1
		} else {
			r.note("Layers are computed again where the model calls deepspeed.checkpointing.checkpoint.")
		}
	case plan.Selective:
		r.lack("recomputation of all but contractions and attention: here nothing is computed again")
		r.recompute = plan.None
	}
	if r.parameters && !r.again {
		r.note("Parameters that lie in pieces are gathered once for each step by the plan; ZeRO of stage 3 gathers them for each layer, again for the backward pass.")
	}
	c.Micro, c.Accumulation = r.each(), r.micro
	switch {
	case r.parameters:
		c.Zero = deepSpeedZero{3, true}
	case r.states:
		c.Zero = deepSpeedZero{1, r.pipe == 1}
	}
	c.Comment.Comment = r.finish("deepspeed.initialize(model=model, config=\"plan.json\")")
	for i, line := range c.Comment.Comment {
		c.Comment.Comment[i] = strings.TrimRight(line, " ")
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(c)
}
