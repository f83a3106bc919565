"""Training steps in JAX, as people write them: plain, with Flax and with Equinox. STEPS has for each name a function and its arguments."""

import functools
import math

import equinox as eqx
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax

f32, bf16 = jnp.float32, jnp.bfloat16
shape = jax.ShapeDtypeStruct
tokens = shape((8, 256), jnp.int32)


def weights(*sizes, dtype=f32):
    return shape(sizes, dtype)


def trained(loss, params, *batch, opt=optax.adamw(3e-4)):
    """A step of loss(params, *batch)."""

    @jax.jit
    def step(params, state, *batch):
        value, grads = jax.value_and_grad(loss)(params, *batch)
        changes, state = opt.update(grads, state, params)
        return optax.apply_updates(params, changes), state, value

    return step, (params, jax.eval_shape(opt.init, params), *batch)


def cross_entropy(logits, labels):
    return optax.softmax_cross_entropy_with_integer_labels(logits.astype(f32), labels).mean()


# nanoGPT in plain JAX.
D, H, VOCABULARY = 256, 8, 8192


def layer_norm(x, scale, bias):
    mean = x.mean(-1, keepdims=True)
    var = x.var(-1, keepdims=True)
    return (x - mean) / jnp.sqrt(var + 1e-5) * scale + bias


def causal_attention(x, p):
    b, t, d = x.shape
    q, k, v = jnp.split(x @ p["qkv"], 3, -1)
    q, k, v = (y.reshape(b, t, H, d // H).transpose(0, 2, 1, 3) for y in (q, k, v))
    att = q @ k.swapaxes(-1, -2) / math.sqrt(d // H)
    att = jnp.where(jnp.tril(jnp.ones((t, t), bool)), att, -jnp.inf)
    att = jax.nn.softmax(att, axis=-1)
    y = att @ v
    return y.transpose(0, 2, 1, 3).reshape(b, t, d) @ p["out"]


def gpt(params, ids):
    x = params["embed"][ids] + params["places"]
    for p in params["blocks"]:
        x = x + causal_attention(layer_norm(x, *p["norm1"]), p)
        x = x + jax.nn.gelu(layer_norm(x, *p["norm2"]) @ p["up"]) @ p["down"]
    return layer_norm(x, *params["norm"]) @ params["embed"].T


def gpt_params():
    norm = (weights(D), weights(D))
    block = {"norm1": norm, "norm2": norm, "qkv": weights(D, 3 * D), "out": weights(D, D), "up": weights(D, 4 * D), "down": weights(4 * D, D)}
    return {"embed": weights(VOCABULARY, D), "places": weights(256, D), "blocks": [block] * 2, "norm": norm}


def gpt_step():
    return trained(lambda p, ids, labels: cross_entropy(gpt(p, ids), labels), gpt_params(), tokens, tokens)


def data_parallel_step():
    """nanoGPT in bfloat16 on eight devices: each has a part of the batch, and gradients are averaged in float32."""
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:8]), ("data",))
    spec = jax.sharding.PartitionSpec

    def device(params, ids, labels):
        half = jax.tree.map(lambda p: p.astype(bf16), params)
        value, grads = jax.value_and_grad(lambda p: cross_entropy(gpt(p, ids), labels))(half)
        grads = jax.tree.map(lambda g: jax.lax.pmean(g.astype(f32), "data"), grads)
        return jax.tree.map(lambda p, g: p - 1e-3 * g, params, grads), jax.lax.pmean(value, "data")

    step = jax.shard_map(device, mesh=mesh, in_specs=(spec(), spec("data"), spec("data")), out_specs=(spec(), spec()), check_vma=False)
    return jax.jit(step), (gpt_params(), tokens, tokens)


# Llama in plain JAX, in bfloat16: the tables of angles are NumPy's.
ANGLES = np.outer(np.arange(256), 1.0 / 10000 ** (np.arange(0, 32, 2) / 32))
COS, SIN = np.cos(ANGLES).astype(np.float32), np.sin(ANGLES).astype(np.float32)


def rms_norm(x, scale):
    h = x.astype(f32)
    h = h * jax.lax.rsqrt(jnp.mean(h**2, -1, keepdims=True) + 1e-6)
    return h.astype(x.dtype) * scale


def rotate(x):
    a, b = jnp.split(x, 2, -1)
    cos, sin = COS[:, None], SIN[:, None]
    return jnp.concatenate([a * cos - b * sin, b * cos + a * sin], -1).astype(x.dtype)


def grouped_attention(x, p):
    b, t, d = x.shape
    q, k, v = (jnp.dot(x, p[name]).reshape(b, t, -1, 32) for name in ("q", "k", "v"))
    q, k = rotate(q), rotate(k)
    k, v = (jnp.repeat(y, q.shape[2] // k.shape[2], axis=2) for y in (k, v))
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / math.sqrt(32)
    scores = jnp.where(jnp.tril(jnp.ones((t, t), bool)), scores, -1e10)
    probs = jax.nn.softmax(scores.astype(f32), axis=-1).astype(v.dtype)
    return jnp.einsum("bhqk,bkhd->bqhd", probs, v).reshape(b, t, d) @ p["o"]


def mlp(x, p):
    return (jax.nn.silu(x @ p["gate"]) * (x @ p["up"])) @ p["down"]


def llama(params, ids, feed_forward=mlp):
    x = params["embed"][ids]
    for p in params["blocks"]:
        x = x + grouped_attention(rms_norm(x, p["norm1"]), p)
        x = x + feed_forward(rms_norm(x, p["norm2"]), p)
    return rms_norm(x, params["norm"]) @ params["head"]


def llama_params(experts=()):
    w = functools.partial(weights, dtype=bf16)
    block = {"norm1": w(D), "norm2": w(D), "q": w(D, D), "k": w(D, D // 4), "v": w(D, D // 4), "o": w(D, D), "router": w(D, 8)}
    block |= {"gate": w(*experts, D, 704), "up": w(*experts, D, 704), "down": w(*experts, 704, D)}
    return {"embed": w(VOCABULARY, D), "blocks": [block] * 2, "norm": w(D), "head": w(D, VOCABULARY)}


def llama_step():
    return trained(lambda p, ids, labels: cross_entropy(llama(p, ids), labels), llama_params(), tokens, tokens)


def mixture(x, p):
    """Mixtral: every token to two of eight experts, by one-hot rows."""
    b, t, d = x.shape
    x = x.reshape(-1, d)
    best, which = jax.lax.top_k(x @ p["router"], 2)
    chosen = jax.nn.one_hot(which, 8, dtype=x.dtype)
    share = jnp.einsum("nke,nk->ne", chosen, jax.nn.softmax(best.astype(f32)).astype(x.dtype))
    h = jax.nn.silu(jnp.einsum("nd,edf->enf", x, p["gate"])) * jnp.einsum("nd,edf->enf", x, p["up"])
    return jnp.einsum("enf,efd,ne->nd", h, p["down"], share).reshape(b, t, d)


def mixtral_step():
    return trained(lambda p, ids, labels: cross_entropy(llama(p, ids, mixture), labels), llama_params((8,)), tokens, tokens)


def flax_step(model, images, labels, loss):
    variables = jax.eval_shape(functools.partial(model.init, train=True), jax.random.key(0), images)
    params, rest = variables["params"], {k: v for k, v in variables.items() if k != "params"}
    opt = optax.sgd(0.1, momentum=0.9)

    @jax.jit
    def step(params, rest, state, images, labels):
        def measure(params):
            logits, new = model.apply({"params": params, **rest}, images, train=True, mutable=list(rest))
            return loss(logits, labels), new

        (value, new), grads = jax.value_and_grad(measure, has_aux=True)(params)
        changes, state = opt.update(grads, state, params)
        return optax.apply_updates(params, changes), new, state, value

    return step, (params, rest, jax.eval_shape(opt.init, params), images, labels)


class NeoXBlock(nn.Module):
    """GPT-NeoX: attention and MLP side by side, each with a norm of its own."""

    @nn.compact
    def __call__(self, x):
        a = nn.MultiHeadDotProductAttention(8)(nn.LayerNorm()(x), mask=nn.make_causal_mask(x[..., 0]))
        h = nn.Dense(4 * D)(nn.LayerNorm()(x))
        return x + a + nn.Dense(D)(nn.gelu(h))


class NeoX(nn.Module):
    @nn.compact
    def __call__(self, ids, train):
        x = nn.Embed(VOCABULARY, D)(ids)
        for _ in range(2):
            x = NeoXBlock()(x)
        return nn.Dense(VOCABULARY, use_bias=False)(nn.LayerNorm()(x))


class ViT(nn.Module):
    @nn.compact
    def __call__(self, x, train):
        x = nn.Conv(192, (16, 16), (16, 16))(x)
        x = x.reshape(x.shape[0], -1, 192)
        x = x + self.param("places", nn.initializers.normal(0.02), (1, x.shape[1], 192))
        for _ in range(2):
            y = nn.LayerNorm()(x)
            x = x + nn.MultiHeadDotProductAttention(3)(y, y)
            x = x + nn.Dense(192)(nn.gelu(nn.Dense(768)(nn.LayerNorm()(x))))
        return nn.Dense(1000)(nn.LayerNorm()(x).mean(1))


class ResNet(nn.Module):
    @nn.compact
    def __call__(self, x, train):
        norm = functools.partial(nn.BatchNorm, use_running_average=not train)
        x = nn.relu(norm()(nn.Conv(64, (7, 7), (2, 2), use_bias=False)(x)))
        x = nn.max_pool(x, (3, 3), (2, 2), "SAME")
        for stage in range(4):
            n, stride = 64 << stage, 2 if stage else 1
            y = nn.relu(norm()(nn.Conv(n, (3, 3), (stride, stride), use_bias=False)(x)))
            y = norm()(nn.Conv(n, (3, 3), use_bias=False)(y))
            x = nn.relu(y + norm()(nn.Conv(n, (1, 1), (stride, stride), use_bias=False)(x)))
        return nn.Dense(1000)(x.mean((1, 2)))


class UNet(eqx.Module):
    """Of Equinox: group norms, skip connections, and attention at the bottom."""

    first: eqx.nn.Conv2d
    down: list
    middle: eqx.nn.MultiheadAttention
    up: list
    last: eqx.nn.Conv2d

    def __init__(self, key, sizes=(32, 64, 128)):
        keys = iter(jax.random.split(key, 16))
        self.first = eqx.nn.Conv2d(3, sizes[0], 3, padding=1, key=next(keys))
        pairs = list(zip(sizes, sizes[1:]))
        self.down = [(eqx.nn.GroupNorm(8, a), eqx.nn.Conv2d(a, b, 3, 2, padding=1, key=next(keys))) for a, b in pairs]
        self.middle = eqx.nn.MultiheadAttention(4, sizes[-1], key=next(keys))
        self.up = [(eqx.nn.GroupNorm(8, b), eqx.nn.ConvTranspose2d(b, a, 4, 2, padding=1, key=next(keys))) for a, b in pairs[::-1]]
        self.last = eqx.nn.Conv2d(sizes[0], 3, 1, key=next(keys))

    def __call__(self, x):
        x = self.first(x)
        kept = []
        for norm, conv in self.down:
            kept.append(x)
            x = conv(jax.nn.silu(norm(x)))
        rows = x.reshape(x.shape[0], -1).T
        x = x + self.middle(rows, rows, rows).T.reshape(x.shape)
        for norm, conv in self.up:
            x = conv(jax.nn.silu(norm(x))) + kept.pop()
        return self.last(x)


def unet_step():
    model = eqx.filter_eval_shape(UNet, jax.random.key(0))
    params, static = eqx.partition(model, lambda x: isinstance(x, jax.ShapeDtypeStruct))
    images = shape((8, 3, 32, 32), f32)

    def loss(params, images, noise):
        return jnp.mean((jax.vmap(eqx.combine(params, static))(images + noise) - noise) ** 2)

    return trained(loss, params, images, images)


images, classes = shape((8, 224, 224, 3), f32), shape((8,), jnp.int32)
STEPS = {
    "nanogpt": gpt_step,
    "llama": llama_step,
    "mixtral": mixtral_step,
    "data_parallel": data_parallel_step,
    "neox": lambda: flax_step(NeoX(), tokens, tokens, cross_entropy),
    "vit": lambda: flax_step(ViT(), images, classes, cross_entropy),
    "resnet": lambda: flax_step(ResNet(), images, classes, cross_entropy),
    "unet": unet_step,
}
