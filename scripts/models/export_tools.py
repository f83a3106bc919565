"""Gives plans that dmir exports to the tools' own parsers: a table in Markdown.

usage: export_tools.py PROGRAM DMIR

PROGRAM is a training step of four layers that dmir plans for eight devices with the flags of a row. torchtitan makes its trainer's
configuration of the file, and builds the schedule that it names; DeepSpeed its configuration, for as many processes as its data
parallelism has; Megatron-LM's and NeMo's settings are those of Megatron Core's configurations, which are made of them. Exit status 1 if one
refuses a file or understands other sizes than the plan's.
"""

import dataclasses
import importlib.util
import json
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
from unittest import mock

import torch
import yaml

DEVICES = 8
ROWS = [
    "--data 8 --pipe 1 --states split",
    "--data 4 --tensor 2 --pipe 1 --recompute selective",
    "--pipe 2 --data 2 --tensor 2 --schedule 1f1b --microbatches 4 --recompute full",
    "--pipe 2 --data 4 --schedule interleaved --chunks 2 --microbatches 4 --states split",
    "--pipe 2 --data 4 --schedule zb-v --microbatches 4",
    "--pipe 4 --data 2 --schedule zb-h1 --microbatches 8",
]
# Flags of Megatron-LM that its training script takes, not a configuration of Megatron Core.
SCRIPT = {
    "micro_batch_size": None,
    "global_batch_size": None,
    "num_virtual_stages_per_pipeline_rank": "virtual_pipeline_model_parallel_size",
    "data_parallel_sharding_strategy": None,
    "use_megatron_fsdp": None,
}


def size(plan, *roles):
    n = 1
    for axis in plan["axes"]:
        if axis["role"] in roles:
            n *= axis["size"]
    return n


def torchtitan(at, plan):
    from torch.distributed.pipelining.schedules import get_schedule_class
    from torchtitan.models.llama3.config_registry import llama3_debugmodel

    spec = importlib.util.spec_from_file_location("plan", at)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    c = module.configure(llama3_debugmodel())
    c = dataclasses.replace(c, parallelism=dataclasses.replace(c.parallelism), training=dataclasses.replace(c.training))
    p = c.parallelism
    if p.pipeline_parallel_degree > 1:
        get_schedule_class(p.pipeline_parallel_schedule)
    degrees = p.data_parallel_replicate_degree * p.data_parallel_shard_degree, p.tensor_parallel_degree, p.pipeline_parallel_degree
    return degrees == (size(plan, "data", "replica"), size(plan, "tensor"), size(plan, "pipe"))


def deepspeed(at, plan):
    from deepspeed.runtime.config import DeepSpeedConfig

    data = size(plan, "data", "replica")
    with mock.patch("deepspeed.runtime.config.dist") as processes:
        processes.get_world_size.return_value, processes.get_rank.return_value = data, 0
        c = DeepSpeedConfig(str(at))
    micro = c.train_micro_batch_size_per_gpu * c.gradient_accumulation_steps
    stages = c.pipeline["stages"]
    return c.train_batch_size == plan["samples"] == micro * data and (stages == "auto" or stages == size(plan, "pipe"))


def core(model, ddp):
    """The configurations of Megatron Core with these values."""
    from megatron.core.distributed import DistributedDataParallelConfig
    from megatron.core.transformer import TransformerConfig

    model = dict(model)
    if model.get("pipeline_model_parallel_size", 1) > 1:
        model["pipeline_dtype"] = torch.bfloat16
    return TransformerConfig(num_layers=4, hidden_size=64, num_attention_heads=4, **model), DistributedDataParallelConfig(**ddp)


def understood(c, plan):
    degrees = c.tensor_model_parallel_size, c.pipeline_model_parallel_size, c.context_parallel_size
    return degrees == (size(plan, "tensor"), size(plan, "pipe"), size(plan, "sequence"))


def megatron(at, plan):
    from megatron.core.distributed import DistributedDataParallelConfig

    words = subprocess.run(["bash", "-euc", '. "$1"; printf "%q\\n" "${PLAN[@]}"', "bash", at], check=True, stdout=subprocess.PIPE, text=True)
    flags = {}
    for word in shlex.split(words.stdout):
        if word.startswith("--"):
            name = word[2:].replace("-", "_")
            flags[name] = []
        else:
            flags[name].append(word)
    of_ddp = {f.name for f in dataclasses.fields(DistributedDataParallelConfig)}
    model, ddp = {}, {}
    for name, values in flags.items():
        value = True if not values else int(values[0]) if values[0].isdigit() else values[0]
        if name == "recompute_modules":
            value = values
        name = SCRIPT.get(name, name)
        if name:
            (ddp if name in of_ddp else model)[name] = value
    return understood(core(model, ddp)[0], plan)


def nemo(at, plan):
    c = yaml.safe_load(at.read_text())
    return understood(core(c["model"], c["ddp"])[0], plan) and c["train"]["global_batch_size"] == plan["samples"]


def main():
    program, dmir = sys.argv[1:]
    tools, failed = {"torchtitan": torchtitan, "deepspeed": deepspeed, "megatron": megatron, "nemo": nemo}, False
    print(f"| plan | {' | '.join(tools)} |\n|---|{'---|' * len(tools)}")
    with tempfile.TemporaryDirectory() as folder:
        for flags in ROWS:
            command = [dmir, "plan", "--devices", str(DEVICES), "--target", "dgx-h100", "--top", "1", *flags.split()]

            def export(name):
                at = pathlib.Path(folder) / f"plan.{name}"
                at = at.with_suffix(".py") if name == "torchtitan" else at
                subprocess.run([*command, "--export", name, "-o", at, program], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                return at

            plan = json.loads(export("json").read_text())
            row = []
            for name, read in tools.items():
                at = export(name)
                try:
                    good = read(at, plan)
                    text = at.read_text()
                    lacks, near = text.count("Not expressed"), re.search(r"The nearest that .* takes .* a step, (\S+ %)", text)
                    said = f"{lacks} not expressed" + (f", {near[1]}" if near else "") if lacks else "as planned"
                    row.append(said if good else "other sizes")
                except Exception as e:  # what a tool refuses is a row of the table
                    good = False
                    row.append(f"refused: {e}".replace("\n", " ")[:120])
                failed |= not good
            print(f"| {plan['summary']} | {' | '.join(row)} |", flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
