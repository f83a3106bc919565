"""Times torch.compile for the training step that package gpt2 writes: prints {"seconds", "parts"} for the layers of its argument.

The loss with its gradient is one call of torch.compile, AdamW with f32 master weights another, as PyTorch's users compile
them. The time is from the first call until both are compiled, C++ code included; nothing of the step runs.
"""
import json
import sys
import time

import torch
import torch._functorch.config
import torch._inductor.config
import torch.nn.functional as F
from torch._inductor.compile_fx import compile_fx

import programs

torch._inductor.config.force_disable_caches = True
torch._functorch.config.force_non_lazy_backward_lowering = True
LAYER = ["768", "768", "768x3x12x64", "3x12x64", "12x64x768", "768", "768", "768", "768x3072", "3072", "3072x768", "768"]
MODEL = ["50304x768", "1024x768", "768", "768"]


class Compiled(BaseException):
    """Ends a call of torch.compile when its graphs are compiled."""


def only_compile(gm, inputs):
    compile_fx(gm, inputs)
    raise Compiled


def compiled(f, *args):
    start = time.perf_counter()
    try:
        torch.compile(f, backend=only_compile, fullgraph=True)(*args)
    except BaseException as e:
        if not isinstance(e, Compiled) and not isinstance(e.__cause__, Compiled):
            raise
    return time.perf_counter() - start


def loss(ids, labels, params):
    tokens, positions, scale, shift, *layers = params
    x = F.embedding(ids, tokens) + positions
    for i in range(0, len(layers), len(LAYER)):
        x = programs.gpt2_fused(x, *layers[i : i + len(LAYER)])
    logits = F.layer_norm(x, x.shape[-1:], scale, shift) @ tokens.T
    return F.cross_entropy(logits.float().flatten(0, 1), labels.flatten())


def adamw(step, grads, masters, means, squares):
    return [programs.adamw_half(*each, step) for each in zip(masters, grads, means, squares)]


def main():
    layers = int(sys.argv[1])
    shapes = [[int(d) for d in s.split("x")] for s in MODEL + layers * LAYER]
    ids = torch.zeros(4, 1024, dtype=torch.int64)
    params = [torch.zeros(s, dtype=torch.bfloat16, requires_grad=True) for s in shapes]
    parts = {"loss_and_gradient": compiled(loss, ids, ids, params)}
    wide = [[torch.zeros(s) for s in shapes] for _ in range(3)]
    parts["adamw"] = compiled(adamw, torch.tensor(10.0), [p.detach() for p in params], *wide)
    print(json.dumps({"seconds": sum(parts.values()), "parts": parts}))


if __name__ == "__main__":
    main()
