import contextlib
import functools

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed import pipelining
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.experimental import implicit_replication
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts

# The axes of the mesh, the outermost first: neighbours along the last one have the fastest links between them.
AXES = {}
# The axes that divide samples, those over which tensors of the model are divided, and that of the pipeline.
DATA = ()
MODEL = ()
PIPE = None
# Of each parameter, the dimension that an axis of MODEL divides.
PARAMETERS = {}
# Parameters whose optimizer states lie in pieces over the axes SPLIT_OVER, along this dimension.
SPLIT = {}
SPLIT_OVER = ()
# Parameters are freed behind the forward pass of each micro-batch and gathered again for its backward pass.
REGATHER = False
# The model's inputs: the dimension with the samples, and dimensions that axes of MODEL divide. TARGET is that of the loss's second argument.
INPUTS = ()
TARGET = 0
# The modules at which stages after the first begin.
STAGES = ()
SCHEDULE = None
MICROBATCHES = 1
# Modules that are layers, and what of them the backward pass computes again: "none", "selective" or "full".
LAYERS = ()
RECOMPUTE = "none"

BUCKET = 25 << 20  # bytes of gradients that are reduced together


def make_mesh(device="cuda"):
    """The devices of the plan: processes in the order of their ranks."""
    return init_device_mesh(device, tuple(AXES.values()), mesh_dim_names=tuple(AXES))


def apply(model, loss, example, mesh=None, reduction="mean", rename=str, stages=STAGES):
    """The training step of the model under the plan.

    model: the module that was exported. Each process has all of it, on any device; the values of rank 0 are taken.
    loss: loss(output, target), the mean over samples, or with reduction="sum" their sum.
    example: the inputs of the samples of one process, a tuple: Step.part cuts those of all.
    rename: from the module's name of a parameter to the plan's, where they differ.
    stages: the modules at which stages after the first begin.
    """
    return Step(model, loss, example, mesh or make_mesh(), reduction, rename, stages)


class Step:
    """step(inputs, target) adds to the gradients those of the samples of this process, reduces them over all devices and
    returns the loss of all samples. The optimizer takes step.parameters()."""

    def __init__(self, model, loss, example, mesh, reduction, rename, stages):
        self.mesh, self.loss, self.mean, self.stages = mesh, loss, reduction == "mean", tuple(stages)
        on_cpu = mesh.device_type == "cpu"
        self.device = torch.device("cpu") if on_cpu else torch.device(mesh.device_type, torch.accelerator.current_device_index())
        self.dense = mesh[MODEL] if MODEL else None
        self.pipe = mesh[PIPE] if PIPE else None
        self.data = flat(mesh, DATA)
        known = names(model, rename)
        for t in {id(t): t for t in (*model.parameters(), *model.buffers())}.values():
            t.data = t.data.to(self.device)
            dist.broadcast(t.data, 0)
        self.modules, self.sharded = [model], set()
        if PIPE:
            self.cut(model, example)
        for module in self.modules:
            self.place(module, known)
            self.recompute(module)
            self.shard(module, known)
        if PIPE:
            self.schedule = self.scheduled()

    def part(self, x, dim=0):
        """The samples of this process, of a tensor with those of all."""
        return x if self.data is None else x.chunk(self.data.size(), dim)[self.data.get_local_rank()]

    def named_parameters(self):
        """Those that this process has pieces of: of a pipeline, those of its stages."""
        return [(name, p) for module in self.modules for name, p in module.named_parameters()]

    def parameters(self):
        return [p for _, p in self.named_parameters()]

    def cut(self, model, example):
        """Cuts the model in front of the modules that begin stages, and keeps those of this process."""
        if not self.stages:
            raise ValueError('the plan\'s parameters do not say at which modules stages begin: name them, apply(..., stages=["h.2"])')
        trace = pipelining.pipeline(
            model,
            tuple(x if d is None else x.chunk(MICROBATCHES, d)[0] for x, (d, _) in zip(example, INPUTS)),
            split_spec={name: pipelining.SplitPoint.BEGINNING for name in self.stages},
        )
        n, p, here = len(self.stages) + 1, self.pipe.size(), self.pipe.get_local_rank()
        self.mine = [here, n - 1 - here] if SCHEDULE == "zb-v" else list(range(here, n, p))
        self.info = trace.info()
        self.modules = [trace.get_stage_module(k) for k in self.mine]

    def place(self, module, known):
        """Makes parameters distributed tensors over the axes that divide the model."""
        if self.dense is None:
            return
        made = {}
        for at, owner in module.named_modules():
            for name, p in list(owner.named_parameters(recurse=False)):
                if p not in made:
                    where = placements(PARAMETERS.get(known.get(f"{at}.{name}" if at else name), {}))
                    made[p] = nn.Parameter(distribute_tensor(p.data, self.dense, where, src_data_rank=None), p.requires_grad)
                owner.register_parameter(name, made[p])
            if any(isinstance(p, DTensor) for p in owner.parameters(recurse=False)):
                owner.register_forward_hook(lambda _, inputs, output: whole(output))

    def recompute(self, module):
        if RECOMPUTE == "none":
            return
        options = {}
        if RECOMPUTE == "selective":
            options["context_fn"] = functools.partial(create_selective_checkpoint_contexts, keep)
        for layer in layers(module):
            layer.forward = functools.partial(checkpoint, layer.forward, use_reentrant=False, **options)

    def shard(self, module, known):
        """Optimizer states, and parameters with them, lie in pieces over axes that divide samples; parameters are gathered once
        for each step, or for each pass of a micro-batch (REGATHER)."""

        def split(m=module):
            every = m.named_parameters(remove_duplicate=False)
            return {p: SPLIT[known[name]] for name, p in every if known.get(name) in SPLIT}

        whole = split()
        if not whole:
            return
        over, rest = flat(self.mesh, SPLIT_OVER), flat(self.mesh, tuple(a for a in DATA if a not in SPLIT_OVER))
        options = {
            "mesh": over if rest is None else self.mesh[rest.mesh_dim_names + over.mesh_dim_names],
            "reshard_after_forward": REGATHER,
            "shard_placement_fn": lambda p: Shard(whole[p]),
        }
        for m in [*layers(module), module]:
            fully_shard(m, ignored_params={p for p in module.parameters() if p not in whole}, **options)
        for m in module.modules():
            if isinstance(m, FSDPModule) and not self.mean:
                m.set_gradient_divide_factor(1.0)
        self.sharded |= split().keys()  # not the tensors that there were before

    def scheduled(self):
        stages = []
        for k, module in zip(self.mine, self.modules):
            if self.dense is not None:
                module.register_forward_pre_hook(lambda _, inputs: tuple(self.spread(x) for x in inputs))
                module.register_forward_hook(lambda _, inputs, output: self.gather(output))
            stages.append(pipelining.build_stage(module, k, self.info, self.device, self.pipe.get_group()))
        make = {
            "gpipe": pipelining.ScheduleGPipe,
            "1f1b": pipelining.Schedule1F1B,
            "interleaved": pipelining.ScheduleInterleaved1F1B,
            "zb-h1": pipelining.ScheduleInterleavedZeroBubble,
            "zb-v": pipelining.ScheduleZBVZeroBubble,
        }[SCHEDULE]
        return make(
            stages[0] if SCHEDULE in ("gpipe", "1f1b") else stages,
            n_microbatches=MICROBATCHES,
            loss_fn=self.loss,
            scale_grads=self.mean,
            args_chunk_spec=tuple(chunks(d) for d, _ in INPUTS),
        )

    def spread(self, x, divided=None):
        """A tensor that the devices along the axes of the model have alike, as a distributed one."""
        if not isinstance(x, torch.Tensor):
            return x
        whole = DTensor.from_local(x, self.dense, placements({}), run_check=False)
        return whole.redistribute(placements=placements(divided)) if divided else whole

    def gather(self, x):
        if isinstance(x, DTensor):
            return x.redistribute(placements=placements({})).to_local()
        return tuple(self.gather(y) for y in x) if isinstance(x, (tuple, list)) else x

    def __call__(self, inputs, target):
        with contextlib.ExitStack() as within:
            if self.dense is not None:
                within.enter_context(implicit_replication())
                if self.device.type == "cpu":  # whose fused attention takes no distributed tensors
                    within.enter_context(sdpa_kernel(SDPBackend.MATH))
            total = self.pipeline(inputs, target) if PIPE else self.accumulate(inputs, target)
            self.reduce()
        if self.data is not None:
            dist.all_reduce(total, group=self.data.get_group())
            total = total / self.data.size() if self.mean else total
        return total

    def accumulate(self, inputs, target):
        model, total = self.modules[0], 0
        parts = [[x] * MICROBATCHES if d is None else x.chunk(MICROBATCHES, d) for x, (d, _) in zip(inputs, INPUTS)]
        for k, (*part, wanted) in enumerate(zip(*parts, target.chunk(MICROBATCHES, TARGET))):
            if isinstance(model, FSDPModule):
                last = k == MICROBATCHES - 1
                model.set_requires_gradient_sync(last)
                model.set_reshard_after_backward(last or REGATHER)
            if self.dense is not None:
                part = [self.spread(x, divided) for x, (_, divided) in zip(part, INPUTS)]
            loss = self.loss(model(*part), wanted)
            if self.mean:  # the last part may have fewer samples
                loss = loss * (wanted.shape[TARGET] / target.shape[TARGET])
            loss.backward()
            total += loss.detach()
        return total.full_tensor() if isinstance(total, DTensor) else total

    def pipeline(self, inputs, target):
        losses, last = [], len(self.stages) in self.mine
        self.schedule.step(*(inputs if 0 in self.mine else ()), **({"target": target, "losses": losses} if last else {}))
        total = sum(losses).detach() if last else torch.zeros((), device=self.device)
        dist.all_reduce(total, group=self.pipe.get_group())
        return total / MICROBATCHES if self.mean else total

    def reduce(self):
        """Reduces the gradients of parameters that lie whole over the axes that divide samples."""
        local = {}
        for p in self.parameters():
            if p.grad is None or p in self.sharded:
                continue
            if isinstance(p.grad, DTensor):
                p.grad = p.grad.redistribute(placements=p.placements)
            g = p.grad.to_local() if isinstance(p.grad, DTensor) else p.grad
            local.setdefault(g.dtype, []).append(g)
        if self.data is None:
            return
        for bucket in (b for same in local.values() for b in buckets(same)):
            flat_gradients = torch.cat([g.reshape(-1) for g in bucket])
            dist.all_reduce(flat_gradients, group=self.data.get_group())
            if self.mean:
                flat_gradients /= self.data.size()
            for g, part in zip(bucket, flat_gradients.split([g.numel() for g in bucket])):
                g.copy_(part.view_as(g))


def names(model, rename):
    """The plan's name of each parameter, by each name that the model has for it: tied ones are one tensor."""
    alike = {}
    for name, p in model.named_parameters(remove_duplicate=False):
        alike.setdefault(p, []).append(name)
    known = {}
    for same in alike.values():
        plan = next((rename(name) for name in same if rename(name) in PARAMETERS), rename(same[0]))
        known.update((name, plan) for name in same)
    missing = sorted(PARAMETERS.keys() - set(known.values()))
    if missing:
        raise ValueError(f"the plan is of a model with other parameters: here is no {', '.join(missing)}")
    return known


def whole(x):
    """Adds up partial sums, as of a matrix whose rows are divided, before something else of the model sees them."""
    if not isinstance(x, DTensor) or not any(at.is_partial() for at in x.placements):
        return x
    return x.redistribute(placements=[Replicate() if at.is_partial() else at for at in x.placements])


def placements(divided):
    return [Shard(divided[a]) if a in divided else Replicate() for a in MODEL]


def chunks(dim):
    return pipelining.microbatch._Replicate() if dim is None else pipelining.microbatch.TensorChunkSpec(dim)


def flat(mesh, axes):
    """The devices along several axes, as one axis."""
    if len(axes) < 2:
        return mesh[axes[0]] if axes else None
    return mesh[axes]._flatten("_".join(axes))


def buckets(tensors):
    out, size = [[]], 0
    for t in tensors:
        if size > 0 and size + t.nbytes > BUCKET:
            out.append([])
            size = 0
        out[-1].append(t)
        size += t.nbytes
    return out


def layers(module):
    found = dict(module.named_modules())
    return [found[name] for name in LAYERS if name in found]


def keep(_, op, *args, **kwargs):
    """Contractions, convolutions, attention and what collectives give are kept, the rest is computed again."""
    name = op.overloadpacket.__name__
    kept = name in ("mm", "addmm", "bmm", "baddbmm") or op.namespace == "_c10d_functional" or "convolution" in name or "attention" in name
    return CheckpointPolicy.MUST_SAVE if kept else CheckpointPolicy.PREFER_RECOMPUTE
