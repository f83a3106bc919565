import jax
import jax.numpy as jnp


def norm(x, scale):
    mean = x.mean(-1, keepdims=True)
    return (x - mean) * scale


class Mlp:
    """x + up(norm(x)): def is no function here."""

    def __call__(self, p, x):
        h = jax.nn.relu(norm(x, p["scale"]) @ p["up"])
        return x + h @ p["down"]


def loss(p, x, y):
    with jax.named_scope("mlp"):
        out = Mlp()(p, x)
    return ((out - y) ** 2).mean()


@jax.jit
def step(p, x, y):
    value, grads = jax.value_and_grad(loss)(p, x, y)
    return jax.tree.map(lambda w, g: w - 0.1 * g, p, grads), value
