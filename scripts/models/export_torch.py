"""Trains models under plans that dmir exports for PyTorch, on four processes, and compares: a table in Markdown.

usage: export_torch.py FOLDER DMIR [NAME...]

Each model is exported as a person would, made a training step by `dmir import --train`, and planned for four devices with the flags of
a row; `dmir plan --export torch` writes the plan as a module. Four processes (gloo, on the processor) train the model with that
module, and one process without it: losses may differ by LIMIT of them, weights by LIMIT of the largest element of a tensor. Bytes are
those that a process hands to collectives and sends in a step, counted where PyTorch dispatches them, beside what the plan predicts.
Exit status 1 if a row fails.
"""

import contextlib
import importlib.util
import json
import pathlib
import subprocess
import sys
import tempfile

import torch
import torch.distributed as dist
from torch import multiprocessing, nn
from torch.distributed.tensor import DTensor
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode

PROCESSES = 4
STEPS = 4
LIMIT = 1e-5
SAMPLES = 16


class Attention(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.size = d // heads
        self.q, self.k, self.v, self.proj = (nn.Linear(d, d, bias=False) for _ in range(4))

    def forward(self, x):
        q, k, v = (f(x).unflatten(-1, (-1, self.size)).transpose(1, 2) for f in (self.q, self.k, self.v))
        return self.proj(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.ln_1, self.attn, self.ln_2 = nn.LayerNorm(d), Attention(d, heads), nn.LayerNorm(d)
        self.mlp = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    """With `tied`, the weights of the embedding are those of the last layer."""

    def __init__(self, tied=False, vocabulary=128, length=32, d=64, layers=4, heads=4):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocabulary, d), nn.Embedding(length, d)
        self.h = nn.ModuleList(Block(d, heads) for _ in range(layers))
        self.ln_f, self.lm_head = nn.LayerNorm(d), nn.Linear(d, vocabulary, bias=False)
        if tied:
            nn.init.normal_(self.wte.weight, std=0.02)
            self.lm_head.weight = self.wte.weight

    def forward(self, ids):
        x = self.wte(ids) + self.wpe(torch.arange(ids.shape[1], device=ids.device))
        for block in self.h:
            x = block(x)
        return self.lm_head(self.ln_f(x))


def mlp():
    return nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 256), nn.GELU(), nn.Linear(256, 256), nn.GELU(), nn.Linear(256, 16))


def tokens():
    ids = torch.randint(128, (STEPS, SAMPLES, 33))
    return ids[..., :-1].contiguous(), ids[..., 1:].contiguous()


def vectors():
    return torch.randn(STEPS, SAMPLES, 64), torch.randint(16, (STEPS, SAMPLES))


MODELS = {"gpt": (GPT, tokens), "tied": (lambda: GPT(tied=True), tokens), "mlp": (mlp, vectors)}

# A row: the model, and what is asked of dmir plan.
ROWS = [
    ("mlp", "--data 4 --pipe 1"),
    ("mlp", "--data 4 --pipe 1 --states split --microbatches 2"),
    ("mlp", "--tensor 4 --data 1 --pipe 1"),
    ("gpt", "--data 4 --pipe 1 --microbatches 2 --recompute full"),
    ("gpt", "--data 4 --pipe 1 --states split"),
    ("gpt", "--data 2 --tensor 2 --pipe 1"),
    ("gpt", "--data 2 --tensor 2 --pipe 1 --states split --recompute selective"),
    ("tied", "--data 2 --tensor 2 --pipe 1"),
    ("gpt", "--pipe 2 --data 2 --schedule 1f1b --microbatches 4 --recompute full"),
    ("gpt", "--pipe 2 --data 2 --schedule 1f1b --microbatches 4 --states split"),
    ("gpt", "--pipe 2 --tensor 2 --data 1 --schedule 1f1b --microbatches 4"),
    ("gpt", "--pipe 4 --schedule gpipe --microbatches 4"),
    ("gpt", "--pipe 2 --data 2 --schedule interleaved --chunks 2 --microbatches 4"),
    ("gpt", "--pipe 4 --schedule zb-h1 --microbatches 8"),
    ("gpt", "--pipe 2 --data 2 --schedule zb-v --microbatches 4"),
]


class Counter(TorchDispatchMode):
    """Counts the bytes that this process sends: of a collective over p devices as its algorithms do."""

    def __init__(self):
        super().__init__()
        self.bytes = {}

    def __torch_dispatch__(self, op, types, args=(), kwargs=None):
        if DTensor in types:  # whose own collectives are to be seen
            return NotImplemented
        out = op(*args, **(kwargs or {}))
        space, _, name = op._schema.name.partition("::")
        if space in ("c10d", "_c10d_functional", "c10d_functional"):
            kind = next((k for key, k in KINDS.items() if key in name), None)
            if kind:
                p = group_size(space, args)
                large = max(map(size_of, (*args, out)))  # what is gathered, or scattered
                sent = {"all-reduce": 2 * large * (p - 1) / p, "send": size_of(args)}.get(kind, large * (p - 1) / p)
                self.bytes[kind] = self.bytes.get(kind, 0) + sent
        return out


KINDS = {"allreduce": "all-reduce", "all_reduce": "all-reduce", "allgather": "all-gather", "all_gather": "all-gather"}
KINDS |= {"reduce_scatter": "reduce-scatter", "alltoall": "all-to-all", "all_to_all": "all-to-all", "send": "send"}


def size_of(x):
    if isinstance(x, torch.Tensor):
        return x.nbytes
    return sum(map(size_of, x)) if isinstance(x, (list, tuple)) else 0


def group_size(space, args):
    if space == "c10d":
        for a in args:
            with contextlib.suppress(RuntimeError):  # another object, as the kind of reduction
                if isinstance(a, torch.ScriptObject):
                    return dist.ProcessGroup.unbox(a).size()
        raise ValueError(f"no group among {args}")
    names = [a for a in args if isinstance(a, str)]
    return dist.distributed_c10d._resolve_process_group(names[-1]).size()


def loss_of(output, wanted):
    return F.cross_entropy(output.flatten(0, -2), wanted.flatten())


def train(model, parameters, step, data):
    optimizer = torch.optim.SGD(parameters, lr=0.1, momentum=0.9)
    losses = []
    for x, y in zip(*data):
        losses.append(float(step(x, y)))
        optimizer.step()
        optimizer.zero_grad()
    return losses


def alone(name):
    """Losses and weights of one process."""
    make, data = MODELS[name]
    torch.manual_seed(1)
    model, data = make(), data()

    def step(x, y):
        loss = loss_of(model(x), y)
        loss.backward()
        return loss

    losses = train(model, model.parameters(), step, data)
    return losses, {k: v.detach() for k, v in model.state_dict().items()}


def work(rank, store, rows, results):
    """One of the processes."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=PROCESSES)
    for name, at in rows:
        spec = importlib.util.spec_from_file_location("plan", at)
        plan = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(plan)
        make, data = MODELS[name]
        torch.manual_seed(1)
        model, (x, y) = make(), data()
        mesh, part = plan.make_mesh("cpu"), SAMPLES
        for axis in plan.DATA:
            part //= plan.AXES[axis]
        step = plan.apply(model, loss_of, (x[0, :part],), mesh)
        counted = []

        def counting(x, y):
            with Counter() as counter:
                loss = step((step.part(x),), step.part(y))
            counted.append(counter.bytes)
            return loss

        losses = train(model, step.parameters(), counting, (x, y))
        weights = {}
        for k, v in step.named_parameters():
            v = v.full_tensor() if hasattr(v, "full_tensor") else v
            weights[k] = v.detach()
        gathered = [None] * PROCESSES
        dist.all_gather_object(gathered, (counted[-1], weights))
        if rank == 0:
            with open(results, "ab") as f:
                torch.save((losses, gathered), at.with_suffix(".pt"))
                f.write(f"{at}\n".encode())
    dist.destroy_process_group()


def size(n):
    for unit in ("B", "kB", "MB"):
        if n < 1000 or unit == "MB":
            return f"{n:.3g} {unit}"
        n /= 1000


def main():
    folder, dmir, only = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3:]
    folder.mkdir(parents=True, exist_ok=True)
    rows, planned = [], []
    for name in MODELS:
        torch.manual_seed(1)
        make, data = MODELS[name]
        with contextlib.redirect_stdout(sys.stderr):
            torch.onnx.export(make().train(), (data()[0][0],), folder / f"{name}.onnx", dynamo=True, optimize=False, verbose=False)
        said = "loss=cross_entropy,optimizer=momentum,lr=0.1"
        subprocess.run([dmir, "import", "--train", said, "-o", folder / f"{name}.dmir", folder / f"{name}.onnx"], check=True, stdout=2)
    for i, (name, flags) in enumerate(ROWS):
        if only and name not in only and not any(word in flags for word in only):
            continue
        command = [dmir, "plan", "--devices", str(PROCESSES), "--target", "dgx-h100", "--top", "1", *flags.split()]
        at = folder / f"plan_{i}.py"
        subprocess.run([*command, "--export", "torch", "-o", at, folder / f"{name}.dmir"], check=True, stdout=2)
        described = subprocess.run([*command, "--export", "json", folder / f"{name}.dmir"], check=True, stdout=subprocess.PIPE).stdout
        rows.append((name, at))
        planned.append((flags, json.loads(described)))
    with tempfile.TemporaryDirectory() as scratch:
        multiprocessing.spawn(work, (f"{scratch}/store", rows, f"{scratch}/done"), nprocs=PROCESSES)
    once, failed = {}, False
    print("| model | plan | loss | weights | sent, predicted | sent, counted | of it |")
    print("|---|---|--:|--:|--:|--:|---|")
    for (name, at), (flags, plan) in zip(rows, planned):
        if name not in once:
            once[name] = alone(name)
        want, weights = once[name]
        losses, gathered = torch.load(at.with_suffix(".pt"), weights_only=False)
        loss = max(abs(a - b) / abs(b) for a, b in zip(losses, want))
        got = {k: v for _, part in gathered for k, v in part.items()}
        weight = max(((v - weights[k]).abs().max() / weights[k].abs().max()).item() for k, v in got.items())
        missing = {id(v): k for k, v in weights.items()}
        complete = set(got) | {k for k in weights if any(weights[k] is weights[g] or torch.equal(weights[k], weights[g]) for g in got)} == set(weights)
        failed |= loss > LIMIT or not complete or not missing
        sent = max((part for part, _ in gathered), key=lambda part: sum(part.values()))
        kinds = ", ".join(f"{k} {size(v)}" for k, v in sorted(sent.items(), key=lambda kv: -kv[1]) if v >= 64)
        print(f"| {name} | {plan['summary']} | {loss:.0e} | {weight:.0e} | {size(plan['predicted']['sent'])} | {size(sum(sent.values()))} | {kinds} |")
    sys.exit(failed)


if __name__ == "__main__":
    main()
