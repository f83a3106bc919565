#!/usr/bin/env python3
"""Writes transformer.dmir, a training step of a small transformer, and
transformer.npz: its parameters, data, and the trajectory of twelve Adam steps
that NumPy computes in float64.

The gradients here come from no formula of a derivative: each is the imaginary
part of the loss at a parameter moved by a tiny imaginary step (Squire and Trapp,
SIAM Review 40, 1998), which is exact to rounding.

Run with: python3 transformer.py && dmir fmt transformer.dmir   (needs NumPy only)
"""
import numpy as np

BATCH, TOKENS, VOCABULARY, WIDTH, HEADS, HIDDEN, STEPS = 3, 6, 11, 8, 2, 16, 12
DEPTH = WIDTH // HEADS
RATE, SEED = 0.1, 5
LR, B1, B2, EPSILON, DECAY = 0.02, 0.9, 0.999, 1e-8, 0.01

SHAPES = {
    "table": (VOCABULARY, WIDTH), "places": (TOKENS, WIDTH),
    "scale1": (WIDTH,), "bias1": (WIDTH,), "wqkv": (3, HEADS, DEPTH, WIDTH), "wo": (HEADS, DEPTH, WIDTH),
    "scale2": (WIDTH,), "w1": (WIDTH, HIDDEN), "b1": (HIDDEN,), "w2": (HIDDEN, WIDTH), "b2": (WIDTH,),
    "head": (WIDTH, VOCABULARY),
}

MASK64 = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15


def mix(z):
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK64
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK64
    return z ^ (z >> 31)


def kept(shape, seed, rate):
    """The mask of dm.dropout: stream 1 of the seed, two elements to a draw of 64 bits, the even one in the lower half."""
    key = mix((seed + GOLDEN * 2) & MASK64)
    n = int(np.prod(shape))
    bits = [mix((key + GOLDEN * (i // 2 + 1)) & MASK64) >> (i % 2 * 32) & 0xFFFFFFFF for i in range(n)]
    return np.array([b >= int(np.ceil(rate * 2.0**32)) for b in bits], dtype=float).reshape(shape) / (1 - rate)


DROP = kept((BATCH, HEADS, TOKENS, TOKENS), SEED, RATE)
CAUSAL = np.triu(np.ones((TOKENS, TOKENS), dtype=bool), 1)


def loss(p, ids, labels):
    x = p["table"][ids] + p["places"]
    c = x - x.mean(-1, keepdims=True)
    n1 = c / np.sqrt((c * c).mean(-1, keepdims=True) + 1e-5) * p["scale1"] + p["bias1"]
    q, k, v = np.einsum("bne,chpe->cbhnp", n1, p["wqkv"])
    s = np.einsum("bhqp,bhkp->bhqk", q, k) / np.sqrt(DEPTH)
    s = np.where(CAUSAL, -1e300, s)
    e = np.exp(s - s.real.max(-1, keepdims=True)) * ~CAUSAL
    a = np.einsum("bhqk,bhkp->bhqp", e / e.sum(-1, keepdims=True) * DROP, v)
    r = x + np.einsum("bhnp,hpe->bne", a, p["wo"])
    n2 = r / np.sqrt((r * r).mean(-1, keepdims=True) + 1e-5) * p["scale2"]
    h = n2 @ p["w1"] + p["b1"]
    g = h / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (h + 0.044715 * h**3)))
    logits = (r + g @ p["w2"] + p["b2"]) @ p["head"]
    m = logits.real.max(-1, keepdims=True)
    log = logits - m - np.log(np.exp(logits - m).sum(-1, keepdims=True))
    return -np.take_along_axis(log, labels[..., None], -1).mean()


def gradient(p, ids, labels):
    step, grads = 1e-30, {}
    z = {n: a.astype(complex) for n, a in p.items()}
    for name, a in z.items():
        g = np.zeros(a.shape)
        for i in np.ndindex(a.shape):
            a[i] += 1j * step
            g[i] = loss(z, ids, labels).imag / step
            a[i] -= 1j * step
        grads[name] = g
    return grads


def train(p, ids, labels):
    m, v, losses = {n: 0 * a for n, a in p.items()}, {n: 0 * a for n, a in p.items()}, []
    for t in range(1, STEPS + 1):
        losses.append(loss(p, ids, labels).real)
        for n, g in gradient(p, ids, labels).items():
            m[n] = B1 * m[n] + (1 - B1) * g
            v[n] = B2 * v[n] + (1 - B2) * g * g
            p[n] = p[n] - LR * (m[n] / (1 - B1**t) / (np.sqrt(v[n] / (1 - B2**t)) + EPSILON) + DECAY * p[n])
    return p, np.array(losses)


def program():
    names = list(SHAPES)
    out = ["// One training step of a small transformer: written by transformer.py.", ""]
    for n, s in SHAPES.items():
        out.append(f"!{n} = tensor<{'x'.join(map(str, s))}xf64>")
    out += [f"!ids = tensor<{BATCH}x{TOKENS}xi64>", f"!tokens = tensor<{BATCH}x{TOKENS}x{WIDTH}xf64>",
            f"!qkv = tensor<3x{BATCH}x{HEADS}x{TOKENS}x{DEPTH}xf64>", f"!one = tensor<1x{BATCH}x{HEADS}x{TOKENS}x{DEPTH}xf64>",
            f"!heads = tensor<{BATCH}x{HEADS}x{TOKENS}x{DEPTH}xf64>", f"!hidden = tensor<{BATCH}x{TOKENS}x{HIDDEN}xf64>",
            f"!logits = tensor<{BATCH}x{TOKENS}x{VOCABULARY}xf64>", ""]
    state = ", ".join(f"%{n}: !{n}, %m_{n}: !{n}, %v_{n}: !{n}" for n in names)
    types = ", ".join(f"!{n}, !{n}, !{n}" for n in names)
    args, ts = ", ".join("%" + n for n in names), ", ".join("!" + n for n in names)
    out.append(f"func.func @train(%ids: !ids, %labels: !ids, %step: tensor<i64>, {state}) -> (tensor<f64>, {types}) {{")
    out.append(f"  %loss, {', '.join('%d_' + n for n in names)} = dm.grad @loss %ids, %labels, {args}, wrt = {list(range(2, 2 + len(names)))} "
               f": (!ids, !ids, {ts}) -> (tensor<f64>, {ts})")
    for n in names:
        out.append(f"  %{n}_1, %m_{n}_1, %v_{n}_1 = dm.adam %{n}, %d_{n}, %m_{n}, %v_{n}, %step, lr = {LR}, weight_decay = {DECAY} "
                   f": (!{n}, !{n}, !{n}, !{n}, tensor<i64>) -> (!{n}, !{n}, !{n})")
    out.append(f"  return %loss, {', '.join(f'%{n}_1, %m_{n}_1, %v_{n}_1' for n in names)} : tensor<f64>, {types}")
    out += ["}", ""]
    out.append(f"func.func private @loss(%ids: !ids, %labels: !ids, {', '.join(f'%{n}: !{n}' for n in names)}) -> tensor<f64> {{")
    out.append(f"""  %words = dm.embedding %table, %ids : (!table, !ids) -> !tokens
  %x = dm.add %words, %places : (!tokens, !places) -> !tokens
  %norm1 = dm.layer_norm %x, %scale1, %bias1 : (!tokens, !scale1, !bias1) -> !tokens
  %qkv = dm.einsum "bne,chpe->cbhnp" %norm1, %wqkv : (!tokens, !wqkv) -> !qkv
  %q_one = dm.slice %qkv, start_indices = [0], limit_indices = [1], dims = [0] : (!qkv) -> !one
  %k_one = dm.slice %qkv, start_indices = [1], limit_indices = [2], dims = [0] : (!qkv) -> !one
  %v_one = dm.slice %qkv, start_indices = [2], limit_indices = [3], dims = [0] : (!qkv) -> !one
  %q = dm.reshape %q_one : (!one) -> !heads
  %k = dm.reshape %k_one : (!one) -> !heads
  %v = dm.reshape %v_one : (!one) -> !heads
  %a = dm.attention %q, %k, %v, causal = true, dropout = {RATE}, seed = {SEED} : (!heads, !heads, !heads) -> !heads
  %o = dm.einsum "bhnp,hpe->bne" %a, %wo : (!heads, !wo) -> !tokens
  %residual = dm.add %x, %o : !tokens
  %norm2 = dm.rms_norm %residual, %scale2 : (!tokens, !scale2) -> !tokens
  %up = dm.einsum "bne,eu->bnu" %norm2, %w1 : (!tokens, !w1) -> !hidden
  %gated = dm.kernel -> !hidden {{
    %0 = dm.add %up, %b1 : (!hidden, !b1) -> !hidden
    %1 = dm.gelu %0, approximate = tanh : !hidden
    dm.yield %1 : !hidden
  }}
  %down = dm.einsum "bnu,ue->bne" %gated, %w2 : (!hidden, !w2) -> !tokens
  %down_bias = dm.add %down, %b2 : (!tokens, !b2) -> !tokens
  %y = dm.add %residual, %down_bias : !tokens
  %logits = dm.einsum "bne,ev->bnv" %y, %head : (!tokens, !head) -> !logits
  %loss = dm.cross_entropy %logits, %labels : (!logits, !ids) -> tensor<f64>
  return %loss : tensor<f64>
}}""")
    return "\n".join(out) + "\n"


def main():
    rng = np.random.default_rng(3)
    p = {n: rng.normal(0, 0.3, s) for n, s in SHAPES.items()}
    for n in ("scale1", "scale2"):
        p[n] = 1 + p[n]
    ids = rng.integers(0, VOCABULARY, (BATCH, TOKENS))
    labels = (ids * 3 + 1) % VOCABULARY  # a rule that can be learned
    arrays = {"ids": ids, "labels": labels} | {f"{n}.start": a for n, a in p.items()}
    end, losses = train(p, ids, labels)
    arrays |= {f"{n}.end": a for n, a in end.items()} | {"losses": losses}
    np.savez_compressed("transformer.npz", **arrays)
    with open("transformer.dmir", "w") as f:
        f.write(program())
    print(losses)


if __name__ == "__main__":
    main()
