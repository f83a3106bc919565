#!/usr/bin/env python3
"""One contestant in a separate process. Reads one request per line from stdin and writes one answer per line to stdout, as JSON.

usage: worker.py eager|compile|triton|jax [--device cuda|cpu]

  {"do": "hello"}                                    name and version; eager also the card and its copy bandwidth
  {"do": "make", "workload", "folder", "seed"}       eager: writes new random inputs, keeps the results in float32
  {"do": "check", "workload", "results": [FILE…]}    eager: compares these with the float32 results
  {"do": "run", "workload", "folder", "how", "runs"} runs on the folder's inputs, writes NAME_i.npy, measures times

Arrays are .npy files, bf16 and f8 as float32. A time is the median of its runs, in ns.
"""
import argparse
import gc
import json
import math
import os
import statistics
import sys
import time

import numpy as np
import workloads

FLUSH = 256 << 20  # bytes written before each run, more than any L2 cache: evicts the operands for every contestant
EPSILON = {"f16": 2.0**-10, "bf16": 2.0**-7, "f32": 2.0**-20, "tf32": 2.0**-10}
DEEP = {"layer": 3, "mlp": 2, "attention": 2}  # consecutive roundings by group; 1 elsewhere


def load(folder, name):
    return np.load(os.path.join(folder, name + ".npy"))


class Torch:
    """PyTorch eager and compiled, and the Triton kernels."""

    def __init__(self, name, device):
        import torch

        self.torch, self.name, self.device, self.want = torch, name, device, None
        self.made = (None, None)  # folder and inputs of the last make request
        self.elems = {"f8E4M3FN": getattr(torch, "float8_e4m3fn", None), "f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "i64": torch.int64}
        if name == "triton":
            import triton
            import triton_kernels as formulas

            self.version = f"Triton {triton.__version__}"
        else:
            import formulas

            self.version = f"PyTorch {torch.__version__}"
        self.formulas = formulas
        torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
        torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
        if device == "cuda":
            # Use one stream that can be captured, since a backward pass runs on the stream of its forward pass.
            self.stream = torch.cuda.Stream()
            torch.cuda.set_stream(self.stream)
            self.flush = torch.empty(FLUSH, dtype=torch.int8, device=device)

    def hello(self, _):
        torch, out = self.torch, {"version": self.version}
        if self.name == "eager" and self.device == "cuda":
            p = torch.cuda.get_device_properties(0)
            a = torch.empty(1 << 30, dtype=torch.int8, device="cuda")
            b = torch.empty_like(a)
            ns, _ = self.time(lambda: b.copy_(a), 10)
            out |= {"card": p.name, "capability": f"{p.major}{p.minor}", "cuda": torch.version.cuda, "copy_bytes_per_s": 2 * a.numel() / ns * 1e9}
        return out

    def make(self, q):
        torch, w = self.torch, q["workload"]
        self.made = (None, None)
        torch.backends.cuda.matmul.allow_tf32 = False
        g = torch.Generator(self.device).manual_seed(q["seed"])
        exact, given = [], []
        for i in w.inputs():
            if i.classes:
                t = torch.randint(i.classes, i.shape, generator=g, device=self.device)
                exact.append(t)
                given.append(t)
                np.save(os.path.join(q["folder"], i.name + ".npy"), t.cpu().numpy())
                continue
            t = (torch.randn(i.shape, generator=g, device=self.device) * i.scale + i.shift).to(self.elems[i.elem])
            exact.append(t.float())
            given.append(t)
            np.save(os.path.join(q["folder"], i.name + ".npy"), (t.float() if i.elem in ("bf16", "f8E4M3FN") else t).cpu().numpy())
        run, before = self.formulas.step(w)
        self.want = [t.float() for t in run(before(exact) if before else exact)]
        self.made = (q["folder"], given)
        del exact
        self.tidy()
        return {}

    def check(self, q):
        torch, w = self.torch, q["workload"]
        limit = EPSILON["tf32" if w.kind == "gemm_tf32" else w.elem] * DEEP.get(w.group, 1)
        worst, wrong = 0.0, None
        if len(q["results"]) != len(self.want):
            return {"error": 0.0, "wrong": f"{len(q['results'])} results of {len(self.want)}"}
        for n, (path, want) in enumerate(zip(q["results"], self.want)):
            got = torch.from_numpy(np.load(path)).to(self.device).float()
            if got.numel() != want.numel():
                wrong = wrong or f"result {n} has shape {list(got.shape)}, not {list(want.shape)}"
                continue
            d = got.reshape(want.shape).sub_(want)
            size = want.square().mean().sqrt().item()
            error = d.square().mean().sqrt().item() / max(size, 1e-30)
            most = d.abs().max().item() / max(want.abs().max().item(), 1e-30)
            if not math.isfinite(error):
                wrong = wrong or f"result {n} is not finite"
                error = 0.0
            elif error > 2 * limit or most > 16 * limit:
                wrong = wrong or f"result {n} is off by {error:.2g} of its root mean square, at most by {most:.2g} of its largest; {2 * limit:.2g} and {16 * limit:.2g} are allowed"
            worst = max(worst, error)
        self.tidy()
        return {"error": worst, "wrong": wrong}

    def program(self, w, how):
        """Returns the function to time (None if there is no such contestant), and one that prepares its argument, or None."""
        torch = self.torch
        if self.name == "triton":
            return self.formulas.step(w), None
        if how in ("compile", "max-autotune"):
            torch._dynamo.reset()
            f = getattr(self.formulas, w.kind)
            mode = {"mode": "max-autotune-no-cudagraphs"} if how == "max-autotune" else {}
            forward = torch.compile(lambda *args: f(w, *args), dynamic=False, **mode)
            return self.formulas.step(w, forward)
        return self.formulas.step(w)

    def run(self, q):
        torch, w, how = self.torch, q["workload"], q["how"]
        torch.backends.cuda.matmul.allow_tf32 = w.kind == "gemm_tf32"
        run, before = self.program(w, how)
        if run is None:
            return {"absent": True}
        if self.device == "cuda":
            torch.backends.cuda.preferred_blas_library("cublaslt" if how == "cublas" else "default")
        if self.made[0] == q["folder"]:
            inputs = list(self.made[1])
        else:
            inputs = [torch.from_numpy(load(q["folder"], i.name)).to(self.device).to(self.elems[i.elem]) for i in w.inputs()]
        start = time.perf_counter()
        state = before(inputs) if before else inputs
        results = run(state)
        if self.device == "cuda":
            torch.cuda.synchronize()
        out = {"first_s": time.perf_counter() - start, "results": []}
        for i, t in enumerate(results):
            path = os.path.join(q["folder"], f"{how}_{i}.npy")
            np.save(path, (t.float() if w.elem == "bf16" else t).cpu().numpy())
            out["results"].append(path)
        del results
        if q["runs"]:
            out["ns"], out["graph"] = self.time(lambda: run(state), q["runs"])
        del state, inputs
        self.tidy()
        return out

    def time(self, f, runs):
        """Returns the median time of replays of a captured graph, or of calls if capture fails, and whether it was captured. Each
        run follows a write of FLUSH bytes, which takes longer than enqueueing the graph, so the time includes no host launch."""
        torch = self.torch
        if self.device != "cuda":
            return None, False
        for _ in range(3):
            f()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph, stream=self.stream):
                f()
            again = graph.replay
        except Exception:  # the library may not support capture
            torch.cuda.synchronize()
            graph, again = None, f
        again()
        marks = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in range(runs)]
        for start, end in marks:
            self.flush.zero_()
            start.record()
            again()
            end.record()
            end.synchronize()
        return statistics.median(s.elapsed_time(e) for s, e in marks) * 1e6, graph is not None

    def usable(self):
        """Returns whether the device still works after a failure."""
        try:
            self.tidy()
            if self.device == "cuda":
                self.torch.cuda.synchronize()
            return True
        except RuntimeError:
            return False

    def tidy(self):
        gc.collect()
        if self.device == "cuda":
            self.torch.cuda.empty_cache()


class Jax:
    """JAX, compiled ahead of time. It uses its own stream, so times are host times for many calls in flight, without the write."""

    def __init__(self, name, device):
        os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
        os.environ.setdefault("JAX_PLATFORMS", device)
        import jax
        import jax_formulas

        jax.config.update("jax_enable_x64", False)
        self.jax, self.formulas, self.device, self.version = jax, jax_formulas, device, f"JAX {jax.__version__}"

    def hello(self, _):
        return {"version": self.version, "platform": self.jax.default_backend()}

    def run(self, q):
        jax, w = self.jax, q["workload"]
        elems = {"f8E4M3FN": getattr(jax.numpy, "float8_e4m3fn", None), "f16": jax.numpy.float16, "bf16": jax.numpy.bfloat16, "f32": jax.numpy.float32, "i64": jax.numpy.int32}
        if self.device == "cpu":  # the CPU has no half-precision products: test only the formulas
            elems = dict.fromkeys(elems, jax.numpy.float32) | {"i64": jax.numpy.int32}
        inputs = [jax.numpy.asarray(load(q["folder"], i.name), elems[i.elem]) for i in w.inputs()]
        start = time.perf_counter()
        f = jax.jit(self.formulas.step(w)).lower(*inputs).compile()
        results = jax.block_until_ready(f(*inputs))
        out = {"first_s": time.perf_counter() - start, "results": [], "graph": False}
        for i, t in enumerate(results):
            path = os.path.join(q["folder"], f"jax_{i}.npy")
            np.save(path, np.asarray(t.astype(jax.numpy.float32) if w.elem == "bf16" else t))
            out["results"].append(path)
        del results
        if q["runs"] and self.device == "cuda":
            jax.block_until_ready(f(*inputs))
            times = []
            for _ in range(5):
                start = time.perf_counter_ns()
                for _ in range(q["runs"]):
                    last = f(*inputs)
                jax.block_until_ready(last)
                times.append((time.perf_counter_ns() - start) / q["runs"])
            out["ns"] = statistics.median(times)
        return out


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", choices=["eager", "compile", "triton", "jax"])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--small", action="store_true")
    args = parser.parse_args()
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # redirect the libraries' output to stderr
    by_name = {w.name: w.at(args.small) for w in workloads.table()}
    worker = None
    for line in sys.stdin:
        q = json.loads(line)
        if "workload" in q:
            q["workload"] = by_name[q["workload"]]
        try:
            worker = worker or (Jax if args.name == "jax" else Torch)(args.name, args.device)
            answer = getattr(worker, q["do"])(q)
        except Exception as e:  # a failed workload does not affect the others
            answer = {"failed": f"{type(e).__name__}: {str(e).splitlines()[0] if str(e) else ''}"[:300]}
            if isinstance(worker, Torch) and not worker.usable():
                answers.write(json.dumps(answer) + "\n")
                sys.exit(1)  # the next request starts a new process
        answers.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main()
