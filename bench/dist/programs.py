"""Writes programs of JAX with shardings as StableHLO, for testdata: programs.py FOLDER. Needs no devices but eight of the CPU."""

import os
import pathlib
import sys

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
os.environ["JAX_PLATFORMS"] = "cpu"

import jax  # noqa: E402 (the number of devices is read when it is imported)
import jax.numpy as jnp  # noqa: E402
from jax.sharding import NamedSharding  # noqa: E402
from jax.sharding import PartitionSpec as P  # noqa: E402

AUTO = (jax.sharding.AxisType.Auto,)
mesh = jax.make_mesh((2, 4), ("data", "model"), axis_types=AUTO * 2)
line = jax.make_mesh((8,), ("fsdp",), axis_types=AUTO)


def on(m, *axes):
    return NamedSharding(m, P(*axes))


def array(*shape):
    return jax.ShapeDtypeStruct(shape, jnp.float32)


def mlp(x, w, v):
    h = jax.nn.gelu(x @ w)
    h = jax.lax.with_sharding_constraint(h, on(mesh, "data", "model"))
    return jax.nn.softmax(h @ v)


def attention(x, wqkv, wo):
    q, k, v = jnp.einsum("bld,tdhk->tbhlk", x, wqkv)
    s = jnp.einsum("bhlk,bhmk->bhlm", q, k) / 4.0
    s = jnp.where(jnp.tril(jnp.ones(s.shape[-2:], bool)), s, -1e9)
    return jnp.einsum("bhlm,bhmk,hkd->bld", jax.nn.softmax(s), v, wo)


def fsdp(params, x, y):
    def loss(p):
        h = x
        for w in p:
            h = jnp.tanh(h @ w)
        return jnp.mean((h - y) ** 2)

    value, grads = jax.value_and_grad(loss)(params)
    return value, [p - 0.1 * g for p, g in zip(params, grads)]


def scanned(w, x):
    def layer(h, w):
        return jnp.tanh(h @ w), h.sum()

    return jax.lax.scan(layer, x, w)


def ring(x):
    """Sums of the rows, passed round a ring, and other collectives."""

    def body(x):
        i = jax.lax.axis_index("model").astype(jnp.float32)
        y = jax.lax.psum(x * (1 + i), "data")
        y = y + jax.lax.ppermute(y, "model", [(k, (k + 1) % 4) for k in range(4)])
        z = jax.lax.all_gather(y, "model", axis=1, tiled=True)
        z = jax.lax.psum_scatter(z, ("data", "model"), scatter_dimension=1, tiled=True)
        return jax.lax.all_to_all(z, "data", 0, 1, tiled=True), jax.lax.pmax(x, ("data", "model"))

    specs = (P("data", ("model",)), P(None, None))
    return jax.shard_map(body, mesh=mesh, in_specs=P("data", "model"), out_specs=specs, check_vma=False)(x)


rows, whole = on(mesh, "data", None), on(mesh)
programs = {
    "mlp": (mlp, (array(16, 32), array(32, 64), array(64, 32)), (rows, on(mesh, None, "model"), on(mesh, "model")), rows),
    "attention": (
        attention,
        (array(4, 16, 32), array(3, 32, 4, 8), array(4, 8, 32)),
        (on(mesh, "data"), on(mesh, None, None, "model"), on(mesh, "model")),
        on(mesh, "data"),
    ),
    "fsdp": (
        fsdp,
        ([array(32, 64), array(64, 32)], array(16, 32), array(16, 32)),
        (on(line, "fsdp"), on(line, "fsdp"), on(line, "fsdp")),
        (on(line), on(line, "fsdp")),
    ),
    "scan": (scanned, (array(3, 32, 32), array(16, 32)), (on(mesh, None, None, "model"), rows), (rows, whole)),
    "ring": (ring, (array(8, 16),), None, None),
}

folder = pathlib.Path(sys.argv[1])
for name, (f, args, inputs, outputs) in programs.items():
    given = {k: v for k, v in (("in_shardings", inputs), ("out_shardings", outputs)) if v is not None}
    (folder / f"jax_{name}.mlir").write_text(jax.jit(f, **given).lower(*args).as_text())
