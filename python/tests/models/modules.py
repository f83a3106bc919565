"""Models of Equinox, as people write them: modules, and a filtered step that trains them with Optax."""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax


class Attention(eqx.Module):
    q: eqx.nn.Linear
    k: eqx.nn.Linear
    v: eqx.nn.Linear
    out: eqx.nn.Linear
    rope: eqx.nn.RotaryPositionalEmbedding | None
    heads: int = eqx.field(static=True)
    causal: bool = eqx.field(static=True)

    def __init__(self, d, heads, causal, key, groups=None, rotary=False):
        k, size = jax.random.split(key, 4), d // heads
        groups = groups or heads
        self.q, self.out = eqx.nn.Linear(d, d, key=k[0]), eqx.nn.Linear(d, d, key=k[1])
        self.k, self.v = (eqx.nn.Linear(d, groups * size, use_bias=False, key=k) for k in k[2:])
        self.rope = eqx.nn.RotaryPositionalEmbedding(size) if rotary else None
        self.heads, self.causal = heads, causal

    def __call__(self, x):
        t, d = x.shape
        q, k, v = (jax.vmap(f)(x).reshape(t, -1, d // self.heads) for f in (self.q, self.k, self.v))
        if self.rope is not None:
            q, k = jax.vmap(self.rope, 1, 1)(q), jax.vmap(self.rope, 1, 1)(k)
        y = jax.nn.dot_product_attention(q, k, v, is_causal=self.causal)
        return jax.vmap(self.out)(y.reshape(t, d))


class Mlp(eqx.Module):
    up: eqx.nn.Linear
    down: eqx.nn.Linear

    def __init__(self, d, key):
        a, b = jax.random.split(key)
        self.up, self.down = eqx.nn.Linear(d, 4 * d, key=a), eqx.nn.Linear(4 * d, d, key=b)

    def __call__(self, x):
        return self.down(jax.nn.gelu(self.up(x)))


class SwiGlu(eqx.Module):
    gate: eqx.nn.Linear
    up: eqx.nn.Linear
    down: eqx.nn.Linear

    def __init__(self, d, key):
        k = jax.random.split(key, 3)
        self.gate, self.up = (eqx.nn.Linear(d, 352, use_bias=False, key=k) for k in k[:2])
        self.down = eqx.nn.Linear(352, d, use_bias=False, key=k[2])

    def __call__(self, x):
        return self.down(jax.nn.silu(self.gate(x)) * self.up(x))


class Experts(eqx.Module):
    router: eqx.nn.Linear
    experts: SwiGlu  # of all, in an additional dimension

    def __init__(self, d, key, count=4):
        a, b = jax.random.split(key)
        self.router = eqx.nn.Linear(d, count, use_bias=False, key=a)
        self.experts = eqx.filter_vmap(lambda key: SwiGlu(d, key))(jax.random.split(b, count))

    def __call__(self, x):
        weights, which = jax.lax.top_k(jax.nn.softmax(self.router(x)), 2)
        outputs = eqx.filter_vmap(lambda expert: expert(x))(self.experts)
        return (weights / weights.sum()) @ outputs[which]


class Block(eqx.Module):
    norm1: eqx.Module
    norm2: eqx.Module
    attention: Attention
    mlp: eqx.Module

    def __init__(self, norm, attention, mlp):
        self.norm1, self.norm2, self.attention, self.mlp = norm, norm, attention, mlp

    def __call__(self, x):
        x = x + self.attention(jax.vmap(self.norm1)(x))
        return x + jax.vmap(self.mlp)(jax.vmap(self.norm2)(x))


class Decoder(eqx.Module):  # nanoGPT, Llama, Mixtral
    embed: eqx.nn.Embedding
    positions: jax.Array | None
    blocks: list[Block]
    norm: eqx.Module
    head: eqx.nn.Linear

    def __init__(self, key, kind, d=128, layers=2, vocabulary=512, length=64):
        k = jax.random.split(key, 2 * layers + 3)
        self.embed = eqx.nn.Embedding(vocabulary, d, key=k[0])
        self.positions = 0.02 * jax.random.normal(k[1], (length, d)) if kind == "gpt" else None
        mlp = {"gpt": Mlp, "llama": SwiGlu, "mixtral": Experts}[kind]
        norm = eqx.nn.LayerNorm(d) if kind == "gpt" else eqx.nn.RMSNorm(d)
        options = {} if kind == "gpt" else {"groups": 2, "rotary": True}
        self.blocks = [Block(norm, Attention(d, 4, True, a, **options), mlp(d, b)) for a, b in zip(k[3::2], k[4::2])]
        self.norm, self.head = norm, eqx.nn.Linear(d, vocabulary, use_bias=False, key=k[2])

    def __call__(self, ids):
        x = jax.vmap(self.embed)(ids)
        if self.positions is not None:
            x = x + self.positions
        for block in self.blocks:
            x = block(x)
        return jax.vmap(self.head)(jax.vmap(self.norm)(x))


class ViT(eqx.Module):
    patch: eqx.nn.Conv2d
    positions: jax.Array
    blocks: list[Block]
    norm: eqx.nn.LayerNorm
    head: eqx.nn.Linear

    def __init__(self, key, d=128, layers=2):
        k = jax.random.split(key, 2 * layers + 3)
        self.patch, self.head = eqx.nn.Conv2d(3, d, 8, 8, key=k[0]), eqx.nn.Linear(d, 10, key=k[1])
        self.positions, self.norm = 0.02 * jax.random.normal(k[2], (16, d)), eqx.nn.LayerNorm(d)
        self.blocks = [Block(self.norm, Attention(d, 4, False, a), Mlp(d, b)) for a, b in zip(k[3::2], k[4::2])]

    def __call__(self, image):
        x = self.patch(image)
        x = x.reshape(x.shape[0], -1).T + self.positions
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x.mean(0)))


class Residual(eqx.Module):
    conv1: eqx.nn.Conv2d
    conv2: eqx.nn.Conv2d
    norm1: eqx.nn.GroupNorm
    norm2: eqx.nn.GroupNorm
    skip: eqx.nn.Conv2d | None

    def __init__(self, before, width, key):
        k, stride = jax.random.split(key, 3), 1 if before == width else 2
        self.conv1 = eqx.nn.Conv2d(before, width, 3, stride, 1, key=k[0])
        self.conv2 = eqx.nn.Conv2d(width, width, 3, padding=1, key=k[1])
        self.norm1, self.norm2 = eqx.nn.GroupNorm(8, width), eqx.nn.GroupNorm(8, width)
        self.skip = eqx.nn.Conv2d(before, width, 1, stride, key=k[2]) if stride == 2 else None

    def __call__(self, x):
        h = jax.nn.relu(self.norm1(self.conv1(x)))
        h = self.norm2(self.conv2(h))
        return jax.nn.relu(h + (x if self.skip is None else self.skip(x)))


class ResNet(eqx.Module):
    stem: eqx.nn.Conv2d
    blocks: list[Residual]
    head: eqx.nn.Linear

    def __init__(self, key, widths=(16, 32, 64)):
        k = jax.random.split(key, len(widths) + 2)
        self.stem, self.head = eqx.nn.Conv2d(3, widths[0], 3, padding=1, key=k[0]), eqx.nn.Linear(widths[-1], 10, key=k[1])
        self.blocks = [Residual(a, b, k) for a, b, k in zip((widths[0], *widths), widths, k[2:])]

    def __call__(self, image):
        x = jax.nn.relu(self.stem(image))
        for block in self.blocks:
            x = block(x)
        return self.head(x.mean((1, 2)))


class UNet(eqx.Module):
    down: list[eqx.nn.Conv2d]
    up: list[eqx.nn.ConvTranspose2d]
    join: list[eqx.nn.Conv2d]
    pool: eqx.nn.MaxPool2d
    last: eqx.nn.Conv2d

    def __init__(self, key, widths=(16, 32, 64)):
        k = iter(jax.random.split(key, 16))
        self.down = [eqx.nn.Conv2d(a, b, 3, padding=1, key=next(k)) for a, b in zip((3, *widths), widths)]
        back = list(zip(widths[::-1], widths[-2::-1]))
        self.up = [eqx.nn.ConvTranspose2d(a, b, 2, 2, key=next(k)) for a, b in back]
        self.join = [eqx.nn.Conv2d(2 * b, b, 3, padding=1, key=next(k)) for _, b in back]
        self.pool, self.last = eqx.nn.MaxPool2d(2, 2), eqx.nn.Conv2d(widths[0], 3, 1, key=next(k))

    def __call__(self, x):
        kept = []
        for i, conv in enumerate(self.down):
            if i:
                kept.append(x)
                x = self.pool(x)
            x = jax.nn.silu(conv(x))
        for up, join in zip(self.up, self.join):
            x = jax.nn.silu(join(jnp.concatenate([up(x), kept.pop()])))
        return self.last(x)


def cross_entropy(model, x, y):
    return optax.softmax_cross_entropy_with_integer_labels(jax.vmap(model)(x), y).mean()


def squares(model, x, y):
    return jnp.mean((jax.vmap(model)(x) - y) ** 2)


def training(model, loss, x, y):
    optimizer = optax.adamw(1e-3)

    @eqx.filter_jit
    def step(model, state, x, y):
        value, grads = eqx.filter_value_and_grad(loss)(model, x, y)
        changes, state = optimizer.update(grads, state, eqx.filter(model, eqx.is_inexact_array))
        return eqx.apply_updates(model, changes), state, value

    return step, (model, optimizer.init(eqx.filter(model, eqx.is_inexact_array)), x, y)


KEY, IDS, IMAGES = jax.random.key(0), jnp.zeros((4, 64), int), jnp.zeros((8, 3, 32, 32))
LABELS = jnp.zeros(8, int)
MODELS = {
    "nanoGPT": lambda: training(Decoder(KEY, "gpt"), cross_entropy, IDS, IDS),
    "Llama": lambda: training(Decoder(KEY, "llama"), cross_entropy, IDS, IDS),
    "ViT": lambda: training(ViT(KEY), cross_entropy, IMAGES, LABELS),
    "ResNet": lambda: training(ResNet(KEY), cross_entropy, IMAGES, LABELS),
    "U-Net": lambda: training(UNet(KEY), squares, IMAGES, IMAGES),
    "Mixtral": lambda: training(Decoder(KEY, "mixtral"), cross_entropy, IDS, IDS),
}
