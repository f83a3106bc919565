"""Kernels with the algorithms of Triton's tutorials: softmax with a row in one block, layer norm forward, the grouped
matrix product with a fused epilogue, and attention forward with a running maximum. Each returns the result of its workload,
or None if the tutorials have no such kernel."""
import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(y, x, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * n
    i = tl.arange(0, BLOCK)
    v = tl.load(x + at + i, mask=i < n, other=-float("inf")).to(tl.float32)
    e = tl.exp(v - tl.max(v, 0))
    tl.store(y + at + i, (e / tl.sum(e, 0)).to(y.dtype.element_ty), mask=i < n)


@triton.jit
def layer_norm_kernel(y, x, s, c, n, eps, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * n
    total = tl.zeros([BLOCK], tl.float32)
    for first in range(0, n, BLOCK):
        i = first + tl.arange(0, BLOCK)
        total += tl.load(x + at + i, mask=i < n, other=0.0).to(tl.float32)
    mean = tl.sum(total, 0) / n
    square = tl.zeros([BLOCK], tl.float32)
    for first in range(0, n, BLOCK):
        i = first + tl.arange(0, BLOCK)
        v = tl.load(x + at + i, mask=i < n, other=0.0).to(tl.float32)
        v = tl.where(i < n, v - mean, 0.0)
        square += v * v
    scale = 1 / tl.sqrt(tl.sum(square, 0) / n + eps)
    for first in range(0, n, BLOCK):
        i = first + tl.arange(0, BLOCK)
        m = i < n
        v = (tl.load(x + at + i, mask=m, other=0.0).to(tl.float32) - mean) * scale
        v = v * tl.load(s + i, mask=m).to(tl.float32) + tl.load(c + i, mask=m).to(tl.float32)
        tl.store(y + at + i, v.to(y.dtype.element_ty), mask=m)


SHAPES = [
    triton.Config({"M": m, "N": n, "K": k, "GROUP": 8}, num_stages=stages, num_warps=warps)
    for m, n, k, stages, warps in ((128, 256, 64, 3, 8), (128, 128, 64, 4, 4), (64, 256, 32, 4, 4), (128, 64, 32, 4, 4), (256, 128, 64, 3, 8))
]


@triton.autotune(configs=SHAPES, key=["m", "n", "k"])
@triton.jit
def matmul_kernel(a, b, c, bias, other, m, n, k, EPILOGUE: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, GROUP: tl.constexpr):
    """Operands are row-major, and tiles divide k. Tiles are grouped by rows, so that they share columns in L2."""
    tile = tl.program_id(0)
    across = tl.cdiv(n, N)
    group = tile // (GROUP * across)
    first = group * GROUP
    rows = tl.minimum(tl.cdiv(m, M) - first, GROUP)
    ti = first + (tile % (GROUP * across)) % rows
    tj = (tile % (GROUP * across)) // rows
    i = (ti * M + tl.arange(0, M)) % m
    j = (tj * N + tl.arange(0, N)) % n
    l = tl.arange(0, K)
    pa = a + i[:, None] * k + l[None, :]
    pb = b + l[:, None] * n + j[None, :]
    acc = tl.zeros((M, N), tl.float32)
    for _ in range(0, k, K):
        acc = tl.dot(tl.load(pa), tl.load(pb), acc)
        pa += K
        pb += K * n
    oi = ti * M + tl.arange(0, M)
    oj = tj * N + tl.arange(0, N)
    mask = (oi[:, None] < m) & (oj[None, :] < n)
    at = oi[:, None] * n + oj[None, :]
    if EPILOGUE == "bias_gelu":
        acc += tl.load(bias + oj, mask=oj < n)[None, :].to(tl.float32)
        acc = 0.5 * acc * (1 + tl.math.erf(acc * 0.7071067811865476))
    elif EPILOGUE == "bias_residual":
        acc += tl.load(bias + oj, mask=oj < n)[None, :].to(tl.float32)
        acc += tl.load(other + at, mask=mask).to(tl.float32)
    elif EPILOGUE == "silu_gate":
        acc = acc * tl.sigmoid(acc) * tl.load(other + at, mask=mask).to(tl.float32)
    tl.store(c + at, acc.to(c.dtype.element_ty), mask=mask)


TILES = [triton.Config({"M": m, "N": n}, num_stages=s, num_warps=w) for m, n, s, w in ((128, 64, 3, 8), (128, 128, 3, 8), (64, 64, 4, 4), (128, 64, 3, 4))]


@triton.autotune(configs=TILES, key=["l", "P", "CAUSAL"])
@triton.jit
def attention_kernel(y, q, k, v, l, heads, shared, scale, P: tl.constexpr, CAUSAL: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    """One block of queries of one head. Scores are in base 2 and rescaled when the maximum grows."""
    rows = tl.program_id(0) * M + tl.arange(0, M)
    head = tl.program_id(1)
    kv = (head // heads) * (heads // shared) + (head % heads) // shared
    d = tl.arange(0, P)
    at = head.to(tl.int64) * l * P
    kat = kv.to(tl.int64) * l * P
    vq = tl.load(q + at + rows[:, None] * P + d[None, :], mask=rows[:, None] < l, other=0.0)
    top = tl.full([M], -float("inf"), tl.float32)
    total = tl.zeros([M], tl.float32)
    acc = tl.zeros([M, P], tl.float32)
    end = tl.minimum((tl.program_id(0) + 1) * M, l) if CAUSAL else l
    for first in range(0, end, N):
        cols = first + tl.arange(0, N)
        kt = tl.load(k + kat + cols[None, :] * P + d[:, None], mask=cols[None, :] < l, other=0.0)
        s = tl.dot(vq, kt) * (scale * 1.4426950408889634)
        s = tl.where(cols[None, :] < l, s, -float("inf"))
        if CAUSAL:
            s = tl.where(cols[None, :] <= rows[:, None], s, -float("inf"))
        now = tl.maximum(top, tl.max(s, 1))
        p = tl.exp2(s - now[:, None])
        keep = tl.exp2(top - now)
        total = total * keep + tl.sum(p, 1)
        vt = tl.load(v + kat + cols[:, None] * P + d[None, :], mask=cols[:, None] < l, other=0.0)
        acc = tl.dot(p.to(vt.dtype), vt, acc * keep[:, None])
        top = now
    tl.store(y + at + rows[:, None] * P + d[None, :], (acc / total[:, None]).to(y.dtype.element_ty), mask=rows[:, None] < l)


def step(w):
    """Returns a function from the workload's inputs to its results, or None."""
    if w.mode != "forward":
        return None
    if w.kind == "softmax" and w.dims["n"] <= 65536:

        def run(inputs):
            (x,) = inputs
            y, block = torch.empty_like(x), triton.next_power_of_2(x.shape[1])
            softmax_kernel[(x.shape[0],)](y, x, x.shape[1], BLOCK=block, num_warps=min(16, max(1, block // 256)))
            return [y]

        return run
    if w.kind == "layer_norm":

        def run(inputs):
            x, s, c = inputs
            y, block = torch.empty_like(x), min(65536 // x.element_size(), triton.next_power_of_2(x.shape[1]))
            layer_norm_kernel[(x.shape[0],)](y, x, s, c, x.shape[1], 1e-5, BLOCK=block, num_warps=min(8, max(1, block // 256)))
            return [y]

        return run
    if w.kind in ("gemm", "bias_gelu", "bias_residual", "silu_gate") and w.dims["k"] % 64 == 0:

        def run(inputs):
            x, wt = inputs[:2]
            m, k, n = x.shape[0], x.shape[1], wt.shape[1]
            y = torch.empty((m, n), device=x.device, dtype=x.dtype)
            bias = inputs[2] if w.kind.startswith("bias") else y
            other = inputs[-1] if w.kind in ("bias_residual", "silu_gate") else y
            grid = lambda c: (triton.cdiv(m, c["M"]) * triton.cdiv(n, c["N"]),)
            matmul_kernel[grid](x, wt, y, bias, other, m, n, k, EPILOGUE=w.kind)
            return [y]

        return run
    if w.kind == "attention":

        def run(inputs):
            q, k, v = inputs
            b, h, l, p = q.shape
            y = torch.empty_like(q)
            grid = lambda c: (triton.cdiv(l, c["M"]), b * h)
            attention_kernel[grid](y, q, k, v, l, h, h // k.shape[1], p**-0.5, P=p, CAUSAL=w.dims["causal"])
            return [y]

        return run
    return None
