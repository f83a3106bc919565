"""Models in plain JAX, as people write them: functions of parameters, and steps that train them."""

import jax
import jax.numpy as jnp


def dense(key, inputs, outputs):
    return {"w": inputs**-0.5 * jax.random.normal(key, (inputs, outputs)), "b": jnp.zeros(outputs)}


def linear(p, x):
    return x @ p["w"] + p["b"]


def layer_norm(p, x):
    mean = x.mean(-1, keepdims=True)
    return p["scale"] * (x - mean) * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-5) + p["bias"]


def rms_norm(scale, x):
    return scale * x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6)


def scales(d):
    return {"scale": jnp.ones(d), "bias": jnp.zeros(d)}


def cross_entropy(logits, labels):
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), labels[..., None], -1).mean()


def attention(q, k, v, causal=True):
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / q.shape[-1] ** 0.5
    if causal:
        mask = jnp.tril(jnp.ones(scores.shape[-2:], bool))
        scores = jnp.where(mask, scores, -jnp.inf)
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), v)


# nanoGPT, its layers one scan


def gpt_block(x, p, heads=4, causal=True):
    b, t, d = x.shape
    q, k, v = jnp.split(linear(p["qkv"], layer_norm(p["norm1"], x)).reshape(b, t, 3 * heads, d // heads), 3, 2)
    x = x + linear(p["out"], attention(q, k, v, causal).reshape(b, t, d))
    return x + linear(p["down"], jax.nn.gelu(linear(p["up"], layer_norm(p["norm2"], x))))


def gpt_layer(key, d):
    k = jax.random.split(key, 4)
    return {
        **{"qkv": dense(k[0], d, 3 * d), "out": dense(k[1], d, d), "up": dense(k[2], d, 4 * d), "down": dense(k[3], 4 * d, d)},
        **{"norm1": scales(d), "norm2": scales(d)},
    }


def gpt_init(key, layers=4, d=128, vocabulary=512, length=64):
    k = jax.random.split(key, 3)
    return {
        "tokens": 0.02 * jax.random.normal(k[0], (vocabulary, d)),
        "positions": 0.02 * jax.random.normal(k[1], (length, d)),
        "layers": jax.vmap(lambda k: gpt_layer(k, d))(jax.random.split(k[2], layers)),
        "norm": scales(d),
    }


def gpt(p, ids):
    x = p["tokens"][ids] + p["positions"]
    x, _ = jax.lax.scan(lambda x, layer: (gpt_block(x, layer), None), x, p["layers"])
    return layer_norm(p["norm"], x) @ p["tokens"].T


# Llama, and with experts Mixtral


def rotate(x):
    t, d = x.shape[1], x.shape[-1]
    angle = jnp.arange(t)[:, None] / 10000 ** (jnp.arange(0, d, 2) / d)
    sin, cos = jnp.sin(angle)[None, :, None], jnp.cos(angle)[None, :, None]
    a, b = jnp.split(x, 2, -1)
    return jnp.concatenate([a * cos - b * sin, b * cos + a * sin], -1)


def swiglu(p, x):
    return (jax.nn.silu(x @ p["gate"]) * (x @ p["up"])) @ p["down"]


def experts(p, x, chosen=2):
    """Each token goes to two experts; all compute all tokens, as small models do."""
    weights, which = jax.lax.top_k(jax.nn.softmax(x @ p["router"]), chosen)
    weights = weights / weights.sum(-1, keepdims=True)
    share = (jax.nn.one_hot(which, p["router"].shape[-1]) * weights[..., None]).sum(-2)
    outputs = jax.vmap(swiglu, (0, None))(p["experts"], x)
    return jnp.einsum("ebtd,bte->btd", outputs, share)


def llama_init(key, layers=2, d=128, hidden=352, groups=2, vocabulary=512, count=0):
    def weight(key, *sizes):
        return sizes[-2] ** -0.5 * jax.random.normal(key, sizes)

    def mlp(key, *lead):
        k = jax.random.split(key, 3)
        return {"gate": weight(k[0], *lead, d, hidden), "up": weight(k[1], *lead, d, hidden), "down": weight(k[2], *lead, hidden, d)}

    def layer(key):
        k = jax.random.split(key, 6)
        return {
            **{"q": weight(k[0], d, d), "k": weight(k[1], d, 32 * groups), "v": weight(k[2], d, 32 * groups), "o": weight(k[3], d, d)},
            **{"norm1": jnp.ones(d), "norm2": jnp.ones(d)},
            "mlp": {"router": weight(k[4], d, count), "experts": mlp(k[5], count)} if count else mlp(k[5]),
        }

    k = jax.random.split(key, layers + 2)
    return {
        **{"embed": weight(k[0], vocabulary, d), "head": weight(k[1], d, vocabulary), "norm": jnp.ones(d)},
        "layers": [layer(k) for k in k[2:]],
    }


def llama(p, ids):
    x = p["embed"][ids]
    b, t, d = x.shape
    for layer in p["layers"]:
        h = rms_norm(layer["norm1"], x)
        q, k, v = ((h @ layer[name]).reshape(b, t, -1, 32) for name in "qkv")
        repeats = q.shape[2] // k.shape[2]
        k, v = jnp.repeat(rotate(k), repeats, 2), jnp.repeat(v, repeats, 2)
        x = x + attention(rotate(q), k, v).reshape(b, t, d) @ layer["o"]
        h = rms_norm(layer["norm2"], x)
        x = x + (experts(layer["mlp"], h) if "router" in layer["mlp"] else swiglu(layer["mlp"], h))
    return rms_norm(p["norm"], x) @ p["head"]


# Images


def vit_init(key, layers=2, d=128, patch=8, places=16, classes=10):
    k = jax.random.split(key, layers + 3)
    return {
        **{"patch": dense(k[0], 3 * patch**2, d), "head": dense(k[1], d, classes), "norm": scales(d)},
        **{"class": jnp.zeros((1, 1, d)), "positions": 0.02 * jax.random.normal(k[2], (places + 1, d))},
        "layers": [gpt_layer(k, d) for k in k[3:]],
    }


def vit(p, images, patch=8):
    b, h, w, c = images.shape
    x = images.reshape(b, h // patch, patch, w // patch, patch, c).transpose(0, 1, 3, 2, 4, 5).reshape(b, -1, c * patch**2)
    x = linear(p["patch"], x)
    x = jnp.concatenate([jnp.broadcast_to(p["class"], (b, 1, x.shape[-1])), x], 1) + p["positions"]
    for layer in p["layers"]:
        x = gpt_block(x, layer, causal=False)
    return linear(p["head"], layer_norm(p["norm"], x[:, 0]))


def conv(w, x, stride=1):
    return jax.lax.conv_general_dilated(x, w, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def kernel(key, size, inputs, outputs):
    return (2 / (size**2 * inputs)) ** 0.5 * jax.random.normal(key, (size, size, inputs, outputs))


def batch_norm(p, x):
    mean, var = x.mean((0, 1, 2)), x.var((0, 1, 2))
    return (x - mean) * jax.lax.rsqrt(var + 1e-5) * p["scale"] + p["bias"]


def resnet_init(key, widths=(16, 32, 64), classes=10):
    keys = iter(jax.random.split(key, 32))
    p, before = {"stem": kernel(next(keys), 3, 3, widths[0]), "norm": scales(widths[0]), "blocks": []}, widths[0]
    for width in widths:
        block = {"conv1": kernel(next(keys), 3, before, width), "conv2": kernel(next(keys), 3, width, width)}
        block |= {"norm1": scales(width), "norm2": scales(width)}
        if width != before:
            block["skip"] = kernel(next(keys), 1, before, width)
        p["blocks"].append(block)
        before = width
    return {**p, "head": dense(next(keys), before, classes)}


def resnet(p, images):
    x = jax.nn.relu(batch_norm(p["norm"], conv(p["stem"], images)))
    for block in p["blocks"]:
        stride = 2 if "skip" in block else 1
        h = jax.nn.relu(batch_norm(block["norm1"], conv(block["conv1"], x, stride)))
        h = batch_norm(block["norm2"], conv(block["conv2"], h))
        x = jax.nn.relu(h + (conv(block["skip"], x, stride) if "skip" in block else x))
    return linear(p["head"], x.mean((1, 2)))


def unet_init(key, width=16):
    k = jax.random.split(key, 8)
    return {
        "down": [kernel(k[0], 3, 3, width), kernel(k[1], 3, width, 2 * width), kernel(k[2], 3, 2 * width, 4 * width)],
        "up": [kernel(k[3], 2, 4 * width, 2 * width), kernel(k[4], 2, 2 * width, width)],
        "join": [kernel(k[5], 3, 4 * width, 2 * width), kernel(k[6], 3, 2 * width, width)],
        "last": kernel(k[7], 1, width, 3),
    }


def unet(p, x):
    kept = []
    for i, w in enumerate(p["down"]):
        if i:
            kept.append(x)
            x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        x = jax.nn.silu(conv(w, x))
    for up, join in zip(p["up"], p["join"]):
        x = jax.lax.conv_transpose(x, up, (2, 2), "SAME")
        x = jax.nn.silu(conv(join, jnp.concatenate([x, kept.pop()], -1)))
    return conv(p["last"], x)


def squares(output, target):
    return ((output - target) ** 2).mean()


def step(model, loss):
    """A step of Adam with its moments beside the parameters."""

    @jax.jit
    def train(params, m, v, x, y):
        value, grads = jax.value_and_grad(lambda p: loss(model(p, x), y))(params)
        m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, grads)
        v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, grads)
        params = jax.tree.map(lambda p, m, v: p - 1e-3 * m / (jnp.sqrt(v) + 1e-8), params, m, v)
        return params, m, v, value

    return train


def shapes(init, x, y, **options):
    params = jax.eval_shape(lambda key: init(key, **options), jax.random.key(0))
    return params, params, params, x, y


IDS, IMAGES = jax.ShapeDtypeStruct((4, 64), "int32"), jax.ShapeDtypeStruct((8, 32, 32, 3), "float32")
LABELS = jax.ShapeDtypeStruct((8,), "int32")
MODELS = {
    "nanoGPT": lambda: (step(gpt, cross_entropy), shapes(gpt_init, IDS, IDS)),
    "Llama": lambda: (step(llama, cross_entropy), shapes(llama_init, IDS, IDS)),
    "ViT": lambda: (step(vit, cross_entropy), shapes(vit_init, IMAGES, LABELS)),
    "ResNet": lambda: (step(resnet, cross_entropy), shapes(resnet_init, IMAGES, LABELS)),
    "U-Net": lambda: (step(unet, squares), shapes(unet_init, IMAGES, IMAGES)),
    "Mixtral": lambda: (step(llama, cross_entropy), shapes(llama_init, IDS, IDS, count=4)),
}
