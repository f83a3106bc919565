"""Writes models and training steps of JAX as StableHLO, with random inputs and JAX's own results.

usage: jax_models.py FOLDER [NAME...]

For each model NAME: NAME.mlir, the program as JAX prints it; NAME.in/N.npy, its inputs; NAME.out/N.npy, its results;
NAME.json, what XLA counts (cost_analysis of the compiled program on the CPU).
"""

import json
import pathlib
import sys

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax

KEY = jax.random.PRNGKey(0)


class Attention(nn.Module):
    heads: int
    groups: int = 0  # heads of keys and values, if fewer
    causal: bool = False
    rotary: bool = False
    bias: bool = True

    @nn.compact
    def __call__(self, x):
        b, t, d = x.shape
        size, groups = d // self.heads, self.groups or self.heads

        def project(name, heads):
            return nn.Dense(heads * size, use_bias=self.bias, name=name)(x).reshape(b, t, heads, size)

        q, k, v = project("q", self.heads), project("k", groups), project("v", groups)
        if self.rotary:
            q, k = rotate(q), rotate(k)
        y = jax.nn.dot_product_attention(q, k, v, is_causal=self.causal)
        return nn.Dense(d, use_bias=self.bias, name="o")(y.reshape(b, t, d))


def rotate(x):
    t, d = x.shape[1], x.shape[-1]
    angle = jnp.arange(t)[:, None] / 10000 ** (jnp.arange(0, d, 2) / d)
    sin, cos = jnp.sin(angle)[None, :, None], jnp.cos(angle)[None, :, None]
    a, b = jnp.split(x, 2, -1)
    return jnp.concatenate([a * cos - b * sin, b * cos + a * sin], -1)


class Block(nn.Module):
    heads: int
    causal: bool = False
    first: bool = True  # normalize before, else after
    bias: bool = True  # in the attention

    @nn.compact
    def __call__(self, x):
        def mlp(y):
            return nn.Dense(x.shape[-1])(nn.gelu(nn.Dense(4 * x.shape[-1])(y)))

        attention = Attention(self.heads, causal=self.causal, bias=self.bias)
        if self.first:
            x = x + attention(nn.LayerNorm()(x))
            return x + mlp(nn.LayerNorm()(x))
        x = nn.LayerNorm()(x + attention(x))
        return nn.LayerNorm()(x + mlp(x))


class Encoder(nn.Module):  # BERT, GPT-2
    vocabulary: int
    d: int
    heads: int
    layers: int
    causal: bool = False
    bias: bool = True  # in attentions

    @nn.compact
    def __call__(self, ids):
        places = self.param("places", nn.initializers.normal(0.02), (ids.shape[1], self.d))
        embed = nn.Embed(self.vocabulary, self.d)
        x = embed(ids) + places
        for _ in range(self.layers):
            x = Block(self.heads, self.causal, first=self.causal, bias=self.bias)(x)
        return embed.attend(nn.LayerNorm()(x)) if self.causal else x


class Decoder(nn.Module):  # Llama, and with experts Mixtral
    vocabulary: int
    d: int
    heads: int
    groups: int
    layers: int
    inner: int
    experts: int = 0

    @nn.compact
    def __call__(self, ids):
        x = nn.Embed(self.vocabulary, self.d)(ids)
        for layer in range(self.layers):
            x = x + Attention(self.heads, self.groups, causal=True, rotary=True, bias=False)(nn.RMSNorm()(x))
            y = nn.RMSNorm()(x)
            x = x + (self.mixture(y, layer) if self.experts else self.gated(y))
        return nn.Dense(self.vocabulary, use_bias=False)(nn.RMSNorm()(x))

    def gated(self, y):
        def dense(n):
            return nn.Dense(n, use_bias=False)

        return dense(self.d)(nn.silu(dense(self.inner)(y)) * dense(self.inner)(y))

    def mixture(self, y, layer):
        def weight(name, *shape):
            return self.param(f"{name}{layer}", nn.initializers.lecun_normal(), shape)

        best, which = jax.lax.top_k(nn.Dense(self.experts, use_bias=False)(y), 2)
        share = jnp.sum(jax.nn.one_hot(which, self.experts) * jax.nn.softmax(best)[..., None], -2)
        gate, up = (jnp.einsum("btd,edf->btef", y, weight(n, self.experts, self.d, self.inner)) for n in "gu")
        down = weight("d", self.experts, self.inner, self.d)
        return jnp.einsum("btef,efd,bte->btd", nn.silu(gate) * up, down, share)


class ResNet(nn.Module):
    @nn.compact
    def __call__(self, x):
        def norm(y):
            return nn.BatchNorm(use_running_average=True)(y)

        def conv(y, n, size, stride=1):
            return nn.Conv(n, (size, size), (stride, stride), use_bias=False)(y)

        x = nn.max_pool(nn.relu(norm(conv(x, 64, 7, 2))), (3, 3), (2, 2), "SAME")
        for stage, blocks in enumerate((3, 4, 6, 3)):
            for i in range(blocks):
                n, stride = 64 << stage, 2 if stage and i == 0 else 1
                y = nn.relu(norm(conv(x, n, 1)))
                y = nn.relu(norm(conv(y, n, 3, stride)))
                y = norm(conv(y, 4 * n, 1))
                x = nn.relu((x if i else norm(conv(x, 4 * n, 1, stride))) + y)
        return nn.Dense(1000)(jnp.mean(x, (1, 2)))


class ViT(nn.Module):
    layers: int

    @nn.compact
    def __call__(self, x):
        x = nn.Conv(768, (16, 16), (16, 16))(x)
        x = x.reshape(x.shape[0], -1, x.shape[-1])
        token = self.param("token", nn.initializers.zeros, (1, 1, 768))
        x = jnp.concatenate([jnp.broadcast_to(token, (x.shape[0], 1, 768)), x], 1)
        x = x + self.param("places", nn.initializers.normal(0.02), x.shape[1:])
        for _ in range(self.layers):
            x = Block(12)(x)
        return nn.Dense(1000)(nn.LayerNorm()(x)[:, 0])


class Mixer(nn.Module):
    layers: int

    @nn.compact
    def __call__(self, x):
        def mlp(y, n):
            return nn.Dense(y.shape[-1])(nn.gelu(nn.Dense(n)(y)))

        x = nn.Conv(512, (32, 32), (32, 32))(x)
        x = x.reshape(x.shape[0], -1, x.shape[-1])
        for _ in range(self.layers):
            x = x + jnp.swapaxes(mlp(jnp.swapaxes(nn.LayerNorm()(x), 1, 2), 256), 1, 2)
            x = x + mlp(nn.LayerNorm()(x), 2048)
        return nn.Dense(1000)(jnp.mean(nn.LayerNorm()(x), 1))


class Whisper(nn.Module):  # its encoder
    layers: int

    @nn.compact
    def __call__(self, x):
        x = nn.gelu(nn.Conv(384, (3,))(x))
        x = nn.gelu(nn.Conv(384, (3,), (2,))(x))
        x = x + self.param("places", nn.initializers.normal(0.02), x.shape[1:])
        for _ in range(self.layers):
            x = Block(6)(x)
        return nn.LayerNorm()(x)


class UNet(nn.Module):
    @nn.compact
    def __call__(self, x):
        def double(y, n):
            for _ in range(2):
                y = nn.silu(nn.GroupNorm(8)(nn.Conv(n, (3, 3))(y)))
            return y

        kept = []
        for n in (32, 64, 128):
            x = double(x, n)
            kept.append(x)
            x = nn.avg_pool(x, (2, 2), (2, 2))
        x = double(x, 256)
        for n, other in zip((128, 64, 32), reversed(kept)):
            x = double(jnp.concatenate([nn.ConvTranspose(n, (2, 2), (2, 2))(x), other], -1), n)
        return nn.Conv(3, (1, 1))(x)


class CNN(nn.Module):
    @nn.compact
    def __call__(self, x):
        for n in (16, 32):
            x = nn.max_pool(nn.relu(nn.Conv(n, (3, 3))(x)), (2, 2), (2, 2))
        x = nn.relu(nn.Dense(64)(x.reshape(x.shape[0], -1)))
        return nn.Dense(10)(x)


def tokens(batch, length, vocabulary):
    return jax.random.randint(KEY, (batch, length), 0, vocabulary)


def forward(model, x):
    return model.apply, (model.init(KEY, x), x)


def training(model, x, y):
    """One step of AdamW: parameters, state and loss."""
    optimizer = optax.adamw(1e-3)
    parameters = model.init(KEY, x)

    def step(parameters, state, x, y):
        def loss(p):
            return optax.softmax_cross_entropy_with_integer_labels(model.apply(p, x), y).mean()

        value, gradient = jax.value_and_grad(loss)(parameters)
        updates, state = optimizer.update(gradient, state, parameters)
        return optax.apply_updates(parameters, updates), state, value

    return step, (parameters, optimizer.init(parameters), x, y)


def image(batch, size):
    return jax.random.normal(KEY, (batch, size, size, 3))


MODELS = {
    "bert": lambda: forward(Encoder(30522, 768, 12, 2), tokens(1, 128, 30522)),
    "gpt2": lambda: forward(Encoder(50257, 768, 12, 2, causal=True), tokens(1, 128, 50257)),
    "llama": lambda: forward(Decoder(4096, 512, 8, 2, 2, 1376), tokens(1, 128, 4096)),
    "mixtral": lambda: forward(Decoder(4096, 256, 8, 2, 2, 512, experts=8), tokens(1, 64, 4096)),
    "resnet50": lambda: forward(ResNet(), image(1, 224)),
    "vit": lambda: forward(ViT(2), image(1, 224)),
    "mixer": lambda: forward(Mixer(4), image(1, 224)),
    "whisper": lambda: forward(Whisper(2), jax.random.normal(KEY, (1, 1000, 80))),
    "unet": lambda: forward(UNet(), image(1, 64)),
    # A bias of the keys changes no attention: its gradient is rounding alone, of which AdamW makes whole steps.
    "gpt_step": lambda: training(Encoder(512, 128, 4, 2, causal=True, bias=False), tokens(4, 64, 512), tokens(4, 64, 512)),
    "llama_step": lambda: training(Decoder(512, 128, 4, 2, 2, 344), tokens(4, 64, 512), tokens(4, 64, 512)),
    "cnn_step": lambda: training(CNN(), image(8, 32), jnp.arange(8)),
}


def write(folder, name):
    function, arguments = MODELS[name]()
    lowered = jax.jit(function, keep_unused=True).lower(*arguments)
    compiled = lowered.compile()
    (folder / f"{name}.mlir").write_text(lowered.as_text())
    for kind, values in ("in", arguments), ("out", compiled(*arguments)):
        into = folder / f"{name}.{kind}"
        into.mkdir(exist_ok=True)
        for i, value in enumerate(jax.tree.leaves(values)):
            np.save(into / str(i), np.asarray(value))
    cost = compiled.cost_analysis()
    count = {"flop": cost.get("flops"), "bytes": cost.get("bytes accessed")}
    (folder / f"{name}.json").write_text(json.dumps(count))
    print(name, count, flush=True)


if __name__ == "__main__":
    target = pathlib.Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    for each in sys.argv[2:] or MODELS:
        write(target, each)
