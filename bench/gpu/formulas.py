"""Each workload in PyTorch: the peer and, in float32, the reference for the results of every contestant."""
import torch
import torch.nn.functional as F


def gemm(w, x, wt):
    return torch.mm(x, wt)


def gemm_bytes(w, x, wt):
    if x.dtype == torch.float32:
        return torch.mm(x, wt.t())
    one = torch.ones((), device=x.device)
    return torch._scaled_mm(x, wt.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16)


def gemm_tf32(w, x, wt):
    return torch.mm(x, wt.t() if w.dims["along"] else wt)


def bias_gelu(w, x, wt, b):
    return F.gelu(torch.mm(x, wt) + b)


def bias_residual(w, x, wt, b, r):
    return torch.mm(x, wt) + b + r


def silu_gate(w, x, wt, u):
    return F.silu(torch.mm(x, wt)) * u


def adamw(w, x, dy, p, m, v):
    g = torch.mm(x.t(), dy).to(p.dtype)
    m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
    p = p - 0.001 * (m / (1 - 0.9**10) / ((v / (1 - 0.999**10)).sqrt() + 1e-8) + 0.1 * p)
    return p.to(x.dtype), p, m, v


def softmax(w, x):
    return torch.softmax(x, -1)


def layer_norm(w, x, s, c):
    return F.layer_norm(x, x.shape[-1:], s, c, 1e-5)


def rms_norm(w, x, s):
    return F.rms_norm(x, x.shape[-1:], s, 1e-5)


def cross_entropy(w, x, labels):
    return F.cross_entropy(x, labels)


def in_order(w, x):
    return tuple(torch.sort(x, dim=-1, stable=True))


def greatest(w, x):
    return torch.topk(x, w.dims["k"], -1).values


def permute(w, x, *r):
    t = x.permute(w.dims["order"])
    return t + r[0] if r else t.contiguous()


def embedding(w, t, i):
    return F.embedding(i, t)


def convolution(w, x, f):
    y = F.conv2d(x.permute(0, 3, 1, 2), f.permute(3, 2, 0, 1), padding=w.dims["k"] // 2)  # channels last, as they lie
    return y.permute(0, 2, 3, 1)


def attention(w, q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=w.dims["causal"], enable_gqa=k.shape[1] != q.shape[1])


def mlp(w, x, w1, b1, w2, b2):
    return F.linear(F.gelu(F.linear(x, w1.t(), b1)), w2.t(), b2)


def bert(w, x, w_qkv, b_qkv, w_out, b_out, s1, c1, w_up, b_up, w_down, b_down, s2, c2):
    n, u = w.dims["n"], w.dims["u"]
    b, l, h, p = x.shape[0], x.shape[1], w.dims["h"], w.dims["p"]
    qkv = F.linear(x, w_qkv.reshape(-1, n), b_qkv.reshape(-1)).view(b, l, 3, h, p)
    q, k, v = (t.transpose(1, 2) for t in qkv.unbind(2))
    a = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, l, h * p)
    t = F.layer_norm(F.linear(a, w_out.reshape(h * p, n).t(), b_out) + x, (n,), s1, c1, 1e-5)
    f = F.linear(F.gelu(F.linear(t, w_up.t(), b_up)), w_down.t(), b_down)
    return F.layer_norm(f + t, (n,), s2, c2, 1e-5)


def rotate(x, cos, sin):
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


def llama(w, x, cos, sin, s1, w_q, w_k, w_v, w_o, s2, w_gate, w_up, w_down):
    n = w.dims["n"]
    b, l = x.shape[:2]

    def heads(t, weight):
        return F.linear(t, weight.reshape(-1, n)).view(b, l, weight.shape[0], weight.shape[1]).transpose(1, 2)

    t = F.rms_norm(x, (n,), s1, 1e-5)
    q, k, v = rotate(heads(t, w_q), cos, sin), rotate(heads(t, w_k), cos, sin), heads(t, w_v)
    a = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=k.shape[1] != q.shape[1])
    r = torch.matmul(a.transpose(1, 2).reshape(b, l, -1), w_o.reshape(-1, n)) + x
    t = F.rms_norm(r, (n,), s2, 1e-5)
    return torch.matmul(F.silu(torch.matmul(t, w_gate)) * torch.matmul(t, w_up), w_down) + r


def step(w, forward=None):
    """Returns the workload as a function from inputs to results in order, and a function for the part that is not timed, the
    forward pass of a workload that consists of the backward pass alone, or None."""
    f = forward or (lambda *args: globals()[w.kind](w, *args))
    wrt, loss = w.wrt(), w.kind == "cross_entropy"

    def leaves(inputs):
        args = [t.detach() for t in (inputs if loss else inputs[:-1])]
        for i in wrt:
            args[i].requires_grad_(True)
        return args

    if w.mode == "forward":

        def run(inputs):
            with torch.no_grad():
                y = f(*inputs)
                return list(y) if isinstance(y, tuple) else [y]

        return run, None
    if w.mode == "both":

        def run(inputs):
            args = leaves(inputs)
            y = f(*args)
            return [y.detach(), *torch.autograd.grad(y, [args[i] for i in wrt], None if loss else inputs[-1])]

        return run, None

    def before(inputs):
        args = leaves(inputs)
        return f(*args), [args[i] for i in wrt], inputs[-1]

    def run(state):
        y, by, dy = state
        return list(torch.autograd.grad(y, by, dy, retain_graph=True))

    return run, before
