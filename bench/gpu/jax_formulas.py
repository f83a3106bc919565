"""Each workload in JAX."""
import jax
import jax.numpy as jnp


def gemm(w, x, wt):
    return x @ wt


def gemm_bytes(w, x, wt):
    return jnp.einsum("mk,nk->mn", x, wt, preferred_element_type=jnp.float32).astype(jnp.bfloat16)


def gemm_tf32(w, x, wt):  # XLA's default precision on GPUs is TF32
    return x @ (wt.T if w.dims["along"] else wt)


def bias_gelu(w, x, wt, b):
    return jax.nn.gelu(x @ wt + b, approximate=False)


def bias_residual(w, x, wt, b, r):
    return x @ wt + b + r


def silu_gate(w, x, wt, u):
    return jax.nn.silu(x @ wt) * u


def adamw(w, x, dy, p, m, v):
    g = (x.T @ dy).astype(p.dtype)
    m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
    p = p - 0.001 * (m / (1 - 0.9**10) / (jnp.sqrt(v / (1 - 0.999**10)) + 1e-8) + 0.1 * p)
    return p.astype(x.dtype), p, m, v


def softmax(w, x):
    return jax.nn.softmax(x.astype(jnp.float32), -1).astype(x.dtype)


def layer_norm(w, x, s, c):
    t = x.astype(jnp.float32)
    t = t - t.mean(-1, keepdims=True)
    t = t * jax.lax.rsqrt((t * t).mean(-1, keepdims=True) + 1e-5)
    return (t * s.astype(jnp.float32) + c.astype(jnp.float32)).astype(x.dtype)


def rms_norm(w, x, s):
    t = x.astype(jnp.float32)
    t = t * jax.lax.rsqrt((t * t).mean(-1, keepdims=True) + 1e-5)
    return (t * s.astype(jnp.float32)).astype(x.dtype)


def cross_entropy(w, x, labels):
    rows = jax.nn.log_softmax(x.astype(jnp.float32), -1)
    return -jnp.take_along_axis(rows, labels[:, None], 1).mean().astype(x.dtype)


def dot_product(q, k, v, causal):
    """The workloads have heads before rows; JAX expects them after. On GPUs it uses cuDNN's kernel."""
    q, k, v = (t.swapaxes(1, 2) for t in (q, k, v))
    how = "cudnn" if jax.default_backend() == "gpu" else "xla"
    return jax.nn.dot_product_attention(q, k, v, is_causal=causal, implementation=how).swapaxes(1, 2)


def in_order(w, x):
    places = jax.lax.broadcasted_iota(jnp.int32, x.shape, 1)
    return tuple(jax.lax.sort((x, places), dimension=1, num_keys=1, is_stable=True))


def greatest(w, x):
    return jax.lax.top_k(x, w.dims["k"])[0]


def permute(w, x, *r):
    t = jnp.transpose(x, w.dims["order"])
    return t + r[0] if r else t


def embedding(w, t, i):
    return t[i]


def convolution(w, x, f):
    return jax.lax.conv_general_dilated(x, f, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def attention(w, q, k, v):
    return dot_product(q, k, v, w.dims["causal"])


def mlp(w, x, w1, b1, w2, b2):
    return jax.nn.gelu(x @ w1 + b1, approximate=False) @ w2 + b2


def bert(w, x, w_qkv, b_qkv, w_out, b_out, s1, c1, w_up, b_up, w_down, b_down, s2, c2):
    q, k, v = jnp.einsum("bln,chpn->cbhlp", x, w_qkv) + b_qkv[:, None, :, None, :]
    a = dot_product(q, k, v, False)
    t = layer_norm(w, jnp.einsum("bhlp,hpn->bln", a, w_out) + b_out + x, s1, c1)
    f = jax.nn.gelu(t @ w_up + b_up, approximate=False) @ w_down + b_down
    return layer_norm(w, f + t, s2, c2)


def rotate(x, cos, sin):
    a, b = jnp.split(x, 2, -1)
    return jnp.concatenate([a * cos - b * sin, b * cos + a * sin], -1)


def llama(w, x, cos, sin, s1, w_q, w_k, w_v, w_o, s2, w_gate, w_up, w_down):
    t = rms_norm(w, x, s1)
    q, k, v = (jnp.einsum("bne,hpe->bhnp", t, weight) for weight in (w_q, w_k, w_v))
    a = dot_product(rotate(q, cos, sin), rotate(k, cos, sin), v, True)
    r = jnp.einsum("bhnp,hpe->bne", a, w_o) + x
    t = rms_norm(w, r, s2)
    return (jax.nn.silu(t @ w_gate) * (t @ w_up)) @ w_down + r


def step(w):
    """Returns the workload as a function from inputs to results in order."""
    f = lambda *args: globals()[w.kind](w, *args)
    wrt, loss = w.wrt(), w.kind == "cross_entropy"
    if w.mode == "forward":
        return lambda *inputs: list(y) if isinstance(y := f(*inputs), tuple) else [y]

    def run(*inputs):
        args, dy = (inputs, None) if loss else (inputs[:-1], inputs[-1])
        chosen = [args[i] for i in wrt]

        def of(*by):
            full = list(args)
            for i, t in zip(wrt, by):
                full[i] = t
            return f(*full)

        y, back = jax.vjp(of, *chosen)
        grads = back(jnp.ones_like(y) if loss else dy)
        return list(grads) if w.mode == "backward" else [y, *grads]

    return run
