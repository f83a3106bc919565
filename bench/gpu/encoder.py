#!/usr/bin/env python3
"""Predicted beside measured: every operator of examples/bert_encoder.dmir, as dmir predicts it and as PyTorch runs it.

usage: encoder.py --dmir build/dmir [--target h200] [--device cuda] [--runs 50] [--json FILE]

The operators are those of the published table (Ivanov et al., MLSys 2021), eager, in f16, at the example's sizes. Each is
checked against a float32 computation on fresh random inputs before it is timed. A time is the median of its runs, measured
with events on the device. The layer is also run whole, eager and compiled.
"""
import argparse
import datetime
import json
import statistics
import subprocess
import sys
import time

import torch
import torch.nn.functional as F


def operators(d, dev, dtype):
    """The operators in the order of the example, as (name, function, inputs)."""
    b, l, n, h, p, u = d["b"], d["l"], d["n"], d["h"], d["p"], d["u"]

    def rand(*shape, scale=1.0):
        return (torch.randn(*shape, device=dev) * scale).to(dtype)

    x, tokens = rand(b, l, n), rand(b, l, n)
    qkv = rand(3, b, l, h, p)
    heads, scores, probs = rand(b, h, l, p), rand(b, h, l, l), rand(b, h, l, l).softmax(-1)
    hidden = rand(b, l, u)
    bias_n, bias_u, gain = rand(n), rand(u), rand(n)

    def split(t, bias):
        return (t + bias[:, None, None]).unbind(0)

    def softmax_dropout(s):
        soft = torch.softmax(s * p**-0.5, -1)
        mask = (torch.rand_like(soft) > 0.1).to(dtype)
        return soft, mask, soft * mask / 0.9

    def dropout(t):
        mask = (torch.rand_like(t) > 0.1).to(dtype)
        return t * mask / 0.9, mask

    linear = torch.einsum
    return [
        ("qkv", lambda x, w: linear("bln,cnhp->cblhp", x, w), (x, rand(3, n, h, p, scale=n**-0.5))),
        ("input_bias", split, (qkv, rand(3, h, p))),
        ("qk_t", lambda q, k: linear("bhlp,bhmp->bhlm", q, k), (heads, heads)),
        ("scaled_softmax_dropout", softmax_dropout, (scores,)),
        ("gamma", lambda s, v: linear("bhlm,bhmp->bhlp", s, v), (probs, heads)),
        ("out", lambda g, w: linear("bhlp,hpn->bln", g, w), (heads, rand(h, p, n, scale=n**-0.5))),
        ("out_bias", torch.add, (tokens, bias_n)),
        ("dropout1", dropout, (tokens,)),
        ("residual1", torch.add, (tokens, x)),
        ("layernorm1", lambda t, g, c: F.layer_norm(t, (n,), g, c), (tokens, gain, bias_n)),
        ("linear1", lambda t, w: linear("bln,nu->blu", t, w), (tokens, rand(n, u, scale=n**-0.5))),
        ("linear1_bias", torch.add, (hidden, bias_u)),
        ("relu", torch.relu, (hidden,)),
        ("dropout2", dropout, (hidden,)),
        ("linear2", lambda t, w: linear("blu,un->bln", t, w), (hidden, rand(u, n, scale=u**-0.5))),
        ("linear2_bias", torch.add, (tokens, bias_n)),
        ("dropout3", dropout, (tokens,)),
        ("residual2", torch.add, (tokens, x)),
        ("layernorm2", lambda t, g, c: F.layer_norm(t, (n,), g, c), (tokens, gain, bias_n)),
    ]


def layer(ops):
    """The whole layer, each operator fed with its predecessors' results."""
    f = {name: fn for name, fn, _ in ops}
    a = {name: args for name, _, args in ops}

    def run(x):
        q, k, v = f["input_bias"](f["qkv"](x, a["qkv"][1]), a["input_bias"][1])
        q, k, v = (t.transpose(1, 2) for t in (q, k, v))
        _, _, s = f["scaled_softmax_dropout"](f["qk_t"](q, k))
        t = f["out"](f["gamma"](s, v), a["out"][1])
        t, _ = f["dropout1"](f["out_bias"](t, a["out_bias"][1]))
        t1 = f["layernorm1"](f["residual1"](t, x), *a["layernorm1"][1:])
        t = f["relu"](f["linear1_bias"](f["linear1"](t1, a["linear1"][1]), a["linear1_bias"][1]))
        t, _ = f["dropout2"](t)
        t, _ = f["dropout3"](f["linear2_bias"](f["linear2"](t, a["linear2"][1]), a["linear2_bias"][1]))
        return f["layernorm2"](f["residual2"](t, t1), *a["layernorm2"][1:])

    return run


def measure(fn, args, runs, dev):
    """Median time of fn(*args) in ns."""
    for _ in range(3):
        fn(*args)
    times = []
    for _ in range(runs):
        if dev == "cuda":
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            start.record()
            fn(*args)
            end.record()
            torch.cuda.synchronize()
            times.append(start.elapsed_time(end) * 1e6)
        else:
            start = time.perf_counter_ns()
            fn(*args)
            times.append(time.perf_counter_ns() - start)
    return statistics.median(times)


def check(name, fn, args):
    """Requires fn in half precision to be near fn in float32. Random operators are left out."""
    if "dropout" in name:
        return
    got, want = fn(*args), fn(*[a.float() for a in args])
    got, want = (t if isinstance(t, tuple) else (t,) for t in (got, want))
    for g, w in zip(got, want):
        error = ((g.float() - w).abs() / (1 + w.abs())).max().item()
        if error > 0.05:
            sys.exit(f"{name}: differs from float32 by {error:.3g}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dmir", required=True)
    parser.add_argument("--file", default="examples/bert_encoder.dmir")
    parser.add_argument("--target", default="h200")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--json")
    parser.add_argument("--small", action="store_true", help="small sizes, to try the script itself")
    args = parser.parse_args()
    if args.device == "cuda" and not torch.cuda.is_available():
        sys.exit("no CUDA device")

    out = subprocess.run([args.dmir, "cost", "--target", args.target, "--output-format", "json", args.file], check=True, capture_output=True)
    predicted = json.loads(out.stdout)["functions"][0]["ops"]
    sizes = dict(b=1, l=16, n=64, h=4, p=16, u=128) if args.small else dict(b=8, l=512, n=1024, h=16, p=64, u=4096)
    ops = operators(sizes, args.device, torch.float16)
    if len(predicted) != len(ops):
        sys.exit(f"{args.file} has {len(predicted)} operators, expected {len(ops)}")

    card = torch.cuda.get_device_name() if args.device == "cuda" else "cpu"
    print(f"{card}, PyTorch {torch.__version__}, predicted for {args.target}\n")
    print(f"{'operator':<24}{'predicted':>12}{'measured':>12}{'measured/predicted':>20}  bound")
    rows = []
    for (name, fn, inputs), op in zip(ops, predicted):
        check(name, fn, inputs)
        ns = measure(fn, inputs, args.runs, args.device)
        ratio = ns / op["time_ns"] if op["time_ns"] else float("nan")
        rows.append(dict(operator=name, line=op["line"], predicted_ns=op["time_ns"], measured_ns=ns, ratio=ratio, bound=op["bound"]))
        print(f"{name:<24}{op['time_ns']/1e3:>9.1f} µs{ns/1e3:>9.1f} µs{ratio:>20.2f}  {op['bound']}")
    total = sum(op["time_ns"] for op in predicted)
    whole = {}
    x = ops[0][2][0]
    for how, fn in (("eager", layer(ops)), ("compiled", torch.compile(layer(ops)) if args.device == "cuda" else None)):
        if fn:
            whole[how] = measure(fn, (x,), args.runs, args.device)
            print(f"{'layer, ' + how:<24}{total/1e3:>9.1f} µs{whole[how]/1e3:>9.1f} µs{whole[how]/total:>20.2f}")
    if args.json:
        result = dict(date=datetime.date.today().isoformat(), card=card, torch=torch.__version__, target=args.target,
                      operators=rows, predicted_layer_ns=total, measured_layer_ns=whole)
        with open(args.json, "w") as f:
            json.dump(result, f, indent=2)
            f.write("\n")


if __name__ == "__main__":
    main()
