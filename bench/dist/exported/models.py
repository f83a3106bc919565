"""Training steps as people write them in JAX: a network of two layers with momentum, and a transformer with Adam."""

import functools

import jax
import jax.numpy as jnp
import numpy as np


def mlp(value_and_grad=jax.value_and_grad):
    """The step of a network, its arguments, and how many of them are state."""

    def loss(params, x, y):
        for p in params[:-1]:
            x = jax.nn.relu(x @ p["w"] + p["b"])
        return jnp.mean((x @ params[-1]["w"] + params[-1]["b"] - y) ** 2)

    def step(params, velocity, x, y):
        value, grads = value_and_grad(loss)(params, x, y)
        velocity = jax.tree.map(lambda v, g: 0.9 * v + g, velocity, grads)
        params = jax.tree.map(lambda p, v: p - 0.1 * v, params, velocity)
        return params, velocity, value

    r = np.random.default_rng(0)
    sizes = (128, 512, 128, 512, 128)
    params = [{"w": normal(r, m, n), "b": normal(r, n)} for m, n in zip(sizes, sizes[1:])]
    return step, (params, jax.tree.map(np.zeros_like, params), normal(r, 1024, 128), normal(r, 1024, 128)), 2


def transformer(value_and_grad=jax.value_and_grad, layers=2, d=256, heads=8, vocabulary=128, batch=16, length=32):
    """The step of a causal language model, its arguments, and how many of them are state."""

    def norm(x, scale):
        x = x - x.mean(-1, keepdims=True)
        return x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-5) * scale

    def attention(p, x):
        q, k, v = jnp.einsum("bld,tdhk->tbhlk", x, p["qkv"])
        scores = jnp.einsum("bhlk,bhmk->bhlm", q, k) / np.sqrt(d // heads).astype("float32")
        scores = jnp.where(jnp.tril(jnp.ones((length, length), bool)), scores, -1e9)
        return jnp.einsum("bhlk,hkd->bld", jax.nn.softmax(scores) @ v, p["o"])

    def model(params, tokens):
        x = params["embed"][tokens]
        for p in params["layers"]:
            x = x + attention(p, norm(x, p["scale1"]))
            x = x + jax.nn.gelu(norm(x, p["scale2"]) @ p["up"]) @ p["down"]
        return norm(x, params["scale"]) @ params["head"]

    def loss(params, tokens, labels):
        logits = jax.nn.log_softmax(model(params, tokens))
        return -jnp.mean(jnp.take_along_axis(logits, labels[..., None], -1))

    def step(params, state, tokens, labels):
        value, grads = value_and_grad(loss)(params, tokens, labels)
        m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, state["m"], grads)
        v = jax.tree.map(lambda v, g: 0.99 * v + 0.01 * g * g, state["v"], grads)
        params = jax.tree.map(lambda p, m, v: p - 1e-3 * m / (jnp.sqrt(v) + 1e-8), params, m, v)
        return params, {"m": m, "v": v}, value

    r = np.random.default_rng(0)
    n = functools.partial(normal, r)
    layer = lambda: {
        "qkv": n(3, d, heads, d // heads) / 8, "o": n(heads, d // heads, d), "up": n(d, 4 * d), "down": n(4 * d, d),
        "scale1": np.ones(d, "float32"), "scale2": np.ones(d, "float32"),
    }  # fmt: skip
    params = {"embed": n(vocabulary, d), "layers": [layer() for _ in range(layers)], "scale": np.ones(d, "float32"), "head": n(d, vocabulary)}
    zeros = jax.tree.map(np.zeros_like, params)
    text = r.integers(0, vocabulary, (batch, length + 1), "int32")
    return step, (params, {"m": zeros, "v": zeros}, text[:, :-1], text[:, 1:]), 2


def normal(r, *shape):
    return (r.standard_normal(shape) / np.sqrt(shape[0])).astype("float32")
