#!/usr/bin/env python3
"""A training step of GPT-2 (12 layers, 4 sequences of 1,024 tokens, AdamW with float32 masters): dmir by kernel, and PyTorch.

usage: gpt2.py --dmir FILE --program gpt2_step.dmx --out gpt2.json [--runs N] [--budget SECONDS]
       gpt2.py --peer eager|compile --runs N      the peer's time, a line of JSON

Every contestant has random parameters and tokens of its own: times are compared, results are not. The file is written anew after each.
"""
import argparse
import json
import os
import pathlib
import re
import signal
import struct
import subprocess
import sys
import time

B, L, N, H, U, VOCABULARY, LAYERS = 4, 1024, 768, 12, 3072, 50304, 12  # as bench/gpt2 has them


def npy(path, shape, values):
    """Writes an array of i64 without NumPy."""
    head = f"{{'descr': '<i8', 'fortran_order': False, 'shape': {shape}, }}"
    head += " " * (-(len(head) + 11) % 64) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + struct.pack(f"<{len(values)}q", *values))
    return path


def dmir(args, folder, limit):
    """Returns the times of the step and of its kernels, those of all layers together."""
    ids = [n * 40503 % VOCABULARY for n in range(B * L + 1)]
    files = {"ids": npy(folder / "ids.npy", (B, L), ids[:-1]), "labels": npy(folder / "labels.npy", (B, L), ids[1:]), "step": npy(folder / "step.npy", (), [1])}
    command = [args.dmir, "run", args.program, "--device", "cuda", "--output-format", "json", "--runs", str(args.runs)]
    for name, path in files.items():
        command += ["--input", f"{name}={path}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=limit)
    if done.returncode != 0:
        return {"failed": (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[0]}, {}, []
    got = json.loads(done.stdout)
    kernels = {}
    for s in got["steps"]:
        name = re.sub(r"\d+", "N", s["name"])
        k = kernels.setdefault((name, s["flop"], s["read_bytes"], s["written_bytes"]), {"name": name, "launches": 0, "predicted_ns": 0, "measured_ns": 0})
        k["launches"] += 1
        k["predicted_ns"] += s["time_ns"]
        k["measured_ns"] += s["measured_ns"] or 0
    predicted = {"ns": sum(s["time_ns"] for s in got["steps"])}
    odd = sum(o["nans"] + o["infs"] for o in got["outputs"])
    if got.get("untimed"):
        return {"failed": got["untimed"]}, predicted, []
    return {"ns": got["elapsed_ns"]} | ({"failed": f"{odd} elements of the results are not finite"} if odd else {}), predicted, list(kernels.values())


def peer(how, runs):
    """Returns the median time of a step of PyTorch, replayed as a graph if it can be captured."""
    import statistics

    import torch
    import torch.nn.functional as F

    torch.manual_seed(1)
    device, half = "cuda", torch.bfloat16
    shapes = [(VOCABULARY, N), (L, N), (N,), (N,)] + [(N,), (N,), (N, 3 * N), (3 * N,), (N, N), (N,), (N,), (N,), (N, U), (U,), (U, N), (N,)] * LAYERS
    master = [torch.randn(s, device=device) * 0.02 for s in shapes]
    params = [p.to(half).requires_grad_() for p in master]
    ids = torch.randint(VOCABULARY, (B, L), device=device)
    labels = torch.randint(VOCABULARY, (B, L), device=device)
    optimizer = torch.optim.AdamW(master, lr=1e-4, fused=True, capturable=True)

    def loss(params):
        tokens, positions, scale, shift, *layers = params
        h = F.embedding(ids, tokens) + positions
        for i in range(0, len(layers), 12):
            s1, c1, wqkv, bqkv, wo, bo, s2, c2, wu, bu, wd, bd = layers[i : i + 12]
            qkv = F.layer_norm(h, (N,), s1, c1) @ wqkv + bqkv
            q, k, v = qkv.view(B, L, 3, H, N // H).permute(2, 0, 3, 1, 4)
            a = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(B, L, N)
            h = h + a @ wo + bo
            h = h + F.gelu(F.layer_norm(h, (N,), s2, c2) @ wu + bu) @ wd + bd
        logits = F.layer_norm(h, (N,), scale, shift) @ tokens.t()
        return F.cross_entropy(logits.float().view(-1, VOCABULARY), labels.view(-1))

    forward = torch.compile(loss, dynamic=False) if how == "compile" else loss
    stream = torch.cuda.Stream()
    torch.cuda.set_stream(stream)

    def step():
        grads = torch.autograd.grad(forward(params), params)
        for m, g in zip(master, grads):
            m.grad = g.float()
        optimizer.step()
        with torch.no_grad():
            torch._foreach_copy_(params, master)

    start = time.perf_counter()
    for _ in range(3):
        step()
    torch.cuda.synchronize()
    first = time.perf_counter() - start
    again, graph = step, torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(graph, stream=stream):
            step()
        again = graph.replay
    except Exception:  # the library may not support capture
        torch.cuda.synchronize()
        graph = None
    marks = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in range(runs)]
    for begin, end in marks:
        begin.record()
        again()
        end.record()
        end.synchronize()
    return {"ns": statistics.median(b.elapsed_time(e) for b, e in marks) * 1e6, "graph": graph is not None, "first_s": first, "version": torch.__version__}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dmir")
    parser.add_argument("--program")
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--budget", type=float, default=60)
    parser.add_argument("--peer", choices=["eager", "compile"])
    args = parser.parse_args()
    if args.peer:
        print(json.dumps(peer(args.peer, args.runs)))
        return
    end = time.monotonic() + args.budget
    result = {}

    def keep():
        new = args.out.with_suffix(".new")
        new.write_text(json.dumps(result, indent=1) + "\n")
        os.replace(new, args.out)

    try:
        result["dmir"], result["predicted"], result["kernels"] = dmir(args, pathlib.Path(os.environ.get("TMPDIR", "/tmp")), args.budget)
    except subprocess.TimeoutExpired:
        result["dmir"] = {"failed": "it did not end", "hung": True}
    keep()
    for how in ("eager", "compile"):
        process = subprocess.Popen([sys.executable, __file__, "--peer", how, "--runs", str(args.runs)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
        try:
            out, err = process.communicate(timeout=max(0.1, end - time.monotonic()))
            last = (err.strip().splitlines() or [f"status {process.returncode}"])[-1]
            result[how] = json.loads(out.strip().splitlines()[-1]) if process.returncode == 0 and out.strip() else {"failed": last}
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            result[how] = {"failed": "no time was left"}
        keep()
        print(f"GPT-2, {how}: {result[how]}", flush=True)
    print(f"GPT-2, dmir: {result['dmir']}, predicted {result.get('predicted')}")
    sys.exit(1 if "failed" in result["dmir"] else 0)


if __name__ == "__main__":
    main()
