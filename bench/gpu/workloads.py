#!/usr/bin/env python3
"""The workloads: a table of shapes and element types, and each program as text.

usage: workloads.py [--small] --write FOLDER     writes NAME.dmir for every workload, with its labels, if any, as
                                                 NAME.INPUT.npy, and prints the names
       workloads.py --list                       prints the names, the most important first

Needs only Python. formulas.py (PyTorch) and jax_formulas.py implement the same workloads; every run compares the results
with each other.
"""
import argparse
import dataclasses
import math
import pathlib
import re
import struct

BYTES = {"f8E4M3FN": 1, "f16": 2, "bf16": 2, "f32": 4, "i64": 8}


@dataclasses.dataclass(frozen=True)
class Input:
    """An argument: normally distributed numbers times `scale` plus `shift`, or i64 labels below `classes`."""

    name: str
    shape: tuple
    elem: str
    scale: float = 1.0
    shift: float = 0.0
    classes: int = 0

    @property
    def type(self):
        return tensor(self.shape, self.elem)

    @property
    def argument(self):
        """Returns the argument's text in the program, with dmir's default initialization."""
        init = f" {{dm.init = {self.shift}}}" if self.shift else f" {{dm.stddev = {self.scale:.6f}}}" if self.scale != 1 else ""
        return f"%{self.name}: {self.type}{init}"

    @property
    def bytes(self):
        return math.prod(self.shape) * BYTES[self.elem]


@dataclasses.dataclass(frozen=True)
class Workload:
    name: str
    group: str  # gemm, epilogue, row, loss, move, order, conv, attention, mlp, layer
    kind: str  # the program: the name of a builder below and of a formula
    mode: str  # forward, backward (without the forward results), both
    elem: str
    dims: dict
    small: dict  # sizes for the emulator
    tier: int = 2  # 0: first, with every peer; 1: with most peers; 2: dmir, eager and Triton, other peers if there is time
    tune: bool = False  # whether to run torch.compile's max-autotune

    def at(self, small):
        """Returns the workload at the emulator's sizes if small, else unchanged."""
        return dataclasses.replace(self, dims=self.small) if small else self

    def inputs(self):
        return BUILDERS[self.kind](self)[0] + self.cotangents()

    def cotangents(self):
        if self.mode == "forward" or self.kind == "cross_entropy":
            return []
        return [Input("dy", BUILDERS[self.kind](self)[2], self.elem)]

    def results(self):
        """Types of the results: y except in mode backward, then a gradient for each argument of `wrt`. An optimizer's step gives the
        weights in half precision first, and its state behind them; a sort the elements and where they were."""
        inputs, _, shape, wrt = BUILDERS[self.kind](self)
        if self.kind == "adamw":
            return [tensor(shape, self.elem)] + [tensor(shape, "f32")] * 3
        if self.kind == "in_order":
            return [tensor(shape, self.elem), tensor(shape, "i64")]
        y = tensor(shape, "f32" if self.kind == "cross_entropy" and self.elem == "f32" else self.elem)
        grads = [inputs[i].type for i in wrt]
        return {"forward": [y], "backward": grads, "both": [y] + grads}[self.mode]

    def wrt(self):
        return BUILDERS[self.kind](self)[3]

    def minimum(self):
        """Bytes of the arguments and results."""
        sizes = [math.prod([int(d) for d in re.findall(r"(\d+)x", r)]) * BYTES[re.search(r"x?(\w?\w\d+)>", r).group(1).split("x")[-1]]
                 for r in self.results()]
        return sum(i.bytes for i in self.inputs()) + sum(sizes)

    def flop(self):
        """FLOP of the contractions; 0 without contractions."""
        d, times = self.dims, {"forward": 1, "both": 3, "backward": 2}[self.mode]
        if self.group in ("gemm", "epilogue"):
            return 2 * d["m"] * d["n"] * d["k"]
        if self.kind == "attention":
            one = 4 * d["b"] * d["h"] * d["l"] ** 2 * d["p"] * (1 if self.mode == "forward" else 3.5)
            return one / 2 if d["causal"] else one
        if self.kind == "convolution":
            return 2 * d["b"] * d["s"] ** 2 * d["k"] ** 2 * d["c"] * d["o"] * times
        if self.kind == "mlp":
            return 4 * d["m"] * d["n"] * d["u"] * times
        return 0

    def text(self):
        """The program at level 1."""
        inputs, (private, body), shape, wrt = BUILDERS[self.kind](self)
        y = tensor(shape, self.elem)
        args, plain = ", ".join(i.argument for i in inputs), ", ".join(f"%{i.name}: {i.type}" for i in inputs)
        head = f"// {self.name}: {self.kind} in {self.elem}, {self.mode}.\n\n"
        results = self.results()
        if self.mode == "forward":
            given, types = ", ".join(["%y"] + [f"%y{i}" for i in range(1, len(results))]), ", ".join(results)
            return f"{head}func.func @main({args}) -> ({types}) {{\n{body}  return {given} : {types}\n}}\n{private}"
        names = [f"%d_{inputs[i].name}" for i in wrt]
        given = names if self.mode == "backward" else ["%y"] + names
        loss = self.kind == "cross_entropy"
        all_args = args if loss else f"{args}, %dy: {y}"
        operands = ", ".join(f"%{i.name}" for i in inputs) + ("" if loss else ", %dy")
        types = ", ".join([i.type for i in inputs] + ([] if loss else [y]))
        cotangents = "" if loss else ", cotangents = 1"
        grads = ", ".join([y] + [inputs[i].type for i in wrt])
        return (
            f"{head}func.func @main({all_args}) -> ({', '.join(results)}) {{\n"
            f"  {', '.join(['%y'] + names)} = dm.grad @forward {operands}, wrt = {wrt}{cotangents} : ({types}) -> ({grads})\n"
            f"  return {', '.join(given)} : {', '.join(results)}\n}}\n\n"
            f"func.func private @forward({plain}) -> {y} {{\n{body}  return %y : {y}\n}}\n{private}"
        )


def tensor(shape, elem):
    return "tensor<" + "".join(f"{d}x" for d in shape) + elem + ">"


class Body:
    """The lines of a function's body."""

    def __init__(self):
        self.lines = ""

    def op(self, result, op, operands, attrs, types, out):
        attrs = "".join(f", {a}" for a in attrs)
        names = ", ".join("%" + o for o in operands)
        self.lines += f"  %{result} = {op} {names}{attrs} : ({', '.join(types)}) -> {out}\n"


# The builders return the arguments, the functions and the body of the forward pass, whose result is %y, the shape of
# %y, and the arguments to differentiate with respect to.


def gemm(w):
    d, e = w.dims, w.elem
    x, wt, y = Input("x", (d["m"], d["k"]), e), Input("w", (d["k"], d["n"]), e, d["k"] ** -0.5), (d["m"], d["n"])
    b = Body()
    b.op("y", "dm.matmul", ["x", "w"], [], [x.type, wt.type], tensor(y, e))
    return [x, wt], ("", b.lines), y, [0, 1]


def gemm_bytes(w):
    """A product of f8 numbers, both contiguous along the dimension that is summed over."""
    d, e, y = w.dims, "f8E4M3FN", (w.dims["m"], w.dims["n"])
    x, wt = Input("x", (d["m"], d["k"]), e), Input("w", (d["n"], d["k"]), e)
    b = Body()
    b.op("y", 'dm.einsum "mk,nk->mn"', ["x", "w"], [], [x.type, wt.type], tensor(y, w.elem))
    return [x, wt], ("", b.lines), y, []


def gemm_tf32(w):
    """A product of f32 that may be rounded to TF32, of a weight as layers of PyTorch have it, or, as those of JAX do, with outputs last."""
    d, along = w.dims, w.dims["along"]
    x, wt = Input("x", (d["m"], d["k"]), "f32"), Input("w", (d["n"], d["k"]) if along else (d["k"], d["n"]), "f32", d["k"] ** -0.5)
    y, b = (d["m"], d["n"]), Body()
    b.op("y", "dm.matmul", ["x", "w"], [f"transpose_b = {str(along).lower()}", "precision = tf32"], [x.type, wt.type], tensor(y, "f32"))
    return [x, wt], ("", b.lines), y, [0, 1]


def bias_gelu(w):
    (x, wt), _, y, _ = gemm(w)
    t, bias = tensor(y, w.elem), Input("b", (y[1],), w.elem)
    b = Body()
    b.op("h", "dm.matmul", ["x", "w"], [], [x.type, wt.type], t)
    b.op("s", "dm.add", ["h", "b"], [], [t, bias.type], t)
    b.op("y", "dm.gelu", ["s"], [], [t], t)
    return [x, wt, bias], ("", b.lines), y, [0, 1, 2]


def bias_residual(w):
    (x, wt), _, y, _ = gemm(w)
    t, bias, r = tensor(y, w.elem), Input("b", (y[1],), w.elem), Input("r", y, w.elem)
    b = Body()
    b.op("h", "dm.matmul", ["x", "w"], [], [x.type, wt.type], t)
    b.op("s", "dm.add", ["h", "b"], [], [t, bias.type], t)
    b.op("y", "dm.add", ["s", "r"], [], [t, t], t)
    return [x, wt, bias, r], ("", b.lines), y, [0, 1, 2, 3]


def silu_gate(w):
    (x, wt), _, y, _ = gemm(w)
    t, up = tensor(y, w.elem), Input("u", y, w.elem)
    b = Body()
    b.op("h", "dm.matmul", ["x", "w"], [], [x.type, wt.type], t)
    b.op("s", "dm.silu", ["h"], [], [t], t)
    b.op("y", "dm.mul", ["s", "u"], [], [t, t], t)
    return [x, wt, up], ("", b.lines), y, [0, 1, 2]


def adamw(w):
    """The gradient of a weight, and the tenth step of its optimizer, with a master weight and moments in f32."""
    d, y = w.dims, (w.dims["m"], w.dims["n"])
    x, dy = Input("x", (d["k"], d["m"]), w.elem), Input("dy", (d["k"], d["n"]), w.elem, d["k"] ** -0.5)
    p, m, v = Input("p", y, "f32", 0.02), Input("m", y, "f32"), Input("v", y, "f32", 0.1, 1.0)
    g = tensor(y, w.elem)
    b = Body()
    b.op("g", 'dm.einsum "km,kn->mn"', ["x", "dy"], [], [x.type, dy.type], g)
    b.lines += "  %step = dm.constant dense<10> : tensor<i64>\n"
    b.op("y1, %y2, %y3, %y", "dm.adam", ["p", "g", "m", "v", "step"], ["weight_decay = 0.1"], [p.type, g, m.type, v.type, "tensor<i64>"], f"({p.type}, {m.type}, {v.type}, {g})")
    return [x, dy, p, m, v], ("", b.lines), y, []


def softmax(w):
    x = Input("x", (w.dims["rows"], w.dims["n"]), w.elem, 2.0)
    b = Body()
    b.op("y", "dm.softmax", ["x"], ["dim = 1"], [x.type], x.type)
    return [x], ("", b.lines), x.shape, [0]


def layer_norm(w):
    n = w.dims["n"]
    x, s, c = Input("x", (w.dims["rows"], n), w.elem), Input("s", (n,), w.elem, 0.1, 1.0), Input("c", (n,), w.elem)
    b = Body()
    b.op("y", "dm.layer_norm", ["x", "s", "c"], [], [x.type, s.type, c.type], x.type)
    return [x, s, c], ("", b.lines), x.shape, [0, 1, 2]


def rms_norm(w):
    n = w.dims["n"]
    x, s = Input("x", (w.dims["rows"], n), w.elem), Input("s", (n,), w.elem, 0.1, 1.0)
    b = Body()
    b.op("y", "dm.rms_norm", ["x", "s"], [], [x.type, s.type], x.type)
    return [x, s], ("", b.lines), x.shape, [0, 1]


def cross_entropy(w):
    rows, n = w.dims["rows"], w.dims["n"]
    x, labels = Input("x", (rows, n), w.elem, 2.0), Input("labels", (rows,), "i64", classes=n)
    b = Body()
    b.op("y", "dm.cross_entropy", ["x", "labels"], [], [x.type, labels.type], tensor((), w.elem))
    return [x, labels], ("", b.lines), (), [0]


def permute(w):
    """Dimensions in another order, and, with `plus`, the sum with an operand that lies as the result does."""
    x, order = Input("x", w.dims["shape"], w.elem), w.dims["order"]
    shape = tuple(x.shape[d] for d in order)
    y, b = tensor(shape, w.elem), Body()
    b.op("t" if w.dims["plus"] else "y", "dm.transpose", ["x"], [f"dims = {list(order)}"], [x.type], y)
    if not w.dims["plus"]:
        return [x], ("", b.lines), shape, [0]
    b.op("y", "dm.add", ["t", "r"], [], [y, y], y)
    return [x, Input("r", shape, w.elem)], ("", b.lines), shape, [0, 1]


def in_order(w):
    """The elements of each row in order, equal ones in the order of their places, and these places."""
    x = Input("x", (w.dims["rows"], w.dims["n"]), w.elem)
    b = Body()
    b.op("y, %y1", "dm.sort", ["x"], ["dim = 1"], [x.type], f"({x.type}, {tensor(x.shape, 'i64')})")
    return [x], ("", b.lines), x.shape, []


def greatest(w):
    """The k greatest elements of each row: without their places, since frameworks choose others among equal elements."""
    x, shape = Input("x", (w.dims["rows"], w.dims["n"]), w.elem), (w.dims["rows"], w.dims["k"])
    b = Body()
    b.op("y", "dm.top_k", ["x"], [f"k = {w.dims['k']}", "dim = 1"], [x.type], tensor(shape, w.elem))
    return [x], ("", b.lines), shape, []


def embedding(w):
    """Rows of a table by ids below `ids`: of all rows, or of few, of which the gradient adds up many updates."""
    t, i = Input("t", (w.dims["rows"], w.dims["n"]), w.elem), Input("i", (w.dims["tokens"],), "i64", classes=w.dims["ids"])
    shape, b = (w.dims["tokens"], w.dims["n"]), Body()
    b.op("y", "dm.embedding", ["t", "i"], [], [t.type, i.type], tensor(shape, w.elem))
    return [t, i], ("", b.lines), shape, [0]


def convolution(w):
    """Images with channels last, and filters with features last; the size stays."""
    d, e, k = w.dims, w.elem, w.dims["k"]
    x, f = Input("x", (d["b"], d["s"], d["s"], d["c"]), e), Input("f", (k, k, d["c"], d["o"]), e, (k * k * d["c"]) ** -0.5)
    first, filters, shape = (d["b"], d["c"], d["s"], d["s"]), (d["o"], d["c"], k, k), (d["b"], d["s"], d["s"], d["o"])
    image, taps, result = tensor(first, e), tensor(filters, e), tensor((d["b"], d["o"], d["s"], d["s"]), e)
    b = Body()
    b.op("a", "dm.transpose", ["x"], ["dims = [0, 3, 1, 2]"], [x.type], image)
    b.op("w", "dm.transpose", ["f"], ["dims = [3, 2, 0, 1]"], [f.type], taps)
    b.op("c", "dm.convolution", ["a", "w"], [f"padding = [[{k // 2}, {k // 2}], [{k // 2}, {k // 2}]]"], [image, taps], result)
    b.op("y", "dm.transpose", ["c"], ["dims = [0, 2, 3, 1]"], [result], tensor(shape, e))
    return [x, f], ("", b.lines), shape, [0, 1]


def attention(w):
    d, e = w.dims, w.elem
    q = Input("q", (d["b"], d["h"], d["l"], d["p"]), e)
    k, v = (Input(n, (d["b"], d["g"], d["l"], d["p"]), e) for n in "kv")
    b = Body()
    b.op("y", "dm.attention", ["q", "k", "v"], ["causal = true"] if d["causal"] else [], [q.type, k.type, v.type], q.type)
    return [q, k, v], ("", b.lines), q.shape, [0, 1, 2]


def mlp(w):
    m, n, u, e = w.dims["m"], w.dims["n"], w.dims["u"], w.elem
    x = Input("x", (m, n), e)
    w1, b1 = Input("w1", (n, u), e, n**-0.5), Input("b1", (u,), e, 0.1)
    w2, b2 = Input("w2", (u, n), e, u**-0.5), Input("b2", (n,), e, 0.1)
    h, y = tensor((m, u), e), x.type
    b = Body()
    b.op("h", "dm.matmul", ["x", "w1"], [], [x.type, w1.type], h)
    b.op("hb", "dm.add", ["h", "b1"], [], [h, b1.type], h)
    b.op("a", "dm.gelu", ["hb"], [], [h], h)
    b.op("o", "dm.matmul", ["a", "w2"], [], [h, w2.type], y)
    b.op("y", "dm.add", ["o", "b2"], [], [y, b2.type], y)
    return [x, w1, b1, w2, b2], ("", b.lines), x.shape, [0, 1, 2, 3, 4]


def bert(w):
    """The encoder layer without dropout, whose random numbers differ between peers."""
    d, e = w.dims, w.elem
    b, l, n, h, p, u = (d[k] for k in "blnhpu")
    x = Input("x", (b, l, n), e)
    args = [
        x, Input("w_qkv", (3, h, p, n), e, n**-0.5), Input("b_qkv", (3, h, p), e, 0.1), Input("w_out", (h, p, n), e, n**-0.5),
        Input("b_out", (n,), e, 0.1), Input("s1", (n,), e, 0.1, 1.0), Input("c1", (n,), e, 0.1), Input("w_up", (n, u), e, n**-0.5),
        Input("b_up", (u,), e, 0.1), Input("w_down", (u, n), e, u**-0.5), Input("b_down", (n,), e, 0.1),
        Input("s2", (n,), e, 0.1, 1.0), Input("c2", (n,), e, 0.1),
    ]  # fmt: skip
    t = {a.name: a.type for a in args}
    tokens, qkv, heads, hidden = x.type, tensor((3, b, h, l, p), e), tensor((b, h, l, p), e), tensor((b, l, u), e)
    one, bias = tensor((1, b, h, l, p), e), tensor((3, 1, h, 1, p), e)
    o = Body()
    o.op("qkv", 'dm.einsum "bln,chpn->cbhlp"', ["x", "w_qkv"], [], [tokens, t["w_qkv"]], qkv)
    o.op("bias", "dm.reshape", ["b_qkv"], [], [t["b_qkv"]], bias)
    o.op("qkv_bias", "dm.add", ["qkv", "bias"], [], [qkv, bias], qkv)
    for i, name in enumerate("qkv"):
        o.op(name + "1", "dm.slice", ["qkv_bias"], [f"start_indices = [{i}]", f"limit_indices = [{i + 1}]", "dims = [0]"], [qkv], one)
        o.op(name, "dm.reshape", [name + "1"], [], [one], heads)
    o.op("gamma", "dm.attention", ["q", "k", "v"], [], [heads, heads, heads], heads)
    o.op("out", 'dm.einsum "bhlp,hpn->bln"', ["gamma", "w_out"], [], [heads, t["w_out"]], tokens)
    o.op("out_bias", "dm.add", ["out", "b_out"], [], [tokens, t["b_out"]], tokens)
    o.op("res1", "dm.add", ["out_bias", "x"], [], [tokens, tokens], tokens)
    o.op("norm1", "dm.layer_norm", ["res1", "s1", "c1"], [], [tokens, t["s1"], t["c1"]], tokens)
    o.op("up", 'dm.einsum "bln,nu->blu"', ["norm1", "w_up"], [], [tokens, t["w_up"]], hidden)
    o.op("up_bias", "dm.add", ["up", "b_up"], [], [hidden, t["b_up"]], hidden)
    o.op("act", "dm.gelu", ["up_bias"], [], [hidden], hidden)
    o.op("down", 'dm.einsum "blu,un->bln"', ["act", "w_down"], [], [hidden, t["w_down"]], tokens)
    o.op("down_bias", "dm.add", ["down", "b_down"], [], [tokens, t["b_down"]], tokens)
    o.op("res2", "dm.add", ["down_bias", "norm1"], [], [tokens, tokens], tokens)
    o.op("y", "dm.layer_norm", ["res2", "s2", "c2"], [], [tokens, t["s2"], t["c2"]], tokens)
    return args, ("", o.lines), x.shape, list(range(len(args)))


def llama(w):
    d, e = w.dims, w.elem
    b, l, n, h, g, p, u = (d[k] for k in "blnhgpu")
    x = Input("x", (b, l, n), e)
    turn = lambda name: Input(name, (l, p // 2), e, 0.7)
    args = [
        x, turn("cos"), turn("sin"), Input("s1", (n,), e, 0.1, 1.0), Input("w_q", (h, p, n), e, n**-0.5),
        Input("w_k", (g, p, n), e, n**-0.5), Input("w_v", (g, p, n), e, n**-0.5), Input("w_o", (h, p, n), e, n**-0.5),
        Input("s2", (n,), e, 0.1, 1.0), Input("w_gate", (n, u), e, n**-0.5), Input("w_up", (n, u), e, n**-0.5),
        Input("w_down", (u, n), e, u**-0.5),
    ]  # fmt: skip
    t = {a.name: a.type for a in args}
    tokens, hidden = x.type, tensor((b, l, u), e)
    o = Body()

    def rotate(name, heads):
        whole, half, angle = tensor((b, heads, l, p), e), tensor((b, heads, l, p // 2), e), t["cos"]
        for part, at in (("a", 0), ("b", p // 2)):
            o.op(name + part, "dm.slice", [name], [f"start_indices = [{at}]", f"limit_indices = [{at + p // 2}]", "dims = [3]"], [whole], half)
            for turned in ("cos", "sin"):
                o.op(name + part + turned, "dm.mul", [name + part, turned], [], [half, angle], half)
        o.op(name + "c", "dm.sub", [name + "acos", name + "bsin"], [], [half, half], half)
        o.op(name + "d", "dm.add", [name + "bcos", name + "asin"], [], [half, half], half)
        o.op(name + "r", "dm.concatenate", [name + "c", name + "d"], ["dim = 3"], [half, half], whole)

    q, kv = tensor((b, h, l, p), e), tensor((b, g, l, p), e)
    o.op("norm1", "dm.rms_norm", ["x", "s1"], [], [tokens, t["s1"]], tokens)
    o.op("q", 'dm.einsum "bne,hpe->bhnp"', ["norm1", "w_q"], [], [tokens, t["w_q"]], q)
    o.op("k", 'dm.einsum "bne,hpe->bhnp"', ["norm1", "w_k"], [], [tokens, t["w_k"]], kv)
    o.op("v", 'dm.einsum "bne,hpe->bhnp"', ["norm1", "w_v"], [], [tokens, t["w_v"]], kv)
    rotate("q", h)
    rotate("k", g)
    o.op("a", "dm.attention", ["qr", "kr", "v"], ["causal = true"], [q, kv, kv], q)
    o.op("o", 'dm.einsum "bhnp,hpe->bne"', ["a", "w_o"], [], [q, t["w_o"]], tokens)
    o.op("res1", "dm.add", ["o", "x"], [], [tokens, tokens], tokens)
    o.op("norm2", "dm.rms_norm", ["res1", "s2"], [], [tokens, t["s2"]], tokens)
    o.op("gate", 'dm.einsum "bne,eu->bnu"', ["norm2", "w_gate"], [], [tokens, t["w_gate"]], hidden)
    o.op("up", 'dm.einsum "bne,eu->bnu"', ["norm2", "w_up"], [], [tokens, t["w_up"]], hidden)
    o.op("silu", "dm.silu", ["gate"], [], [hidden], hidden)
    o.op("gated", "dm.mul", ["silu", "up"], [], [hidden, hidden], hidden)
    o.op("down", 'dm.einsum "bnu,ue->bne"', ["gated", "w_down"], [], [hidden, t["w_down"]], tokens)
    o.op("y", "dm.add", ["down", "res1"], [], [tokens, tokens], tokens)
    return args, ("", o.lines), x.shape, [0] + list(range(3, len(args)))


BUILDERS = {f.__name__: f for f in (gemm, gemm_bytes, gemm_tf32, adamw, bias_gelu, bias_residual, silu_gate, softmax, layer_norm, rms_norm, cross_entropy, permute, in_order, greatest, embedding, convolution, attention, mlp, bert, llama)}

# Shapes of the products: tokens × outputs × inputs.
BERT = {"qkv": (4096, 3072, 1024), "out": (4096, 1024, 1024), "up": (4096, 4096, 1024), "down": (4096, 1024, 4096)}
LLAMA = {"qkv": (4096, 6144, 4096), "up": (4096, 14336, 4096), "down": (4096, 4096, 14336)}
LENGTHS = (1024, 8192, 65536, 128, 262144)  # of rows, the most common first


def table():
    """Returns all workloads, the most important first."""
    out = []

    def add(name, group, kind, mode, elem, dims, small, tier=2, tune=False):
        out.append(Workload(name, group, kind, mode, elem, dims, small, tier, tune))

    layer_small = dict(b=1, l=32, n=64, h=4, p=16, u=128)
    for b, l in ((8, 512), (96, 128)):
        for mode in ("both", "forward"):
            add(f"bert_b{b}_l{l}_{mode}", "layer", "bert", mode, "f16", dict(b=b, l=l, n=1024, h=16, p=64, u=4096), layer_small, 0, mode == "both")
    for mode in ("both", "forward"):
        dims = dict(b=1, l=2048, n=2048, h=32, g=8, p=64, u=8192)
        add(f"llama_l2048_{mode}", "layer", "llama", mode, "bf16", dims, dict(b=1, l=32, n=64, h=4, g=2, p=16, u=128), 0, mode == "both")
    for family, elem in ((BERT, "f16"), (LLAMA, "bf16"), (BERT, "bf16"), (LLAMA, "f16")):
        bert_ = family is BERT
        first = elem == ("f16" if bert_ else "bf16")
        for part, (m, n, k) in family.items():
            dims, small = dict(m=m, n=n, k=k), dict(m=128, n=128, k=64)
            who = f"{'bert' if bert_ else 'llama'}_{part}"
            add(f"gemm_{who}_{elem}", "gemm", "gemm", "forward", elem, dims, small, 1 if first else 2)
            how = {"bert_up": "bias_gelu", "bert_down": "bias_residual", "llama_up": "silu_gate"}.get(who)
            if how:
                add(f"{how}_{who}_{elem}", "epilogue", how, "forward", elem, dims, small, 0 if first else 2, first)
    add("gemm_few_bf16", "gemm", "gemm", "forward", "bf16", dict(m=64, n=4096, k=4096), dict(m=16, n=256, k=1024), 1)
    add("gemm_8192_bf16", "gemm", "gemm", "forward", "bf16", dict(m=8192, n=8192, k=8192), dict(m=256, n=192, k=128), 1)
    for name, (m, n, k), tier in (("8192", (8192, 8192, 8192), 1), ("llama_up", LLAMA["up"], 2)):
        add(f"gemm_bytes_{name}_f8", "gemm", "gemm_bytes", "forward", "bf16", dict(m=m, n=n, k=k), dict(m=256, n=192, k=144), tier)
    for name, along, tier in (("along", True, 1), ("across", False, 2)):
        add(f"gemm_tf32_4096_{name}", "gemm", "gemm_tf32", "forward", "f32", dict(m=4096, n=4096, k=4096, along=along), dict(m=256, n=192, k=128, along=along), tier)
    add("adamw_llama_bf16", "epilogue", "adamw", "forward", "bf16", dict(m=4096, n=14336, k=4096), dict(m=128, n=192, k=64), 1)
    for mode in ("forward", "both"):
        for l in (4096, 512, 16384, 1024, 2048, 8192):
            dims = dict(b=16384 // l, h=16, g=16, l=l, p=64, causal=False)
            add(f"attention_l{l}_{mode}", "attention", "attention", mode, "f16", dims, dict(b=1, h=2, g=2, l=64, p=64, causal=False), 1 if l in (512, 4096) else 2)
        for l in (2048, 16384):
            dims = dict(b=16384 // l, h=16, g=4, l=l, p=128, causal=True)
            add(f"attention_causal_l{l}_{mode}", "attention", "attention", mode, "bf16", dims, dict(b=1, h=4, g=2, l=64, p=128, causal=True), 2)
    for mode in ("both", "forward"):
        add(f"mlp_{mode}", "mlp", "mlp", mode, "f16", dict(m=4096, n=1024, u=4096), dict(m=64, n=64, u=128), 1)
    for n in LENGTHS:
        for kind, elem in (("softmax", "f16"), ("layer_norm", "f16"), ("rms_norm", "bf16")):
            for mode in ("forward", "backward"):
                volume = 1 << (26 if mode == "forward" else 25)
                add(f"{kind}_{n}_{mode}", "row", kind, mode, elem, dict(rows=volume // n, n=n), dict(rows=6, n=min(n, 384)), 1 if n == LENGTHS[0] else 2)
    few = dict(rows=4, n=1 << 20)  # few long rows, which blocks share
    for kind, elem in (("softmax", "f16"), ("layer_norm", "f16"), ("cross_entropy", "bf16")):
        for mode in ("forward", "both" if kind == "cross_entropy" else "backward"):
            group = "loss" if kind == "cross_entropy" else "row"
            add(f"{kind}_few_{mode}", group, kind, mode, elem, few, dict(rows=2, n=65544), 1 if mode == "forward" else 2)
    for rows, n in ((2048, 32000), (512, 128256)):
        for mode in ("forward", "both"):
            add(f"cross_entropy_{n}_{mode}", "loss", "cross_entropy", mode, "bf16", dict(rows=rows, n=n), dict(rows=6, n=500), 1)
    for name, elem, shape, order, small, plus, tier in (
        ("transpose", "bf16", (8192, 8192), (1, 0), (96, 160), False, 1),
        ("transpose", "f32", (8192, 8192), (1, 0), (96, 160), False, 2),
        ("transpose_odd", "f16", (8191, 8193), (1, 0), (65, 131), False, 2),
        ("transpose_add", "bf16", (8192, 8192), (1, 0), (96, 160), True, 2),
        ("keys_of_heads", "f16", (32, 2048, 16, 64), (0, 2, 3, 1), (2, 48, 2, 32), False, 2),
        ("channels_last", "f16", (256, 256, 28, 28), (0, 2, 3, 1), (2, 64, 6, 8), False, 1),
        ("channels_first", "f16", (256, 28, 28, 256), (0, 3, 1, 2), (2, 6, 8, 64), False, 2),
    ):
        dims = dict(order=order, plus=plus)
        add(f"{name}_{elem}", "move", "permute", "forward", elem, dict(dims, shape=shape), dict(dims, shape=small), tier)
    for name, rows, n, tier in (("short", 1 << 18, 64, 2), ("rows", 16384, 1024, 1), ("long", 1, 1 << 24, 1)):
        add(f"sort_{name}_f32", "order", "in_order", "forward", "f32", dict(rows=rows, n=n), dict(rows=3, n=min(n, 9000)), tier)
    for name, rows, n, k, tier in (("logits", 64, 128256, 50, 1), ("long", 1, 1 << 24, 1000, 2)):
        add(f"top_k_{name}_f32", "order", "greatest", "forward", "f32", dict(rows=rows, n=n, k=k), dict(rows=min(rows, 2), n=9000, k=k), tier)
    for name, ids in (("uniform", 32000), ("one_id", 1)):
        dims = dict(rows=32000, n=1024, tokens=4096, ids=ids)
        add(f"embedding_{name}_backward", "move", "embedding", "backward", "f32", dims, dict(rows=300, n=16, tokens=400, ids=min(ids, 300)), 1)
    for k, c in ((3, 64), (1, 256)):
        for mode in ("forward", "backward"):
            dims, small = dict(b=64, s=56, c=c, o=64, k=k), dict(b=1, s=6, c=32, o=16, k=k)
            add(f"convolution_{k}x{k}_{c}_{mode}", "conv", "convolution", mode, "f16", dims, small, 1)
    return sorted(out, key=lambda w: w.tier)


def labels(w, folder):
    """Writes the label inputs, which must be less than `classes`, without NumPy. Returns their files by name."""
    out = {}
    for i in w.inputs():
        if i.classes:
            path = folder / f"{w.name}.{i.name}.npy"
            head = f"{{'descr': '<i8', 'fortran_order': False, 'shape': ({i.shape[0]},), }}"
            head += " " * (-(len(head) + 11) % 64) + "\n"
            values = [n * 40503 % i.classes for n in range(i.shape[0])]
            path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + struct.pack(f"<{len(values)}q", *values))
            out[i.name] = path
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--small", action="store_true")
    args = parser.parse_args()
    for w in table():
        if args.write:
            folder = pathlib.Path(args.write)
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{w.name}.dmir").write_text(w.at(args.small).text())
            labels(w.at(args.small), folder)
        print(w.name)


if __name__ == "__main__":
    main()
