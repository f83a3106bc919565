"""Runs the models of docs/MODELS.md on the processor, compiled by dmir and by the framework's own compiler, in one process: the largest
difference of the results, and the time of a call, the median of some that take turns.

usage: compare.py jax|torch [NAME...]

Of JAX the peer is XLA (jax.jit); of PyTorch, Inductor (torch.compile) and eager. Both get all processors.
"""

import pathlib
import statistics
import sys
import time

sys.path[:0] = [str(pathlib.Path(__file__).parents[2] / part) for part in ("python", "scripts/models")]
import dmir  # noqa: E402

CALLS = 7


def jax_model(name):
    """The function of a model, compiled by each, and how to call it; results are flat lists of arrays."""
    import jax
    import jax_models
    import numpy as np

    function, arguments = jax_models.MODELS[name]()
    run = lambda f: lambda: [np.asarray(x) for x in jax.tree.leaves(jax.block_until_ready(f(*arguments)))]
    return {"dmir": run(dmir.compile(function)), "XLA": run(jax.jit(function))}


def torch_model(name):
    import torch
    import torch_models

    torch.manual_seed(0)
    model, x = torch_models.MODELS[name]()
    model.eval()

    def run(f):
        def call():
            with torch.no_grad():
                return [f(x).numpy()]

        return call

    return {"dmir": run(dmir.compile(model)), "Inductor": run(torch.compile(model)), "eager": run(model)}


def compare(framework, name):
    """One row: seconds until the first result of dmir and the peer, the difference, milliseconds of a call."""
    runs = {"jax": jax_model, "torch": torch_model}[framework](name)
    first, results = {}, {}
    for who, run in runs.items():
        start = time.perf_counter()
        results[who] = run()
        first[who] = time.perf_counter() - start
    peers = [who for who in runs if who != "dmir"]
    want = results[peers[-1]]
    difference = max(abs(a - b).max() / max(abs(b).max(), 1e-7) for a, b in zip(results["dmir"], want, strict=True))
    times = {who: [] for who in runs}
    for _ in range(CALLS):
        for who, run in runs.items():
            start = time.perf_counter()
            run()
            times[who].append(1000 * (time.perf_counter() - start))
    medians = {who: statistics.median(t) for who, t in times.items()}
    cells = [
        name,
        f"{difference:.0e}",
        *(f"{medians[who]:.3g}" for who in runs),
        *(f"{medians['dmir'] / medians[p]:.2f}" for p in peers),
        *(f"{first[w]:.1f}" for w in runs),
    ]
    print("| " + " | ".join(cells) + " |", flush=True)


def main():
    framework, *names = sys.argv[1:]
    if framework == "jax":
        import jax_models as models

        who = ["dmir", "XLA"]
    else:
        import torch_models as models

        who = ["dmir", "Inductor", "eager"]
    head = ["model", "difference", *(f"{w} ms" for w in who), *(f"by {w}" for w in who[1:]), *(f"first, {w} s" for w in who)]
    print("| " + " | ".join(head) + " |\n|---|" + "--:|" * (len(head) - 1))
    for name in names or models.MODELS:
        compare(framework, name)


if __name__ == "__main__":
    main()
